"""Modules of an installed PyTorch as functions here: `from_torch(module, args)`.

torch.export makes a graph of ATen operators of the module. Each is called by its name in `tinyhw.compat.torch`: a
function of torch, of nn.functional or linalg, or a method of tensors. Parameters and buffers are copied once, and named
as in the module's state dict.
"""
from __future__ import annotations
from collections.abc import Mapping, Sequence
import functools
import importlib
import operator
from typing import Any

from tinyhw.errors import ArgumentError

_HOME = "tinyhw.compat.torch"
# ATen's name: a function of nn.functional and its arguments, where its parameters are others than those of the function
# of that name, or where there is none.
_OTHERS: dict[str, Any] = {
  "_to_copy": lambda f, x, **options: x.to(options.get("dtype") or x.dtype),
  "alias": lambda f, x: x,
  "lift_fresh_copy": lambda f, x: x.clone(),
  "_assert_tensor_metadata": lambda f, *_, **__: None,
  "layer_norm": lambda f, x, shape, weight=None, bias=None, eps=1e-5, *_: f.layer_norm(x, shape, weight, bias, eps),
  "group_norm": lambda f, x, groups, weight=None, bias=None, eps=1e-5, *_: f.group_norm(x, groups, weight, bias, eps),
  "batch_norm": lambda f, x, weight, bias, mean, var, training, momentum, eps, *_:
    f.batch_norm(x, mean, var, weight, bias, training, momentum, eps)}

class ExportedModule:
  """A graph of ATen operators that computes here. Call it with the arguments of the module.

  parameters: its tensors by name, which an optimizer may train.
  """
  def __init__(self, program: Any) -> None:
    self.torch = importlib.import_module("torch")
    self.ours = importlib.import_module(_HOME)
    signature, state = program.graph_signature, {**program.state_dict, **program.constants}
    self.nodes = list(program.graph.nodes)
    self.parameters = {name: self._taken(state[name]) for name in signature.parameters}
    self._others = {name: self._taken(state[name]) for name in state if name not in self.parameters}
    self._inputs = {**signature.inputs_to_parameters, **signature.inputs_to_buffers,
                    **signature.inputs_to_lifted_tensor_constants}
    self._results = len(signature.user_outputs)
    self._writes = list(signature.buffers_to_mutate.values())

  def _taken(self, x: Any) -> Any:
    found = self.ours.tensor(x.detach().cpu().float().numpy() if x.dtype is self.torch.bfloat16 else
                             x.detach().cpu().numpy(), dtype=self._plain(x.dtype))
    return found.requires_grad_() if x.requires_grad else found

  def _plain(self, x: Any) -> Any:
    """Return a type or a place of PyTorch's as ours."""
    if isinstance(x, (self.torch.dtype, self.torch.memory_format, self.torch.layout)):
      return getattr(self.ours, str(x).removeprefix("torch."), None)
    return str(x) if isinstance(x, self.torch.device) else x

  def __call__(self, *args: Any) -> Any:
    given, values = iter(args), {}
    for node in self.nodes:
      if node.op == "placeholder":
        name = self._inputs.get(node.name)
        try: values[node] = next(given) if name is None else self.parameters.get(name, self._others.get(name))
        except StopIteration: raise ArgumentError(f"the module takes an argument {node.name}; give it") from None
      elif node.op == "call_function":
        values[node] = self._function(node.target)(*self._value(node.args, values),
                                                   **self._value(dict(node.kwargs), values))
      elif node.op == "output":
        results = self._value(node.args[0], values)
        for name, value in zip(self._writes, results): self._others[name].assign(value.detach())
        found = results[-self._results:]
        return found[0] if self._results == 1 else tuple(found)
    raise ArgumentError("a graph without results")

  def _value(self, x: Any, values: Mapping[Any, Any]) -> Any:
    if isinstance(x, self.torch.fx.Node): return values[x]
    if isinstance(x, Mapping): return {key: self._value(y, values) for key, y in x.items()}
    if isinstance(x, Sequence) and not isinstance(x, str): return [self._value(y, values) for y in x]
    return self._plain(x)

  def _function(self, target: Any) -> Any:
    """Return the function of an operator. Raises ArgumentError if there is none."""
    if target is operator.getitem: return target
    name = target._schema.name.partition("::")[2] if hasattr(target, "_schema") else str(target)
    if name in _OTHERS: return functools.partial(_OTHERS[name], self.ours.nn.functional)
    for place in (self.ours, self.ours.nn.functional, self.ours.linalg):
      for spelled in (name, name.removeprefix("linalg_")):
        try: return getattr(place, spelled)
        except AttributeError: continue
    if hasattr(self.ours.Tensor, name): return lambda x, *args, **options: getattr(x, name)(*args, **options)
    raise ArgumentError(f"from_torch: the operator {name} is not in {_HOME}; docs/guide/compat-torch.md lists those "
                        "that are")

def from_torch(module: Any, args: tuple[Any, ...]) -> ExportedModule:
  """Return a module of PyTorch's as a function of this library's tensors, with its parameters.

  args: arguments of the module, as PyTorch's tensors; shapes and the mode (train, eval) are those of this call. Raises
  ArgumentError if PyTorch is not installed, or an operator is not known here.
  """
  try: torch = importlib.import_module("torch")
  except ImportError: raise ArgumentError("from_torch needs PyTorch; pip install torch") from None
  if not isinstance(module, torch.nn.Module):
    raise ArgumentError(f"from_torch wants a torch.nn.Module, not {module!r:.80}")
  found = ExportedModule(torch.export.export(module, tuple(args)))
  for node in found.nodes:
    if node.op == "call_function": found._function(node.target)
  return found
