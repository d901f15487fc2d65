"""Random programs with symbolic sizes, compared with the same programs with numbers: each by itself, captured by
TinyJit, and replayed.

    python3 test/campaigns/symbolic.py --programs 20000 --seed 1

Programs are made by test/support/generators/symbolic_programs.py. Each that is wrong, or ends in a fault of tinyhw, is
printed with its seed; one is for each reason to refuse. The last lines have the counts. The exit status is 1 if a
program was wrong or a fault, or if more than 3 % were refused. --jobs: processes that share the work. Seeds count up
from --seed. SPEC=2 in the environment verifies all kernels, too, down to each index.
"""
from __future__ import annotations
import argparse
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
import sys
import time

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test" / "support")]

MOST_REFUSED = 0.03
PART = 50           # programs that a process is given at once

def part(first: int, count: int) -> list[tuple[int, str, str, str]]:
  """(seed, kind, why, message) of each program from a seed on that is not the same."""
  from generators import symbolic_programs
  found = [(seed, symbolic_programs.check(symbolic_programs.make(seed))) for seed in range(first, first + count)]
  return [(seed, outcome.kind, outcome.why, outcome.message) for seed, outcome in found if outcome.kind != "same"]

def campaign(programs: int, seed: int, jobs: int) -> dict[str, int]:
  """Run programs from a seed on; how many were wrong, refused, or a fault."""
  counts = {"wrong": 0, "internal": 0, "refused": 0}
  reasons: Counter[str] = Counter()
  parts = [(first, min(PART, seed + programs - first)) for first in range(seed, seed + programs, PART)]
  with ProcessPoolExecutor(jobs) as pool:
    for found in pool.map(part, *zip(*parts)):
      for number, kind, why, message in found:
        counts[kind] += 1
        reasons[why] += 1
        if kind != "refused" or reasons[why] == 1: sys.stdout.write(f"seed {number}: {kind}, {why}\n{message}\n\n")
        sys.stdout.flush()
  for why, count in reasons.most_common(): sys.stdout.write(f"{count:6} {why}\n")
  return counts

def main() -> int:
  parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
  parser.add_argument("--programs", type=int, default=200)
  parser.add_argument("--seed", type=int, default=int(time.time()) // 86400 * 100_000)
  parser.add_argument("--jobs", type=int, default=1)
  given = parser.parse_args()
  counts = campaign(given.programs, given.seed, given.jobs)
  same = given.programs - sum(counts.values())
  rest = ", ".join(f"{n} {kind}" for kind, n in counts.items())
  sys.stdout.write(f"{given.programs} programs from seed {given.seed} on: {same} the same, {rest}\n")
  return int(counts["wrong"] + counts["internal"] > 0 or counts["refused"] > MOST_REFUSED * given.programs)

if __name__ == "__main__": sys.exit(main())
