"""Float instructions on corner cases, against the definition of arithmetic; conversions."""
from __future__ import annotations
import math
import struct
from collections.abc import Callable

import pytest

from nvidia.warps import after, words
from tinyhw import arithmetic
from tinyhw.dtype import DType, dtypes
from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.warp.numbers import doubles_of, floats_of, longs_of, longs_of_doubles, words_of
from tinyhw.emulator.nvidia.warp.state import LANES

CORNERS = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e-40, -3e-39, 3e38, 16777217.0, 2147483648.0,
           -2147483649.0, 1e19, 0.1, 7.0]
F = (CORNERS * 2)[:LANES]
G = F[5:] + F[:5]
H = F[11:] + F[:11]

def same(a: float, b: float) -> bool: return a != a and b != b or a == b and math.copysign(1, a) == math.copysign(1, b)

def pair(numbers: list[float]) -> tuple[list[int], list[int]]:
  longs = longs_of_doubles(numbers)
  return [x & 0xffffffff for x in longs], [x >> 32 for x in longs]

@pytest.mark.parametrize("line, semantics", [
  ("FADD R3, R0, -R1", lambda a, b, c: arithmetic.round_float32(a - b)),
  ("FMUL R3, R0, |R1|", lambda a, b, c: arithmetic.round_float32(a * abs(b))),
  ("FFMA R3, -R0, R1, R2", lambda a, b, c: arithmetic.fused_float32(-a, b, c)),
  ("FRND.TRUNC R3, R0", lambda a, b, c: arithmetic.truncate_float(a)),
])
def test_float32(line: str, semantics: Callable[[float, float, float], float]) -> None:
  a, b, c = (floats_of(words_of(x)) for x in (F, G, H))
  found = floats_of(after([line], registers={0: words_of(F), 1: words_of(G), 2: words_of(H)}).registers[3])
  assert all(same(x, semantics(*y)) for x, y in zip(found, zip(a, b, c)))

@pytest.mark.parametrize("smaller", (False, True))
@pytest.mark.parametrize("keeps", (False, True))
def test_the_smaller_or_larger_one(smaller: bool, keeps: bool) -> None:
  """-0 is less than 0. A NaN is kept or dropped."""
  a, b = (floats_of(words_of(x)) for x in (F, G))
  line = f"FMNMX{'.NAN' * keeps} R2, R0, R1, {'' if smaller else '!'}PT"
  found = floats_of(after([line], registers={0: words_of(F), 1: words_of(G)}).registers[2])
  for x, y, result in zip(a, b, found):
    numbers = sorted([v for v in (x, y) if v == v], key=lambda v: (v, math.copysign(1, v)))
    expected = math.nan if not numbers or keeps and len(numbers) < 2 else numbers[0 if smaller else -1]
    assert same(result, expected), (x, y)

@pytest.mark.parametrize("arch", ("sm_80", "sm_90"))
@pytest.mark.parametrize("line, semantics", [
  ("DADD R6, R0, -R2", lambda a, b, c: a - b),
  ("DMUL R6, R0, R2", lambda a, b, c: a * b),
  ("DFMA R6, R0, R2, R4", arithmetic.fused_float64),
  ("DFMA R6, -R0, 0.5, R4", lambda a, b, c: arithmetic.fused_float64(-a, 0.5, c)),
  ("FRND.F64.TRUNC R6, R0", lambda a, b, c: arithmetic.truncate_float(a)),
])
def test_float64(line: str, semantics: Callable[[float, float, float], float], arch: str) -> None:
  given = {k + i: half for k, numbers in ((0, F), (2, G), (4, H)) for i, half in enumerate(pair(numbers))}
  warp = after([line], arch, registers=given)
  assert all(same(x, semantics(*y)) for x, y in zip(doubles_of(longs_of(warp.registers[6], warp.registers[7])),
                                                    zip(F, G, H)))

@pytest.mark.parametrize("word, semantics", [("LT", lambda a, b: a < b), ("NEU", lambda a, b: a != b),
                                             ("NUM", lambda a, b: a == a and b == b),
                                             ("GEU", lambda a, b: not a < b), ("EQ", lambda a, b: a == b)])
def test_comparisons(word: str, semantics: Callable[[float, float], bool]) -> None:
  given = {0: words_of(F), 1: words_of(G),
           **{k + i: half for k, x in ((2, F), (4, G)) for i, half in enumerate(pair(x))}}
  warp = after([f"FSETP.{word}.AND P0, PT, R0, R1, PT", f"DSETP.{word}.AND P1, PT, R2, R4, PT"], registers=given)
  a, b = floats_of(words_of(F)), floats_of(words_of(G))
  assert warp.predicates[0] == sum(1 << k for k, x in enumerate(zip(a, b)) if semantics(*x))
  assert warp.predicates[1] == sum(1 << k for k, x in enumerate(zip(F, G)) if semantics(*x))

def limited(x: float, low: int, high: int) -> int:
  return 0 if x != x else max(low, min(high, int(x))) if math.isfinite(x) else low if x < 0 else high

def test_floats_to_integers() -> None:
  numbers = floats_of(words_of(F))
  low, high = pair(F)
  warp = after(["F2I.TRUNC.NTZ R3, R0", "F2I.U32.TRUNC.NTZ R4, R0", "F2I.S64.TRUNC R6, R0", "F2I.F64.TRUNC R5, R8",
                "F2I.S64.F64.TRUNC R10, R8"],
               registers={0: words_of(F), 8: low, 9: high})
  smallest, largest = -(1 << 63), (1 << 63) - 1
  assert warp.registers[3] == [limited(x, -(1 << 31), (1 << 31) - 1) & 0xffffffff for x in numbers]
  assert warp.registers[4] == [limited(x, 0, (1 << 32) - 1) for x in numbers]
  assert warp.registers[5] == [limited(x, -(1 << 31), (1 << 31) - 1) & 0xffffffff for x in F]
  assert longs_of(warp.registers[6], warp.registers[7]) == [limited(x, smallest, largest) & 2 ** 64 - 1
                                                            for x in numbers]
  assert longs_of(warp.registers[10], warp.registers[11]) == [limited(x, smallest, largest) & 2 ** 64 - 1 for x in F]

def test_integers_to_floats() -> None:
  a, b = words(4), words(5)
  lines = ["I2F R2, R0", "I2F.U32 R3, R0", "I2F.S64 R4, R0", "I2F.F64 R6, R0", "I2F.F64.U32 R8, R0",
           "I2F.F64.S64 R10, R0"]
  warp = after(lines, registers={0: a, 1: b})
  ints, longs = [struct.unpack("<i", struct.pack("<I", x))[0] for x in a], [struct.unpack("<q", struct.pack("<Q", x))[0]
                                                                            for x in longs_of(a, b)]
  assert floats_of(warp.registers[2]) == [arithmetic.int_to_float32(x) for x in ints]
  assert floats_of(warp.registers[3]) == [arithmetic.int_to_float32(x) for x in a]
  assert floats_of(warp.registers[4]) == [arithmetic.int_to_float32(x) for x in longs]
  for k, numbers in ((6, ints), (8, a), (10, longs)):
    assert doubles_of(longs_of(warp.registers[k], warp.registers[k + 1])) == list(map(float, numbers))

def test_between_floats() -> None:
  low, high = pair(F)
  lines = ["F2F.F64.F32 R4, R0", "F2F.F32.F64 R1, R2", "F2FP.F16.F32.PACK_AB R6, R7, R0", "HADD2.F32 R8, -RZ, R6.H0_H0",
           "HADD2.F32 R9, -RZ, R6.H1_H1"]
  warp = after(lines, registers={0: words_of(F), 2: low, 3: high, 7: words_of(G)})
  assert all(map(same, doubles_of(longs_of(warp.registers[4], warp.registers[5])), floats_of(words_of(F))))
  assert all(map(same, floats_of(warp.registers[1]), floats_of(words_of(F))))
  for register, numbers in ((8, F), (9, G)):
    halves = [arithmetic.round_to(dtypes.float16)(x) for x in floats_of(words_of(numbers))]
    assert all(map(same, floats_of(warp.registers[register]), halves))

@pytest.mark.parametrize("word, dtype, largest", [("E4M3", dtypes.fp8e4m3, 448.0), ("E5M2", dtypes.fp8e5m2, 57344.0)])
def test_floats_of_a_byte(word: str, dtype: DType, largest: float) -> None:
  """All codes as halves. Then codes of numbers between theirs, and of larger ones, which become the largest."""
  decode, encode = arithmetic.CODED[dtype]
  for start in range(0, 256, 4 * LANES):
    codes = [start + k for k in range(4 * LANES)]
    quads = [int.from_bytes(bytes(codes[4 * lane:4 * lane + 4]), "little") for lane in range(LANES)]
    lines = [f"F2FP.F16.{word}.UNPACK_B R{2 + k}, R0{'.H1' * k}" for k in range(2)]
    lines += [f"HADD2.F32 R{4 + k}, -RZ, R{2 + k // 2}.H{k % 2}_H{k % 2}" for k in range(4)]
    warp = after(lines, registers={0: quads})
    for k in range(4): assert all(map(same, floats_of(warp.registers[4 + k]), [decode(x) for x in codes[k::4]]))
  numbers = [largest, -largest, math.inf, -math.inf, math.nan, 1e38, -largest * 1.01, largest * 1.03, 0.0, -0.0]
  numbers += [0.013 * 1.7 ** k for k in range(18)]
  given = (numbers * 2)[:LANES]
  lines = [f"F2FP.SATFINITE.{word}.F32.PACK_AB_MERGE_C R2, R1, R0, RZ"]
  found = after(lines, registers={0: words_of(given), 1: words_of(given[::-1])}).registers[2]
  expected = [0x7f if x != x else encode(min(max(x, -largest), largest)) for x in floats_of(words_of(given))]
  assert found == [high << 8 | low for low, high in zip(expected, expected[::-1])]
  for line in (lines[0].replace("SATFINITE.", ""), lines[0].replace("RZ", "R3")):
    with pytest.raises(UnknownInstruction, match="without SATFINITE or with a third source"):
      after([line], registers={0: [0], 1: [0], 3: [0]})
  with pytest.raises(UnknownInstruction, match="for F16 without RELU only"):
    after([f"F2FP.RELU.F16.{word}.UNPACK_B R2, R0"], registers={0: [0]})

def test_rounding_and_flushing_are_refused() -> None:
  for line in ("FADD.FTZ R0, R1, R2", "FMUL.RZ R0, R1, R2", "F2I.FLOOR.NTZ R0, R1", "MUFU.TANH R0, R1",
               "FMUL.D2 R0, R1, R2"):
    with pytest.raises(UnknownInstruction, match="is not supported yet"):
      after([line], registers={1: words(1), 2: words(2)})
