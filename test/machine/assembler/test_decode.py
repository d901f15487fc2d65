"""The order of rows for a word, and words that are no instruction, for AArch64's table."""
from __future__ import annotations
import struct

import pytest

from tinyhw.errors import DecodeError
from tinyhw.isa.arm64.table.table import TABLE
from tinyhw.machine.assembler.decode import decode, index

def test_rows_of_one_word_have_an_order() -> None:
  """Fixed bits never decrease, and each row is found by its own value."""
  counts = [bin(mask).count("1") for mask, _ in index(TABLE)]
  assert counts == sorted(counts, reverse=True)
  assert all(row.isa.value == value for _, rows in index(TABLE) for value, several in rows.items() for row in several)

@pytest.mark.parametrize("code,reason", [
  (b"\x00\x00", "an instruction has 4 bytes, 2 are left"),
  (b"\xff\xff\xff\xff", "0xffffffff is no instruction of the table"),
  (struct.pack("<I", 0xf8408400), "0xf8408400 is no instruction of the table")])   # ldr x0, [x0], #8
def test_bytes_that_are_no_instruction(code: bytes, reason: str) -> None:
  with pytest.raises(DecodeError) as caught: decode(TABLE, code)
  assert caught.value.message == reason
