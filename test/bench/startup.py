"""Time what a process pays before anything is computed: import, first result, resident memory. Each in fresh processes,
without a disk cache.

    python3 test/bench/startup.py [--runs 11] [--peers torch,tinygrad]

import: `import tinyhw` above bare Python (it loads Tensor only when that is asked for, so `import Tensor` is measured
besides). first: process start to the end of `Tensor([1,2,3]).sum().item()`, and from before the import. memory: the
process's peak resident set then. Medians; each round runs every process once, so that a machine's drift meets all
alike. Peers that are not installed are left out.
"""
from __future__ import annotations
import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRST = {
  "tinyhw": "from tinyhw import Tensor; Tensor([1,2,3]).sum().item()",
  "tinygrad": "from tinygrad import Tensor; Tensor([1,2,3]).sum().item()",
  "torch": "import torch; torch.tensor([1,2,3]).sum().item()",
}
# around a statement: its own seconds, and the peak resident memory in kilobytes (KiB on Linux, bytes on macOS)
PROBE = "import time; t = time.perf_counter(); {}\n" \
        "import resource; print(time.perf_counter() - t, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"

def measure(statement: str) -> tuple[float, float, float]:
  """Seconds of the whole process, seconds of the statement, peak resident MB. Raises CalledProcessError."""
  start = time.perf_counter()
  done = subprocess.run([sys.executable, "-c", PROBE.format(statement)], cwd=ROOT,
                        env={**os.environ, "CACHE": "0", "CACHELEVEL": "0"},
                        capture_output=True, text=True, check=True)
  whole = time.perf_counter() - start
  inside, resident = done.stdout.split()
  return whole, float(inside), float(resident) / (1 << 20 if sys.platform == "darwin" else 1 << 10)

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--runs", type=int, default=11)
  parser.add_argument("--peers", default="torch,tinygrad")
  args = parser.parse_args()
  names = ["tinyhw"] + [name for name in args.peers.split(",") if name and importlib.util.find_spec(name) is not None]
  processes = {"python": "pass", **{f"import {name}": f"import {name}" for name in names},
               "import Tensor": "from tinyhw import Tensor",
               **{f"first {name}": FIRST[name] for name in names}}
  found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in processes}
  for statement in processes.values(): measure(statement)   # files into the page cache, bytecode written
  for _ in range(args.runs):
    for name, statement in processes.items(): found[name].append(measure(statement))
  bare = statistics.median(whole for whole, _, _ in found["python"])
  print(f"{'':18s}{'process':>12s}{'above bare':>12s}{'statement':>12s}{'resident':>12s}   median of {args.runs}")
  for name, values in found.items():
    whole, inside, resident = (statistics.median(column) for column in zip(*values))
    print(f"{name:18s}{whole * 1e3:10.1f}ms{(whole - bare) * 1e3:10.1f}ms{inside * 1e3:10.1f}ms{resident:10.1f}MB")

if __name__ == "__main__": main()
