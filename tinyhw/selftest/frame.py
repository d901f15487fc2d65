"""What the self-tests of all devices share: a step, how steps are run one after the other, and what becomes of them.

A step asks one question of a device, small enough that the first one that fails says what to look at. Devices that have
more to ask than whether tensors come out right bring a `Session` beside their driver, in a module `selftest`; steps
with tensors are in tensors.py. No device is known here.
"""
from __future__ import annotations
import math
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from tinyhw.device import Compiled, Device, show_bytes
from tinyhw.errors import TinyError
from tinyhw.named_tuple import NamedTuple

OK, FAILED, ABSENT, NOT_RUN = "ok", "FAILED", "absent", "not run"

class Wrong(TinyError):
  """The device did something, but not what it should."""

class Absent(Exception):
  """This computer lacks what the step is about; why, in words."""

class Tools(NamedTuple):
  """What a session gets from outside of its layer. assemble: text of several lines and an architecture to machine
  code. faults: provoke some too."""
  assemble: Callable[[str, str], bytes]
  faults: bool = False

class Step(NamedTuple):
  """One question. run: gives what it found, in words; raises Wrong, Absent, or whatever the device's driver raises.
  check: what to look at when it
  fails. basic: the steps behind it make no sense without it.
  """
  name: str
  question: str
  check: str
  run: Callable[[Any], str]
  basic: bool = False

class Result(NamedTuple):
  """What became of a step. words: what it found, or what went wrong."""
  step: Step
  outcome: str
  milliseconds: float
  words: str

class Session:
  """What the steps of one run share. Subclasses have steps of their own, before those with tensors and at the end."""
  def __init__(self, name: str, tools: Tools):
    self.name, self.tools = name, tools

  def first(self) -> Sequence[Step]: return ()
  def last(self) -> Sequence[Step]: return ()

  @property
  def device(self) -> Compiled:
    """The device, opened as programs open it."""
    return Device[self.name]

  def recover(self) -> None:
    """After a step that failed: bring the device into a state in which the next step has a chance."""

  def close(self) -> None:
    """Give back what this object holds. Nothing is closed that others may use."""

class Begins(Protocol):
  """A driver's module `selftest`."""
  def begin(self, name: str, tools: Tools) -> Session: ...

def short_bytes(count: int) -> str:
  """1536 -> "1.50 KB"."""
  return show_bytes(count).split(" (")[0]

def ulps(found: float, wanted: float) -> float:
  """How far a float32 is from a value, in units of its last place."""
  if not math.isfinite(found): return math.inf
  exponent = max(math.frexp(wanted)[1] if wanted else -200, -125)
  return abs(found - wanted) / math.ldexp(1.0, exponent - 24)

def explain(error: Exception) -> str:
  """An exception in words; of one that is none of ours, where it came from too."""
  if isinstance(error, TinyError): return error.message
  frame = traceback.extract_tb(error.__traceback__)[-1]
  return f"{type(error).__name__}: {error} (at {os.path.basename(frame.filename)}:{frame.lineno})"

def run(session: Session, steps: Sequence[Step]) -> Iterator[Result]:
  """The result of each step, as soon as it is there. Behind a basic one that failed nothing is run."""
  stopped = ""
  for step in steps:
    if stopped:
      yield Result(step, NOT_RUN, 0.0, f"it needs \"{stopped}\"")
      continue
    outcome, begin = OK, time.perf_counter()
    try: words = step.run(session)
    except Absent as reason: outcome, words = ABSENT, str(reason)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the steps behind it may tell more
      outcome, words = FAILED, explain(error)
    milliseconds = (time.perf_counter() - begin) * 1e3
    if outcome == FAILED:
      if step.basic: stopped = step.name
      session.recover()
    yield Result(step, outcome, milliseconds, words)
