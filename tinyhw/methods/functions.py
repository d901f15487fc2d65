"""Functions of one element: rounding, exponentials, trigonometry, activations.

Exponential and trigonometric functions are nodes of the graph, as accurate as codegen makes them; what is built from them here avoids overflow and
cancellation, in the gradient too. Integers become the default float type where the result is not an integer.
"""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import dtypes, least_upper_float
from tinyhw.errors import ArgumentError
from tinyhw.methods import graph
from tinyhw.methods.checks import real
from tinyhw.methods.base import Handle
from tinyhw.methods.elementwise import Elementwise, floor
from tinyhw.uop.enums import Ops
if TYPE_CHECKING: from tinyhw.tensor import Tensor

class Functions(Elementwise):
  """Mathematical functions and activations."""
  __slots__ = ()

  def _function(self, op: Ops) -> Tensor:
    u = self.uop
    return self._new(graph.unary(op, graph.cast(u, least_upper_float(u.dtype))))

  def _float(self) -> Tensor: return self.cast(least_upper_float(self.dtype))

  def _precisely(self, f: Callable[[Tensor], Tensor]) -> Tensor:
    """f, which is made of several operations, of floats of at least 32 bits, and its result rounded once to this type (of integers: the default)."""
    out = least_upper_float(self.dtype)
    return f(self.cast(graph.accumulator(out))).cast(out)

  # ***** powers, exponentials, logarithms *****

  def sqrt(self) -> Tensor:
    """The square root; NaN below 0."""
    return self._function(Ops.SQRT)

  def _root(self) -> Tensor:
    """sqrt whose gradient at 0 is 0: for norms and deviations, which have a lowest point there."""
    positive = self.ne(0)
    return positive.where(positive.where(self, 1).sqrt(), 0)

  def rsqrt(self) -> Tensor:
    """1 / sqrt(self)."""
    return self.sqrt().reciprocal()

  def reciprocal(self) -> Tensor:
    """1 / self."""
    return self._function(Ops.RECIPROCAL)

  def square(self) -> Tensor:
    """self * self."""
    return self.mul(self)

  def exp(self) -> Tensor:
    """e ** self."""
    return self._function(Ops.EXP)

  def exp2(self) -> Tensor:
    """2 ** self."""
    return self._function(Ops.EXP2)

  def log(self) -> Tensor:
    """The natural logarithm; -inf for 0, NaN below."""
    return self._function(Ops.LOG)

  def log2(self) -> Tensor:
    """The logarithm to base 2; -inf for 0, NaN below."""
    return self._function(Ops.LOG2)

  def log10(self) -> Tensor:
    """The logarithm to base 10; -inf for 0, NaN below."""
    return self._precisely(lambda x: x.log2().mul(math.log10(2)))

  def _log1p(self) -> Tensor:
    """log(1 + self), accurate near 0: the rounding error of 1 + self is undone by a factor. Source: Kahan; Goldberg 1991, theorem 4."""
    u = self.add(1)
    exact = u.eq(1) | u.eq(math.inf)
    factor = exact.where(1, self.div(exact.where(1, u.sub(1))))
    return exact.where(self, u.log().mul(factor.detach()))

  # ***** trigonometry *****

  def sin(self) -> Tensor:
    """The sine of radians, of any size."""
    return self._function(Ops.SIN)

  def cos(self) -> Tensor:
    """The cosine of radians, of any size."""
    return self._function(Ops.COS)

  def tan(self) -> Tensor:
    """The tangent of radians, of any size."""
    return self._precisely(lambda x: x.sin().div(x.cos()))

  def atan(self) -> Tensor:
    """The angle whose tangent this is, from -pi/2 to pi/2."""
    return self._precisely(_arc_tangent)

  def asin(self) -> Tensor:
    """NaN outside of -1..1."""
    return self._precisely(lambda x: x.div(x.neg().add(1).mul(x.add(1)).sqrt()).atan())

  def acos(self) -> Tensor:
    """NaN outside of -1..1. Through the half angle, so that it is accurate near 1."""
    return self._precisely(lambda x: x.neg().add(1).div(x.add(1)).sqrt().atan().mul(2))

  def sinh(self) -> Tensor:
    """(exp(x) - exp(-x)) / 2, finite up to the type's largest number."""
    return self._precisely(_hyperbolic_sine)

  def cosh(self) -> Tensor:
    """(exp(x) + exp(-x)) / 2, finite up to the type's largest number."""
    return self._precisely(_hyperbolic_cosine)

  def tanh(self) -> Tensor:
    """The hyperbolic tangent."""
    return self._function(Ops.TANH)

  def asinh(self) -> Tensor:
    """The inverse of sinh."""
    return self._precisely(_inverse_hyperbolic_sine)

  def acosh(self) -> Tensor:
    """The inverse of cosh; NaN below 1."""
    return self._precisely(_inverse_hyperbolic_cosine)

  def atanh(self) -> Tensor:
    """The inverse of tanh; NaN outside of -1..1."""
    return self._precisely(_inverse_hyperbolic_tangent)

  def erf(self) -> Tensor:
    """The error function."""
    return self._function(Ops.ERF)

  # ***** signs and rounding *****

  def abs(self) -> Tensor:
    """The absolute value; its gradient at 0 is 0."""
    if dtypes.is_unsigned(self.dtype) or self.dtype is dtypes.bool: return self._own()
    return self.sub(0, reverse=True).maximum(self)  # 0 - x is 0.0 for both zeros, and of equal operands the first is the maximum

  def sign(self) -> Tensor:
    """-1, 0 or 1; NaN for NaN, as NumPy has it.

    >>> Tensor([-3.0, 0.0, 5.0]).sign().tolist()
    [-1.0, 0.0, 1.0]
    """
    if self.dtype is dtypes.bool: return self._own()
    if dtypes.is_unsigned(self.dtype): return self.gt(0).cast(self.dtype)
    zero = self.mul(0).add(0) if dtypes.is_float(self.dtype) else self.const_like(0)  # 0.0 for -0.0 too
    return self.lt(0).where(self.const_like(-1), self.gt(0).where(self.const_like(1), zero.detach()))

  def copysign(self, other: Any) -> Tensor:
    """The magnitude of self with the sign of other; a zero's sign counts."""
    x, signs = self._float(), self._tensor(other)
    negative = signs.lt(0).bitwise_or(signs.eq(0).bitwise_and(signs._float().reciprocal().lt(0)))
    return negative.where(x.abs().neg(), x.abs())

  def _magnitude(self) -> Tensor:
    """The absolute value with gradient 1 at 0, so that an odd function of it has its own gradient there."""
    return self.lt(0).where(self.neg(), self)

  def _with_sign_of(self, x: Handle) -> Tensor:
    """For self >= 0: self where x >= 0, else -self. Odd functions from their positive half."""
    return self._new(x.uop).lt(0).where(self.neg(), self)

  def trunc(self) -> Tensor:
    """Rounded to zero."""
    return self._new(graph.unary(Ops.TRUNC, self.uop)) if dtypes.is_float(self.dtype) else self._own()

  def floor(self) -> Tensor:
    """The largest integers not above."""
    return self._new(floor(self.uop)) if dtypes.is_float(self.dtype) else self._own()

  def ceil(self) -> Tensor:
    """The smallest integers not below."""
    return self.neg().floor().neg() if dtypes.is_float(self.dtype) else self._own()

  def round(self) -> Tensor:
    """Rounded to nearest, halves to even."""
    if not dtypes.is_float(self.dtype): return self._own()
    t = self.trunc()
    rest = self.sub(t).abs()
    odd = t.mul(0.5).trunc().ne(t.mul(0.5))
    away = rest.gt(0.5) | (rest.eq(0.5) & odd)
    return away.where(t.add(self.lt(0).where(-1, 1)), t)

  def isnan(self) -> Tensor:
    """True where an element is NaN."""
    return self.ne(self)

  def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Tensor:
    """True for infinities of the signs asked for."""
    x = self._float()
    return x.eq(math.inf).bitwise_and(detect_positive).bitwise_or(x.eq(-math.inf).bitwise_and(detect_negative))

  def isfinite(self) -> Tensor:
    """True where an element is neither infinite nor NaN."""
    return (self.isinf() | self.isnan()).logical_not()

  def gt(self, x: Any) -> Tensor:
    """self > x, as bools."""
    return self._compare("compare", Ops.CMPLT, x, True)

  def lt(self, x: Any) -> Tensor:
    """self < x, as bools."""
    return self._compare("compare", Ops.CMPLT, x)

  def ge(self, x: Any) -> Tensor:
    """self >= x, as bools."""
    return self._at_least(x, False)

  def le(self, x: Any) -> Tensor:
    """self <= x, as bools."""
    return self._at_least(x, True)

  def clamp(self, min_: Any = None, max_: Any = None) -> Tensor:
    """Not below min_, not above max_, which are numbers or tensors; max_ where min_ is above it. NaN in any of them gives NaN.

    The gradient passes where nothing was cut.

    >>> Tensor([-2.0, 0.5, 3.0]).clamp(0, 1).tolist()
    [0.0, 0.5, 1.0]
    """
    if min_ is None and max_ is None: raise ArgumentError("clamp needs min_, max_ or both")
    x = self._self()
    if min_ is not None and x._beyond(min_) >= 0: x = _or_nan(x.lt(min_), min_).where(min_, x)
    return x if max_ is None or x._beyond(max_) > 0 else _or_nan(x.gt(max_), max_).where(max_, x)

  def clip(self, min_: Any = None, max_: Any = None) -> Tensor:
    """Another name of clamp."""
    return self.clamp(min_, max_)

  def lerp(self, end: Any, weight: Any) -> Tensor:
    """self + (end - self) * weight, and from the other end for weights from 0.5 on: exactly `end` for weight 1.

    >>> Tensor([0.0, 10.0]).lerp(Tensor([4.0, 20.0]), 0.25).tolist()
    [1.0, 12.5]
    """
    end = self.ufix(end)
    distance = end.sub(self)
    if isinstance(weight, (int, float)): return self.add(distance.mul(weight)) if weight < 0.5 else end.sub(distance.mul(1 - weight))
    share = self._tensor(weight)
    return share.lt(0.5).where(self.add(distance.mul(share)), end.sub(distance.mul(share.sub(1, reverse=True))))

  def logaddexp(self, other: Any) -> Tensor:
    """log(exp(self) + exp(other)) without overflow."""
    a, b = self._pair("add exponentials of", other)
    out = least_upper_float(a.dtype)
    wide = graph.accumulator(out)
    x, y = self._new(graph.cast(a, wide)), self._new(graph.cast(b, wide))
    same = x.eq(y)  # also infinities of one sign, whose difference would be NaN
    distance = same.where(0, x.sub(y))
    return x.maximum(y).add(distance.lt(0).where(distance, distance.neg()).exp()._log1p()).cast(out)

  def detach(self) -> Tensor:
    """The same values, through which no gradient flows."""
    return self._new(graph.detach(self.uop))

  def contiguous(self, **kwargs: Any) -> Tensor:
    """The same values, in memory of their own, in order. Limits fusion."""
    return self._new(graph.contiguous(self.uop))

  def contiguous_backward(self) -> Tensor:
    """The same values; the gradient that arrives here is put into memory."""
    return self._new(graph.unary(Ops.CONTIGUOUS_BACKWARD, self.uop))

  # ***** activations *****

  def relu(self) -> Tensor:
    """max(self, 0); its gradient at 0 is 0. NaN stays.

    >>> Tensor([-1.0, 2.0]).relu().tolist()
    [0.0, 2.0]
    """
    u = self.uop
    zero = graph.like(u, 0)
    otherwise = graph.detach(graph.binary(Ops.MAX, u, zero)) if dtypes.is_float(u.dtype) else zero
    return self._new(graph.where(graph.compare(Ops.CMPLT, zero, u), u, otherwise))

  def sigmoid(self) -> Tensor:
    """1 / (1 + exp(-self)), in the form that does not overflow on either side."""
    return self._precisely(_logistic)

  def logsigmoid(self) -> Tensor:
    """log(sigmoid(self)) without overflow."""
    return self.neg().softplus().neg()

  def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Tensor:
    """alpha * self + beta, cut to 0..1; the gradient at the limits is 0."""
    return self.mul(alpha).add(beta).hardtanh(0, 1)

  def hardswish(self) -> Tensor:
    """self * relu6(self + 3) / 6."""
    return self.mul(self.add(3).relu6()).mul(1 / 6)

  def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Tensor:
    """self, cut to min_val..max_val. Other than that of clamp, the gradient at the limits is 0."""
    x = self.le(min_val).where(min_val, self)
    return x.ge(max_val).where(max_val, x)

  def relu6(self) -> Tensor:
    """self, cut to 0..6; the gradient at the limits is 0."""
    return self.hardtanh(0, 6)

  def silu(self) -> Tensor:
    """self * sigmoid(self)."""
    return self._precisely(lambda x: x.mul(_logistic(x)))

  def swish(self) -> Tensor:
    """Another name of silu."""
    return self.silu()

  def quick_gelu(self) -> Tensor:
    """self * sigmoid(1.702 * self), which is about gelu."""
    return self._precisely(lambda x: x.mul(_logistic(x.mul(1.702))))

  def mish(self) -> Tensor:
    """self * tanh(softplus(self))."""
    return self._precisely(lambda x: x.mul(x.softplus().tanh()))

  def softsign(self) -> Tensor:
    """self / (1 + abs(self))."""
    return self.div(self.abs().add(1))

  def leaky_relu(self, neg_slope: float = 0.01) -> Tensor:
    """self where positive, else neg_slope * self."""
    return self.gt(0).where(self, self.mul(neg_slope))

  def elu(self, alpha: float = 1.0) -> Tensor:
    """self where positive, else alpha * (exp(self) - 1)."""
    return self.gt(0).where(self, self._expm1_below(1.0).mul(alpha))

  def celu(self, alpha: float = 1.0) -> Tensor:
    """self where positive, else alpha * (exp(self / alpha) - 1)."""
    alpha = real("alpha", alpha)
    if alpha == 0: raise ArgumentError("celu divides by alpha, which is 0; use relu()")
    return self.gt(0).where(self, self._expm1_below(1 / alpha).mul(alpha))

  def selu(self, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Tensor:
    """gamma times elu; with these numbers, what goes through layers keeps mean 0 and variance 1. Source: Klambauer et al. 2017."""
    return self.elu(alpha).mul(gamma)

  def softplus(self, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta * self)) / beta."""
    beta = real("beta", beta)
    if beta == 0: raise ArgumentError("softplus divides by beta, which is 0; use another")
    def smooth(x: Tensor) -> Tensor:
      y = x if beta == 1 else x.mul(beta)
      return y.logaddexp(0) if beta == 1 else y.logaddexp(0).div(beta)
    return self._precisely(smooth)

  def gelu(self, approximate: str = "tanh") -> Tensor:
    """x times the normal distribution's cumulative function: "tanh" approximates it, "none" uses erf."""
    if approximate == "none": return self._precisely(lambda x: x.mul(0.5).mul(x.mul(1 / math.sqrt(2)).erf().add(1)))
    if approximate != "tanh": raise ArgumentError(f"approximate is 'tanh' or 'none', not {approximate!r}")
    # (1 + tanh(u)) / 2 is the logistic function of 2 * u, without cancellation
    return self._precisely(lambda x: x.mul(_logistic(x.square().mul(0.044715).add(1).mul(x).mul(2 * math.sqrt(2 / math.pi)))))

  def _expm1_below(self, factor: float) -> Tensor:
    """exp(factor * x) - 1 for x <= 0, and 0 above, so that no gradient there overflows."""
    def below(x: Tensor) -> Tensor:
      t = x.clamp(None, 0).mul(factor * 0.5).tanh()
      return t.mul(2).div(t.neg().add(1))
    return self._precisely(below)

def _or_nan(condition: Tensor, limit: Any) -> Tensor:
  """Also true where a tensor of limits is NaN; numbers are not looked at, unless they are NaN."""
  if isinstance(limit, Handle): return condition | limit._self().isnan() if dtypes.is_float(limit.dtype) else condition
  return condition.bitwise_or(True) if limit != limit else condition

def _outweighs_one(x: Functions) -> float:
  """A number from which on 1 + x * x rounds to x * x."""
  return 2.0 ** ((dtypes.finfo(x.dtype)[1] + 1) // 2 + 1)

# ***** functions of floats of at least 32 bits *****

def _logistic(x: Tensor) -> Tensor:
  """1 / (1 + exp(-x)), with an exponential that is never above 1."""
  e = x.lt(0).where(x, x.neg()).exp()
  return x.lt(0).where(e, 1).div(e.add(1))

def _arc_tangent(x: Tensor) -> Tensor:
  """Through |x| <= 1 (else pi/2 - atan(1/x)), halved twice, and the series: relative error below 3e-8 in float32, 1e-16 in float64."""
  size = x._magnitude()
  large = size.gt(1)
  r = large.where(large.where(size, 1).reciprocal(), size)
  for _ in range(2): r = r.div(r.square().add(1).sqrt().add(1))
  z, terms = r.square(), 12 if x.dtype is dtypes.float64 else 6
  series = x.const_like((-1) ** terms / (2 * terms + 1))
  for i in reversed(range(terms)): series = series.mul(z).add((-1) ** i / (2 * i + 1))
  angle = size.lt(2.0 ** -(dtypes.finfo(x.dtype)[1] // 2 + 2)).where(size, series.mul(r).mul(4))  # so small ones are their own arc tangent
  return large.where(angle.neg().add(math.pi / 2), angle)._with_sign_of(x)

def _hyperbolic_sine(x: Tensor) -> Tensor:
  """Through tanh of the half argument where exp(x) - exp(-x) would cancel, without early overflow elsewhere."""
  small = x.abs().lt(1)
  t = small.where(x, 0).mul(0.5).tanh()
  half = x.abs().mul(0.5).exp()
  large = half.mul(0.5).mul(half).sub(x.abs().neg().exp().mul(0.5))._with_sign_of(x)
  return small.where(t.mul(2).div(t.square().neg().add(1)), large)

def _hyperbolic_cosine(x: Tensor) -> Tensor:
  half = x.abs().mul(0.5).exp()
  return half.mul(0.5).mul(half).add(x.abs().neg().exp().mul(0.5))

def _inverse_hyperbolic_sine(x: Tensor) -> Tensor:
  """log(x + sqrt(x * x + 1)), which is log(2 * x) where 1 is nothing beside x * x."""
  size = x._magnitude()
  large = size.gt(_outweighs_one(x))
  small = large.where(1, size)
  near = small.div(small.square().add(1).sqrt().add(1)).add(1).mul(small)._log1p()  # a product: -0.0 stays
  return large.where(large.where(size, 1).log().add(math.log(2)), near)._with_sign_of(x)

def _inverse_hyperbolic_cosine(x: Tensor) -> Tensor:
  """log(x + sqrt(x * x - 1)), which is log(2 * x) where 1 is nothing beside x * x."""
  large = x.gt(_outweighs_one(x))
  t = large.where(1, x).sub(1)
  near = t.add(t.sqrt().mul(t.add(2).sqrt()))._log1p()
  return large.where(large.where(x, 1).log().add(math.log(2)), near)

def _inverse_hyperbolic_tangent(x: Tensor) -> Tensor:
  size = x._magnitude()
  return size.mul(2).div(size.sub(1, reverse=True))._log1p().mul(0.5)._with_sign_of(x)
