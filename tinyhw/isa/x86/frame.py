"""Add the stack frame of a kernel: save registers for the calling convention, reserve spill slots, and restore both
before returns. A kernel with tiles configures them first: all eight have 16 rows of 64 bytes. It releases them before
it returns, so that a switch of threads need not save them.

The pass runs after allocation, when the written registers are known. Spill slots are addressed from rsp, which does not
change in between.
"""
from __future__ import annotations
import struct

from tinyhw.isa.x86 import abi

from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.inst import Function, MInst, Reg
from tinyhw.machine.ir.target import Target

RSP = regs.reg(regs.R64, 4)
# palette 1; bytes of a row of each tile; rows of each tile. Source: Intel SDM volume 1, 18.2
TILE_CONFIGURATION = struct.pack("<B15x8H16x8B8x", 1, *[regs.ROW_BYTES] * regs.TILE.count,
                                 *[regs.TILE_ROWS] * regs.TILE.count)

def add_frame(function: Function, target: Target) -> Function:
  """Add a prologue to the entry, and an epilogue before each ret."""
  convention = abi.abi()
  written = {(r.cls.bank, r.index) for block in function.blocks for inst in block.insts for r in inst.writes()}
  saved = [regs.reg(regs.R64, i) for i in map(regs.NAMES64.index, convention.saved) if (regs.GPR, i) in written]
  vectors = [r for r in (regs.reg(regs.XMM, int(name[3:])) for name in convention.saved_vector)
             if (regs.VEC, r.index) in written]
  slots = (function.stack_bytes + 15) // 16 * 16
  size = slots + 16 * len(vectors)
  enter, leave = _code(saved, vectors, slots, size)
  if any(bank is regs.TILE for bank, _ in written):
    enter.append(MInst(TABLE["ldtilecfg_m"], [regs.RIP, None, 1, TILE_CONFIGURATION]))
    leave.insert(0, MInst(TABLE["tilerelease"], []))
  for inst in enter + leave: inst.comment = "frame"
  function.blocks[0].insts[:0] = enter
  for block in function.blocks:
    if block.insts and block.insts[-1].row.name == "ret":
      block.insts[-1:-1] = [MInst(i.row, list(i.operands), comment=i.comment) for i in leave]
  return function

def _code(saved: list[Reg], vectors: list[Reg], slots: int, size: int) -> tuple[list[MInst], list[MInst]]:
  enter = [MInst(TABLE["push_r64"], [r]) for r in saved]
  leave = [MInst(TABLE["pop_r64"], [r]) for r in reversed(saved)]
  if not size: return enter, leave
  enter.append(MInst(TABLE["sub_r64_i32"], [RSP, size]))
  enter += [MInst(TABLE["vmovups_m_x"], [RSP, None, 1, slots + 16 * k, r]) for k, r in enumerate(vectors)]
  restore = [MInst(TABLE["vmovups_x_m"], [r, RSP, None, 1, slots + 16 * k]) for k, r in enumerate(vectors)]
  return enter, restore + [MInst(TABLE["add_r64_i32"], [RSP, size])] + leave
