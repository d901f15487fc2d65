"""Questions to a GPU, each in a process of its own with a deadline, so that one that crashes or hangs does not end the
rest.

A step is a function that gets a `Notes` and tells it what it finds, as soon as it knows: what was told before a crash
or the deadline is in the report, with what the kernel's log got meanwhile. `ask` runs a step's process, `ask_all` all
of them, and has what is known saved every second, so that nothing is lost where this process is killed. Nothing here
knows what is asked.
"""
from __future__ import annotations
import contextlib
import ctypes
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

OK, FAILED, ABSENT, CRASHED, LATE, NOT_ASKED, ASKED = ("ok", "FAILED", "absent", "CRASHED", "LATE", "not asked",
                                                       "being asked")
MOST_SHOWN = 25        # entries of a list in the report
TAIL = 6000            # characters of a step's output that are kept
LOOK_SECONDS = 1.0     # between two looks at what a step has told
END_SECONDS = 5.0      # that a process gets to end when it is killed: one that waits in the kernel may not
SIGNAL_AT_PARENTS_DEATH = 1                  # prctl
WHOLE_LOG, LOG_BYTES, MOST_LINES = 3, 1 << 20, 60   # klogctl: read all; of the kernel's log

class Absent(Exception):
  """This computer lacks what the step is about; why, in words."""

class Step(NamedTuple):
  """One question. seconds: the deadline. function: answers it. arguments: of the function, behind the Notes. needs: the
  step before whose success it is about; it is not asked if that one, having been asked, has none, and absent if that
  one is."""
  name: str
  question: str
  seconds: float
  function: Callable[..., None]
  arguments: tuple[Any, ...] = ()
  needs: str = ""

class Notes:
  """The findings of a step, by name; written to a file at once, which a process that begins anew reads."""
  def __init__(self, path: str | None = None):
    self.path, self.found = path, _told(Path(path)) if path is not None else {}

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
  with contextlib.suppress(AttributeError, OSError): ctypes.CDLL(None).prctl(SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)
  notes = Notes(path)
  try: step.function(notes, *step.arguments)
  except Absent as absent: notes("outcome", [ABSENT, str(absent)])
  except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
    if not isinstance(error, TinyError): traceback.print_exc()
    notes("outcome", [FAILED, f"{type(error).__name__}: {getattr(error, 'message', error)}"])
  else: notes("outcome", [OK, ""])
  sys.stdout.flush()
  os._exit(0)  # what a driver does at the end of a process is not asked here

def start_anew() -> None:
  """Be this program from its beginning: for a step whose process is of no use any more.

  What it has told is in its notes then.
  """
  sys.stdout.flush()
  os.execve(sys.executable, [sys.executable, *sys.argv], dict(os.environ))

def ask(step: Step, command: Sequence[str], most_seconds: float,
        look: Callable[[Result], None] = lambda result: None) -> Result:
  """Run a step's process until it ends, or its deadline. look: gets what it has told, whenever that is more."""
  limit, begin = min(step.seconds, most_seconds), time.monotonic()
  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    out, log = Path(folder, "found"), Path(folder, "log")
    with log.open("wb") as file:
      process = subprocess.Popen([*command, "--step", step.name, "--out", str(out)], stdout=file,
                                 stderr=subprocess.STDOUT, start_new_session=True)
      try:
        status = _watched(process, begin + limit,
                          lambda: look(Result(step, ASKED, time.monotonic() - begin, _told(out), "")), out)
      finally: left = _end(process)
    found, tail = _told(out), log.read_text("utf-8", "replace")[-TAIL:]
  outcome, words = found.pop("outcome", (CRASHED, ""))
  if status is None and outcome == CRASHED: outcome, words = LATE, f"not answered in {limit:.0f} s\n{left}{tail}"
  elif outcome == CRASHED: words = f"the process ended with {_ending(status or 0)}\n{tail}"
  elif outcome == FAILED: words = f"{words}\n{left}{tail}"
  elif status is None: words = f"{words}\nanswered, and then did not end in {limit:.0f} s\n{left}"
  return Result(step, outcome, time.monotonic() - begin, found, words.strip())

def _told(path: Path) -> dict[str, Any]:
  """Return the notes of a step."""
  try: return dict(json.loads(path.read_text("utf-8")))
  except (OSError, ValueError): return {}

def _watched(process: subprocess.Popen[bytes], end: float, look: Callable[[], None], out: Path) -> int | None:
  """The status that a process ends with; None where it has not by then. look: called when `out` is another file than
  before."""
  seen: object = None
  while True:
    try: return process.wait(max(0.01, min(LOOK_SECONDS, end - time.monotonic())))
    except subprocess.TimeoutExpired: pass
    if time.monotonic() >= end: return None
    found = out.stat().st_ino if out.exists() else None
    if found != seen: look()
    seen = found

def _end(process: subprocess.Popen[bytes]) -> str:
  """The step's process, and what it has started.

  Where it waits in the kernel and does not end, in words where that is.
  """
  with contextlib.suppress(ProcessLookupError): os.killpg(process.pid, signal.SIGKILL)
  try: process.wait(END_SECONDS)
  except subprocess.TimeoutExpired:
    return f"the process does not end when it is killed: it waits in the kernel, {_place(process.pid)}\n"
  return ""

def _place(number: int) -> str:
  """Where in the kernel a process is, as far as that is told."""
  found = []
  for name in ("wchan", "stack"):
    with contextlib.suppress(OSError):
      found.append(Path(f"/proc/{number}/{name}").read_text("utf-8", "replace").strip())
  return " ".join(found) or "nobody tells where"

def _ending(status: int) -> str:
  if status >= 0: return f"status {status}"
  try: return signal.Signals(-status).name
  except ValueError: return f"signal {-status}"

class KernelLog:
  """The messages of the kernel's driver: the log is the only place where it says why it refuses a call. words: of the
  lines that are wanted."""
  def __init__(self, words: Sequence[str]):
    self.words, self.last = words, ""
    self.why = ""      # it is not read
    self.new()

  def _lines(self) -> list[str]:
    buffer = ctypes.create_string_buffer(LOG_BYTES)
    try: libc = ctypes.CDLL(None, use_errno=True)
    except OSError: return []
    size = libc.klogctl(WHOLE_LOG, buffer, LOG_BYTES) if hasattr(libc, "klogctl") else -1
    if size < 0: self.why = os.strerror(ctypes.get_errno())
    return buffer.raw[:max(size, 0)].decode("utf-8", "replace").splitlines()

  def new(self) -> list[str]:
    """The wanted lines behind those of the last look."""
    lines = self._lines()
    start = len(lines) - lines[::-1].index(self.last) if self.last in lines else 0
    if lines: self.last = lines[-1]
    return [line[:400] for line in lines[start:] if any(word in line for word in self.words)][:MOST_LINES]

def ask_all(steps: Sequence[Step], command: Sequence[str], seconds: float, tell: Callable[[Result], None],
            save: Callable[[Sequence[Result]], None] = lambda results: None,
            log: KernelLog | None = None) -> list[Result]:
  """All steps, in order, in so many seconds at most; those for which none are left are not asked. save: gets what is
  known, the step that is asked last among it; log: each step has what came to it meanwhile."""
  end, results = time.monotonic() + seconds, list[Result]()
  for step in steps:
    left, lacks = end - time.monotonic(), any(result.step.name == step.needs and result.outcome != OK
                                              for result in results)
    absent = next((result.words for result in results if result.step.name == step.needs and result.outcome == ABSENT),
                  None)
    why = f'"{step.needs}" has no success' if lacks else "no time was left" if left <= 1 else ""
    if absent is not None: result = Result(step, ABSENT, 0.0, {}, absent)
    elif why: result = Result(step, NOT_ASKED, 0.0, {}, why)
    else:
      save([*results, Result(step, ASKED, 0.0, {}, "")])
      result = ask(step, command, left, lambda known: save([*results, known]))
    if log is not None and (lines := log.new()): result.found["kernel log"] = lines
    results.append(result)
    save(results)
    tell(result)
  return results

# **** the report ****

def show(value: Any, indent: int = 4) -> str:
  """Return findings as text for people: short values in a line, others below each other. Of long lists it has the
  beginning, since the file has all."""
  pad = " " * indent
  if isinstance(value, dict): return "".join(f"\n{pad}{key}: {show(item, indent + 2)}" for key, item in value.items())
  if isinstance(value, (list, tuple)) and len(value) > MOST_SHOWN:
    value = [*value[:MOST_SHOWN], f"and {len(value) - MOST_SHOWN} more, which the file has"]
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
  return {"system": f"{platform.system()} {platform.release()}", "machine": platform.machine(),
          "python": platform.python_version(),
          "emulate": os.environ.get("EMULATE", ""), "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())}

def as_json(results: Sequence[Result]) -> dict[str, Any]:
  """The report as JSON holds it."""
  return {**heading(), "steps": [{"step": r.step.name, "outcome": r.outcome, "seconds": round(r.seconds, 2),
                                  "found": r.found, "words": r.words}
                                 for r in results]}
