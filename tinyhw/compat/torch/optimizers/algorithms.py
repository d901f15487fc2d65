"""PyTorch's optimizers by their names and parameters. Each is a rule of tinyhw/nn/optim/rules.py with its options.

foreach, fused and capturable choose how PyTorch computes; they are accepted, and change nothing here.
"""
from __future__ import annotations
from typing import Any

from tinyhw.compat.torch.optimizers.optimizer import TorchOptimizer
from tinyhw.errors import ArgumentError
from tinyhw.nn.optim import rules

def _options(given: dict[str, Any]) -> dict[str, Any]:
  """Return the parameters of a constructor as options."""
  return {k: v for k, v in given.items() if k not in ("self", "params", "__class__")}

class SGD(TorchOptimizer):
  """Gradient descent with momentum."""
  rule = rules.SGD

  def __init__(self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
               nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None,
               differentiable: bool = False, fused: bool | None = None):
    if nesterov and (momentum <= 0 or dampening != 0):
      raise ArgumentError("nesterov=True wants a momentum above 0, and no dampening")
    super().__init__(params, _options(locals()))

class Adam(TorchOptimizer):
  """Steps by running means of gradients and of their squares. Source: Kingma and Ba 2014."""
  rule = rules.ADAM

  def __init__(self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
               weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
               capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
               decoupled_weight_decay: bool = False):
    super().__init__(params, _options(locals()))

class AdamW(Adam):
  """Adam with decoupled weight decay. Source: Loshchilov and Hutter 2017."""

  def __init__(self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
               weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
               foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
               fused: bool | None = None):
    super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                     capturable=capturable, differentiable=differentiable, fused=fused, decoupled_weight_decay=True)

class RMSprop(TorchOptimizer):
  """Steps divided by the root of a running mean of squares. Source: Hinton 2012."""
  rule = rules.RMSPROP

  def __init__(self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
               momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
               maximize: bool = False, differentiable: bool = False):
    super().__init__(params, _options(locals()))

class Adagrad(TorchOptimizer):
  """Steps divided by the root of the sum of squares. Source: Duchi et al. 2011."""
  rule, begins_early = rules.ADAGRAD, True

  def __init__(self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
               initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
               maximize: bool = False, differentiable: bool = False, fused: bool | None = None):
    super().__init__(params, _options(locals()))

class Adadelta(TorchOptimizer):
  """Steps as large as earlier ones, by running means of squares. Source: Zeiler 2012."""
  rule = rules.ADADELTA

  def __init__(self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
               foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False,
               differentiable: bool = False):
    if not 0 <= rho <= 1: raise ArgumentError(f"rho is {rho}; it is from 0 to 1")
    super().__init__(params, _options(locals()))

class Adamax(TorchOptimizer):
  """Adam with the largest gradient in the place of the mean square. Source: Kingma and Ba 2014."""
  rule = rules.ADAMAX

  def __init__(self, params: Any, lr: Any = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
               weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
               differentiable: bool = False, capturable: bool = False):
    super().__init__(params, _options(locals()))

class NAdam(TorchOptimizer):
  """Adam with Nesterov's momentum. Source: Dozat 2016."""
  rule = rules.NADAM

  def __init__(self, params: Any, lr: Any = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
               weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
               foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
               differentiable: bool = False):
    super().__init__(params, _options(locals()))

class RAdam(TorchOptimizer):
  """Adam that begins without the mean square, whose variance is large at first. Source: Liu et al. 2019."""
  rule = rules.RADAM

  def __init__(self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
               weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
               maximize: bool = False, capturable: bool = False, differentiable: bool = False):
    super().__init__(params, _options(locals()))

class ASGD(TorchOptimizer):
  """Gradient descent that also averages parameters ("ax" of the state). Source: Polyak and Juditsky 1992."""
  rule = rules.ASGD

  def __init__(self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
               weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False,
               differentiable: bool = False, capturable: bool = False):
    super().__init__(params, _options(locals()))

class Rprop(TorchOptimizer):
  """Steps by signs of gradients, of sizes that grow while the sign stays. Source: Riedmiller and Braun 1993."""
  rule = rules.RPROP

  def __init__(self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
               step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
               maximize: bool = False, differentiable: bool = False):
    if not 0 < etas[0] < 1 < etas[1]: raise ArgumentError(f"etas are {etas}; the first is below 1, the second above")
    super().__init__(params, _options(locals()))

class Adafactor(TorchOptimizer):
  """Adam with the mean squares of matrices as products of rows and columns. Source: Shazeer and Stern 2018."""
  rule = rules.ADAFACTOR

  def __init__(self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8, eps: Any = (None, 1e-3), d: float = 1.0,
               weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False):
    if beta2_decay > 0: raise ArgumentError(f"beta2_decay is {beta2_decay}; it must not be above 0")
    if d < 1: raise ArgumentError(f"d is {d}; it must be at least 1")
    super().__init__(params, _options(locals()))

class Muon(TorchOptimizer):
  """Momentum whose steps are orthogonalized, for matrices. Source: Jordan et al. 2024."""
  rule = rules.MUON

  def __init__(self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
               nesterov: bool = True, ns_coefficients: Any = (3.4445, -4.775, 2.0315), eps: float = 1e-7,
               ns_steps: int = 5, adjust_lr_fn: str | None = None):
    rules.muon_factor(adjust_lr_fn, [1, 1])
    super().__init__(params, _options(locals()))

  def _checked(self, p: Any) -> None:
    super()._checked(p)
    if p.ndim != 2: raise ArgumentError(f"Muon steps matrices, not a parameter of shape {p.shape}; use AdamW for it")

class SparseAdam(TorchOptimizer):
  """Refused: Adam for sparse gradients."""

  def __init__(self, params: Any, *args: Any, **keywords: Any):
    raise ArgumentError("SparseAdam: there are no sparse gradients here; use Adam")
