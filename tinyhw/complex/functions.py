"""Functions of pairs of real tensors: exponentials, trigonometric and hyperbolic functions and their inverses.

Inverse functions are compositions of logarithms and roots. They lose digits, so `precisely` computes those of complex64
in float64 and rounds once. Branch cuts are those of C99, annex G.
"""
from __future__ import annotations
from collections.abc import Callable
import math

from tinyhw.complex.arithmetic import (
  Planes, add, choose, exp, log, magnitude, mul, neg, over_i, reciprocal, scaled, sqrt, sub, times_i,
  times_zero)
from tinyhw.dtype import dtypes
from tinyhw.functional.arithmetic import expm1 as real_expm1
from tinyhw.functional.arithmetic import log1p as real_log1p

def precisely(function: Callable[[Planes], Planes]) -> Callable[[Planes], Planes]:
  """Return a function that computes in float64 and rounds to the type of its operand."""
  def rounded(x: Planes) -> Planes:
    kind = x.real.dtype
    found = function(Planes(x.real.cast(dtypes.float64), x.imag.cast(dtypes.float64)))
    return Planes(found.real.cast(kind), found.imag.cast(kind))
  rounded.__name__, rounded.__doc__ = function.__name__, function.__doc__
  return rounded

def moved(x: Planes, distance: float) -> Planes:
  """Return x plus a real number. The sign of an imaginary part of 0 stays: it is the side of a branch cut."""
  return Planes(x.real.add(distance), x.imag)

def exp2(x: Planes) -> Planes:
  """Return 2 ** x."""
  return exp(scaled(x, math.log(2)))

def log2(x: Planes) -> Planes:
  """Return the logarithm to base 2."""
  return scaled(log(x), 1 / math.log(2))

def log10(x: Planes) -> Planes:
  """Return the logarithm to base 10."""
  return scaled(log(x), 1 / math.log(10))

def log1p(x: Planes) -> Planes:
  """Return log(1 + x) without cancellation near 0."""
  near = magnitude(x).lt(0.5)
  small = Planes(near.where(x.real, 0), near.where(x.imag, 0))
  t = small.real.mul(small.real.add(2)).add(small.imag.square())
  found = log(moved(x, 1))
  return Planes(near.where(real_log1p(t).mul(0.5), found.real), found.imag)

def expm1(x: Planes) -> Planes:
  """Return exp(x) - 1 without cancellation near 0."""
  half = x.imag.mul(0.5).sin()
  return Planes(real_expm1(x.real).mul(x.imag.cos()).sub(half.square().mul(2)), times_zero(x.real.exp(), x.imag.sin()))

def sin(x: Planes) -> Planes:
  """Return the sine."""
  return Planes(x.real.sin().mul(x.imag.cosh()), x.real.cos().mul(x.imag.sinh()))

def cos(x: Planes) -> Planes:
  """Return the cosine."""
  return Planes(x.real.cos().mul(x.imag.cosh()), x.real.sin().mul(x.imag.sinh()).neg())

def sinh(x: Planes) -> Planes:
  """Return the hyperbolic sine."""
  return Planes(x.real.sinh().mul(x.imag.cos()), times_zero(x.real.cosh(), x.imag.sin()))

def cosh(x: Planes) -> Planes:
  """Return the hyperbolic cosine."""
  return Planes(x.real.cosh().mul(x.imag.cos()), times_zero(x.real.sinh(), x.imag.sin()))

_SATURATES = 20    # beyond this real part, tanh is 1 in float64

def tanh(x: Planes) -> Planes:
  """Return the hyperbolic tangent. Source: Kahan 1987, "Branch cuts for complex elementary functions"."""
  far = x.real.abs().gt(_SATURATES)
  a = far.where(0, x.real)
  s, c, p, q = a.sinh(), a.cosh(), x.imag.sin(), x.imag.cos()
  bottom = s.square().add(q.square())
  flat = far.bitwise_or(bottom.eq(0))
  bottom = flat.where(1, bottom)
  decay = x.real.abs().mul(-2).exp()
  return choose(far, Planes(x.real.const_like(1).copysign(x.real), p.mul(q).mul(4).mul(decay)),
                Planes(s.mul(c).div(bottom), p.mul(q).div(bottom)))

def tan(x: Planes) -> Planes:
  """Return the tangent."""
  return over_i(tanh(times_i(x)))

def sigmoid(x: Planes) -> Planes:
  """Return 1 / (1 + exp(-x))."""
  return reciprocal(moved(exp(neg(x)), 1))

@precisely
def asinh(x: Planes) -> Planes:
  """Return the inverse hyperbolic sine: an odd function, by log(x + sqrt(x**2 + 1)) on the right. A real part of -0.0
  is on the left, so that the sum does not cancel."""
  left = x.real.const_like(1).copysign(x.real.detach()).lt(0)
  y = choose(left, neg(x), x)
  a, b = y.real, y.imag
  square = Planes(a.sub(b).mul(a.add(b)).add(1), a.mul(b).mul(2))
  found = log(add(y, sqrt(square)))
  return choose(left, neg(found), found)

@precisely
def acosh(x: Planes) -> Planes:
  """Return the inverse hyperbolic cosine: log(x + sqrt(x + 1) sqrt(x - 1))."""
  first, second = sqrt(moved(x, 1)), sqrt(moved(x, -1))
  return log(add(x, mul(first, second)))

@precisely
def atanh(x: Planes) -> Planes:
  """Return the inverse hyperbolic tangent: log((1 + x) / (1 - x)) / 2."""
  return scaled(sub(log1p(x), log1p(neg(x))), 0.5)

def asin(x: Planes) -> Planes:
  """Return the inverse sine."""
  return over_i(asinh(times_i(x)))

@precisely
def acos(x: Planes) -> Planes:
  """Return the inverse cosine."""
  found = asin(x)
  return Planes(found.real.neg().add(math.pi / 2), found.imag.neg())

def atan(x: Planes) -> Planes:
  """Return the inverse tangent."""
  return over_i(atanh(times_i(x)))

def rsqrt(x: Planes) -> Planes:
  """Return 1 / sqrt(x)."""
  return reciprocal(sqrt(x))
