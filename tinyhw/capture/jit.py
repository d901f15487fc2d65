"""TinyJit: run a function twice, then replay the kernels that it launched.

The first call runs as usual, and fills caches. The second is captured: every kernel and copy that it runs becomes part
of a `Recording` of the device, a prebuilt command buffer. Later calls put the new inputs' addresses and variables into
the patch points and submit once. No Python runs per kernel (replay.py). Outputs get new storage in each call, so
results of earlier calls keep their values. Numbers of the two calls are compared. If values of Variables decided
differently, the second may count as another first call (calls.py).

A call that cannot be replayed faithfully raises JitError. docs/design/capture.md says which differences are seen.
"""
from __future__ import annotations
import copy
import sys
import threading
import types
from collections import Counter
from typing import Any, Generic, ParamSpec, TypeVar
from collections.abc import Callable

from tinyhw.capture.calls import CallSignature, Ran, comparable, data_of, kind_of_call
from tinyhw.capture.gradients import AGAIN, carries_gradient, refuse_gradient, separate_gradients
from tinyhw.capture.names import NamedFunction, by_name, is_named, qualified_name, resolved
from tinyhw.capture.replay import Captured, check_result
from tinyhw.capture.structure import Arguments, Rest, collect, difference, same_rest, tensors_in
from tinyhw.capture.guards import Guards, CallTracer
from tinyhw.capture.views import base_buffer, binds_in, same_view
from tinyhw.config import JIT, TRAINING, FirstUse, of_variables
from tinyhw.device import Device
from tinyhw.dtype import DType, dtypes
from tinyhw.engine.memory.buffers import Storage, buffer_of
from tinyhw.engine.memory.writes import base_of, is_own, memory_of, waiting_writes
from tinyhw.engine.run import realize as realizing
from tinyhw.engine.run.realize import Capture, this_thread
from tinyhw.errors import ArgumentError, JitError as JitError
from tinyhw.helpers import uncollected
from tinyhw.methods.base import GradMode, leaves
from tinyhw.methods.graph.graph import show
from tinyhw.tensor import Tensor
from tinyhw.threads import lock
from tinyhw.uop.decide import Decisions, note, noting
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

P = ParamSpec("P")
R = TypeVar("R")

_MOST_OTHERS = 64     # captures of one function for Variable values that decide otherwise

_MODES = ("Tensor.training", "the default float", "the default int", "the default device", "Tensor.no_grad")

@of_variables
def _default_types() -> tuple[DType, DType]: return dtypes.default_float, dtypes.default_int

def modes() -> tuple[Any, ...]:
  """Return the global settings that affect every function, in the order of _MODES."""
  return TRAINING.value != 0, *_default_types(), Device.DEFAULT, GradMode.off

def kind_of(u: UOp) -> str:
  """Describe shape, type and device of a Tensor as text."""
  return f"{show(u.shape)} {u.dtype} on {u.device}"

class TinyJit(Generic[P, R]):
  """Decorator: the function's kernels are captured in its second call and replayed afterwards.

  Arguments are Tensors (also in lists, tuples, dicts and dataclasses), bound Variables, and plain values, which must
  not change. Results have the same forms. It works on functions, methods (each object has its own capture) and callable
  objects.

  Raises JitError for calls that it cannot replay. That includes a live-in of the function with another value than at
  the capture: a global or free variable, an attribute, an item, a context variable, an environment variable, the
  contents of an array or ctypes number. Not seen after the capture are other contents of a file, a clock, memory that a
  pointer points to, and reads by code in C or in the standard library.

  >>> double = TinyJit(lambda x: (x * 2).realize())
  >>> [double(Tensor([k])).tolist() for k in range(4)]
  [[0], [2], [4], [6]]
  """
  __slots__ = ("fxn", "cnt", "captured", "lock", "rest", "modes", "guards", "shared", "names", "leaves_training",
               "_bound", "_ran", "_of",
               "_others", "__weakref__")

  def __init__(self, fxn: Callable[P, R], **kwargs: Any):
    if not callable(fxn) and not isinstance(fxn, (classmethod, staticmethod)):
      raise ArgumentError(f"TinyJit wants a function, or something else that can be called, not {fxn!r}")
    self.fxn = fxn
    self.lock = threading.RLock()               # held by calls that run the function: threads take turns
    # For the TinyJit of one object, made by __get__: the object's identity. The object outlives this one.
    self._bound = 0
    self._of: dict[int, _Kept] = {}             # TinyJits of classes, and of objects without a __dict__
    self._forget()

  def reset(self) -> None:
    """Forget the capture. The next two calls run the function again.

    A TinyJit from a pickle then uses the function that has its name here.
    """
    self.fxn = resolved(self.fxn)
    self._forget()

  def _forget(self) -> None:
    self.cnt = 0
    self.captured: Captured | None = None
    # Captures for values of Variables with which the function decides otherwise.
    self._others: list[TinyJit[P, R]] = []
    self.rest: tuple[Rest, ...] = ()          # non-Tensor arguments of the captured call
    self.modes: tuple[Any, ...] = ()
    self.names: tuple[str, ...] = ()
    self.leaves_training: int | None = None   # Tensor.training, if the function sets it before reading it
    self.guards = Guards()
    # Inputs whose buffer is also that of a Tensor that the function reads by itself.
    self.shared: list[int] = []
    self._ran: list[Ran] = []                 # calls that ran the function and were not captured

  # ***** as Python sees it *****

  def __getattr__(self, name: str) -> Any:
    """Return an attribute of the function, for tools that look through decorators, and for its name.

    Only objects have this: the class has a signature of its own.
    """
    if name == "__wrapped__": return self.fxn
    if name == "__name__": return getattr(self.fxn, name, type(self.fxn).__name__)
    raise AttributeError(f"a TinyJit has no attribute {name!r}")

  def __get__(self, obj: Any, objtype: Any = None) -> Any:
    if isinstance(self.fxn, staticmethod): return self
    if isinstance(self.fxn, classmethod): obj = objtype if obj is None else type(obj)
    if obj is None: return self
    key = f"TinyJit {id(self)}"
    table = None if isinstance(obj, type) else getattr(obj, "__dict__", None)
    found = self._of.get(id(obj)) if table is None else table.get(key)
    bound = found.jit if isinstance(found, _Kept) else None
    if bound is None or bound._bound != id(obj):    # a shallow copy of an object shares the object's entries
      bound = TinyJit(self.fxn.__get__(obj if not isinstance(self.fxn, classmethod) else None,
                                       objtype if objtype is not None else type(obj)))
      bound._bound = id(obj)
      if table is None: self._of[id(obj)] = _Kept(bound)
      else: table[key] = _Kept(bound)
    return bound

  def __reduce__(self) -> Any:
    """Pickle with the capture and the name of the function (pickle.py).

    Without a capture, a decorated function pickles by its name, as functions do, and others by their parts. So do
    TinyJits of methods and of callable objects: they capture again, since attributes of the pickled object may change.
    The TinyJit of an object's decorated method is asked of the object that is pickled with it.
    """
    # as methods do
    if self._bound and isinstance(self.fxn, types.MethodType): return getattr, (self.fxn.__self__, self.fxn.__name__)
    if self.captured is not None and isinstance(self.fxn, (types.FunctionType, staticmethod, NamedFunction)):
      from tinyhw.capture.pickle import restored, saved  # hidden: few programs pickle one
      return restored, (saved(self),)
    name = qualified_name(self.fxn)
    return (by_name, name) if is_named(self, *name) else (TinyJit, (self.fxn,))

  def __copy__(self) -> Any:
    if self._bound: return self
    return self.__deepcopy__({}) if isinstance(self.fxn, NamedFunction) else TinyJit(self.fxn)

  def __deepcopy__(self, memo: dict[int, Any]) -> Any:
    if isinstance(self.fxn, NamedFunction):    # there is no function to capture again
      from tinyhw.capture.pickle import restored, saved  # hidden: few programs copy one
      return TinyJit(self.fxn) if self.captured is None else restored(copy.deepcopy(saved(self), memo))
    made = copy.deepcopy(self.fxn, memo)
    return getattr(made.__self__, made.__name__) if self._bound and isinstance(made,
                                                                               types.MethodType) else TinyJit(made)

  # ***** calls *****

  def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
    given = collect(args, kwargs)
    _, tensors, variables, _ = given
    if self.captured is None or not JIT.value or this_thread.capture is not None:
      with self.lock:
        _realize(tensors)
        # an outer capture takes the kernels itself
        if not JIT or self.cnt == 0 or this_thread.capture is not None:
          self.cnt += 1
          return self._first(given, *args, **kwargs)
        if self.captured is None: return self._capture(given, *args, **kwargs)
    with lock:
      captured = self.captured
      if captured is None: raise JitError("the TinyJit was reset by another thread during this call; call it again")
      for t in tensors:
        if t.uop.op is not Ops.BUFFER: _realize([t])
      if captured.symbolic: variables = self._variables(given, captured.symbolic)
      other = (None if variables == captured.variables or captured.decisions.hold(variables)
               else self._another(variables))
      if other is None:
        self._check(captured, given, variables)
        result: R = captured.replay(tensors + captured.gradients.before(tensors) if captured.gradients.held
                                    else tensors, variables)
    if other is not None: return other(*args, **kwargs)
    if self.leaves_training is not None: TRAINING.value = self.leaves_training
    return result

  def _another(self, values: dict[str, int]) -> TinyJit[P, R]:
    """Return the capture for values of the Variables with which the function decides otherwise.

    Its first call captures it. When there are too many, the oldest is forgotten.
    """
    made = [other for other in self._others if other.captured is not None]     # without failed captures
    for other in made:
      if other.captured.decisions.hold(values): return other    # type: ignore[union-attr]  # it is not None
    other = TinyJit(self.fxn.found("capture again") if isinstance(self.fxn, NamedFunction) else self.fxn)
    other.cnt = 1
    other._ran = [ran for ran in self._ran if ran.decisions.hold(values)]
    self._others = [*made[1 - _MOST_OTHERS:], other]
    return other

  def _first(self, given: Arguments, *args: Any, **kwargs: Any) -> R:
    """Run the function. Remember its kernels and the data that it copies from the host, so that later calls can see
    changed numbers."""
    if not JIT or this_thread.capture is not None: return self._plain(*args, **kwargs)
    kind, data = kind_of_call(given), Counter[Any]()
    outer, kernels, decided = this_thread.stored, list[UOp](), dict[UOp, bool]()
    def stored(buffer: Storage, content: bytes) -> None:
      data[data_of(buffer, content)] += 1
      if outer is not None: outer(buffer, content)
    try:
      this_thread.stored, this_thread.kernels = stored, kernels
      with noting() as decided: return self._plain(*args, **kwargs)
    finally:
      this_thread.stored = outer
      this_thread.kernels = None
      # for the first call of an outer TinyJit
      for condition, outcome in decided.items(): note(condition, outcome)
      self._remember(Ran(kind, Decisions(decided), data, kernels))

  def _remember(self, ran: Ran) -> None: self._ran = [*self._ran[1 - _MOST_OTHERS:], ran]

  def _plain(self, *args: Any, **kwargs: Any) -> R:
    result = self.fxn(*args, **kwargs)
    if this_thread.capture is not None: self._complete(this_thread.capture)
    for t in tensors_in(result): t.realize()
    return result

  def _complete(self, capture: Capture) -> None:
    """Compute pending writes and gradients that the captured function left in tensors. All earlier writes were done
    when the capture began."""
    left = [g for t in leaves() if (g := t.grad) is not None and is_own(g) and capture.grads.get(id(t)) is not g]
    if left: Tensor.realize(*left)
    waiting = waiting_writes()
    if waiting: realizing.realize(waiting)

  # ***** capturing *****

  def _capture(self, given: Arguments, *args: Any, **kwargs: Any) -> R:
    names, tensors, _, rest = given
    buffers = {id(buffer_of(base_buffer(t.uop))) for t in tensors}
    if len(buffers) != len(tensors):
      raise JitError("two inputs of a TinyJit function share a buffer; pass a copy of one, with .clone()")
    variables = self._variables(given, range(len(tensors)))
    with lock:
      separate_gradients(buffers)
      waiting = waiting_writes()
      carrying = [(base_of(u).storage, u) for u in waiting if carries_gradient(u)]
      realizing.realize(waiting)
    watcher = CallTracer(self.fxn, [r.value for r in rest if r.is_branch])
    for r in rest:
      if not r.is_branch: watcher.add_object(f"argument {r.name}", r.value)
    views, kind = [t.uop for t in tensors], kind_of_call(given)
    before, drawn = modes(), _host_random()
    capture = Capture({id(t): t.grad for t in leaves() if t.grad is not None},
                      lambda nodes: _outside(capture, watcher, nodes, buffers), watcher.paused)
    kernels: list[UOp] = []
    outer, use = this_thread.stored, FirstUse(TRAINING)
    def noted() -> tuple[R, dict[UOp, bool]]:
      with use, noting() as decided, watcher: return self._plain(*args, **kwargs), decided
    try:
      this_thread.capture, this_thread.kernels = capture, kernels
      this_thread.stored = lambda buffer, content: capture.stored.append((buffer, content))
      # No garbage collection: code that it calls is not the function's.
      result, decided = uncollected(noted)
    finally:
      this_thread.capture, this_thread.stored, this_thread.kernels = None, outer, None
      if watcher.is_noting: watcher.stop()   # an interrupt came before it ended
    self.leaves_training = TRAINING.value if use.first == "set" else None
    with lock:
      self._take(capture, watcher, given, variables, result, (views, kernels, carrying), decided, kind, before, drawn)
    return result

  def _take(self, capture: Capture, watcher: CallTracer, given: Arguments, variables: dict[str, int], result: Any,
            found: tuple[list[UOp], list[UOp], list[tuple[Storage, UOp]]], decided: dict[UOp, bool],
            kind: CallSignature, before: tuple[Any, ...], drawn: Any) -> None:
    """Turn a captured call into a Captured, or raise JitError. Do nothing if it counts as a first call (_is_first).

    found: the call's views of its arguments, its kernels, and the earlier pending writes through which gradients flow.
    decided: its decisions by values of Variables.
    """
    names, tensors, _, rest = given
    views, kernels, carrying = found
    if not capture.steps:
      raise JitError("the function ran no kernel while it was captured; TinyJit has nothing to replay: call it "
                     "without TinyJit")
    check_result(result)
    self._check_effects(watcher, before, drawn)
    if self._is_first(Ran(kind, Decisions(decided), Counter([data_of(*stored) for stored in capture.stored]), kernels),
                      variables):
      return
    watcher.forget()
    for t, view in zip(tensors, views):
      if same_view(t.uop, view) and buffer_of(base_buffer(t.uop)) is not None: continue
      raise JitError("the function puts other storage into one of its arguments (replace, or assign to what had "
                     "none); return it instead")
    captured = Captured(capture, tensors, watcher.names("grad"), variables, result, Decisions(decided, variables),
                        getattr(self.fxn, "__qualname__", type(self.fxn).__name__))
    for storage, u in carrying:
      if capture.differentiated and any(w.buffer is storage for w in captured.watched): refuse_gradient(u)
    self.guards = watcher.after()
    named = {id(node.storage) for t in self.guards.tensors if (node := memory_of(t.uop)[0]) is not None}
    self.shared = [k for k, slot in enumerate(captured.inputs) if id(slot.buffer) in named]
    if any(k >= len(tensors) for k in self.shared):
      raise JitError("the function uses a gradient that it also has by another name, and which of the two a replay "
                     "should take is not known; give "
                     "the other one a copy, with .clone()")
    self.rest, self.modes, self.names = rest, before, names
    self.cnt += 1
    self.captured = captured

  def _check_effects(self, watcher: CallTracer, before: tuple[Any, ...], drawn: Any) -> None:
    """Raise JitError for effects of the captured call that replays would omit, or would repeat with old values."""
    for name, old, new in watcher.before.changes():
      what = "puts another Tensor into" if isinstance(old, Tensor) or isinstance(new, Tensor) else "changes"
      raise JitError(f"the function {what} {name}, which replays would not do; " +
                     ("change the Tensor there with assign(), or return the new one and put it there outside of the "
                      "function" if what != "changes"
                      else "do that outside of the function, or keep what changes in a Tensor, and assign() to it"))
    for mode, old, new in zip(_MODES, before, modes()):
      if old == new or mode is _MODES[0] and self.leaves_training is not None: continue
      raise JitError(f"the function changes {mode} from {old} to {new}, which replays would not do; do that outside "
                     f"of it")
    if any(old != new and (k or watcher.has_drawn) for k, (old, new) in enumerate(zip(drawn, _host_random()))):
      raise JitError("the function draws from the random module of Python or NumPy, and replays would use the same "
                     "numbers; draw with "
                     "Tensor.rand, or outside")

  def _is_first(self, now: Ran, values: dict[str, int]) -> bool:
    """Is this the first call with these decisions, and do its numbers differ from those of the call before?

    Then it is unknown which numbers are constant for these decisions, and the call is remembered as a first one. Raises
    JitError if a number changed for no visible reason.
    """
    alike = [ran for ran in self._ran if ran.kind.is_like(now.kind)]
    before = comparable(alike, now.kind, values)
    why = before.difference(now) if before is not None else None
    if why is not None: raise JitError(why)
    if before is not None or not alike or alike[-1].difference(now) is None: return False
    self._remember(now)
    return True

  def _variables(self, given: Arguments, symbolic: Any) -> dict[str, int]:
    """Return the values of Variables among the arguments, and in the shapes of Tensors among them."""
    names, tensors, variables, _ = given
    found = dict(variables)
    for k in symbolic:
      for bound in binds_in(tensors[k].uop):
        variable, value = bound.src[0], int(bound.src[1].arg)
        if found.setdefault(variable.expr, value) != value:
          raise JitError(f"argument {names[k]} has {variable.expr} bound to {value}, another one to "
                         f"{found[variable.expr]}; bind it once")
    return found

  # ***** replays *****

  def _check(self, captured: Captured, given: Arguments, variables: dict[str, int]) -> None:
    """Raise JitError unless this call matches the captured one."""
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
      raise JitError(f"argument {self.names[k]} was, when captured, a Tensor that the function also uses by itself, "
                     f"and is another one now; "
                     f"what of the two was meant where is not known: {AGAIN}, and give it a copy, with .clone()")
    self.guards.check()
    if captured.waiting: check_waiting(captured)
    if captured.gradients.absent: captured.gradients.check(tensors)

class _Kept:
  """The TinyJit of a method, in the attributes of its object.

  Pickles and deep copies of the object hold None instead, and make their own TinyJit when it is asked for.
  """
  __slots__ = ("jit",)
  def __init__(self, jit: TinyJit[Any, Any]): self.jit = jit
  def __reduce__(self) -> Any: return _nothing, ()

def _nothing() -> None:
  """Return None: a copy of an object has no TinyJit of its own yet."""

def check_waiting(captured: Captured) -> None:
  """Raise JitError if a Tensor without storage, which the function uses by itself, has another value now."""
  for reference, u in captured.waiting:
    if (holder := reference()) is not None and holder.uop is not u:
      raise JitError(f"a Tensor of shape {show(u.shape)} without storage that the function used when it was captured "
                     f"has been realized or written "
                     f"since, or what it is computed from was; realize() it before the function is captured, or "
                     f"{AGAIN}")

def _realize(tensors: list[Tensor]) -> None:
  for t in tensors:
    if t.uop.op is not Ops.BUFFER and not realizing.is_buffer(t.uop): t.realize()

def _refuse_names(captured: tuple[str, ...], names: tuple[str, ...]) -> None:
  if len(captured) != len(names):
    raise JitError(f"captured with {len(captured)} Tensors, called with {len(names)}; {AGAIN}")
  old, new = next((old, new) for old, new in zip(captured, names) if old != new)
  raise JitError(f"the Tensor argument {old} of the captured call is called {new} now; {AGAIN}")

def _refuse_argument(name: str, view: UOp, u: UOp) -> None:
  old, new = kind_of(view), kind_of(u)
  if old != new: raise JitError(f"argument {name} was captured as {old}, and is {new} now; {AGAIN}")
  raise JitError(f"argument {name} was captured as another view of its buffer (a slice, a transpose) than this one of "
                 f"the same shape; pass "
                 f"a copy, with .clone(), both times, or {AGAIN}")

def _outside(capture: Capture, watcher: CallTracer, nodes: dict[UOp, UOp], inputs: set[int]) -> list[UOp]:
  """Return nodes of a graph that are values of Tensors without storage that the function reads by itself.

  Raises JitError if one depends on an input.
  """
  found = []
  for reference, u, name in watcher.before.lazy:
    tensor = reference()
    if tensor is None or tensor.uop is not u or u not in nodes or u not in capture.waiting or u in capture.given:
      continue
    if any(below.op is Ops.BUFFER and id(below.storage) in inputs for below in u.toposort()):
      raise JitError(f"{name} is computed from an argument of this call, and has no storage; realize() it first")
    found.append(u)
  return found

def _host_random() -> tuple[Any, ...]:
  """Return the states of Python's random numbers and of NumPy's global ones, if these modules are loaded."""
  python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
  state = {} if numpy is None else numpy.get_state(legacy=False)
  values = (*state.get("state", {}).values(), state.get("has_gauss"))
  return None if python is None else python.getstate(), *(v.tobytes() if hasattr(v, "tobytes") else v for v in values)
