"""Ask a real NVIDIA GPU many questions in one call, and write down all answers.

    python3 test/silicon.py                      # at most 9.5 minutes; the report, and silicon.json
    python3 test/silicon.py --first              # without numbers and programs: whether anything runs
    python3 test/silicon.py --only library capture "variant: .*"
    EMULATE=sm_90 python3 test/silicon.py        # the same of a virtual card

Each question has a process and a deadline of its own, so one that crashes does not end the rest, and what is known is
in the file all the time. Needs Python and this repository; PyTorch, pytest and the vendor's library are asked too where
they are. docs/hardware/silicon.md says what is asked, and what to do with the answers.
"""
from __future__ import annotations
import argparse
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "support"), str(HERE.parent)]

from card import calls as calls  # noqa: E402
from card import capture as capture  # noqa: E402
from card import launch as launch  # noqa: E402
from card import numbers as numbers  # noqa: E402
from card import programs as programs  # noqa: E402
from card import system as system  # noqa: E402
from card.bars import bars  # noqa: E402
from card.frame import (  # noqa: E402
  ABSENT, ASKED, NOT_ASKED, OK, KernelLog, Result, Step, answer, as_json, ask_all, heading, line)

from tinyhw.config import EMULATE, NV_BASES  # noqa: E402
from tinyhw.selftest.frame import FAILED  # noqa: E402

MINUTES = 9.5
SHARE = 50    # one test of so many of the tensor suite

# In the order of what they cost and tell: what the kernel's driver says; our code through the vendor's library, which
# needs nothing of our driver and comes before it, for that may leave the GPU in a bad state; then numbers. What a
# driver without kernels could not answer needs STORES.
STORES = f"variant: {next(iter(launch.VARIANTS))}"
VARIANTS = [Step(f"variant: {name}", "does a kernel run with this", 15, launch.variant, (name,))
            for name in launch.VARIANTS]
STEPS = (
  Step("files", "which files and nodes of the kernel's driver are there, and who may open them", 30,
       system.files_and_nodes),
  Step("doctor", "what keeps the GPU from being driven", 15, system.examined),
  Step("version", "does the driver tell the version that its module has", 10, system.version),
  Step("cards", "which GPUs are there, of which classes", 20, system.cards),
  Step("controls", "which controls are answered", 20, system.controls),
  Step("objects", "which objects can be made and mapped", 20, system.objects),
  Step("library", "do kernels run through the vendor's library", 60, launch.selftest, ("NV:CUDA",)),
  Step("capture", "what does the vendor's library tell the GPU for one of our kernels, and what differs from ours", 45,
       capture.library),
  Step("calls of the library", "what does the vendor's library ask the kernel's driver for", 25, calls.library),
  Step("products of the library", "are products of all types right through the vendor's library", 40, numbers.products,
       ("NV:CUDA",)),
  Step("suite of the library", "does a share of the tensor suite pass through the vendor's library", 45, programs.suite,
       ("NV:CUDA", SHARE, 40)),
  Step("raw", "how far does our own driver come", 90, launch.selftest, ("NV",)),
  Step("own capture", "is what is searched for found in our own submission", 20, capture.own),
  Step("own calls", "what does our own driver ask the kernel's driver for", 20, calls.own),
  VARIANTS[0],
  Step("products", "are products of all types right", 40, numbers.products, ("NV",), STORES),
  Step("numbers of PyTorch", "how fast is PyTorch", 60, numbers.measure, ("torch",)),
  Step("numbers", "how fast is our own driver", 90, numbers.measure, ("NV",), STORES),
  *VARIANTS[1:],
  Step("numbers of the library", "how fast is the same code through the vendor's library", 90, numbers.measure,
       ("NV:CUDA",)),
  *(Step(what + ending, question, seconds, function, (device,), needed) for what, question, seconds, function in (
    ("start", "how soon does a process have its first kernel", 30, programs.start),
    ("digits", "does a network learn", 60, programs.digits),
    ("convnet", "does the network for MNIST learn as on the CPU", 60, programs.convnet))
    for ending, device, needed in (("", "NV", STORES), (" of the library", "NV:CUDA", ""))),
  Step("suite", "does a share of the tensor suite pass", 125, programs.suite, ("NV", SHARE, 120), STORES),
  Step("faults", "are a hang and a bad address told, and does the GPU recover", 60, launch.selftest, ("NV", True)),
)

WITHOUT_CARD = (system.files_and_nodes, system.examined)   # which look at the computer, and open no GPU

# modules whose steps tell whether anything runs
FIRST = (system.__name__, launch.__name__, capture.__name__, calls.__name__)

def chosen(patterns: list[str], first: bool = False) -> list[Step]:
  """The steps whose whole names match one of some regular expressions; all if there are none. first: without numbers,
  programs and faults.

  Raises SystemExit for a pattern that matches nothing.
  """
  for pattern in patterns:
    if not any(re.fullmatch(pattern, step.name) for step in STEPS):
      raise SystemExit(f"silicon.py: no step is called {pattern!r}; there are {', '.join(step.name for step in STEPS)}")
  found = [step for step in STEPS if not patterns or any(re.fullmatch(pattern, step.name) for pattern in patterns)]
  return [step for step in found if not first or step.function.__module__ in FIRST and step.name != "faults"]

def tell(result: Result, reasons: dict[str, str]) -> None:
  """Print what a step found; a reason for which steps are absent only once. Steps behind one whose kernels do not add
  bases as the compiler assumes have addresses of 64 bits. reasons: for which steps were absent, with the first of
  these; one more is added."""
  first = reasons.setdefault(result.words, result.step.name) if result.outcome == ABSENT else result.step.name
  print(line(result if first == result.step.name else result._replace(words=f'as "{first}" is')), flush=True)
  if str(result.found.get("bases", "")).startswith(FAILED):
    os.environ[NV_BASES.key] = "0"
    print(f"    from here on with {NV_BASES.key}=0", flush=True)

def compared(results: Sequence[Result]) -> dict[str, dict[str, str]]:
  """How the numbers of each way to the card compare with what is expected of them: by way, by number.

  Only of ways that were asked.
  """
  found = {result.step.name: result.found for result in results if result.outcome not in (ABSENT, ASKED, NOT_ASKED)}
  ways = {"our own driver": "", "the library": " of the library"}
  return {way: dict(bars({**found.get("numbers" + ending, {}), **found.get("start" + ending, {})},
                         found.get("numbers of PyTorch", {})))
          for way, ending in ways.items() if "numbers" + ending in found}

def met_no_card(results: Sequence[Result]) -> bool:
  """Is each of the steps absent that would have asked a GPU through a driver of ours, or the library?"""
  asking = [result for result in results if result.step.function not in WITHOUT_CARD
            and "torch" not in result.step.arguments]
  return bool(asking) and all(result.outcome == ABSENT for result in asking)

def saved(path: Path, results: Sequence[Result], ended: str) -> None:
  """Write what is known. ended: how the whole did, in words."""
  new = path.with_name(path.name + ".new")
  new.write_text(json.dumps({**as_json(results), "ended": ended, "expected": compared(results)}, indent=1), "utf-8")
  os.replace(new, path)

def stopped(number: int, frame: object) -> None:
  """A signal ends the step's process, too."""
  raise SystemExit(f"silicon.py: stopped by {signal.Signals(number).name}; what is known is in the file of answers")

def main() -> int:
  """Ask; 0 if nothing failed, and a GPU was there to be asked. With --step: answer, in the process of that step."""
  parser = argparse.ArgumentParser(description="Ask a real NVIDIA GPU many questions in one call.")
  parser.add_argument("--only", nargs="+", default=[], metavar="STEP", help="steps to ask, regular expressions; all "
                      "without it")
  parser.add_argument("--first", action="store_true", help="without numbers, programs and faults: whether anything "
                      "runs, in a few minutes")
  parser.add_argument("--minutes", type=float, default=MINUTES, help="for all steps together")
  parser.add_argument("--json", default="silicon.json", help="where the answers are written")
  parser.add_argument("--list", action="store_true", help="print the steps, and ask nothing")
  parser.add_argument("--step", help=argparse.SUPPRESS)
  parser.add_argument("--out", help=argparse.SUPPRESS)
  options = parser.parse_args()
  if options.step: return answer(next(step for step in STEPS if step.name == options.step), options.out)
  steps, path = chosen(options.only, options.first), Path(options.json)
  if options.list:
    for step in steps: print(f"{step.name:<45} {step.seconds:4.0f} s  {step.question}?")
    return 0
  for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, stopped)
  print(" ".join(f"{key}={value}" for key, value in heading().items() if value), flush=True)
  log = KernelLog(("NVRM", "Xid", "nvidia"))
  if log.why: print(f"the kernel's log is not read: {log.why}")
  try: saved(path, [], "not yet")
  except OSError as error:
    raise SystemExit(f"silicon.py: {path} cannot be written ({error.strerror}); say where with --json") from error
  reasons = dict[str, str]()
  with system.held():
    results = ask_all(steps, [sys.executable, os.path.abspath(__file__)], 60 * options.minutes,
                      lambda result: tell(result, reasons),
                      lambda known: saved(path, known, "not yet"), None if EMULATE.value else log)
  note = "; a virtual card's times say nothing" if EMULATE.value else ""
  for way, told in compared(results).items():
    print(f"\n== {way}, and what is expected{note}", *(f"{name}: {words}" for name, words in told.items()),
          sep="\n    ")
  saved(path, results, "all was asked")
  count = {outcome: sum(r.outcome == outcome for r in results) for outcome in dict.fromkeys(r.outcome for r in results)}
  print(f"\n{', '.join(f'{number} {outcome}' for outcome, number in count.items())}; the answers are in {path}")
  if met_no_card(results): print("no GPU was asked: each step that would is absent, for the reason it tells")
  return int(met_no_card(results) or any(r.outcome not in (OK, ABSENT) for r in results))

if __name__ == "__main__": sys.exit(main())
