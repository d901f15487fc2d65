"""The smallest and largest value of an expression, by interval arithmetic. There is one rule per operation, which uses
the bounds of the sources.

An expression without a rule, or that is neither integer nor bool, gets the limits of its type. The bounds of index
expressions are exact enough for codegen to prove that they stay inside their buffers. A loose bound costs speed. A
wrong one would cost safety.
"""
from __future__ import annotations
from operator import index
from typing import TYPE_CHECKING, Any
from collections.abc import Callable

from tinyhw.dtype import dtypes
from tinyhw.errors import SymbolicError
from tinyhw.uop.enums import Ops
if TYPE_CHECKING: from tinyhw.uop.ops import UOp

Bounds = tuple[Any, Any]

def _corners(f: Callable[[Any, Any], Any], a: Bounds, b: Bounds) -> Bounds:
  values = (f(a[0], b[0]), f(a[0], b[1]), f(a[1], b[0]), f(a[1], b[1]))
  return min(values), max(values)

def _multiply(u: UOp, a: Bounds, b: Bounds) -> Bounds:
  if b[0] == b[1]: return (a[0] * b[0], a[1] * b[0]) if b[0] >= 0 else (a[1] * b[0], a[0] * b[0])
  return _corners(lambda x, y: x * y, a, b)

def _divide(u: UOp, a: Bounds, b: Bounds) -> Bounds:
  if b[0] == b[1] and b[0] > 0: return a[0] // b[0], a[1] // b[0]
  if b[0] <= 0 <= b[1]:  # x // 0 is 0, and no quotient is larger than its dividend
    largest = max(-a[0], a[1], 0)
    return -largest, largest
  return _corners(lambda x, y: x // y, a, b)

def _modulo(u: UOp, a: Bounds, b: Bounds) -> Bounds:
  """The remainder has the divisor's sign. x % 0 is 0."""
  if b[0] == b[1] and b[0] > 0:
    n = b[0]
    return (a[0] % n, a[1] % n) if a[0] // n == a[1] // n else (0, n - 1)
  if b[0] > 0 and a[0] >= 0: return a if a[1] < b[0] else (0, min(b[1] - 1, a[1]))
  return min(b[0] + 1, 0), max(b[1] - 1, 0)

def _subtract(u: UOp, a: Bounds, b: Bounds) -> Bounds:
  """Recognize a remainder in the form x - x // n * n."""
  x, taken = u.src
  if taken.op is Ops.MUL and taken.src[1].op is Ops.CONST and a[0] >= 0 and _is_quotient(taken.src[0], x,
                                                                                         taken.src[1].arg, a[1]):
    return 0, min(taken.src[1].arg - 1, a[1])
  return a[0] - b[1], a[1] - b[0]

def _is_quotient(q: UOp, x: UOp, n: int, largest: int) -> bool:
  """Whether q is x // n for 0 <= x <= largest, also as the product and shift that codegen/math/division.py makes.

  With multiplier * n = 2**shift + more, x * multiplier / 2**shift is x / n + x * more / n / 2**shift. The fraction of x
  / n is at most (n - 1) / n.
  """
  q = _uncast(q, largest)
  if n <= 0 or q.op not in (Ops.IDIV, Ops.SHR) or q.src[1].op is not Ops.CONST: return False
  if q.op is Ops.IDIV: return _uncast(q.src[0], largest) is x and bool(q.src[1].arg == n)
  product, shift = q.src[0], q.src[1].arg
  if (not 0 <= shift < 64 or product.op is not Ops.MUL or product.src[1].op is not Ops.CONST
      or _uncast(product.src[0], largest) is not x):
    return False
  multiplier, power = product.src[1].arg, 1 << shift
  more = multiplier * n - power
  return bool(0 <= more and largest * more < power and largest * multiplier <= product.dtype.max)

def _uncast(u: UOp, largest: int) -> UOp:
  """The source of a conversion that keeps all numbers from 0 to the largest, else u itself."""
  return u.src[0] if u.op is Ops.CAST and dtypes.is_int(u.dtype) and largest <= u.dtype.max else u

def _less(u: UOp, a: Bounds, b: Bounds) -> Bounds: return a[1] < b[0], a[0] < b[1]

def _equal(u: UOp, a: Bounds, b: Bounds) -> Bounds:
  return a[0] == a[1] == b[0] == b[1], not (a[1] < b[0] or b[1] < a[0])

def _differ(u: UOp, a: Bounds, b: Bounds) -> Bounds:
  same = _equal(u, a, b)
  return not same[1], not same[0]

def _and(u: UOp, a: Bounds, b: Bounds) -> Bounds | None:
  if dtypes.is_bool(u.dtype): return a[0] and b[0], a[1] and b[1]
  if b[0] >= 0: return 0, b[1] if a[0] < 0 else min(a[1], b[1])
  if a[0] >= 0: return 0, a[1]
  return None

def _or(u: UOp, a: Bounds, b: Bounds) -> Bounds | None:
  if dtypes.is_bool(u.dtype): return a[0] or b[0], a[1] or b[1]
  if a[0] >= 0 and b[0] >= 0: return max(a[0], b[0]), (1 << max(int(a[1]).bit_length(), int(b[1]).bit_length())) - 1
  return None

def _xor(u: UOp, a: Bounds, b: Bounds) -> Bounds | None:
  if dtypes.is_bool(u.dtype): return _differ(u, a, b)
  if a[0] >= 0 and b[0] >= 0: return 0, (1 << max(int(a[1]).bit_length(), int(b[1]).bit_length())) - 1
  return None

def _shift_left(u: UOp, a: Bounds, b: Bounds) -> Bounds | None:
  return _corners(lambda x, y: x << y, a, b) if 0 <= b[0] and b[1] < 64 else None

def _shift_right(u: UOp, a: Bounds, b: Bounds) -> Bounds | None:
  return _corners(lambda x, y: x >> y, a, b) if 0 <= b[0] and b[1] < 64 else None

_BINARY: dict[Ops, Callable[[UOp, Bounds, Bounds], Bounds | None]] = {
  Ops.ADD: lambda u, a, b: (a[0] + b[0], a[1] + b[1]), Ops.SUB: _subtract,
  Ops.MUL: _multiply, Ops.MAX: lambda u, a, b: (max(a[0], b[0]), max(a[1], b[1])),
  Ops.IDIV: _divide, Ops.MOD: _modulo, Ops.CMPLT: _less, Ops.CMPEQ: _equal, Ops.CMPNE: _differ, Ops.AND: _and,
  Ops.OR: _or, Ops.XOR: _xor,
  Ops.SHL: _shift_left, Ops.SHR: _shift_right,
}

def bounds_of(u: UOp) -> Bounds:
  """(smallest, largest) value of u. The bounds of its sources are known."""
  op, dtype, src = u.op, u.dtype, u.src
  rule = _BINARY.get(op)
  if rule is not None:
    left = src[0]
    if dtypes.is_float(left.dtype): return (dtype.min, dtype.max)
    found = rule(u, left._bounds_, src[1]._bounds_)
  else: found = _others(u)
  if found is None: return dtype.min, dtype.max
  low, high = _UNBOUNDED if dtype is _WEAK else (dtype.min, dtype.max)
  return found if low <= found[0] and found[1] <= high else (low, high)  # it may wrap

_WEAK = dtypes.weakint
_UNBOUNDED = _WEAK.min, _WEAK.max

def _others(u: UOp) -> Bounds | None:
  """Bounds of operations without two operands."""
  op, dtype, src = u.op, u.dtype, u.src
  if op is Ops.CONST or dtype is dtypes.void: return (u.arg, u.arg) if op is Ops.CONST else (0, 0)
  if op is Ops.DEFINE_VAR: return u.arg[1], u.arg[2]
  # the bounds of the variable, not its value: code made from this holds for every value
  if op is Ops.BIND: return src[0]._bounds_  # type: ignore[no-any-return]
  if op is Ops.RANGE: return 0, max(src[0]._bounds_[1] - 1, 0)
  if op is Ops.ACC or dtypes.is_float(dtype): return None
  # slots are Any
  if op in (Ops.BROADCAST, Ops.GEP, Ops.EXCHANGE): return src[0]._bounds_  # type: ignore[no-any-return]
  if op in (Ops.VECTORIZE, Ops.SHUFFLE): return min(s._bounds_[0] for s in src), max(s._bounds_[1] for s in src)
  if op is Ops.WHERE: return min(src[1]._bounds_[0], src[2]._bounds_[0]), max(src[1]._bounds_[1], src[2]._bounds_[1])
  # slots are Any
  if op is Ops.CAST and not dtypes.is_float(src[0].dtype): return src[0]._bounds_  # type: ignore[no-any-return]
  if op is Ops.NEG and not dtypes.is_bool(dtype): return -src[0]._bounds_[1], -src[0]._bounds_[0]
  return None

def value_for(u: UOp, value: Any) -> int:
  """Check a value for the variable u and return it as an int. Raises SymbolicError."""
  if u.op is not Ops.DEFINE_VAR:
    raise SymbolicError(f"cannot bind {value!r} to {u.render(simplify=False)}: only a Variable that has no value yet "
                        f"can be bound; "
                        "unbind() gives the Variable of one that has")
  name, low, high, *multiple = u.arg
  try: number = int(index(value))  # a Tensor has no __index__
  except TypeError:
    raise SymbolicError(f"cannot bind {value!r} to {name}: its value is a whole number; a Tensor's is .item(), a "
                        f"float's int()") from None
  if not low <= number <= high: raise SymbolicError(f"cannot bind {number} to {name}: it must be in {low}..{high}")
  if multiple and number % multiple[0]:
    raise SymbolicError(f"cannot bind {number} to {name}: it must be a multiple of {multiple[0]}")
  return number
