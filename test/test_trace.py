"""tinyhw/trace.py: the user's line, origins of nodes, events."""
import gc
import inspect
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tinyhw import Tensor, nn, trace

class Node:
  line: trace.Location | None = None

def from_inside(filename: str) -> trace.Location | None:
  """trace.caller as a function of this file calls it."""
  scope: dict[str, Any] = {"caller": trace.caller}
  exec(compile("def inner(): return caller()\ndef outer(): return inner()", filename, "exec"), scope)
  location: trace.Location | None = scope["outer"]()
  return location

LINE_OF_CALL = inspect.getsourcelines(from_inside)[1] + 4
PACKAGE = Path(trace.__file__).parent

@pytest.mark.parametrize("filename", [str(PACKAGE / "tensor.py"), str(PACKAGE.parent / "drivers/cpu/ring.py"),
                                      "<tinyhw match>",
                                      "/usr/lib/python3.11/functools.py", "/usr/lib/python3.11/importlib/__init__.py",
                                      "<frozen importlib._bootstrap>"])
def test_frames_of_tinyhw_are_skipped(filename: str) -> None:
  assert from_inside(filename) == (__file__, LINE_OF_CALL, "from_inside")

@pytest.mark.parametrize("filename",
                         ["/home/me/tinyhw_experiments/a.py", "<stdin>", str(PACKAGE.parent / "examples/a.py")])
def test_other_frames_are_the_users(filename: str) -> None:
  assert from_inside(filename) == (filename, 1, "inner")

@pytest.mark.slow
def test_origin_lives_as_long_as_its_node() -> None:
  gc.collect()
  before = len(trace._origins)
  node, new = Node(), Node()
  trace.inherit(new, node)
  assert trace.origin(node) is None and trace.origin(new) is None
  trace.record(node)
  first = trace.origin(node)
  assert first is not None and first[2] == "test_origin_lives_as_long_as_its_node"
  assert trace.show(first) == f"test_trace.py:{first[1]} {first[2]}" and trace.show(None) == "?"
  trace.record(node, ("other.py", 1, "f"))
  trace.inherit(new, node)
  assert trace.origin(node) == first and trace.origin(new) is None, "lines are handed on only where that was asked for"
  trace.follow(node, first)
  trace.inherit(new, node)
  assert trace.origin(node) == trace.origin(new) == first
  del node, new
  gc.collect()
  assert len(trace._origins) == before

def test_a_function_of_one_line_finds_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
  lines = iter(range(100))
  monkeypatch.setattr(trace, "caller", lambda: ("user.py", next(lines), "step"))
  def recorded() -> int:
    node = Node()
    trace.record(node)
    assert node.line is not None
    return node.line[1]
  def two() -> list[int]: return [recorded(), recorded()]
  def fails() -> None: raise ValueError(recorded())
  assert two() == [0, 1]
  of_one = trace.of_one_line(two)
  assert of_one() == [2, 2] and of_one() == [3, 3] and trace.of_one_line(lambda: of_one() + two())() == [4] * 4
  with pytest.raises(ValueError, match="5"): trace.of_one_line(fails)()
  other = list[list[int]]()
  def elsewhere() -> list[int]:
    thread = threading.Thread(target=lambda: other.append(two()))
    thread.start()
    thread.join()
    return two()
  assert trace.of_one_line(elsewhere)() == [6, 6] and other == [[7, 8]], "another thread has another line"
  assert two() == [9, 10]

def test_the_line_of_a_step_of_an_optimizer_is_the_users() -> None:
  x = Tensor([1.0, 2.0], requires_grad=True)
  optimizer = nn.optim.Adam([x], lr=0.1)
  (x * x).sum().backward()
  with Tensor.train(): changed = optimizer.schedule_step()
  line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]  # CPython has frames
  assert {t.uop.metadata for t in changed} == {(__file__, line, "test_the_line_of_a_step_of_an_optimizer_is_the_users")}

def test_unfollow_forgets_what_was_handed_on() -> None:
  node, new = Node(), Node()
  trace.record(node, ("other.py", 1, "f"))
  trace.follow(node, trace.origin(node))
  trace.inherit(new, node)
  trace.unfollow()
  assert trace.origin(node) == ("other.py", 1, "f") and trace.origin(new) is None and not trace._origins

def test_events_become_a_chrome_trace(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(trace, "events", [])
  with trace.span("schedule", nodes=3): pass
  trace.event("kernel", "CPU", 2000, 5000)
  trace.event("mark")
  trace.event("memory", trace.COUNTERS + "CPU", 4000, 4000, bytes=12)
  rows = json.loads(json.dumps(trace.chrome_trace()))["traceEvents"]
  assert [row["ph"] for row in rows] == ["M", "M", "M", "X", "X", "i", "C"]
  assert [row["args"]["name"] for row in rows[:3]] == ["tinyhw", "host", "CPU"]
  assert rows[3]["name"] == "schedule" and rows[3]["args"] == {"nodes": 3}
  assert rows[4] == {"name": "kernel", "pid": 0, "tid": 1, "ts": 2.0, "args": {}, "ph": "X", "dur": 3.0}
  assert rows[6]["args"] == {"bytes": 12}
  assert repr(trace.events[1]) == "Event('kernel', 'CPU', 2000, 5000, {})"

def test_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(trace, "events", [])
  monkeypatch.setattr(trace, "MOST_EVENTS", 3)
  monkeypatch.setattr(trace, "dropped", 0)
  for i in range(5): trace.event(f"{i}")
  assert [e.name for e in trace.events] == ["0", "1", "2"] and trace.dropped == 2
  assert trace.chrome_trace()["otherData"] == {"dropped": 2}

def test_lanes_of_threads() -> None:
  found: list[str] = []
  thread = threading.Thread(target=lambda: found.append(trace.host_lane()), name="loader")
  thread.start()
  thread.join()
  assert found == ["host: loader"] and trace.host_lane() == "host"

class Listener:
  """A recorder that keeps the reports of walks."""
  def __init__(self) -> None: self.heard: list[tuple[Any, Any, str]] = []
  def became(self, before: Any, after: Any, frame: Any) -> None:
    self.heard.append((before, after, frame.f_code.co_name))

def test_a_recorder_hears_what_walks_make(monkeypatch: pytest.MonkeyPatch) -> None:
  assert not trace.follows()
  node, new, other = Node(), Node(), Node()
  listener = Listener()
  monkeypatch.setattr(trace, "recorder", listener)
  assert trace.follows()
  trace.inherit(new, node)
  trace.hand_on({node: other})
  assert listener.heard == [(node, new, "test_a_recorder_hears_what_walks_make"),
                            (node, other, "test_a_recorder_hears_what_walks_make")]
  trace.same_line(new, node)
  assert len(listener.heard) == 2
