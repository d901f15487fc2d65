"""Rows that the machine passes make."""
from __future__ import annotations
from generators.invented import Build, cisc

from tinyhw.machine.ir.pseudo import PSEUDO, copy, copy_row, reload_row, spill_row, swap_row
from tinyhw.machine.passes import run

def test_rows_are_made_once_per_class() -> None:
  cls = cisc().classes[0]
  assert copy_row(cls) is copy_row(cls) and copy_row(cls).reads == (1,) and copy_row(cls).writes == (0,)
  assert spill_row(cls).reads == (0,) and reload_row(cls).writes == (0,) and swap_row(cls).both == (0, 1)

def test_selected_copy_costs_nothing_where_the_source_ends() -> None:
  b = Build(cisc())
  x = b.params("r64", fixed={0: 0})[0]
  y = b.new("r64")
  b.at.insts.append(copy(y, x))
  b.emit("ret", y)
  assert b.at.insts[0].row.encoding is PSEUDO
  assert [i.row.name for i in run(b.function, b.target).blocks[0].insts] == ["ret"]
