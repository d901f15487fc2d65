"""Code as bytes: distances of jumps, and the padding after the end."""
import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.asm.decode import decode
from tinyhw.isa.amd.late.emit import encode_function
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.isa.amd.table.table import build, table
from tinyhw.machine.ir.inst import Block, Function, MInst

def code(function: Function, *blocks: list[MInst]) -> list[Block]:
  function.blocks = [Block(i) for i in range(len(blocks))]
  for block, insts in zip(function.blocks, blocks): block.insts = insts
  return function.blocks

@pytest.mark.parametrize("arch", ("gfx1100", "gfx942"))
def test_jumps_count_dwords_from_the_next_instruction(arch: str) -> None:
  rows, function = table(arch), Function("k")
  first, last = Block(0), Block(1)
  first.insts = [build(rows["s_mov_b32"], regs.s(0), 0x12345), MInst(rows["s_cbranch_scc1"], [last]),
                 MInst(rows["s_branch"], [first])]
  last.insts = [build(rows["s_endpgm"])]
  function.blocks = [first, last]
  text, placed = encode_function(function, Generation(arch))
  assert [at for at, _ in placed] == [0, 8, 12, 16]
  assert decode(text, 8, arch)[0].operands[0] == 1 and decode(text, 12, arch)[0].operands[0] == -4

def test_a_jump_that_is_too_far_is_refused() -> None:
  rows, function = table("gfx1100"), Function("k")
  first, last = code(function, [], [build(rows["s_endpgm"])])
  first.insts = [MInst(rows["s_branch"], [last])] + [build(rows["s_nop"], 0)] * 40000
  with pytest.raises(EncodeError, match="jump of 40000 dwords.*unroll less"):
    encode_function(function, Generation("gfx1100"))

@pytest.mark.parametrize("arch, filler", [("gfx1100", "s_code_end"), ("gfx1200", "s_code_end"), ("gfx942", "s_nop")])
def test_256_bytes_behind_the_end_can_be_fetched(arch: str, filler: str) -> None:
  function = Function("k")
  code(function, [build(table(arch)["s_endpgm"])])
  text, _ = encode_function(function, Generation(arch))
  assert len(text) == 4 + 256 and decode(text, len(text) - 4, arch)[0].row.name == filler
