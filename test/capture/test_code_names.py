"""The names in code."""
from __future__ import annotations
import os
from os import environ
from typing import Any

import pytest

from tinyhw.capture.code_names import names_of

LEVEL = 1

def test_names_in_code() -> None:
  def f(x: Any) -> Any:
    global LEVEL
    LEVEL = x.first.second + len(x)
    return getattr(x, "third")
  names = names_of(f.__code__)
  assert ({"LEVEL", "len"} <= names.globals and {"first", "second", "third"} <= names.attributes
          and "third" in names.asked)
  assert names_of((lambda: globals()["LEVEL"]).__code__).globals == {"globals", "LEVEL"}

@pytest.mark.parametrize(("function", "keys"), [
  (lambda: os.environ["A"], {"A"}), (lambda: os.environ.get("A", "B"), {"A"}), (lambda: os.getenv("A"), {"A"}),
  (lambda: environ["A"] + "B", {"A"}),
  (lambda: os.environ[str(LEVEL)], {None}), (lambda: dict(os.environ), {None}),
  (lambda: [os.environ["A"], os.getenv("B")], {"A", "B"}),
  (lambda: os.path.join("environ"), set())])
def test_environment_variables_in_code(function: Any, keys: set[str | None]) -> None:
  assert names_of(function.__code__).environment == keys
