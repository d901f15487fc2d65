"""Quotients, remainders and powers of graph nodes, for `//`, `%`, `fmod` and `**`.

These functions take nodes of one type and one shape, and return a node. The methods (elementwise.py) check their
arguments.
"""
from __future__ import annotations
import math

from tinyhw.dtype import ConstType, dtypes, least_upper_dtype, least_upper_float
from tinyhw.errors import ArgumentError
from tinyhw.methods.graph import graph
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

_PRODUCTS = range(-2, 5)  # for these n, x**n becomes multiplications, with an error below 2 ULP
_STEPS = 3           # steps of a float remainder; each removes one full mantissa of the quotient

def countable(u: UOp) -> UOp:
  """Return u, with bools as integers."""
  return graph.cast(u, dtypes.default_int) if u.dtype is dtypes.bool else u

def floor(u: UOp) -> UOp:
  """Return the largest integer not above u."""
  t = graph.unary(Ops.TRUNC, u)
  return graph.where(graph.compare(Ops.CMPLT, u, t), graph.binary(Ops.SUB, t, graph.like(t, 1)), t)

def at_least_float32(u: UOp) -> UOp: return graph.cast(u, least_upper_dtype(u.dtype, dtypes.float32))

def signs_differ(r: UOp, b: UOp) -> UOp:
  """True where r is not 0 and its sign differs from that of b."""
  zero = graph.like(r, 0)
  other = graph.compare(Ops.CMPNE, graph.compare(Ops.CMPLT, r, zero), graph.compare(Ops.CMPLT, b, zero))
  return graph.binary(Ops.AND, graph.compare(Ops.CMPNE, r, zero), other)

def _rest(a: UOp, q: UOp, b: UOp) -> UOp:
  """Return a - q*b. It is exact if q is the quotient rounded to a whole number, or to its type."""
  return graph.node(Ops.MULACC, a.dtype, (graph.negate(q), b, a), None, a.shape)

def floor_divide(a: UOp, b: UOp) -> UOp:
  """Return the exact quotient rounded down, as Python does. The sign of the remainder tells whether a / b was rounded
  up. Where b is 0 the result is a / 0.

  The result is -1 where a negative quotient underflows to 0, as for an infinite b. It is NaN for an infinite a.
  """
  if not dtypes.is_float(a.dtype): return graph.binary(Ops.IDIV, countable(a), countable(b))
  narrow = a.dtype
  a, b = at_least_float32(a), at_least_float32(b)
  ratio = graph.binary(Ops.FDIV, a, b)
  q = floor(ratio)
  r = graph.where(graph.compare(Ops.CMPEQ, q, graph.like(q, 0)), a, _rest(a, q, b))
  below = graph.where(signs_differ(r, b), graph.binary(Ops.SUB, q, graph.like(q, 1)), q)
  endless = graph.compare(Ops.CMPEQ, graph.binary(Ops.SUB, a, a), graph.like(a, 0))  # false for NaN and infinity
  result = graph.where(endless, below, graph.like(q, math.nan))
  return graph.cast(graph.where(graph.compare(Ops.CMPEQ, b, graph.like(b, 0)), ratio, result), narrow)

def truncate_divide(a: UOp, b: UOp) -> UOp:
  if dtypes.is_float(a.dtype): return graph.unary(Ops.TRUNC, graph.binary(Ops.FDIV, a, b))
  a, b = countable(a), countable(b)
  q = graph.binary(Ops.IDIV, a, b)
  if dtypes.is_unsigned(a.dtype): return q
  inexact = graph.compare(Ops.CMPNE, graph.mul(q, b), a)
  negative = graph.compare(Ops.CMPLT, q, graph.like(q, 0))
  there = graph.compare(Ops.CMPNE, b, graph.like(b, 0))
  up = graph.binary(Ops.AND, graph.binary(Ops.AND, inexact, negative), there)
  return graph.where(up, graph.add(q, graph.like(q, 1)), q)

def _size(u: UOp) -> UOp:
  """Return the absolute value, with gradient 1 or -1."""
  return graph.where(graph.compare(Ops.CMPLT, u, graph.like(u, 0)), graph.negate(u), u)

def _left(a: UOp, b: UOp) -> UOp:
  """Return the remainder of a / b for a and b that are not negative. It is a itself where b is larger, even infinite.
  For float32 and float64.

  Each step is exact. It rounds the quotient to the type and to a whole number. The remainder then fits in a float, and
  is smaller by one mantissa. So the result is exact while a / b is below 2**71 (float32) or 2**158 (float64). Beyond
  that it is exact or NaN. It is also NaN for b = 0 and for infinite a.

  A quotient that was rounded up leaves a remainder below 0. If all steps were enough, it is at least -b.
  """
  r = a
  for _ in range(_STEPS):
    q = graph.unary(Ops.TRUNC, graph.binary(Ops.FDIV, r, b))
    r = graph.where(graph.compare(Ops.CMPEQ, q, graph.like(q, 0)), r, _rest(r, q, b))
  r = graph.where(graph.compare(Ops.CMPLT, r, graph.like(r, 0)), graph.add(r, b), r)
  unknown = graph.like(r, math.nan)
  r = graph.where(graph.compare(Ops.CMPLT, r, graph.like(r, 0)), unknown, r)
  return graph.where(graph.compare(Ops.CMPLT, r, b), r, unknown)

def remainder(a: UOp, b: UOp) -> UOp:
  """Return the remainder of a / b with the sign of a, even where it is 0. For float32 and float64."""
  r = _left(_size(a), _size(b))
  return graph.where(graph.compare(Ops.CMPLT, a, graph.like(a, 0)), graph.negate(r), r)

def floor_remainder(a: UOp, b: UOp) -> UOp:
  """Return the remainder of a / b with the sign of b, even where it is 0. For float32 and float64."""
  size, zero = _size(b), graph.like(b, 0)
  r = _left(_size(a), size)
  down, negative = graph.compare(Ops.CMPLT, b, zero), graph.compare(Ops.CMPLT, a, zero)
  more = graph.where(graph.compare(Ops.CMPEQ, r, zero), zero, size)
  # + zero turns -0.0 into 0.0
  r = graph.where(graph.compare(Ops.CMPNE, negative, down), graph.binary(Ops.SUB, more, r), graph.add(r, zero))
  return graph.where(down, graph.negate(r), r)

def _multiplied(u: UOp, n: int) -> UOp:
  """Return u ** n for n >= 1, by squaring."""
  result: UOp | None = None
  while n:
    if n & 1: result = u if result is None else graph.mul(result, u)
    n >>= 1
    if n: u = graph.mul(u, u)
  assert result is not None
  return result

def power_constant(u: UOp, x: ConstType) -> UOp:
  """Return u ** x for a Python number, by multiplications, a square root or a reciprocal where these are exact
  enough."""
  if not dtypes.is_float(u.dtype):
    if isinstance(x, float): u = graph.cast(u, least_upper_float(u.dtype))
    elif x < 0:
      raise ArgumentError(f"cannot raise {u.dtype} to the power {x}: integers have no reciprocals; use {float(x)} for "
                          f"floats")
    else:
      u = countable(u)
      return graph.full(u.shape, u.dtype, 1, u.device) if x == 0 else _multiplied(u, int(x))
  # where() keeps a gradient of 0
  if x == 0: return graph.where(graph.full(u.shape, dtypes.bool, True), graph.full(u.shape, u.dtype, 1, u.device), u)
  if x == 0.5: return graph.unary(Ops.SQRT, u)
  if x == -0.5: return graph.unary(Ops.RECIPROCAL, graph.unary(Ops.SQRT, u))
  if x in _PRODUCTS: return _multiplied(u if x > 0 else graph.unary(Ops.RECIPROCAL, u), abs(int(x)))
  return graph.binary(Ops.POW, u, graph.like(u, x))

def power_integers(a: UOp, b: UOp) -> UOp:
  """Return a ** b for integers, by squaring over the bits of b. The result wraps as the type does. For negative b it is
  0 unless a is 1 or -1."""
  bits = b.dtype.bitsize - (not dtypes.is_unsigned(b.dtype))
  one, result, square = graph.like(b, 1), graph.like(a, 1), a
  for i in range(bits):
    bit = graph.binary(Ops.AND, graph.binary(Ops.SHR, b, graph.like(b, i)) if i else b, one)
    result = graph.where(graph.compare(Ops.CMPNE, bit, graph.like(b, 0)), graph.mul(result, square), result)
    if i < bits - 1: square = graph.mul(square, square)
  if dtypes.is_unsigned(b.dtype): return result
  unit = graph.binary(Ops.OR, graph.compare(Ops.CMPEQ, a, graph.like(a, 1)),
                      graph.compare(Ops.CMPEQ, a, graph.like(a, -1)))
  negative = graph.compare(Ops.CMPLT, b, graph.like(b, 0))
  odd = graph.compare(Ops.CMPNE, graph.binary(Ops.AND, b, one), graph.like(b, 0))
  unit_power = graph.where(unit, graph.where(odd, a, graph.like(a, 1)), graph.like(a, 0))
  return graph.where(negative, unit_power, result)
