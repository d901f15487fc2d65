"""Our dataclass does what that of dataclasses does."""
from __future__ import annotations
import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tinyhw import data_class
from tinyhw.uop.kernel_info import KernelInfo
from tinyhw.uop.text import argument

def plain(library: Any) -> Any:
  """Return a class with all kinds of fields, made by a library."""
  @library.dataclass
  class Plain:
    """Fields of all kinds."""
    self_: int
    name: str = "x"
    parts: list[int] = library.field(default_factory=list)
    size: int = library.field(default=3)
    double: int = library.field(init=False)

    def __post_init__(self) -> None: self.double = 2 * self.size
  return Plain

def frozen(library: Any) -> Any:
  """Return a frozen class, made by a library."""
  @library.dataclass(frozen=True)
  class Frozen:
    first: int
    rest: tuple[int, ...] = ()

    @property
    def length(self) -> int: return 1 + len(self.rest)
  return Frozen

def one(library: Any) -> Any:
  """Return a frozen class of one field, made by a library."""
  @library.dataclass(frozen=True)
  class One:
    only: int
  return One

def by_identity(library: Any) -> Any:
  """Return a class whose objects are equal to themselves only, made by a library."""
  @library.dataclass(frozen=True, eq=False)
  class Identity:
    first: int = 0
    def __repr__(self) -> str: return f"<{self.first}>"
  return Identity

def own(library: Any) -> Any:
  """Return a class with comparisons of its own, made by a library."""
  @library.dataclass(frozen=True)
  class Own:
    first: int = 0
    def __eq__(self, other: object) -> bool: return True
    def __hash__(self) -> int: return 7
  return Own

KINDS = (plain, frozen, one, by_identity, own)
NAMES = ["self_", "first", "rest", "name", "parts", "size", "double", "only", "other"]

def ending(run: Any) -> Any:
  """Return the result of a call, or the kind of its error. Pythons differ in the kind for a wrong argument."""
  try: return run()
  except (TypeError, ValueError): return TypeError
  except AttributeError as error: return type(error)

def contents(value: Any) -> Any:
  """Return the name and fields of an object."""
  return (type(value).__name__, vars(value)) if hasattr(value, "__dict__") and not isinstance(value, type) else value

@pytest.mark.parametrize("kind", KINDS)
@given(values=st.lists(st.integers(0, 2), max_size=4), named=st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2)))
def test_as_dataclasses_does(kind: Any, values: list[Any], named: dict[str, Any]) -> None:
  ours, theirs = kind(data_class), kind(dataclasses)
  mine, other = (ending(lambda: c(*values, **named)) for c in (ours, theirs))
  assert contents(mine) == contents(other)
  if isinstance(mine, type): return
  assert repr(mine) == repr(other) or kind is by_identity
  if kind is not by_identity: assert ending(lambda: hash(mine)) == ending(lambda: hash(other)) or kind is one
  for again in (lambda library, x: library.replace(x, **named), lambda library, x: dataclasses.replace(x, **named),
                lambda library, x: setattr(x, "first", 1), lambda library, x: delattr(x, "first")):
    assert contents(ending(lambda: again(data_class, mine))) == contents(ending(lambda: again(dataclasses, other)))
  same = copy.copy(mine)
  assert (mine == same) is (other == copy.copy(other)) and (mine == other) is (kind is own)

@pytest.mark.parametrize("kind", KINDS)
def test_what_a_class_tells(kind: Any) -> None:
  ours, theirs = kind(data_class), kind(dataclasses)
  assert ours.__match_args__ == theirs.__match_args__ and ours.__doc__ == (theirs.__doc__ if kind is plain else None)
  assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
  assert dataclasses.is_dataclass(ours)
  of_ours, of_theirs = ([(f.name, f.type, f.default, f.default_factory, f.init) for f in dataclasses.fields(c)]
                        for c in (ours, theirs))
  assert of_ours == of_theirs
  assert list(data_class.defaults_of(ours) or ()) == list(data_class.defaults_of(theirs) or ())
  assert data_class.defaults_of(int) is None and data_class.fields_of(theirs) == {}

def test_fields_are_found_where_other_code_looks_for_them() -> None:
  """The text of a graph, and functions of `dataclasses`, read fields of both kinds."""
  theirs = dataclasses.make_dataclass("Theirs", [("x", int), ("y", int, dataclasses.field(default=2))])
  assert argument(KernelInfo("a", (1,))) == "KernelInfo(name='a', opts=(1,))" and argument(theirs(1)) == "Theirs(x=1)"
  assert dataclasses.asdict(KernelInfo("a")) == {"name": "a", "opts": None, "origin": None}

@pytest.mark.parametrize("protocol", range(6))
def test_pickles(protocol: int) -> None:
  value = KernelInfo("a", (1,))
  assert pickle.loads(pickle.dumps(value, protocol)) == value and copy.deepcopy(value) == value

def test_patterns() -> None:
  match KernelInfo("a", (1,)):
    case KernelInfo(name, opts=(first,)): assert (name, first) == ("a", 1)
    case _: raise AssertionError

def test_errors_say_what_is_wrong() -> None:
  with pytest.raises(TypeError, match="A: field y needs a default, since it follows one that has a default"):
    data_class.dataclass(type("A", (), {"__annotations__": {"x": "int", "y": "int"}, "x": 1}))
  with pytest.raises(ValueError, match="A: objects would share the default of x; use default_factory"):
    data_class.dataclass(type("A", (), {"__annotations__": {"x": "list[int]"}, "x": []}))
  value = KernelInfo("a")
  with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
    value.name = "b"  # type: ignore[misc]
  with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
    del value.name  # type: ignore[misc]

def test_nothing_else_makes_classes() -> None:
  """`dataclasses` would work as well, and cost six times as much each time."""
  root = Path(__file__).resolve().parent.parent
  found = [path for folder in ("tinyhw", "drivers") for path in (root / folder).rglob("*.py")
           if path.name != "data_class.py"
           for line in path.read_text(encoding="utf-8").splitlines() if "dataclasses import" in line
           or "import dataclasses" in line]
  assert not found

def test_type_checkers_see_that_of_dataclasses() -> None:
  program = ("import typing, dataclasses; typing.TYPE_CHECKING = True; from tinyhw.data_class import dataclass, field; "
             "print(dataclass is dataclasses.dataclass, field is dataclasses.field)")
  ran = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).resolve().parent.parent, capture_output=True,
                       text=True, check=True)
  assert ran.stdout == "True True\n"
