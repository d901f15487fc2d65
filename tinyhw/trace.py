"""Record source lines of tensor operations, and the events of PROFILE=1.

`caller()` finds the line outside of tinyhw that made a call. `record` and `origin` keep it for a graph node as long as
the node lives. `follow` and `inherit` pass it on to nodes that replace the node. `event` and `span` fill a list that
`chrome_trace` converts for chrome://tracing and Perfetto. `recorder` receives everything under VIZ=1 and PROFILE=1
(tinyhw/viz). Otherwise it is None, and tinyhw/viz is not loaded. Nothing here decides when to record: callers ask
TRACEMETA, VIZ and PROFILE.

Cost: `caller` 0.25 us plus 0.06 us a frame; `record` 1.4 us more (Python 3.11, Zen 3, measured with timeit).
"""
from __future__ import annotations
import functools
import importlib
import os
import sys
import threading
import time
from weakref import WeakKeyDictionary

from tinyhw.threads import lock

TYPE_CHECKING = False  # typing is loaded only for type checkers: it would be most of this module's import time
if TYPE_CHECKING:
  from collections.abc import Callable, Mapping
  from types import FrameType, TracebackType
  from typing import Any, Protocol, TypeVar
  F = TypeVar("F", bound=Callable[..., Any])

  class Recorder(Protocol):
    """Reports of compiler and engine about their work. A thread makes one thing at a time: a schedule, or a kernel."""
    def begin(self, kind: str, name: str, node: Any, device: str = "") -> None:
      """This thread begins to make a "schedule" or "kernel" from a node, or several."""
    def passed(self, name: str, made: Any, because: str = "") -> None:
      """A step of it is done; `made` is its result: a node, a Program, a machine Function, or an object of a
      schedule."""
    def rewrite(self, rule: Callable[..., Any], before: Any, after: Any) -> None:
      """A rule replaced a node."""
    def became(self, before: Any, after: Any, frame: FrameType) -> None:
      """A walk, whose frame this is, made one node of another."""
    def done(self, *made: Any) -> None:
      """The work that `begin` reported is done. made: for a schedule (Canonical, Schedule), for a kernel (Program,
      Code, listing)."""
    def loaded(self, runner: Any, start_ns: int) -> None:
      """The kernel that was made last, or was found on the disk, is loaded as this Runner; that began at this time."""
    def ran(self, sink: Any, runners: list[Any]) -> None:
      """A kernel of a schedule, by its expression, is run by these Runners."""
    def times(self) -> bool:
      """Is each launch to be timed?"""
    def launched(self, step: Any, start_ns: int, end_ns: int) -> None:
      """A Step of a run took this time."""
    def together(self, steps: list[Any], start_ns: int, end_ns: int) -> None:
      """Steps of a device that tells only when all of them were done."""
    def replayed(self, name: str, kernels: int, start_ns: int) -> None:
      """A TinyJit replayed so many kernels, until now."""
    def memory(self, buffer: Any, change: int) -> None:
      """A buffer was allocated (bytes above 0), or freed."""
    def moved(self, buffer: Any, direction: str, start_ns: int) -> None:
      """The host wrote to a buffer ("copyin") or read it ("copyout"), until now."""

Location = tuple[str, int, str]  # file, line, function

# Code is ours if its file lies in the package, or next to it in a clone. Code that was compiled at run time under a
# name like "<tinyhw match>" is ours, too.
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_PACKAGE)
_OURS = (tuple(os.path.join(*parts, "") for parts in ((_PACKAGE,), (_ROOT, "drivers"), (_ROOT, "autogen")))
         + ("<tinyhw",))
# A frame of a decorator or an import is not the line that the user wrote.
_WRAPPERS = tuple(os.path.join(os.sep, *parts) for parts in (("functools.py",), ("contextlib.py",),
                                                             ("importlib", "__init__.py")))
_inside: dict[str, bool] = {}

def _is_inside(filename: str) -> bool:
  """Whether a file belongs to tinyhw or is the standard library's wrapping machinery. Remembered per name."""
  ours = filename.startswith((*_OURS, "<frozen ")) or (not os.path.isabs(filename)
                                                       and os.path.abspath(filename).startswith(_OURS))
  return _inside.setdefault(filename, ours or filename.endswith(_WRAPPERS))

def caller() -> Location | None:
  """Return the innermost line outside of tinyhw on this thread's stack; None if there is none."""
  frame = sys._getframe(1)
  while frame is not None:
    filename = frame.f_code.co_filename
    inside = _inside.get(filename)
    if inside is None: inside = _is_inside(filename)
    if not inside: return filename, frame.f_lineno, frame.f_code.co_name
    frame = frame.f_back  # type: ignore[assignment]  # typeshed: f_back may be None, which ends the loop
  return None

def show(location: Location | None) -> str:
  """A location as text for listings: `model.py:12 forward`."""
  if location is None: return "?"
  return f"{os.path.basename(location[0])}:{location[1]} {location[2]}"

# **** origins of graph nodes ****

# Tensor operations leave their lines in their nodes' `line` (TRACEMETA). Rewrites pass lines on only if _origins has
# any. `follow` adds them, and the engine calls it only when a listing needs them (DEBUG=7). Otherwise a rewrite pays
# for one look at an empty table.
_origins: WeakKeyDictionary[Any, Location] = WeakKeyDictionary()

class _Here(threading.local):
  line: Location | None = None     # of the function of one line that this thread is in

_here = _Here()

def of_one_line(function: F) -> F:
  """Decorate a function that makes many nodes: all of them get the line of its caller, which is found once."""
  @functools.wraps(function)
  def within(*args: Any, **named: Any) -> Any:
    if _here.line is not None: return function(*args, **named)
    try:
      _here.line = caller()
      return function(*args, **named)
    finally: _here.line = None
  return within  # type: ignore[return-value]  # it is called as the function is

def record(node: Any, location: Location | None = None) -> None:
  """Record the origin of a node: `location`, or the user's line now. The first record of a node stays."""
  if node.line is None: node.line = location or _here.line or caller()

def follow(node: Any, location: Location | None) -> None:
  """Let rewrites pass on that node came from location. None changes nothing."""
  if location is not None: _origins.setdefault(node, location)

def unfollow() -> None:
  """Forget all records of `follow` and `inherit`: the next graph may have equal nodes from other lines."""
  _origins.clear()

def follows() -> bool:
  """Are origins passed on at present?"""
  return recorder is not None or bool(_origins)

def same_line(new: Any, old: Any) -> None:
  """Record that `new` has the line of `old`. Does nothing if that line is not followed, or new has one."""
  location = _origins.get(old)
  if location is not None: _origins.setdefault(new, location)

def inherit(new: Any, old: Any) -> None:
  """Record that a pass made `new` from `old`: it gets the same line, and the recorder is told."""
  same_line(new, old)
  if recorder is not None: recorder.became(old, new, sys._getframe(1))

def hand_on(became: Mapping[Any, Any]) -> None:
  """Call `inherit` for each key of a walk's results and the node made from it."""
  if not follows(): return
  for old, new in became.items():
    same_line(new, old)
    if recorder is not None: recorder.became(old, new, sys._getframe(1))

def origin(node: Any) -> Location | None:
  """Return the line that node came from, or None."""
  return _origins.get(node) or node.line

# **** the recorder ****

recorder: Recorder | None = None

def start_recorder() -> None:
  """Start the recorder. It checks itself whether the caller's VIZ or PROFILE is set."""
  global recorder
  with lock:
    if recorder is None: recorder = importlib.import_module("tinyhw.viz.record").start()
  assert recorder is not None
  # It notes the settings even if nothing runs from now on.
  recorder.times()

# **** events ****

MOST_EVENTS = 1 << 18  # more are counted, not kept: 0.4 KB each

class Event:
  """An event on a lane ("host", "CPU", ...) from start_ns to end_ns of time.perf_counter_ns. Both are equal for a point
  in time."""
  __slots__ = ("name", "lane", "start_ns", "end_ns", "details")

  def __init__(self, name: str, lane: str, start_ns: int, end_ns: int, details: dict[str, Any]) -> None:
    self.name, self.lane, self.start_ns, self.end_ns, self.details = name, lane, start_ns, end_ns, details

  def __repr__(self) -> str:
    return f"Event({self.name!r}, {self.lane!r}, {self.start_ns}, {self.end_ns}, {self.details})"

events: list[Event] = []
dropped = 0  # events beyond MOST_EVENTS

def host_lane() -> str:
  """Return the lane of this thread's own work."""
  thread = threading.current_thread()
  return "host" if thread is threading.main_thread() else f"host: {thread.name}"

def add(found: Event) -> None:
  """Append an event, unless there are too many."""
  global dropped
  if len(events) < MOST_EVENTS: events.append(found)
  else: dropped += 1

def event(name: str, lane: str = "host", start_ns: int | None = None, end_ns: int | None = None,
          **details: Any) -> None:
  """Append an event; without times it is a point: now."""
  start = time.perf_counter_ns() if start_ns is None else start_ns
  add(Event(name, lane, start, start if end_ns is None else end_ns, details))

class span:
  """`with span("schedule"):` records an event from enter to exit."""
  def __init__(self, name: str, lane: str = "host", **details: Any) -> None:
    self.name, self.lane, self.details, self.start_ns = name, lane, details, 0

  def __enter__(self) -> span:
    self.start_ns = time.perf_counter_ns()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
               traceback: TracebackType | None) -> None:
    add(Event(self.name, self.lane, self.start_ns, time.perf_counter_ns(), self.details))

# prefix of lanes whose events are values at a point in time
COUNTERS = "counters: "

def chrome_trace() -> dict[str, Any]:
  """The events in the Trace Event Format ("X" complete, "i" instant, "C" counter; microseconds), ready for
  json.dump."""
  found = list(events)
  lanes = {lane: number for number, lane in enumerate(dict.fromkeys(e.lane for e in found))}
  rows: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "tinyhw"}}]
  rows += [{"ph": "M", "name": "thread_name", "pid": 0, "tid": number, "args": {"name": lane}}
           for lane, number in lanes.items()
           if not lane.startswith(COUNTERS)]
  for e in found:
    row: dict[str, Any] = {"name": e.name, "pid": 0, "tid": lanes[e.lane], "ts": e.start_ns / 1e3, "args": e.details}
    if e.lane.startswith(COUNTERS): row["ph"] = "C"
    elif e.end_ns == e.start_ns: row |= {"ph": "i", "s": "t"}
    else: row |= {"ph": "X", "dur": (e.end_ns - e.start_ns) / 1e3}
    rows.append(row)
  return {"traceEvents": rows, "displayTimeUnit": "ns", "otherData": {"dropped": dropped}}
