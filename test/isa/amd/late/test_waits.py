"""Waits before registers in flight are touched: the allowed number of instructions in flight, in each generation and
over all paths."""
from __future__ import annotations

import pytest

from tinyhw.isa.amd.late.waits import add_waits
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.regs import s, v
from tinyhw.isa.amd.table.table import Table, build, table
from tinyhw.isa.amd.target import target
from tinyhw.machine.ir.inst import Block, Function, MInst

def waited(arch: str, *blocks: list[MInst]) -> list[list[str]]:
  """The names and first operands of a function's instructions after the pass."""
  function = Function("k")
  function.blocks = [Block(i) for i in range(len(blocks))]
  for block, insts in zip(function.blocks, blocks):
    block.insts = [MInst(i.row, [function.blocks[o.id] if isinstance(o, Block) else o for o in i.operands])
                   for i in insts]
  add_waits(function, target(arch))
  return [[f"{i.row.name} {i.operands[0]}" if i.row.name.startswith("s_wait") else i.row.name for i in block.insts]
          for block in function.blocks]

def load(rows: Table, to: int) -> MInst: return build(rows["global_load_b32"], v(to), v(0), s(2, 2))
def scalar(rows: Table, to: int) -> MInst: return build(rows["s_load_b32"], s(to), s(0, 2), None)
def local(rows: Table, to: int) -> MInst: return build(rows["ds_load_b32"], v(to), v(0))
def move(rows: Table, to: int, of: regs.Reg) -> MInst: return build(rows["v_mov_b32"], v(to), of)

@pytest.mark.parametrize("arch, wait", [("gfx1100", 7 | 63 << 4 | 1 << 10), ("gfx942", 1 | 7 << 4 | 15 << 8)])
def test_loads_come_in_order(arch: str, wait: int) -> None:
  rows = table(arch)
  code = [load(rows, 1), load(rows, 2), move(rows, 3, v(1))]
  assert waited(arch, code) == [["global_load_b32", "global_load_b32", f"s_waitcnt {wait}", "v_mov_b32"]]

def test_rdna4_has_a_counter_for_each_kind() -> None:
  rows = table("gfx1200")
  code = [load(rows, 1), local(rows, 2), scalar(rows, 8), move(rows, 3, v(2)), move(rows, 4, s(8)), move(rows, 5, v(1))]
  assert waited("gfx1200", code)[0][3:] == ["s_wait_dscnt 0", "v_mov_b32", "s_wait_kmcnt 0", "v_mov_b32",
                                            "s_wait_loadcnt 0", "v_mov_b32"]

def test_a_scalar_load_in_flight_makes_the_counter_useless() -> None:
  """RDNA3 counts scalar loads and shared memory together; scalar loads finish in any order."""
  rows = table("gfx1100")
  ordered = waited("gfx1100", [local(rows, 1), local(rows, 2), move(rows, 3, v(1))])
  mixed = waited("gfx1100", [local(rows, 1), scalar(rows, 8), move(rows, 3, v(1))])
  assert ordered[0][2] == f"s_waitcnt {7 | 1 << 4 | 63 << 10}" and mixed[0][2] == f"s_waitcnt {7 | 63 << 10}"

def test_a_register_in_flight_may_not_be_written_either() -> None:
  rows = table("gfx1100")
  assert waited("gfx1100", [load(rows, 1), build(rows["v_mov_b32"], v(1), 0)])[0][1] == f"s_waitcnt {7 | 63 << 4}"

def test_what_was_waited_for_is_there() -> None:
  rows = table("gfx1100")
  assert waited("gfx1100",
                [load(rows, 1), move(rows, 3, v(1)), move(rows, 4, v(1))])[0].count(f"s_waitcnt {7 | 63 << 4}") == 1

def test_stores_are_not_waited_for_and_do_not_count_on_rdna() -> None:
  rows = table("gfx1100")
  store = build(rows["global_store_b32"], v(0), v(5), s(2, 2))
  assert waited("gfx1100", [load(rows, 1), store, move(rows, 5, v(1))])[0][2] == f"s_waitcnt {7 | 63 << 4}"
  rows = table("gfx942")
  store = build(rows["global_store_b32"], v(0), v(5), s(2, 2))
  assert waited("gfx942", [load(rows, 1), store, move(rows, 6, v(1))])[0][2] == f"s_waitcnt {1 | 7 << 4 | 15 << 8}"

def test_a_barrier_waits_for_local_memory_only() -> None:
  rows = table("gfx1100")
  store = build(rows["ds_store_b32"], v(0), v(1))
  assert waited("gfx1100", [load(rows, 5), store, build(rows["s_barrier"])])[0] == \
    ["global_load_b32", "ds_store_b32", f"s_waitcnt {7 | 63 << 10}", "s_barrier"]
  assert waited("gfx1100", [load(rows, 5), build(rows["s_barrier"])])[0] == ["global_load_b32", "s_barrier"]

def test_of_two_paths_the_worse_one_holds() -> None:
  """One path has a load after the needed one, the other has none; and a loop meets its own loads."""
  rows = table("gfx1100")
  head = [load(rows, 1), MInst(rows["s_cbranch_scc1"], [Block(2)])]
  code = waited("gfx1100", head, [load(rows, 2)], [move(rows, 3, v(1)), build(rows["s_endpgm"])])
  assert code[2][0] == f"s_waitcnt {7 | 63 << 4}"
  loop = [move(rows, 3, v(1)), load(rows, 1), MInst(rows["s_cbranch_scc1"], [Block(1)])]
  code = waited("gfx1100", [build(rows["v_mov_b32"], v(1), 0)], loop, [build(rows["s_endpgm"])])
  assert code[1][0] == f"s_waitcnt {7 | 63 << 4}" and code[0] == ["v_mov_b32"]
