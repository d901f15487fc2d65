"""Random programs of in-place writes, views and gradients (test/support/generators/write_programs.py), compared with
PyTorch, which has to be installed.

  python3 test/campaigns/writes.py --programs 20000 --seed 1 --device "CPU AVX2"

The device is named as for gathers.py. Each failure is printed with its program; the last line has the counts. Exit
status 1 if there was one. Seeds count up from --seed: a number says which; even ones write through views, odd ones take
gradients.
"""
from __future__ import annotations
import argparse
from collections import Counter
import importlib.util
import os
import sys
import time

from gathers import environment   # beside this file; it lets the support folder be found, too

def campaign(programs: int, seed: int) -> Counter[str]:
  """Run programs from a seed on: how many of them were what."""
  from generators import write_programs
  counts: Counter[str] = Counter(same=0, refused=0, wrong=0)
  for number in range(seed, seed + programs):
    program = write_programs.make(number)
    try: said = write_programs.check(program)
    # whatever it is, it is counted
    except Exception as error: said = f"{type(error).__name__}: {error}"  # noqa: BLE001
    counts[said if said in ("same", "refused") else "wrong"] += 1
    if said in ("same", "refused"): continue
    sys.stdout.write(f"{program}\n{said}\n\n")
    sys.stdout.flush()
  return counts

def main() -> int:
  parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
  parser.add_argument("--programs", type=int, default=20000)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--device", default="CPU", help="CPU, 'CPU AVX2', CLANG, PYTHON, AMD:gfx1100, NV:sm_90")
  arguments = parser.parse_args()
  if importlib.util.find_spec("torch") is None:
    sys.stdout.write("writes: skipped, PyTorch is not installed\n")
    return 0
  os.environ.update(environment(arguments.device))
  os.environ.setdefault("CACHE", "0")   # each program is new: nothing of it is worth keeping
  start = time.perf_counter()
  counts = campaign(arguments.programs, arguments.seed)
  sys.stdout.write(f"writes on {arguments.device}, seeds from {arguments.seed}: "
                   + ", ".join(f"{n} {kind}" for kind, n in counts.items()) +
                   f"; {time.perf_counter() - start:.0f} s\n")
  return int(counts["wrong"] > 0)

if __name__ == "__main__": sys.exit(main())
