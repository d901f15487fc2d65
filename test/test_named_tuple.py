"""Our NamedTuple does what that of typing does."""
from __future__ import annotations
import copy
import inspect
import pickle
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tinyhw import named_tuple
from tinyhw.named_tuple import NamedTuple

class Ours(NamedTuple):
  """Two and two."""
  cls: int
  name: str
  size: int = 3
  parts: tuple[str, ...] = ()

  @property
  def double(self) -> int: return 2 * self.size
  def called(self) -> str: return self.name + super().__repr__()[:4]
  @classmethod
  def empty(cls) -> Ours: return cls(0, "")

class Theirs(typing.NamedTuple):
  """Two and two."""
  cls: int
  name: str
  size: int = 3
  parts: tuple[str, ...] = ()

class Nothing(NamedTuple):
  """Without fields."""

class Child(Ours):
  """Of a class with fields."""

def ending(run: Any) -> Any:
  """Return the result of a call, or the kind of its error."""
  try: return run()
  except (TypeError, ValueError) as error: return type(error)

@given(st.lists(st.integers(), max_size=6), st.dictionaries(st.sampled_from(["cls", "name", "size", "parts", "other"]),
                                                            st.integers()))
def test_as_typing_does(values: list[Any], named: dict[str, Any]) -> None:
  for call in (lambda kind: kind(*values, **named), lambda kind: kind._make(values),
               lambda kind: kind(1, "x")._replace(**named),
               lambda kind: kind(*values, **named)._asdict()):
    ours, theirs = (ending(lambda: call(kind)) for kind in (Ours, Theirs))
    assert ours == theirs and type(ours) is (Ours if type(theirs) is Theirs else type(theirs))
    if type(theirs) is Theirs:
      assert repr(ours) == repr(theirs).replace("Theirs", "Ours") and hash(ours) == hash(theirs)

def test_what_a_class_tells() -> None:
  for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__slots__"):
    assert getattr(Ours, name) == getattr(Theirs, name)
  assert list(inspect.signature(Ours).parameters) == list(inspect.signature(Theirs).parameters)
  assert (typing.get_type_hints(Ours) == typing.get_type_hints(Theirs) and Ours.__module__ == __name__
          and not hasattr(Ours(1, ""), "__dict__"))

def test_methods_and_patterns() -> None:
  value = Ours(1, "x", parts=("y",))
  match value:
    case Ours(1, name, size=size): assert (name, size) == ("x", 3)
    case _: raise AssertionError
  assert (value.double == 6 and value.called() == "xOurs" and Ours.empty() == (0, "", 3, ()) and Nothing() == ()
          and Nothing._make(()) == ())
  with pytest.raises(AttributeError): value.size = 4  # type: ignore[misc]
  with pytest.raises(AttributeError): value.other = 4  # type: ignore[attr-defined]

@pytest.mark.parametrize("kind", [Ours, Child])
def test_copies(kind: type[Ours]) -> None:
  value = kind(1, "x", 2)
  for same in (copy.copy(value), copy.deepcopy(value),
               *(pickle.loads(pickle.dumps(value, protocol)) for protocol in range(6))):
    assert same == value and type(same) is kind

LATE = {"x": "int", "y": "int"}

def test_errors_say_what_is_wrong() -> None:
  with pytest.raises(TypeError, match="Ours has 4 fields, got 1 values"): Ours._make([1])
  with pytest.raises(ValueError, match="Ours has no field other; it has cls, name, size, parts"):
    Ours(1, "x")._replace(other=1)  # type: ignore[call-arg]
  with pytest.raises(TypeError, match="a field without a default follows x"):
    named_tuple.make("A", {"__annotations__": LATE, "x": 0})
  with pytest.raises(AttributeError, match="A may not define _x"):
    named_tuple.make("A", {"__annotations__": {"_x": "int"}})
  with pytest.raises(AttributeError, match="A may not define __new__"): named_tuple.make("A", {"__new__": None})
  with pytest.raises(TypeError, match="NamedTuple is the only base"): type(NamedTuple)("A", (NamedTuple, int), {})

def test_nothing_else_is_used_on_the_default_path() -> None:
  """`typing.NamedTuple` would work as well, and cost ten times as much each time."""
  root = Path(__file__).resolve().parent.parent
  found = [path for folder in ("tinyhw", "drivers") for path in (root / folder).rglob("*.py")
           if path.name != "named_tuple.py"
           for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("from typing import")
           and "NamedTuple" in line]
  assert not found

def test_type_checkers_see_that_of_typing() -> None:
  program = ("import typing; typing.TYPE_CHECKING = True; from tinyhw.named_tuple import NamedTuple; print(NamedTuple "
             "is typing.NamedTuple)")
  ran = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).resolve().parent.parent, capture_output=True,
                       text=True, check=True)
  assert ran.stdout == "True\n"
