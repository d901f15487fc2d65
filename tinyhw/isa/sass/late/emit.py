"""Encode scheduled code: each instruction with its control word, jumps by distance, then a tail for the instruction
fetch."""
from __future__ import annotations

from tinyhw.isa.sass.asm.encode import BYTES, encode
from tinyhw.isa.sass.late.schedule import Scheduled
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import BRANCH, real
from tinyhw.isa.sass.table.control import Control
from tinyhw.isa.sass.table.form import Generation
from tinyhw.isa.sass.table.table import build, table
from tinyhw.machine.ir.inst import Block, MInst

ALIGNMENT = 128  # of the end of the code
STOP = Control(0, False)

def encode_function(scheduled: Scheduled, generation: Generation) -> tuple[bytes, list[tuple[int, MInst, Control]]]:
  """Return the code, and the offset and control word of each instruction in it. The code ends with a jump to itself."""
  rows = table(generation.arch)
  starts: dict[Block, int] = {}
  at = 0
  for block, lines in scheduled:
    starts[block] = at
    at += BYTES * len(lines)
  placed: list[tuple[int, MInst, Control]] = []
  pieces: list[bytes] = []
  for _, lines in scheduled:
    for inst, control in lines:
      offset = BYTES * len(placed)
      if inst.row.encoding is BRANCH: inst = real(inst, starts[inst.operands[0]] - offset - BYTES, rows)
      placed.append((offset, inst, control))
      pieces.append(encode(inst, control))
  pieces.append(encode(build(rows["BRA/947"], regs.PT, -BYTES), STOP))
  pieces += [encode(build(rows["NOP/918"]), STOP)] * (-len(pieces) % (ALIGNMENT // BYTES))
  return b"".join(pieces), placed
