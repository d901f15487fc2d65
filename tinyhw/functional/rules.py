"""Gradients by a rule, for functions whose gradient is not that of the operations that compute them."""
from __future__ import annotations
from collections.abc import Callable, Sequence

from tinyhw.functional.operands import sizes
from tinyhw.gradient import define_gradient
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

Rule = Callable[..., Sequence[Tensor]]

def with_rule(y: Tensor, inputs: Sequence[Tensor], rule: Rule) -> Tensor:
  """Return y, a function of inputs, with a rule (y, gradient of y, *inputs) -> gradients of the inputs."""
  node = graph.node(Ops.DETACH, y.dtype, (y.contiguous().uop, *[x.uop for x in inputs]), None, y.shape)
  make = Tensor._new
  def backward(own: UOp, g: UOp) -> tuple[UOp, ...]:
    return tuple([d.uop for d in rule(make(own), make(g), *[make(u) for u in own.src[1:]])])
  define_gradient(node, tuple(x.uop for x in inputs), backward)
  return make(node)

def unbroadcast(g: Tensor, shape: Sequence[int]) -> Tensor:
  """Sum a gradient over axes along which its tensor was broadcast."""
  extra = g.ndim - len(shape)
  axes = tuple([i for i, d in enumerate(sizes(g)) if i < extra or shape[i - extra] == 1 != d])
  return g.sum(axes, keepdim=True).reshape(tuple(shape)) if axes else g

def with_scaled_gradient(x: Tensor, factor: Tensor) -> Tensor:
  """Return x, whose gradient is multiplied by a factor of x's shape, or one that broadcasts to it."""
  return with_rule(x.detach(), (x,), lambda y, g, _: (g.mul(factor),))
