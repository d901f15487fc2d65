"""Accesses are proven to stay inside of their buffers, or not. A proof must hold for every value of the ranges."""
import random
from itertools import product

import pytest

from generators.program_builder import Builder, gather, i32, pad
from tinyhw.dtype import dtypes
from tinyhw.errors import VerifyError
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.matrix import MatrixRows
from tinyhw.uop.ops import UOp
from tinyhw.uop.verify import inbounds
from tinyhw.uop.verify.inbounds import MOST_POINTS, bounds_under, conditions, implied, lane_of, linear, outside
from tinyhw.uop.verify.verify import verify

f32 = dtypes.float32
i, j, k, l, many = [UOp.range(n, at) for at, n in enumerate((8, 6, 3, 3, MOST_POINTS))]
x = UOp.param(1, f32, 48)

p, q = i * 5 + j, i * 8 + j   # numbers of pixels in rows of 6; neither index is a row or a column

def window(row: UOp, column: UOp, low: int = 1) -> UOp:
  """The condition that a neighbor of a pixel is inside of an image of 8 rows of 6."""
  return (row + k >= low) & (row + k < 9) & (column + l >= 1) & (column + l < 7)

n = UOp.variable("n", 1, 6)
below, below_n = UOp.range(n, 6), UOp.range(n + 3, 5)

def load(index: UOp, gate: UOp | None = None, lanes: int = 1) -> UOp:
  return x.index(index).load(gate, 0.0, f32.vec(lanes))

@pytest.mark.parametrize("access", [
  load(i * 6 + j), load(i * 6 + j + 40, i * 6 + j < 8), load(i + 44, i < 4), load(i - 3, i >= 3),
  load(i - 3, (i < 3).logical_not()),
  load(i - 3, UOp.const(dtypes.weakint, 2) < i), load(i - 3, (i < 3).ne(True)), load(47 - i * 7, i * 7 < 48),
  load((i + k - 1) * 6 + j + l - 1, (i + k >= 1) & (i + k < 9) & (j + l >= 1) & (j + l < 7)),
  load((i - 1) // 2, i >= 1), load(i * 8, i < 6), load((i + 60) % 49, (i + 60) % 49 < 48), load(i * 100, i.eq(0)),
  load(i * 100, i.ne(0).logical_not()),
  load((i + j - 3) // 2 * 10, (i + j >= 3) & (i + j < 13)), load((i + j) % 8 * 9, i + j < 6),
  load((i + j + 6) // 8 * 8 - 8, i + j >= 2),
  load(i * 6, None, 6), load(i * 8, i < 6, 8), load(i - 1, ((i < 1) | (j < 2)).logical_not()), load(i * 999, i < 0),
  load(48 - (k + (j + 1) // 3) * 16, (j >= 2) & (j < 5) & (k + (j + 1) // 3 >= 1) & (many < 3)),
  load(many // (n * 8) * 24 + k, many < n * 16), load((many + 5) // (n * 8), many < n * 8 - 5),
  load(below_n - n + 45, n < below_n + 1),
  load((n * (n + 2) * i + (n + 2) * below + many) // (n * (n + 2)) * 6, many < n + 2),
  load(n * k * 2 + many + 12, many < n * 2), load(47 - n * k * 2 - many, many < n * 2),
  load(i - 1, 0 < i % 2), load(i + 41, i % 2 < 1), load(k * 2 - l, (l < k + 1) & (k < l + 3)),
], ids=lambda u: u.render(False))
def test_proven(access: UOp) -> None: assert outside(access, 48) is None

@pytest.mark.parametrize("access", [
  load(p + k * 6 + l - 7, window(p // 6, p % 6)),
  load((q + 9) % 48 + k * 6 + l - 7, window((q + 9) // 6 % 8, (q + 9) % 6)),
  load(i % 6 * 8 + j + k * 6 + l - 7, window(q // 6 % 8, q % 6)),
  load((p + 14) % 48 + k * 6 + l - 7, window(((p + 2) // 6 + 2) % 8, (p + 2) % 6)),
  load((i * 2 + j + 1 - k * 2) // 2 + l, (i * 2 + j >= k * 2 - 1)), load(i + (j + 1 - k) // 2, (k < i * 2 + j + 2)),
  load((q + many * 32) % 32 + k - 1, 0 < j % 4 + k),
  load((q + many % 32 + 3) % 32 + k - 1, 0 < (many % 16 + j + 3) % 4 + k),
], ids=lambda u: u.render(False))
def test_proven_without_a_look_at_every_point(access: UOp, monkeypatch: pytest.MonkeyPatch) -> None:
  """Windows of images, and quotients next to other terms, of any size."""
  monkeypatch.setattr(inbounds, "MOST_POINTS", 0)
  assert outside(access, 48) is None

@pytest.mark.parametrize(("access", "message"), [
  (load(i * 6 + j + 1), "is in 1..48, outside of 0..47"), (load(i - 1), "is in -1..6"),
  (load(i * 8, i < 7, 1), "is in 0..48"),
  (load(i * 6, None, 7), "is in 0..48"), (load(i - 3, i < 3), "-3..-1"), (load(i * 7, j < 3), "0..49"),
  (load((i + j - 3) // 2 * 10, i + j < 13), "outside"), (load((i + j) % 8 * 9, i + j < 9), "outside"),
  (load((i + k - 1) * 6 + j + l - 1, (i + k >= 1) & (i + k < 9) & (j + l >= 1)), "outside"),
  (load(i - 1, (i < 1) | (j < 2)), "outside"),
  (load(p + k * 6 + l - 7, window(p // 6, p % 6, 0)), "outside"),
  (load((q + 9) % 48 + k * 6 + l - 7, window((q + 8) // 6 % 8, (q + 9) % 6)), "outside"),
  (load(i % 6 * 8 + j + k * 6 + l - 7, window(q // 6 % 8, q % 6, 0)), "outside"),
  (load(i + (j + 1 - k) // 2, (k < i * 2 + j + 4)), "outside"),
  (load((p + 14) % 48 + k * 6 + l - 7, window(((p + 2) // 6 + 1) % 8, (p + 2) % 6)), "outside"),
  (load(j // 2 + k - 3, j + k * 3 >= 6), "outside"),   # 3 is no multiple of 2
  # j * 2 may be 8 and more
  (load(i % 6 * 8 + j * 2 + k * 6 + l - 7, window((q + j) // 6 % 8, (q + j) % 6)), "outside"),
  (load((q + many * 32) % 32 + k - 1, 0 < (j + 1) % 4 + k), "outside"),
  (load((q + many * 2) % 32 + k - 1, 0 < j % 4 + k), "outside"),
  (load(i % 5 * 8 + j + k * 6 + l - 7, window(q // 6 % 8, q % 6)), "outside"),
])
def test_not_proven(access: UOp, message: str) -> None: assert message in str(outside(access, 48))

def test_rows_of_a_matrix() -> None:
  """The last element of the last row counts."""
  place = UOp.param(0, dtypes.uint32, 48).index(UOp.const(dtypes.int32, 3))
  def rows(stride: int) -> UOp: return UOp(Ops.LOAD, dtypes.uint32.vec(8), (place,), MatrixRows(4, stride))
  assert outside(rows(14), 47) is None and "index 3 is in 3..46, outside of 0..45" in str(outside(rows(14), 46))

def test_lanes_and_gathers() -> None:
  verify(pad())
  verify(gather())
  at = UOp(Ops.BROADCAST, i32.vec(4), (i.cast(i32),)) + UOp(Ops.VECTORIZE, i32.vec(4),
                                                            tuple(UOp.const(i32, n) for n in range(4)))
  access = UOp.param(1, f32, 9).index(i).load(at < at.const_like(9), 0.0, f32.vec(4))
  assert outside(access, 9) is None and outside(access, 8) is not None
  assert lane_of(at, 2).render(False) == "(cast(r0, int32)+2)"

def test_a_lane_of_an_operation_is_the_operation_on_the_lane() -> None:
  """The index takes its lane before a cast, the gate after it. Both refer to the same number."""
  loaded = UOp(Ops.LOAD, dtypes.uint8.vec(4), (UOp.param(1, dtypes.uint8, 8).index(0),))
  before = UOp(Ops.GEP, dtypes.uint8, (loaded,), 2)
  after = UOp(Ops.GEP, dtypes.int32, (UOp(Ops.CAST, dtypes.int32.vec(4), (loaded,)),), 2).cast(dtypes.weakint)
  nested = UOp.param(2, dtypes.int16, 256)
  index, gate = (nested.index(i).load().cast(dtypes.weakint) for i in (before.cast(dtypes.weakint), after))
  place = UOp.param(0, dtypes.float32, 48).index(index)
  assert outside(place.load((gate > -1) & (gate < 48)), 48) is None
  assert outside(place.load((gate > -1) & (gate < 49)), 48) is not None

def test_conditions_of_enclosing_brackets_count() -> None:
  b = Builder("when")
  out = b.param(0, i32, 4)
  with b.loop(8) as r, b.when(b.add(r < 4)): b.store(out, r, r)
  verify(b.program())
  b = Builder("never")
  out = b.param(0, i32, 4)
  with b.loop(8) as r, b.when(b.add(r < 5)): b.store(out, r, r)
  with pytest.raises(VerifyError, match="index r0 is in 0..4 where"): verify(b.program())

def test_sums_that_may_wrap_are_not_taken_apart() -> None:
  n = UOp.variable("n", 0, 2**31 - 1, i32)
  assert linear(n + 1)[0] == {n + 1: 1} and linear(n.cast(dtypes.int64) + 1) == ({n: 1}, 1)
  assert outside(x.index(n + 1).load(n + 1 < 48, 0.0), 48) is not None  # n + 1 may be the smallest int32

def test_what_is_proven_holds_everywhere() -> None:
  """Random sums and conditions, compared with all values."""
  r, ranges = random.Random(0), (UOp.range(5, 0), UOp.range(4, 1), UOp.range(3, 2))
  def expression() -> UOp:
    total = UOp.const(dtypes.weakint, r.randint(-6, 6))
    for v in r.sample(ranges, r.randint(1, 3)): total = total + v * r.choice([-3, -2, -1, 1, 2, 3])
    return total // r.randint(1, 3) if r.random() < 0.2 else total
  proven = 0
  for _ in range(100):
    index, gate = expression(), None
    for _ in range(r.randint(1, 3)):
      clause = expression() < expression() if r.random() < 0.5 else expression() >= r.randint(-4, 4)
      gate = clause if gate is None else gate & clause
    low, high = bounds_under(index, conditions(gate))
    tight = (int(index.vmin), int(index.vmax)) != (low, high)
    proven += tight
    at = dict(zip(ranges, ranges))
    for point in product(range(5), range(4), range(3)):
      at = {v: v.const_like(n) for v, n in zip(ranges, point)}
      if evaluate(gate.substitute(at)).values[0]: assert low <= evaluate(index.substitute(at)).values[0] <= high
  assert proven > 30

def test_what_is_proven_of_remainders_holds_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
  """Random remainders next to others, compared with all values."""
  monkeypatch.setattr(inbounds, "MOST_POINTS", 0)
  r, ranges = random.Random(0), (UOp.range(9, 0), UOp.range(4, 1), UOp.range(3, 2))
  def total() -> UOp:
    return sum((v * r.choice([1, 1, 2, 4, 8, -1]) for v in ranges), UOp.const(dtypes.weakint, r.randint(-3, 3)))
  proven = 0
  for _ in range(300):
    dividend, divisor = total(), r.choice([2, 4, 8])
    shift = r.choice([0, 0, 0, 1]) + ranges[0] * r.choice([0, 4, 8])   # a multiple of the divisor, or none
    rest = (dividend + shift) % divisor
    gate = 0 < rest + ranges[2]
    index = dividend % (divisor * r.choice([2, 3, 4])) + ranges[2] - 1
    if outside(load(index, gate), 48) is not None: continue
    proven += 1
    for point in product(range(9), range(4), range(3)):
      at = {v: v.const_like(n) for v, n in zip(ranges, point)}
      if evaluate(gate.substitute(at)).values[0]: assert evaluate(index.substitute(at)).values[0] >= 0
  assert 60 < proven < 250

def test_conditions_imply_others_without_quotients_and_maxima() -> None:
  a, b = UOp.range(30, 21), UOp.range(40, 22)
  most = UOp(Ops.MAX, dtypes.weakint, (b - 3, UOp.const(dtypes.weakint, 4)))
  def upper(gate: UOp, of: UOp) -> int:
    """The largest value of a sum that follows."""
    terms, constant = linear(of)
    return min(high - constant for part, _, high in implied(conditions(gate)) if part == terms)
  assert upper(a < b // 8, a * 8 - b) == -8, "8 * a + 8 <= b"
  assert upper(b // 8 < a, b - a * 8) == -1, "b < 8 * a"
  assert upper(a < b % 8, a - b + (b // 8) * 8) == -1
  assert upper(most < a, b - a) == 2, "both operands are below it"
  assert upper((most < a * 3 + 5).logical_not(), a * 3 - b) == -8, "3 * a + 5 is above 4, so b - 3 is the maximum"

def test_what_is_implied_holds_everywhere() -> None:
  rng = random.Random(7)
  a, b = UOp.range(9, 21), UOp.range(13, 22)
  def term() -> UOp:
    x = rng.choice((a, b, a + b, a * 2 - b, b - a * 3)) + rng.randint(-3, 3)
    return rng.choice((x, x // 4, x % 4, UOp(Ops.MAX, dtypes.weakint, (x, b - 5)),
                       UOp(Ops.MAX, dtypes.weakint, (x, UOp.const(dtypes.weakint, 2)))))
  def number(u: UOp, point: dict[UOp, UOp]) -> int: return int(u.substitute(point).simplify().arg)
  found = 0
  for _ in range(60):
    gate = term() < term()
    given = conditions(gate)
    more = implied(given)[len(given):]
    found += len(more)
    for p, q in product(range(9), range(13)) if more else ():
      point = {a: a.const_like(p), b: b.const_like(q)}
      if not number(gate, point): continue
      for part, low, high in more: assert low <= sum(number(t, point) * f for t, f in part.items()) <= high, gate
  assert found > 30

def test_ranges_whose_ends_are_expressions_are_numbers_case_by_case(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(inbounds, "MOST_POINTS", 0)
  size, six = n + 18, UOp.const(dtypes.weakint, 6)
  tile, rest, column = UOp.range((size + 5) // 6, 31), UOp.range(6, 32), UOp.range(size, 33)
  left = (size - tile * 6).minimum(six)                       # rows of a tile
  index = size * (tile * 6 + left // 6 * 6 + rest) + column   # one of the rows that no whole tile has
  assert outside(load(index, rest < left % 6), 23 * 23) is None   # 24 rows have no rest
  assert outside(load(index, rest < left % 6), 23 * 23 - 1) is not None
