"""Pairs of operations are found if the encoder knows them and nothing in between conflicts. The results of the code
stay the same."""
from __future__ import annotations
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tinyhw.isa.amd.asm.encode import encode
from tinyhw.isa.amd.asm.syntax import show
from tinyhw.isa.amd.late.dual import COMMUTATIVE, pair_operations
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.regs import s, v
from tinyhw.isa.amd.table.table import build, table
from tinyhw.isa.amd.target import target
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg

ROWS = table("gfx1100")

def make(key: str, *operands: Any, **modifiers: int) -> MInst: return build(ROWS[key], *operands, **modifiers)
def mul(d: int, a: Any, b: int) -> MInst: return make("v_mul_f32", v(d), a if not isinstance(a, int) else v(a), v(b))

def paired(*insts: MInst, arch: str = "gfx1100") -> list[MInst]:
  function = Function("k")
  function.blocks = [Block(0)]
  function.blocks[0].insts = list(insts)
  pair_operations(function, target(arch))
  return function.blocks[0].insts

def text(insts: Sequence[MInst]) -> list[str]: return [show(inst) for inst in insts]

NOP = make("s_nop", 0)

def test_neighbours_are_one_instruction() -> None:
  assert text(paired(mul(0, 1, 2), mul(3, 4, 5), NOP)) == ["v_dual_mul_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5",
                                                           "s_nop 0"]
  assert (text(paired(make("v_add_nc_u32", v(0), 1, v(2)), mul(3, 4, 5), NOP))[0] == "v_dual_mul_f32 v3, v4, v5 :: "
          "v_dual_add_nc_u32 v0, 1, v2"), \
    "some operations are the second one only"

def test_operands_change_places_where_banks_want_it() -> None:
  assert text(paired(mul(0, 1, 2), mul(3, 5, 4), NOP))[0] == "v_dual_mul_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5"
  first = make("v_sub_f32", v(0), v(1), v(2))
  assert (text(paired(first, make("v_sub_f32", v(3), v(5), v(4)), NOP))[0] == "v_dual_sub_f32 v0, v1, v2 :: "
          "v_dual_subrev_f32 v3, v4, v5")

@pytest.mark.parametrize("second",
                         [mul(2, 4, 7), mul(3, 0, 7), mul(5, 9, 9), make("v_mul_f32", v(3), v(4), v(7), neg=1),
                          make("v_rcp_f32", v(3), v(4)), make("v_mul_f32", v(3), 0x40490fdb, v(7))])
def test_what_cannot_be_a_pair_is_none(second: MInst) -> None:
  """Results of one parity, a result that the other operation reads, banks in any order, modifiers, other units, and a
  second literal."""
  first = make("v_mul_f32", v(0), 0x3e22f984, v(2)) if second.operands[1] == 0x40490fdb else mul(0, 1, 2)
  assert text(paired(first, second, NOP)) == text([first, second, NOP])

def test_a_partner_moves_past_what_is_independent() -> None:
  between = make("v_rcp_f32", v(9), v(10))
  assert len(text(paired(mul(0, 1, 2), between, mul(3, 4, 5)))) == 2
  reader = make("v_rcp_f32", v(9), v(0))
  assert text(paired(mul(0, 1, 2), reader, mul(3, 4, 5)))[0][:6] == "v_dual", "the partner moves up"
  maker = make("v_rcp_f32", v(4), v(9))
  assert text(paired(mul(0, 1, 2), maker, mul(3, 4, 5)))[1][:6] == "v_dual", "the first one moves down"
  both = make("v_rcp_f32", v(4), v(0))
  assert len(paired(mul(0, 1, 2), both, mul(3, 4, 5))) == 3
  overwriting = make("v_rcp_f32", v(1), v(4))
  assert text(paired(mul(0, 1, 2), overwriting, mul(3, 4, 5)))[0][:6] == "v_dual"

@pytest.mark.parametrize("wall", [make("s_waitcnt", 0), make("s_barrier"), make("s_and_saveexec_b32", s(0), s(1)),
                                  make("s_mov_b32", regs.reg(regs.S[1], regs.EXEC), s(0))])
def test_nothing_crosses_waits_barriers_and_changes_of_exec(wall: MInst) -> None:
  assert len(paired(mul(0, 1, 2), wall, mul(3, 4, 5))) == 3

def test_only_where_there_are_pairs() -> None:
  for arch in ("gfx1100:wave64", "gfx942"):
    rows = table(arch)
    code = [build(rows["v_mul_f32"], v(d), v(d + 1), v(d + 2)) for d in (0, 3)] + [build(rows["s_nop"], 0)]
    assert paired(*code, arch=arch) == code

class Symbols:
  """The values of registers, as numbers of expressions."""
  def __init__(self) -> None:
    self.known: dict[Any, int] = {}
    self.value = {k: self.number(("start", k)) for k in range(32)}

  def number(self, expression: Any) -> int: return self.known.setdefault(expression, len(self.known))

  def run(self, insts: Sequence[MInst]) -> dict[int, int]:
    for inst in insts:
      if "::" not in inst.row.name:
        parts = [(f"v_dual_{inst.row.name[2:]}", [o for sp, o in zip(inst.row.isa.specs, inst.operands) if sp.show])]
      else:
        names, half = inst.row.name.split("::"), inst.row.isa.first_operands
        parts = [(names[0], list(inst.operands[:half])), (names[1], list(inst.operands[half:]))]
      results = [(o[0].index, self.number(self.expression(name, o))) for name, o in parts]
      self.value.update(results)
    return self.value

  def expression(self, name: str, operands: list[Any]) -> Any:
    sources = [self.value[o.index] if isinstance(o, Reg) else ("constant", o) for o in operands[1:]]
    if name == "v_dual_subrev_f32": name, sources = "v_dual_sub_f32", sources[::-1]
    if name in COMMUTATIVE: sources = sorted(sources[:2], key=str) + sources[2:]
    return (name, *sources, *([self.value[operands[0].index]] if "fmac" in name else []))

def random_code(seed: int) -> list[MInst]:
  source = random.Random(seed)
  def register() -> Any: return v(source.randrange(12))
  code = []
  for _ in range(60):
    key = source.choice(["v_mul_f32", "v_add_f32", "v_sub_f32", "v_fmac_f32", "v_mov_b32", "v_fmaak_f32", "v_fmamk_f32",
                         "v_add_nc_u32", "v_and_b32",
                         "v_lshlrev_b32"])
    first = source.choice([register(), register(), register(), 1, 0x12345678])
    if key == "v_mov_b32": code.append(make(key, register(), first))
    elif key == "v_fmaak_f32": code.append(make(key, register(), register(), register(), 0x12345678))
    elif key == "v_fmamk_f32": code.append(make(key, register(), register(), 0x12345678, register()))
    else: code.append(make(key, register(), first, register()))
  return code

@pytest.mark.parametrize("seed", range(20))
def test_what_code_computes_stays(seed: int) -> None:
  expected = Symbols()
  expected.run(random_code(seed))
  found = Symbols()
  found.known = dict(expected.known)
  code = paired(*random_code(seed))
  found.run(code)
  assert found.value == expected.value and len(code) < 55 and all(encode(inst) for inst in code)
