"""The common frame of all devices' self-tests: steps, the loop that runs them, and their results.

A step asks one question of a device. It is so small that the first failed step tells where to look. Devices with more
questions than correct tensors have a `Session` next to their driver, in a module `selftest`. tensors.py has the steps
with tensors. No device is known here.
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
  """The device did something wrong."""

class Absent(Exception):
  """This computer lacks the subject of the step; the message says why."""

class Tools(NamedTuple):
  """Functions that a session gets from outside of its layer. assemble: turns lines of text for an architecture into
  machine code. faults: provoke faults too."""
  assemble: Callable[[str, str], bytes]
  faults: bool = False

class Probe(NamedTuple):
  """One question. run: returns its finding, in words; raises Wrong, Absent, or the errors of the device's driver.

  check: advice if it fails. basic: later steps make no sense if it fails.
  """
  name: str
  question: str
  check: str
  run: Callable[[Any], str]
  basic: bool = False

class ProbeResult(NamedTuple):
  """The result of a step. words: its finding, or its failure."""
  step: Probe
  outcome: str
  milliseconds: float
  words: str

class Session:
  """The shared state of one run's steps. Subclasses add steps before those with tensors, and at the end."""
  def __init__(self, name: str, tools: Tools):
    self.name, self.tools = name, tools

  def first(self) -> Sequence[Probe]: return ()
  def last(self) -> Sequence[Probe]: return ()

  @property
  def device(self) -> Compiled:
    """The device, opened as programs open it."""
    return Device[self.name]

  def recover(self) -> None:
    """Recover the device after a failed step, so that the next step can work."""

  def close(self) -> None:
    """Release the resources of this object, but close nothing that others may use."""

class Begins(Protocol):
  """A driver's module `selftest`."""
  def begin(self, name: str, tools: Tools) -> Session: ...

def short_bytes(count: int) -> str:
  """1536 -> "1.50 KB"."""
  return show_bytes(count).split(" (")[0]

def ulps(found: float, wanted: float) -> float:
  """Return the distance of a float32 from a value, in units of its last place."""
  if not math.isfinite(found): return math.inf
  exponent = max(math.frexp(wanted)[1] if wanted else -200, -125)
  return abs(found - wanted) / math.ldexp(1.0, exponent - 24)

def explain(error: Exception) -> str:
  """Describe an exception; for one that is not of tinyhw, also its origin."""
  if isinstance(error, TinyError): return error.message
  frame = traceback.extract_tb(error.__traceback__)[-1]
  return f"{type(error).__name__}: {error} (at {os.path.basename(frame.filename)}:{frame.lineno})"

def run(session: Session, steps: Sequence[Probe]) -> Iterator[ProbeResult]:
  """Yield the result of each step as soon as it is known. After a failed basic step nothing runs."""
  stopped = ""
  for step in steps:
    if stopped:
      yield ProbeResult(step, NOT_RUN, 0.0, f"it needs \"{stopped}\"")
      continue
    outcome, begin = OK, time.perf_counter()
    try: words = step.run(session)
    except Absent as reason: outcome, words = ABSENT, str(reason)
    # Any exception is reported. Later steps may tell more.
    except Exception as error:  # noqa: BLE001
      outcome, words = FAILED, explain(error)
    milliseconds = (time.perf_counter() - begin) * 1e3
    if outcome == FAILED:
      if step.basic: stopped = step.name
      session.recover()
    yield ProbeResult(step, outcome, milliseconds, words)
