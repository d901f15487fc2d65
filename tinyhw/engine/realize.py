"""Run schedules: give every buffer its storage, launch the kernels, and mark what is computed.

`realize(nodes)` is what Tensor.realize calls. Afterwards `node.realized` is a BUFFER or a RESHAPE of one, and other graphs that contain the
node read that buffer. A captured run (jit.py) is the list of `Step`s that `run` made.
"""
from __future__ import annotations
import time
import weakref
from typing import NamedTuple
from collections.abc import Callable

from tinyhw.config import BEAM, DEBUG
from tinyhw.device import Buffer, Device, Launch
from tinyhw.dtype import dtypes
from tinyhw.engine.buffers import buffer_of, new_buffer
from tinyhw.engine.compile import Part, Runner, parts, value_of
from tinyhw.engine.lower import Kernel
from tinyhw.engine.schedule import Canonical, Schedule, canonicalize, schedule, strip
from tinyhw.engine.tune import tuned
from tinyhw.helpers import GlobalCounters, disable_gc
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, to_indices

class Step(NamedTuple):
  """One kernel or copy of a run: `runner` None means that buffers[1] is copied to buffers[0]."""
  runner: Runner | None
  buffers: tuple[Buffer, ...]
  variables: tuple[int, ...]
  grid: int

  @property
  def written(self) -> tuple[Buffer, ...]: return self.buffers[:1] if self.runner is None else tuple(self.buffers[k] for k in self.runner.written)

class Capture:
  """What runs while a TinyJit captures: steps in order, the buffers that were made for results, and the draws of random numbers: a buffer that
  kernels read, and what makes the one for the next call."""
  def __init__(self) -> None:
    self.draws: list[tuple[Buffer, Callable[[], Buffer]]] = []
    self.steps: list[Step] = []
    self.made: list[Buffer] = []
    self.computed: set[UOp] = set()

capturing: list[Capture] = []   # the innermost open capture gets every step that runs

def realize(nodes: list[UOp]) -> None:
  """Compute the nodes. Raises what compilation and devices raise; nothing is marked as realized then.

  Graphs have no cycles to find, so scheduling is spared the collections, as compile_kernel is.
  """
  forget_outdated()
  todo = [u for u in nodes if known(u) is None and not is_buffer(u)]
  if not todo: return
  with disable_gc():
    canonical = canonicalize(todo, known)
    made = schedule(canonical)
  results = run(made, canonical)
  for u, root in zip(todo, canonical.roots): _mark(u, strip(root), made, canonical, results)
  for u in canonical.assigns.values():
    if u.realized is None: u.realized = target_of(u)
  if capturing: capturing[-1].computed.update(todo)
  _remember_readers(todo, canonical)

# Equal nodes are one object, so a node that was computed answers for every later expression that is equal. That is wrong once a buffer that it
# read has been written: then it has to be forgotten. Tensors that were realized hold their buffer, and keep their value.
_readers: weakref.WeakKeyDictionary[Buffer, weakref.WeakSet[UOp]] = weakref.WeakKeyDictionary()   # buffer -> computed nodes that read it
_outdated: list[weakref.ref[UOp]] = []                                                             # forgotten at the next realize

def known(u: UOp) -> UOp | None:
  """The buffer that holds u's value. A capture relies only on what it computed itself: a replay has to compute the rest again."""
  if u.realized is None or u.op is Ops.ASSIGN or not capturing or u in capturing[-1].computed: return u.realized
  return None

def _remember_readers(todo: list[UOp], canonical: Canonical) -> None:
  """Note which buffers the computed nodes read; those read and written in one run are forgotten before the next."""
  computed = [u for u in todo if u.op is not Ops.ASSIGN]
  if not computed: return
  written = [buffer_of(base_of(u)) for u in canonical.assigns.values()]
  if written: _outdated.extend(weakref.ref(u) for u in computed)
  else:
    for node in canonical.inputs: _readers.setdefault(buffer_of(node), weakref.WeakSet()).update(computed)

def base_of(assign: UOp) -> UOp:
  """The BUFFER that an ASSIGN writes into."""
  u = assign
  while u.op is not Ops.BUFFER: u = u.src[0] if u.realized is None or u.op is Ops.ASSIGN else u.realized
  return u

def written(buffer: Buffer) -> None:
  """Forget the values of nodes that were computed from a buffer's old contents."""
  readers = _readers.pop(buffer, None)
  if readers is not None:
    for u in readers: u.realized = None

def forget_outdated() -> None:
  for reference in _outdated:
    u = reference()
    if u is not None: u.realized = None
  _outdated.clear()

def is_buffer(u: UOp) -> bool:
  """Is u storage already: a BUFFER, or a whole one in another shape?"""
  while u.op is Ops.RESHAPE and u.realized is None: u = u.src[0]
  return u.op is Ops.BUFFER

def target_of(assign: UOp) -> UOp:
  """What holds an ASSIGN's value afterwards: its target, without ASSIGNs in it."""
  changes: dict[UOp, UOp] = {}
  chain = [assign.src[0]]
  while chain[-1].op is not Ops.BUFFER and chain[-1].src: chain.append(_below(chain[-1]))
  for u in reversed(chain):
    if u.op is Ops.ASSIGN or u.realized is not None: changes[u] = changes.get(_below(u), _below(u))
    elif u.src and u.src[0] in changes: changes[u] = u.replace(src=(changes[u.src[0]],) + u.src[1:])
  return changes.get(chain[0], chain[0])

def _below(u: UOp) -> UOp: return u.src[0] if u.realized is None else u.realized

def _mark(u: UOp, root: UOp, made: Schedule, canonical: Canonical, results: dict[UOp, UOp]) -> None:
  node = u
  while node.op is Ops.RESHAPE and node.realized is None: node = node.src[0]
  if root.op is Ops.ASSIGN: held = target_of(canonical.assigns[root])
  elif root.op is Ops.BUFFER: held = canonical.inputs[root.arg[0][1]]
  else: held = results[made.storage[root]]
  u.realized = held if held.shape == u.shape else UOp(Ops.RESHAPE, u.dtype, (held,) + to_indices(u.shape))

def run(made: Schedule, canonical: Canonical) -> dict[UOp, UOp]:
  """Run a schedule. Returns the BUFFER nodes of what it keeps, by canonical BUFFER."""
  results = {b: new_buffer(b.arg[1], b.arg[2], b.dtype) for b in made.plan.kept}
  arenas = {device: Buffer(device, size, dtypes.uint8) for device, size in made.plan.arena_bytes.items()}
  storage: dict[UOp, Buffer] = {b: buffer_of(node) for b, node in results.items()}
  for b, offset in made.plan.offsets.items():
    storage[b] = arenas[b.arg[1]].view(b.arg[2], b.dtype, offset)
  steps = [step for k in made.kernels for step in _steps(k, storage, canonical)]
  try: execute(steps)
  finally:  # an interrupt may come after a buffer was written
    for u in canonical.assigns.values(): written(buffer_of(base_of(u)))
  if capturing:
    capturing[-1].steps.extend(steps)
    capturing[-1].made.extend(buffer_of(node) for node in results.values())
  return results

def _steps(kernel: Kernel, storage: dict[UOp, Buffer], canonical: Canonical) -> list[Step]:
  buffers = tuple([storage[b] if b in storage else buffer_of(canonical.inputs[b.arg[0][1]]) for b in kernel.buffers])
  if kernel.sink.op is Ops.COPY: return [Step(None, buffers, (), 0)]
  device = kernel.buffers[0].arg[1]
  return [_step(part, buffers, canonical) for part in parts(device, tuned(device, kernel.sink) if BEAM else kernel.sink)]

def _step(part: Part, buffers: tuple[Buffer, ...], canonical: Canonical) -> Step:
  found = part.runner
  if len(found.slots) != len(buffers): buffers = tuple([buffers[slot] for slot in found.slots])
  variables = part.fixed + tuple([canonical.variables[name] for name in found.variables])
  return Step(found, buffers, variables, value_of(found.grid, canonical.variables) if isinstance(found.grid, UOp) else found.grid)

def execute(steps: list[Step]) -> None:
  """Run steps in order; those on one device in a row are submitted together, one by one where DEBUG wants times."""
  batch: list[Launch] = []
  device = ""
  for step in steps:
    if step.runner is None or step.runner.device != device or DEBUG >= 2:
      if batch: Device[device].submit(batch)
      batch = []
    if step.runner is None: _copy(step)
    else:
      device = step.runner.device
      batch.append(Launch(step.runner.program, [b.get_buf() for b in step.buffers], step.variables, step.grid, step.runner.small))
      if DEBUG >= 2: batch = _timed(step, batch)
    GlobalCounters.kernel_count += 1
  if batch: Device[device].submit(batch)

def _copy(step: Step) -> None:
  start = time.perf_counter()
  step.buffers[0].copy_from(step.buffers[1])
  if DEBUG < 2: return
  from tinyhw.engine.show import show_copy
  Device[step.buffers[0].device].synchronize()
  show_copy(step.buffers[0], step.buffers[1], time.perf_counter() - start)

def _timed(step: Step, batch: list[Launch]) -> list[Launch]:
  from tinyhw.engine.show import show_launch
  assert step.runner is not None
  opened = Device[step.runner.device]
  start = time.perf_counter()
  opened.submit(batch)
  opened.synchronize()
  show_launch(step, time.perf_counter() - start)
  return []
