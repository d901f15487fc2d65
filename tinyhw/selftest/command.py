"""`python3 -m tinyhw selftest DEVICE`: test a device step by step, print the results, and give advice for a failed
step.

The report is made to be pasted. It names the computer, the device, each step with its result and time, and explains the
first failure.
"""
from __future__ import annotations
import importlib
import importlib.util
import json
import platform
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from tinyhw import isa
from tinyhw.config import EMULATE
from tinyhw.device import DRIVERS, Device, on_disk
from tinyhw.errors import ArgumentError
from tinyhw.selftest import frame, tensors

def assemble(text: str, arch: str) -> bytes:
  """Assemble several lines of text to machine code."""
  module = importlib.import_module(isa.ASSEMBLERS[arch.partition(":")[0]])
  return b"".join(module.assemble(line, arch) for line in text.splitlines())

def begin(name: str, faults: bool) -> frame.Session:
  """Return the session of a device: that of its driver's module `selftest` if there is one."""
  module = DRIVERS[name.partition(":")[0]] + ".selftest"  # NV:CUDA has that of NV
  try: found = importlib.util.find_spec(module)
  except ModuleNotFoundError: found = None  # the driver is one module
  tools = frame.Tools(assemble, faults)
  if found is None: return frame.Session(name, tools)
  other: frame.Begins = importlib.import_module(module)
  return other.begin(name, tools)

def opens(session: frame.Session) -> str: return session.device.arch

OPENS = frame.Probe("opens", "does the device open as programs open it", "`python3 -m tinyhw doctor` says why it does "
                    "not and what would change that",
                    opens, basic=True)

def steps(session: frame.Session) -> list[frame.Probe]:
  return [*(session.first() or (OPENS,)), *tensors.STEPS, *session.last()]

def heading(session: frame.Session) -> str:
  """Return the heading: the device and the computer."""
  virtual = f", virtual (EMULATE={EMULATE.value})" if EMULATE.value else ""
  return (f"selftest of {session.name}{virtual}: {platform.system()} {platform.release()}, {platform.machine()}, "
          f"Python {platform.python_version()}")

def line(number: int, result: frame.ProbeResult, width: int) -> str:
  first, *rest = result.words.splitlines() or [""]
  return "\n".join([f"{number:2} {result.step.name:<{width}}  {result.outcome:<7} {result.milliseconds:8.1f} ms  "
                    f"{first}",
                    *(f"      {text}" for text in rest)])

def summary(results: Sequence[frame.ProbeResult]) -> str:
  """Return the number of steps that passed, and the question and advice of the first failed step."""
  count = {outcome: sum(r.outcome == outcome for r in results) for outcome in (frame.OK, frame.FAILED, frame.ABSENT,
                                                                               frame.NOT_RUN)}
  text = ", ".join(f"{number} {outcome}" for outcome, number in count.items() if number
                   or outcome in (frame.OK, frame.FAILED))
  failed = next((r for r in results if r.outcome == frame.FAILED), None)
  if failed is None: return text
  return (f"{text}\n\nThe first step that failed is \"{failed.step.name}\": {failed.step.question}?\n  it found: "
          f"{failed.words.splitlines()[0]}\n"
          f"  what to check: {failed.step.check}")

def data(session: frame.Session, results: Sequence[frame.ProbeResult]) -> dict[str, Any]:
  """Return the report as data for JSON."""
  rows = [{"step": r.step.name, "outcome": r.outcome, "milliseconds": round(r.milliseconds, 3), "words": r.words,
           **({"check": r.step.check} if r.outcome == frame.FAILED else {})} for r in results]
  return {"device": session.name, "emulate": EMULATE.value, "heading": heading(session), "steps": rows}

def run(name: str, faults: bool = False, as_json: bool = False, out: TextIO | None = None) -> int:
  """Test a device. Return 0 if no step failed. faults: provoke a hang and a page fault too.

  Raises DeviceError for an unknown device name.
  """
  out, name = out or sys.stdout, Device.canonicalize(name)
  no_work = (f"{name} keeps a file" if on_disk(name) else "NULL runs no kernels" if name.partition(":")[0] == "NULL"
             else "")
  if no_work:
    raise ArgumentError(f"{no_work} and computes nothing; there are "
                        f"{', '.join(other for other in DRIVERS if other != 'NULL')}")
  session, results = begin(name, faults), list[frame.ProbeResult]()
  try:
    todo = steps(session)
    width = max(len(step.name) for step in todo)
    if not as_json: print(heading(session), file=out)
    for number, result in enumerate(frame.run(session, todo), 1):
      results.append(result)
      if not as_json and result.outcome != frame.NOT_RUN: print(line(number, result, width), file=out, flush=True)
    print(json.dumps(data(session, results), indent=2) if as_json else summary(results), file=out)
  finally: session.close()
  return 1 if any(r.outcome == frame.FAILED for r in results) else 0
