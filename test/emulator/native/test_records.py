"""Records: the sequence of words, operands by name, and words that are filled in later."""
from __future__ import annotations
import pytest

from tinyhw.emulator.native.records import (
  HEAD, OPERANDS, PAIRS, WORD, Lanes, Records, ScalarAccess, VectorAccess, offsets)

FUNCTIONS = {name: 1000 * (i + 1) for i, name in enumerate((*OPERANDS, "python", "link", "make", "written_all"))}

def test_a_record_is_two_functions_its_size_and_operands() -> None:
  records = Records(FUNCTIONS)
  assert records.add(5, 6, (7, 8)) == 0 and records.python() == 5
  assert records.words.tolist() == [5, 6, 40, 7, 8, FUNCTIONS["python"], FUNCTIONS["python"], 24]
  assert (records.size(0), records.size(5)) == (40, 24)
  records.complete(0, 9)
  assert records.words[:2].tolist() == [5, 9]

# function that appends a record, its name, operands by name
@pytest.mark.parametrize("append, function, operands", [
  (lambda r: r.activate(504), "activate", {"mask": 504}),
  (lambda r: r.jump("jump_set", 16, 255), "jump_set", {"place": 16, "mask": 255}),
  (lambda r: r.guard(Lanes(4, 1, 8, 3), 12), "guard",
   {"mask": 4, "inversion": 1, "running": 8, "number": 3, "active": 12}),
  (lambda r: r.branch(Lanes(4, 1, 8, 3)), "branch", {"mask": 4, "inversion": 1, "running": 8, "number": 3}),
  (lambda r: r.written([5, 6], [7]), "written", {"reads": 2, "writes": 1, "numbers": 5}),
  (lambda r: r.entry(12), "entry", {"instructions": 12, "pairs": -1}),
  (lambda r: r.steer("vector", *VectorAccess(1, 2, 3, 4, data=5, row=6, words=7, unaligned=8)), "vector",
   {"data": 5, "unaligned": 8}),
  (lambda r: r.steer("scalar", *ScalarAccess(base=1, register=2, offset=3, data=4, words=5)), "scalar",
   {"base": 1, "words": 5}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_operands_stand_where_the_functions_look(append: object, function: str, operands: dict[str, int]) -> None:
  records = Records(FUNCTIONS)
  records.python()
  assert callable(append)
  at = append(records)
  assert records.words[at] == records.words[at + 1] == FUNCTIONS[function]
  assert {name: records.words[at + getattr(offsets(function), name) // WORD] for name in operands} == operands

def test_choices_become_addresses() -> None:
  records = Records(FUNCTIONS)
  at = records.branch(Lanes(0, 0, 0, 0))
  yes, no = records.link(), records.python()
  records.choose(at, yes=yes, no=no)
  records.done()
  place = offsets("branch")
  assert (records.words[at + place.yes // WORD] == records.address + WORD * yes and records.words[at + place.no // WORD]
          == records.address + WORD * no)

def test_an_entry_and_a_link_learn() -> None:
  records = Records(FUNCTIONS)
  records.entry(3)
  link = records.link()
  records.admit(PAIRS - 1, 8, 9)
  assert records.words[link - 2:link].tolist() == [8, 9]
  records.join(link, 77)
  assert records.words[link:].tolist() == [FUNCTIONS["jump"], FUNCTIONS["jump"], WORD * (HEAD + 1), 77]
