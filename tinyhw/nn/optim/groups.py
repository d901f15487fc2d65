"""Groups of parameters with options of their own, and the step of such a group by a rule (rules.py).

The numbers among the options are also in memory of the device, in float64 where it has that. A step reads them there,
so that a change compiles nothing again, and a TinyJit that captured the step uses new numbers in its next call. What
depends on options and counts of steps only is computed by one small kernel for all parameters with the same count.

Parameters that began together share their count of steps: one tensor. A step that passes over some of them, since they
have no gradient, gives the others a count of their own.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable
from typing import Any

from tinyhw.dtype import DType, dtypes, least_upper_dtype
from tinyhw.errors import ArgumentError
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import is_number
from tinyhw.nn.optim import widest_float
from tinyhw.nn.optim.rules import Numbers, UpdateRule
from tinyhw.tensor import Tensor

Entry = tuple[Tensor, Tensor, dict[str, Any]]   # a parameter, its gradient, and its state

class ParameterGroup(dict[str, Any]):
  """Options by name, and parameters below "params". Its numbers are in memory, too, as soon as a step used them."""
  _memory: Tensor | None = None
  _places: tuple[tuple[str, int], ...] = ()
  _values: list[float] | None = None

  def __setitem__(self, key: str, value: Any) -> None:
    super().__setitem__(key, value)
    if self._memory is not None and key != "params": self._write()

  def update(self, *args: Any, **keywords: Any) -> None:
    """Set options, as a dict's update does."""
    for key, value in dict(*args, **keywords).items(): self[key] = value

  def _write(self) -> None:
    """Write the numbers if they changed. Where other options are numbers than before, the next step makes memory."""
    places = self._numbers()
    values = [self._at(*place) for place in places]
    if self._memory is None or places != self._places: self._memory = None
    elif values != self._values: self._memory.assign(_vector(values, self._memory.device))
    self._values = values

  def _numbers(self) -> tuple[tuple[str, int], ...]:
    """Return the names and positions of numbers; -1 stands for an option that is one number."""
    found = []
    for name, value in self.items():
      if _is_real(value): found.append((name, -1))
      elif name != "params" and isinstance(value, (tuple, list)):
        found += [(name, i) for i, x in enumerate(value) if _is_real(x)]
    return tuple(found)

  def _at(self, name: str, i: int) -> float: return float(self[name] if i < 0 else self[name][i])

  def options(self, device: Any) -> GroupOptions:
    """Return the options as a rule reads them. Their memory is made at the first call, on a device."""
    if self._memory is None:
      self._places = self._numbers()
      self._values = [self._at(*place) for place in self._places]
      self._memory = _vector(self._values, device).realize()
    return GroupOptions(self, self._memory, {place: k for k, place in enumerate(self._places)})

  def __deepcopy__(self, memo: dict[int, Any]) -> ParameterGroup:
    found = type(self)()
    for key, value in self.items(): dict.__setitem__(found, key, value)
    return found

  def __reduce__(self) -> Any: return type(self), (dict(self),)

class GroupOptions:
  """Options for a rule: attributes are Tensors of the type `dtype` without axes, or tuples of such; `given` returns the
  option."""
  def __init__(self, group: ParameterGroup, memory: Tensor, places: dict[tuple[str, int], int]):
    self._group, self._memory, self._places = group, memory, places

  @property
  def dtype(self) -> DType: return self._memory.dtype

  def given(self, name: str) -> Any:
    """Return an option as the user gave it."""
    return self._group[name]

  def __getattr__(self, name: str) -> Any:
    if name.startswith("_"): raise AttributeError(name)
    if (name, -1) in self._places: return self._memory[self._places[name, -1]]
    value = self._group[name]
    if isinstance(value, Handle): return _scalar(value, self.dtype)
    return tuple([self._item(name, i) for i in range(len(value))])

  def _item(self, name: str, i: int) -> Tensor:
    if (name, i) in self._places: return self._memory[self._places[name, i]]
    return _scalar(self._group[name][i], self.dtype)

def _is_real(x: Any) -> bool: return is_number(x) and not isinstance(x, bool)

def _scalar(x: Any, dtype: DType) -> Tensor:
  if not isinstance(x, Handle) or x._self().numel() != 1: raise ArgumentError(f"an option is a number, not {x!r}")
  return x._self().detach().cast(dtype).reshape(())

def _vector(numbers: list[float], device: Any) -> Tensor:
  return Tensor(numbers or [0.0], dtype=widest_float(device), device=device, requires_grad=False)

# ***** state *****

def begin(rule: UpdateRule, options: GroupOptions, entries: list[tuple[Tensor, dict[str, Any]]]) -> None:
  """Give parameters their first state: zeros or given values, and one set of shared numbers."""
  shared = {name: Tensor(value, dtype=dtypes.float32, device=entries[0][0].device).contiguous().realize()
            for name, value in rule.shared(options).items()}
  for p, state in entries:
    state.update(shared)
    for name, value in rule.initial(p, options).items(): state[name] = _first(value, p)

def _first(value: float | Tensor, p: Tensor) -> Tensor:
  kind = p.dtype if dtypes.is_float(p.dtype) else dtypes.float32
  if isinstance(value, Tensor): return value.cast(kind).to(p.device).contiguous().realize()
  if not isinstance(p.device, str): return Tensor.full(p.shape, value, kind).shard_like(p).contiguous().realize()
  count = int(p.numel())
  flat = Tensor(bytes(count * kind.itemsize) if value == 0 else [value] * count, dtype=kind, device=p.device)
  return Tensor(flat.reshape(p.shape), requires_grad=False)

def separate(rule: UpdateRule, options: GroupOptions, active: list[dict[str, Any]],
             others: Iterable[dict[str, Any]]) -> None:
  """Give the states of a step shared numbers of their own if others share them and do not step."""
  names = list(rule.shared(options))
  if not names: return
  still = {id(state[names[0]]) for state in others if names[0] in state}
  copies: dict[int, dict[str, Any]] = {}
  for state in active:
    key = id(state[names[0]])
    if key not in still: continue
    if key not in copies: copies[key] = {name: state[name].clone().realize() for name in names}
    state.update(copies[key])

def join(rule: UpdateRule, options: GroupOptions, states: Iterable[dict[str, Any]]) -> None:
  """Let states whose shared numbers are equal share their tensors. A loaded state has one for each parameter."""
  names = list(rule.shared(options))
  found: dict[tuple[float, ...], dict[str, Any]] = {}
  for state in states:
    if not all(name in state for name in names) or not names: continue
    key = tuple([float(state[name].item()) for name in names])
    state.update(found.setdefault(key, {name: state[name] for name in names}))

# ***** a step *****

def _itself(x: Any) -> Tensor: return x  # type: ignore[no-any-return]

def step_group(rule: UpdateRule, options: GroupOptions, entries: list[Entry], maximize: bool = False,
               view: Callable[[Any], Tensor] = _itself) -> list[Tensor]:
  """Assign new values to parameters and their state. Return the tensors to realize.

  entries: parameters with their gradients and states. view: makes of such a tensor the one to compute with. No view is
  kept while tensors are written, since a write that others see is done at once, by itself.
  """
  shared, changed = list(rule.shared(options)), []
  cohorts: dict[Any, list[Entry]] = {}
  for entry in entries:
    key = id(entry[2][shared[0]]) if shared else None
    cohorts.setdefault((key, entry[0].device), []).append(entry)
  for members in cohorts.values():
    state = members[0][2]
    numbers = {name: view(state[name]).cast(options.dtype) for name in shared}
    made = rule.numbers(options, numbers)
    for name in shared: changed.append(state[name].assign(numbers[name].cast(state[name].dtype)))
    vectors: dict[DType, Numbers] = {}
    for p, g, s in members:
      wide = least_upper_dtype(dtypes.float32, p.dtype)
      if wide not in vectors: vectors[wide] = _packed(made, options.dtype, wide, p.device)
      old = {name: x for name, x in s.items() if name not in shared}
      gradient = view(g).detach().cast(wide)
      value, new = _computed(rule, options, vectors[wide], view(p), -gradient if maximize else gradient,
                             {name: view(x).cast(wide) for name, x in old.items()})
      del gradient
      changed += _write(p, value, s, old, new)
  return changed

def _packed(numbers: Numbers, dtype: DType, wide: DType, device: Any) -> Numbers:
  """Return numbers of the type `wide` that one kernel computes in `dtype`."""
  together = Tensor.stack(*[x.cast(dtype).reshape(()) for x in numbers.values()]).cast(wide).contiguous()
  if together.device != device: together = together.to(device)
  return {name: together[k] for k, name in enumerate(numbers)}

def _computed(rule: UpdateRule, options: GroupOptions, numbers: Numbers, p: Tensor, g: Tensor,
              state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
  """Return the new value of a parameter, and the parts of its state that change."""
  before = dict(state)
  value = rule.update(p.detach().cast(g.dtype), g, state, numbers, options)
  return value, {name: x for name, x in state.items() if x is not before.get(name)}

def _write(p: Tensor, value: Tensor, state: dict[str, Any], old: dict[str, Any],
           new: dict[str, Tensor]) -> list[Tensor]:
  changed = []
  for name, x in new.items():
    if name in old: changed.append(old[name].assign(x.cast(old[name].dtype)))
    else: changed.append(state.setdefault(name, x.cast(p.dtype).contiguous()))
  p.assign(value.cast(p.dtype))
  return [*changed, p]
