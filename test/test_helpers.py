"""tinyhw/helpers.py: the small functions, against their definition in plain Python where there is one."""
import array
import gc
import io
import math
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from tinyhw import helpers, trace
from tinyhw.__main__ import main
from tinyhw.engine.run import show
from tinyhw.errors import ArgumentError, ShapeError, TinyError
from tinyhw.helpers import Context, GlobalCounters, Profiling, Timing

def test_lists() -> None:
  assert helpers.prod(()) == 1 and helpers.prod([2, 3, 4]) == 24
  assert (helpers.argfix() == () and helpers.argfix(1, 2) == helpers.argfix((1, 2)) == helpers.argfix([1, 2]) == (1, 2)
          and helpers.argfix(()) == ())
  assert helpers.all_same([]) and helpers.all_same([1, 1]) and not helpers.all_same([1, 2])
  assert helpers.dedup([3, 1, 3, 2, 1]) == [3, 1, 2]
  assert helpers.flatten([[1], [], [2, 3]]) == [1, 2, 3]
  assert helpers.fully_flatten([[1, (2, [])], "ab", 3]) == [1, 2, "ab", 3] and helpers.fully_flatten(5) == [5]
  assert helpers.partition(range(5), lambda x: x % 2 == 0) == ([0, 2, 4], [1, 3])
  assert helpers.merge_dicts([{"a": 1}, {"b": 2, "a": 1}]) == {"a": 1, "b": 2}
  assert helpers.get_single_element({7}) == 7
  assert [x for x, _ in zip(helpers.count(3, 2), range(3))] == [3, 5, 7]

@pytest.mark.parametrize("x,shape", [(3, ()), ([], (0,)), ([[], []], (2, 0)), ([[1, 2, 3], (4, 5, 6)], (2, 3)),
                                     ("abc", ()), (range(4), (4,)),
                                     ([SimpleNamespace(shape=(2, 5), __len__=0)], (1,))])
def test_get_shape(x: object, shape: tuple[int, ...]) -> None: assert helpers.get_shape(x) == shape

@pytest.mark.parametrize("call,error,message", [
  (lambda: helpers.argfix((1, 2), 3), ArgumentError, "mixes a sequence and other arguments; pass one sequence"),
  (lambda: helpers.get_shape([[1, 2], [3]]), ShapeError, r"inhomogeneous shape: item 0 has shape \(2,\) and item 1 "
   r"has shape \(1,\)"),
  (lambda: helpers.get_shape([[1], 3]), ShapeError, r"item 1 has shape \(\); make the nested lists equally long"),
  (lambda: helpers.get_single_element([1, 2]), ArgumentError, "expected one item, got 2"),
  (lambda: helpers.merge_dicts([{"a": 1}, {"a": 2}]), ArgumentError, "cannot merge: 'a' is 1 and 2"),
  (lambda: helpers.colored("x", "pink"), ArgumentError, "no color is named 'pink'; use one of black, red")])
def test_refusals(call: object, error: type[TinyError], message: str) -> None:
  with pytest.raises(error, match=message): call()  # type: ignore[operator]

@given(st.integers(-10**9, 10**9), st.integers(-10**4, 10**4).filter(bool))
def test_integer_division(x: int, y: int) -> None:
  assert helpers.cdiv(x, y) == math.trunc(x / y) and helpers.cdiv(x, y) * y + helpers.cmod(x, y) == x
  assert helpers.cmod(x, y) == math.fmod(x, y)
  assert helpers.ceildiv(x, abs(y)) == math.ceil(x / abs(y))
  assert 0 <= helpers.round_up(x, abs(y)) - x < abs(y) and helpers.round_up(x, abs(y)) % y == 0

def test_numbers() -> None:
  assert helpers.cdiv(5, 0) == 0 and helpers.cmod(5, 0) == 5
  assert helpers.polyN(2.0, [1, 2, 3]) == 11.0
  assert helpers.getbits(0b110100, 2, 4) == 0b101 and helpers.getbits(0xFF, 0, 0) == 1

def test_colors() -> None:
  assert helpers.colored("x", "red") == "\033[31mx\033[0m" and helpers.colored("x", "RED") == "\033[91mx\033[0m"
  assert helpers.colored("x", "blue", background=True) == "\033[44mx\033[0m" and helpers.colored("x", None) == "x"
  assert (helpers.ansistrip("a" + helpers.colored("b[1m", "GREEN") + "c\033[Kd") == "ab[1mcd"
          and helpers.ansistrip("plain") == "plain")

@given(st.text(alphabet="ab \n", max_size=40), st.integers(1, 7))
def test_word_wrap(text: str, width: int) -> None:
  wrapped = helpers.word_wrap(text, width)
  assert wrapped.replace("\n", "") == text.replace("\n", "") and max(map(len, wrapped.split("\n"))) <= width
  colored = helpers.word_wrap("".join(helpers.colored(c, "red") if c != "\n" else c for c in text), width)
  assert helpers.ansistrip(colored) == wrapped

@pytest.mark.parametrize("text,stripped", [("(a+b)", "a+b"), ("(a)+(b)", "(a)+(b)"), ("((a)+(b))", "(a)+(b)"),
                                           ("a", "a"), ("", ""), ("()", "")])
def test_strip_parens(text: str, stripped: str) -> None: assert helpers.strip_parens(text) == stripped

def test_text() -> None:
  assert helpers.to_function_name("r_" + helpers.colored("16", "blue") + "-é") == "r_162DE9"
  assert [helpers.time_to_str(t) for t in (12.0, 0.5, 0.012, 3e-5)] == ["   12.00s ", "  500.00ms", "   12.00ms",
                                                                        "   30.00us"]
  assert helpers.temp("x").endswith("/x") and helpers.temp("x", append_user=True).rpartition("/")[2].startswith("x.")

def test_memory_views_share_memory() -> None:
  data = array.array("f", [1.0, 2.0, 3.0])
  view = memoryview(data).cast("B")
  assert helpers.mv_address(view) == data.buffer_info()[0]
  assert bytes(helpers.to_mv(helpers.mv_address(view), view.nbytes)) == data.tobytes()
  import ctypes
  floats = helpers.from_mv(view, ctypes.c_float)
  floats[1] = 7.0
  assert list(floats) == [1.0, 7.0, 3.0] == list(data) and len(helpers.from_mv(view)) == 12
  assert len(helpers.to_mv(helpers.mv_address(memoryview(bytearray())), 0)) == 0

def test_counters_reset_what_ran_and_keep_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
  for name, value in (("kernel_count", 3), ("global_ops", 4), ("global_mem", 5), ("time_sum_s", 0.5),
                      ("mem_used", 100)):
    monkeypatch.setattr(GlobalCounters, name, value)
  GlobalCounters.reset()
  assert (GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem,
          GlobalCounters.time_sum_s) == (0, 0, 0, 0.0)
  assert GlobalCounters.mem_used == 100 and GlobalCounters.mem_used_per_device["none"] == 0

def test_timing(capsys: pytest.CaptureFixture[str]) -> None:
  with Timing("took ", on_exit=lambda ns: f", {ns > 0}") as timing: pass
  assert timing.et > 0 and capsys.readouterr().out == f"took {timing.et * 1e-6:6.2f} ms, True\n"
  @Timing("call ")
  def f(x: int) -> int: return x + 1
  assert f(1) == 2 and capsys.readouterr().out.startswith("call ")
  with Timing("quiet", enabled=False): pass
  assert capsys.readouterr().out == ""

def test_profiling(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
  with Profiling(frac=1.0, fn=str(tmp_path / "stats")): pickle.dumps([1])
  assert "cumtime" in capsys.readouterr().out and (tmp_path / "stats").exists()
  with Profiling(enabled=False): pass
  assert capsys.readouterr().out == ""

def test_keep_objects_ends_the_youth_of_what_lives() -> None:
  """And objects that the program froze stay frozen."""
  code = """
import gc
from tinyhw.helpers import keep_objects
gc.disable()
young = [[] for _ in range(5000)]
def youngest(): return sum(type(x) is list for x in gc.get_objects(0))
assert youngest() >= 5000
keep_objects()
assert youngest() < 100 and gc.get_freeze_count() == 0 and any(x is young for x in gc.get_objects(2))
gc.freeze()
frozen = gc.get_freeze_count()
keep_objects()
assert gc.get_freeze_count() == frozen > 5000
"""
  subprocess.run([sys.executable, "-c", code], check=True)

def test_disable_gc() -> None:
  with helpers.disable_gc():
    assert not gc.isenabled()
    with helpers.disable_gc(): pass
    assert not gc.isenabled()
  assert gc.isenabled()
  assert helpers.disable_gc()(gc.isenabled)() is False and gc.isenabled()

def test_profile_markers_and_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(trace, "events", [])
  started: list[bool] = []
  monkeypatch.setattr(trace, "start_recorder", lambda: started.append(True))
  @helpers.profile_range("decorated", "red")
  def function() -> int: return 3
  def everything() -> None:
    helpers.profile_marker("epoch 1")
    with helpers.profile_range("load"): assert function() == 3
  everything()
  assert not trace.events and not started
  with Context(PROFILE=1): everything()
  with Context(VIZ=1): everything()
  assert [e.name for e in trace.events] == ["epoch 1", "decorated", "load"] * 2 and len(started) == 6
  marker, inner, outer = trace.events[:3]
  assert (marker.lane == "markers" and inner.details == {"color": "red"} and outer.start_ns <= inner.start_ns
          <= inner.end_ns <= outer.end_ns)

def test_import_loads_nothing_slow() -> None:
  """helpers and what it needs, without the package's own __init__."""
  slow = "typing contextlib re dataclasses inspect ctypes hashlib urllib tempfile pickle pathlib cProfile".split()
  program = (f"import sys, types; package = types.ModuleType('tinyhw'); package.__path__ = "
             f"[{str(Path(helpers.__file__).parent)!r}]; "
             "sys.modules['tinyhw'] = package; import tinyhw.helpers; print(*sys.modules)")
  loaded = subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, capture_output=True,
                          text=True).stdout.split()
  assert "tinyhw.helpers" in loaded and not [m for m in slow if m in loaded]

class Terminal(io.StringIO):
  """Standard output that is a terminal."""
  def isatty(self) -> bool: return True

@pytest.mark.parametrize("value, colors", [(None, True), ("", True), ("1", False)])
def test_colors_are_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch, value: str | None,
                                                   colors: bool) -> None:
  """What DEBUG prints and the overview of commands agree."""
  terminal = Terminal()
  monkeypatch.setattr(sys, "stdout", terminal)
  if value is None: monkeypatch.delenv("NO_COLOR", raising=False)
  else: monkeypatch.setenv("NO_COLOR", value)
  assert helpers.wants_color() == colors
  assert (show.on_terminal("x", "red") != "x") == colors
  assert main([]) == 0 and ("\x1b[" in terminal.getvalue()) == colors
  monkeypatch.setattr(sys, "stdout", io.StringIO())
  assert not helpers.wants_color() and show.on_terminal("x", "red") == "x"
