"""Add the stack frame of a kernel: save registers for the calling convention, reserve spill slots, and restore both
before returns. The pass runs after allocation, when the written registers are known.

    [sp]                 spill slots
    [sp + slots]         saved registers
"""
from __future__ import annotations

from tinyhw.isa.riscv64.abi import LP64D
from tinyhw.isa.riscv64.asm.syntax import parse
from tinyhw.isa.riscv64.table import regs
from tinyhw.machine.ir.inst import Function, MInst
from tinyhw.machine.ir.target import Target

LARGEST = 2032  # bytes that one addi adds to sp, as a multiple of 16

def add_frame(function: Function, target: Target) -> Function:
  """Add a prologue to the entry, and an epilogue before each ret."""
  written = {(r.cls.bank, r.index) for block in function.blocks for inst in block.insts for r in inst.writes()}
  saved = [("d", regs.X_NAMES[k]) for k in LP64D.saved if (regs.GENERAL, k) in written]
  saved += [("fd", regs.F_NAMES[k]) for k in LP64D.saved_float if (regs.FLOAT, k) in written]
  enter, leave = frame_code((function.stack_bytes + 15) // 16 * 16, saved)
  function.blocks[0].insts[:0] = [MInst(i.row, list(i.operands), comment="frame") for i in map(parse, enter)]
  for block in function.blocks:
    if block.insts and block.insts[-1].row.name == "ret":
      block.insts[-1:-1] = [MInst(i.row, list(i.operands), comment="frame") for i in map(parse, leave)]
  return function

def frame_code(slots: int, saved: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
  """The lines of prologue and epilogue. saved: the register, and the end of the mnemonics that store and load it."""
  size = (8 * len(saved) + 15) // 16 * 16
  def access(kind: str) -> list[str]:
    return [f"{end.replace('d', kind + 'd')} {name}, {8 * k}(sp)" for k, (end, name) in enumerate(saved)]
  enter = ([f"addi sp, sp, -{size}", *access("s")] if size else []) + [f"addi sp, sp, -{n}" for n in steps(slots)]
  leave = [f"addi sp, sp, {n}" for n in steps(slots)] + ([*access("l"), f"addi sp, sp, {size}"] if size else [])
  return enter, leave

def steps(size: int) -> list[int]:
  """A multiple of 16 in parts that an instruction adds."""
  return [LARGEST] * (size // LARGEST) + ([size % LARGEST] if size % LARGEST else [])
