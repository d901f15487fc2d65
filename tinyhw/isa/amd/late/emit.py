"""Encode laid out code as bytes, with the distances of jumps, and padding for the prefetch of instructions."""
from __future__ import annotations

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Block, Effect, Function, MInst

PADDING = 64   # instructions after the end: they are fetched ahead of time, never executed

def encode_function(function: Function, generation: Generation) -> tuple[bytes, list[tuple[int, MInst]]]:
  """The code, and the offset of each instruction in it. Raises EncodeError for a jump that is too far."""
  offset, starts, placed = 0, {}, []
  for block in function.blocks:
    starts[block] = offset
    for inst in block.insts:
      code = b"" if inst.row.effects & Effect.JUMP else encode(inst)
      placed.append((offset, inst, code))
      offset += len(code) or 4
  pieces = [code or encode(jump(function, inst, at, starts)) for at, inst, code in placed]
  rows = table(generation.arch)
  filler = build(rows["s_nop"], 0) if generation.cdna else build(rows["s_code_end"])
  return b"".join(pieces) + encode(filler) * PADDING, [(at, inst) for at, inst, _ in placed]

def jump(function: Function, inst: MInst, at: int, starts: dict[Block, int]) -> MInst:
  """Replace the block of a jump by the number of dwords from the next instruction."""
  distance = [(starts[o] - at - 4) // 4 for o in inst.operands if isinstance(o, Block)]
  if not -(1 << 15) <= distance[0] < 1 << 15:
    raise EncodeError(f"{function.name}: a jump of {distance[0]} dwords; 32767 is the most: unroll less")
  return MInst(inst.row, [distance[0] if isinstance(o, Block) else o for o in inst.operands])
