"""Schedules that cycle, restart, or wait for a plateau; those with a momentum change it, too."""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.nn.optim.schedules import LRScheduler, one_each, rate_of, set_rate

class CosineAnnealingWarmRestarts(LRScheduler):
  """Down to eta_min by half a cosine, again and again. The first period has T_0 steps, and each next one T_mult times
  as many."""
  def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
    if not isinstance(T_0, int) or T_0 < 1: raise ArgumentError(f"T_0 is {T_0!r}; it is a whole number, at least 1")
    if not isinstance(T_mult, int) or T_mult < 1:
      raise ArgumentError(f"T_mult is {T_mult!r}; it is a whole number, at least 1")
    self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
    super().__init__(optimizer, last_epoch)

  def get_lr(self) -> list[float]:
    """Return the rates."""
    share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
    return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

  def step(self, epoch: Any = None) -> None:
    """Set the rates of the next step, or of a given epoch, which may be a fraction."""
    self._step_count += 1
    if epoch is None and self.last_epoch < 0: epoch = 0
    if epoch is None:
      epoch = self.last_epoch + 1
      self.T_cur += 1
      if self.T_cur >= self.T_i: self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
    else: self._place(epoch)
    self.last_epoch = math.floor(epoch)
    self._set(self.get_lr())

  def _place(self, epoch: float) -> None:
    """Find the period of an epoch, and the place in it."""
    if epoch < 0: raise ArgumentError(f"epoch is {epoch}; it must not be negative")
    self.T_i, done = self.T_0, 0.0
    if epoch >= self.T_0 and self.T_mult > 1:
      periods = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
      done = self.T_0 * (self.T_mult ** periods - 1) / (self.T_mult - 1)
      self.T_i = self.T_0 * self.T_mult ** periods
    self.T_cur = epoch - done if self.T_mult > 1 or epoch < self.T_0 else epoch % self.T_0   # type: ignore[assignment]

class _WithMomentum(LRScheduler):
  """Base of the schedules that also set the momentum: that of SGD, or the first beta of Adam."""
  cycle_momentum: bool
  use_beta1 = False

  def _find_momentum(self, optimizer: Any) -> None:
    names = optimizer.defaults
    if "betas" not in names and "momentum" not in names:
      raise ArgumentError(f"{type(optimizer).__name__} has no momentum; give cycle_momentum=False")
    self.use_beta1 = "betas" in names

  def _set_momentum(self, group: Any, value: float) -> None:
    if self.use_beta1: group["betas"] = (value, *group["betas"][1:])
    else: group["momentum"] = value

def _line(start: float, end: float, share: float) -> float: return (end - start) * share + start
def _cosine(start: float, end: float, share: float) -> float:
  return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

class OneCycleLR(_WithMomentum):
  """Up to max_lr, down, and down to nearly nothing: in two or three phases. The momentum goes the other way.

  Source: Smith and Topin 2017.
  """
  unsaved = ("optimizer", "_curve")

  def __init__(self, optimizer: Any, max_lr: float | list[float], total_steps: int | None = None,
               epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
               anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float | list[float] = 0.85,
               max_momentum: float | list[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
               three_phase: bool = False, last_epoch: int = -1):
    if total_steps is None:
      if not epochs or not steps_per_epoch: raise ArgumentError("give total_steps, or epochs and steps_per_epoch")
      total_steps = epochs * steps_per_epoch
    if total_steps <= 0: raise ArgumentError(f"total_steps is {total_steps}; it must be at least 1")
    if not 0 <= pct_start <= 1: raise ArgumentError(f"pct_start is {pct_start}; it is from 0 to 1")
    if anneal_strategy not in ("cos", "linear"):
      raise ArgumentError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
    self.total_steps, self.cycle_momentum, self.three_phase = total_steps, cycle_momentum, three_phase
    self._curve = _cosine if anneal_strategy == "cos" else _line
    first, high, last = "initial_lr", "max_lr", "min_lr"
    low, most = "base_momentum", "max_momentum"
    rise = pct_start * total_steps - 1
    if three_phase:
      self._phases = [(rise, first, high, most, low), (2 * rise, high, first, low, most),
                      (total_steps - 1, first, last, most, most)]
    else: self._phases = [(rise, first, high, most, low), (total_steps - 1, high, last, low, most)]
    if last_epoch == -1: self._prepare(optimizer, max_lr, div_factor, final_div_factor)
    if cycle_momentum:
      self._find_momentum(optimizer)
      if last_epoch == -1: self._prepare_momentum(optimizer, base_momentum, max_momentum)
    super().__init__(optimizer, last_epoch)

  def _prepare(self, optimizer: Any, highest: Any, div: float, final_div: float) -> None:
    for group, most in zip(optimizer.param_groups, one_each("max_lr", highest, optimizer)):
      group["initial_lr"], group["max_lr"] = most / div, most
      group["min_lr"] = group["initial_lr"] / final_div
      set_rate(group, group["initial_lr"])

  def _prepare_momentum(self, optimizer: Any, low: Any, high: Any) -> None:
    for group, least, most in zip(optimizer.param_groups, one_each("base_momentum", low, optimizer),
                                  one_each("max_momentum", high, optimizer)):
      self._set_momentum(group, most)
      group["max_momentum"], group["base_momentum"] = most, least

  def get_lr(self) -> list[float]:
    """Return the rates, and set the momenta."""
    n, found = self.last_epoch, []
    if n > self.total_steps: raise ArgumentError(f"step {n} of a schedule with {self.total_steps} steps; give more")
    begin: float = 0
    for i, (end, start, stop, first, last) in enumerate(self._phases):
      if n <= end or i == len(self._phases) - 1: break
      begin = end
    share = (n - begin) / (end - begin)
    for group in self.optimizer.param_groups:
      found.append(self._curve(group[start], group[stop], share))
      if self.cycle_momentum: self._set_momentum(group, self._curve(group[first], group[last], share))
    return found

class CyclicLR(_WithMomentum):
  """Between base_lr and max_lr in triangles, with an amplitude that stays, halves or shrinks. Source: Smith 2015."""
  unsaved = ("optimizer", "_scale")

  def __init__(self, optimizer: Any, base_lr: float | list[float], max_lr: float | list[float],
               step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular",
               gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
               cycle_momentum: bool = True, base_momentum: float = 0.8, max_momentum: float = 0.9,
               last_epoch: int = -1):
    if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
      raise ArgumentError(f"mode is 'triangular', 'triangular2' or 'exp_range', not {mode!r}; or give scale_fn")
    lows = one_each("base_lr", base_lr, optimizer)
    if last_epoch == -1:
      for group, low in zip(optimizer.param_groups, lows): set_rate(group, low)
    self.max_lrs = one_each("max_lr", max_lr, optimizer)
    down = float(step_size_up if step_size_down is None else step_size_down)
    self.total_size = float(step_size_up) + down
    self.step_ratio = float(step_size_up) / self.total_size
    self.mode, self.gamma, self.cycle_momentum = mode, gamma, cycle_momentum
    scales: dict[str, tuple[Callable[[float], float], str]] = {
      "triangular": (lambda x: 1.0, "cycle"), "triangular2": (lambda x: 1 / 2.0 ** (x - 1), "cycle"),
      "exp_range": (lambda x: gamma ** x, "iterations")}
    self._scale, self.scale_mode = scales[mode] if scale_fn is None else (scale_fn, scale_mode)
    if cycle_momentum:
      self._find_momentum(optimizer)
      self.base_momentums = one_each("base_momentum", base_momentum, optimizer)
      self.max_momentums = one_each("max_momentum", max_momentum, optimizer)
      for group, low, high in zip(optimizer.param_groups, self.base_momentums, self.max_momentums):
        group["base_momentum"], group["max_momentum"] = low, high
        self._set_momentum(group, high)
    super().__init__(optimizer, last_epoch)
    self.base_lrs = lows

  def scale_fn(self, x: float) -> float:
    """Return the amplitude of a cycle, or of a step."""
    return self._scale(x)

  def get_lr(self) -> list[float]:
    """Return the rates, and set the momenta."""
    cycle = math.floor(1 + self.last_epoch / self.total_size)
    place = 1.0 + self.last_epoch / self.total_size - cycle
    height = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
    scale = self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
    if self.cycle_momentum:
      for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
        self._set_momentum(group, high - (high - low) * height * scale)
    return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs)]

class ReduceLROnPlateau(LRScheduler):
  """Times factor when a measure has not become better for more than `patience` steps."""
  def __init__(self, optimizer: Any, mode: str = "min", factor: float = 0.1, patience: int = 10,
               threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
               min_lr: float | list[float] = 0, eps: float = 1e-8):
    if factor >= 1: raise ArgumentError(f"factor is {factor}; it must be below 1")
    if mode not in ("min", "max"): raise ArgumentError(f"mode is 'min' or 'max', not {mode!r}")
    if threshold_mode not in ("rel", "abs"):
      raise ArgumentError(f"threshold_mode is 'rel' or 'abs', not {threshold_mode!r}")
    self.optimizer, self.factor, self.mode, self.patience = optimizer, factor, mode, patience
    self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
    self.min_lrs, self.default_min_lr = one_each("min_lr", min_lr, optimizer), min_lr
    self.last_epoch, self._last_lr = 0, self.rates()
    self._reset()

  def _reset(self) -> None:
    """Forget the measures."""
    self.best = math.inf if self.mode == "min" else -math.inf
    self.cooldown_counter = self.num_bad_epochs = 0

  def is_better(self, a: float, best: float) -> bool:
    """Is a measure better than the best one by the threshold?"""
    sign = -1 if self.mode == "min" else 1
    if self.threshold_mode == "abs": return sign * a > sign * (best + sign * self.threshold)
    return sign * a > sign * best * (1 + sign * self.threshold)

  def step(self, metrics: Any = None, epoch: Any = None) -> None:  # type: ignore[override]
    """Take a measure, and lower the rates if it is time."""
    if metrics is None: raise ArgumentError("ReduceLROnPlateau.step wants the measure: step(validation_loss)")
    current = float(metrics)
    self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
    if self.is_better(current, self.best): self.best, self.num_bad_epochs = current, 0
    else: self.num_bad_epochs += 1
    if self.in_cooldown:
      self.cooldown_counter -= 1
      self.num_bad_epochs = 0
    if self.num_bad_epochs > self.patience:
      self._lower()
      self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
    self._last_lr = self.rates()

  def _lower(self) -> None:
    for group, least in zip(self.optimizer.param_groups, self.min_lrs):
      old = rate_of(group["lr"])
      new = max(old * self.factor, least)
      if old - new > self.eps: set_rate(group, new)

  @property
  def in_cooldown(self) -> bool:
    """Are measures ignored for now, after the rates were lowered?"""
    return self.cooldown_counter > 0
