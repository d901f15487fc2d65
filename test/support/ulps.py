"""Expressions of floats computed by NumPy, thousands of values at a time, and how far they are from the truth in units
of the last place (ULP).

`compute` is a second, fast reading of what uop/evaluate/ does: fused additions are exact here too. The truth for
float32 is NumPy's float64; for float64 it is Python's math, itself good to about one ULP, or mpmath where a script has
it.
"""
from __future__ import annotations
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tinyhw import arithmetic
from tinyhw.codegen.math.decompose import Decomposer
from tinyhw.codegen.math.transcendental import expand, unfused
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.isa.x86.select.choice import extremum
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

Array = npt.NDArray[Any]
AVX2 = capabilities("x86_64:avx2")
ARITY = {Ops.POW: 2}
FUNCTIONS = (Ops.EXP, Ops.EXP2, Ops.LOG, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH, Ops.ERF, Ops.POW)
# The most that a result may be wrong, in ULP: (op, type) -> with fused multiply-add, without
BOUNDS: dict[tuple[Ops, DType], tuple[float, float]] = {
  (Ops.EXP, dtypes.float32): (1.7, 1.9), (Ops.EXP, dtypes.float64): (1.7, 2.3),
  (Ops.EXP2, dtypes.float32): (0.9, 1.1), (Ops.EXP2, dtypes.float64): (0.9, 1.1),
  (Ops.LOG, dtypes.float32): (1.2, 1.2), (Ops.LOG, dtypes.float64): (0.9, 0.9),
  (Ops.LOG2, dtypes.float32): (1.0, 2.0), (Ops.LOG2, dtypes.float64): (0.9, 1.1),
  (Ops.SIN, dtypes.float32): (1.6, 2.5), (Ops.SIN, dtypes.float64): (1.5, 2.2),
  (Ops.COS, dtypes.float32): (1.6, 2.5), (Ops.COS, dtypes.float64): (1.5, 2.2),
  (Ops.TANH, dtypes.float32): (2.6, 2.7), (Ops.TANH, dtypes.float64): (1.9, 2.3),
  (Ops.ERF, dtypes.float32): (1.9, 2.6), (Ops.ERF, dtypes.float64): (1.7, 2.1),
  (Ops.POW, dtypes.float32): (0.9, 1.2), (Ops.POW, dtypes.float64): (1.3, 1.4),
}

# ***** expressions *****

def expression(op: Ops, dtype: DType, fused: bool = True) -> UOp:
  """The expansion of a function of NOOPs, which stand for its operands in order; without fused additions where the
  target has none."""
  result = expand(UOp(op, dtype, tuple([UOp(Ops.NOOP, dtype, (), k) for k in range(ARITY.get(op, 1))])), fused)
  assert result is not None
  return result if fused else unfused(result)

def operation_count(op: Ops, dtype: DType) -> int:
  """How many operations a function of AVX2 vectors is after decomposition, constants and reinterpretations not counted.

  A comparison whose users all choose the lesser or greater of what it compares is theirs: they are one instruction.
  """
  lanes = dtype.vec(32 // dtype.itemsize)
  body = Decomposer(AVX2).expanded(op, tuple([UOp(Ops.NOOP, lanes, (), k) for k in range(ARITY.get(op, 1))]))
  order = body.toposort()
  users = [(s, u) for u in order for s in u.src if s.op is Ops.CMPLT]
  free = {s for s, _ in users} - {s for s, u in users if u.op is not Ops.WHERE or extremum(u) is None}
  return sum(u.op not in (Ops.CONST, Ops.NOOP, Ops.BITCAST) and u not in free for u in order)

def numpy_type(dtype: DType) -> Any:
  return np.dtype({"f": "f4", "d": "f8"}.get(dtype.scalar().fmt or "", dtype.scalar().fmt or ""))

def compute(body: UOp, *operands: Array) -> Array:
  """The expression for each element of the arrays that the NOOPs stand for."""
  values: dict[UOp, Array] = {}
  with np.errstate(all="ignore"):
    for u in body.toposort():
      if u.op is Ops.NOOP: values[u] = operands[u.arg]
      elif u.op is Ops.CONST: values[u] = np.array(u.arg).astype(numpy_type(u.dtype))
      else: values[u] = _OPERATIONS[u.op](u, *[values[s] for s in u.src])
  return values[body]

def _fused(u: UOp, a: Array, b: Array, c: Array) -> Array:
  return _fused32(a, b, c) if u.dtype.scalar() is dtypes.float32 else _fused64(a, b, c)

def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
  total = a + b
  of_b = total - a
  return total, (a - (total - of_b)) + (b - of_b)

def _to_odd(total: Array, error: Array) -> Array:
  """A rounded sum as it would be if rounded to odd.

  Source: Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008.
  """
  even = (total.view(np.int64) & 1) == 0
  toward = np.where(error > 0, np.inf, -np.inf)
  return np.where(np.isfinite(total) & (error != 0) & even, np.nextafter(total, toward), total)

def _fused32(a: Array, b: Array, c: Array) -> Array:
  """The product is exact in float64; the sum is rounded to odd there, so that rounding it again is right."""
  total, error = _two_sum(*np.broadcast_arrays(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)))
  return _to_odd(total, error).astype(np.float32)

def _split(x: Array) -> tuple[Array, Array]:
  high = x * 134217729.0 - (x * 134217729.0 - x)
  return high, x - high

def _fused64(a: Array, b: Array, c: Array) -> Array:
  """By exact products and sums; one by one where those would overflow or underflow."""
  a, b, c = np.broadcast_arrays(a, b, c)
  product = a * b
  (a1, a0), (b1, b0) = _split(a), _split(b)
  low = a0 * b0 + (a0 * b1 + (a1 * b0 + (a1 * b1 - product)))
  inner, inner_error = _two_sum(c, low)
  outer, outer_error = _two_sum(product, inner)
  result = outer + _to_odd(*_two_sum(inner_error, outer_error))
  sizes = [np.abs(x) for x in (a, b, c, product)]
  plain = np.all([(s == 0) | ((s > 2.0 ** -400) & (s < 2.0 ** 400)) for s in sizes], axis=0) & (product != 0)
  result = np.where(plain, result, product + c)
  hard = ~plain & np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0)
  for k in zip(*np.nonzero(hard)): result[k] = arithmetic.fused_float64(float(a[k]), float(b[k]), float(c[k]))
  return np.asarray(result)

def _convert(u: UOp, x: Array) -> Array:
  """Convert; numbers outside of an integer type become its smallest number."""
  target = numpy_type(u.dtype)
  if not dtypes.is_float(u.src[0].dtype) or not dtypes.is_int(u.dtype): return x.astype(target)
  assert u.dtype.scalar() is dtypes.int32
  inside = (x > -2147483649.0) & (x < 2147483648.0)
  return np.where(inside, np.where(inside, x, 0).astype(np.int32), np.int32(-2147483648))

def _shift(u: UOp, x: Array, amount: Array) -> Array:
  assert np.all((0 <= amount) & (amount < u.dtype.scalar().bitsize)), "a shift by more than the width"
  return x << amount if u.op is Ops.SHL else x >> amount

_OPERATIONS: dict[Ops, Callable[..., Array]] = {
  Ops.ADD: lambda u, a, b: a + b, Ops.SUB: lambda u, a, b: a - b, Ops.MUL: lambda u, a, b: a * b, Ops.FDIV: lambda u, a,
  b: a / b,
  Ops.RECIPROCAL: lambda u, a: numpy_type(u.dtype).type(1) / a, Ops.TRUNC: lambda u, a: np.trunc(a), Ops.MULACC: _fused,
  Ops.MAX: lambda u, a, b: np.where((a < b) | (b != b), b, a), Ops.WHERE: lambda u, c, a, b: np.where(c, a, b),
  Ops.CAST: _convert,
  Ops.BITCAST: lambda u, a: np.ascontiguousarray(a).view(numpy_type(u.dtype)) if a.ndim
  else a.view(numpy_type(u.dtype)),
  Ops.AND: lambda u, a, b: a & b, Ops.OR: lambda u, a, b: a | b, Ops.XOR: lambda u, a, b: a ^ b, Ops.SHL: _shift,
  Ops.SHR: _shift,
  Ops.CMPLT: lambda u, a, b: a < b, Ops.CMPNE: lambda u, a, b: a != b, Ops.CMPEQ: lambda u, a, b: a == b,
}

# ***** samples *****

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 10.0, -10.0, 88.5, -87.5, 1e-3, 1e10, -1e10, math.inf,
           -math.inf, math.nan)

def edges(dtype: DType) -> list[float]:
  """Special values, and the smallest and largest numbers of a type."""
  info = np.finfo(numpy_type(dtype))
  corners = (info.max, info.tiny, info.smallest_subnormal, info.tiny - info.smallest_subnormal, 1 + info.eps,
             1 - info.epsneg)
  return [*SPECIAL, *[sign * float(x) for x in corners for sign in (1, -1)]]

def by_element(function: Callable[..., float], *x: Array) -> Array:
  """A function of Python's math, element by element. NumPy has another one for each processor, and so other samples."""
  return np.array([function(*numbers) for numbers in zip(*[v.tolist() for v in x])])

def powers_of_two(x: Array) -> Array: return by_element(lambda e: math.pow(2.0, e), x)

def samples(dtype: DType, n: int, seed: int = 0) -> Array:
  """About n numbers of a type: the special ones; all exponents and signs with random mantissas; and more around 1,
  where functions bend."""
  kind, rng = numpy_type(dtype), np.random.default_rng(seed)
  bits = 8 * kind.itemsize
  mantissa = 23 if bits == 32 else 52
  stratified = np.linspace(0, 2.0 ** bits, n // 2, endpoint=False,
                           dtype=np.float64).astype(np.uint64) & np.uint64(2 ** bits - 2 ** mantissa)
  random = rng.integers(0, 2 ** mantissa, len(stratified), dtype=np.uint64)
  anywhere = (stratified | random).astype(f"u{kind.itemsize}").view(kind)
  near = rng.choice([-1, 1], n // 4) * powers_of_two(rng.uniform(-12, 7, n // 4))
  return np.concatenate([np.array(edges(dtype), kind), anywhere, near.astype(kind),
                         rng.uniform(0.5, 1.5, n // 4).astype(kind)])

def power_samples(dtype: DType, n: int, seed: int = 0) -> tuple[Array, Array]:
  """Bases and exponents: each special pair; bases of all sizes with exponents that keep the result in range, or take
  it just beyond."""
  kind, rng = numpy_type(dtype), np.random.default_rng(seed)
  special = np.array(edges(dtype), kind)
  most = 128 if dtype is dtypes.float32 else 1024
  base = np.concatenate([powers_of_two(rng.uniform(-most, most, n // 2)),
                         1 + rng.choice([-1, 1], n // 4) * powers_of_two(rng.uniform(-22, -2, n // 4)),
                         rng.uniform(0.01, 99, n - n // 2 - n // 4)]).astype(kind)
  with np.errstate(all="ignore"):
    slope = 1 / by_element(lambda b: math.log2(b) if b > 0 else math.nan, base.astype(np.float64))
  exponent = np.where(rng.random(n) < 0.8, rng.uniform(-1.2 * most, 1.01 * most, n) * slope, rng.integers(-9, 9, n))
  exponent = np.where(np.isfinite(exponent), exponent, 1.0)
  return np.concatenate([np.repeat(special, len(special)), base]), np.concatenate([np.tile(special, len(special)),
                                                                                   exponent.astype(kind)])

# ***** the truth *****

_NUMPY: dict[Ops, Callable[..., Any]] = {
  Ops.EXP: np.exp, Ops.EXP2: np.exp2, Ops.LOG: np.log, Ops.LOG2: np.log2, Ops.SIN: np.sin, Ops.COS: np.cos,
  Ops.TANH: np.tanh,
  Ops.ERF: np.vectorize(math.erf, otypes=[np.float64]), Ops.POW: np.power,
}

def truth(op: Ops, dtype: DType, *operands: Array) -> Array:
  """In float64: for float32 with bits to spare, for float64 to about one ULP."""
  with np.errstate(all="ignore"):
    if dtype is dtypes.float32: return np.asarray(_NUMPY[op](*[x.astype(np.float64) for x in operands]))
    f = arithmetic.operation(op.name, dtypes.float64)
    return np.array([f(*[float(x) for x in row]) for row in zip(*operands)], np.float64)

def errors(got: Array, want: Array) -> Array:
  """In ULP of got's type, at the correct result (a float64): infinite where one is NaN or infinite and the other
  should not be."""
  kind = got.dtype
  bits, least, most = (24, -149, 128) if kind.itemsize == 4 else (53, -1074, 1024)
  with np.errstate(all="ignore"):
    rounded = want.astype(kind).astype(np.float64)
    exponent = np.clip(np.frexp(want)[1] - bits, least, most - bits)
    distance = np.ldexp(np.abs(got.astype(np.float64) - want), -exponent)
    # one above the largest number is as far as infinity
    distance = np.where(np.isinf(got) & np.isfinite(rounded),
                        np.abs(2.0 ** (most - 1) - np.abs(rounded) / 2) * 2 / np.ldexp(1.0, exponent), distance)
  same = (np.isnan(got) & np.isnan(want)) | (got.astype(np.float64) == rounded)
  wrong = np.isnan(got) != np.isnan(want)
  wrong |= np.isinf(rounded) & (got.astype(np.float64) != rounded) & (np.isinf(want) | (np.sign(got) != np.sign(want)))
  wrong |= (want == 0) & (got != 0)
  return np.where(wrong, np.inf, np.where(same & ~np.isfinite(distance), 0.0, distance))

def worst(op: Ops, dtype: DType, fused: bool, operands: Sequence[Array],
          want: Array | None = None) -> tuple[float, tuple[float, ...]]:
  """The largest error of an expansion over the operands, and where."""
  got = compute(expression(op, dtype, fused), *operands)
  wrong = errors(got, truth(op, dtype, *operands) if want is None else want)
  at = int(np.argmax(wrong))
  return float(wrong[at]), tuple(float(x[at]) for x in operands)

def flushes(device: str) -> bool:
  """Does a device count subnormal numbers of float32 as zeros? Apple's GPUs do (docs/hardware/metal.md)."""
  return device.partition(":")[0] == "METAL"
