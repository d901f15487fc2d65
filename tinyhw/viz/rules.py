"""Describe rules: name, location, docstring, and source text."""
from __future__ import annotations
import inspect
import os
from collections.abc import Callable
from types import CodeType
from typing import Any

from tinyhw.uop.rewrite.match import rule_name

MOST_LINES = 40  # lines of source text
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

class Rules:
  """Descriptions of rules, by number. The functions and code objects are kept, so that their ids stay valid."""
  def __init__(self) -> None:
    self.numbers: dict[int, int] = {}
    self.kept: list[object] = []
    self.described: list[dict[str, Any]] = []

  def number(self, rule: Callable[..., Any] | CodeType) -> int:
    """Return the number of a rule's function, or of a walk's code."""
    found = self.numbers.get(id(rule))
    if found is None:
      found = self.numbers[id(rule)] = len(self.kept)
      self.kept.append(rule)
      self.described.append(describe(rule))
    return found

def describe(rule: Callable[..., Any] | CodeType) -> dict[str, Any]:
  """Return name, file, line, doc, source; unknown fields are empty, or 0."""
  code = rule if isinstance(rule, CodeType) else getattr(rule, "__code__", None)
  if not isinstance(code, CodeType): return {"name": repr(rule), "file": "", "line": 0, "doc": "", "source": ""}
  # 3.11: Class.method
  name = getattr(code, "co_qualname", code.co_name) if isinstance(rule,
                                                                  CodeType) else rule_name(rule).partition(" at ")[0]
  try: lines = inspect.getsourcelines(code)[0]
  except (OSError, TypeError, IndexError): lines = []  # typed in, or compiled at run time
  first = code.co_consts[0] if code.co_consts else None
  doc = first if isinstance(first, str) and any(first.splitlines()[:1] and first.splitlines()[0] in line
                                                for line in lines[1:6]) else ""
  if len(lines) > MOST_LINES: lines = [*lines[:MOST_LINES], "…\n"]
  return {"name": name, "file": short_path(code.co_filename), "line": code.co_firstlineno, "doc": inspect.cleandoc(doc),
          "source": "".join(lines)}

def short_path(path: str) -> str:
  """Return a file of tinyhw from the package's folder on, other paths unchanged."""
  return os.path.relpath(path, _ROOT) if path.startswith(_ROOT + os.sep) else path
