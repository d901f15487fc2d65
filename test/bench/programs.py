"""Time the programs of test/programs beside their twins in PyTorch: a step as a user's loop makes it, with the choice
of samples and `.item()`.

    python3 test/bench/programs.py [program ...] [--seconds 4.5] [--threads N]

Steady: the median of steps after the first; the processes take turns (turns.py), and both libraries have their default
number of threads, or N. Cold: tinyhw's first two steps, without a disk cache (CACHE=0). Without TinyJit: tinyhw's step
as it runs where nothing is captured.
"""
from __future__ import annotations
import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("CACHE", "0")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs"))

import turns

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"

BAR = 3.0                        # times PyTorch's time
WITHOUT_BAR = ("nanogpt", "vit")   # bound by attention and by products with weights: recorded

def prepare(library: str, program: str) -> Callable[[], float]:
  """Return a function that does one step."""
  training = importlib.import_module(program + "_torch" * (library == "torch")).training
  losses = training(library != "plain")
  return lambda: next(losses)

def row(program: str, seconds: float) -> str:
  """A line of the table in docs/performance.md."""
  libraries = [turns.Library(__file__, name) for name in ("tinyhw", "torch", "plain")]
  first, second, *_ = libraries[0].turn(program, 0.0)
  medians = turns.medians(turns.take_turns(libraries, program, seconds))
  for library in libraries: library.close()
  ours, theirs = medians["tinyhw"], medians["torch"]
  bar, verdict = ((f"≤ {BAR:.0f} × PyTorch's time", "met" if ours <= BAR * theirs else "missed")
                  if program not in WITHOUT_BAR else ("recorded", "–"))
  return (f"| {program}, training step | {bar} | {ours * 1e3:.3g} ms | torch {theirs * 1e3:.3g} ms | "
          f"{theirs / ours:.2f} | {verdict} | "
          f"{first + second:.2f} s | {medians['plain'] * 1e3:.3g} ms |")

def main() -> None:
  known = sorted(path.stem.removesuffix("_torch") for path in PROGRAMS.glob("*_torch.py"))
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("programs", nargs="*", default=known)
  parser.add_argument("--seconds", type=float, default=4.5, help="of each library and program")
  parser.add_argument("--threads", type=int, help="of both libraries, instead of the default")
  parser.add_argument("--serve", help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.serve: return turns.serve(lambda program: prepare(args.serve, program))
  if unknown := set(args.programs) - set(known):
    parser.error(f"no program {', '.join(sorted(unknown))}; there are {', '.join(known)}")
  if args.threads:
    os.environ.update(dict.fromkeys(("THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(args.threads)))
  start = time.perf_counter()
  print("| case | bar | tinyhw | peer | ratio | verdict | cold, two steps | without TinyJit "
        "|\n|---|---|---|---|---|---|---|---|")
  for program in args.programs: print(row(program, args.seconds), flush=True)
  print(f"\n{time.perf_counter() - start:.0f} s, load {os.getloadavg()[0]:.1f}")

if __name__ == "__main__": main()
