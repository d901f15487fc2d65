"""`torch.amp.GradScaler`: a loss is scaled up before its gradients are computed, and they are scaled back.

It does that on every device, "cpu" too. A step whose gradients have a NaN or an infinity is left out, and the scale
becomes smaller. After growth_interval steps without one, it becomes larger.
"""
from __future__ import annotations
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor

class GradScaler:
  """Scales losses, and the gradients of optimizers back. enabled=False: it does nothing."""
  def __init__(self, device: str = "cuda", init_scale: float = 2.0 ** 16, growth_factor: float = 2.0,
               backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True):
    if growth_factor <= 1: raise ArgumentError(f"growth_factor is {growth_factor}; it must be above 1")
    if backoff_factor >= 1: raise ArgumentError(f"backoff_factor is {backoff_factor}; it must be below 1")
    self._enabled, self._scale, self._good_steps = enabled, float(init_scale), 0
    self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
    self._found: dict[int, bool] = {}     # by optimizer: have its unscaled gradients a NaN or an infinity?
    self._stepped: set[int] = set()

  def scale(self, outputs: Any) -> Any:
    """Return a loss, or losses in lists and tuples, times the scale."""
    if not self._enabled: return outputs
    if isinstance(outputs, Handle): return outputs * self._scale  # type: ignore[operator]
    if isinstance(outputs, (list, tuple)): return type(outputs)([self.scale(x) for x in outputs])
    raise ArgumentError(f"scale wants a tensor, or tensors in a list, not {outputs!r}")

  def unscale_(self, optimizer: Any) -> None:
    """Divide the gradients of an optimizer by the scale, for example to clip them. Once before each step."""
    if not self._enabled: return
    if id(optimizer) in self._found: raise ArgumentError("unscale_ was called for this optimizer since the last update")
    if id(optimizer) in self._stepped: raise ArgumentError("unscale_ comes before step, and step was called")
    found: list[Any] = []
    for group in optimizer.param_groups:
      for p in group["params"]:
        if p.grad is None: continue
        p.grad = p.grad * (1 / self._scale)
        found.append(p.grad.detach().isfinite().all())
    if not found: raise ArgumentError("no parameter has a gradient; call scaler.scale(loss).backward()")
    self._found[id(optimizer)] = not Tensor.stack(found[0], *found[1:]).all().item()

  def step(self, optimizer: Any, *args: Any, **keywords: Any) -> Any:
    """Step, unless a gradient is not finite. Gradients are scaled back first if unscale_ was not called."""
    if not self._enabled: return optimizer.step(*args, **keywords)
    if keywords.get("closure") is not None or args: raise ArgumentError("GradScaler.step takes no closure")
    if id(optimizer) in self._stepped: raise ArgumentError("step was called for this optimizer since the last update")
    if id(optimizer) not in self._found: self.unscale_(optimizer)
    self._stepped.add(id(optimizer))
    return None if self._found[id(optimizer)] else optimizer.step(*args, **keywords)

  def update(self, new_scale: Any = None) -> None:
    """Set the scale for the next step: smaller after a gradient that was not finite, else larger from time to time."""
    if not self._enabled: return
    if new_scale is not None: self._scale = float(new_scale)
    else:
      if not self._found: raise ArgumentError("update comes after step")
      if any(self._found.values()): self._scale, self._good_steps = self._scale * self._backoff_factor, 0
      else:
        self._good_steps += 1
        if self._good_steps == self._growth_interval:
          self._scale, self._good_steps = self._scale * self._growth_factor, 0
    self._found, self._stepped = {}, set()

  def get_scale(self) -> float:
    """Return the scale; 1 if it is not enabled."""
    return self._scale if self._enabled else 1.0

  def is_enabled(self) -> bool:
    """Does it scale?"""
    return self._enabled

  def get_growth_factor(self) -> float:
    """Return the factor of growth."""
    return self._growth_factor

  def get_backoff_factor(self) -> float:
    """Return the factor after a gradient that is not finite."""
    return self._backoff_factor

  def get_growth_interval(self) -> int:
    """Return the count of good steps before the scale grows."""
    return self._growth_interval

  def state_dict(self) -> dict[str, Any]:
    """Return scale and options; {} if it is not enabled."""
    if not self._enabled: return {}
    return {"scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._good_steps}

  def load_state_dict(self, state_dict: dict[str, Any]) -> None:
    """Set scale and options from a state dict."""
    if not self._enabled: return
    if not state_dict: raise ArgumentError("the state is empty; it is that of a scaler that was not enabled")
    self._scale, self._good_steps = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
    self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
    self._growth_interval = state_dict["growth_interval"]
