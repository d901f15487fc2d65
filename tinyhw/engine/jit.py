"""TinyJit: run a function twice, then replay the kernels that it launched.

The first call runs as usual (and fills caches); the second is captured: every kernel and copy that it runs becomes part of a `Recording` of the
device, a prebuilt command buffer. Later calls put the new inputs' addresses and variables into the patch points and submit once; no Python runs
per kernel (replay.py). Outputs get fresh storage in each call, so results of earlier calls keep their values.

What cannot be replayed faithfully raises JitError (docs/design.md, section 7, says what is seen and what is not).
"""
from __future__ import annotations
import sys
from collections import Counter
from typing import Any, Generic, ParamSpec, TypeVar
from collections.abc import Callable

from tinyhw.config import JIT, TRAINING, FirstUse
from tinyhw.device import Device
from tinyhw.dtype import dtypes
from tinyhw.engine import realize as realizing
from tinyhw.engine.buffers import Storage, buffer_of
from tinyhw.engine.jit_gradients import AGAIN, carries_gradient, refuse_gradient, separate_gradients
from tinyhw.engine.jit_views import base_buffer, binds_in, same_view
from tinyhw.engine.realize import Capture, this_thread
from tinyhw.engine.replay import Captured, check_result
from tinyhw.engine.structure import Arguments, Rest, collect, difference, same_rest, tensors_in
from tinyhw.engine.surroundings import Surroundings, Watcher
from tinyhw.engine.writes import base_of, memory_of, waiting_writes
from tinyhw.errors import ArgumentError, JitError as JitError
from tinyhw.helpers import disable_gc
from tinyhw.methods.base import GradMode, leaves
from tinyhw.methods.graph import show
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

P = ParamSpec("P")
R = TypeVar("R")

_MODES = ("Tensor.training", "the default float", "the default int", "the default device", "Tensor.no_grad")

def modes() -> tuple[Any, ...]:
  """What is set for all functions and decides what they compute, in the order of _MODES."""
  return TRAINING.value != 0, dtypes.default_float, dtypes.default_int, Device.DEFAULT, GradMode.off

def kind_of(u: UOp) -> str:
  """Shape, type and device of a Tensor, as text."""
  return f"{show(u.shape)} {u.dtype} on {u.device}"

class TinyJit(Generic[P, R]):
  """Decorator: the function's kernels are captured in its second call and replayed afterwards.

  Arguments: Tensors (also in lists, tuples, dicts and dataclasses), bound Variables, and plain values, which must stay what they were. Results: the
  same. Works on functions, methods (each object has its own capture) and objects that can be called. Raises JitError for what it cannot replay.

  >>> double = TinyJit(lambda x: (x * 2).realize())
  >>> [double(Tensor([k])).tolist() for k in range(4)]
  [[0], [2], [4], [6]]
  """
  __slots__ = ("fxn", "cnt", "captured", "rest", "modes", "surroundings", "shared", "names", "leaves_training", "_bound", "_data", "_of",
               "__weakref__")

  def __init__(self, fxn: Callable[P, R], **kwargs: Any):
    if not callable(fxn) and not isinstance(fxn, (classmethod, staticmethod)):
      raise ArgumentError(f"TinyJit wants a function, or something else that can be called, not {fxn!r}")
    self.fxn = fxn
    self._bound = False                         # is this the TinyJit of one object, made by __get__?
    self._of: dict[int, TinyJit[Any, Any]] = {}  # those of classes, and of objects without a __dict__
    self.reset()

  def reset(self) -> None:
    """Forget the capture; the next two calls run the function again."""
    self.cnt = 0
    self.captured: Captured | None = None
    self.rest: tuple[Rest, ...] = ()          # of the captured call: what was no Tensor among the arguments
    self.modes: tuple[Any, ...] = ()
    self.names: tuple[str, ...] = ()
    self.leaves_training: int | None = None   # what the function sets Tensor.training to, before it asks for it
    self.surroundings = Surroundings()
    self.shared: list[int] = []               # inputs whose buffer a Tensor that the function reads by itself looked at, too
    # of the last call that ran the function: what was no Tensor among the arguments, what it copied from the host, and its kernels
    self._data: tuple[tuple[Rest, ...], Counter[int], list[UOp]] | None = None

  # ***** as Python sees it *****

  def __getattr__(self, name: str) -> Any:
    """The function itself, for who looks through decorators, and its name. Of objects only: the class has a signature of its own."""
    if name == "__wrapped__": return self.fxn
    if name == "__name__": return getattr(self.fxn, name, type(self.fxn).__name__)
    raise AttributeError(f"a TinyJit has no attribute {name!r}")

  def __get__(self, obj: Any, objtype: Any = None) -> Any:
    if isinstance(self.fxn, staticmethod): return self
    if isinstance(self.fxn, classmethod): obj = objtype if obj is None else type(obj)
    if obj is None: return self
    key = f"TinyJit {id(self)}"
    table = None if isinstance(obj, type) else getattr(obj, "__dict__", None)
    bound = self._of.get(id(obj)) if table is None else table.get(key)
    if bound is None:
      bound = TinyJit(self.fxn.__get__(obj if not isinstance(self.fxn, classmethod) else None, objtype if objtype is not None else type(obj)))
      bound._bound = True
      if table is None: self._of[id(obj)] = bound
      else: table[key] = bound
    return bound

  def __reduce__(self) -> Any:
    """A copy captures again; that of an object's method is made when it is first asked for."""
    return (_nothing, ()) if self._bound else (TinyJit, (self.fxn,))

  # ***** calls *****

  def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
    given = collect(args, kwargs)
    _, tensors, variables, rest = given
    for t in tensors:
      if t.uop.op is not Ops.BUFFER and not realizing.is_buffer(t.uop): t.realize()
    captured = self.captured
    if not JIT or self.cnt == 0 or this_thread.capture is not None:   # inside of another capture that one takes the kernels
      self.cnt += 1
      return self._first(rest, *args, **kwargs)
    if captured is None: return self._capture(given, *args, **kwargs)
    if captured.symbolic: variables = self._variables(given, captured.symbolic)
    self._check(captured, given, variables)
    result: R = captured.replay(tensors + captured.gradients.before(tensors) if captured.gradients.held else tensors, variables)
    if self.leaves_training is not None: TRAINING.value = self.leaves_training
    return result

  def _first(self, rest: tuple[Rest, ...], *args: Any, **kwargs: Any) -> R:
    """Run the function, and remember what it copies from the host and its kernels, to see in the second call whether a number changes."""
    if not JIT or this_thread.capture is not None: return self._plain(*args, **kwargs)
    found: Counter[int] = Counter()
    outer, kernels = this_thread.stored, list[UOp]()
    def stored(buffer: Storage, content: bytes) -> None:
      found[hash((buffer.dtype, content))] += 1
      if outer is not None: outer(buffer, content)
    this_thread.stored, this_thread.kernels = stored, kernels
    try: return self._plain(*args, **kwargs)
    finally:
      this_thread.stored = outer
      this_thread.kernels = None
      self._data = rest, found, kernels

  def _plain(self, *args: Any, **kwargs: Any) -> R:
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

  # ***** capturing *****

  def _capture(self, given: Arguments, *args: Any, **kwargs: Any) -> R:
    names, tensors, _, rest = given
    buffers = {id(buffer_of(base_buffer(t.uop))) for t in tensors}
    if len(buffers) != len(tensors): raise JitError("two inputs of a TinyJit function share a buffer; pass a copy of one, with .clone()")
    variables = self._variables(given, range(len(tensors)))
    separate_gradients(buffers)
    waiting = waiting_writes()
    carrying = [(base_of(u).storage, u) for u in waiting if carries_gradient(u)]
    realizing.realize(waiting)
    watcher = Watcher(self.fxn, [r.value for r in rest if r.is_branch])
    for r in rest:
      if not r.is_branch: watcher.add_object(f"argument {r.name}", r.value)
    views = [t.uop for t in tensors]
    before, drawn = modes(), _host_random()
    capture = Capture({id(t): t.grad for t in leaves() if t.grad is not None}, lambda nodes: _outside(capture, watcher, nodes, buffers))
    this_thread.capture, outer = capture, this_thread.stored
    this_thread.stored = lambda buffer, content: capture.stored.append((buffer, content))
    kernels: list[UOp] = []
    this_thread.kernels = kernels
    try:
      with disable_gc(), FirstUse(TRAINING) as use, watcher: result = self._plain(*args, **kwargs)
    finally: this_thread.capture, this_thread.stored, this_thread.kernels = None, outer, None
    if not capture.steps: raise JitError("the function ran no kernel while it was captured; TinyJit has nothing to replay: call it without TinyJit")
    check_result(result)
    self.leaves_training = TRAINING.value if use.first == "set" else None
    self._check_effects(capture, watcher, rest, before, drawn)
    self._check_numbers(kernels, rest)
    watcher.forget()
    for t, view in zip(tensors, views):
      if same_view(t.uop, view) and buffer_of(base_buffer(t.uop)) is not None: continue
      raise JitError("the function puts other storage into one of its arguments (replace, or assign to what had none); return it instead")
    captured = Captured(capture, tensors, watcher.names("grad"), variables, result, getattr(self.fxn, "__qualname__", type(self.fxn).__name__))
    for storage, u in carrying:
      if capture.differentiated and any(w.buffer is storage for w in captured.watched): refuse_gradient(u)
    self.surroundings = watcher.after()
    named = {id(node.storage) for t in self.surroundings.tensors if (node := memory_of(t.uop)[0]) is not None}
    self.shared = [k for k, slot in enumerate(captured.inputs) if id(slot.buffer) in named]
    if any(k >= len(tensors) for k in self.shared):
      raise JitError("the function uses a gradient that it also has by another name, and which of the two a replay should take is not known; give "
                     "the other one a copy, with .clone()")
    self.rest, self.modes, self.names = rest, before, names
    self.captured = captured
    self.cnt += 1
    return result

  def _check_effects(self, capture: Capture, watcher: Watcher, rest: tuple[Rest, ...], before: tuple[Any, ...], drawn: Any) -> None:
    """Raise JitError for what the captured call did that replays would not do again, or would do with old values."""
    for name, old, new in watcher.before.changes():
      what = "puts another Tensor into" if isinstance(old, Tensor) or isinstance(new, Tensor) else "changes"
      raise JitError(f"the function {what} {name}, which replays would not do; " +
                     ("change the Tensor there with assign(), or return the new one and put it there outside of the function" if what != "changes"
                      else "do that outside of the function, or keep what changes in a Tensor, and assign() to it"))
    for mode, old, new in zip(_MODES, before, modes()):
      if old == new or mode is _MODES[0] and self.leaves_training is not None: continue
      raise JitError(f"the function changes {mode} from {old} to {new}, which replays would not do; do that outside of it")
    if drawn != _host_random():
      raise JitError("the function draws from the random module of Python or NumPy, and replays would use the same numbers; draw with "
                     "Tensor.rand, or outside")
    if self._data is None or not same_rest(self._data[0], rest): return
    new_data = Counter(hash((b.dtype, content)) for b, content in capture.stored) - self._data[1]
    for b, content in capture.stored:
      if hash((b.dtype, content)) in new_data:
        raise JitError(f"the function makes a Tensor of {b.size} elements of {b.dtype} from data that were others in the call before, and replays "
                       "would use these again; pass it as an argument")

  def _check_numbers(self, kernels: list[UOp], rest: tuple[Rest, ...]) -> None:
    """Raise JitError for a number in a kernel that was another one in the call before: from a clock, a file, a counter, whatever it was."""
    if self._data is None or not same_rest(self._data[0], rest): return
    known = {u: None for u in self._data[2]}
    gone = {shape_of(u): u for u in known.keys() - set(kernels)}
    for u in kernels:
      old = None if u in known else gone.get(shape_of(u))
      if old is None: continue
      a, b = next((a.arg, b.arg) for a, b in zip(old.toposort(), u.toposort()) if a is not b and a.op is Ops.CONST)
      raise JitError(f"the function computes with {b} where it computed with {a} in the call before, and replays would compute with {b} again; "
                     "pass the number as an argument, or keep it in a Tensor")

  def _variables(self, given: Arguments, symbolic: Any) -> dict[str, int]:
    """The values of Variables among the arguments, and in the shapes of Tensors among them."""
    names, tensors, variables, _ = given
    found = dict(variables)
    for k in symbolic:
      for bound in binds_in(tensors[k].uop):
        variable, value = bound.unbind()
        if found.setdefault(variable.expr, value) != value:
          raise JitError(f"argument {names[k]} has {variable.expr} bound to {value}, another one to {found[variable.expr]}; bind it once")
    return found

  # ***** replays *****

  def _check(self, captured: Captured, given: Arguments, variables: dict[str, int]) -> None:
    """Raise JitError unless this call has what the captured one had."""
    names, tensors, _, rest = given
    if names is not self.names and names != self.names: _refuse_names(self.names, names)
    for view, name, t in zip(captured.views, names, tensors):
      if view is not t.uop and not same_view(view, t.uop): _refuse_argument(name, view, t.uop)
    if rest is not self.rest and not same_rest(self.rest, rest):
      raise JitError("arguments that are no Tensors must be what they were when captured; "
                     f"changed: {difference(self.rest, rest)}; pass a Tensor or a bound Variable instead")
    if variables != captured.given_variables and variables.keys() != captured.given_variables.keys():
      raise JitError(f"the bound Variables differ from the captured ones; {AGAIN}")
    now = modes()
    if self.leaves_training is not None: now = self.modes[:1] + now[1:]
    if now != self.modes:
      mode, old, new = next((mode, a, b) for mode, a, b in zip(_MODES, self.modes, now) if a != b)
      raise JitError(f"captured with {mode} {old}, called with {new}; make a TinyJit for each, or call reset()")
    for k in self.shared:
      if buffer_of(base_buffer(tensors[k].uop)) is captured.inputs[k].current: continue
      raise JitError(f"argument {self.names[k]} was, when captured, a Tensor that the function also uses by itself, and is another one now; "
                     f"what of the two was meant where is not known: {AGAIN}, and give it a copy, with .clone()")
    self.surroundings.check()
    for reference, u in captured.waiting:
      if (holder := reference()) is not None and holder.uop is not u:
        raise JitError(f"a Tensor of shape {show(u.shape)} without storage that the function used when it was captured has been realized or written "
                       f"since, or what it is computed from was; realize() it before the function is captured, or {AGAIN}")
    if captured.gradients.absent: captured.gradients.check(tensors)

def shape_of(kernel: UOp) -> tuple[Any, ...]:
  """What a kernel does with any numbers: its nodes without the values of constants."""
  order = list(kernel.toposort())
  position = {u: k for k, u in enumerate(order)}
  return tuple([(u.op, u.dtype, None if u.op is Ops.CONST else u.arg, tuple([position[s] for s in u.src])) for u in order])

def _nothing() -> None:
  """What an object's own TinyJit is in a copy of the object."""

def _refuse_names(captured: tuple[str, ...], names: tuple[str, ...]) -> None:
  if len(captured) != len(names): raise JitError(f"captured with {len(captured)} Tensors, called with {len(names)}; {AGAIN}")
  old, new = next((old, new) for old, new in zip(captured, names) if old != new)
  raise JitError(f"the Tensor argument {old} of the captured call is called {new} now; {AGAIN}")

def _refuse_argument(name: str, view: UOp, u: UOp) -> None:
  old, new = kind_of(view), kind_of(u)
  if old != new: raise JitError(f"argument {name} was captured as {old}, and is {new} now; {AGAIN}")
  raise JitError(f"argument {name} was captured as another view of its buffer (a slice, a transpose) than this one of the same shape; pass "
                 f"a copy, with .clone(), both times, or {AGAIN}")

def _outside(capture: Capture, watcher: Watcher, nodes: dict[UOp, UOp], inputs: set[int]) -> list[UOp]:
  """Of a graph's nodes, those that Tensors without storage, from the function's surroundings, stand for. Raises JitError if one reads an input."""
  found = []
  for reference, u, name in watcher.before.lazy:
    tensor = reference()
    if tensor is None or tensor.uop is not u or u not in nodes or u not in capture.waiting or u in capture.given: continue
    if any(below.op is Ops.BUFFER and id(below.storage) in inputs for below in u.toposort()):
      raise JitError(f"{name} is computed from an argument of this call, and has no storage; realize() it first")
    found.append(u)
  return found

def _host_random() -> tuple[Any, ...]:
  """The states of Python's own random numbers and of NumPy's global ones, as far as they are in use."""
  python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
  state = {} if numpy is None else numpy.get_state(legacy=False)
  values = (*state.get("state", {}).values(), state.get("has_gauss"))
  return None if python is None else python.getstate(), *(v.tobytes() if hasattr(v, "tobytes") else v for v in values)
