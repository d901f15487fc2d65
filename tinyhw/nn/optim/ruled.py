"""Optimizers whose step is a rule of rules.py, with the parameters of `optim.Optimizer`: a list of Tensors, and lr."""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import dtypes, least_upper_dtype
from tinyhw.errors import ArgumentError
from tinyhw.methods.checks import finite, flag
from tinyhw.nn.optim import Optimizer, rules, widest_float
from tinyhw.tensor import Tensor

class _Given:
  """Options as a rule reads them: numbers, and the learning rate as a Tensor of the type of numbers."""
  def __init__(self, options: dict[str, Any], lr: Tensor): self._options, self.lr = options, lr
  def given(self, name: str) -> Any: return self._options[name]
  def __getattr__(self, name: str) -> Any:
    if name.startswith("_"): raise AttributeError(name)
    return self._options[name]

class RuledOptimizer(Optimizer):
  """An optimizer whose step is a rule, with options. `state` has a dict for each parameter, and `shared` the
  count of steps."""
  def __init__(self, rule: rules.UpdateRule, params: list[Tensor], lr: float | Tensor, options: dict[str, Any],
               device: str | None = None, fused: bool = False):
    super().__init__(params, lr, device, fused)
    if self.fused and rule.layerwise: raise ArgumentError("fused=True knows no layers; this optimizer needs them")
    self.rule, self.options = rule, {name: _checked(name, value) for name, value in options.items()}
    given = _Given({**self.options, "lr": lr}, self.lr)
    self.shared = {name: Tensor(value, device=self.device, dtype=widest_float(self.device)).contiguous().realize()
                   for name, value in rule.shared(given).items()}
    self.state = [{name: self._first(value, i) for name, value in rule.initial(t, given).items()}
                  for i, t in enumerate(self.params[:1] if self.fused else self.params)]

  def _first(self, value: float | Tensor, i: int) -> Tensor:
    if isinstance(value, Tensor): return value.to(self.params[i].device).contiguous().realize()
    zeros = self._state()[i]
    return zeros if value == 0 else zeros.assign(zeros.full_like(value)).realize()

  def _step(self, params: list[Tensor], grads: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    given = _Given(self.options, self.lr.cast(widest_float(self.device)).reshape(()))
    numbers: dict[str, Any] = dict(self.shared)
    made = self.rule.numbers(given, numbers)
    updates, changed = [], [old.assign(numbers[name]) for name, old in self.shared.items()]
    for old, t, g in zip(self.state, params, grads):
      wide = least_upper_dtype(dtypes.float32, t.dtype)
      each = {name: x.cast(wide) if isinstance(x, Tensor) else x for name, x in made.items()}
      new = dict(old)
      updates.append(self.rule.update(t.detach().cast(wide), g.detach().cast(wide), new, each, given))
      for name, x in new.items(): changed.append(old[name].assign(x))
    return updates, changed

def _checked(name: str, value: Any) -> Any:
  if isinstance(value, bool): return flag(name, value)
  if isinstance(value, (tuple, list)): return tuple([x if x is None else finite(name, x) for x in value])
  return finite(name, value)

def _no_fewer(what: str, value: float) -> float:
  if value < 0: raise ArgumentError(f"{what} is {value}; it must not be negative")
  return value

def RMSprop(params: list[Tensor], lr: float | Tensor = 0.01, alpha: float = 0.99, eps: float = 1e-8,
            weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, device: str | None = None,
            fused: bool = False) -> RuledOptimizer:
  """Steps divided by the root of a running mean of squares. Source: Hinton 2012."""
  return RuledOptimizer(rules.RMSPROP, params, lr, {"alpha": alpha, "eps": eps, "weight_decay": weight_decay,
                                                    "momentum": momentum, "centered": centered}, device, fused)

def Adagrad(params: list[Tensor], lr: float | Tensor = 0.01, lr_decay: float = 0.0, weight_decay: float = 0.0,
            initial_accumulator_value: float = 0.0, eps: float = 1e-10, device: str | None = None,
            fused: bool = False) -> RuledOptimizer:
  """Steps divided by the root of the sum of squares. Source: Duchi et al. 2011."""
  first = _no_fewer("initial_accumulator_value", initial_accumulator_value)
  return RuledOptimizer(rules.ADAGRAD, params, lr, {"lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps,
                                                    "initial_accumulator_value": first}, device, fused)

def Adadelta(params: list[Tensor], lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6,
             weight_decay: float = 0.0, device: str | None = None, fused: bool = False) -> RuledOptimizer:
  """Steps as large as earlier ones, by running means of squares. Source: Zeiler 2012."""
  return RuledOptimizer(rules.ADADELTA, params, lr, {"rho": rho, "eps": eps, "weight_decay": weight_decay}, device,
                        fused)

def Adamax(params: list[Tensor], lr: float | Tensor = 0.002, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
           weight_decay: float = 0.0, device: str | None = None, fused: bool = False) -> RuledOptimizer:
  """Adam with the largest gradient in the place of the mean square. Source: Kingma and Ba 2014."""
  return RuledOptimizer(rules.ADAMAX, params, lr, {"betas": (b1, b2), "eps": eps, "weight_decay": weight_decay},
                        device, fused)

def NAdam(params: list[Tensor], lr: float | Tensor = 0.002, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
          weight_decay: float = 0.0, momentum_decay: float = 0.004, decoupled_weight_decay: bool = False,
          device: str | None = None, fused: bool = False) -> RuledOptimizer:
  """Adam with Nesterov's momentum. Source: Dozat 2016."""
  return RuledOptimizer(rules.NADAM, params, lr, {
    "betas": (b1, b2), "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
    "decoupled_weight_decay": decoupled_weight_decay}, device, fused)

def RAdam(params: list[Tensor], lr: float | Tensor = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
          weight_decay: float = 0.0, decoupled_weight_decay: bool = False, device: str | None = None,
          fused: bool = False) -> RuledOptimizer:
  """Adam that begins without the mean square, whose variance is large at first. Source: Liu et al. 2019."""
  return RuledOptimizer(rules.RADAM, params, lr, {
    "betas": (b1, b2), "eps": eps, "weight_decay": weight_decay, "decoupled_weight_decay": decoupled_weight_decay},
    device, fused)

def Lion(params: list[Tensor], lr: float | Tensor = 1e-4, b1: float = 0.9, b2: float = 0.99,
         weight_decay: float = 0.0, device: str | None = None, fused: bool = False) -> RuledOptimizer:
  """Steps by the sign of a blend of momentum and gradient. Source: Chen et al. 2023."""
  return RuledOptimizer(rules.LION, params, lr, {"betas": (b1, b2), "weight_decay": weight_decay}, device, fused)

def Adafactor(params: list[Tensor], lr: float | Tensor = 0.01, beta2_decay: float = -0.8,
              eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
              device: str | None = None) -> RuledOptimizer:
  """Adam with the mean squares of matrices as products of rows and columns. Source: Shazeer and Stern 2018."""
  return RuledOptimizer(rules.ADAFACTOR, params, lr, {"beta2_decay": beta2_decay, "eps": eps, "d": d,
                                                      "weight_decay": weight_decay}, device)
