"""Hazards of three instructions: scalar registers that were read before they were written, vector registers written
before and after a write of exec."""
from __future__ import annotations
from collections.abc import Sequence

import pytest

from tinyhw.isa.amd.late.hazards import VECTOR_RESULTS
from tinyhw.isa.amd.late.hazards_rdna import SCALAR_RESULTS, VECTOR_SCALARS, VECTOR_VCC, ExecWrites, avoid_chains, meet
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.regs import s, v
from tinyhw.isa.amd.table.table import build, table
from tinyhw.isa.amd.target import target
from tinyhw.machine.ir.inst import Block, Function, MInst

WAVE64 = "gfx1100:wave64"
ROWS = table(WAVE64)
EXEC, VCC = regs.reg(regs.S[2], regs.EXEC), regs.reg(regs.S[2], regs.VCC)

def cured(arch: str, *blocks: Sequence[MInst]) -> list[str]:
  """Names of all instructions after the pass; waits with their operand."""
  function = Function("k")
  function.blocks = [Block(i) for i in range(len(blocks))]
  for block, insts in zip(function.blocks, blocks): block.insts = list(insts)
  avoid_chains(function, target(arch))
  return [f"wait {i.operands[0]:#x}" if i.row.name == "s_waitcnt_depctr" else i.row.name for b in function.blocks
          for i in b.insts]

def test_a_scalar_register_that_was_read_by_the_vector_unit_on_rdna4() -> None:
  rows = table("gfx1200")
  add, write = build(rows["v_add_nc_u32"], v(0), s(4), v(0)), build(rows["s_mov_b32"], s(4), 0)
  assert cured("gfx1200", [add, write, add])[2] == f"wait {SCALAR_RESULTS:#x}"
  assert cured("gfx1200", [write, build(rows["v_mov_b32"], v(0), 0)]) == ["s_mov_b32", "v_mov_b32"]
  load = build(rows["s_load_b32"], s(8), s(0, 2), None)
  assert cured("gfx1200", [add, write, load, add]) == ["v_add_nc_u32", "s_mov_b32", "s_load_b32", "v_add_nc_u32"]
  compare = build(rows["s_cmp_eq_u32"], s(4), 0)
  assert cured("gfx1200", [add, write, compare])[2] == f"wait {SCALAR_RESULTS:#x}", ("scalar instructions read it too "
                                                                                     "late as well")
  other = build(rows["v_add_nc_u32"], v(0), s(5), v(0))
  assert (cured("gfx1200", [add, build(rows["s_mov_b32"], s(5), 0), other])[2]
          == f"wait {SCALAR_RESULTS:#x}"), "both of a pair count"

def test_a_block_that_runs_into_the_next_one_waits_for_its_last_write_on_rdna4() -> None:
  rows = table("gfx1200")
  add, write = build(rows["v_add_nc_u32"], v(0), s(4), v(0)), build(rows["s_mov_b32"], s(4), 0)
  assert cured("gfx1200", [add, write])[-1] == f"wait {SCALAR_RESULTS:#x}"

@pytest.mark.parametrize("mask", [s(4, 2), VCC])
def test_a_mask_that_is_written_again_in_waves_of_64_on_rdna3(mask: regs.Reg) -> None:
  choose, other = build(ROWS["v_cndmask_b32"], v(2), v(0), v(1), mask), build(ROWS["v_mov_b32"], v(3), 0)
  scalar, vector = build(ROWS["s_mov_b64"], mask, 0), build(ROWS["v_cmp_lt_f32"], mask, v(0), v(1))
  assert cured(WAVE64, [choose, scalar, other, choose])[3] == f"wait {SCALAR_RESULTS:#x}"
  assert cured(WAVE64, [choose, vector, other, choose])[3] == f"wait {VECTOR_VCC if mask == VCC else VECTOR_SCALARS:#x}"
  read = build(ROWS["s_mov_b64"], s(10, 2), mask)
  assert cured(WAVE64, [choose, scalar, read])[2] == f"wait {SCALAR_RESULTS:#x}"
  assert cured(WAVE64, [choose, vector, read, other])[2] == "s_mov_b64", "scalar instructions wait for the vector unit"
  assert cured(WAVE64, [choose, scalar])[-1] == f"wait {SCALAR_RESULTS:#x}", "the next block may read it"

def test_what_is_no_mask_is_no_hazard_on_rdna3() -> None:
  add, write = build(ROWS["v_add_nc_u32"], v(0), s(4), v(0)), build(ROWS["s_mov_b32"], s(4), 0)
  assert cured(WAVE64, [add, write, add]) == ["v_add_nc_u32", "s_mov_b32", "v_add_nc_u32"]
  rows = table("gfx1100")
  choose, scalar = build(rows["v_cndmask_b32"], v(2), v(0), v(1), s(4)), build(rows["s_mov_b32"], s(4), 0)
  assert len(cured("gfx1100", [choose, scalar, choose])) == 3, "nor in waves of 32"

FIRST, SECOND, OTHER = (build(ROWS["v_mov_b32"], v(k), 0) for k in (2, 3, 9))
NARROW, BOTH = build(ROWS["s_mov_b64"], EXEC, s(10, 2)), build(ROWS["v_add_nc_u32"], v(4), v(2), v(3))
LOAD = build(ROWS["global_load_b32"], v(6), v(1), s(4, 2))
WAIT = f"wait {VECTOR_RESULTS:#x}"

@pytest.mark.parametrize("code, needed", [
  ([FIRST, NARROW, SECOND, BOTH], True), ([FIRST, OTHER, OTHER, NARROW, SECOND, OTHER, OTHER, OTHER, OTHER, BOTH],
                                          True),
  ([FIRST, NARROW, SECOND, BOTH], True), ([FIRST, NARROW, OTHER, OTHER, SECOND, OTHER, OTHER, OTHER, OTHER, BOTH],
                                          True),
  ([FIRST, OTHER, OTHER, OTHER, NARROW, SECOND, BOTH], False), ([FIRST, NARROW, SECOND, *[OTHER] * 8, BOTH], False),
  ([FIRST, NARROW, LOAD, SECOND, BOTH], False), ([FIRST, SECOND, NARROW, BOTH], False),
  ([NARROW, FIRST, SECOND, BOTH], False)])
def test_registers_on_both_sides_of_a_write_of_exec(code: list[MInst], needed: bool) -> None:
  found = cured(WAVE64, code)
  assert (WAIT in found) == needed and (not needed or found[-2] == WAIT)
  assert (WAIT in cured(WAVE64, code[:2], code[2:])) == needed, "across blocks"
  assert WAIT not in cured(WAVE64, [i for i in code if i is not NARROW])

def test_states_that_meet() -> None:
  one, other = ExecWrites((1, 2), 4, 8, 3), ExecWrites((16,), 0, 32, 5)
  assert meet(None, one) == one and meet(one, one) is None and meet(one, ExecWrites()) is None
  assert meet(one, other) == meet(other, one) == ExecWrites((17, 2), 4, 40, 5)
