"""Tensors on several devices: turn a graph of whole tensors into the graph that each device computes.

Methods and gradients know whole tensors only. A tensor on several devices has for storage a MULTI over a BUFFER with
memory on each of them. `axis` is the axis along which the devices' parts lie; None means that each device has all. This
pass carries a `Local` from the storage to the results: the graph that every device computes, which is the same on all,
and the axis of its parts. Afterwards no MULTI is left. A kernel is made once and launched on each device (realize.py).
Only the variable SHARD, the device's number, differs between devices.

Devices need each other's parts only if an operation goes across the axis. Then each device gets all parts (`gathered`),
or parts along another axis (`moved`), or partial results are folded (`folded`). The order is always that of the
devices, so results have the same bits in each run and on each device. Cost: linear in the graph; nothing if no tensor
is on several devices.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence

from tinyhw import trace
from tinyhw.dtype import dtypes
from tinyhw.engine.schedule.regroup import regrouped, regroups
from tinyhw.errors import ShapeError
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp, same_shape, sint, sint_prod, to_indices

SHARD = "_shard"           # the variable that holds the number of a device among those of a tensor
# From this number of elements on, all devices fold partial results, a part each.
SHARED_FOLD = 1 << 12

Devices = tuple[str, ...]

class Local(NamedTuple):
  """The part of a tensor on one device. axis: the axis along which the parts lie one after another; None: each device
  has all of it."""
  node: UOp
  axis: int | None

Rule = Callable[[UOp, Sequence[Local], Devices], Local]

class Distribution:
  """The Locals of the nodes of a graph."""
  def __init__(self) -> None: self.local: dict[UOp, Local] = {}

  def of(self, root: UOp) -> Local:
    """Return the Local of a node, made of those below it."""
    for u in root.toposort(lambda u: u not in self.local):
      if u in self.local: continue
      found = self.local[u] = self._node(u, [self.local[s] for s in u.src])
      if trace._origins: trace.inherit(found.node, u)
    return self.local[root]

  def _node(self, u: UOp, src: Sequence[Local]) -> Local:
    devices = u.device
    if u.op is Ops.COPY: return _copy(u, src)
    if regroups(u) and isinstance(devices, tuple): return self.of(regrouped(u.src[0], u.dtype))
    if not isinstance(devices, tuple) or not u.src: return Local(rebuilt(u, [s.node for s in src]), None)
    return _RULES[u.op](u, src, devices)

def is_multi(u: UOp) -> bool:
  """Does a node live on several devices?"""
  return isinstance(u.device, tuple)

def axis_of(u: UOp) -> int | None:
  """Return the axis along which the parts of a tensor on several devices lie; None: each device has all of it."""
  return Distribution().of(u).axis

def check_axis(shape: tuple[sint, ...], axis: int, devices: Devices) -> None:
  """Raise ShapeError unless an axis can be divided among devices."""
  size = shape[axis]
  if not isinstance(size, int) or size % len(devices):
    raise ShapeError(f"cannot divide axis {axis}, of size {size if isinstance(size, int) else size.render()}, among "
                     f"{len(devices)} devices: their "
                     "parts must be equal; pad it to a multiple, choose another axis, or axis=None to give each "
                     "device all")

def distribute(roots: list[UOp], came: dict[UOp, UOp] | None = None) -> list[Local]:
  """Return the graph that each device computes for each of these nodes; the nodes themselves if no tensor is on several
  devices.

  came: receives, for each new node, the node that it replaces.
  """
  if not any(is_multi(u) for u in UOp.sink(*roots).toposort()): return [Local(r, None) for r in roots]
  distribution = Distribution()
  found = [distribution.of(r) for r in roots]
  if came is not None: came.update((local.node, u) for u, local in distribution.local.items() if local.node is not u)
  return found

# ***** building *****

def rebuilt(u: UOp, src: Sequence[UOp]) -> UOp:
  return u if tuple(src) == u.src else UOp(u.op, u.dtype, tuple(src), u.arg, u.tag)

def reshape(u: UOp, shape: Sequence[sint]) -> UOp:
  return u if same_shape(u.shape, tuple(shape)) else UOp(Ops.RESHAPE, u.dtype, (u, *to_indices(shape)))

def device_node(device: str | Devices) -> UOp: return UOp(Ops.DEVICE, dtypes.void, (), device)

def with_size(shape: Sequence[sint], axis: int | None, size: sint) -> tuple[sint, ...]:
  """Return a shape with another size of one axis."""
  return tuple(size if k == axis else d for k, d in enumerate(shape))

def share(size: sint, devices: Devices) -> int:
  """Return the size of a device's part of an axis."""
  assert isinstance(size, int) and size % len(devices) == 0, f"{size} is not divided by {devices}"
  return size // len(devices)

def copied(u: UOp, device: str | Devices, arg: str | None = None) -> UOp:
  """Return a COPY. Its source has to be in memory by itself, in order."""
  base = u
  while base.op is Ops.RESHAPE: base = base.src[0]
  in_memory = base.op is Ops.BUFFER and base.size == u.size
  return UOp(Ops.COPY, u.dtype, (u if in_memory else UOp(Ops.CONTIGUOUS, u.dtype, (u,)), device_node(device)), arg)

def split_axis(u: UOp, axis: int, devices: Devices) -> UOp:
  """Return the parts along an axis, as a new first axis."""
  shape = u.shape
  n, rows = len(devices), reshape(u, (*shape[:axis], len(devices), share(shape[axis], devices), *shape[axis + 1:]))
  if n == 1 or axis == 0: return rows
  return UOp(Ops.PERMUTE, u.dtype, (rows,), (axis, *range(axis), *range(axis + 1, len(shape) + 1)))

def joined(u: UOp, axis: int) -> UOp:
  """Undo `split_axis`: the first axis counts parts along `axis` of the others."""
  count, *shape = u.shape
  rows = UOp(Ops.PERMUTE, u.dtype, (u,), (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1))) if axis else u
  return reshape(rows, with_size(shape, axis, shape[axis] * count))

# ***** parts of a tensor, from what each device has *****

def part(u: UOp, axis: int, devices: Devices) -> UOp:
  """Return this device's part of a value that each device has."""
  size = share(u.shape[axis], devices)
  if u.op is Ops.EXPAND and u.src[0].shape[axis] == 1:
    return UOp(Ops.EXPAND, u.dtype, (u.src[0], *to_indices(with_size(u.shape, axis, size))))
  first = UOp.variable(SHARD, 0, len(devices) - 1) * size
  return shrunk(u, axis, first, first + size)

def shrunk(u: UOp, axis: int, begin: sint, end: sint) -> UOp:
  """Return the part of one axis from begin to end."""
  pairs = [x for k, d in enumerate(u.shape) for x in ((begin, end) if k == axis else (0, d))]
  return UOp(Ops.SHRINK, u.dtype, (u, *to_indices(pairs)))

def gathered(u: UOp, axis: int, devices: str | Devices) -> UOp:
  """Return all parts, on each of the devices, or on another device."""
  return joined(copied(u, devices, "stack"), axis)

def moved(u: UOp, axis: int, to: int, devices: Devices) -> UOp:
  """Return parts along another axis: each device sends each other device the part that it needs."""
  return joined(copied(split_axis(u, to, devices), devices, "swap"), axis)

def along(x: Local, axis: int | None, devices: Devices) -> UOp:
  """Return each device's value when the parts are to lie along an axis."""
  if x.axis == axis: return x.node
  if axis is None:
    assert x.axis is not None
    return gathered(x.node, x.axis, devices)
  return part(x.node, axis, devices) if x.axis is None else moved(x.node, x.axis, axis, devices)

def folded(partial: UOp, op: Ops, devices: Devices) -> UOp:
  """Return the fold of each device's result, on all of them, in the order of the devices."""
  shape, n = partial.shape, len(devices)
  count = sint_prod(shape)
  if n > 2 and isinstance(count, int) and count >= SHARED_FOLD and count % n == 0:
    parts = copied(reshape(partial, (n, count // n)), devices, "swap")
    return reshape(copied(UOp(Ops.REDUCE_AXIS, partial.dtype, (parts,), (op, (0,))), devices, "stack"), shape)
  return reshape(UOp(Ops.REDUCE_AXIS, partial.dtype, (copied(partial, devices, "stack"),), (op, (0,))), shape)

# ***** rules *****

def _copy(u: UOp, src: Sequence[Local]) -> Local:
  """COPY with arg None or int copies whole tensors. Between equal devices it changes the axis only."""
  x, source, target = src[0], u.src[0].device, u.device
  assert target is not None and (u.arg is None or isinstance(u.arg, int)), f"not a COPY of a whole tensor: {u}"
  if not isinstance(target, tuple):
    if not isinstance(source, tuple): return Local(rebuilt(u, [s.node for s in src]), None)
    return Local(copied(x.node, target) if x.axis is None else gathered(x.node, x.axis, target), None)
  if source == target or source is None: return Local(along(x, u.arg, target), u.arg)
  if isinstance(source, tuple):
    everywhere = copied(x.node, target) if x.axis is None else gathered(x.node, x.axis, target)
  elif u.arg is not None: return Local(copied(split_axis(x.node, u.arg, target), target, "split"), u.arg)
  else: everywhere = copied(x.node, target)
  return Local(along(Local(everywhere, None), u.arg, target), u.arg)

def _multi(u: UOp, src: Sequence[Local], devices: Devices) -> Local: return Local(src[0].node, u.arg)

def _elementwise(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  """Along the axis of the first operand that has one."""
  axis = next((s.axis for s in src if s.axis is not None), None)
  return Local(rebuilt(u, [along(s, axis, devices) if old.shape else s.node for old, s in zip(u.src, src)]), axis)

def _same(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  return Local(rebuilt(u, [s.node for s in src]), src[0].axis)

def _assign(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  axis = src[0].axis
  return Local(rebuilt(u, (src[0].node, along(src[1], axis, devices))), axis)

def _reduce(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  (op, axes), x = u.arg, src[0]
  result = rebuilt(u, [x.node])
  return Local(folded(result, op, devices), None) if x.axis in axes else Local(result, x.axis)

def _reshape(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  """Keep the parts if the new shape has an axis that begins at the same place and divides as well."""
  x, shape = src[0], u.shape
  if x.axis is None: return Local(rebuilt(u, [s.node for s in src]), None)
  before = sint_prod(u.src[0].shape[:x.axis])
  for k, size in enumerate(shape):
    if isinstance(size, int) and size % len(devices) == 0 and same_shape((sint_prod(shape[:k]),), (before,)):
      return Local(reshape(x.node, with_size(shape, k, size // len(devices))), k)
  return Local(reshape(along(x, None, devices), shape), None)

def _expand(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  x = src[0]
  if x.axis is None: return _same(u, src, devices)
  return Local(UOp(Ops.EXPAND, u.dtype, (x.node, *to_indices(with_size(u.shape, x.axis, x.node.shape[x.axis])))),
               x.axis)

def _permute(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  x = src[0]
  return Local(rebuilt(u, [x.node]), None if x.axis is None else u.arg.index(x.axis))

def _flip(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  x = src[0]
  if x.axis in u.arg: x = Local(along(x, None, devices), None)
  return Local(rebuilt(u, [x.node]), x.axis)

def _pad(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  x = src[0]
  if x.axis is not None and not same_shape(u.pairs[x.axis], (0, 0)): x = Local(along(x, None, devices), None)
  return Local(rebuilt(u, [x.node, *u.src[1:]]), x.axis)

def _shrink(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  x = src[0]
  if x.axis is None: return _same(u, src, devices)
  if not same_shape(u.pairs[x.axis], (0, u.src[0].shape[x.axis])):
    return Local(rebuilt(u, [along(x, None, devices), *u.src[1:]]), None)
  pairs = [pair if k != x.axis else (0, x.node.shape[k]) for k, pair in enumerate(u.pairs)]
  return Local(UOp(Ops.SHRINK, u.dtype, (x.node, *to_indices([i for pair in pairs for i in pair]))), x.axis)

def _gather(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  """All read elements along the axis of the index are needed. In the other axes both operands have the same indices."""
  x, index = src
  axis = index.axis if index.axis is not None else x.axis
  if index.axis is None and axis == u.arg: axis = None
  value = along(x, None if axis == u.arg else axis, devices)
  return Local(rebuilt(u, (value, along(index, axis, devices))), axis)

def _scatter(u: UOp, src: Sequence[Local], devices: Devices) -> Local:
  """Each device does all of it: any value may go to any place."""
  return Local(rebuilt(u, [along(s, None, devices) for s in src]), None)

_RULES: dict[Ops, Rule] = {
  Ops.MULTI: _multi, Ops.ASSIGN: _assign, Ops.REDUCE_AXIS: _reduce, Ops.RESHAPE: _reshape, Ops.EXPAND: _expand,
  Ops.PERMUTE: _permute,
  Ops.FLIP: _flip, Ops.PAD: _pad, Ops.SHRINK: _shrink, Ops.GATHER: _gather, Ops.SCATTER: _scatter,
  **{op: _same for op in (Ops.CONST, Ops.DEFINE_VAR, Ops.IOTA, Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH,
                          Ops.AFTER)},
  **{op: _elementwise for op in GroupOp.Elementwise},
}
