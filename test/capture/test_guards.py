"""Guards on the live-ins of a function: which of them are followed, and what counts as a change.

TinyJit's part is in test_jit.py.
"""
from __future__ import annotations
import array
import functools
import gc
import operator
import os
import sys
import types
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any

import pytest

from tinyhw.capture import guards
from tinyhw.capture.guards import CallTracer, is_followed
from tinyhw.capture.jit import TinyJit
from tinyhw.errors import JitError
from tinyhw.tensor import Tensor

def changed(function: Any, change: Any, *arguments: Any) -> str:
  """Return the message after a change between two calls; "" if no change is seen."""
  watcher = CallTracer(function)
  with watcher: function(*arguments)
  assert not list(watcher.before.changes())
  guards = watcher.after()
  guards.check()
  change()
  try: guards.check()
  except JitError as error: return str(error)
  return ""

def effects(function: Any, *arguments: Any) -> list[str]:
  """Return the names that a call changes."""
  watcher = CallTracer(function)
  with watcher: function(*arguments)
  return [name for name, _, _ in watcher.before.changes()]

class Slotted:
  __slots__ = ("f",)
  def __init__(self, f: Any): self.f = f

class Box:
  """Attributes."""
  def __init__(self, **kwargs: Any): self.__dict__.update(kwargs)
  def read(self) -> Any: return self.value  # type: ignore[attr-defined]  # given to the constructor
  def __call__(self) -> Any: return self.value  # type: ignore[attr-defined]  # given to the constructor

LEVEL = 1
BOX = Box(value=1)

def level() -> int: return LEVEL

@pytest.mark.parametrize(("before", "after", "seen"), [
  (1.5, float("1.5"), False), (1.5, 2.5, True), (1, True, True), (1, 1.0, True), (0.0, -0.0, True),
  (float("nan"), float("nan"), False),
  ((1, "a"), (1, "".join(["a"])), False), ((1,), (2,), True), (1, None, True), ((0.0,), (-0.0,), True),
  ("ab", "".join(["a", "b"]), False)])
def test_equal_numbers_and_texts_of_one_type_are_no_change(before: Any, after: Any, seen: bool) -> None:
  box = Box(value=before)
  def f() -> Any: return box.value
  assert bool(changed(f, lambda: setattr(box, "value", after))) is seen

def test_the_message_says_where_what_and_what_to_do() -> None:
  box = Box(value=1.5)
  message = changed(lambda: box.value, lambda: setattr(box, "value", 2.5))
  assert ("box.value was 1.5 when the function was captured, and is 2.5 now; a replay would use the old one: "
          "pass it as an argument") in message

def test_methods_callable_objects_and_decorated_functions_are_followed() -> None:
  gets: list[Callable[[Box], Any]] = [lambda box: box.read, lambda box: box,
                                      lambda box: functools.wraps(box.read)(lambda: box.read()),
                                      lambda box: functools.partial(box.read),
                                      lambda box: functools.partial(operator.attrgetter("value"), box)]
  for get in gets[:4]:
    box = Box(value=1)
    assert "value was 1" in changed(get(box), lambda: setattr(box, "value", 2))
  table = [1]
  assert "arguments[0] was 1" in changed(functools.partial(lambda t: t[0], table),
                                         lambda: table.__setitem__(0, 2)).replace("[0][0]", "[0]")

def test_functions_that_are_called_are_followed() -> None:
  box, k = Box(value=Box(value=1)), 3
  def inner() -> Any: return box.value.value * k
  def middle() -> Any: return [inner() for _ in range(2)]
  def f() -> Any: return middle()
  def change() -> None:
    nonlocal k
    k = 4
  assert "box.value.value was 1" in changed(f, lambda: setattr(box.value, "value", 2))
  assert "k was 3" in changed(f, change)
  def deepen() -> None:
    global LEVEL
    LEVEL = 2
  global LEVEL
  LEVEL = 1
  assert "LEVEL was 1" in changed(lambda: level() + 1, deepen)

def test_comprehensions_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
  """Python 3.10 and 3.11 make a function of each. Its live-ins are followed with the surrounding code."""
  monkeypatch.setattr(guards, "gc", types.SimpleNamespace(get_referrers=None))
  value, items = 1, (1, 2)
  def change() -> None:
    nonlocal value
    value = 2
  for f in (lambda: [k * value for k in items], lambda: {k * value for k in items}, lambda: {k: value for k in items},
            lambda: sum(value for _ in items)):
    value = 1
    assert changed(f, change).startswith("value was 1")

@pytest.mark.parametrize("put, call, asks", [
  (lambda f: f, lambda x: x(), False), (lambda f: [f], lambda x: x[0](), False),
  (lambda f: {"f": f}, lambda x: x["f"](), False),
  (lambda f: Box(f=f), lambda x: x.f(), False), (lambda f: functools.partial(f), lambda x: x(), False),
  (lambda f: types.MethodType(lambda self: f(), 0), lambda x: x(), False),
  (lambda f: Slotted(f), lambda x: x.f(), False), (lambda f: f, lambda x: [x() for _ in (1,)][0], False),
  (lambda f: Box(f=Box(f=f)), lambda x: x.f.f(), True), (lambda f: [[f]], lambda x: x[0][0](), True)], ids=range(10))
def test_a_closure_is_found_at_its_caller_or_by_asking_all_objects(put: Any, call: Any, asks: bool,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
  """Searching all objects takes 36 ms in a process of four million. It is for closures that no variable of the caller
  refers to."""
  asked: list[Any] = []
  monkeypatch.setattr(guards, "gc",
                      types.SimpleNamespace(get_referrers=lambda code: asked.append(code) or gc.get_referrers(code)))
  value = 1
  def f() -> int: return value
  def change() -> None:
    nonlocal value
    value = 2
  held = put(f)
  del f
  assert "value was 1" in changed(call, change, held) and bool(asked) is asks

def test_attributes_as_python_finds_them() -> None:
  class Base:
    inherited = 1
  class Slots(Base):
    __slots__ = ("slot", "unset")
    shared = 2
    def __init__(self) -> None: self.slot = 3
    @property
    def computed(self) -> int: return self.slot + self.shared
  class Made:
    def __init__(self) -> None: self.data = {"late": 1}
    def __getattr__(self, name: str) -> Any: return self.data[name]
  thing, made = Slots(), Made()
  assert "shared was 2" in changed(lambda: thing.computed, lambda: setattr(Slots, "shared", 5))
  assert "slot was 3" in changed(lambda: thing.computed, lambda: setattr(thing, "slot", 5))
  assert "thing.inherited was 1" in changed(lambda: thing.inherited, lambda: setattr(Base, "inherited", 5))
  assert "thing.slot was 5" in changed(lambda: getattr(thing, "slot"), lambda: setattr(thing, "slot", 6))
  assert "thing.unset was nothing" in changed(lambda: hasattr(thing, "unset"), lambda: setattr(thing, "unset", 6))
  assert "data['late'] was 1" in changed(lambda: made.late, lambda: made.data.update(late=2))
  box = Box(value=1)
  Box.kind = 7  # type: ignore[attr-defined]  # for this test
  try:
    # as above
    assert "box.kind was 7" in changed(lambda: box.kind, lambda: setattr(box, "kind", 8))  # type: ignore[attr-defined]
  finally: del Box.kind  # type: ignore[attr-defined]  # as above

def test_modules_classes_and_defaults() -> None:
  module = types.ModuleType("settings_of_a_test")
  module.scale = 2  # type: ignore[attr-defined]  # a module of this test
  sys.modules[module.__name__] = module
  class Settings:
    level = 1
  assert "module.scale was 2" in changed(lambda: module.scale, lambda: setattr(module, "scale", 3))
  assert "Settings.level was 1" in changed(lambda: Settings.level, lambda: setattr(Settings, "level", 3))
  table = [1.0]
  def f(x: int, t: list[float] = table, *, box: Box = BOX) -> float:
    return t[0] + box.value  # type: ignore[attr-defined,no-any-return]
  assert "the default of t[0] was 1.0" in changed(f, lambda: table.__setitem__(0, 2.0), 1)
  assert "value was 1" in changed(f, lambda: setattr((f.__kwdefaults__ or {})["box"], "value", 2), 1)

def test_what_the_code_does_not_name_is_not_followed() -> None:
  box, other = Box(value=1, epoch=0), [0]
  def f() -> Any: return box.value
  assert changed(f, lambda: (setattr(box, "epoch", 1), other.append(1))) == ""

def test_items_of_containers_are_followed() -> None:
  found, table, some = [1, 2], {"a": 1}, {3}
  def f() -> Any: return found[0] + table["a"] + len(some)
  assert "found[1] was 2" in changed(f, lambda: found.__setitem__(1, 5))
  assert "table['a'] was 1" in changed(f, lambda: table.clear())
  assert "found was 2 items when the function was captured, and is 3 now" in changed(lambda: found[0],
                                                                                     lambda: found.append(1))
  assert "some was 1 items" in changed(lambda: len(some), lambda: some.add(9))
  nested = {"layers": [Box(value=1)]}
  assert "nested['layers'][0].value was 1" in changed(lambda: [b.value for b in nested["layers"]],
                                                      lambda: setattr(nested["layers"][0], "value", 2))

def test_containers_around_others_are_followed() -> None:
  table = {"k": 1}
  proxy, chain, own, row, values = types.MappingProxyType(table), ChainMap({},
                                                                           {"k": 1}), UserDict(k=1), UserList([1]), {
    "k": 1}
  view = values.values()
  for function, change, place in (
    (lambda: proxy["k"], lambda: table.update(k=2), "proxy['k']"),
    (lambda: chain["k"], lambda: chain.maps[1].update(k=2), "chain.maps[1]['k']"),
    (lambda: own["k"], lambda: own.update(k=2), "own.data['k']"), (lambda: row[0], lambda: row.append(3), "row.data"),
    (lambda: chain["k"], lambda: setattr(chain, "maps", [{"k": 2}]), "chain.maps"),
    (lambda: [*view], lambda: values.update(k=2), "view[0]")):
    assert changed(function, change).startswith(f"{place} was ") or changed(function,
                                                                            change).startswith(f"{place} is "), place

def test_numbers_and_structures_of_ctypes_are_compared() -> None:
  ctypes = pytest.importorskip("ctypes")
  class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]
  number, row, pair = ctypes.c_double(1), (ctypes.c_int * 2)(1, 2), Pair(1, 2)
  for function, change in ((lambda: number.value, lambda: setattr(number, "value", 2)),
                           (lambda: row[1], lambda: row.__setitem__(1, 3)),
                           (lambda: pair.b, lambda: setattr(pair, "b", 3))):
    assert changed(function,
                   lambda: None) == "" and "have changed since the function was captured" in changed(function, change)

VARIABLE: ContextVar[Any] = ContextVar("VARIABLE", default=1)

def test_context_variables() -> None: copy_context().run(_use_context_variables)

def _use_context_variables() -> None:
  unset: ContextVar[Any] = ContextVar("unset")
  def f() -> Any: return VARIABLE.get()
  assert changed(f, lambda: None) == ""
  assert changed(f, lambda: VARIABLE.set(2)).startswith("VARIABLE.get() was 1 when the function was captured, and is "
                                                        "2 now")
  assert changed(f, lambda: VARIABLE.set(1)).startswith("VARIABLE.get() was 2")
  assert changed(lambda: unset.get(4), lambda: unset.set(2)).startswith("unset.get() was nothing when the function "
                                                                        "was captured, and is 2 now")
  assert effects(lambda: VARIABLE.set(VARIABLE.get() + 1)) == ["VARIABLE.get()"]

def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
  """Variables with literal names, else all of them."""
  monkeypatch.setenv("TINYHW_A", "1")
  key, environment = "TINYHW_A", os.environ
  def imports() -> Any:
    from os import environ
    return environ["TINYHW_A"]
  for function in (lambda: os.environ["TINYHW_A"], lambda: os.environ.get("TINYHW_A", "3"),
                   lambda: os.getenv("TINYHW_A"), imports,
                   lambda: os.environ[key], lambda: environment["TINYHW_A"], lambda: os.environ.get("TINYHW_B")):
    seen = changed(function, lambda: os.environ.update(TINYHW_A=os.environ["TINYHW_A"] + "1", TINYHW_B="1"))
    assert seen.startswith("os.environ") and "when the function was captured, and is" in seen, function
    monkeypatch.delenv("TINYHW_B")
  assert changed(lambda: os.environ["TINYHW_A"], lambda: monkeypatch.setenv("TINYHW_B", "2")) == ""
  assert changed(lambda: os.path.join("a", "b"), lambda: monkeypatch.setenv("TINYHW_A", "5")) == ""

def test_names_in_the_dict_of_globals(monkeypatch: pytest.MonkeyPatch) -> None:
  assert changed(lambda: globals()["LEVEL"],
                 lambda: monkeypatch.setitem(globals(), "LEVEL", 5)).startswith("LEVEL was ")

def test_contents_of_arrays_are_compared() -> None:
  data, raw = array.array("f", [1.0, 2.0]), bytearray(4)
  assert "the contents of data have changed" in changed(lambda: data[0], lambda: data.__setitem__(1, 5.0))
  assert "the contents of raw have changed" in changed(lambda: raw[0], lambda: raw.__setitem__(1, 5))
  large = bytearray(1 << 21)
  with pytest.raises(JitError, match="too large, or of a kind, that TinyJit cannot tell"):
    changed(lambda: large[0], lambda: None)

def test_code_inside_of_the_code_is_followed() -> None:
  k = 1
  def f() -> Any: return [(lambda: i + k)() for i in range(2)]
  def change() -> None:
    nonlocal k
    k = 2
  assert "k was 1" in changed(f, change)

def test_objects_that_are_arguments() -> None:
  box = Box(value=Box())
  def f(x: Any) -> Any: return x.value
  assert "x.value is another Box" in changed(f, lambda: setattr(box, "value", Box()), box)
  assert "x.value was a Box" in changed(f, lambda: delattr(box, "value"), box)

def test_functions_without_code_have_no_guards() -> None:
  assert changed(len, lambda: None, ()) == "" and changed(functools.partial(len, ()), lambda: None) == ""

def test_effects_of_the_function() -> None:
  box, items, count, log = Box(value=1), [1], 0, [0]
  def counts() -> None:
    nonlocal count
    count += 1
  assert effects(lambda: setattr(box, "value", box.value + 1)) == ["box.value"]
  assert effects(lambda: items.__setitem__(0, items[0] + 1)) == ["items[0]"]
  assert effects(counts) == ["count"]
  assert effects(lambda: log.append(1)) == []               # nothing but put into, never read
  assert effects(lambda: log.append(len(log))) == ["log"]
  def keep() -> None: log.append(Tensor([1.0]))  # type: ignore[arg-type]  # that is the test
  assert effects(keep) == ["log"]

def test_objects_of_the_call_have_no_guards() -> None:
  @dataclass
  class Point:
    x: int = 0
    def move(self) -> None: self.x += 1
  def f() -> Point:
    point = Point()
    point.move()
    return point
  assert effects(f) == []

def total(items: Any) -> Any: return sum(items)
def doubled(items: Any) -> Any:
  for item in items: yield item * 2

@pytest.mark.parametrize("function", [
  lambda x: sum(r for r in doubled(x)), lambda x: sum([r + 1 for r in doubled(x)]), lambda x: total(r for r in x),
  lambda x: total(doubled(x)),
  lambda x: sum(sum(q for q in doubled([r])) for r in doubled(x)), lambda x: total(r for r, _ in zip(doubled(x), x)),
  lambda x: max(*(r for r in x)), lambda x: read_total(types.SimpleNamespace(items=doubled(x)))])
def test_iterators_that_the_function_makes_have_no_guards(function: Any) -> None:
  assert effects(function, [1, 2, 3]) == [] and changed(function, lambda: None, [1, 2, 3]) == ""

def read_total(holder: Any) -> Any: return total(holder.items)

@pytest.mark.parametrize(("make", "change"), [
  (lambda: array.array("d", [1.0]), lambda a: a.append(2.0)), (lambda: {1.0}, lambda a: a.add(2.0)),
  (lambda: deque([1.0]), lambda a: a.append(2.0))])
def test_data_that_the_function_makes_and_changes_is_its_own(make: Any, change: Any) -> None:
  outside = make()
  def f(inside: bool) -> Any:
    data = make() if inside else outside
    before = total(data)
    change(data)
    return before + total(data)
  assert effects(f, True) == [] and effects(f, False) != []

def test_large_data_is_refused_where_it_is_there_after_the_call() -> None:
  def large() -> Any: return array.array("b", bytes((1 << 20) + 1))
  assert changed(lambda: len_of(large()), lambda: None) == ""
  given = large()
  with pytest.raises(JitError, match="too large"): changed(len_of, lambda: None, given)

def len_of(items: Any) -> int: return len(items)

def test_another_profile_function_is_called_too() -> None:
  seen = []
  def profile(frame: Any, event: str, argument: Any) -> None: seen.append(frame.f_code.co_name)
  sys.setprofile(profile)
  try: changed(level, lambda: None)
  finally: sys.setprofile(None)
  assert "level" in seen

def test_which_code_is_followed() -> None:
  from tinyhw.nn import Linear
  assert is_followed(Linear.__call__.__code__.co_filename) and is_followed(__file__)
  assert not is_followed(Tensor.relu.__code__.co_filename) and not is_followed(functools.wraps.__code__.co_filename)

def test_a_profile_function_that_the_function_installs_stays():
  seen = []
  def hook(frame, event, argument):
    if event == "call": seen.append(frame.f_code.co_name)
  def late(): pass
  def f(x):
    sys.setprofile(hook)
    try:
      y = (x + 1).realize()
      late()
      assert sys.getprofile() is hook
    finally: sys.setprofile(None)
    return (y * 2).realize()
  jitted, x = TinyJit(f), Tensor([1.0]).realize()
  for _ in range(2): assert jitted(x).tolist() == [4]
  assert seen.count("late") == 2
