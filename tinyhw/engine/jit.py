"""TinyJit: run a function twice, then replay the kernels that it launched.

The first call runs as usual (and fills caches); the second is captured: every kernel and copy that it runs becomes part of a `Recording` of the
device, a prebuilt command buffer. Later calls put the new inputs' addresses and variables into the patch points and submit once; no Python runs
per kernel. Outputs get fresh storage in each call, so results of earlier calls keep their values.

What cannot be replayed faithfully raises JitError (docs/design.md, section 7, says what is seen and what is not).
"""
from __future__ import annotations
import sys
import threading
import weakref
from typing import Any, Generic, ParamSpec, TypeVar
from collections.abc import Callable

from tinyhw.config import JIT, TRAINING
from tinyhw.device import Buffer, Device, Launch, Recording
from tinyhw.dtype import DType, dtypes
from tinyhw.engine import realize as realizing
from tinyhw.engine.buffers import buffer_of, new_buffer
from tinyhw.engine.compile import value_of
from tinyhw.engine.realize import Capture, Step, this_thread
from tinyhw.engine.surroundings import Surroundings
from tinyhw.engine.writes import Holder, assign_of, memory_of, overwrite, rebased, viewers, waiting_writes
from tinyhw.errors import JitError
from tinyhw.helpers import GlobalCounters
from tinyhw.methods.base import leaves
from tinyhw.methods.graph import show
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

AGAIN = "call reset() to capture again, or make another TinyJit for it"
P = ParamSpec("P")
R = TypeVar("R")

class Input:
  """A Tensor argument as captured: where it was found, its graph node (a view of one BUFFER), its type."""
  __slots__ = ("name", "view", "buffer")

  def __init__(self, name: str, tensor: Tensor):
    self.name = name
    self.view = tensor.uop
    self.buffer = buffer_of(base_buffer(tensor.uop))

def base_buffer(u: UOp) -> UOp:
  while u.op is not Ops.BUFFER:
    if u.op in (Ops.BIND, Ops.CONST) or not u.src: raise JitError("an input of a TinyJit function has no buffer of its own; realize it first")
    u = u.src[0]
  return u

def same_view(a: UOp, b: UOp) -> bool:
  """Do two nodes look at their BUFFERs, of one size, through the same movement?"""
  while a.op is b.op and a.op is not Ops.BUFFER and a.src and b.src and a.src[1:] == b.src[1:] and a.arg == b.arg: a, b = a.src[0], b.src[0]
  return a.op is b.op is Ops.BUFFER and a.arg[1:] == b.arg[1:] and a.dtype is b.dtype

def kind_of(u: UOp) -> str:
  """Shape, type and device of a Tensor, as text."""
  return f"{show(u.shape)} {u.dtype} on {u.device}"

def collect(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[tuple[str, Tensor]], dict[str, int], tuple[Any, ...]]:
  """Tensors by name, values of variables, and everything else (by value), from arguments nested in lists, tuples and dicts."""
  if not kwargs and all(isinstance(a, Tensor) for a in args): return [(str(k), a) for k, a in enumerate(args)], {}, ()
  tensors: list[tuple[str, Tensor]] = []
  variables: dict[str, int] = {}
  rest: list[Any] = []
  stack: list[tuple[str, Any]] = [(str(k), a) for k, a in reversed([*enumerate(args), *sorted(kwargs.items())])]
  while stack:
    name, value = stack.pop()
    if isinstance(value, Tensor): tensors.append((name, value))
    elif isinstance(value, UOp) and value.op is Ops.BIND:
      variable, bound = value.unbind()
      variables[variable.expr] = bound
      rest.append((name, variable))
    elif isinstance(value, (list, tuple)):
      rest.append((name, type(value), len(value)))
      stack.extend((f"{name}.{k}", v) for k, v in reversed([*enumerate(value)]))
    elif isinstance(value, dict):
      rest.append((name, tuple(value)))
      stack.extend((f"{name}.{k}", v) for k, v in reversed([*value.items()]))
    elif hasattr(value, "__array__"):
      raise JitError(f"argument {name} is of {type(value)}, and TinyJit cannot tell whether its contents change; pass a Tensor of it")
    else: rest.append((name, type(value), value))
  return tensors, variables, tuple(rest)

class Output:
  """A result with storage of its own: that of an earlier call is used again once nobody can see it any more, else there is a new one.

  Tensors see it through its node; memoryviews that are no copies hold the Buffer itself.
  """
  __slots__ = ("node", "buffer", "patches", "last", "storage", "references")

  def __init__(self, node: UOp):
    self.node, self.buffer = node, buffer_of(node)
    self.patches: list[tuple[Recording, int, int]] = []
    self.last, self.storage = node, self.buffer
    self.references = (0, 0)      # the captured call's own result is never used again

  def fresh(self) -> UOp:
    node, storage = self.references
    if sys.getrefcount(self.last) <= node and sys.getrefcount(self.storage) <= storage and self.last.storage is self.storage: return self.last
    self.last = new_buffer(self.buffer.device, self.buffer.size, self.buffer.dtype)
    self.storage = buffer_of(self.last)
    self.references = sys.getrefcount(self.last), sys.getrefcount(self.storage)
    opaque = self.storage.get_buf()
    for recording, launch, position in self.patches: recording.patch(launch, position, opaque)
    return self.last

class Watched:
  """Storage that the captured function uses without being given it, and the Tensors that looked at it when it was captured."""
  __slots__ = ("buffer", "nodes", "tensors")

  def __init__(self, buffer: Buffer):
    self.buffer = buffer
    self.tensors = [weakref.ref(t) for t in viewers(buffer)]
    self.note()

  def note(self) -> None:
    """What the Tensors stand for now is right."""
    self.nodes = [None if (t := reference()) is None else t.uop for reference in self.tensors]

  def check(self) -> None:
    """Do an ASSIGN that waits. Raises JitError if a Tensor is in another buffer now, or none is left."""
    gone = True
    for reference, node in zip(self.tensors, self.nodes):
      tensor = reference()
      if tensor is None: continue
      gone = False
      if tensor.uop is not node: self._follow(tensor)
    if gone:
      raise JitError(f"the Tensor of {self.buffer.size} elements of {self.buffer.dtype} that the function used when it was captured is gone: its "
                     "name or attribute stands for another one now; change it with assign(), or call reset() to capture again")

  def _follow(self, tensor: Holder) -> None:
    memory, waits = memory_of(tensor.uop)
    if memory is None or memory.storage is not self.buffer:
      raise JitError(f"a Tensor of shape {tensor.uop.shape} that the function used when it was captured has another buffer now; change it with "
                     "assign(), pass it as an argument, or call reset() to capture again")
    if waits: realizing.realize([assign_of(tensor.uop)])
    self.note()

class Captured:
  """A captured call: recordings per run of launches on one device, copies between them, patch points, and how to make the results."""
  rest: tuple[Any, ...]           # what was no Tensor among the arguments
  training: int
  default_float: DType
  surroundings: Surroundings
  shared: frozenset[int]          # inputs whose buffer a Tensor that the function's own code names looked at, too

  def __init__(self, capture: Capture, inputs: list[Input], variables: dict[str, int], result: Any):
    self.inputs, self.variables, self.result = inputs, variables, result
    self.steps, self.made, self.draws = capture.steps, capture.made, capture.draws
    self.outputs = self._fresh_outputs()
    self.lock = threading.Lock()    # a recording is one object: threads take turns
    self._record()
    returned = {id(node.storage) for t in tensors_in(result) if (node := memory_of(t.uop)[0]) is not None}
    self.returned = [k for k, i in enumerate(inputs) if id(i.buffer) in returned]     # inputs that the result has, or looks at
    self.watched = self._used_elsewhere()
    self.lookers: list[tuple[weakref.ref[Holder], UOp]] = []
    self.nodes: list[UOp] = []
    self.counts: list[int] = []     # references to the nodes that Tensors look at the state with
    self.result = rebuilt(result, {})   # Tensors of our own: the caller may change those that it has

  def _fresh_outputs(self) -> list[Output]:
    """Buffers of returned Tensors that the captured call made: each replay gives them new storage."""
    made = {id(b) for b in self.made}
    written: set[int] = set()
    updated: set[int] = set()     # written by more than one kernel, or read before: state, not a plain result
    for s in self.steps:
      results = {id(b) for b in s.written}
      updated.update(id(b) for b in s.buffers if id(b) not in written and id(b) not in results)
      updated.update(results & written)
      written |= results
    found: dict[int, Output] = {}
    for tensor in tensors_in(self.result):
      node = memory_of(tensor.uop)[0]
      if node is not None and id(node.storage) in made - updated: found[id(node.storage)] = Output(node)
    return list(found.values())

  def _used_elsewhere(self) -> list[Watched]:
    """The storage that the call neither was given nor made, and that Tensors look at."""
    used = {id(b.base): b.base for s in self.steps for b in s.buffers if id(b.base) in self.internal}
    for b in self.made: used.pop(id(b), None)
    return [watched for b in used.values() if (watched := Watched(b)).tensors]

  def _record(self) -> None:
    self.parts: list[Recording | tuple[Buffer, Buffer]] = []
    self.patches: dict[int, list[tuple[Recording, int, int]]] = {}     # id of a buffer -> (recording, launch, position)
    self.given = [i.buffer for i in self.inputs]            # what the patch points of each input hold
    self.variable_patches: list[tuple[Recording, int, int, str]] = []
    self.grid_patches: list[tuple[Recording, int, Any]] = []
    self.kernels = len(self.steps)
    group: list[Step] = []
    for step in [*self.steps, None]:
      if group and (step is None or step.runner is None or step.runner.device != group[0].runner.device):  # type: ignore[union-attr]
        self._record_group(group)
        group = []
      if step is None: break
      if step.runner is None: self.parts.append((step.buffers[0], step.buffers[1]))
      else: group.append(step)
    self.input_patches = [self.patches.get(id(b), []) for b in self.given]
    inputs = {id(b.base) for b in self.given}
    fresh = {id(output.buffer) for output in self.outputs}
    written = {id(b): b for s in self.steps for b in s.written if id(b) not in fresh and b.base is b}
    self.written_inputs = [k for k, b in enumerate(self.given) if id(b) in written]
    self.state = [b for b in written.values() if id(b) not in inputs]
    self.internal = {id(b.base) for s in self.steps for b in s.buffers} - inputs - fresh   # the steps keep these buffers alive
    for output in self.outputs: output.patches = self.patches.get(id(output.buffer), [])

  def _record_group(self, group: list[Step]) -> None:
    patched = {id(i.buffer) for i in self.inputs} | {id(output.buffer) for output in self.outputs} | {id(b) for b, _ in self.draws}
    launches = [Launch(s.runner.program, [b.get_buf() for b in s.buffers], s.variables, s.grid, s.runner.small)
                for s in group if s.runner is not None]
    recording = Device[group[0].runner.device].record(launches)  # type: ignore[union-attr]
    self.parts.append(recording)
    for n, s in enumerate(group):
      assert s.runner is not None
      for position, b in enumerate(s.buffers):
        if id(b) in patched: self.patches.setdefault(id(b), []).append((recording, n, position))
      for k, name in enumerate(s.runner.variables): self.variable_patches.append((recording, n, len(s.buffers) + k, name))
      if isinstance(s.runner.grid, UOp): self.grid_patches.append((recording, n, s.runner.grid))

  def replay(self, tensors: list[tuple[str, Tensor]], variables: dict[str, int]) -> Any:
    """Run the capture on other inputs. A patch point is written only when what it should hold has changed."""
    with self.lock: return self._replay([tensor for _, tensor in tensors], [buffer_of(base_buffer(t.uop)) for _, t in tensors], variables)

  def _replay(self, tensors: list[Tensor], buffers: list[Buffer], variables: dict[str, int]) -> Any:
    for watched in self.watched: watched.check()
    if buffers != self.given: self._set_inputs(buffers)
    written = [] if self._unseen() else self.state + [buffers[k] for k in self.written_inputs]
    if written: realizing.realize([], written)      # values that want the old contents
    for buffer, next_draw in self.draws:
      drawn = next_draw()
      for recording, launch, position in self.patches.get(id(buffer), ()): recording.patch(launch, position, drawn.get_buf())
    if variables != self.variables: self._set_variables(variables)
    changes: dict[int, UOp] = {}
    for output in self.outputs: changes[id(output.buffer)] = output.fresh()
    for part in self.parts:
      if isinstance(part, tuple): part[0].copy_from(part[1])
      else: part.submit()
    if written:
      overwrite(written)
      for watched in self.watched: watched.note()
      self._remember()
    GlobalCounters.kernel_count += self.kernels
    for k in self.returned: changes[id(self.inputs[k].buffer)] = base_buffer(tensors[k].uop)
    return rebuilt(self.result, changes)

  def _remember(self) -> None:
    """Note who looks at the state now that its nodes are new: nobody but these Tensors."""
    self.lookers = [(weakref.ref(t), t.uop) for b in self.state for t in viewers(b)]
    self.nodes = list(dict.fromkeys(node for _, u in self.lookers for node in _chain(u)))
    self.counts = _references(self.nodes)

  def _unseen(self) -> bool:
    """Do the same Tensors as after the last replay look at the state, and has nothing been expressed with it? Then its nodes may stay."""
    if not self.lookers or self.written_inputs: return False
    for reference, u in self.lookers:
      tensor = reference()
      if tensor is None or tensor.uop is not u: return False
    del u
    return self.counts == _references(self.nodes)

  def _set_inputs(self, buffers: list[Buffer]) -> None:
    """Put the addresses of other inputs into their patch points."""
    bases = [id(b.base) for b in buffers]
    for k in self.shared:
      if buffers[k] is self.given[k]: continue
      raise JitError(f"argument {self.inputs[k].name} was, when captured, a Tensor that the function also uses by itself, and is another one now; "
                     f"what of the two was meant where is not known: {AGAIN}, and give it a copy, with .clone()")
    for k, base in enumerate(bases):
      if base not in self.internal and bases.count(base) == 1: continue
      raise JitError(f"argument {self.inputs[k].name} shares a buffer with another argument, or with a Tensor that the function uses itself, "
                     "which it did not when it was captured; pass a copy, with .clone()")
    for k, buffer in enumerate(buffers):
      for recording, launch, position in self.input_patches[k]: recording.patch(launch, position, buffer.get_buf())
    self.given = buffers

  def _set_variables(self, variables: dict[str, int]) -> None:
    self.variables = dict(variables)
    for recording, launch, position, name in self.variable_patches: recording.patch(launch, position, variables[name])
    for recording, launch, grid in self.grid_patches: recording.patch_grid(launch, value_of(grid, variables))

def _chain(u: UOp) -> list[UOp]:
  """A view of storage, and what it is a view of, down to the BUFFER."""
  found = [u]
  while found[-1].op is not Ops.BUFFER: found.append(found[-1].src[0])
  return found

def _references(nodes: list[UOp]) -> list[int]: return [sys.getrefcount(u) for u in nodes]

def tensors_in(result: Any) -> list[Tensor]:
  """The Tensors of a result nested in lists, tuples and dicts."""
  if isinstance(result, Tensor): return [result]
  if isinstance(result, dict): return [t for v in result.values() for t in tensors_in(v)]
  if isinstance(result, (list, tuple)): return [t for v in result for t in tensors_in(v)]
  return []

def rebuilt(result: Any, changes: dict[int, UOp]) -> Any:
  """The result with Tensors of its own, over new nodes for Buffers by id."""
  if isinstance(result, Tensor):
    node = memory_of(result.uop)[0]
    new = None if node is None else changes.get(id(node.storage))
    return Tensor._holding(result.uop if new is None else rebased(result.uop, new))
  if isinstance(result, dict): return {k: rebuilt(v, changes) for k, v in result.items()}
  if isinstance(result, tuple) and hasattr(result, "_fields"): return type(result)(*[rebuilt(v, changes) for v in result])
  if isinstance(result, (list, tuple)): return type(result)(rebuilt(v, changes) for v in result)
  return result

class TinyJit(Generic[P, R]):
  """Decorator: the function's kernels are captured in its second call and replayed afterwards.

  Arguments: Tensors (also in lists, tuples, dicts), bound Variables, and plain values, which must stay what they were. Works on methods.
  """
  def __init__(self, fxn: Callable[P, R], **kwargs: Any):
    self.fxn = fxn
    self.reset()

  def reset(self) -> None:
    """Forget the capture; the next two calls run the function again."""
    self.cnt = 0
    self.captured: Captured | None = None

  def __get__(self, obj: Any, objtype: Any = None) -> Any:
    if obj is None: return self
    bound = obj.__dict__.get(("TinyJit", id(self)))
    if bound is None: bound = obj.__dict__[("TinyJit", id(self))] = TinyJit(self.fxn.__get__(obj, objtype))
    return bound

  def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
    tensors, variables, rest = collect(args, kwargs)
    for _, t in tensors:
      if not realizing.is_buffer(t.uop): t.realize()
    if not JIT or self.cnt == 0 or this_thread.capture is not None:   # inside of another capture that one takes the kernels
      self.cnt += 1
      return self._plain(*args, **kwargs)
    if self.captured is None: return self._capture(tensors, variables, rest, *args, **kwargs)
    self._check(tensors, variables, rest)
    return self.captured.replay(tensors, variables)  # type: ignore[no-any-return]

  def _plain(self, *args: P.args, **kwargs: P.kwargs) -> R:
    result = self.fxn(*args, **kwargs)
    if this_thread.capture is not None: self._complete(this_thread.capture)
    for t in tensors_in(result): t.realize()
    return result

  def _complete(self, capture: Capture) -> None:
    """Compute what the captured function left in tensors: writes that wait (all were done when the capture began), and gradients."""
    left = [t.grad for t in leaves() if t.grad is not None and capture.grads.get(id(t)) is not t.grad]
    if left: Tensor.realize(*left)
    waiting = waiting_writes()
    if waiting: realizing.realize(waiting)

  def _capture(self, tensors: list[tuple[str, Tensor]], variables: dict[str, int], rest: tuple[Any, ...], *args: Any, **kwargs: Any) -> R:
    inputs = [Input(name, t) for name, t in tensors]
    if len({i.buffer for i in inputs}) != len(inputs):
      raise JitError("two inputs of a TinyJit function share a buffer; pass a copy of one, with .clone()")
    realizing.realize(waiting_writes())
    capture = Capture({id(t): t.grad for t in leaves() if t.grad is not None})
    objects = [(name, value) for name, _, value in (r for r in rest if len(r) == 3)]
    before = Surroundings(self.fxn, objects)
    this_thread.capture = capture
    try: result = self._plain(*args, **kwargs)
    finally: this_thread.capture = None
    if not capture.steps: raise JitError("the function ran no kernel while it was captured; TinyJit has nothing to replay: call it without TinyJit")
    captured = Captured(capture, inputs, variables, result)
    captured.rest, captured.training, captured.default_float = rest, TRAINING.value, dtypes.default_float
    for old, new, name in before.held():
      if old is new or not (isinstance(old, Tensor) or isinstance(new, Tensor)): continue
      raise JitError(f"the function puts another Tensor into {name}, which replays would not do; change the Tensor there with assign(), or return "
                     "the new one and put it there outside of the function")
    captured.surroundings = Surroundings(self.fxn, objects)
    named = {id(node.storage) for _, t, _ in captured.surroundings.held() if isinstance(t, Tensor) and (node := memory_of(t.uop)[0]) is not None}
    captured.shared = frozenset(k for k, i in enumerate(inputs) if id(i.buffer) in named)
    self.captured = captured
    self.cnt += 1
    return result

  def _check(self, tensors: list[tuple[str, Tensor]], variables: dict[str, int], rest: tuple[Any, ...]) -> None:
    """Raise JitError unless this call has what the captured one had."""
    captured = self.captured
    assert captured is not None
    inputs = captured.inputs
    if len(inputs) != len(tensors): raise JitError(f"captured with {len(inputs)} Tensors, called with {len(tensors)}; {AGAIN}")
    for given, (name, t) in zip(inputs, tensors):
      if (given.view is t.uop or same_view(given.view, t.uop)) and given.name == name: continue
      if given.name != name: raise JitError(f"the Tensor argument {given.name} of the captured call is called {name} now; {AGAIN}")
      old, new = kind_of(given.view), kind_of(t.uop)
      if old != new: raise JitError(f"argument {name} was captured as {old}, and is {new} now; {AGAIN}")
      raise JitError(f"argument {name} was captured as another view of its buffer (a slice, a transpose) than this one of the same shape; pass "
                     f"a copy, with .clone(), both times, or {AGAIN}")
    if rest != captured.rest:
      changed = next((f"{a[0]} was {a[-1]!r} and is {b[-1]!r}" for a, b in zip(captured.rest, rest) if a != b), "their number")
      raise JitError("arguments that are no Tensors must be what they were when captured; "
                     f"changed: {changed}; pass a Tensor or a bound Variable instead")
    if variables.keys() != captured.variables.keys(): raise JitError(f"the bound Variables differ from the captured ones; {AGAIN}")
    if captured.training != TRAINING.value:
      raise JitError(f"captured with Tensor.training {bool(captured.training)}, called with {bool(TRAINING.value)}; make a TinyJit for each")
    if captured.default_float is not dtypes.default_float:
      raise JitError(f"captured with {captured.default_float} as the default float, called with {dtypes.default_float}; {AGAIN}")
    captured.surroundings.check()
