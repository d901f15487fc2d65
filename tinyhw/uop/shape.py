"""Shapes and devices of the nodes of a tensor graph, one rule per operation.

Sizes are ints, or index expressions if they are symbolic.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any
from collections.abc import Callable, Iterable, Sequence

from tinyhw.uop.enums import GroupOp, Ops
if TYPE_CHECKING: from tinyhw.uop.ops import UOp, sint

def _plus(a: Any, *others: Any) -> Any:
  for b in others: a = a + b if isinstance(a, int) or not isinstance(b, int) or b else a
  return a if isinstance(a, int) else _settle(a)

def _settle(x: UOp) -> Any:
  """The simplest form of a symbolic size, an int if it is constant."""
  x = x.simplify()
  return x.arg if x.op is Ops.CONST else x

def _reduced(u: UOp) -> tuple[Any, ...]: return tuple(1 if i in u.arg[1] else d for i, d in enumerate(u.src[0]._shape_))
def _padded(u: UOp) -> tuple[Any, ...]: return tuple(_plus(d, b, e) for d, (b, e) in zip(u.src[0]._shape_, u.pairs))
def _shrunk(u: UOp) -> tuple[Any, ...]: return tuple(_plus(e, -b) for b, e in u.pairs)
def _permuted(u: UOp) -> tuple[Any, ...]: return tuple(u.src[0]._shape_[i] for i in u.arg)
def _sizes(u: UOp) -> tuple[Any, ...]: return u.dims
def _first(u: UOp) -> tuple[Any, ...]: return u.src[0]._shape_ if u.src else ()
def _index(u: UOp) -> tuple[Any, ...]: return u.src[1]._shape_  # type: ignore[no-any-return]  # slots are Any
def _scattered(u: UOp) -> tuple[Any, ...]:
  return u.src[u.arg[1] == "before"]._shape_  # type: ignore[no-any-return]  # slots are Any
def _buffer(u: UOp) -> tuple[Any, ...]: return (u.arg[2],)
def _iota(u: UOp) -> tuple[Any, ...]: return (u.src[0].arg if u.src[0].op is Ops.CONST else u.src[0],)

def _whole(u: UOp) -> tuple[Any, ...]:
  """MULTI: the shape of the shards of all devices together."""
  devices: Any = u.device
  return tuple(d * len(devices) if k == u.arg else d for k, d in enumerate(u.src[0]._shape_))

def _copied(u: UOp) -> tuple[Any, ...]:
  """COPY of shards, which differ from device to device (docs/design/uop.md): all of them, one of them, or one
  of each."""
  shape: tuple[Any, ...] = u.src[0]._shape_
  if u.arg == "stack": return (len(u.src[0].device or ()), *shape)
  return shape[1:] if u.arg == "split" else shape

def _longest(u: UOp) -> tuple[Any, ...]:
  """Elementwise operations: all operands have one shape. Scalars of kernel expressions have none."""
  return max((s._shape_ for s in u.src), key=len, default=())

def _bits(u: UOp) -> tuple[Any, ...]:
  """BITCAST: the last axis becomes longer or shorter if the size of the type changes."""
  shape: tuple[Any, ...] = u.src[0]._shape_
  have, want = u.src[0].dtype.itemsize, u.dtype.itemsize
  if have == want or not shape: return shape
  return *shape[:-1], _plus(shape[-1] * (have // want) if want < have else shape[-1] // (want // have))

RULES: dict[Ops, Callable[[UOp], tuple[Any, ...]]] = {
  Ops.RESHAPE: _sizes, Ops.EXPAND: _sizes, Ops.PERMUTE: _permuted, Ops.FLIP: _first, Ops.PAD: _padded,
  Ops.SHRINK: _shrunk, Ops.GATHER: _index, Ops.SCATTER: _scattered,
  Ops.REDUCE_AXIS: _reduced, Ops.BUFFER: _buffer, Ops.IOTA: _iota, Ops.CONST: lambda u: (), Ops.COPY: _copied,
  Ops.MULTI: _whole,
  Ops.CONTIGUOUS: _first, Ops.CONTIGUOUS_BACKWARD: _first, Ops.DETACH: _first, Ops.ASSIGN: _first, Ops.AFTER: _first,
  Ops.BIND: lambda u: (),
  **{op: _longest for op in GroupOp.Elementwise}, Ops.BITCAST: _bits,
}

def shape_of(u: UOp) -> tuple[Any, ...]:
  """The shape of u. The shapes of its sources are known. Nodes that are not in a tensor graph have ()."""
  rule = RULES.get(u.op)
  return () if rule is None else rule(u)

def device_of(u: UOp) -> Any:
  """The device of u, a name or a tuple of names, or "" if it has none. The device of a COPY is its second source."""
  if u.op is Ops.DEVICE: return u.arg
  if u.op is Ops.BUFFER: return u.arg[1]
  if u.op is Ops.COPY: return u.src[1].arg
  for s in u.src:
    if s._device_: return s._device_
  return ""

def sint_prod(xs: Iterable[sint]) -> sint:
  """The product of sizes: an int if all are ints, else an expression in simplest form."""
  n: sint = 1
  for x in xs: n = n * x if isinstance(x, int) else x * n
  if isinstance(n, int): return n
  n = n.simplify()
  return int(n.arg) if n.op is Ops.CONST else n

def same_shape(a: Sequence[sint], b: Sequence[sint]) -> bool:
  """Whether shapes are equal. Symbolic sizes are equal if they are the same expression."""
  return len(a) == len(b) and all(x is y or (isinstance(x, int) and isinstance(y, int) and x == y)
                                  for x, y in zip(a, b))
