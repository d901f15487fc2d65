"""Work of Python code as a count, so that a test of its growth does not depend on the machine."""
from __future__ import annotations
from collections.abc import Callable
import sys
from typing import Any

def lines_executed(run: Callable[[], object]) -> int:
  """How many lines of Python run: a count of work that does not depend on the machine."""
  count = 0

  def trace(frame: Any, event: str, argument: Any) -> Any:
    nonlocal count
    count += event == "line"
    return trace
  before = sys.gettrace()
  sys.settrace(trace)
  try: run()
  finally: sys.settrace(before)
  return count
