"""Trees: tensors in lists, tuples, named tuples and dicts, as functions of torch.func take and return them."""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.errors import ArgumentError
from tinyhw.methods.base import Handle

def flattened(tree: Any) -> list[Any]:
  """Return the leaves in order: what is no list, tuple or dict."""
  if isinstance(tree, dict): return [x for value in tree.values() for x in flattened(value)]
  if isinstance(tree, (list, tuple)): return [x for value in tree for x in flattened(value)]
  return [tree]

def mapped(change: Callable[[Any], Any], tree: Any) -> Any:
  """Return the tree with each leaf changed."""
  if isinstance(tree, dict): return type(tree)({key: mapped(change, value) for key, value in tree.items()})
  if isinstance(tree, (list, tuple)):
    many = [mapped(change, value) for value in tree]
    return type(tree)(*many) if hasattr(tree, "_fields") else type(tree)(many)
  return change(tree)

def rebuilt(tree: Any, leaves: list[Any]) -> Any:
  """Return the tree with other leaves, in order."""
  rest = iter(leaves)
  return mapped(lambda _: next(rest), tree)

def spread(what: str, given: Any, tree: Any) -> list[Any]:
  """Return an option for each leaf. given: one for all, or a tree of options that is a part of this tree."""
  if isinstance(given, (list, tuple, dict)):
    if not isinstance(tree, (list, tuple, dict)) or len(given) != len(tree) or (
      isinstance(tree, dict) and (not isinstance(given, dict) or given.keys() != tree.keys())):
      raise ArgumentError(f"{what} {given!r} does not fit the structure that it is for")
    if isinstance(given, dict) and isinstance(tree, dict):
      return [x for key in tree for x in spread(what, given[key], tree[key])]
    return [x for option, part in zip(given, tree) for x in spread(what, option, part)]
  return [given] * len(flattened(tree))

def tensors_of(what: str, tree: Any) -> list[Any]:
  """Return the leaves, which must be tensors of real numbers."""
  found = flattened(tree)
  for x in found:
    if not isinstance(x, Handle): raise ArgumentError(f"{what} are tensors, not {x!r:.80}")
    if x.holds_complex: raise ArgumentError(f"{what} are real here; use view_as_real of a complex tensor")
  return found
