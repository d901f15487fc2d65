"""`torch.nn.utils.prune`: parameters of which some elements are masked.

A pruned parameter `weight` becomes a parameter `weight_orig` and a buffer `weight_mask`. Their product is set as an
attribute before each forward. Pruned again, the mask only loses elements.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.compat.torch.dress import dress, plain
from tinyhw.compat.torch.modules.module import Module, Parameter
from tinyhw.errors import ArgumentError
from tinyhw.functional.operands import sizes
from tinyhw.tensor import Tensor

class MaskHook:
  """The hook that sets a masked parameter before each forward."""
  def __init__(self, name: str) -> None:
    self.name = name
    self.handle: Any = None

  def __call__(self, module: Module, args: Any) -> None: setattr(module, self.name, self.product(module))

  def product(self, module: Module) -> Any:
    """Return the masked parameter."""
    return getattr(module, f"{self.name}_orig") * getattr(module, f"{self.name}_mask")

def _hook(module: Module, name: str) -> MaskHook | None:
  found = [hook for hook, _ in module._forward_pre_hooks.values() if isinstance(hook, MaskHook) and hook.name == name]
  return found[0] if found else None

def is_pruned(module: Module) -> bool:
  """Has the module, or one below it, a pruned parameter?"""
  return any(isinstance(hook, MaskHook) for m in module.modules() for hook, _ in m._forward_pre_hooks.values())

def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
  """Mask a parameter by ones and zeros of its shape."""
  hook = _hook(module, name)
  if hook is None:
    old = module._parameters.pop(name, None)
    if old is None: raise ArgumentError(f"{type(module).__name__} has no parameter {name!r} to prune")
    module.register_parameter(f"{name}_orig", old)
    module.register_buffer(f"{name}_mask", dress(plain(old).detach().const_like(1).contiguous().realize()))
    hook = MaskHook(name)
    hook.handle = module.register_forward_pre_hook(hook)
  both = plain(getattr(module, f"{name}_mask")).mul(plain(mask))
  module._buffers[f"{name}_mask"] = dress(both.cast(getattr(module, f"{name}_orig").dtype).contiguous().realize())
  setattr(module, name, hook.product(module))
  return module

def remove(module: Module, name: str) -> Module:
  """Let a pruned parameter be one again, with zeros where it is masked."""
  hook = _hook(module, name)
  if hook is None: raise ArgumentError(f"{type(module).__name__}.{name} is not pruned")
  hook.handle.remove()
  value, old = hook.product(module), module._parameters.pop(f"{name}_orig")
  del module._buffers[f"{name}_mask"]
  delattr(module, name)
  module.register_parameter(name, Parameter(value, bool(old.requires_grad)))
  return module

def _count(amount: float, total: int) -> int:
  """Return how many elements an amount is: a number of them, or a share."""
  if isinstance(amount, bool) or not isinstance(amount, (int, float)) or amount < 0:
    raise ArgumentError(f"amount is a count, or a share from 0 to 1, not {amount!r}")
  count = amount if isinstance(amount, int) else round(amount * total)
  if isinstance(amount, float) and amount > 1 or count > total:
    raise ArgumentError(f"amount is {amount}, and there are {total} elements")
  return int(count)

def _kept(scores: Tensor, count: int) -> Tensor:
  """Return 0 for the elements of the lowest scores, else 1."""
  n = sizes(scores)[0]
  order = scores.detach().contiguous().argsort(0)
  return Tensor.ones(n).scatter(0, order, Tensor.arange(n).ge(count).float())

def _scores(module: Module, name: str, given: Any, by: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
  """Return scores of all elements, and the mask so far."""
  weight = plain(getattr(module, name)).detach()
  mask = getattr(module, f"{name}_mask", None)
  return by(weight if given is None else plain(given)), weight.const_like(1) if mask is None else plain(mask)

def _unstructured(module: Module, name: str, amount: float, scores: Tensor, mask: Tensor) -> Module:
  """Mask the elements of the lowest scores among those that are left."""
  left = int(mask.sum().item())
  gone = int(mask.numel()) - left
  chosen = mask.eq(0).where(-float("inf"), scores).reshape(-1)
  return custom_from_mask(module, name, dress(_kept(chosen, gone + _count(amount, left)).reshape(sizes(mask))))

def identity(module: Module, name: str) -> Module:
  """Mask nothing."""
  return custom_from_mask(module, name, dress(plain(getattr(module, name)).detach().const_like(1)))

def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Any = None) -> Module:
  """Mask the elements of the least magnitude (or score): a count of them, or a share."""
  scores, mask = _scores(module, name, importance_scores, lambda x: x.abs() if importance_scores is None else x)
  return _unstructured(module, name, amount, scores, mask)

def random_unstructured(module: Module, name: str, amount: float) -> Module:
  """Mask random elements: a count of them, or a share."""
  scores, mask = _scores(module, name, None, lambda x: Tensor.rand(*sizes(x)))
  return _unstructured(module, name, amount, scores, mask)

def _structured(module: Module, name: str, amount: float, dim: int, scores: Callable[[Tensor], Tensor]) -> Module:
  """Mask the slices of the lowest scores along an axis, among those that are left."""
  found, mask = _scores(module, name, None, lambda x: x)
  axis = dim % found.ndim
  rest = tuple([k for k in range(found.ndim) if k != axis])
  alive = mask.sum(rest).ne(0)
  left, n = int(alive.sum().item()), sizes(found)[axis]
  kept = _kept(alive.where(scores(found.permute(axis, *rest).reshape(n, -1)), -float("inf")),
               n - left + _count(amount, left))
  shape = [n if k == axis else 1 for k in range(found.ndim)]
  return custom_from_mask(module, name, dress(kept.reshape(shape).expand(sizes(found))))

def ln_structured(module: Module, name: str, amount: float, n: float, dim: int) -> Module:
  """Mask the slices along an axis of the least n-norm."""
  def norms(x: Tensor) -> Tensor:
    size = x.abs()
    if n in (float("inf"), -float("inf")): return size.max(1) if n > 0 else size.min(1)
    return size.pow(n).sum(1).pow(1 / n)
  return _structured(module, name, amount, dim, norms)

def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
  """Mask random slices along an axis."""
  return _structured(module, name, amount, dim, lambda x: Tensor.rand(sizes(x)[0]))

def global_unstructured(parameters: Any, pruning_method: Any = None, importance_scores: Any = None,
                        amount: float = 0.0, **options: Any) -> None:
  """Mask the elements of the least magnitude among several parameters, given as (module, name)."""
  pairs = list(parameters)
  amount = options.pop("amount", amount)
  both = [_scores(module, name, (importance_scores or {}).get((module, name)),
                  (lambda x: x) if importance_scores else Tensor.abs) for module, name in pairs]
  if pruning_method is RandomUnstructured: both = [(Tensor.rand(*sizes(s)), mask) for s, mask in both]
  counts = [int(s.numel()) for s, _ in both]
  masks = [mask.reshape(-1) for _, mask in both]
  mask = masks[0].cat(*masks[1:], dim=0) if len(masks) > 1 else masks[0]
  flat = [mask.eq(0).where(-float("inf"), s).reshape(-1) for s, mask in both]
  left = int(mask.sum().item())
  scores = flat[0].cat(*flat[1:], dim=0) if len(flat) > 1 else flat[0]
  kept = _kept(scores, sum(counts) - left + _count(amount, left))
  begin = 0
  for (module, name), count, (s, _) in zip(pairs, counts, both):
    custom_from_mask(module, name, dress(kept[begin:begin + count].reshape(sizes(s))))
    begin += count

class L1Unstructured:
  """The method of global_unstructured that masks the least magnitudes."""

class RandomUnstructured:
  """The method of global_unstructured that masks random elements."""
