"""Unnecessary copies are removed, others stay; a sum that stays in its register becomes a short instruction."""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

import pytest

from tinyhw.isa.amd.asm.syntax import show
from tinyhw.isa.amd.late.drop_copies import drop_copies
from tinyhw.isa.amd.macros.macros import merging
from tinyhw.isa.amd.table.regs import s, v
from tinyhw.isa.amd.table.table import build, table
from tinyhw.isa.amd.target import target
from tinyhw.machine.ir.inst import Block, Function, MInst

ROWS = table("gfx1100")

def make(key: str, *operands: Any, **modifiers: int) -> MInst: return build(ROWS[key], *operands, **modifiers)
def move(dst: int, src: int) -> MInst: return make("v_mov_b32", v(dst), v(src))
def double(dst: int, src: int) -> MInst: return make("v_mul_f32", v(dst), 0x40000000, v(src))
def store(data: int, units: int = 1) -> MInst: return make(f"global_store_b{32 * units}", v(0), v(data, units), s(2, 2))
def load(data: int, units: int = 1) -> MInst: return make(f"global_load_b{32 * units}", v(data, units), v(0), s(2, 2))

def left(*blocks: Sequence[MInst]) -> list[list[str]]:
  """The text of the instructions after the pass."""
  function = Function("k")
  function.blocks = [Block(k) for k in range(len(blocks))]
  for block, insts in zip(function.blocks, blocks): block.insts = list(insts)
  drop_copies(function, target("gfx1100"))
  return [[show(inst) for inst in block.insts] for block in function.blocks]

def same(*insts: MInst) -> list[str]: return [show(inst) for inst in insts]

def test_a_reader_of_a_copy_reads_its_source() -> None:
  assert left([load(4, 2), move(8, 5), double(9, 8), store(9)]) == [same(load(4, 2), double(9, 5), store(9))]
  assert left([load(4), move(8, 4), move(9, 8), double(1, 9), store(1)]) == [same(load(4), double(1, 4), store(1))]

def test_a_copy_whose_source_is_overwritten_stays() -> None:
  assert left([load(4), move(8, 4), double(4, 4), double(9, 8), store(9), store(4)]) \
    == [same(load(4), move(8, 4), double(4, 4), double(9, 8), store(9), store(4))]

def test_what_is_put_together_is_made_there() -> None:
  assert left([load(4), double(5, 4), double(6, 5), move(9, 6), move(8, 5), store(8, 2)]) \
    == [same(load(4), double(8, 4), double(9, 8), store(8, 2))]
  assert left([load(4), move(8, 4), move(9, 4), store(8, 2)]) == [same(load(9), move(8, 9), store(8, 2))], "one of two"

def test_what_something_else_stands_in_the_way_of_stays() -> None:
  assert left([load(9), double(5, 0), double(6, 9), move(9, 5), store(8, 2), store(6)]) \
    == [same(load(9), double(5, 0), double(6, 9), move(9, 5), store(8, 2), store(6))]
  assert left([load(4, 2), move(9, 5), store(8, 2)]) == [same(load(4, 2), move(9, 5),
                                                              store(8, 2))], "the source is a part of a group"

def test_a_load_in_some_lanes_is_not_what_makes_its_register() -> None:
  some = load(5)
  code = [double(5, 0), MInst(merging(some.row), list(some.operands)), move(9, 5), store(8, 2)]
  assert left(code) == [same(double(9, 0), load(9), store(8, 2))]
  code = [MInst(merging(some.row), list(some.operands)), move(9, 5), store(8, 2)]
  assert left(code) == [same(load(5), move(9, 5), store(8, 2))]

def test_copies_for_other_blocks_stay() -> None:
  after = Block(1)
  jump = MInst(ROWS["s_branch"], [after], None, ([],))
  assert left([load(4), move(8, 4), load(4)], [store(8), store(4)])[0] == same(load(8), load(4))
  loop = [double(5, 8), move(8, 5), jump]
  assert left([load(8)], loop[:2], [store(8)])[1] == same(double(8, 8))

@pytest.mark.parametrize("a, b, key",
                         [(v(1), v(2), "v_fmac_f32_e32 v3, v1, v2"), (v(1), s(4), "v_fmac_f32_e32 v3, s4, v1"),
                           (s(4), s(5), "v_fma_f32 v3, s4, s5, v3")])
def test_sums_in_their_registers_are_short(a: Any, b: Any, key: str) -> None:
  assert left([make("v_fma_f32", v(3), a, b, v(3)), store(3)])[0][0] == key
  assert left([make("v_fma_f32", v(3), a, v(2), v(3), neg=1), store(3)])[0][0].startswith("v_fma_f32")
  assert left([make("v_fma_f32", v(3), a, v(2), v(5)), store(3)])[0][0].startswith("v_fma_f32")

def test_a_wide_product_does_not_write_what_it_reads_on_rdna3() -> None:
  code = [load(4, 2), move(8, 4), make("v_mad_u64_u32", v(4, 2), s(2), v(8), v(9), 0), store(4, 2)]
  assert left(code) == [same(*code)]
  clear = [load(4, 2), move(8, 4), make("v_mad_u64_u32", v(6, 2), s(2), v(8), v(9), 0), store(6, 2)]
  assert left(clear) == [same(clear[0], make("v_mad_u64_u32", v(6, 2), s(2), v(4), v(9), 0), clear[3])]
