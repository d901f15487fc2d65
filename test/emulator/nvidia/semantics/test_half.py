"""Packed 16-bit instructions against fractions, which are rounded once: both halves, signs, the same half twice,
immediates; refusals."""
from __future__ import annotations
import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from nvidia.warps import after
from tinyhw.arithmetic import from_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.warp.state import LANES

CODES = {dtypes.float16: (0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0x3bff, 0xbc01, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
                          0x7e00, 0x1400, 0x0801),
         dtypes.bfloat16: (0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0x3f7f, 0xbf81, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
                           0x7fc0, 0x2000, 0x1f81)}
# bits of a mantissa, the smallest number's exponent, infinity
SHAPES = {dtypes.float16: (10, -24, 65536), dtypes.bfloat16: (7, -133, 1 << 128)}
Numbers = tuple[float, float, float]

def decoded(code: int, dtype: DType) -> float: return float(from_bytes(code.to_bytes(2, "little"), dtype))

def nearest(value: Fraction, dtype: DType) -> float:
  """Round a fraction to the type, to even."""
  bits, least, beyond = SHAPES[dtype]
  exponent = least
  while abs(value) >= Fraction(2) ** (exponent + bits + 1): exponent += 1
  whole, rest = divmod(abs(value) / Fraction(2) ** exponent, 1)
  whole += rest > Fraction(1, 2) or rest == Fraction(1, 2) and whole % 2
  found = whole * Fraction(2) ** exponent
  return math.copysign(math.inf if found >= beyond else float(found), value)

def rounded(a: float, b: float, c: float, dtype: DType) -> float:
  """Return a * b + c rounded once."""
  loose = a * b + c   # where that is no number, or zero, it is right
  if not all(map(math.isfinite, (a, b, c))): return loose
  exact = Fraction(a) * Fraction(b) + Fraction(c)
  return nearest(exact, dtype) if exact else loose

def words(seed: int, dtype: DType) -> list[int]:
  rng = random.Random(seed)
  def half() -> int: return rng.choice((rng.choice(CODES[dtype]), rng.getrandbits(16), rng.getrandbits(8)))
  return [half() | half() << 16 for _ in range(LANES)]

def same(a: float, b: float) -> bool: return a != a and b != b or a == b and math.copysign(1, a) == math.copysign(1, b)

KINDS = ((dtypes.float16, "", "sm_80"), (dtypes.float16, "", "sm_90"), (dtypes.bfloat16, ".BF16_V2", "sm_90"))

def check(line: str, semantics: Callable[[Numbers, DType], float], dtype: DType, arch: str, low: str = "000",
          high: str = "111") -> None:
  """Check a line. low, high: for each of R1, R2, R3 the half that gives the low and the high half of the result."""
  for seed in range(6):
    sources = [words(10 * seed + k, dtype) for k in range(3)]
    results = after([line], arch, registers=dict(enumerate(sources, 1))).registers[0]
    for lane, result in enumerate(results):
      for place, halves in ((0, low), (16, high)):
        a, b, c = (decoded(s[lane] >> 16 * int(half) & 0xffff, dtype) for s, half in zip(sources, halves))
        found, expected = decoded(result >> place & 0xffff, dtype), semantics((a, b, c), dtype)
        assert same(found, expected), f"{line}: {found!r}, not {expected!r}, of {(a, b, c)}"

@pytest.mark.slow
@pytest.mark.parametrize("dtype, kind, arch", KINDS)
def test_sums_and_products_are_rounded_once(dtype: DType, kind: str, arch: str) -> None:
  check(f"HADD2{kind} R0, R1, -R2", lambda x, t: rounded(x[0], 1.0, -x[1], t), dtype, arch)
  check(f"HMUL2{kind} R0, |R1|, R2", lambda x, t: abs(x[0]) * x[1] and rounded(abs(x[0]), x[1], 0.0, t), dtype, arch)
  check(f"HFMA2{kind} R0, -R1, R2, R3", lambda x, t: rounded(-x[0], x[1], x[2], t), dtype, arch)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ("sm_80", "sm_89"))
def test_bfloat16_before_sm_90_has_the_fused_one_only(arch: str) -> None:
  check("HFMA2.BF16_V2 R0, R1, 1, 1, -R3", lambda x, t: rounded(x[0], 1.0, -x[2], t), dtypes.bfloat16, arch)

@pytest.mark.slow
def test_halves_and_immediates() -> None:
  half = dtypes.float16
  check("HADD2 R0, R1.H0_H0, R2.H1_H1", lambda x, t: rounded(x[0], 1.0, x[1], t), half, "sm_90", "010", "010")
  check("HADD2 R0, -|R1|, R2.H0_H0", lambda x, t: rounded(-abs(x[0]), 1.0, x[1], t), half, "sm_90", "000", "100")
  check("HMUL2 R0, R1.H1_H1, R2", lambda x, t: x[0] * x[1] and rounded(x[0], x[1], 0.0, t), half, "sm_90", "100", "110")
  found = after(["HADD2 R0, R1, 1, -2"], "sm_90", registers={1: [0x3c003c00] * LANES}).registers[0]
  assert set(found) == {0x4000bc00}, "the first constant is that of the upper half"

@pytest.mark.slow
@pytest.mark.parametrize("dtype, kind, arch", KINDS)
def test_the_smaller_or_larger_one(dtype: DType, kind: str, arch: str) -> None:
  def one(keeps: bool, smaller: bool) -> Callable[[Numbers, DType], float]:
    def semantics(x: Numbers, t: DType) -> float:
      numbers = sorted([v for v in x[:2] if v == v], key=lambda v: (v, math.copysign(1, v)))
      return math.nan if not numbers or keeps and len(numbers) < 2 else numbers[0 if smaller else -1]
    return semantics
  for keeps in (False, True):
    for smaller in (False, True):
      check(f"HMNMX2{kind}{'.NAN' * keeps} R0, R1, R2, {'' if smaller else '!'}PT", one(keeps, smaller), dtype, arch)

@pytest.mark.parametrize("dtype, kind, arch", KINDS)
@pytest.mark.parametrize("name, test", [("LT", lambda a, b: a < b), ("NEU", lambda a, b: a != b),
                                        ("GEU", lambda a, b: not a < b),
                                        ("EQ", lambda a, b: a == b)])
def test_comparisons_make_masks(dtype: DType, kind: str, arch: str, name: str,
                                test: Callable[[float, float], bool]) -> None:
  a, b = words(1, dtype), words(2, dtype)
  for flag, yes in (("", 0xffff), (".BF", 0x3f80 if kind else 0x3c00)):
    found = after([f"HSET2{kind}{flag}.{name}.AND R0, R1, R2, PT"], arch, registers={1: a, 2: b}).registers[0]
    for x, y, word in zip(a, b, found):
      expected = [yes if test(*(decoded(v >> place & 0xffff, dtype) for v in (x, y))) else 0 for place in (0, 16)]
      assert word == expected[0] | expected[1] << 16, hex(word)

@pytest.mark.parametrize("dtype, kind, arch", KINDS)
@pytest.mark.parametrize("operation, combine", [("AND", lambda a, b: a and b), ("OR", lambda a, b: a or b),
                                                ("XOR", lambda a, b: a != b)])
@pytest.mark.parametrize("name, test", [("LT", lambda a, b: a < b), ("NEU", lambda a, b: a != b),
                                        ("NAN", lambda a, b: a != a or b != b)])
def test_comparisons_make_truths(dtype: DType, kind: str, arch: str, name: str, test: Callable[[float, float], bool],
                                 operation: str,
                                 combine: Callable[[bool, bool], bool]) -> None:
  """Both halves, each combined with another predicate; low halves only; the conjunction of both and its negation."""
  a, b, other = words(3, dtype), words(4, dtype), 0x0f0f00ff
  def truths(line: str, places: tuple[int, int], both: bool = False) -> None:
    warp = after([line.replace("NAME", f"{kind}.{name}", 1)], arch, registers={1: a, 2: b},
                 predicates={0: 0, 1: 0, 2: other})
    for lane, (x, y) in enumerate(zip(a, b)):
      found = [test(*(decoded(v >> place & 0xffff, dtype) for v in (x, y))) for place in places]
      if both: found = [all(found), not all(found)]
      else: found = [combine(truth, bool(~other >> lane & 1)) for truth in found]
      assert [bool(warp.predicates[k] >> lane & 1) for k in (0, 1)] == found, lane
  truths(f"HSETP2NAME.{operation} P0, P1, R1, R2, !P2", (0, 16))
  truths(f"HSETP2NAME.{operation} P0, P1, R1.H1_H1, R2.H1_H1, !P2", (16, 16))
  truths("HSETP2NAME.H_AND.AND P0, P1, R1, R2, PT", (0, 16), both=True)

@pytest.mark.parametrize("line", ("HADD2.SAT R0, R1, R2", "HADD2.FTZ R0, R1, R2", "HMUL2.FMZ R0, R1, R2",
                                  "HFMA2.RELU R0, R1, R2, R3",
                                  "HMNMX2.XORSIGN R0, R1, R2, PT", "HSETP2.LT.FTZ.AND P0, PT, R1, R2, PT",
                                  "HSETP2.LT.H_AND.AND P0, P1, R1, R2, P2"))
def test_what_is_refused(line: str) -> None:
  with pytest.raises(UnknownInstruction, match="is not supported yet"): after([line], "sm_90")
