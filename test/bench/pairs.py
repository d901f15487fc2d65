"""Two checkouts in turns, in one run: is the new one as fast as the old one?

    git worktree add /tmp/old COMMIT
    python3 test/bench/pairs.py /tmp/old [row ...] [--pairs 15] [--seconds 0.3]

Each checkout runs its own scripts of test/bench. startup: `import`, Tensor, the first result; compile: CPU time of cold
processes (compile.py), for x86-64 of both levels and one GPU; host, peers, models: their workloads, each checkout's in
a process of its own (turns.py). A pair is one turn of the old checkout and one of the new one, and its ratio is new
over old: below 1, the new one is faster. Printed: the median of the ratios, their quartiles, and both medians. The
order within a pair changes from pair to pair.
"""
from __future__ import annotations
import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import turns

NEW = Path(__file__).resolve().parents[2]
STATEMENTS = {"import": "import tinyhw", "import Tensor": "from tinyhw import Tensor",
              "first": "from tinyhw import Tensor; Tensor([1,2,3]).sum().item()"}
COMPILED = [(model, arch) for arch in ("x86_64:avx2", "x86_64:avx512", "gfx1100")
            for model in ("convnet", "chains", "softmax", "matmul")]
SERVED = {
  "host": ("jitted", "chain", "plain"),
  "peers": ("elementwise", "sum", "softmax", "layernorm", "sgemm256", "sgemm512", "sgemm1024", "sgemm2048", "batched",
            "gemv", "conv3x3", "conv1x1",
            "maxpool"),
  "models": ("convnet", "resnet"),
}
Measure = Callable[[Path], float]   # seconds that a checkout takes for a turn

def cold(statement: str) -> Measure:
  """From the start of a process to the end of a statement, without a disk cache."""
  def measure(root: Path) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], cwd=root,
                   env={**os.environ, "CACHE": "0", "PYTHONDONTWRITEBYTECODE": ""}, check=True)
    return time.perf_counter() - start
  return measure

def compiled(model: str, arch: str) -> Measure:
  def measure(root: Path) -> float:
    run = subprocess.run([sys.executable, str(root / "test/bench/compile.py"), model, "--arch", arch],
                         capture_output=True, text=True, check=True,
                         env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
    found = re.search(r"([\d.]+) s,", run.stdout)
    assert found is not None, run.stdout
    return float(found[1])
  return measure

class Served:
  """A script of test/bench in both checkouts, whose processes wait for turns."""
  def __init__(self, script: str, roots: list[Path]) -> None:
    self.libraries = {root: turns.Library(str(root / f"test/bench/{script}.py"), "tinyhw") for root in roots}

  def measure(self, workload: str, seconds: float) -> Measure:
    return lambda root: statistics.median(self.libraries[root].turn(workload, seconds)[turns.WARM_UP:])

  def close(self) -> None:
    for library in self.libraries.values(): library.close()

def rows(old: Path, seconds: float, wanted: list[str]) -> Iterator[tuple[str, Measure]]:
  """Every row that is wanted, by its name and a way to measure it."""
  def is_wanted(group: str, name: str) -> bool: return not wanted or group in wanted or name in wanted
  yield from [(name, cold(statement)) for name, statement in STATEMENTS.items() if is_wanted("startup", name)]
  yield from [(f"{model} {arch}", compiled(model, arch)) for model, arch in COMPILED if is_wanted("compile", model)]
  for script, workloads in SERVED.items():
    chosen = [w for w in workloads if is_wanted(script, w)]
    if not chosen: continue
    served = Served(script, [old, NEW])
    yield from [(w, served.measure(w, seconds)) for w in chosen]
    served.close()

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("old", type=lambda text: Path(text).resolve())
  parser.add_argument("rows", nargs="*", help="startup, compile, host, peers, models, or one workload's name")
  parser.add_argument("--pairs", type=int, default=15)
  parser.add_argument("--seconds", type=float, default=0.3, help="of a turn of host, peers and models")
  args = parser.parse_args()
  print(f"{'new / old':26}{'median':>8}{'quartiles':>16}{'old':>12}{'new':>12}   {args.pairs} pairs")
  for name, measure in rows(args.old, args.seconds, args.rows):
    for root in (args.old, NEW): measure(root)    # bytecode is written, kernels are captured
    pairs = []
    for k in range(args.pairs):
      found = {root: measure(root) for root in ((args.old, NEW) if k % 2 else (NEW, args.old))}
      pairs.append((found[args.old], found[NEW]))
    ratios = [new / old for old, new in pairs]
    low, _, high = statistics.quantiles(ratios, n=4)
    before, after = (statistics.median(column) * 1e3 for column in zip(*pairs))
    print(f"{name:26}{statistics.median(ratios):8.3f}{f'{low:.3f}..{high:.3f}':>16}{before:10.3f}ms{after:10.3f}ms",
          flush=True)

if __name__ == "__main__": main()
