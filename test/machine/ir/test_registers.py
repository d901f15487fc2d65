"""Renumbered units, aligned searches, limits, and constraints of rows."""
from __future__ import annotations
import pytest
from hypothesis import given, strategies as st
from generators.invented import cisc, lanes

from tinyhw.machine.ir.inst import Bank, RegClass
from tinyhw.machine.ir.registers import BankFile, TargetRegisters, RegClassInfo, registers_of, size_of

def test_best_register_is_the_lowest_bit() -> None:
  file = registers_of(cisc(10))
  bank = file.banks[0]
  assert bank.numbers[:4] == [3, 5, 6, 7] and bank.limit == 10 and bank.free == (1 << 10) - 1
  view = file.view(cisc_class := next(c for c in file.views if c.name == "r64"))
  assert view.regs[view.find(bank.free)].index == 3 and view.regs[0].cls is cisc_class
  assert registers_of(target := cisc()) is registers_of(target)

@given(st.integers(0, (1 << 16) - 1), st.sampled_from([(1, 1), (2, 2), (4, 4), (3, 4), (3, 1), (2, 1)]))
def test_find_against_a_plain_search(free: int, form: tuple[int, int]) -> None:
  units, align = form
  bank = Bank("b", 16, tuple(range(16)))
  cls = RegClass("c", bank, 32 * units, units, align, tuple(map(str, range(16))))
  quad = RegClass("q", bank, 128, 4, 4, tuple(map(str, range(16))))
  view = RegClassInfo(cls, BankFile(bank, 0, [cls, quad], bank.allocatable))
  mask = (1 << units) - 1
  fits = [k for k in range(0, 17 - units, align) if free >> k & mask == mask]
  assert view.find_first(free) == (fits[0] if fits else -1)
  assert view.find(free) in (fits or [-1])

def test_holes_are_filled_before_larger_runs_are_broken() -> None:
  file = registers_of(lanes(16))
  single = next(v for v in file.views.values() if v.cls.name == "d1")
  assert single.find(0b1111_0000_1111_0000) == 4
  assert single.find(0b1000_0000_1111_0000) == 15
  pair = next(v for v in file.views.values() if v.cls.name == "d2")
  assert pair.find(0b1100_0000_1111_0000) == 14

def test_limit_counts_whole_aligned_blocks() -> None:
  bank = Bank("b", 16, (1, 2, 3, 4, 5, 6, 7, 8, 9))
  names = tuple(map(str, range(16)))
  quad, single = RegClass("q", bank, 128, 4, 4, names), RegClass("s", bank, 32, names=names)
  file = BankFile(bank, 0, [quad, single], bank.allocatable)
  assert file.limit == 4 and file.block == 4 and file.blocked(0b110000) == 4 and file.blocked(0b10) == 0
  assert size_of(RegClass("t", bank, 96, 3, 4, names)) == 4

def test_over_tells_the_bank() -> None:
  file = registers_of(lanes(16, 4))
  one = {v.cls.name: v.weight for v in file.views.values()}
  assert not file.over(16 * one["d1"] + 4 * one["s1"] + 3 * one["p1"])
  assert file.over(17 * one["d1"]) != file.over(5 * one["s1"]) and file.over(4 * one["d4"] + one["d1"])

def test_shapes() -> None:
  target = cisc()
  file: TargetRegisters = registers_of(target)
  table = target.table
  assert file.shape(table["lea"]).plain and not file.shape(table["add"]).plain and not file.shape(table["add"]).rigid
  shift, divide = file.shape(table["shl"]), file.shape(table["div"])
  rcx, rax, rdx = (1 << file.banks[0].unit_of[k] for k in (1, 0, 2))
  assert shift.rigid and shift.touched[0] == rcx and shift.overwritten[0] == 0 and len(shift.ties) == 1
  assert divide.overwritten[0] == divide.touched[0] == rax | rdx
  assert file.shape(table["call"]).overwritten[1] == 0b11

def test_a_class_of_a_foreign_bank_is_refused() -> None:
  other = Bank("other", 4, (0, 1))
  with pytest.raises(AssertionError, match="other"):
    registers_of(cisc()).view(RegClass("x", other, 32, names=("a", "b", "c", "d")))

def test_reaches_grow_by_steps_and_end_with_whole_blocks_first() -> None:
  """16 registers in blocks of 4, with fewer waves beyond 6 and 10: 4, 6, 8, 10, all. Incomplete blocks follow the whole
  ones."""
  bank = Bank("r", 16, tuple(range(16)))
  classes = [RegClass("r1", bank, 32), RegClass("r4", bank, 128, 4, 4)]
  assert ([reach.bit_length() for reach in BankFile(bank, 0, classes, tuple(range(16)), (6, 10)).reaches]
          == [4, 6, 8, 10, 16])
  assert [reach.bit_length() for reach in BankFile(bank, 0, classes, tuple(range(14)), ()).reaches] == [12, 14]
