"""Schedules of learning rates with PyTorch's names and meaning: the base, and rates that follow from the step's number.

A schedule sets "lr" of each group in `optimizer.param_groups`. The constructor makes the first call. Most schedules
compute the next rate from the current one, so that several of them on one optimizer multiply. `step(epoch)` computes
the rate of an epoch from the first one, by `at`. Cycles and plateaus are in cycles.py.
"""
from __future__ import annotations
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
import math
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.methods.base import Handle

def set_rate(group: Any, value: float) -> None:
  """Set the learning rate of a group. A Tensor that is the rate keeps its storage."""
  rate = group["lr"]
  if isinstance(rate, Handle): rate.assign(rate.full_like(value))  # type: ignore[attr-defined]
  else: group["lr"] = value

def rate_of(x: Any) -> float:
  """Return a learning rate as a number."""
  return float(x.item()) if isinstance(x, Handle) else x  # type: ignore[attr-defined]

class LRScheduler:
  """Base of schedules. Subclasses define `get_lr`, which returns a rate for each group.

  last_epoch: -1 to begin; else the count of steps already done, with "initial_lr" in each group.
  """
  unsaved: tuple[str, ...] = ("optimizer",)   # attributes that a state dict does not have

  def __init__(self, optimizer: Any, last_epoch: int = -1):
    if not hasattr(optimizer, "param_groups"):
      raise ArgumentError(f"{type(self).__name__} wants an optimizer, not {type(optimizer).__name__}")
    self.optimizer, self.last_epoch = optimizer, last_epoch
    for group in optimizer.param_groups:
      if last_epoch == -1: group.setdefault("initial_lr", rate_of(group["lr"]))
      elif "initial_lr" not in group:
        raise ArgumentError(f"{type(self).__name__} resumes at step {last_epoch}, and a group has no initial_lr; load "
                            f"the optimizer's state first")
    self.base_lrs = [rate_of(group["initial_lr"]) for group in optimizer.param_groups]
    self._step_count = 0
    self._last_lr = list[float]()
    self.step()

  def rates(self) -> list[float]:
    """Return the current rates of the groups."""
    return [rate_of(group["lr"]) for group in self.optimizer.param_groups]

  def get_lr(self) -> list[float]:
    """Return the rate of each group for the step `last_epoch`."""
    raise ArgumentError(f"{type(self).__name__} has no get_lr; define one")

  def at(self, base: float) -> float:
    """Return the rate of a group at the step `last_epoch`, from its first one."""
    raise ArgumentError(f"{type(self).__name__} is stepped without an epoch")

  def step(self, epoch: Any = None) -> None:
    """Set the rates of the next step, or of a given one."""
    self._step_count += 1
    if epoch is None:
      self.last_epoch += 1
      self._set(self.get_lr())
      return
    self.last_epoch = epoch
    closed = type(self).at is not LRScheduler.at
    self._set([self.at(base) for base in self.base_lrs] if closed else self.get_lr())

  def _set(self, values: list[float]) -> None:
    for group, value in zip(self.optimizer.param_groups, values): set_rate(group, value)
    self._last_lr = self.rates()

  def get_last_lr(self) -> list[float]:
    """Return the rates that were set last."""
    return self._last_lr

  def state_dict(self) -> dict[str, Any]:
    """Return all attributes but the optimizer."""
    return {key: value for key, value in self.__dict__.items() if key not in self.unsaved}

  def load_state_dict(self, state_dict: dict[str, Any]) -> None:
    """Set attributes from a state dict."""
    self.__dict__.update(state_dict)

def one_each(what: str, given: Any, optimizer: Any) -> list[Any]:
  """Return one value for each group: the given list, or one given value for all."""
  count = len(optimizer.param_groups)
  found = list(given) if isinstance(given, (list, tuple)) else [given] * count
  if len(found) != count: raise ArgumentError(f"{what}: {len(found)} values for {count} groups")
  return found

class LambdaLR(LRScheduler):
  """The first rate times a function of the count of steps."""
  def __init__(self, optimizer: Any, lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
               last_epoch: int = -1):
    self.lr_lambdas = one_each("lr_lambda", lr_lambda, optimizer)
    super().__init__(optimizer, last_epoch)

  def get_lr(self) -> list[float]:
    """Return the rates."""
    return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]

  def state_dict(self) -> dict[str, Any]:
    """Return all attributes but the optimizer. Of functions it has only the state of callable objects."""
    functions = [None if type(f).__name__ in ("function", "builtin_function_or_method") else dict(f.__dict__)
                 for f in self.lr_lambdas]
    return {**super().state_dict(), "lr_lambdas": functions}

  def load_state_dict(self, state_dict: dict[str, Any]) -> None:
    """Set attributes from a state dict."""
    functions = state_dict["lr_lambdas"]
    super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
    for f, state in zip(self.lr_lambdas, functions):
      if state is not None: f.__dict__.update(state)

class MultiplicativeLR(LambdaLR):
  """The last rate times a function of the count of steps."""
  def get_lr(self) -> list[float]:
    """Return the rates."""
    if self.last_epoch <= 0: return self.rates()
    return [rate * f(self.last_epoch) for f, rate in zip(self.lr_lambdas, self.rates())]

class StepLR(LRScheduler):
  """Times gamma every step_size steps."""
  def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
    self.step_size, self.gamma = step_size, gamma
    super().__init__(optimizer, last_epoch)

  def get_lr(self) -> list[float]:
    """Return the rates."""
    if self.last_epoch == 0 or self.last_epoch % self.step_size: return self.rates()
    return [rate * self.gamma for rate in self.rates()]

  def at(self, base: float) -> float:
    """Return the rate from the first one."""
    return base * self.gamma ** (self.last_epoch // self.step_size)

class MultiStepLR(LRScheduler):
  """Times gamma at milestones."""
  def __init__(self, optimizer: Any, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
    self.milestones, self.gamma = Counter(milestones), gamma
    super().__init__(optimizer, last_epoch)

  def get_lr(self) -> list[float]:
    """Return the rates."""
    return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in self.rates()]

  def at(self, base: float) -> float:
    """Return the rate from the first one."""
    return base * self.gamma ** sum([1 for m in self.milestones.elements() if m <= self.last_epoch])

class ConstantLR(LRScheduler):
  """Times a factor for the first steps."""
  def __init__(self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1):
    if not 0 <= factor <= 1: raise ArgumentError(f"factor is {factor}; it is from 0 to 1")
    self.factor, self.total_iters = factor, total_iters
    super().__init__(optimizer, last_epoch)

  def get_lr(self) -> list[float]:
    """Return the rates."""
    if self.last_epoch == 0: return [rate * self.factor for rate in self.rates()]
    if self.last_epoch != self.total_iters: return self.rates()
    return [rate * (1 / self.factor) for rate in self.rates()]

  def at(self, base: float) -> float:
    """Return the rate from the first one."""
    return base * (self.factor if self.last_epoch < self.total_iters else 1)

class LinearLR(LRScheduler):
  """Times a factor that goes from start_factor to end_factor in a line."""
  def __init__(self, optimizer: Any, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
               last_epoch: int = -1):
    if not 0 < start_factor <= 1: raise ArgumentError(f"start_factor is {start_factor}; it is above 0, at most 1")
    if not 0 <= end_factor <= 1: raise ArgumentError(f"end_factor is {end_factor}; it is from 0 to 1")
    self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
    super().__init__(optimizer, last_epoch)

  def get_lr(self) -> list[float]:
    """Return the rates."""
    if self.last_epoch == 0: return [rate * self.start_factor for rate in self.rates()]
    if self.last_epoch > self.total_iters: return self.rates()
    rise = self.end_factor - self.start_factor
    before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
    return [rate * (1.0 + rise / before) for rate in self.rates()]

  def at(self, base: float) -> float:
    """Return the rate from the first one."""
    done = min(self.total_iters, self.last_epoch) / self.total_iters
    return base * (self.start_factor + (self.end_factor - self.start_factor) * done)

class ExponentialLR(LRScheduler):
  """Times gamma at each step."""
  def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1):
    self.gamma = gamma
    super().__init__(optimizer, last_epoch)

  def get_lr(self) -> list[float]:
    """Return the rates."""
    return self.rates() if self.last_epoch == 0 else [rate * self.gamma for rate in self.rates()]

  def at(self, base: float) -> float:
    """Return the rate from the first one."""
    return base * self.gamma ** self.last_epoch

class PolynomialLR(LRScheduler):
  """Down to 0 by a power of the remaining share of steps."""
  def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
    self.total_iters, self.power = total_iters, power
    super().__init__(optimizer, last_epoch)

  def get_lr(self) -> list[float]:
    """Return the rates."""
    if self.last_epoch == 0 or self.last_epoch > self.total_iters: return self.rates()
    left = (1.0 - self.last_epoch / self.total_iters) / (1.0 - (self.last_epoch - 1) / self.total_iters)
    return [rate * left ** self.power for rate in self.rates()]

  def at(self, base: float) -> float:
    """Return the rate from the first one."""
    left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
    return float(base * left ** self.power)

class CosineAnnealingLR(LRScheduler):
  """Down to eta_min by half a cosine of T_max steps, and up again."""
  def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
    self.T_max, self.eta_min = T_max, eta_min
    super().__init__(optimizer, last_epoch)

  def get_lr(self) -> list[float]:
    """Return the rates."""
    n, least, period = self.last_epoch, self.eta_min, self.T_max
    if n == 0: return self.rates()
    if self._step_count == 1 and n > 0: return [self.at(base) for base in self.base_lrs]
    if (n - 1 - period) % (2 * period) == 0:
      rise = (1 - math.cos(math.pi / period)) / 2
      return [rate + (base - least) * rise for base, rate in zip(self.base_lrs, self.rates())]
    ratio = (1 + math.cos(math.pi * n / period)) / (1 + math.cos(math.pi * (n - 1) / period))
    return [ratio * (rate - least) + least for rate in self.rates()]

  def at(self, base: float) -> float:
    """Return the rate from the first one."""
    return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2

# ***** several schedules *****

def _of_one_optimizer(schedulers: Sequence[Any], optimizer: Any) -> Any:
  if not schedulers: raise ArgumentError("give a schedule at least")
  optimizer = schedulers[0].optimizer if optimizer is None else optimizer
  for i, schedule in enumerate(schedulers):
    if schedule.optimizer is not optimizer: raise ArgumentError(f"schedule {i} belongs to another optimizer")
  return optimizer

class SequentialLR(LRScheduler):
  """One schedule after the other, changing at milestones."""
  unsaved = ("optimizer", "_schedulers")

  def __init__(self, optimizer: Any, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1):
    _of_one_optimizer(schedulers, optimizer)
    if len(milestones) != len(schedulers) - 1:
      raise ArgumentError(f"{len(schedulers)} schedules change at {len(schedulers) - 1} milestones, not "
                          f"{len(milestones)}")
    self.optimizer, self._schedulers, self._milestones = optimizer, schedulers, milestones
    self.last_epoch = last_epoch + 1
    for group in optimizer.param_groups: set_rate(group, rate_of(group["initial_lr"]))
    for schedule in schedulers: schedule.last_epoch -= 1      # undo the steps of their constructors
    schedulers[0].step()
    self._last_lr = schedulers[0].get_last_lr()

  def step(self, epoch: Any = None) -> None:
    """Set the rates of the next step."""
    if epoch is not None: raise ArgumentError("SequentialLR is stepped without an epoch")
    self.last_epoch += 1
    place = sum([1 for m in self._milestones if m <= self.last_epoch])
    schedule = self._schedulers[place]
    if place and self._milestones[place - 1] == self.last_epoch: schedule.step(0)
    else: schedule.step()
    self._last_lr = schedule.get_last_lr()

  def state_dict(self) -> dict[str, Any]:
    """Return the attributes, with the state dicts of the schedules."""
    return {**super().state_dict(), "_schedulers": [schedule.state_dict() for schedule in self._schedulers]}

  def load_state_dict(self, state_dict: dict[str, Any]) -> None:
    """Set attributes from a state dict."""
    super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})
    for schedule, state in zip(self._schedulers, state_dict["_schedulers"]): schedule.load_state_dict(state)

class ChainedScheduler(SequentialLR):
  """All schedules at each step."""
  def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Any = None):
    self.optimizer = _of_one_optimizer(list(schedulers), optimizer)
    self._schedulers = list(schedulers)
    self._last_lr = self.rates()

  def step(self, epoch: Any = None) -> None:
    """Step all schedules."""
    if epoch is not None: raise ArgumentError("ChainedScheduler is stepped without an epoch")
    for schedule in self._schedulers: schedule.step()
    self._last_lr = self.rates()
