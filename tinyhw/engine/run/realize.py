"""Run schedules: give every buffer its storage, launch the kernels, and mark what is computed.

`realize(nodes)` is what Tensor.realize calls. Afterwards `node.realized` is a BUFFER or a RESHAPE of one, and other
graphs that contain the node read that buffer. A captured run (jit.py) is the list of `Step`s that `run` made.
"""
from __future__ import annotations
import time
from typing import Any
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from tinyhw import trace
from tinyhw.config import DEBUG, PROFILE, VIZ, of_variables
from tinyhw.data_class import replace
from tinyhw.device import Buffer, Device, DeviceLike, Launch
from tinyhw.dtype import dtypes
from tinyhw.engine.memory import cuts, writes
from tinyhw.engine.memory.buffers import Storage, buffer_of, buffers_in, multi, new_buffer, new_storage
from tinyhw.engine.memory.held import held_outside
from tinyhw.engine.run.compile import BoundRunner, Runner, value_of, values_of
from tinyhw.engine.run.faults import FAULTS, boundary, internal
from tinyhw.engine.run.prepared import found_parts as found_parts, places_of, run_prepared
from tinyhw.engine.schedule.lower import Kernel
from tinyhw.engine.schedule.multi import SHARD
from tinyhw.engine.schedule.numbers import counterparts
from tinyhw.engine.schedule.schedule import (
  DROPPED, IN_MEMORY, TRANSFER, Canonical, Schedule, canonicalize, schedule, schedule_of_any_numbers, strip)
from tinyhw.engine.thread import this_thread as this_thread
from tinyhw.errors import SymbolicError, TinyError
from tinyhw.helpers import GlobalCounters, uncollected
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import alone, lock
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, to_indices

class Source(NamedTuple):
  """The parts of a captured launch, from which another process makes it again: an uncompiled kernel, its buffers, its
  variables."""
  device: str
  sink: UOp
  buffers: tuple[Buffer, ...]
  variables: dict[str, int]

class Step(NamedTuple):
  """One kernel or copy of a run. If `runner` is None, it copies buffers[1] to buffers[0].

  line: the source line of its operation. source: the parts of a launch, while a TinyJit captures.
  """
  runner: Runner | None
  buffers: tuple[Buffer, ...]
  variables: tuple[int, ...]
  grid: int
  line: trace.Location | None = None
  source: Source | None = None

  @property
  def written(self) -> tuple[Buffer, ...]:
    return self.buffers[:1] if self.runner is None else tuple(self.buffers[k] for k in self.runner.written)

class Capture:
  """The record of a run that a TinyJit captures: steps in order, the buffers that were made for results, and data that
  was copied from the host. For random numbers it has a buffer that kernels read and a function that makes the buffer of
  the next call. Without a buffer, the function sets the seed.

  grads: gradients from before the capture, by the identity of their tensors. outside: a function that selects nodes of
  a graph. They are the values of Tensors that the function was not given. They are computed once, outside of the
  capture. unwatched: `with` this, the calls of the engine's own functions are not recorded, which makes them faster.
  """
  def __init__(self, grads: dict[int, object] | None = None,
               outside: Callable[[dict[UOp, UOp]], list[UOp]] = lambda nodes: [],
               unwatched: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
    self.grads = grads or {}
    self.outside = outside
    self.unwatched = unwatched
    self.draws: list[tuple[Buffer | None, Callable[[], Buffer | None]]] = []
    self.graded: list[writes.Reference] = []    # tensors that got their first gradient
    self.added: set[int] = set()    # ids of tensors to whose earlier gradient backward() added
    self.differentiated = False     # was a gradient taken?
    self.steps: list[Step] = []
    self.made: list[Storage] = []
    self.stored: list[tuple[Storage, bytes]] = []
    self.arenas: list[Buffer] = []
    self.computed: set[UOp] = set()
    self.given: set[UOp] = set()    # nodes that were computed outside
    self.assigns: set[UOp] = set()  # writes of the function; others are earlier, or of other threads
    self.before = writes.values()   # pending values of before, which no replay computes again
    self.waiting = {u for _, u in self.before.values() if writes.memory_of(u)[0] is None}
    self.met: set[UOp] = set()      # pending values that the function computed

  def had(self, reference: writes.Reference, holder: writes.Holder) -> bool:
    """Was this tensor pending before the capture began, and is it still?"""
    return self.before.get(id(reference), (None, None))[1] is holder.uop

class Again:
  """A graph that is scheduled once and run many times, on other storage each time. A step of a loop takes 10 us a
  kernel.

  root: the graph, without ASSIGNs. given: BUFFERs below it. Each call replaces them by others of the same size, type
  and device.
  """
  @boundary
  def __init__(self, root: UOp, given: Sequence[UOp]):
    self.root = root
    with lock: self.canonical, self.made = uncollected(self._scheduled)
    self.places = [self.canonical.inputs.index(buffer) for buffer in given]

  def _scheduled(self) -> tuple[Canonical, Schedule]:
    canonical = canonicalize([self.root], known)
    assert not canonical.assigns, "a graph that writes is not the same a second time"
    return canonical, schedule(canonical)

  @boundary
  def __call__(self, *given: UOp) -> UOp:
    """Return the storage of the result on the given BUFFERs."""
    inputs = list(self.canonical.inputs)
    for place, buffer in zip(self.places, given, strict=True): inputs[place] = buffer
    with lock: held = run(self.made, replace(self.canonical, inputs=inputs))[0][0]
    assert held is not None
    return _shaped(held, self.root)

def realize(nodes: list[UOp], overwritten: Sequence[Storage] | None = None) -> None:
  """Compute the nodes. On an error of compilation or a device, nothing is marked as realized.

  overwritten: storage that will be written by other means. Values that need its contents are computed, too.

  Graphs have no reference cycles, so scheduling runs without garbage collection, as compile_kernel does.
  """
  with lock: compute(nodes, overwritten)

def compute(nodes: list[UOp], overwritten: Sequence[Storage] | None = None) -> None:
  """As `realize`, for a caller that holds the lock: taking it costs 0.3 us each time."""
  try:
    if this_thread.capture is None: return _compute(nodes, overwritten)
    with this_thread.capture.unwatched(): _compute(nodes, overwritten)
  except TinyError: raise
  except FAULTS as error: raise internal(error) from error    # as `boundary` does, 0.3 us faster

def _compute(nodes: list[UOp], overwritten: Sequence[Storage] | None) -> None:
  todo = [u for u in nodes if (u.realized is None or known(u) is None) and not is_buffer(u)]
  if trace.recorder is None and watched()[0]: trace.start_recorder()
  if not todo and not (overwritten and writes.outdated({id(b) for b in overwritten}, {})): return
  canonical, kept, made = uncollected(_planned, todo, overwritten)
  if made is None:
    assert kept is not None
    return kept.finish()
  inner = held_inside_of(made, canonical) if made.inner else {}
  results, held_inside = run(made, canonical, kept, inner.values())
  for u, held in zip(todo, results): _mark(u, held)
  if inner:
    for u, c in inner.items(): u.realized = _shaped(held_inside[c], u)
  if this_thread.capture is not None: this_thread.capture.computed.update(todo, inner)
  if kept is not None: kept.finish()

@of_variables
def watched() -> tuple[bool, bool]:
  """Are runs recorded (PROFILE, VIZ), and launched one by one to be timed (DEBUG >= 2)?"""
  return bool(VIZ or PROFILE), DEBUG >= 2

def _planned(todo: list[UOp], overwritten: Sequence[Storage] | None
             ) -> tuple[Canonical, PreservedValues | None, Schedule | None]:
  """Return the schedule of the nodes and of values that would be lost; None if there is nothing to do."""
  canonical = canonicalize(todo, known)
  if this_thread.capture is not None: canonical = _with_outside(this_thread.capture, todo, canonical)
  kept = PreservedValues(todo, canonical, overwritten or ()) if canonical.assigns or overwritten else None
  if not todo: return canonical, kept, None
  # a TinyJit compares the numbers of its first two calls
  if this_thread.kernels is not None: return canonical, kept, schedule(canonical)
  canonical, made = schedule_of_any_numbers(canonical)
  return canonical, kept, made

@boundary
@alone
def prepare(nodes: list[UOp]) -> None:
  """Schedule nodes and compile their kernels, without running anything."""
  todo = [u for u in nodes if (u.realized is None or known(u) is None) and not is_buffer(u)]
  if not todo: return
  for on, kernels in uncollected(lambda: schedule_of_any_numbers(canonicalize(todo, known)))[1].by_device:
    if on == TRANSFER: continue
    for device in (on or Device.DEFAULT,) if on is None or isinstance(on, str) else on:
      found_parts(device, [k.sink for k in kernels])

def _with_outside(capture: Capture, todo: list[UOp], canonical: Canonical) -> Canonical:
  """Compute two things first, outside of the capture: values of Tensors from outside of the captured function, and
  writes that are not the function's."""
  outside = [u for u in canonical.assigns.values() if u not in capture.assigns and u.realized is None]
  outside += [u for u in capture.outside(canonical.new) if u not in capture.given]
  if outside:
    capture.given.update(outside)
    this_thread.capture = None
    try: realize(outside)
    finally: this_thread.capture = capture
    canonical = canonicalize(todo, known)
  capture.met.update(canonical.new.keys() & capture.waiting - capture.given)
  return canonical

class PreservedValues:
  """Adds to a schedule the values that its writes would spoil, until no live value needs an overwritten state.

  Values from before a capture are computed first, in a schedule of their own, so that replays leave them alone.
  """
  def __init__(self, todo: list[UOp], canonical: Canonical, others: Iterable[Storage] = ()):
    self.todo, self.canonical = todo, canonical
    self.held: dict[int, tuple[writes.Holder, UOp]] = {}  # by id: the holder, and the node whose storage it will hold
    self.nodes: set[UOp] = set()
    while True:
      self.write = writes.Write(canonical.assigns.values(), others)
      found = [(reference, holder) for reference, holder in self.write.outdated() if id(holder) not in self.held]
      if not found: break
      capture = this_thread.capture
      earlier = [] if capture is None else [holder for reference, holder in found if capture.had(reference, holder)]
      if earlier: self._compute_first(earlier)
      writes_before = len(canonical.assigns)
      for _, holder in found:
        if id(holder) not in self.held: self._add(holder)
      if len(canonical.assigns) == writes_before and not earlier: break    # the same writes outdate the same values

  def _node(self, holder: writes.Holder) -> UOp:
    """Return the node to compute for a tensor: an ASSIGN, or its own node. It is a copy if the storage would be shared
    with another tensor, or is written."""
    u = holder.uop
    if writes.memory_of(u)[0] is not None: return writes.assign_of(u)
    inner = u
    while inner.realized is None and (inner.op is Ops.RESHAPE or inner.op in DROPPED): inner = inner.src[0]
    if u in self.nodes: return writes.unique(u)
    if inner.realized is not None:
      buffer = buffer_of(writes.base_of(inner.realized))
      if id(buffer) in self.write.buffers or inner is u and writes.viewers(buffer): return writes.unique(u)
    self.nodes.add(u)
    return u

  def _add(self, holder: writes.Holder) -> None:
    node = self._node(holder)
    self.held[id(holder)] = holder, node
    if node in self.todo or known(node) is not None or node.op is Ops.ASSIGN and node in self.canonical.new: return
    self.todo.append(node)
    canonicalize([node], known, self.canonical)

  def _compute_first(self, holders: list[writes.Holder]) -> None:
    """Compute tensors in a schedule of their own, outside of any capture."""
    nodes = [self._node(holder) for holder in holders]
    capture, this_thread.capture = this_thread.capture, None
    try: realize(nodes)
    finally: this_thread.capture = capture
    for holder, node in zip(holders, nodes):
      self.held[id(holder)] = holder, node
      assert node.realized is not None
      holder.hold(node.realized)

  def finish(self) -> None:
    """After the run, give the tensors their computed storage, and retire the overwritten states."""
    held = [(holder, node.realized) for holder, node in self.held.values() if node.op is not Ops.ASSIGN
            and node.realized is not None]
    if held: cuts.note([(writes.base_of(storage), holder.uop) for holder, storage in held])
    for holder, storage in held:
      holder.hold(storage)
      writes.lost.add(writes.base_of(storage))
    self.write.finish(cuts.note_writes)

_WHOLE = frozenset({Ops.RESHAPE, Ops.MULTI})

def known(u: UOp) -> UOp | None:
  """Return the storage that holds u's value.

  A capture relies only on values that it computed itself: a replay has to compute the rest again. A node without a
  device (of Variables alone) is computed for each use, which may be on another device.
  """
  held = u.realized
  if held is None: return None
  if u.op is Ops.ASSIGN: return held
  if u.device is None: return None
  capture = this_thread.capture
  if capture is not None and u not in capture.computed and u not in capture.given or writes.is_retired(held):
    return None
  return held

def is_buffer(u: UOp) -> bool:
  """Is u storage already: a BUFFER, or a whole BUFFER in another shape?"""
  while u.op in _WHOLE and u.realized is None: u = u.src[0]
  return u.op is Ops.BUFFER

def _mark(u: UOp, held: UOp | None) -> None:
  """Mark u as computed into this storage. None means an ASSIGN, which Write.finish handles."""
  if held is not None: u.realized = _shaped(held, u)

def _shaped(held: UOp, u: UOp) -> UOp:
  return held if held.shape == u.shape else UOp(Ops.RESHAPE, u.dtype, (held,) + to_indices(u.shape))

def held_inside_of(made: Schedule, canonical: Canonical) -> dict[UOp, UOp]:
  """Return the nodes that are held by the program and get a temporary buffer in a schedule, and their nodes in it."""
  later = counterparts(canonical.constant_roots, canonical.roots)
  found = {u: c for u, plain in canonical.new.items()
           if (c := later.get(plain, plain)) in made.inner and u is not c and u.realized is None}
  return {u: found[u] for u in held_outside(canonical.new, found)}

def run(made: Schedule, canonical: Canonical, kept: PreservedValues | None = None,
        inner: Collection[UOp] = ()) -> tuple[list[UOp | None], dict[UOp, UOp]]:
  """Run a schedule. Return the BUFFER node of each root, None for an ASSIGN. Roots that became equal get copies: each
  has its own. inner: further nodes of the schedule that outlive it. Return their BUFFER nodes, too.

  After an interrupt the writes of `kept` count as done. Reading values that were to be computed first raises an error.
  """
  plan = made.plan_keeping(frozenset([made.inner[u] for u in inner])) if inner else made.plan
  if this_thread.kernels is not None:
    this_thread.kernels.extend(k.sink for _, kernels in made.by_device for k in kernels)
  if (this_thread.capture is None and trace.recorder is None and not watched()[1]
      and (places := places_of(made, plan, canonical)) is not None):
    try: kept_nodes = run_prepared(places, canonical)
    except BaseException:
      if kept is not None: kept.finish()
      raise
    return ([None if k is None else kept_nodes[k] for k in places.roots],
            {u: kept_nodes[plan.kept.index(made.inner[u])] for u in inner})
  results = {b: new_buffer(b.arg[1], b.arg[2], b.dtype) for b in plan.kept}
  arenas = {device: new_storage(device or Device.DEFAULT, size, dtypes.uint8)
            for device, size in plan.arena_bytes.items()}
  storage: dict[UOp, Storage] = {b: buffer_of(node) for b, node in results.items()}
  for b, offset in plan.offsets.items():
    storage[b] = arenas[b.arg[1]].view(b.arg[2], b.dtype, offset)
  steps = [step for devices, kernels in made.by_device
           for step in _steps(devices or Device.DEFAULT, kernels, storage, canonical)]
  held: list[UOp | None] = []
  given: set[UOp] = set()
  for root in map(strip, canonical.roots):
    if root.op is Ops.ASSIGN: held.append(None)
    elif root.op in IN_MEMORY:
      buffer = writes.base_of(root)
      held.append(root.substitute({buffer: canonical.inputs[buffer.arg[0][1]]}))
    else:
      node = results[made.storage[root]]
      if node in given:
        copy = new_buffer(node.arg[1], node.arg[2], node.dtype)
        steps.extend(Step(None, pair, (), 0) for pair in zip(buffers_in(buffer_of(copy)), buffers_in(buffer_of(node))))
        results[copy] = node = copy
      given.add(node)
      local = made.local.get(root)
      held.append(node if local is None else multi(node, local.node.shape, local.axis))
  try: execute(steps)
  except BaseException:
    if kept is not None: kept.finish()
    raise
  capture = this_thread.capture
  if capture is not None:
    capture.steps.extend(steps)
    capture.made.extend(buffer_of(node) for node in results.values())
    capture.arenas.extend(b for arena in arenas.values() for b in buffers_in(arena))
  return held, {u: made.placed(u, results[made.inner[u]]) for u in inner}

def _steps(devices: DeviceLike, kernels: list[Kernel], storage: dict[UOp, Storage], canonical: Canonical) -> list[Step]:
  """Return the steps of kernels that run on the same devices: all steps of the first device, then all of the next."""
  used: list[tuple[Any, ...]] = [tuple([storage[b] if b in storage else buffer_of(canonical.inputs[b.arg[0][1]])
                                        for b in k.buffers])
                                 for k in kernels]
  if devices == TRANSFER:
    return [Step(None, pair, (), 0, k.line) for k, (to, source) in zip(kernels, used)
            for pair in copies(k.sink.arg, to, source)]
  if isinstance(devices, str): return _launches(devices, kernels, used, canonical.variables)
  return [s for i, device in enumerate(devices)
          for s in _launches(device, kernels, [tuple([b.bufs[i] for b in bufs]) for bufs in used],
                             {**canonical.variables, SHARD: i})]

def _launches(device: str, kernels: Sequence[Kernel], used: Sequence[tuple[Buffer, ...]],
              variables: dict[str, int]) -> list[Step]:
  """Return the steps of kernels on one device. used: the buffers of each."""
  found = found_parts(device, [kernel.sink for kernel in kernels])
  if trace.recorder is not None:
    for kernel, launched in zip(kernels, found): trace.recorder.ran(kernel.sink, [part.runner for part in launched])
  if this_thread.capture is None:
    return [step_of(part, buffers, variables, kernel.line) for kernel, launched, buffers in zip(kernels, found, used)
            for part in launched]
  sources = [Source(device, kernel.sink, buffers, variables) for kernel, buffers in zip(kernels, used)]
  return [step_of(part, s.buffers, variables, kernel.line, s) for kernel, launched, s in zip(kernels, found, sources)
          for part in launched]

def step_of(part: BoundRunner, buffers: tuple[Buffer, ...], variables: dict[str, int],
            line: trace.Location | None = None, source: Source | None = None) -> Step:
  found = part.runner
  if len(found.slots) != len(buffers): buffers = tuple([buffers[slot] for slot in found.slots])
  try: values = tuple(values_of(found.variables, variables)) + part.fixed
  except KeyError as error:
    raise SymbolicError(f"the variable {error} has no value; bind it: variable.bind(3)") from None
  return Step(found, buffers, values, value_of(found.grid, variables) if isinstance(found.grid, UOp) else found.grid,
              line, source)

def launch_of(step: Step, runner: Runner) -> Launch:
  """Return the Launch for a Step that runs a kernel."""
  return Launch(runner.program, [b.get_buf() for b in step.buffers], step.variables, step.grid, runner.small,
                runner.written, step.line)

def copies(how: str | None, to: Storage, source: Storage) -> list[tuple[Buffer, Buffer]]:
  """Return a COPY as pairs of Buffers (to, from): docs/design/uop.md."""
  targets, sources = buffers_in(to), buffers_in(source)
  if how == "stack": return [(_slice(t, i, s.size), s) for t in targets for i, s in enumerate(sources)]
  if how == "split": return [(t, _slice(sources[0], i, t.size)) for i, t in enumerate(targets)]
  if how == "swap":
    size = to.size // len(targets)
    return [(_slice(t, i, size), _slice(s, k, size)) for k, t in enumerate(targets) for i, s in enumerate(sources)]
  near = {s.device: s for s in sources}
  return [(t, near.get(t.device, sources[0])) for t in targets]

def _slice(buffer: Buffer, i: int, size: int) -> Buffer:
  return buffer.view(size, buffer.dtype, i * size * buffer.dtype.itemsize)

def execute(steps: list[Step]) -> None:
  """Run steps in order. Adjacent steps of one device are submitted together, or one by one if DEBUG or the recorder
  wants times."""
  batch: list[Launch] = []
  device = ""
  timed = watched()[1] or trace.recorder is not None and trace.recorder.times()
  for step in steps:
    if step.runner is None or step.runner.device != device or timed:
      if batch: Device[device].submit(batch)
      batch = []
    if step.runner is None: _copy(step)
    else:
      device = step.runner.device
      batch.append(launch_of(step, step.runner))
      if timed: batch = _timed(step, batch)
    GlobalCounters.kernel_count += 1
  if batch: Device[device].submit(batch)

def _copy(step: Step) -> None:
  start = time.perf_counter_ns()
  step.buffers[0].copy_from(step.buffers[1].ensure_allocated())   # memory of empty() is not allocated yet
  if DEBUG < 2 and trace.recorder is None: return
  Device[step.buffers[0].device].synchronize()
  end = time.perf_counter_ns()
  if trace.recorder is not None: trace.recorder.launched(step, start, end)
  if DEBUG < 2: return
  from tinyhw.engine.run.show import show_copy  # hidden: it loads half of codegen
  show_copy(step.buffers[0], step.buffers[1], (end - start) * 1e-9)

def _timed(step: Step, batch: list[Launch]) -> list[Launch]:
  """Run one launch, and return its duration. The CPU device returns from it when it is done."""
  assert step.runner is not None
  opened = Device[step.runner.device]
  (start, end), = opened.submit_timed(batch)
  if trace.recorder is not None: trace.recorder.launched(step, start, end)
  if DEBUG >= 2:
    from tinyhw.engine.run.show import show_launch  # hidden: it loads half of codegen
    show_launch(step, (end - start) * 1e-9)
  return []
