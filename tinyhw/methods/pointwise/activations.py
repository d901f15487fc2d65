"""Activation functions of neural networks. Their forms neither overflow nor cancel, in the gradient too."""
from __future__ import annotations
import math
from typing import TYPE_CHECKING

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.methods.checks import real
from tinyhw.methods.graph import graph
from tinyhw.methods.pointwise.functions import Functions
from tinyhw.uop.enums import Ops
if TYPE_CHECKING: from tinyhw.tensor import Tensor

_FLAT = 32.0   # beyond this, gelu's factor is 0 or 1, in float64 too

class Activations(Functions):
  """Activation functions."""
  __slots__ = ()

  def relu(self) -> Tensor:
    """Return max(self, 0). Its gradient at 0 is 0. NaN stays.

    >>> Tensor([-1.0, 2.0]).relu().tolist()
    [0.0, 2.0]
    """
    u = self.uop
    zero = graph.like(u, 0)
    otherwise = graph.detach(graph.binary(Ops.MAX, u, zero)) if dtypes.is_float(u.dtype) else zero
    return self._new(graph.where(graph.compare(Ops.CMPLT, zero, u), u, otherwise))

  def sigmoid(self) -> Tensor:
    """Return 1 / (1 + exp(-self)), in a form that overflows for no argument.

    >>> Tensor([0.0, 2.0]).sigmoid().realize()
    <Tensor (2,) float32 on CPU, realized: [0.5, 0.8808]>
    """
    return self._precisely(_logistic)

  def logsigmoid(self) -> Tensor:
    """Return log(sigmoid(self)) without overflow.

    >>> Tensor([0.0, 2.0]).logsigmoid().realize()
    <Tensor (2,) float32 on CPU, realized: [-0.69315, -0.12693]>
    """
    return self.neg().softplus().neg()

  def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Tensor:
    """Return alpha * self + beta, clamped to 0..1. The gradient at the limits is 0.

    >>> Tensor([-4.0, 0.0, 1.5]).hardsigmoid().realize()
    <Tensor (3,) float32 on CPU, realized: [0.0, 0.5, 0.75]>
    """
    return self._precisely(lambda x: x.mul(alpha).add(beta).hardtanh(0, 1))

  def hardswish(self) -> Tensor:
    """Return self * relu6(self + 3) / 6.

    >>> Tensor([-4.0, 1.5, 4.0]).hardswish().realize()
    <Tensor (3,) float32 on CPU, realized: [-0.0, 1.125, 4.0]>
    """
    return self._precisely(lambda x: x.mul(x.add(3).relu6()).mul(1 / 6))

  def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Return self, clamped to min_val..max_val. The gradient at the limits is 0, unlike that of clamp.

    >>> Tensor([-4.0, 0.5, 4.0]).hardtanh().realize()
    <Tensor (3,) float32 on CPU, realized: [-1.0, 0.5, 1.0]>
    """
    x = self.le(min_val).where(min_val, self)
    return x.ge(max_val).where(max_val, x)

  def relu6(self) -> Tensor:
    """Return self, clamped to 0..6. The gradient at the limits is 0.

    >>> Tensor([-1.0, 3.0, 9.0]).relu6().realize()
    <Tensor (3,) float32 on CPU, realized: [0.0, 3.0, 6.0]>
    """
    return self.hardtanh(0, 6)

  def silu(self) -> Tensor:
    """Return self * sigmoid(self).

    >>> Tensor([-1.0, 2.0]).silu().realize()
    <Tensor (2,) float32 on CPU, realized: [-0.26894, 1.7616]>
    """
    return self._precisely(lambda x: x.mul(_logistic(x)))

  def swish(self) -> Tensor:
    """Another name of silu.

    >>> Tensor([-1.0, 2.0]).swish().realize()
    <Tensor (2,) float32 on CPU, realized: [-0.26894, 1.7616]>
    """
    return self.silu()

  def quick_gelu(self) -> Tensor:
    """Return self * sigmoid(1.702 * self), an approximation of gelu.

    >>> Tensor([-1.0, 2.0]).quick_gelu().realize()
    <Tensor (2,) float32 on CPU, realized: [-0.1542, 1.9357]>
    """
    return self._precisely(lambda x: x.mul(_logistic(x.mul(1.702))))

  def mish(self) -> Tensor:
    """Return self * tanh(softplus(self)).

    >>> Tensor([-1.0, 2.0]).mish().realize()
    <Tensor (2,) float32 on CPU, realized: [-0.3034, 1.944]>
    """
    return self._precisely(lambda x: x.mul(x.softplus().tanh()))

  def softsign(self) -> Tensor:
    """Return self / (1 + abs(self)).

    >>> Tensor([-1.0, 3.0]).softsign().realize()
    <Tensor (2,) float32 on CPU, realized: [-0.5, 0.75]>
    """
    return self.div(self.abs().add(1))

  def leaky_relu(self, neg_slope: float = 0.01) -> Tensor:
    """Return self where it is positive, else neg_slope * self.

    >>> Tensor([-100.0, 2.0]).leaky_relu().realize()
    <Tensor (2,) float32 on CPU, realized: [-1.0, 2.0]>
    """
    return self.gt(0).where(self, self.mul(neg_slope))

  def elu(self, alpha: float = 1.0) -> Tensor:
    """Return self where it is positive, else alpha * (exp(self) - 1).

    >>> Tensor([-1.0, 2.0]).elu().realize()
    <Tensor (2,) float32 on CPU, realized: [-0.63212, 2.0]>
    """
    return self.gt(0).where(self, self._expm1_below(1.0).mul(alpha))

  def celu(self, alpha: float = 1.0) -> Tensor:
    """Return self where it is positive, else alpha * (exp(self / alpha) - 1).

    >>> Tensor([-1.0, 2.0]).celu().realize()
    <Tensor (2,) float32 on CPU, realized: [-0.63212, 2.0]>
    """
    alpha = real("alpha", alpha)
    if alpha == 0: raise ArgumentError("celu divides by alpha, which is 0; use relu()")
    return self.gt(0).where(self, self._expm1_below(1 / alpha).mul(alpha))

  def selu(self, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Tensor:
    """Return gamma times elu. With the default constants, values keep mean 0 and variance 1 from layer to layer.
    Source: Klambauer et al. 2017.

    >>> Tensor([-1.0, 2.0]).selu().realize()
    <Tensor (2,) float32 on CPU, realized: [-1.1113, 2.1014]>
    """
    return self.elu(alpha).mul(gamma)

  def softplus(self, beta: float = 1.0) -> Tensor:
    """Return log(1 + exp(beta * self)) / beta.

    >>> Tensor([0.0, 2.0]).softplus().realize()
    <Tensor (2,) float32 on CPU, realized: [0.69315, 2.1269]>
    """
    beta = real("beta", beta)
    if beta == 0: raise ArgumentError("softplus divides by beta, which is 0; use another")
    def smooth(x: Tensor) -> Tensor:
      y = x if beta == 1 else x.mul(beta)
      return y.logaddexp(0) if beta == 1 else y.logaddexp(0).div(beta)
    return self._precisely(smooth)

  def gelu(self, approximate: str = "tanh") -> Tensor:
    """Return x times the cumulative function of the normal distribution. "tanh" approximates it, "none" uses erf.

    >>> Tensor([-1.0, 2.0]).gelu().realize()
    <Tensor (2,) float32 on CPU, realized: [-0.15881, 1.9546]>
    """
    if approximate == "none": return self._precisely(lambda x: x.mul(0.5).mul(x.mul(1 / math.sqrt(2)).erf().add(1)))
    if approximate != "tanh": raise ArgumentError(f"approximate is 'tanh' or 'none', not {approximate!r}")
    # (1 + tanh(u)) / 2 is the logistic function of 2 * u, without cancellation. For a large argument it is 0 or 1, and
    # has no gradient that could overflow.
    def smooth(x: Tensor) -> Tensor:
      near = x.clamp(-_FLAT, _FLAT)
      return x.mul(_logistic(near.square().mul(0.044715).add(1).mul(near).mul(2 * math.sqrt(2 / math.pi))))
    return self._precisely(smooth)

  def _expm1_below(self, factor: float) -> Tensor:
    """Return exp(factor * x) - 1 for x <= 0, and 0 above, so that no gradient there overflows.

    Near 0 it uses tanh, which avoids cancellation.
    """
    def below(x: Tensor) -> Tensor:
      y = x.clamp(None, 0).mul(factor)
      near = y.square().lt(1)
      t = near.where(y, 0).mul(0.5).tanh()
      return near.where(t.mul(2).div(t.neg().add(1)), y.exp().sub(1))
    return self._precisely(below)

def _logistic(x: Tensor) -> Tensor:
  """Return 1 / (1 + exp(-x)), with an exponential that is never above 1."""
  e = x.lt(0).where(x, x.neg()).exp()
  return x.lt(0).where(e, 1).div(e.add(1))
