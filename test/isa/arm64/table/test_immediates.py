"""Numbers whose bits are a function of the value."""
from __future__ import annotations
import random

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.arm64.table.immediates import (
  BitField, ByteMask, TwoFloats, DupMask, Float, Mask, Moved, Shifted, SystemRegister, by_movz, float_of, mask_bits,
  mask_of)
from tinyhw.machine.assembler.reader import TextReader, TextMismatch, tokens

def masks(width: int) -> dict[int, int]:
  """Every mask of a width, made as the manual says: ones, rotated, repeated."""
  found = {}
  for size in (2, 4, 8, 16, 32, 64):
    for count in range(1, size):
      for rotation in range(size):
        one = (1 << count) - 1
        one = (one >> rotation | one << size - rotation) & (1 << size) - 1
        if size <= width: found[sum(one << k for k in range(0, width, size))] = size
  return found

@pytest.mark.parametrize("width,count", [(64, 5334), (32, 1302)])
def test_all_masks(width: int, count: int) -> None:
  """The counts are those of the manual's encoding."""
  every = masks(width)
  assert len(every) == count
  for value in every:
    code = mask_bits(value, width)
    assert code is not None
    element = mask_of(code)
    assert element is not None and sum(element[1] << k for k in range(0, width, element[0])) == value

def test_numbers_that_are_no_masks() -> None:
  every, rng = masks(64), random.Random(1)
  for value in (0, (1 << 64) - 1, 5, *(rng.getrandbits(64) for _ in range(2000))):
    assert (mask_bits(value, 64) is not None) == (value in every)

def test_the_256_floats() -> None:
  values = {float_of(code) for code in range(256)}
  assert len(values) == 256 and max(values) == 31.0 and min(abs(v) for v in values) == 0.125

def test_moved_numbers_belong_to_one_of_three_instructions() -> None:
  rng = random.Random(2)
  for bits in (32, 64):
    z, n, m = (Moved("ki", 16 + bits // 32, bits, how) for how in ("z", "n", "mask"))
    for _ in range(2000):
      value = rng.choice((rng.getrandbits(16) << 16 * rng.randrange(bits // 16), rng.getrandbits(bits),
                          rng.getrandbits(8)))
      value = (value ^ rng.choice((0, (1 << bits) - 1))) & (1 << bits) - 1
      takers = [hole for hole in (z, n, m) if hole.found(value) is not None]
      assert len(takers) <= 1
      if by_movz(value, bits) is not None: assert takers == [z]
      for hole in takers: assert hole.operands(hole.code([value])) == [value]

@pytest.mark.parametrize("hole,text,values,shown", [
  (Shifted("hi", 13, 12), "4096", [1, 12], "1, lsl #12"), (Shifted("hi", 13, 12), "#7, lsl #0", [7, 0], "7"),
  (Shifted("hi", 9, 8, signed=True), "-128, lsl #8", [-128, 8], "-32768"), (Shifted("hi", 9, 8), "0, lsl #8", [0, 8],
                                                                            "0, lsl #8"),
  (BitField("rs", 12, "left"), "3", [3], "3"), (BitField("rs", 12, "insert"), "4, #8", [4, 8], "4, #8"),
  (BitField("rs", 10, "extract"), "31, #1", [31, 1], "31, #1"), (Float("i", 8), "-0.3125", [-0.3125], "-0.31250000"),
  (TwoFloats("i", 1, "0.5", "1.0"), "1", [1], "1.0"), (ByteMask("i", 8), "0xff00", [0xff00], "0x0000000000ff00"),
  (SystemRegister("i", 15), "S3_3_C0_C0_1", [0x5801], "CTR_EL0"), (SystemRegister("i", 15), "s2_7_c15_c15_7", [0x3fff],
                                                                   "S2_7_C15_C15_7"),
  (Mask("rs", 12, 32), "0xff", [0xff], "0xff"), (Mask("krs", 13, 64, exact=True), "0xffff0000ffff0000",
                                                 [0xffff0000ffff0000], "0xffff0000ffff0000")])
def test_text(hole: Shifted, text: str, values: list[object], shown: str) -> None:
  assert hole.read(TextReader(tokens(text))) == values and hole.show(values) == shown
  if not isinstance(hole, Mask): assert hole.operands(hole.code(values)) == values

@pytest.mark.parametrize("hole,text,reason", [
  (Shifted("hi", 13, 12), "4097", "or a multiple of 4096 in 0..16773120"), (Shifted("hi", 13, 12), "1, lsl #4",
                                                                            "lsl #0 or lsl #12"),
  (BitField("rs", 12, "extract"), "60, #8", "together at most 64"), (BitField("rs", 12, "left"), "64", "0..63"),
  (Float("i", 8), "0.1", "0.0 comes from movi"), (TwoFloats("i", 1, "0.5", "1.0"), "2.0", "0.5 or 1.0"), (ByteMask("i",
      8), "0x10", "0 or 0xff"),
  (SystemRegister("i", 15), "nosuch", "FPCR or CTR_EL0"), (Moved("ki", 18, 64, "z"), "0x123456789",
                                                           "use movz and movk"),
  (Mask("rs", 12, 32), "0x1ff000000", "a mask of 32 bits")])
def test_refusals(hole: Shifted, text: str, reason: str) -> None:
  with pytest.raises(TextMismatch, match=reason): hole.read(TextReader(tokens(text)))
  if isinstance(hole, BitField): values: list[object] = [60, 9][:len(hole.names)] if hole.how == "extract" else [64]
  else: values = [3 if isinstance(hole, TwoFloats) else 0x12345, 3][:len(hole.names)]
  with pytest.raises(EncodeError, match="wants"): hole.code(values)

def test_short_masks_belong_to_dup() -> None:
  hole = DupMask("krs", 13, 32, exact=True)
  assert [hole.is_short(v) for v in (0xff, 0xffffff80, 0xff00, 0x7f7f7f7f, 0xff00ff00)] == [False, True, False, True,
                                                                                            True]
