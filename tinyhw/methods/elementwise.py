"""Operators: arithmetic, comparison, bits, casts, choice. One node per operation where the graph has one.

Types promote as `dtype.least_upper_dtype` says; Python numbers are weak: they take the tensor's type if their kind fits. An int outside of the type's
range compares by its value, and is refused by arithmetic, where it would wrap. `/` of integers gives floats. `//` and `%` round to minus infinity and
give 0 where the divisor is the integer 0. Comparisons with NaN are false, except `!=`.
"""
from __future__ import annotations
import math
from typing import TYPE_CHECKING, Any, TypeAlias

from tinyhw.device import on_disk
from tinyhw.dtype import ConstType, DType, DTypeLike, dtypes, least_upper_dtype, least_upper_float, to_dtype
from tinyhw.engine.disk import reread
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.methods import graph
from tinyhw.methods.checks import is_number
from tinyhw.methods.base import Handle
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_BOOL_OPS = {Ops.ADD: Ops.OR, Ops.MUL: Ops.AND, Ops.MAX: Ops.OR}
_PRODUCTS = range(-2, 5)  # x**n for these n is written as multiplications, less than 2 ULP wrong
_STEPS = 3           # of a float remainder, each of which takes all bits of a quotient

_WORDS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}   # by bytes

class Elementwise(Handle):
  """Operators and their named forms."""
  __slots__ = ()

  def _binary(self, what: str, op: Ops, x: Any, reverse: bool = False) -> Tensor:
    a, b = self._pair(what, x)
    if reverse: a, b = b, a
    if a.dtype is dtypes.bool: op = _BOOL_OPS.get(op, op)
    return self._new(graph.node(op, a.dtype, (a, b), None, a.shape))

  def _compare(self, what: str, op: Ops, x: Any, reverse: bool = False) -> Tensor:
    beyond = self._beyond(x)
    if beyond: return self._everywhere((beyond > 0) is not reverse if op is Ops.CMPLT else op is Ops.CMPNE)
    a, b = self._pair(what, x)
    if reverse: a, b = b, a
    return self._new(graph.compare(op, a, b))

  def _everywhere(self, truth: bool) -> Tensor:
    """The answer to a comparison with a number that no element can reach."""
    return self._new(graph.full(self.shape, dtypes.bool, truth, self.uop.device))

  def _bits(self, what: str, op: Ops, x: Any, reverse: bool = False) -> Tensor:
    a, b = self._pair(what, x)
    if dtypes.is_float(a.dtype): raise DTypeError(f"cannot {what} bits of {self.dtype} and {_type_of(x)}; cast both to an integer type or bool first")
    if reverse: a, b = b, a
    return self._new(graph.binary(op, a, b))

  # ***** arithmetic *****

  def add(self, x: Any, reverse: bool = False) -> Tensor:
    """self + x."""
    return self._binary("add", Ops.ADD, x, reverse)

  def sub(self, x: Any, reverse: bool = False) -> Tensor:
    """self - x. Raises DTypeError for two bools, as NumPy does."""
    a, b = self._pair("subtract", x)
    if a.dtype is dtypes.bool: raise DTypeError(f"cannot subtract {_type_of(x)} from {self.dtype}; use ^, or cast one to an integer type")
    if reverse: a, b = b, a
    return self._new(graph.binary(Ops.SUB, a, b))

  def mul(self, x: Any, reverse: bool = False) -> Tensor:
    """self * x."""
    return self._binary("multiply", Ops.MUL, x, reverse)

  def div(self, x: Any, reverse: bool = False, rounding_mode: str | None = None) -> Tensor:
    """self / x, a float. rounding_mode "floor" is //; "trunc" rounds to zero and keeps integers integers."""
    exact = rounding_mode is not None or not self._beyond(x)
    a, b = (self if exact else self.cast(least_upper_float(self.dtype)))._pair("divide", x)
    if reverse: a, b = b, a
    if rounding_mode == "floor": return self._new(_floor_divide(a, b))
    if rounding_mode == "trunc": return self._new(_truncate_divide(a, b))
    if rounding_mode is not None: raise ArgumentError(f"rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")
    dtype = least_upper_float(a.dtype)
    return self._new(graph.binary(Ops.FDIV, graph.cast(a, dtype), graph.cast(b, dtype)))

  def idiv(self, x: Any, reverse: bool = False) -> Tensor:
    """self // x."""
    return self.div(x, reverse, rounding_mode="floor")

  def mod(self, x: Any, reverse: bool = False) -> Tensor:
    """self % x; the result has the sign of the divisor, as Python's and NumPy's. 0 where the divisor is the integer 0, NaN for the float 0.

    >>> (Tensor([-7, 7]) % Tensor([3, -3])).tolist()
    [2, -2]
    """
    a, b = self._pair("take the remainder of", x)
    if reverse: a, b = b, a
    if not dtypes.is_float(a.dtype): return self._new(graph.binary(Ops.MOD, _countable(a), _countable(b)))
    narrow = a.dtype
    a, b = _at_least_float32(a), _at_least_float32(b)
    r = _remainder(a, b)
    return self._new(graph.cast(graph.where(_signs_differ(r, b), graph.add(r, b), r), narrow))

  def fmod(self, x: Any) -> Tensor:
    """The remainder with the sign of self, as C's fmod.

    >>> Tensor([-7, 7]).fmod(Tensor([3, -3])).tolist()
    [-1, 1]
    """
    a, b = self._pair("take the remainder of", x)
    if dtypes.is_float(a.dtype): return self._new(graph.cast(_remainder(_at_least_float32(a), _at_least_float32(b)), a.dtype))
    a, b = _countable(a), _countable(b)
    return self._new(graph.binary(Ops.SUB, a, graph.mul(_truncate_divide(a, b), b)))

  def pow(self, x: Any, reverse: bool = False) -> Tensor:
    """self ** x. Integers to integer powers stay integers; a negative integer power of integers raises ArgumentError when it is a Python int.

    x = 0.5 is sqrt, as in PyTorch and NumPy: NaN for -inf and -0.0 for -0.0, where C's pow has inf and 0.0.
    """
    if type(x) in (int, float, bool) and not reverse: return self._own(_power_constant(self.uop, x))
    a, b = self._pair("raise", x)
    if reverse: a, b = b, a
    if not dtypes.is_float(a.dtype): return self._new(_power_integers(_countable(a), _countable(b)))
    return self._new(graph.binary(Ops.POW, a, b))

  def maximum(self, x: Any) -> Tensor:
    """The larger of each pair; NaN if either is NaN. Equal ones share the gradient.

    >>> Tensor([1.0, 5.0]).maximum(3).tolist()
    [3.0, 5.0]
    """
    if self._beyond(x) < 0: return self.add(0)
    return self._binary("take the maximum of", Ops.MAX, x)

  def minimum(self, x: Any) -> Tensor:
    """The smaller of each pair; NaN if either is NaN. Equal ones share the gradient.

    >>> Tensor([1.0, 5.0]).minimum(3).tolist()
    [1.0, 3.0]
    """
    if self._beyond(x) > 0: return self.add(0)
    a, b = self._pair("take the minimum of", x)
    if dtypes.is_float(a.dtype): return self._new(graph.negate(graph.binary(Ops.MAX, graph.negate(a), graph.negate(b))))
    return self._new(graph.where(graph.compare(Ops.CMPLT, b, a), b, a))

  def neg(self) -> Tensor:
    """-self; not self for bool."""
    return self.logical_not() if self.dtype is dtypes.bool else self._new(graph.negate(self.uop))

  # ***** bits and truth *****

  def bitwise_and(self, x: Any, reverse: bool = False) -> Tensor:
    """self & x, of integers or bools. Raises DTypeError for floats."""
    return self._bits("and", Ops.AND, x, reverse)

  def bitwise_or(self, x: Any, reverse: bool = False) -> Tensor:
    """self | x, of integers or bools. Raises DTypeError for floats."""
    return self._bits("or", Ops.OR, x, reverse)

  def bitwise_xor(self, x: Any, reverse: bool = False) -> Tensor:
    """self ^ x, of integers or bools. Raises DTypeError for floats."""
    return self._bits("xor", Ops.XOR, x, reverse)

  def lshift(self, x: Any, reverse: bool = False) -> Tensor:
    """self << x, of integers; 0 where x is not below the number of bits. Raises DTypeError for floats."""
    return self._bits("shift", Ops.SHL, x, reverse)

  def rshift(self, x: Any, reverse: bool = False) -> Tensor:
    """self >> x, of integers; signed ones keep their sign. Raises DTypeError for floats."""
    return self._bits("shift", Ops.SHR, x, reverse)

  def bitwise_not(self) -> Tensor:
    """All bits inverted; not for bool."""
    if self.dtype is dtypes.bool: return self.logical_not()
    if dtypes.is_float(self.dtype): raise DTypeError(f"cannot invert the bits of {self.dtype}; bitcast it to an integer type first")
    return self._new(graph.binary(Ops.XOR, self.uop, graph.like(self.uop, -1)))

  def logical_not(self) -> Tensor:
    """True where self is zero or False."""
    u = truth(self.uop)
    return self._new(graph.binary(Ops.XOR, u, graph.like(u, True)))

  # ***** comparison *****

  def eq(self, x: Any) -> Tensor:
    """self == x, as bools."""
    return self._compare("compare", Ops.CMPEQ, x)

  def ne(self, x: Any) -> Tensor:
    """self != x, as bools; true for NaN."""
    return self._compare("compare", Ops.CMPNE, x)

  def _at_least(self, x: Any, reverse: bool) -> Tensor:
    """self >= x, reversed x >= self. Integers need one comparison; floats two, because of NaN."""
    beyond = self._beyond(x)
    if beyond: return self._everywhere((beyond > 0) is reverse)
    a, b = self._pair("compare", x)
    if reverse: a, b = b, a
    less = graph.compare(Ops.CMPLT, a, b)
    if not dtypes.is_float(a.dtype): return self._new(graph.binary(Ops.XOR, less, graph.like(less, True)))
    return self._new(graph.binary(Ops.OR, graph.compare(Ops.CMPLT, b, a), graph.compare(Ops.CMPEQ, a, b)))

  # ***** types *****

  def cast(self, dtype: DTypeLike) -> Tensor:
    """The values as another type: floats to integers round to zero, to bool compares with zero."""
    wanted = to_dtype(dtype)
    if wanted is self.uop.dtype: return self._self()
    return self._new(truth(self.uop) if wanted is dtypes.bool else graph.cast(self.uop, wanted))

  def bitcast(self, dtype: DTypeLike) -> Tensor:
    """The same bits as another type. Where that has another size the last axis becomes longer or shorter, low bytes first.

    Of a tensor on DISK it is a view of the file. Raises DTypeError for bool, ShapeError if the last axis holds no whole number of elements.

    >>> Tensor([1.0]).bitcast("int32").tolist(), Tensor([1, 256]).bitcast("int16").tolist()
    ([1065353216], [1, 0, 256, 0])
    """
    wanted = to_dtype(dtype)
    if on_disk(self.uop.device): return self._leaf(reread(self.uop, wanted))
    if wanted is self.dtype: return self._self()
    if dtypes.bool in (wanted, self.dtype): raise DTypeError(f"cannot bitcast {self.dtype} to {wanted}: a bool has no bits of its own; use cast")
    if wanted.itemsize != self.dtype.itemsize: return self._regrouped(wanted)
    return self._new(graph.node(Ops.BITCAST, wanted, (self.uop,), None, self.shape))

  def _regrouped(self, wanted: DType) -> Tensor:
    """The bits as elements of another size."""
    have, want = self.dtype.itemsize, wanted.itemsize
    words, n = self.bitcast(_WORDS[have]), self.shape[-1] if self.shape else 0
    if not self.shape or isinstance(n, int) and n * have % want:
      raise ShapeError(f"cannot bitcast {self.dtype} to {wanted}: the last axis of shape {graph.show(self.shape)} must hold a whole number of "
                       f"elements of {want} bytes; reshape, pad or shrink it")
    bits, k = 8 * min(have, want), max(have, want) // min(have, want)
    if want < have:
      shifts = type(words).arange(0, k * bits, bits, dtype=words.dtype, device=words.uop.device)
      return words.unsqueeze(-1).rshift(shifts).cast(_WORDS[want]).flatten(-2).bitcast(wanted)
    parts = words.reshape(*self.shape[:-1], n // k, k).cast(_WORDS[want])
    whole = parts[..., 0]
    for i in range(1, k): whole = whole.bitwise_or(parts[..., i].lshift(i * bits))
    return whole.bitcast(wanted)

  def float(self) -> Tensor:
    """Cast to float32."""
    return self.cast(dtypes.float32)

  def half(self) -> Tensor:
    """Cast to float16."""
    return self.cast(dtypes.float16)

  def bfloat16(self) -> Tensor:
    """Cast to bfloat16."""
    return self.cast(dtypes.bfloat16)

  def double(self) -> Tensor:
    """Cast to float64."""
    return self.cast(dtypes.float64)

  def int(self) -> Tensor:
    """Cast to int32."""
    return self.cast(dtypes.int32)

  def short(self) -> Tensor:
    """Cast to int16."""
    return self.cast(dtypes.int16)

  def long(self) -> Tensor:
    """Cast to int64."""
    return self.cast(dtypes.int64)

  def bool(self) -> Tensor:
    """Cast to bool: whether an element differs from zero."""
    return self.cast(dtypes.bool)

  def is_floating_point(self) -> Bool:
    """Whether the elements are floats."""
    return dtypes.is_float(self.dtype)

  def element_size(self) -> Int:
    """Bytes of one element."""
    return self.dtype.itemsize

  # ***** choice *****

  def where(self, x: Any, y: Any) -> Tensor:
    """x where self is true, else y; all three broadcast, x and y promote."""
    if isinstance(x, Handle): first, second = x.uop, x._other(y)
    elif isinstance(y, Handle): first, second = y._other(x), y.uop
    else:
      for v in (x, y):
        if not is_number(v): raise ArgumentError(f"where chooses between Tensors and numbers, not {v!r}")
      first, second = (graph.constant(_common_type(x, y), v) for v in (x, y))
    dtype = least_upper_dtype(first.dtype, second.dtype)
    shape = graph.broadcast_shape("choose from", self.uop.shape, first.shape, second.shape)
    first, second = (graph.broadcast(graph.cast(u, dtype), shape) for u in (first, second))
    return self._new(graph.where(graph.broadcast(truth(self.uop), shape), first, second))

  def masked_fill(self, mask: Any, value: Any) -> Tensor:
    """value where mask is true, else self."""
    return self._tensor(mask).where(value, self)

  def const_like(self, b: ConstType, dtype: DTypeLike | None = None) -> Tensor:
    """A constant of this shape. Raises DTypeError for an int that the type does not hold."""
    kind = self.dtype if dtype is None else to_dtype(dtype)
    return self._new(graph.full(self.shape, kind, graph.check_number("fill", kind, b), self.device))

  def ufix(self, x: Any) -> Tensor:
    """x as an operand of this tensor: numbers take its type."""
    return x if isinstance(x, Handle) else self._new(self._other(x))  # type: ignore[return-value]  # the only class of tensors is Tensor

  # ***** Python's operators *****

  def __add__(self, x: Any) -> Tensor: return self._binary("add", Ops.ADD, x)
  def __radd__(self, x: Any) -> Tensor: return self._binary("add", Ops.ADD, x, True)
  def __sub__(self, x: Any) -> Tensor: return self.sub(x)
  def __rsub__(self, x: Any) -> Tensor: return self.sub(x, True)
  def __mul__(self, x: Any) -> Tensor: return self._binary("multiply", Ops.MUL, x)
  def __rmul__(self, x: Any) -> Tensor: return self._binary("multiply", Ops.MUL, x, True)
  def __truediv__(self, x: Any) -> Tensor: return self.div(x)
  def __rtruediv__(self, x: Any) -> Tensor: return self.div(x, True)
  def __floordiv__(self, x: Any) -> Tensor: return self.idiv(x)
  def __rfloordiv__(self, x: Any) -> Tensor: return self.idiv(x, True)
  def __mod__(self, x: Any) -> Tensor: return self.mod(x)
  def __rmod__(self, x: Any) -> Tensor: return self.mod(x, True)
  def __pow__(self, x: Any) -> Tensor: return self.pow(x)
  def __rpow__(self, x: Any) -> Tensor: return self.pow(x, True)
  def __neg__(self) -> Tensor: return self.neg()
  def __pos__(self) -> Tensor: return self._self()
  def __invert__(self) -> Tensor: return self.bitwise_not()
  def __abs__(self) -> Tensor: return self._self().abs()
  def __and__(self, x: Any) -> Tensor: return self.bitwise_and(x)
  def __rand__(self, x: Any) -> Tensor: return self.bitwise_and(x, True)
  def __or__(self, x: Any) -> Tensor: return self.bitwise_or(x)
  def __ror__(self, x: Any) -> Tensor: return self.bitwise_or(x, True)
  def __xor__(self, x: Any) -> Tensor: return self.bitwise_xor(x)
  def __rxor__(self, x: Any) -> Tensor: return self.bitwise_xor(x, True)
  def __lshift__(self, x: Any) -> Tensor: return self.lshift(x)
  def __rlshift__(self, x: Any) -> Tensor: return self.lshift(x, True)
  def __rshift__(self, x: Any) -> Tensor: return self.rshift(x)
  def __rrshift__(self, x: Any) -> Tensor: return self.rshift(x, True)
  def __lt__(self, x: Any) -> Tensor: return self._compare("compare", Ops.CMPLT, x)
  def __gt__(self, x: Any) -> Tensor: return self._compare("compare", Ops.CMPLT, x, True)
  def __ge__(self, x: Any) -> Tensor: return self._at_least(x, False)
  def __le__(self, x: Any) -> Tensor: return self._at_least(x, True)
  def __eq__(self, x: Any) -> Tensor: return self.eq(x)  # type: ignore[override]  # elementwise, as in every tensor library
  def __ne__(self, x: Any) -> Tensor: return self.ne(x)  # type: ignore[override]  # as above
  def __hash__(self) -> Int: return id(self)
  def __iadd__(self, x: Any) -> Tensor: return self._updated(self.add(x))
  def __isub__(self, x: Any) -> Tensor: return self._updated(self.sub(x))
  def __imul__(self, x: Any) -> Tensor: return self._updated(self.mul(x))
  def __itruediv__(self, x: Any) -> Tensor: return self._updated(self.div(x))
  def __ifloordiv__(self, x: Any) -> Tensor: return self._updated(self.idiv(x))
  def __ipow__(self, x: Any) -> Tensor: return self._updated(self.pow(x))
  def __iand__(self, x: Any) -> Tensor: return self._updated(self.bitwise_and(x))
  def __ior__(self, x: Any) -> Tensor: return self._updated(self.bitwise_or(x))
  def __ixor__(self, x: Any) -> Tensor: return self._updated(self.bitwise_xor(x))
  def __ilshift__(self, x: Any) -> Tensor: return self._updated(self.lshift(x))
  def __irshift__(self, x: Any) -> Tensor: return self._updated(self.rshift(x))

Bool: TypeAlias = bool  # the names are methods inside of the class
Int: TypeAlias = int
Float: TypeAlias = float

def _type_of(x: Any) -> str: return str(x.dtype) if isinstance(x, (Handle, UOp)) else type(x).__name__
def _countable(u: UOp) -> UOp: return graph.cast(u, dtypes.default_int) if u.dtype is dtypes.bool else u

def truth(u: UOp) -> UOp:
  """u as bool: whether it differs from zero."""
  return u if u.dtype is dtypes.bool else graph.compare(Ops.CMPNE, u, graph.like(u, 0))

def _common_type(x: ConstType, y: ConstType) -> DType: return least_upper_dtype(dtypes.from_py(x), dtypes.from_py(y))

def floor(u: UOp) -> UOp:
  """The largest integer not above u."""
  t = graph.unary(Ops.TRUNC, u)
  return graph.where(graph.compare(Ops.CMPLT, u, t), graph.binary(Ops.SUB, t, graph.like(t, 1)), t)

def _at_least_float32(u: UOp) -> UOp: return graph.cast(u, least_upper_dtype(u.dtype, dtypes.float32))

def _signs_differ(r: UOp, b: UOp) -> UOp:
  """True where r is not 0 and has another sign than b."""
  zero = graph.like(r, 0)
  other = graph.compare(Ops.CMPNE, graph.compare(Ops.CMPLT, r, zero), graph.compare(Ops.CMPLT, b, zero))
  return graph.binary(Ops.AND, graph.compare(Ops.CMPNE, r, zero), other)

def _rest(a: UOp, q: UOp, b: UOp) -> UOp:
  """a - q*b, exactly where q is the quotient rounded to a whole number, or to its type."""
  return graph.node(Ops.MULACC, a.dtype, (graph.negate(q), b, a), None, a.shape)

def _floor_divide(a: UOp, b: UOp) -> UOp:
  """The exact quotient rounded down, as Python has it: what a / b is rounded up to is known by the rest's sign. a / 0 where b is 0.

  -1 where a negative quotient is so small that it is 0 as a float, as it is for an infinite b. NaN for an infinite a.
  """
  if not dtypes.is_float(a.dtype): return graph.binary(Ops.IDIV, _countable(a), _countable(b))
  narrow = a.dtype
  a, b = _at_least_float32(a), _at_least_float32(b)
  ratio = graph.binary(Ops.FDIV, a, b)
  q = floor(ratio)
  r = graph.where(graph.compare(Ops.CMPEQ, q, graph.like(q, 0)), a, _rest(a, q, b))
  below = graph.where(_signs_differ(r, b), graph.binary(Ops.SUB, q, graph.like(q, 1)), q)
  endless = graph.compare(Ops.CMPEQ, graph.binary(Ops.SUB, a, a), graph.like(a, 0))  # false for NaN and infinity
  result = graph.where(endless, below, graph.like(q, math.nan))
  return graph.cast(graph.where(graph.compare(Ops.CMPEQ, b, graph.like(b, 0)), ratio, result), narrow)

def _truncate_divide(a: UOp, b: UOp) -> UOp:
  if dtypes.is_float(a.dtype): return graph.unary(Ops.TRUNC, graph.binary(Ops.FDIV, a, b))
  a, b = _countable(a), _countable(b)
  q = graph.binary(Ops.IDIV, a, b)
  if dtypes.is_unsigned(a.dtype): return q
  inexact = graph.compare(Ops.CMPNE, graph.mul(q, b), a)
  negative = graph.compare(Ops.CMPLT, q, graph.like(q, 0))
  there = graph.compare(Ops.CMPNE, b, graph.like(b, 0))
  up = graph.binary(Ops.AND, graph.binary(Ops.AND, inexact, negative), there)
  return graph.where(up, graph.add(q, graph.like(q, 1)), q)

def _remainder(a: UOp, b: UOp) -> UOp:
  """What is left of a after whole b's, with the sign of a; a itself where b is larger, be it infinite. For float32 and float64.

  Each step is exact: the quotient, rounded to the type and to a whole number, leaves a rest that a float holds, one type's mantissa smaller. So the
  result is exact while a / b is below 2**71 (float32) or 2**158 (float64), and NaN beyond, as for b = 0 and infinite a. A quotient that was rounded
  up leaves a rest with the other sign.
  """
  r = a
  for _ in range(_STEPS):
    q = graph.unary(Ops.TRUNC, graph.binary(Ops.FDIV, r, b))
    r = graph.where(graph.compare(Ops.CMPEQ, q, graph.like(q, 0)), r, _rest(r, q, b))
  size = graph.where(graph.compare(Ops.CMPLT, b, graph.like(b, 0)), graph.negate(b), b)
  zero = graph.like(a, 0)
  negative = graph.compare(Ops.CMPLT, a, zero)
  back = graph.where(negative, graph.negate(size), size)
  r = graph.where(_signs_differ(r, a), graph.add(r, back), r)
  magnitude = graph.where(graph.compare(Ops.CMPLT, r, zero), graph.negate(r), r)
  r = graph.where(graph.compare(Ops.CMPLT, magnitude, size), r, graph.like(r, math.nan))
  signed = graph.where(negative, graph.like(a, -0.0), graph.mul(a, zero))
  return graph.where(graph.compare(Ops.CMPEQ, r, zero), signed, r)

def _multiplied(u: UOp, n: Int) -> UOp:
  """u ** n for n >= 1, by squaring."""
  result: UOp | None = None
  while n:
    if n & 1: result = u if result is None else graph.mul(result, u)
    n >>= 1
    if n: u = graph.mul(u, u)
  assert result is not None
  return result

def _power_constant(u: UOp, x: ConstType) -> UOp:
  """u ** x for a Python number: multiplications, a square root or a reciprocal where these are exact enough."""
  if not dtypes.is_float(u.dtype):
    if isinstance(x, Float): u = graph.cast(u, least_upper_float(u.dtype))
    elif x < 0: raise ArgumentError(f"cannot raise {u.dtype} to the power {x}: integers have no reciprocals; use {float(x)} for floats")
    else:
      u = _countable(u)
      return graph.full(u.shape, u.dtype, 1, u.device) if x == 0 else _multiplied(u, Int(x))
  if x == 0: return graph.where(graph.full(u.shape, dtypes.bool, True), graph.full(u.shape, u.dtype, 1, u.device), u)   # with a gradient, of 0
  if x == 0.5: return graph.unary(Ops.SQRT, u)
  if x == -0.5: return graph.unary(Ops.RECIPROCAL, graph.unary(Ops.SQRT, u))
  if x in _PRODUCTS: return _multiplied(u if x > 0 else graph.unary(Ops.RECIPROCAL, u), abs(Int(x)))
  return graph.binary(Ops.POW, u, graph.like(u, x))

def _power_integers(a: UOp, b: UOp) -> UOp:
  """a ** b for integers, by squaring over the bits of b, with the type's wrapping; 0 for negative b unless a is 1 or -1."""
  bits = b.dtype.bitsize - (not dtypes.is_unsigned(b.dtype))
  one, result, square = graph.like(b, 1), graph.like(a, 1), a
  for i in range(bits):
    bit = graph.binary(Ops.AND, graph.binary(Ops.SHR, b, graph.like(b, i)) if i else b, one)
    result = graph.where(graph.compare(Ops.CMPNE, bit, graph.like(b, 0)), graph.mul(result, square), result)
    if i < bits - 1: square = graph.mul(square, square)
  if dtypes.is_unsigned(b.dtype): return result
  unit = graph.binary(Ops.OR, graph.compare(Ops.CMPEQ, a, graph.like(a, 1)), graph.compare(Ops.CMPEQ, a, graph.like(a, -1)))
  negative = graph.compare(Ops.CMPLT, b, graph.like(b, 0))
  odd = graph.compare(Ops.CMPNE, graph.binary(Ops.AND, b, one), graph.like(b, 0))
  unit_power = graph.where(unit, graph.where(odd, a, graph.like(a, 1)), graph.like(a, 0))
  return graph.where(negative, unit_power, result)
