"""Operators: arithmetic, comparison, bits, choice. Each is one node if the graph has the operation.

Types promote as in `dtype.least_upper_dtype`. Python numbers are weak: they take the tensor's type if it can hold their
kind. An int outside of the type's range compares by its value. Arithmetic refuses it, since it would wrap. `/` of
integers gives floats. `//` and `%` round to minus infinity, and give 0 where the divisor is the integer 0. Comparisons
with NaN are false, except `!=`.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import ConstType, DTypeLike, dtypes, least_upper_dtype, least_upper_float, to_dtype
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.methods.base import Handle, check_devices
from tinyhw.methods.checks import is_number, plain
from tinyhw.methods.graph import graph
from tinyhw.methods.pointwise.casts import TypeConversion, truth
from tinyhw.methods.graph.quotients import (
  at_least_float32, countable, floor_divide, floor_remainder, power_constant, power_integers, remainder,
  truncate_divide,
)
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_BOOL_OPS = {Ops.ADD: Ops.OR, Ops.MUL: Ops.AND, Ops.MAX: Ops.OR}

class Elementwise(TypeConversion):
  """Operators, and methods of the same meaning."""
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
    """Return the result of a comparison with a number outside of the range of the type."""
    return self._new(graph.full(self.shape, dtypes.bool, truth, self.uop.device))

  def _bits(self, what: str, op: Ops, x: Any, reverse: bool = False) -> Tensor:
    a, b = self._pair(what, x)
    if dtypes.is_float(a.dtype):
      raise DTypeError(f"cannot {what} bits of {self.dtype} and {_type_of(x)}; cast both to an integer type or bool "
                       f"first")
    if reverse: a, b = b, a
    return self._new(graph.binary(op, a, b))

  # ***** arithmetic *****

  def add(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self + x.

    >>> Tensor([1, 2]).add(Tensor([10, 20])).tolist()
    [11, 22]
    """
    return self._binary("add", Ops.ADD, x, reverse)

  def sub(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self - x. Raises DTypeError for two bools, as NumPy does.

    >>> Tensor([1, 2]).sub(1).tolist()
    [0, 1]
    """
    a, b = self._pair("subtract", x)
    if a.dtype is dtypes.bool:
      raise DTypeError(f"cannot subtract {_type_of(x)} from {self.dtype}; use ^, or cast one to an integer type")
    if reverse: a, b = b, a
    return self._new(graph.binary(Ops.SUB, a, b))

  def mul(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self * x.

    >>> Tensor([1, 2]).mul(1.5).tolist()
    [1.5, 3.0]
    """
    return self._binary("multiply", Ops.MUL, x, reverse)

  def div(self, x: Any, reverse: bool = False, rounding_mode: str | None = None) -> Tensor:
    """Return self / x, a float. rounding_mode "floor" is //. "trunc" rounds to zero, and gives integers for integers.

    >>> Tensor([7, -7]).div(2).tolist()
    [3.5, -3.5]
    """
    exact = rounding_mode is not None or not self._beyond(x)
    a, b = (self if exact else self.cast(least_upper_float(self.dtype)))._pair("divide", x)
    if reverse: a, b = b, a
    if rounding_mode == "floor": return self._new(floor_divide(a, b))
    if rounding_mode == "trunc": return self._new(truncate_divide(a, b))
    if rounding_mode is not None:
      raise ArgumentError(f"rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")
    dtype = least_upper_float(a.dtype)
    return self._new(graph.binary(Ops.FDIV, graph.cast(a, dtype), graph.cast(b, dtype)))

  def idiv(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self // x.

    >>> Tensor([7, -7]).idiv(2).tolist()
    [3, -4]
    """
    return self.div(x, reverse, rounding_mode="floor")

  def mod(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self % x, with the sign of the divisor, as in Python and NumPy. It is 0 where the divisor is the integer
    0, NaN for the float 0.

    For floats it is exact if the quotient is below 2**71 (float64: 2**158). Beyond that it is exact or NaN.

    >>> (Tensor([-7, 7]) % Tensor([3, -3])).tolist()
    [2, -2]
    """
    a, b = self._pair("take the remainder of", x)
    if reverse: a, b = b, a
    if not dtypes.is_float(a.dtype): return self._new(graph.binary(Ops.MOD, countable(a), countable(b)))
    narrow = a.dtype
    a, b = at_least_float32(a), at_least_float32(b)
    return self._new(graph.cast(floor_remainder(a, b), narrow))

  def fmod(self, x: Any) -> Tensor:
    """Return the remainder with the sign of self, as C's fmod. For floats it is exact if the quotient is below 2**71
    (float64: 2**158). Beyond that it is exact or NaN.

    >>> Tensor([-7, 7]).fmod(Tensor([3, -3])).tolist()
    [-1, 1]
    """
    a, b = self._pair("take the remainder of", x)
    if dtypes.is_float(a.dtype):
      return self._new(graph.cast(remainder(at_least_float32(a), at_least_float32(b)), a.dtype))
    a, b = countable(a), countable(b)
    return self._new(graph.binary(Ops.SUB, a, graph.mul(truncate_divide(a, b), b)))

  def pow(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self ** x. Integers to integer powers stay integers. Integers to a negative Python int raise
    ArgumentError.

    x = 0.5 is sqrt, as in PyTorch and NumPy: NaN for -inf and -0.0 for -0.0, where C's pow has inf and 0.0.

    >>> Tensor([1.0, 2.0, 3.0]).pow(2).tolist()
    [1.0, 4.0, 9.0]
    """
    x = plain(x)
    if type(x) in (int, float, bool) and not reverse: return self._own(power_constant(self.uop, x))
    a, b = self._pair("raise", x)
    if reverse: a, b = b, a
    if not dtypes.is_float(a.dtype): return self._new(power_integers(countable(a), countable(b)))
    return self._new(graph.binary(Ops.POW, a, b))

  def maximum(self, x: Any) -> Tensor:
    """Return the larger of each pair, or NaN if either is NaN. Equal elements share the gradient.

    >>> Tensor([1.0, 5.0]).maximum(3).tolist()
    [3.0, 5.0]
    """
    if self._beyond(x) < 0: return self.add(0)
    return self._binary("take the maximum of", Ops.MAX, x)

  def minimum(self, x: Any) -> Tensor:
    """Return the smaller of each pair, or NaN if either is NaN. Equal elements share the gradient.

    >>> Tensor([1.0, 5.0]).minimum(3).tolist()
    [1.0, 3.0]
    """
    if self._beyond(x) > 0: return self.add(0)
    a, b = self._pair("take the minimum of", x)
    if dtypes.is_float(a.dtype): return self._new(graph.negate(graph.binary(Ops.MAX, graph.negate(a), graph.negate(b))))
    return self._new(graph.where(graph.compare(Ops.CMPLT, b, a), b, a))

  def neg(self) -> Tensor:
    """Return -self. For bool it is `not`.

    >>> Tensor([1, -2]).neg().tolist()
    [-1, 2]
    """
    return self.logical_not() if self.dtype is dtypes.bool else self._new(graph.negate(self.uop))

  # ***** bits and truth *****

  def bitwise_and(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self & x, for integers or bools. Raises DTypeError for floats.

    >>> Tensor([6, 5]).bitwise_and(3).tolist()
    [2, 1]
    """
    return self._bits("and", Ops.AND, x, reverse)

  def bitwise_or(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self | x, for integers or bools. Raises DTypeError for floats.

    >>> Tensor([6, 5]).bitwise_or(1).tolist()
    [7, 5]
    """
    return self._bits("or", Ops.OR, x, reverse)

  def bitwise_xor(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self ^ x, for integers or bools. Raises DTypeError for floats.

    >>> Tensor([6, 5]).bitwise_xor(3).tolist()
    [5, 6]
    """
    return self._bits("xor", Ops.XOR, x, reverse)

  def lshift(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self << x, for integers. It is 0 where x is not below the number of bits. Raises DTypeError for floats.

    >>> Tensor([1, 3]).lshift(2).tolist()
    [4, 12]
    """
    return self._bits("shift", Ops.SHL, x, reverse)

  def rshift(self, x: Any, reverse: bool = False) -> Tensor:
    """Return self >> x, for integers. Signed integers keep their sign. Raises DTypeError for floats.

    >>> Tensor([9, -9]).rshift(1).tolist()
    [4, -5]
    """
    return self._bits("shift", Ops.SHR, x, reverse)

  def bitwise_not(self) -> Tensor:
    """Invert all bits. For bool it is `not`.

    >>> Tensor([0, 5]).bitwise_not().tolist()
    [-1, -6]
    """
    if self.dtype is dtypes.bool: return self.logical_not()
    if dtypes.is_float(self.dtype):
      raise DTypeError(f"cannot invert the bits of {self.dtype}; bitcast it to an integer type first")
    return self._new(graph.binary(Ops.XOR, self.uop, graph.like(self.uop, -1)))

  def logical_not(self) -> Tensor:
    """Return True where self is zero or False.

    >>> Tensor([0, 5]).logical_not().tolist()
    [True, False]
    """
    u = truth(self.uop)
    return self._new(graph.binary(Ops.XOR, u, graph.like(u, True)))

  # ***** comparison *****

  def eq(self, x: Any) -> Tensor:
    """Return self == x, as bools.

    >>> Tensor([1, 2]).eq(2).tolist()
    [False, True]
    """
    return self._compare("compare", Ops.CMPEQ, x)

  def ne(self, x: Any) -> Tensor:
    """Return self != x, as bools. It is True for NaN.

    >>> Tensor([1, 2]).ne(2).tolist()
    [True, False]
    """
    return self._compare("compare", Ops.CMPNE, x)

  def gt(self, x: Any) -> Tensor:
    """Return self > x, as bools.

    >>> Tensor([1, 2, 3]).gt(2).tolist()
    [False, False, True]
    """
    return self._compare("compare", Ops.CMPLT, x, True)

  def lt(self, x: Any) -> Tensor:
    """Return self < x, as bools.

    >>> Tensor([1, 2, 3]).lt(2).tolist()
    [True, False, False]
    """
    return self._compare("compare", Ops.CMPLT, x)

  def ge(self, x: Any) -> Tensor:
    """Return self >= x, as bools.

    >>> Tensor([1, 2, 3]).ge(2).tolist()
    [False, True, True]
    """
    return self._at_least(x, False)

  def le(self, x: Any) -> Tensor:
    """Return self <= x, as bools.

    >>> Tensor([1, 2, 3]).le(2).tolist()
    [True, True, False]
    """
    return self._at_least(x, True)

  def _at_least(self, x: Any, reverse: bool) -> Tensor:
    """Return self >= x, or x >= self if reversed. Integers need one comparison. Floats need two, because of NaN."""
    beyond = self._beyond(x)
    if beyond: return self._everywhere((beyond > 0) is reverse)
    a, b = self._pair("compare", x)
    if reverse: a, b = b, a
    less = graph.compare(Ops.CMPLT, a, b)
    if not dtypes.is_float(a.dtype): return self._new(graph.binary(Ops.XOR, less, graph.like(less, True)))
    return self._new(graph.binary(Ops.OR, graph.compare(Ops.CMPLT, b, a), graph.compare(Ops.CMPEQ, a, b)))

  # ***** choice *****

  def where(self, x: Any, y: Any) -> Tensor:
    """Return x where self is true, else y. All three broadcast, and x and y promote to one type.

    >>> Tensor([True, False]).where(Tensor([1, 2]), 0).tolist()
    [1, 0]
    """
    if isinstance(x, Handle): first, second = x.uop, x._other(y)
    elif isinstance(y, Handle): first, second = y._other(x), y.uop
    else:
      for v in (x, y):
        if not is_number(v) and not isinstance(v, UOp):
          raise ArgumentError(f"where chooses between Tensors and numbers, not {v!r}")
      first, second = _chosen(plain(x), plain(y))
    for a, b in ((self.uop, first), (self.uop, second), (first, second)): check_devices("choose from", a, b)
    dtype = least_upper_dtype(first.dtype, second.dtype)
    shape = graph.broadcast_shape("choose from", self.uop.shape, first.shape, second.shape)
    first, second = (graph.broadcast(graph.cast(u, dtype), shape) for u in (first, second))
    return self._new(graph.where(graph.broadcast(truth(self.uop), shape), first, second))

  def masked_fill(self, mask: Any, value: Any) -> Tensor:
    """Return value where mask is true, else self.

    >>> Tensor([1, 2]).masked_fill(Tensor([True, False]), 9).tolist()
    [9, 2]
    """
    return self._tensor(mask).where(value, self)

  def const_like(self, b: ConstType, dtype: DTypeLike | None = None) -> Tensor:
    """Return a constant of this shape. Raises DTypeError for an int that the type does not hold.

    >>> Tensor([1, 2]).const_like(3).tolist()
    [3, 3]
    """
    kind = self.dtype if dtype is None else to_dtype(dtype)
    return self._new(graph.full(self.shape, kind, graph.check_number("fill", kind, b), self.device))

  def ufix(self, x: Any) -> Tensor:
    """Return x as an operand of this tensor. Numbers take its type.

    >>> Tensor([1.5]).ufix(3).dtype
    dtypes.float32
    """
    # the only class of tensors is Tensor
    return x if isinstance(x, Handle) else self._new(self._other(x))  # type: ignore[return-value]

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
  # elementwise, as in every tensor library
  def __eq__(self, x: Any) -> Tensor: return self.eq(x)  # type: ignore[override]
  def __ne__(self, x: Any) -> Tensor: return self.ne(x)  # type: ignore[override]  # as above
  def __hash__(self) -> int: return id(self)
  def __iadd__(self, x: Any) -> Tensor: return self._in_place(self.add, x)
  def __isub__(self, x: Any) -> Tensor: return self._in_place(self.sub, x)
  def __imul__(self, x: Any) -> Tensor: return self._in_place(self.mul, x)
  def __itruediv__(self, x: Any) -> Tensor: return self._in_place(self.div, x)
  def __ifloordiv__(self, x: Any) -> Tensor: return self._in_place(self.idiv, x)
  def __ipow__(self, x: Any) -> Tensor: return self._in_place(self.pow, x)
  def __iand__(self, x: Any) -> Tensor: return self._in_place(self.bitwise_and, x)
  def __ior__(self, x: Any) -> Tensor: return self._in_place(self.bitwise_or, x)
  def __ixor__(self, x: Any) -> Tensor: return self._in_place(self.bitwise_xor, x)
  def __ilshift__(self, x: Any) -> Tensor: return self._in_place(self.lshift, x)
  def __irshift__(self, x: Any) -> Tensor: return self._in_place(self.rshift, x)

def _type_of(x: Any) -> str: return str(x.dtype) if isinstance(x, (Handle, UOp)) else type(x).__name__

def _chosen(*numbers: ConstType | UOp) -> list[UOp]:
  """Return numbers as constants of one type. Some of them may be made of Variables."""
  dtype = least_upper_dtype(*[graph.element(x).dtype if isinstance(x, UOp) else dtypes.from_py(x) for x in numbers])
  return [graph.element(x, dtype) if isinstance(x, UOp) else graph.constant(dtype, x) for x in numbers]
