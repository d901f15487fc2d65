"""Differentiate a tensor graph: one rule per operation, from the result back to the targets.

`gradients(root, gradient, targets)` walks the nodes below root once, last first. A rule takes a node and the gradient
of its value, and returns the contribution to each source. Contributions to one node are added. Results are graphs
themselves, so derivatives of any order work. Nothing is computed here. Cost: linear in the graph; no recursion.

Rules decide cases that mathematics leaves open. Equal operands of MAX share the gradient equally. So do equal maxima of
a reduction, and so of a pooling window. The gradient of a running maximum goes to the last one, whose index cummax
returns. relu, abs and sign have gradient 0 at 0. Rounding, comparisons, integers and DETACH pass nothing. The gradient
of GATHER adds up the elements that were read from one index. It is a sum over "index equals position", as of a one-hot
matrix product. So an embedding's gradient costs (indices x rows) multiplications per column, unless its table is large:
then indices are sorted (methods/graph/rows.py).

A group of nodes may have a better rule than the combination of its parts (a convolution). `define_gradient` attaches
one to its last node.

Hooks (`hook_gradient`) change the whole gradient of a node before it is a target's, and before it flows on.

Checkpoints (`define_checkpoint`): values between some inputs and outputs are not kept for the backward pass but
computed again. When the walk reaches an output, it copies the nodes in between. The copies use AFTER(input, gradient of
the output) in place of each input. They have equal values but are other nodes. So they have their own storage, and are
computed once that gradient exists. Rules get the copies for values. Gradients still flow along the original nodes, so
targets may be anywhere.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable, Sequence, Set
import math
from typing import Any
import weakref
from weakref import WeakKeyDictionary

from tinyhw.dtype import dtypes
from tinyhw.engine.memory.cuts import FLOWS_FROM
from tinyhw.engine.schedule.multi import axis_of
from tinyhw.errors import GradientError
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.graph import add, binary, compare, like, mul, negate, scale, unary, where
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import lock
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

Gradients = tuple[UOp | None, ...]
# (node, gradient of its value) -> gradient of each source; None if nothing flows there
Rule = Callable[[UOp, UOp], Gradients]

class Custom(NamedTuple):
  """A special rule for one node. It has the rule, and its sources, which may lie below nodes in between."""
  sources: tuple[UOp, ...]
  rule: Rule

_custom: WeakKeyDictionary[UOp, Custom] = WeakKeyDictionary()

def define_gradient(node: UOp, sources: tuple[UOp, ...], rule: Rule) -> None:
  """Set a rule that returns the gradients of `sources` from that of `node`.

  rule must not hold node, nor values below it. It takes them from the node that it is passed, which may be a recomputed
  copy.
  """
  _custom[node] = Custom(sources, rule)

def custom_of(node: UOp) -> Custom | None:
  """Return the special rule of a node."""
  return _custom.get(node)

# by output; inner checkpoints first
_checkpoints: WeakKeyDictionary[UOp, tuple[Checkpoint, ...]] = WeakKeyDictionary()

class Checkpoint:
  """The border of recomputation: nodes that are kept. All outputs of a function share one."""
  def __init__(self, kept: frozenset[UOp]): self.kept = kept

  def is_input(self, u: UOp) -> bool:
    """Is u's value kept for the backward pass?"""
    return u in self.kept or u.op is Ops.BUFFER or u.op is Ops.ASSIGN or u.realized is not None

def define_checkpoint(outputs: Sequence[UOp], known: Set[UOp]) -> None:
  """Let the backward pass compute the values between `known` nodes (and storage) and the outputs again."""
  made = Checkpoint(frozenset(u for u in UOp.sink(*outputs).toposort(lambda u: u not in known) if u in known))
  for u in outputs: _checkpoints[u] = *(c for c in _checkpoints.get(u, ()) if c.kept != made.kept), made

# ***** rules *****

def _multiply(u: UOp, g: UOp) -> Gradients: return mul(g, u.src[1]), mul(g, u.src[0])
def _divide(u: UOp, g: UOp) -> Gradients:
  first = binary(Ops.FDIV, g, u.src[1])
  return first, negate(mul(first, u))

def _maximum(u: UOp, g: UOp) -> Gradients:
  a, b = u.src
  zero, tie = like(g, 0), compare(Ops.CMPEQ, a, b)
  half = scale(g, 0.5)
  less = compare(Ops.CMPLT, a, b)
  return where(tie, half, where(less, zero, g)), where(tie, half, where(less, g, zero))

def _power(u: UOp, g: UOp) -> Gradients:
  a, b = u.src
  zero = like(a, 0)
  slope = where(compare(Ops.CMPEQ, b, zero), zero, mul(b, binary(Ops.POW, a, binary(Ops.SUB, b, like(b, 1)))))
  at_zero = where(compare(Ops.CMPLT, b, zero), like(a, -math.inf), zero)
  growth = where(compare(Ops.CMPEQ, a, zero), at_zero, mul(u, unary(Ops.LOG, a)))
  return mul(g, slope), mul(g, growth)

def _error_function(u: UOp, g: UOp) -> Gradients:
  x = u.src[0]
  return (mul(g, scale(unary(Ops.EXP, negate(mul(x, x))), 2 / math.sqrt(math.pi))),)

def _choice(u: UOp, g: UOp) -> Gradients:
  zero = like(g, 0)
  return None, where(u.src[0], g, zero), where(u.src[0], zero, g)

def _reduce(u: UOp, g: UOp) -> Gradients:
  (op, axes), x = u.arg, u.src[0]
  spread = graph.expand(g, x.shape)
  if op is Ops.ADD: return (spread,)
  if op is Ops.MAX:
    ties = graph.cast(compare(Ops.CMPEQ, x, graph.expand(u, x.shape)), x.dtype)
    share = binary(Ops.FDIV, g, graph.reduce(ties, Ops.ADD, axes))
    return (mul(ties, graph.expand(share, x.shape)),)
  # A product: the gradient is the product of the others. Division gives it, except next to zeros.
  zeros = compare(Ops.CMPEQ, x, like(x, 0))
  count = graph.reduce(graph.cast(zeros, x.dtype), Ops.ADD, axes)
  filled = where(zeros, like(x, 1), x)
  others = graph.expand(graph.reduce(filled, Ops.MUL, axes), x.shape)
  count = graph.expand(count, x.shape)
  no_zero, one_zero = compare(Ops.CMPEQ, count, like(x, 0)), compare(Ops.CMPEQ, count, like(x, 1))
  alone = where(binary(Ops.AND, one_zero, zeros), others, like(x, 0))
  return (mul(spread, where(no_zero, binary(Ops.FDIV, others, filled), alone)),)

def _expand(u: UOp, g: UOp) -> Gradients: return (graph.sum_to(g, u.src[0].shape), *(None,) * (len(u.src) - 1))
def _reshape(u: UOp, g: UOp) -> Gradients: return (graph.reshape(g, u.src[0].shape), *(None,) * (len(u.src) - 1))

def _permute(u: UOp, g: UOp) -> Gradients:
  back = [0] * len(u.arg)
  for i, axis in enumerate(u.arg): back[axis] = i
  return (graph.permute(g, tuple(back)),)

def _pad(u: UOp, g: UOp) -> Gradients:
  pairs = [(b, d + b) for (b, _), d in zip(u.pairs, u.src[0].shape)]
  return (graph.shrink(g, pairs), *(None,) * (len(u.src) - 1))

def _shrink(u: UOp, g: UOp) -> Gradients:
  pairs = [(b, d - e) for (b, e), d in zip(u.pairs, u.src[0].shape)]
  return (graph.pad(g, pairs), *(None,) * (len(u.src) - 1))

def _gather(u: UOp, g: UOp) -> Gradients:
  (x, index), axis = u.src, u.arg
  shape, rows = index.shape, x.shape[axis]
  index = graph.counting(index, rows)
  wide = (*shape[:axis + 1], rows, *shape[axis + 1:])  # (..., index, row, ...)
  column = (*shape[:axis + 1], 1, *shape[axis + 1:])
  place = graph.expand(graph.reshape(graph.iota(rows, index.dtype, u.device), (rows,) + (1,) * (len(shape) - axis - 1)),
                       (rows, *shape[axis + 1:]))
  place = graph.broadcast(place, wide)
  hit = compare(Ops.CMPEQ, graph.expand(graph.reshape(index, column), wide), place)
  spread = graph.cast(graph.expand(graph.reshape(g, column), wide), graph.accumulator(g.dtype))
  return graph.cast(graph.fold(where(hit, spread, like(spread, 0)), Ops.ADD, (axis,)), g.dtype), None

def _scatter(u: UOp, g: UOp) -> Gradients:
  """A sum by place: each value gets the gradient of its place. Other scatters have rules of their own where they are
  made (methods/scattering.py)."""
  (base, index, value), (op, kind) = u.src, u.arg
  if (op, kind) != (Ops.ADD, "after"):
    raise GradientError(f"SCATTER {u.arg} of {u.dtype} has no gradient; detach() what should not be differentiated")
  place = index
  if len(value.shape) > len(index.shape):    # adjacent values
    place = graph.expand(graph.reshape(index, (*index.shape, 1)), value.shape)
    place = where(compare(Ops.CMPLT, place, like(place, 0)), place,
                  add(place, graph.positions(place, len(value.shape) - 1, place.dtype)))
  count = graph.size(value.shape)
  flat = graph.reshape(g, (graph.size(base.shape),)), graph.reshape(place, (count,))
  return g, None, graph.reshape(graph.node(Ops.GATHER, g.dtype, flat, 0, (count,)), value.shape)

def _copy(u: UOp, g: UOp) -> Gradients:
  home = u.src[0].device
  if home is None: return None, None
  return graph.copy(g, home, axis_of(u.src[0])), None

_RULES: dict[Ops, Rule] = {
  Ops.ADD: lambda u, g: (g, g), Ops.SUB: lambda u, g: (g, negate(g)), Ops.MUL: _multiply, Ops.FDIV: _divide,
  Ops.MAX: _maximum, Ops.POW: _power,
  Ops.MULACC: lambda u, g: (mul(g, u.src[1]), mul(g, u.src[0]), g), Ops.WHERE: _choice,
  Ops.NEG: lambda u, g: (negate(g),), Ops.RECIPROCAL: lambda u, g: (negate(mul(g, mul(u, u))),),
  Ops.SQRT: lambda u, g: (binary(Ops.FDIV, g, scale(u, 2)),), Ops.EXP: lambda u, g: (mul(g, u),),
  Ops.EXP2: lambda u, g: (mul(g, scale(u, math.log(2))),), Ops.LOG: lambda u, g: (binary(Ops.FDIV, g, u.src[0]),),
  Ops.LOG2: lambda u, g: (binary(Ops.FDIV, g, scale(u.src[0], math.log(2))),), Ops.SIN: lambda u,
  g: (mul(g, unary(Ops.COS, u.src[0])),),
  Ops.COS: lambda u, g: (negate(mul(g, unary(Ops.SIN, u.src[0]))),),
  Ops.TANH: lambda u, g: (mul(g, binary(Ops.SUB, like(u, 1), mul(u, u))),), Ops.ERF: _error_function,
  Ops.CAST: lambda u, g: (graph.cast(g, u.src[0].dtype),), Ops.REDUCE_AXIS: _reduce, Ops.RESHAPE: _reshape,
  Ops.EXPAND: _expand,
  Ops.PERMUTE: _permute, Ops.FLIP: lambda u, g: (graph.flip(g, u.arg),), Ops.PAD: _pad, Ops.SHRINK: _shrink,
  Ops.GATHER: _gather, Ops.SCATTER: _scatter,
  Ops.CONTIGUOUS: lambda u, g: (g,), Ops.CONTIGUOUS_BACKWARD: lambda u, g: (graph.contiguous(g),), Ops.COPY: _copy,
  Ops.ASSIGN: lambda u, g: (None, g), Ops.AFTER: lambda u, g: (g, *(None,) * (len(u.src) - 1)),
}
_ALL = slice(None)

def transposed(value: UOp, view: UOp, whole: UOp) -> UOp:
  """Put value, of view's shape, back to where `view` took it from `whole`; zero elsewhere. `view` is a chain of
  movements that repeat nothing."""
  while view is not whole:
    back = _RULES[view.op](view, value)[0]
    assert back is not None
    value, view = back, view.src[0]
  return value

# ***** hooks *****

class Hooked(NamedTuple):
  """Functions of a gradient, and the node whose gradient they change. The node of a leaf is that which it has now."""
  node: weakref.ref[UOp]
  leaf: weakref.ref[Any] | None
  functions: dict[int, Callable[[UOp], UOp]]

  def holder(self) -> Any:
    """Return the leaf, or the node; None if it is gone."""
    return self.node() if self.leaf is None else self.leaf()

_hooked: list[Hooked] = []

def hook_gradient(node: UOp, leaf: Any | None, functions: dict[int, Callable[[UOp], UOp]]) -> None:
  """Let functions change the gradient of a node, in order, before it flows on. The dict may change later.

  leaf: the holder of the node if it may hold another one later, as a parameter after a step. None: it does not.
  """
  with lock:
    _hooked[:] = [h for h in _hooked if h.functions and h.holder() is not None]
    _hooked.append(Hooked(weakref.ref(node), None if leaf is None else weakref.ref(leaf), functions))

def _hooks() -> dict[UOp, list[Hooked]]:
  """Return the hooks by the nodes that they wait at."""
  found: dict[UOp, list[Hooked]] = {}
  for hooked in list(_hooked):
    holder = hooked.holder() if hooked.functions else None
    if holder is not None: found.setdefault(holder if hooked.leaf is None else holder.uop, []).append(hooked)
  return found

def reaches(root: UOp, targets: Set[UOp]) -> bool:
  """Does a gradient of root flow to one of the targets? A realized node stands for its buffer too."""
  seen, waiting = {root}, [root]
  while waiting:
    u = waiting.pop()
    if not dtypes.is_float(u.dtype): continue
    if u in targets or u.realized is not None and u.realized in targets: return True
    fresh = [s for s in _sources(u) if s not in seen]
    seen.update(fresh)
    waiting.extend(fresh)
  return False

# ***** the walk *****

def gradients(root: UOp, gradient: UOp, targets: Sequence[UOp], ends: Sequence[UOp] = ()) -> list[UOp | None]:
  """Return the gradient of each target: the derivative of root, weighted by `gradient`. None for a target on which root
  does not depend smoothly.

  ends: nodes past which nothing flows.

  A node that has been realized stands for its buffer too. Raises GradientError for an operation that has no rule.
  """
  order = list(root.toposort())
  wanted = set(targets)
  place: dict[UOp, UOp] = {u: u for u in wanted}
  for u in order:
    if u.realized is not None and u.realized in wanted: place[u] = u.realized
  live = _reaching(order, place)
  found: dict[UOp, UOp] = {root: gradient} if root in live else {}
  total: dict[UOp, UOp] = {}
  again, hooks = _Again(order), _hooks()
  for u in reversed(order):
    g = found.pop(u, None)
    if g is None: continue
    if hooks and u not in ends: g = _changed(u, g, hooks)
    if u in place: _accumulate(total, place[u], g)
    if u in ends or not any(s in live for s in _sources(u)): continue
    for s, contribution in _contributions(u, again.value(u, g), g, live):
      if s in live: _accumulate(found, s, contribution)
  return [_placed(total.get(t), t) for t in targets]

def _changed(u: UOp, g: UOp, hooks: dict[UOp, list[Hooked]]) -> UOp:
  """Return the gradient of a node after its hooks."""
  for hooked in [*hooks.get(u, ()), *(hooks.get(u.realized, ()) if u.realized is not None else ())]:
    for function in list(hooked.functions.values()): g = function(g)
  return g

def _placed(g: UOp | None, target: UOp) -> UOp | None:
  """Distribute the gradient of a tensor on several devices as the tensor is."""
  devices = target.device
  return g if g is None or not isinstance(devices, tuple) else graph.copy(g, devices, axis_of(target))

def _reaching(order: Iterable[UOp], places: dict[UOp, UOp]) -> set[UOp]:
  """Return the nodes through which a gradient reaches a target."""
  live: set[UOp] = set()
  for u in order:
    if not dtypes.is_float(u.dtype): continue
    if u in places or any(s in live for s in _sources(u)): live.add(u)
  return live

def _sources(u: UOp) -> tuple[UOp, ...]:
  """Return the nodes to which the gradient of u may flow."""
  sources = u.src[FLOWS_FROM.get(u.op, _ALL)]
  custom = _custom.get(u)
  return sources if custom is None else sources + custom.sources

class _Again:
  """The recomputed nodes that stand for values of checkpoints in the backward pass."""
  def __init__(self, order: Iterable[UOp]):
    self.outputs: dict[Checkpoint, list[UOp]] = {}
    if _checkpoints:
      for u in order:
        for checkpoint in _checkpoints.get(u, ()): self.outputs.setdefault(checkpoint, []).append(u)
    self.copies: dict[UOp, UOp] = {}

  def value(self, u: UOp, g: UOp) -> UOp:
    """Return the node from which a rule may take values for u.

    The first output of a checkpoint that has a gradient makes the checkpoint's values anew.
    """
    if self.outputs:
      for checkpoint in reversed(_checkpoints.get(u, ())):
        outputs = self.outputs.pop(checkpoint, None)
        if outputs is not None: self._copy(checkpoint, outputs, g)
    return self.copies.get(u, u)

  def _copy(self, checkpoint: Checkpoint, outputs: list[UOp], g: UOp) -> None:
    new: dict[UOp, UOp] = {}
    ends = set(outputs)
    def is_input(u: UOp) -> bool: return u not in ends and checkpoint.is_input(u)
    for u in UOp.sink(*outputs).toposort(lambda u: not is_input(u)):
      if u.op is Ops.SINK: continue
      if is_input(u): new[u] = graph.after(self.copies.get(u, u), g)
      else:
        src = tuple([new[s] for s in u.src])
        new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg, u.tag)
        custom = _custom.get(u)
        if custom is not None and new[u] is not u:
          define_gradient(new[u], tuple([new.get(s, s) for s in custom.sources]), custom.rule)
    self.copies.update(new)

def _contributions(u: UOp, value: UOp, g: UOp, live: set[UOp]) -> Iterable[tuple[UOp, UOp]]:
  """Return the contributions to u's sources. value: u itself, or its recomputed node."""
  custom = _custom.get(u)
  if custom is not None and any(s in live for s in custom.sources): sources, rule = custom
  else:
    sources = u.src
    if u.op not in _RULES:
      raise GradientError(f"{u.op.name} of {u.dtype} has no gradient; detach() what should not be differentiated")
    rule = _RULES[u.op]
  return [(s, contribution) for s, contribution in zip(sources, rule(value, g)) if contribution is not None]

def _accumulate(into: dict[UOp, UOp], u: UOp, g: UOp) -> None:
  if g.shape != u.shape and graph.same_numbers(g.shape, u.shape): g = graph.relabelled(g, u.shape)
  assert g.shape == u.shape and g.dtype is u.dtype, (f"the gradient of {u} has shape {g.shape} and type {g.dtype}, "
                                                     f"not {u.shape} and {u.dtype}")
  old = into.get(u)
  into[u] = g if old is None else add(old, g)
