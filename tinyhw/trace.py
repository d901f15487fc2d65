"""Where things came from and when they happened: source lines of tensor operations, and the events of PROFILE=1.

`caller()` finds the line outside of tinyhw that made a call; `record` and `origin` remember it for a graph node as long as the node lives, `follow`
and `inherit` hand it on to what the node becomes. `event` and `span` fill a list that `chrome_trace` turns into what chrome://tracing and
Perfetto show. Nothing here decides when to record: callers ask TRACEMETA and PROFILE.

Cost: `caller` 0.25 us plus 0.06 us a frame; `record` 1.4 us more (Python 3.11, Zen 3, measured with timeit).
"""
from __future__ import annotations
import os
import sys
import time
from weakref import WeakKeyDictionary

TYPE_CHECKING = False  # typing is loaded only for type checkers: it would be most of this module's import time
if TYPE_CHECKING:
  from collections.abc import Mapping
  from types import TracebackType
  from typing import Any

Location = tuple[str, int, str]  # file, line, function

# Code whose file lies in the package, or beside it in a clone, is ours; so is what was compiled at run time under a name like "<tinyhw match>".
_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_PACKAGE)
_OURS = tuple(os.path.join(*parts, "") for parts in ((_PACKAGE,), (_ROOT, "drivers"), (_ROOT, "autogen"))) + ("<tinyhw",)
# a decorator's frame, or an import's, is not the line that the user wrote
_WRAPPERS = tuple(os.path.join(os.sep, *parts) for parts in (("functools.py",), ("contextlib.py",), ("importlib", "__init__.py")))
_inside: dict[str, bool] = {}

def _is_inside(filename: str) -> bool:
  """Whether a file belongs to tinyhw or is the standard library's wrapping machinery. Remembered per name."""
  ours = filename.startswith((*_OURS, "<frozen ")) or (not os.path.isabs(filename) and os.path.abspath(filename).startswith(_OURS))
  found = _inside[filename] = ours or filename.endswith(_WRAPPERS)
  return found

def caller() -> Location | None:
  """The innermost line outside of tinyhw on this thread's stack; None if there is none."""
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

# Tensor operations leave their lines in _lines (TRACEMETA). Rewrites hand lines on only while _origins has any: `follow` puts them there, and the
# engine calls it only when a listing wants them (DEBUG=7), so that otherwise a rewrite pays for one look at an empty table.
_lines: WeakKeyDictionary[Any, Location] = WeakKeyDictionary()
_origins: WeakKeyDictionary[Any, Location] = WeakKeyDictionary()

def record(node: Any, location: Location | None = None) -> None:
  """Remember where node came from: `location`, or the user's line now. The first record of a node stays."""
  if location is None: location = caller()
  if location is not None: _lines.setdefault(node, location)

def follow(node: Any, location: Location | None) -> None:
  """From now on rewrites hand on that node came from location; None changes nothing."""
  if location is not None: _origins.setdefault(node, location)

def unfollow() -> None:
  """Forget all that `follow` and `inherit` noted: the next graph may have equal nodes from other lines."""
  _origins.clear()

def inherit(new: Any, old: Any) -> None:
  """What a rewrite made of `old` came from the same line. Does nothing where that line is not followed, or new has one."""
  location = _origins.get(old)
  if location is not None: _origins.setdefault(new, location)

def hand_on(became: Mapping[Any, Any]) -> None:
  """A walk has made of each key the node that is its value: `inherit` for all of them."""
  if not _origins: return
  for old, new in became.items(): inherit(new, old)

def origin(node: Any) -> Location | None:
  """The line that node came from, or None."""
  return _origins.get(node) or _lines.get(node)

# **** events ****

class Event:
  """Something that happened on a lane ("host", "CPU", ...) from start_ns to end_ns of time.perf_counter_ns; equal for a point in time."""
  __slots__ = ("name", "lane", "start_ns", "end_ns", "details")

  def __init__(self, name: str, lane: str, start_ns: int, end_ns: int, details: dict[str, Any]) -> None:
    self.name, self.lane, self.start_ns, self.end_ns, self.details = name, lane, start_ns, end_ns, details

  def __repr__(self) -> str: return f"Event({self.name!r}, {self.lane!r}, {self.start_ns}, {self.end_ns}, {self.details})"

events: list[Event] = []

def event(name: str, lane: str = "host", start_ns: int | None = None, end_ns: int | None = None, **details: Any) -> None:
  """Append an event; without times it is a point: now."""
  start = time.perf_counter_ns() if start_ns is None else start_ns
  events.append(Event(name, lane, start, start if end_ns is None else end_ns, details))

class span:
  """`with span("schedule"):` records an event from enter to exit."""
  def __init__(self, name: str, lane: str = "host", **details: Any) -> None:
    self.name, self.lane, self.details, self.start_ns = name, lane, details, 0

  def __enter__(self) -> span:
    self.start_ns = time.perf_counter_ns()
    return self

  def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
    events.append(Event(self.name, self.lane, self.start_ns, time.perf_counter_ns(), self.details))

def chrome_trace() -> dict[str, Any]:
  """The events in the Trace Event Format ("X" complete, "i" instant; microseconds), ready for json.dump."""
  lanes = {lane: number for number, lane in enumerate(dict.fromkeys(e.lane for e in events))}
  names = [{"ph": "M", "name": "thread_name", "pid": 0, "tid": number, "args": {"name": lane}} for lane, number in lanes.items()]
  rows: list[dict[str, Any]] = []
  for e in events:
    row: dict[str, Any] = {"name": e.name, "pid": 0, "tid": lanes[e.lane], "ts": e.start_ns / 1e3, "args": e.details}
    rows.append(row | ({"ph": "i", "s": "t"} if e.end_ns == e.start_ns else {"ph": "X", "dur": (e.end_ns - e.start_ns) / 1e3}))
  return {"traceEvents": names + rows}
