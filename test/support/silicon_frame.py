"""Questions to a GPU, each in a process of its own with a deadline, so that one that crashes or hangs does not end the rest.

A step is a function that gets a `Notes` and tells it what it finds, as soon as it knows: what was told before a crash or the deadline is in the
report. `ask` runs a step's process; `report` makes the text. Nothing here knows what is asked.
"""
from __future__ import annotations
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tinyhw.errors import TinyError

OK, FAILED, ABSENT, CRASHED, LATE, NOT_ASKED = "ok", "FAILED", "absent", "CRASHED", "LATE", "not asked"
TAIL = 6000   # characters of a step's output that are kept

class Absent(Exception):
  """This computer lacks what the step is about; why, in words."""

class Step(NamedTuple):
  """One question. seconds: the deadline. function: answers it. arguments: of the function, behind the Notes. needs: the step before whose success it
  is about; it is not asked if that one, having been asked, has none."""
  name: str
  question: str
  seconds: float
  function: Callable[..., None]
  arguments: tuple[Any, ...] = ()
  needs: str = ""

class Notes:
  """What a step finds, by name; written to a file at once."""
  def __init__(self, path: str | None = None):
    self.path, self.found = path, dict[str, Any]()

  def __call__(self, name: str, value: Any) -> None:
    self.found[name] = value
    if self.path is None: return
    Path(self.path + ".new").write_text(json.dumps(self.found, default=str), "utf-8")
    os.replace(self.path + ".new", self.path)

class Result(NamedTuple):
  step: Step
  outcome: str
  seconds: float
  found: dict[str, Any]
  words: str             # of an error, or the end of the output of a process that crashed

def answer(step: Step, path: str) -> int:
  """In the step's own process: answer, and write down how it ended."""
  notes = Notes(path)
  try: step.function(notes, *step.arguments)
  except Absent as absent: notes("outcome", [ABSENT, str(absent)])
  except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
    if not isinstance(error, TinyError): traceback.print_exc()
    notes("outcome", [FAILED, f"{type(error).__name__}: {getattr(error, 'message', error)}"])
  else: notes("outcome", [OK, ""])
  sys.stdout.flush()
  os._exit(0)  # what a driver does at the end of a process is not asked here

def ask(step: Step, command: Sequence[str], most_seconds: float) -> Result:
  """Run a step's process until it ends, or its deadline."""
  limit, begin = min(step.seconds, most_seconds), time.monotonic()
  with tempfile.TemporaryDirectory() as folder:
    out, log = Path(folder, "found"), Path(folder, "log")
    with log.open("wb") as file:
      process = subprocess.Popen([*command, "--step", step.name, "--out", str(out)], stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
      try: status: int | None = process.wait(limit)
      except subprocess.TimeoutExpired: status = None
      finally: _end(process)
    found = json.loads(out.read_text("utf-8")) if out.exists() else {}
    tail = log.read_text("utf-8", "replace")[-TAIL:]
  outcome, words = found.pop("outcome", (CRASHED, ""))
  if status is None: outcome, words = LATE, f"not answered in {limit:.0f} s\n{tail}"
  elif outcome == CRASHED: words = f"the process ended with {_ending(status)}\n{tail}"
  elif outcome == FAILED: words = f"{words}\n{tail}"
  return Result(step, outcome, time.monotonic() - begin, found, words.strip())

def _end(process: subprocess.Popen[bytes]) -> None:
  """The step's process, and what it has started."""
  try: os.killpg(process.pid, signal.SIGKILL)
  except ProcessLookupError: pass
  process.wait()

def _ending(status: int) -> str:
  if status >= 0: return f"status {status}"
  try: return signal.Signals(-status).name
  except ValueError: return f"signal {-status}"

def ask_all(steps: Sequence[Step], command: Sequence[str], seconds: float, tell: Callable[[Result], None]) -> list[Result]:
  """All steps, in order, in so many seconds at most; those for which none are left are not asked."""
  end, results = time.monotonic() + seconds, list[Result]()
  for step in steps:
    left, lacks = end - time.monotonic(), any(result.step.name == step.needs and result.outcome != OK for result in results)
    why = f'"{step.needs}" has no success' if lacks else "no time was left" if left <= 1 else ""
    results.append(Result(step, NOT_ASKED, 0.0, {}, why) if why else ask(step, command, left))
    tell(results[-1])
  return results

# **** the report ****

def show(value: Any, indent: int = 4) -> str:
  """What was found, for people: short values in a line, others below each other."""
  pad = " " * indent
  if isinstance(value, dict): return "".join(f"\n{pad}{key}: {show(item, indent + 2)}" for key, item in value.items())
  if isinstance(value, (list, tuple)) and any(isinstance(item, (dict, list)) or len(str(item)) > 60 for item in value):
    return "".join(f"\n{pad}{show(item, indent + 2)}" for item in value)
  if isinstance(value, (list, tuple)): return ", ".join(map(str, value))
  return str(value).replace("\n", "\n" + pad)

def line(result: Result) -> str:
  """A step's part of the report."""
  text = f"== {result.step.name}: {result.outcome} ({result.seconds:.1f} s) - {result.step.question}?"
  if result.words: text += "\n    " + result.words.replace("\n", "\n    ")
  return text + show(result.found)

def heading() -> dict[str, str]:
  """Where this runs."""
  return {"system": f"{platform.system()} {platform.release()}", "machine": platform.machine(), "python": platform.python_version(),
          "emulate": os.environ.get("EMULATE", ""), "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())}

def as_json(results: Sequence[Result]) -> dict[str, Any]:
  """The report as JSON holds it."""
  return {**heading(), "steps": [{"step": r.step.name, "outcome": r.outcome, "seconds": round(r.seconds, 2), "found": r.found, "words": r.words}
                                 for r in results]}
