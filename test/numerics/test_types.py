"""Types at their limits, on every engine: integers that wrap, divide and shift; casts; rounding of narrow floats;
accumulation types of sums.

The numbers are Python's own, or follow the formats by hand. docs/numerics.md says the same in words.
"""
from __future__ import annotations
import math
from typing import Any

import numpy as np
import pytest

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.tensor import Tensor

inf, nan = math.inf, math.nan
T = Tensor

def wrap(x: int, dtype: DType) -> int:
  """x as an integer type holds it."""
  low, span = int(dtype.min), 1 << dtype.bitsize
  return (x - low) % span + low

def numbers(dtype: DType) -> list[int]:
  low, high = int(dtype.min), int(dtype.max)
  return sorted({low, low + 1, *(range(-7, 8, 3) if low else range(0, 8, 3)), -1 if low else 1, 0, 2, high - 1, high})

def c_quotient(a: int, b: int) -> int:
  q = abs(a) // abs(b)
  return q if (a < 0) == (b < 0) else -q

@pytest.mark.parametrize("dtype", [d for d in dtypes.ints if d is not dtypes.uint16], ids=lambda d: str(d)[7:])
def test_integers(engine: str, dtype: DType) -> None:
  """All pairs of small, smallest and largest numbers; the smallest by -1 wraps."""
  values = numbers(dtype)
  a, b = [x for x in values for _ in values], values * len(values)
  x, y = T(a, dtype=dtype), T(b, dtype=dtype)
  def expect(f: Any) -> list[int]: return [wrap(f(p, q), dtype) for p, q in zip(a, b)]
  found = {"+": x + y, "-": x - y, "*": x * y, "//": x // y, "%": x % y, "trunc": x.div(y, rounding_mode="trunc"),
           "fmod": x.fmod(y),
           "max": x.maximum(y), "min": x.minimum(y), "&": x & y, "^": x ^ y}
  want = {"+": expect(lambda p, q: p + q), "-": expect(lambda p, q: p - q), "*": expect(lambda p, q: p * q),
          "//": expect(lambda p, q: p // q if q else 0), "%": expect(lambda p, q: p % q if q else 0),
          "trunc": expect(lambda p, q: c_quotient(p, q) if q else 0),
          "fmod": expect(lambda p, q: p - q * c_quotient(p, q) if q else p),
          "max": expect(max), "min": expect(min), "&": expect(lambda p, q: p & q), "^": expect(lambda p, q: p ^ q)}
  found |= {"neg": -x, "abs": x.abs(), "sign": x.sign(), "~": ~x}
  want |= {"neg": expect(lambda p, q: -p), "abs": expect(lambda p, q: abs(p)),
           "sign": expect(lambda p, q: (p > 0) - (p < 0)),
           "~": expect(lambda p, q: ~p)}
  T.realize(*found.values())
  for name, result in found.items(): assert result.dtype is dtype and result.tolist() == want[name], name

@pytest.mark.parametrize("dtype", (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint64), ids=lambda d: str(d)[7:])
def test_shifts(engine: str, dtype: DType) -> None:
  values, bits = numbers(dtype), dtype.bitsize
  for amount in (0, 1, bits - 1, bits, bits + 3):
    count = T([amount] * len(values), dtype=dtype)
    assert (T(values, dtype=dtype) << count).tolist() == [wrap(v << amount, dtype) if amount < bits else 0
                                                          for v in values]
    assert (T(values, dtype=dtype) >> count).tolist() == [v >> amount for v in values]
  if int(dtype.min) < 0:
    assert (T([5, -5], dtype=dtype) >> -1).tolist() == [0, -1] and (T([5, -5], dtype=dtype) << -1).tolist() == [0, 0]

def test_powers_of_integers(engine: str) -> None:
  assert ((T([3, 3, -1, -1, 0, 2], dtype=dtypes.int8) ** T([4, 5, -3, -2, 0, -1], dtype=dtypes.int8)).tolist()
          == [81, -13, -1, 1, 1, 0])
  with pytest.raises(ArgumentError, match="no reciprocals"): T([2]) ** -1

def test_bools(engine: str) -> None:
  a, b = T([True, True, False, False]), T([True, False, True, False])
  assert (a + b).tolist() == [True, True, True, False] and (a * b).tolist() == [True, False, False, False]
  assert (a.sum().tolist() == 2 and a.mean().tolist() == 0.5 and a.max().tolist() is True
          and (a / b).tolist()[:2] == [1.0, inf])
  assert (a % T([True] * 4)).tolist() == a.fmod(T([True] * 4)).tolist() == [0, 0, 0, 0]
  assert a.cast(dtypes.int8).tolist() == [1, 1, 0, 0] and (-a).tolist() == [False, False, True, True]
  with pytest.raises(DTypeError, match="cannot subtract"): a - b

FLOATS = [0.0, -0.0, 1.9, -1.9, -1.0, 127.5, 128.0, 255.9, 256.0, -129.0, 65536.0, 2147483520.0, 3e9, -3e9, 5e9, 1e10,
          1e19, 1.5e19, 1e30,
          inf, -inf, nan]

def as_integer(x: float, dtype: DType) -> int:
  """Convert through int32 or int64, whose smallest number stands for values outside of its range. uint64 has its own
  upper half."""
  if dtype is dtypes.uint64 and 2.0 ** 63 <= x < 2.0 ** 64: return int(x)
  bits = 63 if dtype in (dtypes.uint32, dtypes.int64, dtypes.uint64) else 31
  inside = math.isfinite(x) and -(1 << bits) <= int(x) < 1 << bits
  return wrap(int(x) if inside else -(1 << bits), dtype)

@pytest.mark.parametrize("source", (dtypes.float32, dtypes.float64), ids=("float32", "float64"))
def test_floats_to_integers(engine: str, source: DType) -> None:
  x = T(FLOATS, dtype=source)
  held = x.double().tolist()
  casts = {dtype: x.cast(dtype) for dtype in dtypes.ints}
  T.realize(*casts.values())
  for dtype, got in casts.items(): assert got.tolist() == [as_integer(v, dtype) for v in held], dtype
  assert x.bool().tolist() == [v != 0 for v in FLOATS]

def test_integers_to_floats(engine: str) -> None:
  """To nearest, ties to even; one rounding."""
  big = [(1 << 24) + 1, (1 << 24) + 3, (1 << 53) + 1, (1 << 62) + 1, -(1 << 63), (1 << 63) - 1, 2 ** 60 + 2 ** 36 + 1]
  assert T(big, dtype=dtypes.int64).float().tolist() == [float(np.float32(np.int64(v))) for v in big]
  assert T(big, dtype=dtypes.int64).double().tolist() == [float(v) for v in big]
  assert T([(1 << 64) - 1, 1 << 63], dtype=dtypes.uint64).float().tolist() == [2.0 ** 64, 2.0 ** 63]
  assert T([70000, 65519, 65520, -65520, 2049, 2051],
           dtype=dtypes.int32).half().float().tolist() == [inf, 65504.0, inf, -inf, 2048.0, 2052.0]

NARROW: dict[DType, dict[float, float]] = {   # what a float32 becomes: ties, the last number and what is beyond it,
                                              # subnormal numbers
  dtypes.float16: {65519.0: 65504.0, 65520.0: inf, -1e30: -inf, 1.00048828125: 1.0, 1.00146484375: 1.001953125,
                   2.0 ** -25: 0.0,
                   3 * 2.0 ** -26: 2.0 ** -24, inf: inf, nan: nan, -0.0: -0.0},
  dtypes.bfloat16: {3.4e38: inf, 3.39e38: 3.3895313892515355e38, 1.00390625: 1.0, 1.01171875: 1.015625,
                    1e-40: 9.183549615799121e-41,
                    -inf: -inf, nan: nan},
  dtypes.fp8e4m3: {448.0: 448.0, 464.0: 448.0, 465.0: nan, -1e9: nan, inf: nan, nan: nan, 17.0: 16.0, 19.0: 20.0,
                   2.0 ** -10: 0.0,
                   3 * 2.0 ** -11: 2.0 ** -9, -0.0: -0.0},
  dtypes.fp8e5m2: {57344.0: 57344.0, 61439.0: 57344.0, 61440.0: inf, -1e9: -inf, inf: inf, nan: nan, 9.0: 8.0,
                   11.0: 12.0,
                   2.0 ** -17: 0.0, -0.0: -0.0},
  dtypes.fp8e4m3fnuz: {240.0: 240.0, 247.0: 240.0, 248.0: nan, inf: nan, nan: nan, 17.0: 16.0, 2.0 ** -11: 0.0,
                       -0.0: 0.0, -1.0: -1.0},
  dtypes.fp8e5m2fnuz: {57344.0: 57344.0, 61440.0: nan, -inf: nan, 9.0: 8.0, 2.0 ** -18: 0.0, -0.0: 0.0, -2.0: -2.0},
}

@pytest.mark.parametrize("source", (dtypes.float32, dtypes.float64), ids=("float32", "float64"))
@pytest.mark.parametrize("dtype", NARROW, ids=lambda d: str(d)[7:])
def test_rounding_to_narrow_floats(engine: str, dtype: DType, source: DType) -> None:
  """None saturates."""
  given, want = list(NARROW[dtype]), list(NARROW[dtype].values())
  got = T(given, dtype=source).cast(dtype).float().tolist()
  assert isinstance(got, list)
  for x, g, w in zip(given, got, want):
    assert (g != g and w != w) or g == w and math.copysign(1, g) == math.copysign(1, w), f"{x} is {g}, not {w}"

def test_float64_is_rounded_once(engine: str) -> None:
  """By way of float32 these would be ties."""
  x = T([1 + 2.0 ** -11 + 2.0 ** -40, 1 + 2.0 ** -8 + 2.0 ** -40], dtype=dtypes.float64)
  assert x.half().float().tolist()[0] == 1 + 2.0 ** -10 and x.bfloat16().float().tolist()[1] == 1 + 2.0 ** -7

@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.bfloat16), ids=("float16", "bfloat16"))
def test_narrow_floats_accumulate_in_float32(engine: str, dtype: DType) -> None:
  """In their own type the sum of ones would stop at 2048 or 256."""
  n = 2064 if dtype is dtypes.float16 else 264
  ones, row, column = T([1.0] * n, dtype=dtype), T([[1.0] * n], dtype=dtype), T([[1.0]] * n, dtype=dtype)
  sums = [ones.sum(), row @ column, ones.mean() * n, T.einsum("i,i->", ones, ones)]
  if n < 1000 or engine != "interpreter":  # which is slow
    sums += [ones.reshape(1, 1, n).conv2d(ones.reshape(1, 1, n)), ones.reshape(1, 1, 1, n).avg_pool2d((1, n)) * n]
  if n < 1000: sums.append(ones.cumsum()[-1])
  for k, s in enumerate(sums): assert s.dtype is dtype and s.float().flatten().tolist() == [float(n)], k
  assert T([300.0, 400.0], dtype=dtype).reshape(1, 2).normalize().float().sub(T([[0.6, 0.8]])).abs().max().item() < 4e-3
  assert T([60000.0] * 4, dtype=dtypes.float16).mean().float().item() == 60000.0
  assert T([1.0], dtype=dtype).scatter_reduce(0, T([0] * (n - 1)), ones[1:], "sum").float().tolist() == [n]

def test_narrow_integers_accumulate_in_32_bits(engine: str) -> None:
  for dtype, wide, value in ((dtypes.int8, dtypes.int32, 100), (dtypes.uint8, dtypes.uint32, 200),
                             (dtypes.int16, dtypes.int32, 30000)):
    x = T([[value] * 4], dtype=dtype)
    for result, want in ((x.sum(), 4 * value), (x.dot(x.T, dtype=wide), wrap(4 * value * value, wide)),
                         (x.cumsum(1)[0, -1], 4 * value),
                         (x.prod(1), wrap(value ** 4, wide))):
      assert result.dtype is wide and result.flatten().tolist() in ([want], want)
    assert (x @ x.T).tolist() == [[wrap(4 * value * value, dtype)]]
  assert T([2 ** 31 - 1, 1]).sum().item() == -2 ** 31 and T([2 ** 31 - 1, 1]).sum(dtype=dtypes.int64).item() == 2 ** 31

def test_statistics_of_large_numbers(engine: str) -> None:
  """In two passes: nothing cancels."""
  x = T([1e6 + 1, 1e6 + 2, 1e6 + 3, 1e6 + 4])
  assert (x.var().tolist() == pytest.approx(5 / 3, rel=1e-6) and x.std(correction=0).tolist()
          == pytest.approx(math.sqrt(1.25), rel=1e-6))
  assert x.layernorm().tolist() == pytest.approx([-1.3416353, -0.4472118, 0.4472118, 1.3416353], rel=1e-5)
  assert (T([1e4, 1e4]).logsumexp().tolist() == pytest.approx(1e4 + math.log(2)) and T([1e4, 1e4]).softmax().tolist()
          == [0.5, 0.5])
