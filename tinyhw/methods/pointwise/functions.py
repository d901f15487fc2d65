"""Functions of one element whose results are rounded: powers, exponentials, trigonometry, interpolation.

Exponential and trigonometric functions are nodes of the graph, as accurate as codegen makes them. Functions that this
module builds from them avoid overflow and cancellation, in the gradient too. Integers become the default float type
where the result is not an integer.
"""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import dtypes, least_upper_dtype, least_upper_float, truncate
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import is_number, plain
from tinyhw.methods.graph import graph
from tinyhw.methods.pointwise.rounding import Rounding
from tinyhw.trace import of_one_line
from tinyhw.uop.enums import Ops
if TYPE_CHECKING: from tinyhw.tensor import Tensor

class Functions(Rounding):
  """Mathematical functions."""
  __slots__ = ()

  def _function(self, op: Ops) -> Tensor:
    u = self.uop
    return self._new(graph.unary(op, graph.cast(u, least_upper_float(u.dtype))))

  @of_one_line
  def _precisely(self, f: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply f, which consists of several operations, in floats of at least 32 bits. The result is rounded once to this
    type (for integers: to the default float type)."""
    out = least_upper_float(self.dtype)
    return f(self.cast(graph.accumulator(out))).cast(out)

  # ***** powers, exponentials, logarithms *****

  def sqrt(self) -> Tensor:
    """Return the square root. It is NaN below 0.

    >>> Tensor([4.0, 9.0]).sqrt().realize()
    <Tensor (2,) float32 on CPU, realized: [2.0, 3.0]>
    """
    return self._function(Ops.SQRT)

  def _root(self) -> Tensor:
    """Return sqrt with a gradient of 0 at 0. Norms and deviations, which have a minimum there, use it."""
    positive = self.ne(0)
    return positive.where(positive.where(self, 1).sqrt(), 0)

  def rsqrt(self) -> Tensor:
    """Return 1 / sqrt(self).

    >>> Tensor([4.0, 0.25]).rsqrt().realize()
    <Tensor (2,) float32 on CPU, realized: [0.5, 2.0]>
    """
    return self.sqrt().reciprocal()

  def reciprocal(self) -> Tensor:
    """Return 1 / self.

    >>> Tensor([2.0, 4.0]).reciprocal().realize()
    <Tensor (2,) float32 on CPU, realized: [0.5, 0.25]>
    """
    return self._function(Ops.RECIPROCAL)

  def square(self) -> Tensor:
    """Return self * self.

    >>> Tensor([2.0, -3.0]).square().realize()
    <Tensor (2,) float32 on CPU, realized: [4.0, 9.0]>
    """
    return self.mul(self)

  def exp(self) -> Tensor:
    """Return e ** self.

    >>> Tensor([0.0, 1.0]).exp().realize()
    <Tensor (2,) float32 on CPU, realized: [1.0, 2.7183]>
    """
    return self._function(Ops.EXP)

  def exp2(self) -> Tensor:
    """Return 2 ** self.

    >>> Tensor([3.0, -1.0]).exp2().realize()
    <Tensor (2,) float32 on CPU, realized: [8.0, 0.5]>
    """
    return self._function(Ops.EXP2)

  def log(self) -> Tensor:
    """Return the natural logarithm. It is -inf for 0, NaN below.

    >>> Tensor([1.0, 2.0]).log().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 0.69315]>
    """
    return self._function(Ops.LOG)

  def log2(self) -> Tensor:
    """Return the logarithm to base 2. It is -inf for 0, NaN below.

    >>> Tensor([8.0, 0.5]).log2().realize()
    <Tensor (2,) float32 on CPU, realized: [3.0, -1.0]>
    """
    return self._function(Ops.LOG2)

  def log10(self) -> Tensor:
    """Return the logarithm to base 10. It is -inf for 0, NaN below.

    >>> Tensor([1.0, 50.0]).log10().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 1.699]>
    """
    return self._precisely(lambda x: x.log2().mul(math.log10(2)))

  def _log1p(self) -> Tensor:
    """Return log(1 + self), accurate near 0. A factor corrects the rounding error of 1 + self. Source: Kahan; Goldberg
    1991, theorem 4.

    The gradient is that of log(u), 1 / u, without the factor. The factor is far from 1 where self is about as small as
    the rounding error.
    """
    u = self.add(1)
    exact = u.eq(1) | u.eq(math.inf)
    factor = exact.where(1, self.div(exact.where(1, u.sub(1))))
    y = u.log()
    return exact.where(self, u.eq(0).where(y, y.mul(factor).detach().add(y.sub(y.detach()))))

  # ***** trigonometry *****

  def sin(self) -> Tensor:
    """Return the sine of an angle in radians, of any size.

    >>> Tensor([0.0, 1.0]).sin().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 0.84147]>
    """
    return self._function(Ops.SIN)

  def cos(self) -> Tensor:
    """Return the cosine of an angle in radians, of any size.

    >>> Tensor([0.0, 1.0]).cos().realize()
    <Tensor (2,) float32 on CPU, realized: [1.0, 0.5403]>
    """
    return self._function(Ops.COS)

  def tan(self) -> Tensor:
    """Return the tangent of an angle in radians, of any size.

    >>> Tensor([0.0, 1.0]).tan().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 1.5574]>
    """
    return self._precisely(lambda x: x.sin().div(x.cos()))

  def atan(self) -> Tensor:
    """Return the angle with this tangent, from -pi/2 to pi/2.

    >>> Tensor([0.0, 1.0]).atan().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 0.7854]>
    """
    return self._precisely(_arc_tangent)

  def asin(self) -> Tensor:
    """Return the angle with this sine, from -pi/2 to pi/2. It is NaN outside of -1..1. The gradient at the ends is inf.

    >>> Tensor([0.0, 1.0]).asin().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 1.5708]>
    """
    return self._precisely(_arc_sine)

  def acos(self) -> Tensor:
    """Return the angle with this cosine, from 0 to pi. It is NaN outside of -1..1. The gradient at the ends is -inf.

    >>> Tensor([0.0, 1.0]).acos().realize()
    <Tensor (2,) float32 on CPU, realized: [1.5708, 0.0]>
    """
    return self._precisely(_arc_cosine)

  def sinh(self) -> Tensor:
    """Return (exp(x) - exp(-x)) / 2, finite up to the type's largest number.

    >>> Tensor([0.0, 1.0]).sinh().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 1.1752]>
    """
    return self._precisely(_hyperbolic_sine)

  def cosh(self) -> Tensor:
    """Return (exp(x) + exp(-x)) / 2, finite up to the type's largest number.

    >>> Tensor([0.0, 1.0]).cosh().realize()
    <Tensor (2,) float32 on CPU, realized: [1.0, 1.5431]>
    """
    return self._precisely(_hyperbolic_cosine)

  def tanh(self) -> Tensor:
    """Return the hyperbolic tangent.

    >>> Tensor([0.0, 1.0]).tanh().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 0.76159]>
    """
    return self._function(Ops.TANH)

  def asinh(self) -> Tensor:
    """Return the inverse of sinh.

    >>> Tensor([0.0, 1.0]).asinh().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 0.88137]>
    """
    return self._precisely(_inverse_hyperbolic_sine)

  def acosh(self) -> Tensor:
    """Return the inverse of cosh. It is NaN below 1.

    >>> Tensor([1.0, 2.0]).acosh().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 1.317]>
    """
    return self._precisely(_inverse_hyperbolic_cosine)

  def atanh(self) -> Tensor:
    """Return the inverse of tanh. It is NaN outside of -1..1.

    >>> Tensor([0.0, 0.5]).atanh().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 0.54931]>
    """
    return self._precisely(_inverse_hyperbolic_tangent)

  def erf(self) -> Tensor:
    """Return the error function.

    >>> Tensor([0.0, 1.0]).erf().realize()
    <Tensor (2,) float32 on CPU, realized: [0.0, 0.8427]>
    """
    return self._function(Ops.ERF)

  # ***** mixtures *****

  def lerp(self, end: Any, weight: Any) -> Tensor:
    """Interpolate linearly: self + (end - self) * weight. For weights from 0.5 on it starts from the other end, so that
    weight 1 gives exactly `end`.

    >>> Tensor([0.0, 10.0]).lerp(Tensor([4.0, 20.0]), 0.25).tolist()
    [1.0, 12.5]
    """
    end, share = self.ufix(end), plain(weight)
    if not is_number(share): share = self._tensor(share)
    out = least_upper_dtype(self.dtype, end.dtype, *([share.dtype] if isinstance(share, Handle) else []))
    if not dtypes.is_float(out): return self._mixed(end, share)
    wide = graph.accumulator(out)
    return self.cast(wide)._mixed(end.cast(wide), share).cast(out)

  def _mixed(self, end: Tensor, share: Any) -> Tensor:
    """Compute lerp in the operands' own types. share: a number or a Tensor."""
    distance = end.sub(self)
    if is_number(share): return self.add(distance.mul(share)) if share < 0.5 else end.sub(distance.mul(1 - share))
    weight = self._tensor(share)
    return weight.lt(0.5).where(self.add(distance.mul(weight)), end.sub(distance.mul(weight.sub(1, reverse=True))))

  def logaddexp(self, other: Any) -> Tensor:
    """Return log(exp(self) + exp(other)) without overflow.

    >>> Tensor([0.0]).logaddexp(Tensor([0.0])).realize()
    <Tensor (1,) float32 on CPU, realized: [0.69315]>
    """
    a, b = self._pair("add exponentials of", other)
    out = least_upper_float(a.dtype)
    wide = graph.accumulator(out)
    x, y = self._new(graph.cast(a, wide)), self._new(graph.cast(b, wide))
    same = x.eq(y)  # true also for infinities of one sign, whose difference would be NaN
    distance = same.where(0, x.sub(y))
    return x.maximum(y).add(distance.lt(0).where(distance, distance.neg()).exp()._log1p()).cast(out)

def _outweighs_one(x: Functions) -> float:
  """Return a number from which on 1 + x * x rounds to x * x."""
  return 2.0 ** ((dtypes.finfo(x.dtype)[1] + 1) // 2 + 1)

# ***** functions of floats of at least 32 bits *****

_REST_OF_HALF_PI = 6.123233995736766e-17   # pi / 2 - math.pi / 2

def _arc_tangent(x: Tensor) -> Tensor:
  """Return atan(x) = pi/4 + atan((x - 1) / (x + 1)) = pi/2 + atan(-1 / x) for positive x.

  The remaining argument is below tan(pi/8), where a few terms of the series suffice.
  """
  size = x._magnitude()
  far, middle = size.gt(math.sqrt(2) + 1), size.gt(math.sqrt(2) - 1)
  r = far.where(-1, middle.where(size.sub(1), size)).div(far.where(size, middle.where(size.add(1), 1)))
  z, terms = r.square(), 20 if x.dtype is dtypes.float64 else 9
  series = x.const_like((-1) ** terms / (2 * terms + 1))
  for i in reversed(range(terms)): series = series.mul(z).add((-1) ** i / (2 * i + 1))
  half = float(truncate[x.dtype](math.pi / 2))
  base, rest = (far.where(x.const_like(a), middle.where(x.const_like(a / 2), -0.0))
                for a in (half, math.pi / 2 - half + _REST_OF_HALF_PI))
  return r.mul(series).add(rest).add(base)._with_sign_of(x)   # adding -0.0 keeps -0.0

def _other_leg(x: Tensor) -> Tensor:
  """Return sqrt(1 - x * x), with the difference rounded once. In a right triangle with a hypotenuse of 1 and a leg x,
  it is the other leg."""
  return x._new(graph.node(Ops.MULACC, x.dtype, (graph.negate(x.uop), x.uop, graph.like(x.uop, 1)), None,
                           x.shape)).sqrt()

def _arc_sine(x: Tensor) -> Tensor:
  """Compute asin from the tangent. At the ends, where the tangent is infinite and has no gradient, compute it from that
  of half the angle."""
  inside = x.abs().lt(1)
  return x.div(_other_leg(x).add(inside.where(0, 1))).atan().mul(inside.where(1, 2))

def _arc_cosine(x: Tensor) -> Tensor:
  """Compute acos from the tangent of half the angle, for the absolute value of x. For negative x, subtract the angle
  from pi."""
  angle = _other_leg(x).div(x._magnitude().add(1)).atan().mul(2)
  half_turn = float(truncate[x.dtype](math.pi))
  return x.lt(0).where(angle.sub(half_turn, reverse=True).add(math.pi - half_turn + 2 * _REST_OF_HALF_PI), angle)

def _hyperbolic_sine(x: Tensor) -> Tensor:
  """Compute sinh, by a series below 1, where exp(x) - exp(-x) would cancel."""
  small = x.abs().lt(1)
  near, terms = small.where(x, 0), 8 if x.dtype is dtypes.float64 else 5
  z = near.square()
  series = x.const_like(1 / math.factorial(2 * terms + 1))
  for i in reversed(range(1, terms)): series = series.mul(z).add(1 / math.factorial(2 * i + 1))
  large = _half_exponential(x).sub(x.abs().neg().exp().mul(0.5))._with_sign_of(x)
  return small.where(near.mul(z).mul(series).add(near), large)

def _hyperbolic_cosine(x: Tensor) -> Tensor: return _half_exponential(x).add(x.abs().neg().exp().mul(0.5))

def _half_exponential(x: Tensor) -> Tensor:
  """Return exp(abs(x)) / 2, even where the exponential exceeds the type's largest number. For a large argument, an
  exact part of it becomes a factor."""
  part = 512 if x.dtype is dtypes.float64 else 64
  far = x.abs().gt(part)
  return far.where(x.abs().sub(part), x.abs()).exp().mul(far.where(x.const_like(math.exp(part) / 2), 0.5))

def _inverse_hyperbolic_sine(x: Tensor) -> Tensor:
  """Return log(x + sqrt(x * x + 1)). It is log(2 * x) where 1 is negligible against x * x."""
  size = x._magnitude()
  large = size.gt(_outweighs_one(x))
  small = large.where(1, size)
  # The last operation is a product, so that -0.0 stays.
  near = small.div(small.square().add(1).sqrt().add(1)).add(1).mul(small)._log1p()
  return large.where(large.where(size, 1).log().add(math.log(2)), near)._with_sign_of(x)

def _inverse_hyperbolic_cosine(x: Tensor) -> Tensor:
  """Return log(x + sqrt(x * x - 1)). It is log(2 * x) where 1 is negligible against x * x."""
  large = x.gt(_outweighs_one(x))
  t = large.where(1, x).sub(1)
  near = t.add(t.sqrt().mul(t.add(2).sqrt()))._log1p()
  return large.where(large.where(x, 1).log().add(math.log(2)), near)

def _inverse_hyperbolic_tangent(x: Tensor) -> Tensor:
  size = x._magnitude()
  return size.mul(2).div(size.sub(1, reverse=True))._log1p().mul(0.5)._with_sign_of(x)
