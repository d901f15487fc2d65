"""Pickle a captured TinyJit: the data that its replays need, and its function's name.

Kernels are stored as graphs, as the schedule made them. They are compiled again for the device that opens them, through
the cache. Storage that the capture reads, or writes and keeps, comes with its contents. Storage that each call brings
or makes (arguments, results, random draws, temporary memory) comes as sizes. Nothing else of the process is included:
no addresses, no machine code, and no Tensors that the function reads by itself. So a loaded capture has storage of its
own. Storage that TinyJits and Tensors of one pickle share is shared afterwards, too.

A pickle holds tables (of graph nodes, of memory), and captures that refer to positions in these. `saved` makes it,
`restored` makes a TinyJit of it. Nodes are a flat table, since pickle would recurse as deep as the graph is.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable
from typing import Any

from tinyhw.capture.gradients import Gradient, Gradients, Held
from tinyhw.capture.jit import TinyJit, check_waiting
from tinyhw.capture.names import NamedFunction, is_named, qualified_name
from tinyhw.capture.replay import Captured, Expression, Given, Output, Slot, Standing, Unseen, ResultView, is_inside
from tinyhw.capture.structure import Rest, rebuilt, short
from tinyhw.capture.views import base_buffer, binds_in, chain
from tinyhw.data_class import replace
from tinyhw.device import Buffer, DeviceLike
from tinyhw.dtype import DType
from tinyhw.engine.memory.buffers import MultiBuffer, Storage, buffers_in, new_storage, storage_with
from tinyhw.engine.memory.writes import node_over, rebased
from tinyhw.engine.run.faults import boundary
from tinyhw.engine.run.realize import Source, Step, found_parts, step_of
from tinyhw.errors import JitError
from tinyhw.helpers import uncollected
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import lock
from tinyhw.trace import Location
from tinyhw.uop.decide import Decisions
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import KernelInfo, UOp

FORMAT = 1      # version of the tables; pickles of other versions are refused

# ***** tables *****

class StoredMemory(NamedTuple):
  """An entry of the memory table.

  held: storage with its contents. Otherwise, if device is not None, it is new storage. Otherwise it is the bytes from
  `offset` on of the Buffer at entry `whole`; of a storage on several devices, the Buffer number `part`.
  """
  held: Storage | None = None
  device: DeviceLike | None = None
  size: int = 0
  dtype: DType | None = None
  whole: int = 0
  offset: int = 0
  part: int | None = None

class Launches(NamedTuple):
  """A captured Source in a pickle, by table positions of its kernel and buffers. kernel None: a copy from buffers[1] to
  buffers[0]."""
  device: str
  kernel: int | None
  buffers: tuple[int, ...]
  variables: dict[str, int]
  line: Location | None

class Leaf:
  """A leaf of a result in a pickle: its class, the position of its node, and that of its storage or of the argument
  that it views."""
  def __init__(self, kind: str, node: int | None, place: int): self.kind, self.node, self.place = kind, node, place

class Shown:
  """The text of an argument's value, which only messages need."""
  def __init__(self, text: str): self.text = text
  def __repr__(self) -> str: return self.text

class Saved(NamedTuple):
  """A TinyJit in a pickle: its format, function and tables, and its `Call`s: the first, and those for other values of
  its Variables."""
  format: int
  function: NamedFunction
  nodes: list[Any]
  memory: list[StoredMemory]
  calls: list[StoredCall]

class StoredCall(NamedTuple):
  """A captured call, by table positions: nodes of views and decisions, memory of slots, conditions of a call, and
  recipes of results."""
  name: str
  names: tuple[str, ...]
  rest: tuple[Rest, ...]
  modes: tuple[Any, ...]
  leaves_training: int | None
  differentiated: bool
  variables: dict[str, int]
  decisions: list[tuple[int, bool]]
  views: list[int]
  inputs: list[int]
  outputs: list[tuple[int, int, bytes | None]]
  draws: list[tuple[int | None, Callable[[], Any]]]
  refills: list[tuple[int, bytes]]
  steps: list[Launches]
  temporary: list[int]
  result: Any
  gradients: tuple[list[Held], list[int], list[tuple[Any, Any]], list[int]]

class Tables:
  """Nodes and memory of the captures of a TinyJit, each once."""
  def __init__(self, captures: list[Captured]):
    self.nodes: list[Any] = []
    self.memory: list[StoredMemory] = []
    self._node: dict[UOp, int] = {}
    self._memory: dict[int, int] = {}
    slots = [slot for c in captures for slot in (*c.inputs, *c.outputs.values(), *c.draw_slots) if slot is not None]
    self.wholes = [b for slot in slots for b in buffers_in(slot.buffer)]
    made = [b for c in captures for storage in c.made for b in buffers_in(storage)]
    # each call fills them before it reads them
    self.empty = {id(b) for b in (*self.wholes, *made)}.union(*[c.arenas for c in captures])

  def node(self, root: UOp) -> int:
    """Return the position of a graph."""
    for u in root.toposort():
      if u in self._node: continue
      arg = replace(u.arg, origin=None) if isinstance(u.arg, KernelInfo) else u.arg
      self._node[u] = len(self.nodes)
      self.nodes.append((u.op, u.dtype, tuple([self._node[s] for s in u.src]), arg, u.tag))
    return self._node[root]

  def view(self, u: UOp, storage: Storage) -> int:
    """Return the position of a view of storage.

    Its BUFFER has the storage's position as its number. A DETACH loses its rule for gradients.
    """
    base, *looks = reversed(chain(rebased(u, base_buffer(u))))
    made = UOp(Ops.BUFFER, base.dtype, (), (("memory", self.position(storage)), *base.arg[1:]))
    for look in looks:
      if look.op is Ops.DETACH: made = UOp(Ops.DETACH, look.dtype, (made,))
      else: made = UOp(look.op, look.dtype, (made, *look.src[1:]), look.arg, look.tag)
    return self.node(made)

  def position(self, storage: Storage) -> int:
    """Return the position of memory."""
    if id(storage) not in self._memory:
      made = self._of(storage)      # a whole comes before its parts
      self._memory[id(storage)] = len(self.memory)
      self.memory.append(made)
    return self._memory[id(storage)]

  def _of(self, storage: Storage) -> StoredMemory:
    new = StoredMemory(device=storage.device, size=storage.size, dtype=storage.dtype)
    if isinstance(storage, MultiBuffer):
      return new if all(id(b) in self.empty for b in storage.bufs) else StoredMemory(held=storage)
    together = storage_with(storage)
    if isinstance(together, MultiBuffer):
      return StoredMemory(whole=self.position(together), part=together.bufs.index(storage))
    if id(storage) in self.empty: return new
    if storage.base is storage: return StoredMemory(held=storage)
    whole = next((b for b in self.wholes if is_inside(b, storage)), storage.base)
    return new._replace(device=None, whole=self.position(whole), offset=storage.offset - whole.offset)

# ***** to a pickle *****

def saved(jit: TinyJit[Any, Any]) -> Saved:
  """Return the pickled form of a captured TinyJit. Raises JitError if its replays would differ elsewhere."""
  with lock:
    jits = [jit, *[other for other in jit._others if other.captured is not None]]
    captures = [_replayable(j) for j in jits]
    tables = Tables(captures)
    calls = [_saved_call(j, c, tables) for j, c in zip(jits, captures)]
  if isinstance(jit.fxn, NamedFunction): return Saved(FORMAT, jit.fxn, tables.nodes, tables.memory, calls)
  name = qualified_name(jit.fxn)
  known = is_named(jit, *name) or is_named(jit.fxn, *name)
  return Saved(FORMAT, NamedFunction(*name, known, any(m.held is not None for m in tables.memory)), tables.nodes,
               tables.memory, calls)

def _replayable(jit: TinyJit[Any, Any]) -> Captured:
  """Return the capture if it can replay now, after doing pending writes. Raises JitError."""
  captured = jit.captured
  assert captured is not None, "what is not captured has nothing to save"
  jit.guards.check()
  check_waiting(captured)
  for watched in captured.watched: watched.check(captured.differentiated)
  if jit.shared:
    raise JitError(f"argument {jit.names[jit.shared[0]]} was, when captured, a Tensor that the function also uses by "
                   f"itself, and a pickle would make "
                   "two of it; give the function a copy, with .clone(), call reset() and capture again before it is "
                   "pickled")
  if any(not isinstance(held.target, int) for held in captured.gradients.held):
    raise JitError("the function adds to gradients from before its call, of Tensors that are no arguments, and a "
                   "pickle has no such Tensors; call "
                   "zero_grad() inside of the function, call reset() and capture again before it is pickled")
  return captured

def _saved_call(jit: TinyJit[Any, Any], c: Captured, tables: Tables) -> StoredCall:
  position = tables.position
  outputs = {id(o): (k, o) for k, o in enumerate(c.outputs.values())}
  found: dict[int, Leaf] = {}
  def leaf(value: Any) -> Any:
    if not isinstance(value, (Given, ResultView, Standing, Expression)): return value
    if id(value) not in found: found[id(value)] = made(value)
    return found[id(value)]
  def made(value: Any) -> Leaf:
    if isinstance(value, Given): return Leaf("given", None, value.place)
    if isinstance(value, Expression): return Leaf("expression", tables.node(value.expression), 0)
    if isinstance(value, Standing):
      storage = base_buffer(value.own.uop).storage
      return Leaf("standing", tables.view(value.own.uop, storage), position(storage))
    if isinstance(value.source, int):
      return Leaf("of argument", tables.view(value.view, c.inputs[value.source].buffer), value.source)
    return Leaf("of output", tables.view(value.view, value.source.buffer), outputs[id(value.source)][0])
  result = rebuilt(c.result, leaf)
  left = [(g.target if isinstance(g.target, int) else leaf(g.target), leaf(g.leaf)) for g in c.gradients.left
          if _goes_along(g.target)]
  gradients = (list(c.gradients.held),
               [tables.view(u, c.inputs[len(jit.names) + k].buffer) for k, u in enumerate(c.gradients.views)], left,
               [target for target in c.gradients.absent if isinstance(target, int)])
  return StoredCall(
    c.name, jit.names, tuple([r._replace(value=Shown(short(r.value))) for r in jit.rest]), jit.modes,
    jit.leaves_training, c.differentiated,
    c.given_variables, [(tables.node(u), outcome) for u, outcome in c.decisions.noted.items()],
    [tables.view(u, slot.buffer) for u, slot in zip(c.views, c.inputs)], [position(slot.buffer) for slot in c.inputs],
    [(position(o.buffer), tables.view(o.node, o.buffer), o.content) for o in c.outputs.values()],
    [(None if buffer is None else position(buffer), draw) for buffer, draw in c.draws],
    [(position(b), content) for b, content in c.refills],
    list(_launches(c.steps, tables)), [tables.position(b) for b in _bases(c.steps) if id(b) in c.arenas], result,
    gradients)

def _goes_along(target: Any) -> bool:
  """Is a Tensor that gets a gradient an argument or a result? Others are not in the pickle."""
  return isinstance(target, (int, Given, ResultView, Standing))

def _launches(steps: list[Step], tables: Tables) -> Iterable[Launches]:
  last: Source | None = None
  for s in steps:
    if s.runner is None: yield Launches("", None, tuple(map(tables.position, s.buffers)), {}, s.line)
    elif s.source is not last:    # one Source may be several launches
      assert s.source is not None, "a captured launch without its kernel"
      yield Launches(s.source.device, tables.node(s.source.sink), tuple(map(tables.position, s.source.buffers)),
                     dict(s.source.variables), s.line)
    last = s.source

def _bases(steps: list[Step]) -> list[Buffer]:
  return list({id(b.base): b.base for s in steps for b in s.buffers}.values())

# ***** from a pickle *****

@boundary
def restored(given: Saved) -> TinyJit[Any, Any]:
  """Return a TinyJit whose next call replays.

  Raises JitError for the pickle of another version, DeviceError for missing devices.
  """
  if given.format != FORMAT:
    raise JitError(f"this pickle of a TinyJit has format {given.format}, and this version of tinyhw reads {FORMAT}; "
                   f"pickle it again with this one")
  with lock: return uncollected(_restored, given)

def _restored(given: Saved) -> TinyJit[Any, Any]:
  memory = _memory_of(given.memory)
  nodes: list[UOp] = []
  for op, dtype, src, arg, tag in given.nodes:
    if op is Ops.BUFFER: nodes.append(node_over(memory[arg[0][1]]))
    else: nodes.append(UOp(op, dtype, tuple([nodes[k] for k in src]), arg, tag))
  first, *others = [_with_capture(given.function, call, nodes, memory) for call in given.calls]
  first._others = others
  return first

def _memory_of(table: list[StoredMemory]) -> list[Storage]:
  found: list[Storage] = []
  for m in table:
    if m.held is not None: found.append(m.held)
    elif m.device is not None:
      assert m.dtype is not None, "memory of no type"
      found.append(new_storage(m.device, m.size, m.dtype))
    else:
      whole: Any = found[m.whole]
      found.append(whole.bufs[m.part] if m.part is not None else whole.view(m.size, m.dtype, m.offset))
  return found

def _with_capture(function: NamedFunction, call: StoredCall, nodes: list[UOp], memory: list[Any]) -> TinyJit[Any, Any]:
  jit: TinyJit[Any, Any] = TinyJit(function)
  jit.cnt, jit.rest, jit.modes, jit.names, jit.leaves_training = (2, call.rest, call.modes, call.names,
                                                                  call.leaves_training)
  jit.captured = _restored_capture(call, nodes, memory)
  return jit

def _restored_capture(call: StoredCall, nodes: list[UOp], memory: list[Any]) -> Captured:
  outputs = [Output(nodes[node], content) for _, node, content in call.outputs]
  found: dict[int, Any] = {}
  def leaf(value: Any) -> Any:
    if not isinstance(value, Leaf): return value
    if id(value) not in found: found[id(value)] = _leaf(value, nodes, outputs)
    return found[id(value)]
  c: Captured = object.__new__(Captured)
  c.name, c.differentiated = call.name, call.differentiated
  c.decisions = Decisions({nodes[k]: outcome for k, outcome in call.decisions}, call.variables)
  held, gradient_views, left, absent = call.gradients
  c.gradients = Gradients.__new__(Gradients)
  c.gradients.used, c.gradients.held, c.gradients.views = [], held, [nodes[k] for k in gradient_views]
  c.gradients.left, c.gradients.absent = [Gradient(leaf(target), leaf(g)) for target, g in left], list(absent)
  c.views = [nodes[k] for k in call.views]
  c.symbolic = [k for k, view in enumerate(c.views) if binds_in(view)]
  c.inputs = [Slot(memory[k]) for k in call.inputs]
  c.variables = c.given_variables = call.variables
  c.steps = _steps(call.steps, nodes, memory)
  c.made, c.arenas = [], {id(memory[k]) for k in call.temporary}
  c.draws = [(None if k is None else memory[k], draw) for k, draw in call.draws]
  c.draw_slots = [None if buffer is None else Slot(buffer) for buffer, _ in c.draws]
  c.outputs = {id(o.buffer): o for o in outputs}
  c.refills = [(memory[k], content) for k, content in call.refills]
  c.result = rebuilt(call.result, leaf)
  c.begin()
  c.watched, c.waiting = [Unseen(c)], []
  return c

def _leaf(value: Leaf, nodes: list[UOp], outputs: list[Output]) -> Any:
  if value.kind == "given": return Given(value.place)
  assert value.node is not None, "a leaf without a node"
  node = nodes[value.node]
  if value.kind == "expression": return Expression(node)
  if value.kind == "standing": return Standing.alone(node)
  return ResultView(node, value.place if value.kind == "of argument" else outputs[value.place])

def _steps(launches: list[Launches], nodes: list[UOp], memory: list[Any]) -> list[Step]:
  """Return steps for each device. Their kernels are compiled and loaded together."""
  sinks: dict[str, list[UOp]] = {}
  for launch in launches:
    if launch.kernel is not None: sinks.setdefault(launch.device, []).append(nodes[launch.kernel])
  parts = {device: dict(zip(wanted, found_parts(device, wanted))) for device, wanted in sinks.items()}
  steps: list[Step] = []
  for device, kernel, places, variables, line in launches:
    buffers = tuple([memory[k] for k in places])
    if kernel is None: steps.append(Step(None, buffers, (), 0, line))
    else:
      source = Source(device, nodes[kernel], buffers, variables)
      steps.extend([step_of(part, buffers, variables, line, source) for part in parts[device][nodes[kernel]]])
  return steps
