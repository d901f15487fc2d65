"""Add the stack frame of a kernel: save registers for the calling convention, reserve spill slots, and restore both
before returns. The pass runs after allocation, when the written registers are known.

    [sp]                 spill slots
    [sp + slots]         saved registers, in pairs
"""
from __future__ import annotations

from tinyhw.isa.arm64.abi import AAPCS64
from tinyhw.isa.arm64.asm.syntax import parse
from tinyhw.isa.arm64.table import regs
from tinyhw.machine.ir.inst import Function, MInst
from tinyhw.machine.ir.target import Target

LARGEST = 4080  # bytes that one add or sub adds to sp, as a multiple of 16

def add_frame(function: Function, target: Target) -> Function:
  """Add a prologue to the entry, and an epilogue before each ret."""
  written = {(r.cls.bank, r.index) for block in function.blocks for inst in block.insts for r in inst.writes()}
  general = [f"x{k}" for k in AAPCS64.saved if (regs.GENERAL, k) in written]
  vectors = [f"d{k}" for k in AAPCS64.saved_vector if (regs.VECTOR, k) in written]
  slots = (function.stack_bytes + 15) // 16 * 16
  pairs = [names[k:k + 2] for names in (general, vectors) for k in range(0, len(names), 2)]
  enter, leave = frame_code(slots, pairs)
  function.blocks[0].insts[:0] = [MInst(i.row, list(i.operands), comment="frame") for i in map(parse, enter)]
  for block in function.blocks:
    if block.insts and block.insts[-1].row.name == "ret":
      block.insts[-1:-1] = [MInst(i.row, list(i.operands), comment="frame") for i in map(parse, leave)]
  return function

def frame_code(slots: int, pairs: list[list[str]]) -> tuple[list[str], list[str]]:
  """The lines of prologue and epilogue."""
  saved = 16 * len(pairs)
  stores = [f"{'stp' if len(pair) > 1 else 'str'} {', '.join(pair)}, [sp, #{16 * k}]" for k, pair in enumerate(pairs)]
  loads = [f"{'ldp' if len(pair) > 1 else 'ldr'} {', '.join(pair)}, [sp, #{16 * k}]" for k, pair in enumerate(pairs)]
  enter = ([f"sub sp, sp, #{saved}", *stores] if saved else []) + [f"sub sp, sp, #{n}" for n in steps(slots)]
  leave = [f"add sp, sp, #{n}" for n in steps(slots)] + ([*loads, f"add sp, sp, #{saved}"] if saved else [])
  return enter, leave

def steps(size: int) -> list[int]:
  """A multiple of 16 in parts that an instruction adds."""
  return [LARGEST] * (size // LARGEST) + ([size % LARGEST] if size % LARGEST else [])
