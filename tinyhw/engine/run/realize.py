"""Run schedules: give every buffer its storage, launch the kernels, and mark what is computed.

`realize(nodes)` is what Tensor.realize calls. Afterwards `node.realized` is a BUFFER or a RESHAPE of one, and other
graphs that contain the node read that buffer. A captured run (jit.py) is the list of `Step`s that `run` made.
"""
from __future__ import annotations
import time
from dataclasses import replace
from typing import Any
from collections.abc import Callable, Iterable, Sequence

from tinyhw import trace
from tinyhw.config import BEAM, DEBUG, PROFILE, VIZ
from tinyhw.device import Buffer, Device, DeviceLike, Launch
from tinyhw.dtype import dtypes
from tinyhw.engine.memory import cuts, writes
from tinyhw.engine.memory.buffers import Storage, buffer_of, buffers_in, multi, new_buffer, new_storage
from tinyhw.engine.run.compile import Part, Runner, parts, value_of
from tinyhw.engine.run.faults import boundary
from tinyhw.engine.schedule.lower import Kernel
from tinyhw.engine.schedule.multi import SHARD
from tinyhw.engine.schedule.schedule import (
  COPIES, DROPPED, IN_MEMORY, Canonical, Schedule, canonicalize, schedule, schedule_of_any_numbers, strip)
from tinyhw.engine.thread import this_thread as this_thread
from tinyhw.errors import SymbolicError
from tinyhw.helpers import GlobalCounters, uncollected
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import alone, lock
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, to_indices

class Source(NamedTuple):
  """What a captured launch is made of, for who makes it again in another process: a kernel that is not compiled, its
  buffers, its variables."""
  device: str
  sink: UOp
  buffers: tuple[Buffer, ...]
  variables: dict[str, int]

class Step(NamedTuple):
  """One kernel or copy of a run: `runner` None means that buffers[1] is copied to buffers[0]. line: where its operation
  is written. source: of a launch while a TinyJit captures."""
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
  """What runs while a TinyJit captures: steps in order, the buffers that were made for results, data that was copied
  from the host, and what is done
  with random numbers: a buffer that kernels read, and what makes the one for the next call; or no buffer, and what sets
  the seed.

  grads: the gradients that there were before, by the identity of their tensors. outside: of the nodes of a graph, those
  that Tensors which the function was not given stand for: they are computed once, outside of the capture.
  """
  def __init__(self, grads: dict[int, object] | None = None,
               outside: Callable[[dict[UOp, UOp]], list[UOp]] = lambda nodes: []) -> None:
    self.grads = grads or {}
    self.outside = outside
    self.draws: list[tuple[Buffer | None, Callable[[], Buffer | None]]] = []
    self.graded: list[writes.Reference] = []    # tensors that had no gradient before, and got one
    self.added: set[int] = set()    # tensors, by identity, that had one, to which backward() added
    self.differentiated = False     # was a gradient taken?
    self.steps: list[Step] = []
    self.made: list[Storage] = []
    self.stored: list[tuple[Storage, bytes]] = []
    self.arenas: list[Buffer] = []
    self.computed: set[UOp] = set()
    self.given: set[UOp] = set()    # nodes that were computed outside
    self.assigns: set[UOp] = set()  # what the function writes: other ASSIGNs are of before, or of other threads
    self.before = writes.values()   # what was to be computed before: no replay computes it again
    self.waiting = {u for _, u in self.before.values() if writes.memory_of(u)[0] is None}
    self.met: set[UOp] = set()      # of these, what the function computed all the same

  def had(self, reference: writes.Reference, holder: writes.Holder) -> bool:
    """Was this tensor to be computed before the capture began, as it still is?"""
    return self.before.get(id(reference), (None, None))[1] is holder.uop

class Again:
  """A graph that is scheduled once and run as often as is wanted, on other storage each time: a step of a loop, at 10
  us a kernel.

  root: the graph, without ASSIGNs. given: BUFFERs below it, in whose place each call has others of the same size, type
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
    """The storage of the result on the given BUFFERs."""
    inputs = list(self.canonical.inputs)
    for place, buffer in zip(self.places, given, strict=True): inputs[place] = buffer
    with lock: held = run(self.made, replace(self.canonical, inputs=inputs))[0]
    assert held is not None
    return _shaped(held, self.root)

def realize(nodes: list[UOp], overwritten: Sequence[Storage] | None = None) -> None:
  """Compute the nodes. Raises what compilation and devices raise; nothing is marked as realized then.

  overwritten: storage that will be written by other means; values that want their contents are computed, too.

  Graphs have no cycles to find, so scheduling is spared the collections, as compile_kernel is.
  """
  with lock: compute(nodes, overwritten)

@boundary
def compute(nodes: list[UOp], overwritten: Sequence[Storage] | None = None) -> None:
  """The same, where the caller holds the lock already: to take it costs 0.3 us each time."""
  todo = [u for u in nodes if known(u) is None and not is_buffer(u)]
  if trace.recorder is None and (VIZ or PROFILE): trace.start_recorder()
  if not todo and not (overwritten and writes.outdated({id(b) for b in overwritten}, {})): return
  canonical, kept, made = uncollected(_planned, todo, overwritten)
  if made is None:
    assert kept is not None
    return kept.finish()
  results = run(made, canonical, kept)
  for u, held in zip(todo, results): _mark(u, held)
  if this_thread.capture is not None: this_thread.capture.computed.update(todo)
  if kept is not None: kept.finish()

def _planned(todo: list[UOp], overwritten: Sequence[Storage] | None) -> tuple[Canonical, Kept | None, Schedule | None]:
  """What computes the nodes, to which values are added that would be lost: no schedule where there is nothing to do."""
  canonical = canonicalize(todo, known)
  if this_thread.capture is not None: canonical = _with_outside(this_thread.capture, todo, canonical)
  kept = Kept(todo, canonical, overwritten or ()) if canonical.assigns or overwritten else None
  if not todo: return canonical, kept, None
  # a TinyJit compares the numbers of its first two calls
  if this_thread.kernels is not None: return canonical, kept, schedule(canonical)
  canonical, made = schedule_of_any_numbers(canonical)
  return canonical, kept, made

@boundary
@alone
def prepare(nodes: list[UOp]) -> None:
  """Schedule nodes and compile their kernels, without running anything."""
  todo = [u for u in nodes if known(u) is None and not is_buffer(u)]
  if not todo: return
  for place, kernels in uncollected(lambda: schedule_of_any_numbers(canonicalize(todo, known)))[1].runs:
    if place == COPIES: continue
    for device in (place or Device.DEFAULT,) if place is None or isinstance(place, str) else place:
      found_parts(device, [k.sink for k in kernels])

def _with_outside(capture: Capture, todo: list[UOp], canonical: Canonical) -> Canonical:
  """Compute first, and not in the capture, what Tensors from outside of the captured function stand for, and writes
  that are not the function's."""
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

class Kept:
  """The values that a schedule's writes would spoil: adds them to what it computes, until nothing that will be gone is
  needed by anybody.

  What was there before a capture is computed first, by itself, so that replays leave it alone.
  """
  def __init__(self, todo: list[UOp], canonical: Canonical, others: Iterable[Storage] = ()):
    self.todo, self.canonical = todo, canonical
    self.held: dict[int, tuple[writes.Holder, UOp]] = {}     # by id: who holds, and the node whose storage it will hold
    self.nodes: set[UOp] = set()
    while True:
      self.write = writes.Write(canonical.assigns.values(), others)
      found = [(reference, holder) for reference, holder in self.write.outdated() if id(holder) not in self.held]
      if not found: break
      capture = this_thread.capture
      earlier = [] if capture is None else [holder for reference, holder in found if capture.had(reference, holder)]
      if earlier: self._compute_first(earlier)
      for _, holder in found:
        if id(holder) not in self.held: self._add(holder)

  def _node(self, holder: writes.Holder) -> UOp:
    """What has to be computed for a tensor: an ASSIGN, its own node, or a copy where storage would be shared with
    another tensor, or is written."""
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
    """After the run: the tensors hold what was computed for them, and the states that were overwritten are gone."""
    held = [(holder, node.realized) for holder, node in self.held.values() if node.op is not Ops.ASSIGN
            and node.realized is not None]
    if held: cuts.note([(writes.base_of(storage), holder.uop) for holder, storage in held])
    for holder, storage in held:
      holder.hold(storage)
      writes.lost.add(writes.base_of(storage))
    self.write.finish(cuts.note_writes)

_WHOLE = frozenset({Ops.RESHAPE, Ops.MULTI})

def known(u: UOp) -> UOp | None:
  """The storage that holds u's value. A capture relies only on what it computed itself: a replay has to compute the
  rest again. A node without a device (of Variables alone) is computed for each use, which may be on another device."""
  held = u.realized
  if held is None: return None
  if u.op is Ops.ASSIGN: return held
  if u.device is None: return None
  capture = this_thread.capture
  if capture is not None and u not in capture.computed and u not in capture.given or writes.is_retired(held):
    return None
  return held

def is_buffer(u: UOp) -> bool:
  """Is u storage already: a BUFFER, or a whole one in another shape?"""
  while u.op in _WHOLE and u.realized is None: u = u.src[0]
  return u.op is Ops.BUFFER

def _mark(u: UOp, held: UOp | None) -> None:
  """u was computed into this storage; None: it is an ASSIGN, which Write.finish knows."""
  if held is not None: u.realized = _shaped(held, u)

def _shaped(held: UOp, u: UOp) -> UOp:
  return held if held.shape == u.shape else UOp(Ops.RESHAPE, u.dtype, (held,) + to_indices(u.shape))

def run(made: Schedule, canonical: Canonical, kept: Kept | None = None) -> list[UOp | None]:
  """Run a schedule. Returns the BUFFER node of each root, None for an ASSIGN. Roots that became equal on the way get
  copies: each has its own.

  After an interrupt what `kept` would have written counts as written, and values that were to be computed first are
  refused when they are read.
  """
  results = {b: new_buffer(b.arg[1], b.arg[2], b.dtype) for b in made.plan.kept}
  arenas = {device: new_storage(device or Device.DEFAULT, size, dtypes.uint8)
            for device, size in made.plan.arena_bytes.items()}
  storage: dict[UOp, Storage] = {b: buffer_of(node) for b, node in results.items()}
  for b, offset in made.plan.offsets.items():
    storage[b] = arenas[b.arg[1]].view(b.arg[2], b.dtype, offset)
  if this_thread.kernels is not None: this_thread.kernels.extend(k.sink for _, kernels in made.runs for k in kernels)
  steps = [step for place, kernels in made.runs for step in _steps(place or Device.DEFAULT, kernels, storage,
                                                                   canonical)]
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
  return held

def _steps(devices: DeviceLike, kernels: list[Kernel], storage: dict[UOp, Storage], canonical: Canonical) -> list[Step]:
  """The steps of kernels that run on the same devices: all on the first one, then all on the next."""
  used: list[tuple[Any, ...]] = [tuple([storage[b] if b in storage else buffer_of(canonical.inputs[b.arg[0][1]])
                                        for b in k.buffers])
                                 for k in kernels]
  if devices == COPIES:
    return [Step(None, pair, (), 0, k.line) for k, (to, source) in zip(kernels, used)
            for pair in copies(k.sink.arg, to, source)]
  if isinstance(devices, str): return _launches(devices, kernels, used, canonical.variables)
  return [s for i, device in enumerate(devices)
          for s in _launches(device, kernels, [tuple([b.bufs[i] for b in bufs]) for bufs in used],
                             {**canonical.variables, SHARD: i})]

def found_parts(device: str, sinks: Sequence[UOp]) -> list[tuple[Part, ...]]:
  """What is launched for each of a schedule's kernels on a device, compiled and loaded."""
  if not BEAM: return parts(device, sinks)
  from tinyhw.engine.run.tune import tuned  # a search is loaded where one is wanted
  return parts(device, [tuned(device, sink) for sink in sinks])

def _launches(device: str, kernels: Sequence[Kernel], used: Sequence[tuple[Buffer, ...]],
              variables: dict[str, int]) -> list[Step]:
  """The steps of kernels on one device. used: the buffers of each."""
  found = found_parts(device, [kernel.sink for kernel in kernels])
  if trace.recorder is not None:
    for kernel, launched in zip(kernels, found): trace.recorder.ran(kernel.sink, [part.runner for part in launched])
  if this_thread.capture is None:
    return [step_of(part, buffers, variables, kernel.line) for kernel, launched, buffers in zip(kernels, found, used)
            for part in launched]
  sources = [Source(device, kernel.sink, buffers, variables) for kernel, buffers in zip(kernels, used)]
  return [step_of(part, s.buffers, variables, kernel.line, s) for kernel, launched, s in zip(kernels, found, sources)
          for part in launched]

def step_of(part: Part, buffers: tuple[Buffer, ...], variables: dict[str, int], line: trace.Location | None = None,
            source: Source | None = None) -> Step:
  found = part.runner
  if len(found.slots) != len(buffers): buffers = tuple([buffers[slot] for slot in found.slots])
  try: values = tuple([variables[name] for name in found.variables]) + part.fixed
  except KeyError as error:
    raise SymbolicError(f"the variable {error} has no value; bind it: variable.bind(3)") from None
  return Step(found, buffers, values, value_of(found.grid, variables) if isinstance(found.grid, UOp) else found.grid,
              line, source)

def launch_of(step: Step, runner: Runner) -> Launch:
  """A Step that runs a kernel, as a device wants it."""
  return Launch(runner.program, [b.get_buf() for b in step.buffers], step.variables, step.grid, runner.small,
                runner.written, step.line)

def copies(how: str | None, to: Storage, source: Storage) -> list[tuple[Buffer, Buffer]]:
  """What a COPY does, as pairs of Buffers (to, from): docs/design/uop.md."""
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
  """Run steps in order; those on one device in a row are submitted together, one by one where DEBUG or the recorder
  wants times."""
  batch: list[Launch] = []
  device = ""
  timed = DEBUG >= 2 or trace.recorder is not None and trace.recorder.times()
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
  step.buffers[0].copy_from(step.buffers[1].ensure_allocated())   # of empty() nothing has made it yet
  if DEBUG < 2 and trace.recorder is None: return
  Device[step.buffers[0].device].synchronize()
  end = time.perf_counter_ns()
  if trace.recorder is not None: trace.recorder.launched(step, start, end)
  if DEBUG < 2: return
  from tinyhw.engine.run.show import show_copy  # it loads half of codegen
  show_copy(step.buffers[0], step.buffers[1], (end - start) * 1e-9)

def _timed(step: Step, batch: list[Launch]) -> list[Launch]:
  """Run one launch, and tell how long it took. The CPU device returns from it when it is done."""
  assert step.runner is not None
  opened = Device[step.runner.device]
  (start, end), = opened.submit_timed(batch)
  if trace.recorder is not None: trace.recorder.launched(step, start, end)
  if DEBUG >= 2:
    from tinyhw.engine.run.show import show_launch
    show_launch(step, (end - start) * 1e-9)
  return []
