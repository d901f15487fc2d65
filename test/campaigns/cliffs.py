"""Sweep all sizes of the families of test/support/cliffs.py for steps that one element more makes in what kernels
execute.

    python3 test/campaigns/cliffs.py --largest 300 [--family "matmul n"] [--arch x86_64:avx2]

Each step above what is explained for its family, at any size, is printed; the exit status is 1 if there is one. Nothing
runs but the compiler.
"""
from __future__ import annotations
import argparse
from pathlib import Path
import sys
import test

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT)]
test.__path__[:] = [str(ROOT / "test")]   # not that of Python's own tests

def sweep(family: str, arch: str, largest: int) -> list[str]:
  """A line for each step of a family that is not explained."""
  from test.support.cliffs import LARGEST, LEAST, excess
  sizes = range(LEAST[arch], min(largest, LARGEST.get(family, largest)) + 1)
  return [f"{arch} {family}: {n} -> {n + 1}: {more}" for n in sizes if (more := excess(family, n, arch, anywhere=True))]

def main() -> int:
  from test.support.cliffs import FAMILIES, LEAST
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--largest", type=int, default=300)
  parser.add_argument("--family", choices=list(FAMILIES))
  parser.add_argument("--arch", choices=list(LEAST))
  chosen = parser.parse_args()
  found: list[str] = []
  for arch in [chosen.arch] if chosen.arch else LEAST:
    for family in [chosen.family] if chosen.family else FAMILIES:
      lines = sweep(family, arch, chosen.largest)
      sys.stdout.write("".join([line + "\n" for line in lines]))
      sys.stdout.flush()
      found += lines
  sys.stdout.write(f"{len(found)} steps that are not explained\n")
  return 1 if found else 0

if __name__ == "__main__": sys.exit(main())
