"""Fixed bits, fields and operands of a row."""
import pytest

from tinyhw.machine.assembler.form import WordForm, pieces_of
from tinyhw.isa.arm64.table.table import TABLE
from tinyhw.isa.arm64.table.template import NOTATION
from tinyhw.machine.assembler.template import template_of

def test_a_row() -> None:
  form: WordForm = next(row.isa for row in TABLE.rows("cbz") if row.isa.text.startswith("Xd"))
  assert (form.value, form.mask, form.block, form.count) == (0xb4000000, 0xff000000, 1, 2)
  assert form.pieces == (((0, 31, 0),), ((0, (1 << 19) - 1, 5),))

def test_fields_that_are_not_contiguous() -> None:
  assert pieces_of([11, 21, 20]) == ((2, 1, 11), (0, 3, 20))
  assert pieces_of([]) == ()

def test_every_field_is_an_operand() -> None:
  with pytest.raises(AssertionError, match="no operand has the fields i"):
    WordForm("bad", "Xd", "i" * 27 + "d" * 5, {"i": list(range(31, 4, -1)), "d": [4, 3, 2, 1, 0]}, template_of("Xd",
        {"d": 5}, NOTATION), ())
