"""`LBFGS` with PyTorch's parameters and order of evaluations. What computes is in tinyhw/nn/optim/lbfgs.py."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.compat.torch.dress import dress, plain
from tinyhw.compat.torch.differentiation.modes import enable_grad
from tinyhw.compat.torch.optimizers.optimizer import TorchOptimizer
from tinyhw.errors import ArgumentError
from tinyhw.nn.optim.lbfgs import LinePoint, StepHistory, strong_wolfe
from tinyhw.tensor import Tensor

class LBFGS(TorchOptimizer):
  """Limited-memory BFGS. `step` needs a closure that computes the loss and its gradients, and calls it several times.

  line_search_fn: None for steps of the size lr, or "strong_wolfe".
  """
  def __init__(self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None,
               tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
               line_search_fn: str | None = None):
    if line_search_fn not in (None, "strong_wolfe"):
      raise ArgumentError(f"line_search_fn is None or 'strong_wolfe', not {line_search_fn!r}")
    most = max_iter * 5 // 4 if max_eval is None else max_eval
    super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": most, "tolerance_grad": tolerance_grad,
                              "tolerance_change": tolerance_change, "history_size": history_size,
                              "line_search_fn": line_search_fn})
    if len(self.param_groups) != 1: raise ArgumentError("LBFGS has one group of parameters")
    self._params: list[Any] = self.param_groups[0]["params"]

  def _flat(self, what: Callable[[Any], Any]) -> Tensor:
    parts = [what(p).reshape(-1) for p in self._params]
    return Tensor.cat(*parts).contiguous().realize() if len(parts) > 1 else parts[0].contiguous().realize()

  def _gradient(self) -> Tensor:
    return self._flat(lambda p: plain(p).zeros_like() if p.grad is None else plain(p.grad))

  def _place(self, x: Tensor) -> None:
    """Write a flat vector into the parameters."""
    begin, written = 0, []
    for p in self._params:
      count = int(p.numel())
      written.append(plain(p).assign(x[begin:begin + count].reshape(p.shape).cast(p.dtype)))
      begin += count
    Tensor.realize(*written)

  def _stepped(self, closure: Callable[[], Any] | None) -> Any:
    if closure is None: raise ArgumentError("LBFGS.step wants a closure that computes the loss and its gradients")
    def loss_of() -> Any:
      with enable_grad(): return closure()
    options, state = self.param_groups[0], self.state[self._params[0]]
    first = loss_of()
    loss, gradient, evaluations = float(first), self._gradient(), 1
    state["func_evals"] = state.get("func_evals", 0) + 1
    state.setdefault("n_iter", 0)
    flat = _largest(gradient) <= options["tolerance_grad"]
    for n in range(1, options["max_iter"] + 1):
      if flat: break
      state["n_iter"] += 1
      direction, t = self._direction(state, gradient, float(options["lr"]))
      before, slope = loss, (gradient * direction).sum().item()
      if slope > -options["tolerance_change"]: break
      start = self._flat(plain)
      if options["line_search_fn"] is None:
        self._place(start + direction * t)
        count = int(n != options["max_iter"])
        if count: loss, gradient = float(loss_of()), self._gradient()
      else: loss, gradient, t, count = self._searched(loss_of, start, direction, t, LinePoint(0.0, loss, gradient,
                                                                                            slope))
      state["t"] = t
      flat = _largest(gradient) <= options["tolerance_grad"]
      evaluations += count
      state["func_evals"] += count
      if evaluations >= options["max_eval"] or abs(loss - before) < options["tolerance_change"]: break
      if _largest(direction) * abs(t) <= options["tolerance_change"]: break
    return first

  def _direction(self, state: dict[str, Any], gradient: Tensor, lr: float) -> tuple[Tensor, float]:
    """Return the direction of a step and its first length. Remember what the next one needs."""
    if "history" not in state: state["history"] = StepHistory(self.param_groups[0]["history_size"])
    history, first = state["history"], "d" not in state
    if not first:
      history.push((plain(state["d"]) * state["t"]).realize(), (gradient - plain(state["prev_flat_grad"])).realize())
    direction = history.direction(gradient).contiguous().realize()
    state["d"], state["prev_flat_grad"] = dress(direction), dress(gradient)
    return plain(direction), min(1.0, 1.0 / gradient.abs().sum().item()) * lr if first else lr

  def _searched(self, loss_of: Callable[[], Any], start: Tensor, direction: Tensor, t: float,
                here: LinePoint) -> tuple[float, Tensor, float, int]:
    def evaluate(t: float) -> LinePoint:
      self._place(start + direction * t)
      loss, gradient = float(loss_of()), self._gradient()
      return LinePoint(t, loss, gradient, (gradient * direction).sum().item())
    found, count = strong_wolfe(evaluate, here, t, _largest(direction))
    self._place(start + direction * found.t)
    return found.loss, found.gradient, found.t, count

def _largest(x: Tensor) -> float: return float(x.abs().max().item())
