"""What the special functions share: evaluation in float64, polynomials, pieces, slopes of their own.

A function is computed in float64, which every float32 result needs to be within an ULP, and is rounded once to the
type of its argument. So float64 arguments have the accuracy of the coefficients: see each file.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.functional.operands import floats
from tinyhw.gradient import define_gradient
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def in_double(f: Callable[..., Tensor], *operands: Any) -> Tensor:
  """Apply f in float64 and round the result to the operands' common float type."""
  xs = floats(*operands)
  return f(*[x.double() for x in xs]).cast(xs[0].dtype)

def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
  """Return a polynomial, the coefficient of the highest power first."""
  found = x.const_like(coefficients[0])
  for c in coefficients[1:]: found = found.mul(x).add(c)
  return found

def chebyshev(x: Tensor, coefficients: Sequence[float]) -> Tensor:
  """Return sum c[k] T_k(x) for x from -1 to 1, by Clenshaw's recurrence."""
  after = following = x.const_like(0.0)
  twice = x.mul(2)
  for c in reversed(coefficients[1:]): after, following = twice.mul(after).sub(following).add(c), after
  return x.mul(after).sub(following).add(coefficients[0])

def with_slope(y: Tensor, x: Tensor, slope: Callable[[Tensor], Tensor]) -> Tensor:
  """Return y, whose derivative for x is slope(x). slope is called if the gradient is asked for.

  slope computes with its argument alone, which has gradients. A slope that needs y is a rule (functional/rules.py).
  """
  node = graph.node(Ops.DETACH, y.dtype, (y.contiguous().uop, x.uop), None, y.shape)
  make = Tensor._new
  def backward(own: UOp, g: UOp) -> tuple[UOp]: return (make(g).mul(slope(make(own.src[1]))).uop,)
  define_gradient(node, (x.uop,), backward)
  return make(node)

def is_whole(x: Tensor) -> Tensor:
  """Return True for whole numbers."""
  return x.eq(x.floor())

INFINITY, NAN = math.inf, math.nan
FLOAT = dtypes.float64
