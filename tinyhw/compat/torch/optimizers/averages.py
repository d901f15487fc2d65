"""`torch.optim.swa_utils`: averages of a model's parameters over its training, and the schedule that goes with them."""
from __future__ import annotations
from collections.abc import Callable, Iterable
import copy
import math
from typing import Any

from tinyhw.compat.torch.dress import dress
from tinyhw.compat.torch.differentiation.modes import no_grad
from tinyhw.compat.torch.modules.module import Module
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.nn.optim.schedules import LRScheduler, one_each, rate_of
from tinyhw.tensor import Tensor

class AveragedModel(Module):
  """A copy of a model, below `module`, whose parameters are averages: equal ones, or by avg_fn(average, new, count).

  use_buffers: average buffers, too; otherwise they are copied.
  """
  def __init__(self, model: Module, device: Any = None, avg_fn: Callable[..., Any] | None = None,
               multi_avg_fn: Callable[..., Any] | None = None, use_buffers: bool = False):
    super().__init__()
    if avg_fn is not None and multi_avg_fn is not None: raise ArgumentError("give avg_fn or multi_avg_fn, not both")
    self.module = copy.deepcopy(model)
    if device is not None: self.module = self.module.to(device)
    self.register_buffer("n_averaged", dress(Tensor(0, dtype=dtypes.int64).contiguous().realize()))
    self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

  def forward(self, *args: Any, **keywords: Any) -> Any:
    """Call the copy."""
    return self.module(*args, **keywords)

  def update_parameters(self, model: Module) -> None:
    """Take the present parameters of a model into the averages."""
    with no_grad():
      mine: list[Any] = list(self.module.parameters())
      theirs: list[Any] = list(model.parameters())
      if self.use_buffers: mine, theirs = [*mine, *self.module.buffers()], [*theirs, *model.buffers()]
      self._average(mine, [x.detach().to(a.device) for a, x in zip(mine, theirs)])
      if not self.use_buffers:
        for old, new in zip(self.module.buffers(), model.buffers()):
          old.copy_(new.detach())  # type: ignore[attr-defined]
      self.n_averaged.add_(1)
      Tensor.realize(self.n_averaged, *self.module.parameters(), *self.module.buffers())

  def _average(self, mine: list[Any], theirs: list[Any]) -> None:
    if self.n_averaged.item() == 0:
      for a, x in zip(mine, theirs): a.copy_(x)
    elif self.multi_avg_fn is not None: self.multi_avg_fn(mine, theirs, self.n_averaged)
    else:
      for a, x in zip(mine, theirs):
        if self.avg_fn is None: a.copy_(a + (x - a) / (self.n_averaged + 1))
        else: a.copy_(self.avg_fn(a.detach(), x, self.n_averaged))

def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
  """Return the avg_fn of an exponential average."""
  _check_decay(decay)
  return lambda average, new, count: average * decay + new * (1 - decay)

def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
  """Return the multi_avg_fn of an exponential average."""
  one = get_ema_avg_fn(decay)
  def update(averages: list[Any], news: list[Any], count: Any) -> None:
    for a, x in zip(averages, news): a.copy_(one(a, x, count) if dtypes.is_float(a.dtype) else x)
  return update

def get_swa_avg_fn() -> Callable[..., Any]:
  """Return the avg_fn of an equal average."""
  return lambda average, new, count: average + (new - average) / (count + 1)

def get_swa_multi_avg_fn() -> Callable[..., Any]:
  """Return the multi_avg_fn of an equal average."""
  def update(averages: list[Any], news: list[Any], count: Any) -> None:
    for a, x in zip(averages, news): a.copy_(a + (x - a) / (count + 1))
  return update

def _check_decay(decay: float) -> None:
  if not 0 <= decay <= 1: raise ArgumentError(f"decay is {decay}; it is from 0 to 1")

def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
  """Compute the statistics of batch normalizations anew, as equal averages over the batches of a loader."""
  norms = [m for m in model.modules() if "BatchNorm" in type(m).__name__]
  if not norms: return
  momenta, mode = [m.momentum for m in norms], model.training
  for m in norms:
    m.running_mean.zero_()
    m.running_var.fill_(1)
    m.num_batches_tracked.zero_()
    m.momentum = None
  model.train()
  with no_grad():
    for batch in loader:
      x = batch[0] if isinstance(batch, (list, tuple)) else batch
      model(x if device is None else x.to(device))
      Tensor.realize(*[b for m in norms for b in m.buffers()])
  for m, momentum in zip(norms, momenta): m.momentum = momentum
  model.train(mode)

class SWALR(LRScheduler):
  """From the present rates to swa_lr in anneal_epochs steps, by a line or half a cosine."""
  def __init__(self, optimizer: Any, swa_lr: float | list[float], anneal_epochs: int = 10, anneal_strategy: str = "cos",
               last_epoch: int = -1):
    if anneal_strategy not in ("cos", "linear"):
      raise ArgumentError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
    if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
      raise ArgumentError(f"anneal_epochs is {anneal_epochs!r}; it is a whole number, not negative")
    for group, rate in zip(optimizer.param_groups, one_each("swa_lr", swa_lr, optimizer)): group["swa_lr"] = rate
    self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
    super().__init__(optimizer, last_epoch)

  def _share(self, step: int) -> float:
    t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
    return t if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

  def get_lr(self) -> list[float]:
    """Return the rates."""
    n = self._step_count - 1
    if not self.anneal_epochs: n = max(1, n)
    before, share, found = self._share(max(0, n - 1)), self._share(n), []
    for group in self.optimizer.param_groups:
      swa, rate = group["swa_lr"], rate_of(group["lr"])
      first = swa if before == 1 else (rate - before * swa) / (1 - before)
      found.append(swa * share + first * (1 - share))
    return found
