"""`Module`, the base of PyTorch's layers, and `Parameter`: registration, state dicts, hooks, modes, copies, text.

A module owns three dicts: parameters, buffers (state without a gradient) and modules. Attributes are registered in them
by their kind, and the names, joined by dots, are the keys of `state_dict`.
"""
from __future__ import annotations
from collections.abc import Callable, Iterator, Mapping
import copy
import itertools
from typing import Any

from tinyhw.compat.torch.differentiation.hooks import RemovableHandle, registered
from tinyhw.compat.torch.differentiation.module_hooks import Boundary
from tinyhw.compat.torch.dress import dress, kind_of, plain
from tinyhw.compat.torch.tensors import TorchTensor
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.methods.base import GradMode, Handle
from tinyhw.methods.checks import flag
from tinyhw.named_tuple import NamedTuple
from tinyhw.tensor import Tensor

class Parameter(TorchTensor):
  """A tensor that a module trains: it wants a gradient unless told otherwise."""
  __slots__ = ()
  is_parameter = True

  def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
    value = Tensor.zeros(0) if data is None else plain(data)
    if not isinstance(value, Handle): raise ArgumentError(f"a Parameter is made of a tensor, not {data!r}")
    if flag("requires_grad", requires_grad) and not dtypes.is_float(value.dtype) and not value.holds_complex:
      raise DTypeError(f"a Parameter of {value.dtype} has no gradient; give requires_grad=False")
    return cls._leaf(value._self().detach().clone().realize().uop, requires_grad)

  def __init__(self, data: Any = None, requires_grad: bool = True): pass

  def __repr__(self) -> str: return f"Parameter containing:\n{super().__repr__()}"

  def __reduce_ex__(self, protocol: Any) -> Any:
    return Parameter, (plain(self.detach()), bool(self.requires_grad))

  def __deepcopy__(self, memo: dict[int, Any]) -> Any:
    found = memo[id(self)] = Parameter(self, bool(self.requires_grad))
    return found

class ModuleBuffer(TorchTensor):
  """State without a gradient: as an attribute of a module, it is registered as a buffer.

  persistent: state dicts have it.
  """
  __slots__ = ()
  is_persistent = True

  def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
    kind = ModuleBuffer if flag("persistent", persistent) else TransientBuffer
    return kind._leaf(plain(Tensor.zeros(0) if data is None else data).detach().clone().realize().uop, False)

  def __init__(self, data: Any = None, *, persistent: bool = True): pass

class TransientBuffer(ModuleBuffer):
  """A buffer that state dicts do not have."""
  __slots__ = ()
  is_persistent = False

class KeyFields(NamedTuple):
  """The keys that a module has and a state lacks, and those of a state that a module lacks."""
  missing_keys: list[str]
  unexpected_keys: list[str]

class IncompatibleKeys(KeyFields):
  """The same; its text says if there are none."""

  def __repr__(self) -> str:
    if not self.missing_keys and not self.unexpected_keys: return "<All keys matched successfully>"
    return super().__repr__()

  __str__ = __repr__

class LoadedState(dict[str, Any]):
  """A state on its way into a module: its values by name, and what was found to write."""
  def __init__(self, values: Mapping[str, Any]):
    super().__init__(values)
    self.known: set[str] = set()                                  # names that the module has
    self.found: list[tuple[str, Tensor, Tensor]] = []             # name, tensor of the module, value

_KINDS = ("_parameters", "_buffers", "_modules")
_STATE_HOOKS = ("_state_hooks", "_state_pre_hooks", "_load_pre_hooks", "_load_hooks")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", *_STATE_HOOKS)

# Hooks of all modules.
_every: dict[str, dict[int, Any]] = {name: {} for name in _HOOKS}

class Module:
  """The base of layers. A subclass registers parameters and modules as attributes, and computes in `forward`."""
  training: bool

  def __init__(self) -> None:
    state = self.__dict__
    for kind in (*_KINDS, *_HOOKS): state[kind] = {}
    state["_non_persistent"], state["training"] = set(), True

  def forward(self, *args: Any, **keywords: Any) -> Any:
    """Compute the result. Subclasses define it."""
    raise ArgumentError(f"{type(self).__name__} has no forward; define one")

  def __call__(self, *args: Any, **keywords: Any) -> Any:
    for hook, with_keywords in (*_every["_forward_pre_hooks"].values(), *self._forward_pre_hooks.values()):
      changed = hook(self, args, keywords) if with_keywords else hook(self, args)
      if changed is None: continue
      if with_keywords: args, keywords = changed
      else: args = changed if isinstance(changed, tuple) else (changed,)
    hooked = self._backward_hooks or self._backward_pre_hooks or _every["_backward_hooks"]
    boundary = Boundary(self, _every["_backward_hooks"]) if hooked and not GradMode.off else None
    if boundary is not None: args = boundary.entered(args)
    found = self.forward(*args, **keywords)
    for hook, with_keywords in (*_every["_forward_hooks"].values(), *self._forward_hooks.values()):
      changed = hook(self, args, keywords, found) if with_keywords else hook(self, args, found)
      if changed is not None: found = changed
    return found if boundary is None else boundary.left(found)

  # ***** attributes *****

  def __setattr__(self, name: str, value: Any) -> None:
    state = self.__dict__
    if isinstance(value, ModuleBuffer) and name not in state.get("_buffers", {name}):
      state.pop(name, None)
      return self.register_buffer(name, value, value.is_persistent)
    kind = "_parameters" if isinstance(value, Parameter) else "_modules" if isinstance(value, Module) else None
    if kind is not None:
      if kind not in state: raise ArgumentError(f"{type(self).__name__}: call super().__init__() before setting {name}")
      for other in _KINDS:
        if other != kind: state[other].pop(name, None)
      state.pop(name, None)
      state[kind][name] = value
      return
    for other in _KINDS:
      if name not in state.get(other, ()): continue
      if value is not None and not (other == "_buffers" and isinstance(value, Tensor)):
        raise ArgumentError(f"{type(self).__name__}.{name} is registered in {other[1:]}; it takes no {type(value)}")
      state[other][name] = value
      return
    object.__setattr__(self, name, value)

  def __getattr__(self, name: str) -> Any:
    for kind in _KINDS:
      found = self.__dict__.get(kind, {})
      if name in found: return found[name]
    raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

  def __delattr__(self, name: str) -> None:
    for kind in _KINDS:
      if name in self.__dict__.get(kind, ()):
        del self.__dict__[kind][name]
        return
    object.__delattr__(self, name)

  def __dir__(self) -> list[str]:
    return sorted({*super().__dir__(), *[name for kind in _KINDS for name in self.__dict__[kind]]})

  def register_parameter(self, name: str, param: Parameter | None) -> None:
    """Register a parameter, or the place of one (None)."""
    self._name(name, "_parameters")
    if param is not None and not isinstance(param, Parameter):
      raise ArgumentError(f"{name} is a Parameter or None, not {type(param)}")
    self._parameters[name] = param

  def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
    """Register state without a gradient. persistent: state dicts have it."""
    self._name(name, "_buffers")
    if tensor is not None and not isinstance(tensor, Handle):
      raise ArgumentError(f"{name} is a tensor or None, not {type(tensor)}")
    self._buffers[name] = tensor
    (self._non_persistent.discard if persistent else self._non_persistent.add)(name)

  def add_module(self, name: str, module: Module | None) -> None:
    """Register a module."""
    self._name(name, "_modules")
    if module is not None and not isinstance(module, Module):
      raise ArgumentError(f"{name} is a Module or None, not {type(module)}")
    self._modules[name] = module

  register_module = add_module

  def _name(self, name: str, kind: str) -> None:
    """Check a name that is registered in a dict. It may be there already, and nowhere else."""
    if kind not in self.__dict__:
      raise ArgumentError(f"{type(self).__name__}: call super().__init__() before registering {name}")
    if not isinstance(name, str) or not name or "." in name:
      raise ArgumentError(f"a name is text without dots, not {name!r}")
    if name not in self.__dict__[kind] and hasattr(self, name):
      raise ArgumentError(f"{type(self).__name__} has an attribute {name!r} already")

  # ***** walks *****

  def named_modules(self, memo: set[int] | None = None, prefix: str = "",
                    remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
    """Give this module and all below it, with their names; each once."""
    memo = set() if memo is None else memo
    if id(self) in memo: return
    if remove_duplicate: memo.add(id(self))
    yield prefix, self
    for name, module in self._modules.items():
      if module is not None: yield from module.named_modules(memo, _dotted(prefix, name), remove_duplicate)

  def modules(self) -> Iterator[Module]:
    """Give this module and all below it."""
    for _, module in self.named_modules(): yield module

  def named_children(self) -> Iterator[tuple[str, Module]]:
    """Give the modules of this one, with their names; each once."""
    seen = set()
    for name, module in self._modules.items():
      if module is not None and id(module) not in seen:
        seen.add(id(module))
        yield name, module

  def children(self) -> Iterator[Module]:
    """Give the modules of this one."""
    for _, module in self.named_children(): yield module

  def _members(self, kind: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
    seen: set[int] = set()
    for path, module in self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]:
      for name, value in getattr(module, kind).items():
        if value is None or once and id(value) in seen: continue
        seen.add(id(value))
        yield _dotted(path, name), value

  def named_parameters(self, prefix: str = "", recurse: bool = True,
                       remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
    """Give the parameters, with their names."""
    return self._members("_parameters", prefix, recurse, remove_duplicate)

  def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
    """Give the parameters."""
    for _, value in self.named_parameters(recurse=recurse): yield value

  def named_buffers(self, prefix: str = "", recurse: bool = True,
                    remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
    """Give the buffers, with their names."""
    return self._members("_buffers", prefix, recurse, remove_duplicate)

  def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
    """Give the buffers."""
    for _, value in self.named_buffers(recurse=recurse): yield value

  def get_submodule(self, target: str) -> Module:
    """Return a module by its dotted name."""
    found: Any = self
    for part in target.split(".") if target else ():
      if part not in found._modules: raise AttributeError(f"{type(found).__name__} has no module {part!r}")
      found = found._modules[part]
    return found  # type: ignore[no-any-return]

  def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
    """Put a module in the place of the one with a dotted name. strict: there must be one."""
    path, _, name = target.rpartition(".")
    above = self.get_submodule(path)
    if not name or strict and name not in above._modules:
      raise AttributeError(f"{type(above).__name__} has no module {name!r}")
    above._modules[name] = module

  def get_parameter(self, target: str) -> Parameter:
    """Return a parameter by its dotted name."""
    path, _, name = target.rpartition(".")
    found = self.get_submodule(path)
    if name not in found._parameters: raise AttributeError(f"{type(found).__name__} has no parameter {name!r}")
    return found._parameters[name]  # type: ignore[no-any-return]

  def get_buffer(self, target: str) -> Tensor:
    """Return a buffer by its dotted name."""
    path, _, name = target.rpartition(".")
    found = self.get_submodule(path)
    if name not in found._buffers: raise AttributeError(f"{type(found).__name__} has no buffer {name!r}")
    return found._buffers[name]  # type: ignore[no-any-return]

  # ***** state *****

  def state_dict(self, *, destination: dict[str, Any] | None = None, prefix: str = "",
                 keep_vars: bool = False) -> dict[str, Any]:
    """Return parameters and persistent buffers by their dotted names. They share memory with the module."""
    found = {} if destination is None else destination
    for hook in list(self._state_pre_hooks.values()): hook(self, prefix, keep_vars)
    self._save_to_state_dict(found, prefix, keep_vars)
    for name, module in self._modules.items():
      if module is not None: module.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in list(self._state_hooks.values()):
      changed = hook(self, found, prefix, {"version": self._version})
      if changed is not None: found = changed
    return found

  _version = 1

  def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Add this module's own parameters, buffers and extra state."""
    for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
      if value is not None and name not in self._non_persistent:
        destination[prefix + name] = value if keep_vars else value.detach()
    if type(self).get_extra_state is not Module.get_extra_state:
      destination[prefix + "_extra_state"] = self.get_extra_state()

  def get_extra_state(self) -> Any:
    """Return what state dicts have besides tensors. A subclass that defines it defines set_extra_state, too."""
    raise ArgumentError(f"{type(self).__name__} has no extra state; define get_extra_state and set_extra_state")

  def set_extra_state(self, state: Any) -> None:
    """Take what get_extra_state returned."""
    raise ArgumentError(f"{type(self).__name__} has no extra state; define get_extra_state and set_extra_state")

  def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True,
                      assign: bool = False) -> IncompatibleKeys:
    """Write values into parameters and buffers of the same names.

    strict: raise ArgumentError unless the names are the same. Raises ShapeError for another shape. assign: take over
    the state's tensors, with their types, devices and storage. Parameters stay the same objects, and keep their
    requires_grad.
    """
    state, missing, errors = LoadedState(state_dict), [], []  # type: LoadedState, list[str], list[str]
    for path, module in self.named_modules(remove_duplicate=False):
      prefix = path + "." if path else ""
      module._prepare(state, prefix)
      module._load_from_state_dict(state, prefix, {"version": self._version}, strict, missing, [], errors)
    keys = IncompatibleKeys(missing, [k for k in state if k not in state.known])
    for path, module in self.named_modules():
      for hook in list(module._load_hooks.values()): hook(module, keys)
    if errors: raise ArgumentError(f"the state does not fit {type(self).__name__}: {'; '.join(errors)}")
    if strict and (keys.missing_keys or keys.unexpected_keys):
      raise ArgumentError(f"the state does not fit {type(self).__name__}: missing {keys.missing_keys}, unexpected "
                          f"{keys.unexpected_keys}; strict=False loads the rest")
    for name, mine, value in state.found:
      if value.shape != plain(mine).shape:
        raise ShapeError(f"{name} has shape {tuple(mine.shape)}, and the state's has {value.shape}")
    for name, mine, value in state.found:
      if assign: self._take_over(mine, value.detach())
      else: plain(mine).assign(value.cast(mine.dtype))
    _realize([mine for _, mine, _ in state.found])
    return keys

  def _load_from_state_dict(self, state_dict: LoadedState, prefix: str, local_metadata: dict[str, Any], strict: bool,
                            missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
    """Find values for this module's own tensors. They are written after all modules have found theirs."""
    for hook in list(self._load_pre_hooks.values()):
      hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    for name, mine in itertools.chain(self._parameters.items(), self._buffers.items()):
      if mine is None or name in self._non_persistent: continue
      state_dict.known.add(prefix + name)
      if prefix + name in state_dict: state_dict.found.append((prefix + name, mine, _value(state_dict[prefix + name])))
      else: missing_keys.append(prefix + name)
    if type(self).set_extra_state is Module.set_extra_state: return
    state_dict.known.add(prefix + "_extra_state")
    if prefix + "_extra_state" in state_dict: self.set_extra_state(state_dict[prefix + "_extra_state"])
    else: missing_keys.append(prefix + "_extra_state")

  def _take_over(self, value: Tensor, found: Tensor) -> None:
    """Let a parameter or buffer stand for another tensor."""
    wanted = value._requires_grad
    Tensor.replace(value, found)
    value.requires_grad = wanted

  def _prepare(self, state: Mapping[str, Any], prefix: str) -> None:
    """Called before a state is loaded, in which this module's names begin with a prefix."""

  def _apply(self, change: Callable[[Tensor], Tensor]) -> Module:
    for value in itertools.chain(self.parameters(), self.buffers()):
      self._take_over(value, change(plain(value)).detach().clone().realize())
    return self

  def to(self, *args: Any, **keywords: Any) -> Module:
    """Move parameters and buffers to a device, cast those of floats to a type, or both; or to those of a tensor."""
    unknown = keywords.keys() - {"device", "dtype", "non_blocking", "memory_format"}
    if unknown: raise ArgumentError(f"Module.to takes device, dtype and non_blocking, not {sorted(unknown)}")
    kind, place = kind_of(keywords.get("dtype")), keywords.get("device")
    for x in args:
      if isinstance(x, Handle): kind, place = x.dtype, x.device
      elif isinstance(x, DType): kind = x
      elif isinstance(x, str): place = x
      elif x is not None and not isinstance(x, bool):
        raise ArgumentError(f"Module.to takes a device, a dtype or a tensor, not {x!r}")
    if kind is not None:
      if not dtypes.is_float(kind): raise DTypeError(f"a module is cast to float types only, not to {kind}")
      self._cast(kind)
    if place is not None: self._apply(lambda x: plain(dress(x).to(place)))
    return self

  def _cast(self, kind: DType) -> Module:
    return self._apply(lambda x: x.cast(kind) if dtypes.is_float(x.dtype) else x)

  def float(self) -> Module:
    """Cast floats to float32."""
    return self._cast(dtypes.float32)

  def double(self) -> Module:
    """Cast floats to float64."""
    return self._cast(dtypes.float64)

  def half(self) -> Module:
    """Cast floats to float16."""
    return self._cast(dtypes.float16)

  def bfloat16(self) -> Module:
    """Cast floats to bfloat16."""
    return self._cast(dtypes.bfloat16)

  def cpu(self) -> Module:
    """Move to the default device."""
    return self.to("cpu")

  def requires_grad_(self, requires_grad: bool = True) -> Module:
    """Let all parameters want gradients, or none."""
    for p in self.parameters(): p.requires_grad_(requires_grad)
    return self

  def zero_grad(self, set_to_none: bool = True) -> None:
    """Drop the gradients of all parameters, or fill them with zeros."""
    for p in self.parameters(): p.grad = None if set_to_none or p.grad is None else p.grad.zeros_like()

  def train(self, mode: bool = True) -> Module:
    """Set training mode of this module and all below it."""
    if not isinstance(mode, bool): raise ArgumentError(f"mode is True or False, not {mode!r}")
    for module in self.modules(): module.training = mode
    return self

  def eval(self) -> Module:
    """Set evaluation mode of this module and all below it."""
    return self.train(False)

  def apply(self, fn: Callable[[Module], Any]) -> Module:
    """Call a function with each module below this one, and with this one last."""
    for module in self.children(): module.apply(fn)
    fn(self)
    return self

  # ***** hooks *****

  def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                            with_kwargs: bool = False) -> RemovableHandle:
    """Call hook(module, args, result) after each forward. A result that it returns takes the place of the result."""
    return _first(self._forward_hooks, _registered(self._forward_hooks, hook, with_kwargs), prepend)

  def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                                with_kwargs: bool = False) -> RemovableHandle:
    """Call hook(module, args) before each forward. Arguments that it returns take the place of the arguments."""
    return _first(self._forward_pre_hooks, _registered(self._forward_pre_hooks, hook, with_kwargs), prepend)

  def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, prefix, keep_vars) before state_dict."""
    return registered(self._state_pre_hooks, hook)

  def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, state, prefix, metadata) after state_dict. It may change the state."""
    def called(*args: Any) -> None: hook(*args)
    return registered(self._state_hooks, called)

  def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
    return registered(self._state_hooks, hook)

  def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, state, prefix, metadata, strict, missing, unexpected, errors) before a state is loaded. It may
    change the state."""
    return registered(self._load_pre_hooks, lambda *args: hook(self, *args))

  def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> RemovableHandle:
    return self.register_load_state_dict_pre_hook(hook) if with_module else registered(self._load_pre_hooks, hook)

  def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, keys) after a state was compared. It may change the lists of missing and unexpected keys."""
    return registered(self._load_hooks, hook)

  def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    """Call hook(module, gradients of the arguments, gradients of the results) when gradients pass the module.

    Each is a tuple, with None where there is no gradient. Gradients that it returns take the place of the arguments'.
    """
    return _first(self._backward_hooks, registered(self._backward_hooks, hook), prepend)

  register_backward_hook = register_full_backward_hook

  def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    """Call hook(module, gradients of the results) before gradients pass the module. Gradients that it returns take
    their place."""
    return _first(self._backward_pre_hooks, registered(self._backward_pre_hooks, hook), prepend)

  # ***** text *****

  def extra_repr(self) -> str:
    """Return the text between the parentheses of a module without modules."""
    return ""

  def _get_name(self) -> str: return type(self).__name__

  def __repr__(self) -> str:
    own = self.extra_repr()
    parts = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
    if not parts: return f"{self._get_name()}({own})"
    return "\n  ".join([f"{self._get_name()}(", *own.splitlines(), *parts]) + "\n)"

  def __deepcopy__(self, memo: dict[int, Any]) -> Any:
    found = memo[id(self)] = object.__new__(type(self))
    for key, value in self.__dict__.items(): found.__dict__[key] = copy.deepcopy(value, memo)
    return found

def _dotted(prefix: str, name: str) -> str: return f"{prefix}.{name}" if prefix else name
def _indented(text: str) -> str: return text.replace("\n", "\n  ")

def _registered(hooks: dict[int, Any], hook: Callable[..., Any], with_keywords: bool) -> RemovableHandle:
  found = registered(hooks, hook)
  hooks[found.key] = hook, with_keywords
  return found

def _first(hooks: dict[int, Any], handle: RemovableHandle, prepend: bool) -> RemovableHandle:
  """Move a new hook before the others if `prepend` says so."""
  if prepend:
    others = [(key, hooks.pop(key)) for key in list(hooks) if key != handle.key]
    hooks.update(others)
  return handle

def _value(x: Any) -> Tensor:
  """Return a value of a state: a tensor of ours, of PyTorch's, or an array."""
  if isinstance(x, Handle): return plain(x)  # type: ignore[no-any-return]
  return Tensor(x.detach().numpy() if hasattr(x, "detach") else x)

def _realize(tensors: list[Tensor]) -> None:
  if tensors: tensors[0].realize(*tensors[1:])

# ***** hooks of all modules *****

def register_module_forward_hook(hook: Callable[..., Any], *, with_kwargs: bool = False) -> RemovableHandle:
  """Call hook(module, args, result) after each forward of each module."""
  return _registered(_every["_forward_hooks"], hook, with_kwargs)

def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
  """Call hook(module, args) before each forward of each module."""
  return _registered(_every["_forward_pre_hooks"], hook, False)

def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
  """Call hook(module, gradients of arguments, gradients of results) when gradients pass a module, for each module."""
  return registered(_every["_backward_hooks"], hook)
