"""`torch.vmap`: a function of one item becomes a function of many, by a change of its graph (functional/batching.py).

The function runs once, for a placeholder of each argument. So it cannot read values, as under PyTorch's vmap.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
from typing import Any

from tinyhw.compat.torch.differentiation.trees import flattened, rebuilt, spread, tensors_of
from tinyhw.compat.torch.dress import dress, plain
from tinyhw.engine.thread import this_thread
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.batching import batched, placeholder
from tinyhw.functional.operands import sizes
from tinyhw.methods.base import Handle
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:
  """Return a function of many items at once. in_dims: the axis of items in each argument, None for one that all share.

  in_dims and out_dims are numbers, or trees of them. Keyword arguments are shared. chunk_size: as many items
  at a time. Random numbers are those of one call, the same for all items: randomness="different" is refused.
  """
  if randomness not in ("error", "same"):
    raise ArgumentError(f"randomness is 'error' or 'same' here, not {randomness!r}: draw the numbers before the call")
  @functools.wraps(func)
  def called(*args: Any, **keywords: Any) -> Any:
    places = spread("in_dims", tuple(in_dims) if isinstance(in_dims, (list, tuple)) else in_dims, args)
    leaves, each = flattened(args), functools.partial(func, **keywords)
    axes = [_axis(x, axis) for x, axis in zip(leaves, places)]
    counts = {int(x.shape[a]) for x, a in zip(leaves, axes) if a is not None}
    if len(counts) != 1: raise ShapeError(f"vmap wants one count of items in all arguments, not {sorted(counts)}")
    count = counts.pop()
    moved = [x if a is None else plain(x).permute(a, *[i for i in range(x.ndim) if i != a])
             for x, a in zip(leaves, axes)]
    size = chunk_size or max(count, 1)
    chunks = []
    for begin in range(0, max(count, 1), size):
      part = [x if a is None else x[begin:begin + size] for x, a in zip(moved, axes)]
      chunks.append(_one(each, args, part, axes, min(size, count - begin)))
    tree = chunks[0][0]
    whole = [found[0] if len(found) == 1 else found[0].cat(*found[1:], dim=0)
             for found in zip(*[found for _, found in chunks])]
    places = spread("out_dims", tuple(out_dims) if isinstance(out_dims, (list, tuple)) else out_dims, tree)
    return rebuilt(tree, [dress(_put(x, axis)) for x, axis in zip(whole, places)])
  return called

def _axis(x: Any, axis: Any) -> int | None:
  if axis is None or not isinstance(x, Handle): return None
  if x.holds_complex: raise ArgumentError("vmap takes real tensors here; use view_as_real of a complex one")
  if not isinstance(axis, int) or not -x.ndim <= axis < x.ndim:
    raise ArgumentError(f"in_dims has {axis!r} for a tensor of shape {tuple(x.shape)}")
  return axis % x.ndim

def _put(x: Tensor, axis: Any) -> Tensor:
  """Move the first axis to its place."""
  if axis is None: return x[0]
  order = list(range(1, x.ndim))
  order.insert(axis % x.ndim, 0)
  return x.permute(*order)

def _one(func: Callable[..., Any], args: tuple[Any, ...], leaves: list[Any], axes: list[int | None],
         count: int) -> tuple[Any, list[Tensor]]:
  """Return the tree of a function's results, and each for many items."""
  known: dict[UOp, UOp] = {}
  given = []
  for x, axis in zip(leaves, axes):
    if axis is None:
      given.append(x)
      continue
    one = placeholder(tuple(sizes(x)[1:]), x.uop)
    known[one] = x.uop
    given.append(dress(Tensor._new(one)))
  with Tracing("vmap"): found = func(*rebuilt(args, given))
  results = [plain(y) for y in tensors_of("the results of a function under vmap", found)]
  return found, [Tensor._new(u) for u in batched([y.uop for y in results], known, count)]

class Tracing:
  """A context in which tensors are expressed, and not computed."""
  def __init__(self, name: str): self.name = name
  def __enter__(self) -> None: self.outer, this_thread.traced = this_thread.traced, self.name
  def __exit__(self, *_: object) -> None: this_thread.traced = self.outer
