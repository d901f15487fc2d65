"""Checks in the child of a fork."""
from __future__ import annotations
from collections.abc import Callable
import os
import traceback

def in_child_of_fork(check: Callable[[], object]) -> None:
  """Run a check in a child. Raises AssertionError, with the child's traceback."""
  end, results = os.pipe()
  child = os.fork()
  if child == 0:
    try:
      try: check()
      except BaseException: os.write(results, traceback.format_exc().encode()[-60000:])  # noqa: BLE001  # to the parent
    finally: os._exit(0)
  os.close(results)
  with open(end, "rb") as file: found = file.read().decode()
  status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
  assert not found and not status, f"in the child, which ended with {status}:\n{found}"
