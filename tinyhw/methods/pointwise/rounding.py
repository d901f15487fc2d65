"""Functions of one element whose results are exact: signs, rounding, tests for NaN and infinity, limits."""
from __future__ import annotations
import math
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import dtypes, least_upper_float
from tinyhw.errors import ArgumentError
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import flag
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.quotients import floor
from tinyhw.methods.pointwise.elementwise import Elementwise
from tinyhw.uop.enums import Ops
if TYPE_CHECKING: from tinyhw.tensor import Tensor

class Rounding(Elementwise):
  """Methods for signs, rounding, tests and limits."""
  __slots__ = ()

  def _float(self) -> Tensor: return self.cast(least_upper_float(self.dtype))

  # ***** signs *****

  def abs(self) -> Tensor:
    """Return the absolute value. Its gradient at 0 is 0.

    >>> Tensor([-1.5, 2.0]).abs().realize()
    <Tensor (2,) float32 on CPU, realized: [1.5, 2.0]>
    """
    if dtypes.is_unsigned(self.dtype) or self.dtype is dtypes.bool: return self._own()
    # 0 - x is 0.0 for both zeros. The maximum of equal operands is the first.
    return self.sub(0, reverse=True).maximum(self)

  def sign(self) -> Tensor:
    """Return -1, 0 or 1; NaN for NaN, as NumPy does.

    >>> Tensor([-3.0, 0.0, 5.0]).sign().tolist()
    [-1.0, 0.0, 1.0]
    """
    if self.dtype is dtypes.bool: return self._own()
    if dtypes.is_unsigned(self.dtype): return self.gt(0).cast(self.dtype)
    zero = self.mul(0).add(0) if dtypes.is_float(self.dtype) else self.const_like(0)  # 0.0 even for -0.0
    return self.lt(0).where(self.const_like(-1), self.gt(0).where(self.const_like(1), zero.detach()))

  def copysign(self, other: Any) -> Tensor:
    """Return the magnitude of self with the sign of other. The sign of a zero counts.

    >>> Tensor([1.0, -2.0]).copysign(-1.0).tolist()
    [-1.0, -2.0]
    """
    x, signs = self._float(), self._tensor(other)
    negative = signs.lt(0).bitwise_or(signs.eq(0).bitwise_and(signs._float().reciprocal().lt(0)))
    return negative.where(x.abs().neg(), x.abs())

  def _magnitude(self) -> Tensor:
    """Return the absolute value with gradient 1 at 0. An odd function computed from it then has the right gradient
    there."""
    return self.lt(0).where(self.neg(), self)

  def _with_sign_of(self, x: Handle) -> Tensor:
    """Return self where x >= 0, else -self, for self >= 0. Odd functions use it to extend their positive half."""
    return self._new(x.uop).lt(0).where(self.neg(), self)

  # ***** whole numbers *****

  def trunc(self) -> Tensor:
    """Round to zero.

    >>> Tensor([-1.5, 1.5]).trunc().realize()
    <Tensor (2,) float32 on CPU, realized: [-1.0, 1.0]>
    """
    return self._new(graph.unary(Ops.TRUNC, self.uop)) if dtypes.is_float(self.dtype) else self._own()

  def floor(self) -> Tensor:
    """Round down to integers.

    >>> Tensor([-1.5, 1.5]).floor().realize()
    <Tensor (2,) float32 on CPU, realized: [-2.0, 1.0]>
    """
    return self._new(floor(self.uop)) if dtypes.is_float(self.dtype) else self._own()

  def ceil(self) -> Tensor:
    """Round up to integers.

    >>> Tensor([-1.5, 1.5]).ceil().realize()
    <Tensor (2,) float32 on CPU, realized: [-1.0, 2.0]>
    """
    return self.neg().floor().neg() if dtypes.is_float(self.dtype) else self._own()

  def round(self) -> Tensor:
    """Round to the nearest integers, halves to even.

    >>> Tensor([0.5, 1.5, -1.4]).round().realize()
    <Tensor (3,) float32 on CPU, realized: [0.0, 2.0, -1.0]>
    """
    if not dtypes.is_float(self.dtype): return self._own()
    t = self.trunc()
    rest = self.sub(t).abs()
    odd = t.mul(0.5).trunc().ne(t.mul(0.5))
    away = rest.gt(0.5) | (rest.eq(0.5) & odd)
    return away.where(t.add(self.lt(0).where(-1, 1)), t)

  # ***** tests *****

  def isnan(self) -> Tensor:
    """Return True where an element is NaN.

    >>> Tensor([float("nan"), 1.0]).isnan().realize()
    <Tensor (2,) bool on CPU, realized: [True, False]>
    """
    return self.ne(self)

  def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Tensor:
    """Return True for infinities of the given signs.

    >>> Tensor([float("-inf"), 1.0]).isinf().realize()
    <Tensor (2,) bool on CPU, realized: [True, False]>
    """
    x = self._float()
    return x.eq(math.inf).bitwise_and(flag("detect_positive", detect_positive)).bitwise_or(
      x.eq(-math.inf).bitwise_and(flag("detect_negative", detect_negative)))

  def isfinite(self) -> Tensor:
    """Return True where an element is neither infinite nor NaN.

    >>> Tensor([float("inf"), 1.0]).isfinite().realize()
    <Tensor (2,) bool on CPU, realized: [False, True]>
    """
    return (self.isinf() | self.isnan()).logical_not()

  # ***** limits *****

  def clamp(self, min_: Any = None, max_: Any = None) -> Tensor:
    """Limit elements to min_..max_, which are numbers or tensors. The result is max_ where min_ is above it. NaN in any
    of them gives NaN.

    The gradient passes where nothing was clamped.

    >>> Tensor([-2.0, 0.5, 3.0]).clamp(0, 1).tolist()
    [0.0, 0.5, 1.0]
    """
    if min_ is None and max_ is None: raise ArgumentError("clamp needs min_, max_ or both")
    x = self._self()
    if min_ is not None and x._beyond(min_) >= 0: x = _or_nan(x.lt(min_), min_).where(min_, x)
    return x if max_ is None or x._beyond(max_) > 0 else _or_nan(x.gt(max_), max_).where(max_, x)

  def clip(self, min_: Any = None, max_: Any = None) -> Tensor:
    """Another name of clamp.

    >>> Tensor([1, 5, 9]).clip(min_=3).tolist()
    [3, 5, 9]
    """
    return self.clamp(min_, max_)

def _or_nan(condition: Tensor, limit: Any) -> Tensor:
  """Return True also where a tensor of limits is NaN. A number that is NaN makes all True."""
  if isinstance(limit, Handle): return condition | limit._self().isnan() if dtypes.is_float(limit.dtype) else condition
  return condition.bitwise_or(True) if limit != limit else condition
