"""`TorchOptimizer`, the base of PyTorch's optimizers: groups, state by parameter, state dicts, hooks, steps.

The values are computed by a rule of tinyhw/nn/optim. A step writes parameters and state in place, now. A TinyJit may
capture it: options are read in memory, so a schedule between calls has its effect.
"""
from __future__ import annotations
from collections import defaultdict
from collections.abc import Callable, Iterable
import copy
from typing import Any

from tinyhw.compat.torch.dress import dress, plain
from tinyhw.compat.torch.differentiation.modes import enable_grad
from tinyhw.compat.torch.differentiation.hooks import RemovableHandle, registered
from tinyhw.compat.torch.tensors import TorchTensor
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import is_number
from tinyhw.nn.optim.groups import ParameterGroup, begin, join, separate, step_group
from tinyhw.nn.optim.rules import UpdateRule
from tinyhw.tensor import Tensor

class TorchOptimizer:
  """The base of optimizers. params: tensors, (name, tensor) pairs, or dicts of "params" and options."""
  rule: UpdateRule | None = None
  begins_early = False   # state is made with the optimizer, not by the first step

  def __init__(self, params: Any, defaults: dict[str, Any]):
    if isinstance(params, Handle) or not isinstance(params, Iterable):
      raise ArgumentError(f"an optimizer wants an iterable of tensors or dicts, not {type(params).__name__}; "
                          f"net.parameters() is one")
    groups = list(params)
    if not groups: raise ArgumentError("an optimizer got an empty parameter list; give it parameters")
    self.defaults, self.param_groups = defaults, list[ParameterGroup]()
    self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
    self._hooks: dict[str, dict[int, Any]] = defaultdict(dict)
    self._check(defaults)
    for group in groups if isinstance(groups[0], dict) else [{"params": groups}]: self.add_param_group(group)

  def _check(self, options: dict[str, Any]) -> None:
    for name in ("lr", "eps", "weight_decay", "momentum", "alpha", "lr_decay", "initial_accumulator_value", "d"):
      value: Any = options.get(name)
      if is_number(value) and not value >= 0:
        raise ArgumentError(f"{type(self).__name__}: {name} is {value}; it must not be negative")
    for i, beta in enumerate(options.get("betas", ())):
      if is_number(beta) and not 0 <= beta < 1:
        raise ArgumentError(f"{type(self).__name__}: betas[{i}] is {beta}; it must be at least 0 and below 1")
    for name in ("differentiable",):
      if options.get(name):
        raise ArgumentError(f"{name}=True is not written: a step has no gradient; write the update by hand for that")

  def add_param_group(self, param_group: dict[str, Any]) -> None:
    """Add parameters with options of their own. Options that it lacks are the optimizer's."""
    if not isinstance(param_group, dict): raise ArgumentError(f"a group is a dict, not {type(param_group).__name__}")
    if "params" not in param_group: raise ArgumentError('a group has its tensors below "params"')
    given = param_group["params"]
    if isinstance(given, (set, frozenset)): raise ArgumentError("a set has no order; give parameters in a list")
    items = [given] if isinstance(given, Handle) else list(given)
    names = [x[0] for x in items if isinstance(x, tuple)]
    params = [x[1] if isinstance(x, tuple) else x for x in items]
    for p in params: self._checked(p)
    if len({id(p) for p in params}) < len(params): raise ArgumentError("a parameter is in the list twice")
    known = {id(p) for group in self.param_groups for p in group["params"]}
    if any(id(p) in known for p in params): raise ArgumentError("a parameter is in another group already")
    group = ParameterGroup({**param_group, "params": params})
    if names: group["param_names"] = names
    for name, value in self.defaults.items():
      if name not in group:
        if value is REQUIRED: raise ArgumentError(f"a group lacks {name}, which has no default")
        group[name] = value
    self._check(group)
    self.param_groups.append(group)
    if self.begins_early: self._begin(group, params)

  def _checked(self, p: Any) -> None:
    if not isinstance(p, Handle): raise ArgumentError(f"an optimizer changes tensors, not {type(p).__name__}")
    if p.holds_complex: raise ArgumentError("a complex parameter is not stepped here; train its view_as_real")
    if not dtypes.is_float(p.dtype): raise ArgumentError(f"a parameter has a float type, not {p.dtype}")

  def zero_grad(self, set_to_none: bool = True) -> None:
    """Drop the gradients of all parameters, or fill them with zeros."""
    for group in self.param_groups:
      for p in group["params"]: p.grad = None if set_to_none or p.grad is None else p.grad.zeros_like()

  # ***** steps *****

  def step(self, closure: Callable[[], Any] | None = None) -> Any:
    """Change the parameters that have a gradient. closure: computes the loss with gradients; the loss is returned."""
    for hook in list(self._hooks["before"].values()): hook(self, (), {"closure": closure} if closure else {})
    found = self._stepped(closure)
    for hook in list(self._hooks["after"].values()): hook(self, (), {"closure": closure} if closure else {})
    return found

  def _stepped(self, closure: Callable[[], Any] | None) -> Any:
    loss = None
    if closure is not None:
      with enable_grad(): loss = closure()
    changed: list[Tensor] = []
    for group in self.param_groups: changed += self._step_group(group)
    if changed: Tensor.realize(*changed)
    return loss

  def _begin(self, group: ParameterGroup, params: list[Any]) -> None:
    assert self.rule is not None, f"{type(self).__name__} has no rule"
    new = [(plain(p), dict[str, Any]()) for p in params]
    begin(self.rule, group.options(params[0].device), new)
    seen: dict[int, Any] = {}
    for p, (_, state) in zip(params, new):
      if state: self.state[p] = {name: seen.setdefault(id(x), dress(x)) for name, x in state.items()}

  def _step_group(self, group: ParameterGroup) -> list[Tensor]:
    rule, params = self.rule, [p for p in group["params"] if p.grad is not None]
    assert rule is not None, f"{type(self).__name__} has no rule"
    if not params: return []
    options = group.options(params[0].device)
    if fresh := [p for p in params if p not in self.state]: self._begin(group, fresh)
    if len(params) < len(group["params"]):
      chosen = {id(p) for p in params}
      separate(rule, options, [self.state[p] for p in params if p in self.state],
               [self.state[p] for p in group["params"] if id(p) not in chosen and p in self.state])
    entries = [(p, p.grad, self.state.get(p, {})) for p in params]
    changed = step_group(rule, options, entries, bool(group.get("maximize")), plain)
    for p, _, state in entries:
      if state: self.state[p] = {name: dress(x) for name, x in state.items()}
    return changed

  # ***** state *****

  def state_dict(self) -> dict[str, Any]:
    """Return state and options, with numbers in the place of parameters. Tensors are the optimizer's own."""
    for hook in list(self._hooks["state"].values()): hook(self)
    numbers = {id(p): i for i, p in enumerate([p for group in self.param_groups for p in group["params"]])}
    groups = [{**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]}
              for group in self.param_groups]
    return {"state": {numbers.get(id(p), p): dict(state) for p, state in self.state.items()}, "param_groups": groups}

  def load_state_dict(self, state_dict: dict[str, Any]) -> None:
    """Take over copies of a state, in the types and on the devices of the parameters."""
    for hook in list(self._hooks["load"].values()): state_dict = hook(self, state_dict) or state_dict
    groups = state_dict["param_groups"]
    counts = [len(g["params"]) for g in groups], [len(g["params"]) for g in self.param_groups]
    if counts[0] != counts[1]:
      raise ArgumentError(f"the state has groups of {counts[0]} parameters, and the optimizer of {counts[1]}")
    params = {number: p for mine, theirs in zip(self.param_groups, groups)
              for number, p in zip(theirs["params"], mine["params"])}
    self.state = defaultdict(dict)
    for number, state in state_dict["state"].items():
      p = params.get(number)
      if p is None: self.state[number] = copy.deepcopy(state)
      else: self.state[p] = {name: _loaded(name, x, p) for name, x in state.items()}
    for mine, theirs in zip(self.param_groups, groups):
      mine.update({k: copy.deepcopy(v) for k, v in theirs.items() if k != "params"})
      for name, value in self.defaults.items(): mine.setdefault(name, value)
      if self.rule is not None:
        join(self.rule, mine.options(mine["params"][0].device), [self.state[p] for p in mine["params"] if p in
                                                               self.state])

  # ***** hooks *****

  def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(optimizer, args, keywords) before each step."""
    return registered(self._hooks["before"], hook)

  def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(optimizer, args, keywords) after each step."""
    return registered(self._hooks["after"], hook)

  def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    """Call hook(optimizer) before a state dict is made."""
    return registered(self._hooks["state"], hook)

  def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    """Call hook(optimizer, state) before a state is loaded. A state that it returns is loaded instead."""
    return registered(self._hooks["load"], hook)

  def __repr__(self) -> str:
    lines = [f"{type(self).__name__} ("]
    for i, group in enumerate(self.param_groups):
      lines += [f"Parameter Group {i}", *[f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]]
    return "\n".join([*lines, ")"])

class _Required:
  def __repr__(self) -> str: return "<required parameter>"

REQUIRED: Any = _Required()

def _loaded(name: str, x: Any, p: Any) -> Any:
  """Return a copy of a part of a state: of a tensor of ours, of PyTorch's, or of another value."""
  if not isinstance(x, Handle) and hasattr(x, "detach"): x = Tensor(x.detach().numpy())
  if not isinstance(x, Handle): return copy.deepcopy(x)
  value = plain(x).detach()
  if name != "step" and value.ndim and dtypes.is_float(p.dtype): value = value.cast(p.dtype)
  return TorchTensor(value.to(p.device).clone().realize(), requires_grad=False)
