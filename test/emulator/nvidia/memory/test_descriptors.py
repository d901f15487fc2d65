"""Descriptors of matrices in shared memory, against tiles that are drawn line by line
(test/support/nvidia/products.py).
"""
from __future__ import annotations
import pytest

from nvidia.products import tile
from tinyhw.emulator.errors import OutOfBounds, UnknownInstruction
from tinyhw.emulator.nvidia.memory.descriptors import Descriptor, descriptor, k_major, mn_major

def word(words: tuple[int, int]) -> int: return words[0] | words[1] << 32

def test_fields() -> None:
  """A line of CUTLASS's: 128 bytes swizzled, groups of 8 rows at a distance of 1024 bytes, at 0x4400."""
  assert descriptor(0x4000_0040_0001_0440) == Descriptor(0x4400, 16, 1024, 128)

@pytest.mark.parametrize("line", (16, 32, 64, 128))
def test_lines_of_steps(line: int) -> None:
  drawn = tile(2048, line, False, 24)
  for row, pieces in enumerate(k_major(descriptor(word(drawn.words)), 24)):
    assert pieces == [drawn.offset(row, step) for step in (0, 8)]

@pytest.mark.parametrize("line", (16, 32, 64, 128))
def test_lines_of_rows(line: int) -> None:
  drawn = tile(2048, line, True, 64)
  for step, pieces in enumerate(mn_major(descriptor(word(drawn.words)), 8, 16)):
    assert pieces == [drawn.offset(row, step) for row in range(0, 64, 8)]

def test_the_next_steps_are_behind_in_the_line() -> None:
  drawn = tile(1024, 128, False, 8)
  assert k_major(descriptor(word(drawn.words) + 2), 8) == [[drawn.offset(row, step) for step in (16, 24)]
                                                           for row in range(8)]

def test_what_is_refused() -> None:
  with pytest.raises(UnknownInstruction, match="bits 0x4000 have no meaning"): descriptor(1 << 14)
  with pytest.raises(UnknownInstruction, match="base offset"): descriptor(1 << 49)
  for line in (32, 64, 128):
    with pytest.raises(OutOfBounds, match=f"align tiles to {8 * line} bytes"):
      descriptor(word(tile(4 * line, line, False, 8).words))
  with pytest.raises(OutOfBounds, match="its 32 bytes end after it"):
    k_major(descriptor(word(tile(1024, 64, False, 8).words) + 3), 8)
