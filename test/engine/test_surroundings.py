"""What a function reads besides its arguments: what is followed, and what counts as a change. TinyJit's part is in test_jit.py."""
from __future__ import annotations
import functools
from typing import Any

from tinyhw.engine.surroundings import Surroundings
from tinyhw.errors import JitError

def changed(function: Any, change: Any, *objects: tuple[str, Any]) -> str:
  """The message after a change; "" where none is seen."""
  surroundings = Surroundings(function, list(objects))
  surroundings.check()
  change()
  try: surroundings.check()
  except JitError as error: return str(error)
  return ""

class Box:
  """Attributes."""
  def __init__(self, **kwargs: Any): self.__dict__.update(kwargs)
  def read(self) -> Any: return self.value  # type: ignore[attr-defined]  # given to the constructor
  def __call__(self) -> Any: return self.value  # type: ignore[attr-defined]  # given to the constructor

def test_equal_numbers_and_texts_of_one_type_are_no_change() -> None:
  box = Box(value=1.5)
  def f() -> Any: return box.value
  for new, message in ((float("1.5"), ""), (2.5, "box.value was 1.5 when the function was captured, and is 2.5 now"), (None, "and is None now")):
    box.value = 1.5
    assert message in changed(f, lambda new=new: setattr(box, "value", new))
  box.value = (1, "a")
  assert changed(f, lambda: setattr(box, "value", (1, "".join(["a"])))) == ""
  box.value = 1
  assert "was 1 " in changed(f, lambda: setattr(box, "value", True))

def test_methods_callable_objects_and_decorated_functions_are_followed() -> None:
  for get in (lambda box: box.read, lambda box: box, lambda box: functools.wraps(box.read)(lambda: box.read())):
    box = Box(value=1)
    assert "self.value was 1" in changed(get(box), lambda: setattr(box, "value", 2))

def test_what_the_code_does_not_name_is_not_followed() -> None:
  box, other = Box(value=1, epoch=0), [0]
  def f() -> Any: return box.value
  assert changed(f, lambda: (setattr(box, "epoch", 1), other.append(1))) == ""

def test_items_of_containers_are_followed() -> None:
  found, table = [1, 2], {"a": 1}
  def f() -> Any: return found[0] + table["a"]
  assert "found[1] was 2" in changed(f, lambda: found.__setitem__(1, 5))
  assert "table['a'] was 1" in changed(f, lambda: table.clear())
  assert "found was 2 items when the function was captured, and is 3 now" in changed(f, lambda: found.append(1))

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
  assert "argument 0.value is another Box" in changed(f, lambda: setattr(box, "value", Box()), ("0", box))
  assert "argument 0.value was a Box" in changed(f, lambda: delattr(box, "value"), ("0", box))

def test_functions_without_code_have_no_surroundings() -> None:
  assert changed(len, lambda: None) == "" and changed(functools.partial(len, ()), lambda: None) == ""
