"""The reference interpreter: it computes a tensor graph, a kernel or a Program, slowly and plainly. It is the oracle of
every other path.

`evaluate` takes any of the three. This file holds tensor graphs. A value is a flat list in row-major order.
arithmetic.py computes each element, so results are exact for the types. Reductions fold from the first element to the
last. execute.py runs kernels and Programs. Nothing here is shared with the engine or codegen, on purpose.
"""
from __future__ import annotations
from itertools import product
from typing import Any
from collections.abc import Callable, Mapping

from tinyhw.arithmetic import Scalar, elements, from_bytes, operation, round_to, to_bytes
from tinyhw.errors import VerifyError
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.evaluate.execute import element_function, identity, run_kernel, run_program
from tinyhw.uop.ops import UOp, sint

class Result(NamedTuple):
  """Values in row-major order, and their shape."""
  values: list[Scalar]
  shape: tuple[int, ...]

def evaluate(u: Any, buffers: Mapping[Any, Any] | None = None, variables: Mapping[str, int] | None = None,
             first: int = 0,
             last: int | None = None) -> Any:
  """Compute u.

  u is one of:

  - a node of a tensor graph. The result is a Result, or a list of them for a SINK. A graph of one device's work
    (engine/schedule/multi.py) has no values here, because it has one for each device.
  - a kernel (SINK of stores) or a Program. The result is None. The values are in the storage.

  buffers: for a tensor graph, a map from BUFFER nodes to storage, which ASSIGN writes to. A BUFFER on several devices
  has a list of storages, one for each. For a kernel or Program, a map from slots to storage. Storage is a list of
  values, or an object with the buffer protocol (bytearray, memoryview, array, NumPy) whose bytes are the elements.

  variables: name -> value. first, last: the part of a Program's grid to run.

  Raises VerifyError if u has no defined result: an index outside of its buffer, a shared array that is read before it
  was written, an operation that a type does not have.
  """
  if not isinstance(u, UOp): return run_program(u, buffers or {}, variables or {}, first, last)
  if u.op in (Ops.STORE, Ops.GROUP) or (u.op is Ops.SINK and any(s.op in (Ops.STORE, Ops.GROUP, Ops.END)
                                                                 for s in u.src)):
    return run_kernel(u, buffers or {}, variables or {})
  graph = _Graph(buffers or {}, variables or {})
  if u.op is Ops.SINK: return [graph.result(s, graph.compute(u)) for s in u.src]
  return graph.result(u, graph.compute(u))

class _Graph:
  """Values of the nodes of one tensor graph.

  The graph reads buffers as they were before any of its ASSIGNs.
  """
  def __init__(self, buffers: Mapping[Any, Any], variables: Mapping[str, int]):
    self.buffers, self.variables = buffers, variables
    self.value: dict[UOp, list[Scalar]] = {}
    self.sizes: dict[UOp, tuple[int, ...]] = {}

  def compute(self, root: UOp) -> dict[UOp, list[Scalar]]:
    nodes = root.toposort(lambda u: u.op not in (Ops.BIND, Ops.MULTI))
    for u in nodes:
      if u.op is Ops.BUFFER: self.value[u] = self._read(u)
      if u.op is Ops.MULTI: self.value[u] = [memories[0][at] for memories, at in self.homes(u)]
    for u in nodes:
      if u in self.value or u.op in (Ops.SINK, Ops.DEVICE): continue
      rule = _RULES.get(u.op)
      if rule is None:
        raise VerifyError(f"{u.op.name} has no value in a tensor graph; evaluate wants tensor operations: {u!r}")
      self.value[u] = rule(self, u)
    return self.value

  def result(self, u: UOp, value: dict[UOp, list[Scalar]]) -> Result: return Result(value[u], self.shape(u))

  def _storage(self, u: UOp) -> Any:
    if u not in self.buffers: raise VerifyError(f"no storage was given for {u!r}; pass buffers={{node: memory}}")
    return self.buffers[u]

  def homes(self, u: UOp) -> list[tuple[list[Any], int]]:
    """For each element of a MULTI, the memories of its devices and its index there."""
    memories = [elements(m, u.dtype) for m in self._storage(u.src[0].base)]
    if u.arg is None: return [(memories, i) for i in range(_count(self.shape(u)))]
    strides, size = _strides(self.shape(u.src[0])), self.shape(u.src[0])[u.arg]
    out = []
    for point in _points(self.shape(u)):
      device, rest = divmod(point[u.arg], size)
      out.append(([memories[device]], _dot([rest if k == u.arg else i for k, i in enumerate(point)], strides)))
    return out

  def _read(self, u: UOp) -> list[Scalar]:
    memory = elements(self._storage(u), u.dtype)
    if len(memory) < u.arg[2]: raise VerifyError(f"storage of {len(memory)} elements for {u!r}, which has {u.arg[2]}")
    return [memory[i] for i in range(u.arg[2])]

  def size(self, d: sint) -> int:
    """A dimension as a number."""
    if not isinstance(d, UOp): return d
    if d not in self.value: self.compute(d)
    return int(self.value[d][0])

  def shape(self, u: UOp) -> tuple[int, ...]:
    found = self.sizes.get(u)
    if found is None: found = self.sizes[u] = tuple([self.size(d) for d in u.shape])
    return found

  def operands(self, u: UOp) -> list[list[Scalar]]:
    """The values of the sources. Scalars are repeated for every element of u."""
    shape = self.shape(u)
    count = _count(shape)
    out = []
    for s in u.src:
      value = self.value[s]
      if s.shape == (): value = value * count
      elif self.shape(s) != shape:
        raise VerifyError(f"{u.op.name} of shape {shape} has a source of shape {self.shape(s)}; insert EXPAND")
      out.append(value)
    return out

def _count(shape: tuple[int, ...]) -> int:
  n = 1
  for d in shape: n *= d
  return n

def _strides(shape: tuple[int, ...]) -> list[int]: return [_count(shape[k + 1:]) for k in range(len(shape))]
def _points(shape: tuple[int, ...]) -> Any: return product(*[range(d) for d in shape])
def _dot(point: Any, strides: list[int]) -> int: return sum(i * s for i, s in zip(point, strides))

def _elementwise(g: _Graph, u: UOp) -> list[Scalar]: return list(map(element_function(u), *g.operands(u)))
def _bitcast(g: _Graph, u: UOp) -> list[Scalar]:
  """Convert the bytes of all elements to elements of another type."""
  data, size = b"".join([to_bytes(x, u.src[0].dtype) for x in g.value[u.src[0]]]), u.dtype.itemsize
  return [from_bytes(data[i:i + size], u.dtype) for i in range(0, len(data), size)]

def _constant(g: _Graph, u: UOp) -> list[Scalar]: return [round_to(u.dtype)(u.arg)]
def _same(g: _Graph, u: UOp) -> list[Scalar]: return g.value[u.src[0]]

def _copy(g: _Graph, u: UOp) -> list[Scalar]:
  if isinstance(u.arg, str):
    raise VerifyError(f"a COPY {u.arg!r} is of what differs from device to device, which has no one value: {u!r}")
  return _same(g, u)

def _variable(g: _Graph, u: UOp) -> list[Scalar]:
  if u.arg[0] not in g.variables:
    raise VerifyError(f"variable {u.arg[0]} has no value; pass variables={{{u.arg[0]!r}: ...}} or bind it")
  return [g.variables[u.arg[0]]]

def _bind(g: _Graph, u: UOp) -> list[Scalar]: return [u.src[1].arg]

def _iota(g: _Graph, u: UOp) -> list[Scalar]: return [round_to(u.dtype)(i) for i in range(g.shape(u)[0])]

def _reshape(g: _Graph, u: UOp) -> list[Scalar]:
  value, shape = g.value[u.src[0]], g.shape(u)
  if len(value) != _count(shape):
    raise VerifyError(f"cannot reshape {g.shape(u.src[0])} to {shape}: {len(value)} elements are not {_count(shape)}")
  return value

def _picked(g: _Graph, u: UOp, source: Callable[[tuple[int, ...]], tuple[int, ...] | None]) -> list[Scalar]:
  """Compute a movement operation. source: maps an index of the result to an index of the source, or to None where the
  result is 0."""
  value, shape = g.value[u.src[0]], g.shape(u.src[0])
  strides, zero = _strides(shape), round_to(u.dtype)(0)
  out = []
  for point in _points(g.shape(u)):
    at = source(point)
    inside = at is not None and all(0 <= i < d for i, d in zip(at, shape))
    out.append(value[_dot(at, strides)] if inside else zero)
  return out

def _expand(g: _Graph, u: UOp) -> list[Scalar]:
  shape, target = g.shape(u.src[0]), g.shape(u)
  if len(shape) != len(target) or any(a not in (1, b) for a, b in zip(shape, target)):
    raise VerifyError(f"cannot expand {shape} to {target}")
  return _picked(g, u, lambda point: tuple([0 if d == 1 else i for i, d in zip(point, shape)]))

def _permute(g: _Graph, u: UOp) -> list[Scalar]:
  def source(point: tuple[int, ...]) -> tuple[int, ...]:
    at = [0] * len(point)
    for k, axis in enumerate(u.arg): at[axis] = point[k]
    return tuple(at)
  return _picked(g, u, source)

def _flip(g: _Graph, u: UOp) -> list[Scalar]:
  shape = g.shape(u)
  return _picked(g, u, lambda point: tuple([shape[k] - 1 - i if k in u.arg else i for k, i in enumerate(point)]))

def _pad(g: _Graph, u: UOp) -> list[Scalar]:
  before = [g.size(b) for b, _ in u.pairs]
  return _picked(g, u, lambda point: tuple([i - b for i, b in zip(point, before)]))

def _shrink(g: _Graph, u: UOp) -> list[Scalar]:
  pairs = [(g.size(b), g.size(e)) for b, e in u.pairs]
  for (b, e), d in zip(pairs, g.shape(u.src[0])):
    if not 0 <= b <= e <= d: raise VerifyError(f"cannot shrink an axis of size {d} to {b}..{e}")
  return _picked(g, u, lambda point: tuple([i + b for i, (b, _) in zip(point, pairs)]))

def _gather(g: _Graph, u: UOp) -> list[Scalar]:
  index, strides, axis = g.value[u.src[1]], _strides(g.shape(u)), u.arg
  return _picked(g, u, lambda point: point[:axis] + (index[_dot(point, strides)],) + point[axis + 1:])

def _scatter(g: _Graph, u: UOp) -> list[Scalar]:
  """Write the values to their places, in order. The result is what the places hold in the end, or held before each
  value."""
  base, index, values = (g.value[s] for s in u.src)
  (op, kind), out, before = u.arg, list(base), []
  fold = None if op is None else operation(op.name, u.dtype)
  count = len(values) // max(len(index), 1)     # adjacent places of an index
  index = [at + k if 0 <= at <= len(out) - count else -1 for at in index for k in range(count)]
  for at, x in zip(index, values):
    inside = 0 <= at < len(out)
    before.append(out[at] if inside else round_to(u.dtype)(0))
    if inside: out[at] = x if fold is None else fold(out[at], x)
  return before if kind == "before" else out

def _reduce(g: _Graph, u: UOp) -> list[Scalar]:
  op, axes = u.arg
  shape = g.shape(u.src[0])
  fold, strides = operation(op.name, u.dtype), _strides(g.shape(u))
  out = [identity(op, u.dtype)] * _count(g.shape(u))
  for x, point in zip(g.value[u.src[0]], _points(shape)):
    at = _dot([0 if k in axes else i for k, i in enumerate(point)], strides)
    out[at] = fold(out[at], x)
  return out

def _assign(g: _Graph, u: UOp) -> list[Scalar]:
  """Write the value into the storage of the BUFFER below the target. Later targets that go through this node see it."""
  target = u.src[0]
  base, positions = _positions(g, target)
  if base.op is Ops.MULTI: homes = g.homes(base)
  else: homes = [([elements(g.buffers[base], base.dtype)], i) for i in range(base.arg[2])]
  new = g.value[u.src[1]]
  if u.src[1].shape == (): new = new * len(positions)
  if len(new) != len(positions): raise VerifyError(f"ASSIGN of {len(new)} values to {len(positions)} places")
  for at, x in zip(positions, new):
    memories, place = homes[at]
    for memory in memories: memory[place] = x
  return new

def _positions(g: _Graph, target: UOp) -> tuple[UOp, list[int]]:
  """The BUFFER or MULTI of an ASSIGN's target, and the index in it of each element of the target."""
  chain = [target]
  while chain[-1].op not in (Ops.BUFFER, Ops.MULTI):
    if chain[-1].op not in GroupOp.Movement | {Ops.ASSIGN, Ops.AFTER, Ops.DETACH, Ops.CONTIGUOUS}:
      raise VerifyError(f"an ASSIGN's target is a view of a BUFFER, not of {chain[-1].op.name}")
    chain.append(chain[-1].src[0])
  places = _Graph(g.buffers, g.variables)
  places.value.update({s: v for s, v in g.value.items() if s.shape == ()})
  places.value[chain[-1]] = list(range(_count(g.shape(chain[-1]))))
  for u in reversed(chain[:-1]):
    places.value[u] = _RULES[u.op](places, u) if u.op in GroupOp.Movement else places.value[u.src[0]]
  return chain[-1], places.value[target]

_RULES: dict[Ops, Callable[[_Graph, UOp], list[Scalar]]] = {
  Ops.CONST: _constant, Ops.DEFINE_VAR: _variable, Ops.BIND: _bind, Ops.IOTA: _iota, Ops.RESHAPE: _reshape,
  Ops.EXPAND: _expand,
  Ops.PERMUTE: _permute, Ops.FLIP: _flip, Ops.PAD: _pad, Ops.SHRINK: _shrink, Ops.GATHER: _gather,
  Ops.SCATTER: _scatter,
  Ops.REDUCE_AXIS: _reduce,
  Ops.ASSIGN: _assign, Ops.COPY: _copy,
  **{op: _same for op in (Ops.CONTIGUOUS, Ops.CONTIGUOUS_BACKWARD, Ops.DETACH, Ops.AFTER)},
  **{op: _elementwise for op in GroupOp.Elementwise}, Ops.BITCAST: _bitcast,
}
