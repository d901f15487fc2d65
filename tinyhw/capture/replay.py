"""The capture of a TinyJit, and its replay: recordings of launches with patch points, results with storage of their
own, and state.

A `Slot` is a Buffer of the captured call that each replay may replace by another: an input, a gradient from before, a
draw of random numbers, an output. Outputs are all Buffers that the call made and returned, or left as a gradient. So no
replay overwrites results of an earlier call. Other written Buffers are state, which stays in place and whose Tensors
see the new contents, or are private to the capture.
"""
from __future__ import annotations
import gc
import sys
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

from tinyhw import trace
from tinyhw.capture.gradients import Gradients, refuse_gradient
from tinyhw.capture.structure import leaves_of, rebuilt
from tinyhw.capture.views import base_buffer, binds_in, chain, with_values
from tinyhw.config import JIT
from tinyhw.device import Buffer, Device, Recording
from tinyhw.engine.memory.buffers import Storage, buffer_of, buffers_in, new_buffer, storage_with
from tinyhw.engine.memory.writes import Holder, assign_of, is_own, memory_of, overwrite, rebased, values, viewers
from tinyhw.engine.run import realize as realizing
from tinyhw.engine.run.compile import value_of
from tinyhw.engine.run.faults import FAULTS, boundary, internal
from tinyhw.engine.run.realize import Capture, Step, launch_of
from tinyhw.engine.schedule.multi import SHARD
from tinyhw.errors import JitError, TinyError
from tinyhw.helpers import GlobalCounters
from tinyhw.methods.graph import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.decide import Decisions
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

W = TypeVar("W", bound="Watched")

# ***** patch points *****

class Copy:
  """A copy between devices: target, source."""
  __slots__ = ("buffers",)
  def __init__(self, step: Step): self.buffers = list(step.buffers)
  def submit(self) -> None: self.buffers[0].copy_from(self.buffers[1])

  def put(self, position: int, buffer: Buffer, offset: int) -> None:
    """Use another Buffer at this end. If the captured Buffer was a slice, use the slice of it from a byte on."""
    old = self.buffers[position]
    self.buffers[position] = buffer if buffer.size == old.size else buffer.view(old.size, old.dtype, offset)

class Points:
  """The positions in a recording that hold a Buffer or its address."""
  __slots__ = ("launches", "copies")

  def __init__(self) -> None:
    self.launches: list[tuple[Recording, int, int]] = []
    self.copies: list[tuple[Copy, int, int]] = []

  def put(self, buffer: Buffer) -> None:
    if self.launches:
      opaque = buffer.get_buf()
      for recording, launch, position in self.launches: recording.patch(launch, position, opaque)
    for copy, position, offset in self.copies: copy.put(position, buffer, offset)

class Slot:
  """Storage of the captured call, and the positions in the recording of the Buffers of which it consists."""
  __slots__ = ("buffer", "current", "points")

  def __init__(self, buffer: Storage):
    self.buffer = buffer
    # The storage at the positions; None: unknown, since an interrupt came while it was put there.
    self.current: Storage | None = buffer
    self.points = [Points() for _ in buffers_in(buffer)]

  def put(self, storage: Storage) -> None:
    """Use another storage in place of the captured one."""
    if storage is self.current: return
    self.current = None
    for points, buffer in zip(self.points, buffers_in(storage)): points.put(buffer)
    self.current = storage

class Output(Slot):
  """A result with its own storage. A replay reuses the storage of an earlier result that is no longer visible, else
  takes new storage.

  Tensors see it through its node. Zero-copy memoryviews hold the Buffer itself. content: the contents before the first
  kernel.
  """
  __slots__ = ("node", "content", "last", "storage", "references")

  def __init__(self, node: UOp, content: bytes | None):
    super().__init__(buffer_of(node))
    self.node, self.content = node, content
    self.last, self.storage = node, self.buffer
    self.references = (0, 0)      # the captured call's own result is never used again

  def fresh(self) -> None:
    """Provide storage for the next result. `last` is its node."""
    node, storage = self.references
    if (sys.getrefcount(self.last) > node or sys.getrefcount(self.storage) > storage
        or self.last.storage is not self.storage):
      self.references = (0, 0)
      self.last = new_buffer(self.buffer.device, self.buffer.size, self.buffer.dtype)
      self.storage = buffer_of(self.last)
      self.put(self.storage)
      self.references = sys.getrefcount(self.last), sys.getrefcount(self.storage)
    elif self.current is not self.storage: self.put(self.storage)
    if self.content: _fill(self.storage, self.content)

def _fill(storage: Storage, content: bytes) -> None:
  for buffer in buffers_in(storage): buffer.ensure_allocated().copyin(memoryview(content))

# ***** the leaves of a result *****

class Given:
  """An argument that is returned itself."""
  __slots__ = ("place",)
  def __init__(self, place: int): self.place = place
  def make(self, tensors: list[Tensor], values: dict[str, int]) -> Any: return tensors[self.place]

class ResultView:
  """A Tensor that views an argument's storage, or an output."""
  __slots__ = ("view", "source", "symbolic")
  def __init__(self, view: UOp, source: int | Output):
    self.view, self.source, self.symbolic = view, source, bool(binds_in(view))

  def make(self, tensors: list[Tensor], values: dict[str, int]) -> Any:
    node = base_buffer(tensors[self.source].uop) if isinstance(self.source, int) else self.source.last
    if self.view.op is Ops.BUFFER: return Tensor._holding(node)
    view = with_values(self.view, values) if self.symbolic else self.view
    return Tensor._holding(rebased(view, node))

class Standing:
  """A Tensor that views state. The same object is returned while it exists and still views it, else another one.

  `own` follows the state.
  """
  __slots__ = ("reference", "own")
  def __init__(self, tensor: Tensor): self.reference, self.own = weakref.ref(tensor), Tensor._holding(tensor.uop)

  @classmethod
  def alone(cls, u: UOp) -> Standing:
    """A leaf for state that no Tensor views yet: each call returns the same Tensor."""
    self = cls.__new__(cls)
    self.own = Tensor._holding(u)
    self.reference = weakref.ref(self.own)
    return self

  def make(self, tensors: list[Tensor], values: dict[str, int]) -> Any:
    tensor = self.reference()
    if tensor is not None and tensor.uop is self.own.uop: return tensor
    return Tensor._holding(with_values(self.own.uop, values))

class Expression:
  """A bound Variable, or an expression of some."""
  __slots__ = ("expression",)
  def __init__(self, expression: UOp): self.expression = expression

  def make(self, tensors: list[Tensor], values: dict[str, int]) -> Any:
    new = {b: UOp(Ops.BIND, b.dtype, (b.src[0], b.src[1].const_like(values[b.src[0].expr])))
           for b in self.expression.toposort() if b.op is Ops.BIND and b.src[0].expr in values}
    return self.expression.substitute(new)

_LEAVES = (Given, ResultView, Standing, Expression)

class Watched:
  """Storage that the captured function uses without being given it, and the Tensors that viewed it at the capture."""
  __slots__ = ("buffer", "nodes", "tensors")

  def __init__(self, buffer: Storage):
    self.buffer = buffer
    self.tensors = [weakref.ref(t) for t in viewers(buffer)]
    self.note()

  def note(self) -> None:
    """Record the Tensors' present nodes as valid."""
    self.nodes = [None if (t := reference()) is None else t.uop for reference in self.tensors]

  def check(self, differentiated: bool) -> None:
    """Do a pending ASSIGN, unless a gradient would flow through it.

    Raises JitError if a Tensor is in another buffer now, or no Tensor is left.
    """
    gone = bool(self.tensors)
    for reference, node in zip(self.tensors, self.nodes):
      tensor = reference()
      if tensor is None: continue
      gone = False
      if tensor.uop is not node: self._follow(tensor, differentiated)
    if gone: self.gone(differentiated)

  def gone(self, differentiated: bool) -> None:
    """Handle the case that no Tensor is left."""
    raise JitError(f"the Tensor of {self.buffer.size} elements of {self.buffer.dtype} that the function used when it "
                   f"was captured is gone: its "
                   "name or attribute stands for another one now; change it with assign(), or call reset() to capture "
                   "again")

  def _follow(self, tensor: Holder, differentiated: bool) -> None:
    memory, waits = memory_of(tensor.uop)
    if memory is None or memory.storage is not self.buffer:
      raise JitError(f"a Tensor of shape {graph.show(tensor.uop.shape)} that the function used when it was captured "
                     f"has another buffer now; change "
                     "it with assign(), pass it as an argument, or call reset() to capture again")
    if waits:
      if differentiated: refuse_gradient(assign_of(tensor.uop))
      realizing.realize([assign_of(tensor.uop)])
    self.note()

class Own(Watched):
  """Storage that came with a capture from a pickle. It stays valid when the Tensors that viewed it are gone."""
  __slots__ = ()

  def look(self, differentiated: bool) -> None:
    """Do the pending ASSIGNs, and record the present viewers. There are none, or they were made of Tensors that are
    gone."""
    waiting = [assign_of(tensor.uop) for tensor in viewers(self.buffer) if memory_of(tensor.uop)[1]]
    for u in waiting if differentiated else (): refuse_gradient(u)
    realizing.realize(waiting)
    self.tensors = [weakref.ref(t) for t in viewers(self.buffer)]
    self.note()

  gone = look

class Unseen(Own):
  """Stands for all Own storage before the first call, when its viewers become known."""
  __slots__ = ("captured",)
  def __init__(self, captured: Captured): self.captured = captured

  def note(self) -> None: pass

  def check(self, differentiated: bool) -> None:
    found = self.captured.used_elsewhere(set(), Own)
    for own in found: own.look(differentiated)
    self.captured.watched = list(found)

# ***** the capture *****

class Captured:
  """A captured call: recordings per run of launches on one device, copies between them, slots, and recipes of results.

  given: the argument Tensors. Gradients from before that the call used are inputs, too. asks: does the function ask for
  gradients by itself?
  variables: the values of Variables in the Tensors and arguments. decisions: the call's decisions by them. name: the
  function's name.
  """
  watched: list[Watched]
  # Values that were pending before the call, and that it computed for itself.
  waiting: list[tuple[weakref.ref[Holder], UOp]]

  @boundary
  def __init__(self, capture: Capture, given: list[Tensor], asks: bool, variables: dict[str, int], result: Any,
               decisions: Decisions, name: str = ""):
    self.name, self.decisions = name, decisions
    self.gradients = Gradients(capture, given, asks)
    inputs = given + self.gradients.used
    self.views = [t.uop for t in inputs]
    self.symbolic = [k for k, view in enumerate(self.views) if binds_in(view)]
    self.inputs = [Slot(buffer_of(base_buffer(view))) for view in self.views]
    self.variables = self.given_variables = variables
    self.steps, self.made, self.draws, self.differentiated = (capture.steps, capture.made, capture.draws,
                                                              capture.differentiated)
    self.arenas = {id(b) for b in capture.arenas}
    self.outputs: dict[int, Output] = {}
    self.draw_slots = [None if buffer is None else Slot(buffer) for buffer, _ in self.draws]
    content = {id(b): c for b, c in capture.stored}
    self._plan_result(capture, inputs, result, content)
    self.begin()
    written = {id(storage_with(b)) for s in self.steps for b in s.written}
    self.refills = [(b, c) for b, c in capture.stored if id(b) in written and id(b) not in self.outputs]
    self.watched = self.used_elsewhere({*map(id, self.made), *content}, Watched)
    self.waiting = [(reference, u) for reference, u in capture.before.values() if u in capture.met]

  def begin(self) -> None:
    """Record the steps. The viewers of storage that the call was not given are not known yet."""
    self._record()
    self.lookers: list[tuple[weakref.ref[Holder], UOp]] = []
    self.nodes: list[UOp] = []
    self.counts: list[int] = []     # counts of references to the nodes through which Tensors view the state

  # ***** results *****

  def _plan_result(self, capture: Capture, inputs: list[Tensor], result: Any, content: dict[int, bytes]) -> None:
    """Plan how to make the result, and the gradients that the call leaves.

    Raises JitError for new values that other objects keep.
    """
    places = {id(t): k for k, t in enumerate(inputs)}
    buffers = {id(slot.buffer): k for k, slot in enumerate(self.inputs)}
    made = {id(b) for b in capture.made} | content.keys()
    planned: dict[int, Any] = {}
    keep: list[Any] = []
    def leaf(value: Any) -> Any:
      if id(value) not in planned:
        planned[id(value)] = plan(value)
        keep.append(value)
      return planned[id(value)]
    def plan(value: Any) -> Any:
      if isinstance(value, UOp) and any(u.op is Ops.BIND for u in value.toposort()): return Expression(value)
      if not isinstance(value, Tensor): return value
      if id(value) in places: return Given(places[id(value)])
      node = memory_of(value.uop)[0]
      assert node is not None, f"a result without storage: {value!r}"
      buffer = buffer_of(node)
      if id(buffer) in buffers: return ResultView(value.uop, buffers[id(buffer)])
      if id(buffer) not in made: return Standing(value)
      return ResultView(value.uop, self.outputs.setdefault(id(buffer), Output(node, content.get(id(buffer)))))
    self.result = rebuilt(result, leaf)
    self.gradients.plan(capture, places, planned, leaf, ResultView)
    planned_tensors = set(planned)
    if next(self._kept(capture, planned_tensors, made), None) is None: return
    gc.collect()
    for kept in self._kept(capture, planned_tensors, made):
      raise JitError(f"a Tensor of shape {graph.show(kept.uop.shape)} that the function made is kept by something "
                     f"else than its result (it was put "
                     "into an attribute, a list, or an object that is returned), and replays would not put another "
                     "one there; return it, and keep it "
                     "outside of the function, or assign() to a Tensor that is there already")

  def _kept(self, capture: Capture, planned: set[int], made: set[int]) -> Iterator[Holder]:
    """Yield live Tensors that the call made and that are no part of its result."""
    for buffer in [*capture.made, *[b for b, _ in capture.stored]]:
      for holder in viewers(buffer):
        if id(holder) not in planned: yield holder
    reads = made | {id(slot.buffer) for slot in self.inputs} | {id(b) for b, _ in capture.draws if b is not None}
    for key, (reference, u) in values().items():
      waiting = reference()
      if (key in capture.before or memory_of(u)[0] is not None or waiting is None or id(waiting) in planned
          or not is_own(waiting)):
        continue
      if any(n.op is Ops.BUFFER and id(n.storage) in reads for n in u.toposort()): yield waiting

  def used_elsewhere(self, made: set[int], kind: type[W]) -> list[W]:
    """Return storage that the call was not given and did not make, and that Tensors view."""
    bases = {id(b.base): b.base for s in self.steps for b in s.buffers if id(b.base) in self.internal}
    used = {id(found): found for b in bases.values() if id(found := storage_with(b)) not in made}
    return [watched for b in used.values() if (watched := kind(b)).tensors]

  # ***** recording *****

  def _record(self) -> None:
    self.parts: list[Recording | Copy] = []
    self.part_steps: list[list[Step]] = []    # the steps of each part
    self.variable_patches: list[tuple[Recording, int, int, str]] = []
    self.number_patches: list[tuple[Recording, int, int, UOp]] = []    # numbers that the host computes from Variables
    self.grid_patches: list[tuple[Recording, int, Any]] = []
    self.kernels = len(self.steps)
    slots = [*self.inputs, *self.outputs.values(), *[slot for slot in self.draw_slots if slot is not None]]
    self.points = {id(b): (b, points) for slot in slots for b, points in zip(buffers_in(slot.buffer), slot.points)}
    self._read_variables()
    group: list[Step] = []
    for step in [*self.steps, None]:
      if group and (step is None or step.runner is None or JIT >= 2
                    or step.runner.device != group[0].runner.device):  # type: ignore[union-attr]
        self._record_group(group)
        group = []
      if step is None: break
      if step.runner is None: self._record_copy(step)
      else: group.append(step)
    inputs = {id(b.base) for slot in self.inputs for b in buffers_in(slot.buffer)}
    fresh = {id(b) for output in self.outputs.values() for b in buffers_in(output.buffer)}
    homes = [b.base for s in self.steps for b in s.written if b.base is b or s.runner is None
             and id(b.base) not in self.arenas]
    written = {id(storage): storage for b in homes if id(b) not in fresh and (storage := storage_with(b)) is not None}
    self.written_inputs = [k for k, slot in enumerate(self.inputs) if id(slot.buffer) in written]
    self.state = [b for b in written.values() if id(buffers_in(b)[0]) not in inputs]
    self.writes = bool(self.state or self.written_inputs)
    # the steps keep these buffers alive
    self.internal = {id(b.base) for s in self.steps for b in s.buffers} - inputs - fresh

  def _read_variables(self) -> None:
    """Record the values of all Variables, including those that the function binds.

    Raises JitError if one has two values.
    """
    bound = [pair for s in self.steps if s.runner is not None for pair in _bound_in(s) if pair[0] != SHARD]
    self.fixed = dict(bound)
    for name, value in bound:
      if value == self.variables.get(name, self.fixed[name]): continue
      raise JitError(f"the function binds {name} to {value} and to {self.variables.get(name, self.fixed[name])}, "
                     f"and replays would not know which one to change; use Variables of two names")
    for name in self.variables: self.fixed.pop(name, None)

  def _record_copy(self, step: Step) -> None:
    copy = Copy(step)
    self.parts.append(copy)
    self.part_steps.append([step])
    for position, b in enumerate(step.buffers):
      found = [self.points[id(b)]] if id(b) in self.points else [(whole, p) for whole, p in self.points.values()
                                                                 if is_inside(whole, b)]
      for whole, points in found[:1]: points.copies.append((copy, position, b.offset - whole.offset))

  def _record_group(self, group: list[Step]) -> None:
    launches = [launch_of(s, s.runner) for s in group if s.runner is not None]
    recording = Device[group[0].runner.device].record(launches)  # type: ignore[union-attr]
    self.parts.append(recording)
    self.part_steps.append(group)
    for n, s in enumerate(group):
      assert s.runner is not None
      for position, b in enumerate(s.buffers):
        if id(b) in self.points: self.points[id(b)][1].launches.append((recording, n, position))
      for k, name in enumerate(s.runner.variables):
        if isinstance(name, UOp): self.number_patches.append((recording, n, len(s.buffers) + k, name))
        elif name in self.variables: self.variable_patches.append((recording, n, len(s.buffers) + k, name))
      if isinstance(s.runner.grid, UOp): self.grid_patches.append((recording, n, s.runner.grid))

  # ***** replaying *****

  def replay(self, tensors: list[Tensor], variables: dict[str, int]) -> Any:
    """Run the capture on other inputs. A patch point is written only if its content changes.

    The caller holds the engine's lock: a recording is one object, and no other thread may write its operands.
    """
    try: return self._replay(tensors, [u.storage or buffer_of(base_buffer(u)) for t in tensors for u in (t.uop,)],
                             variables)
    except TinyError: raise
    except FAULTS as error: raise internal(error) from error    # as `boundary` does, 0.1 us faster

  def _replay(self, tensors: list[Tensor], buffers: list[Storage], variables: dict[str, int]) -> Any:
    for watched in self.watched: watched.check(self.differentiated)
    for slot, buffer in zip(self.inputs, buffers):
      if slot.current is not buffer:
        self._put_inputs(buffers)
        break
    if variables != self.variables: self._set_variables(variables)
    written = [] if not self.writes or self._unseen() else self.state + [buffers[k] for k in self.written_inputs]
    if written: realizing.realize([], written)      # values that need the old contents
    if self.gradients.left: self.gradients.release(tensors)
    for (_, next_draw), draw in zip(self.draws, self.draw_slots):
      drawn = next_draw()
      if draw is not None and drawn is not None: draw.put(drawn)
    for b, content in self.refills: _fill(b, content)
    for output in self.outputs.values(): output.fresh()
    try:
      if trace.recorder is None or not trace.recorder.times():
        for part in self.parts: part.submit()
      else: self._submit_timed(trace.recorder)
    finally:
      if written:
        overwrite(written)
        for watched in self.watched: watched.note()
        self._remember()
    GlobalCounters.kernel_count += self.kernels
    result = self.result
    if type(result) is ResultView and not self.gradients.left: return result.make(tensors, variables)
    made: dict[int, Any] = {}
    def leaf(value: Any) -> Any:
      if not isinstance(value, _LEAVES): return value
      if id(value) not in made: made[id(value)] = value.make(tensors, variables)
      return made[id(value)]
    result = rebuilt(result, leaf)
    self.gradients.leave(tensors, made, leaf)
    return result

  def _submit_timed(self, recorder: trace.Recorder) -> None:
    """Submit launch by launch, if the device can, so that the recorder gets the time of each."""
    first = time.perf_counter_ns()
    for part, steps in zip(self.parts, self.part_steps):
      start = time.perf_counter_ns()
      if hasattr(part, "submit_timed"):
        for step, (begin, end) in zip(steps, part.submit_timed()): recorder.launched(step, begin, end)
      else:
        part.submit()
        recorder.together(steps, start, time.perf_counter_ns())
    recorder.replayed(self.name, self.kernels, first)

  def _remember(self) -> None:
    """Record the present viewers of the state, now that its nodes are new."""
    self.lookers = [(weakref.ref(t), t.uop) for b in self.state for t in viewers(b)]
    self.nodes = list(dict.fromkeys(node for _, u in self.lookers for node in chain(u)))
    self.counts = _references(self.nodes)

  def _unseen(self) -> bool:
    """Do the same Tensors view the state as after the last replay, and has nothing been expressed with it?

    Then its nodes may stay.
    """
    if not self.lookers or self.written_inputs: return False
    for reference, u in self.lookers:
      tensor = reference()
      if tensor is None or tensor.uop is not u: return False
    del u
    return self.counts == _references(self.nodes)

  def _put_inputs(self, buffers: list[Storage]) -> None:
    """Put other inputs into their slots."""
    bases = [(k, id(b.base)) for k, storage in enumerate(buffers) for b in buffers_in(storage)]
    count = Counter(base for _, base in bases)
    for k, base in bases:
      if base not in self.internal and count[base] == 1: continue
      raise JitError(f"argument {k} shares a buffer with another argument, or with a Tensor that the function uses "
                     f"itself, "
                     "which it did not when it was captured; pass a copy, with .clone()")
    for slot, buffer in zip(self.inputs, buffers): slot.put(buffer)

  def _set_variables(self, variables: dict[str, int]) -> None:
    if self.fixed and variables != self.given_variables:
      name = next(iter(self.fixed))
      raise JitError(f"the function binds {name} to {self.fixed[name]} itself, which may depend on the Variables that "
                     f"it was given, and these have "
                     f"changed; bind {name} outside of the function, and pass it")
    self.variables = {}       # unknown until all are set
    for recording, launch, position, name in self.variable_patches: recording.patch(launch, position, variables[name])
    everything = {**self.fixed, **variables}
    expressions = {u for *_, u in self.grid_patches} | {u for *_, u in self.number_patches}
    found = {u: value_of(u, everything) for u in expressions}
    for recording, launch, position, number in self.number_patches: recording.patch(launch, position, found[number])
    for recording, launch, grid in self.grid_patches: recording.patch_grid(launch, found[grid])
    self.variables = dict(variables)

def _bound_in(step: Step) -> Iterator[tuple[str, int]]:
  """Yield the names and values of the Variables with which a kernel is launched."""
  assert step.runner is not None
  for wanted, value in zip(step.runner.variables, step.variables):
    if isinstance(wanted, str): yield wanted, value
    elif step.source is not None:    # always so in a capture
      for v in wanted.variables(): yield v.arg[0], step.source.variables[v.arg[0]]

def is_inside(whole: Buffer, part: Buffer) -> bool:
  """Is a Buffer a slice of another one?"""
  return (part.base is whole.base and whole.offset <= part.offset and part.offset + part.nbytes <= whole.offset
          + whole.nbytes)

def _references(nodes: list[UOp]) -> list[int]: return [sys.getrefcount(u) for u in nodes]

def check_result(result: Any) -> None:
  """Raise JitError for a part of a result that a replay cannot make again, such as an iterator."""
  for leaf in leaves_of(result):
    if hasattr(leaf, "__next__"):
      raise JitError(f"the function returns {type(leaf)}, which can be read once; return a list, or a tuple, of what "
                     f"it gives")
