"""Time what a cold process spends on scheduling and compiling whole models, stage by stage. Nothing runs, so the CPU's
speed is all that matters.

    python3 test/bench/compile.py [convnet|resnet|chains|softmax|matmul] [--arch x86_64:avx2]
                                  [--profile tottime] [--kernels 10]
    python3 test/bench/compile.py --against gfx1100 [--rounds 5]

chains: two kernels of 500 operations on 250 constants each; the slower one is the first of the process, which loads the
compiler. softmax: rows of 1024; matmul: 4096^3 of float16. --against: the CPU time of all of these on --arch and on
another architecture, in turns, a process for each.

CPU time of this thread, not wall time, so that a busy machine disturbs it less; take the least of several runs. One
model a process: the second one would find instructions and expansions ready. `code` is a digest of all machine code: a
change that only makes compiling faster keeps it.
"""
from __future__ import annotations
import argparse
import collections
import cProfile
import hashlib
import os
import pstats
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [ROOT, os.path.dirname(os.path.abspath(__file__))]

def arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("model", nargs="?", default="convnet")
  parser.add_argument("--arch", default="x86_64:avx2")
  parser.add_argument("--profile", help="sort the functions by this: tottime, cumtime")
  parser.add_argument("--against", help="compare with this architecture")
  parser.add_argument("--rounds", type=int, default=5, help="of a comparison: the least counts")
  parser.add_argument("--kernels", type=int, default=0, help="print so many of the slowest kernels")
  return parser.parse_args()

def chains() -> None:
  """Two kernels of 500 nodes, which differ in their constants."""
  from tinyhw import Tensor
  for first in (1, 2):
    x = Tensor.empty(4096)
    for k in range(250): x = x * x + (first + k / 256)
    x.realize()

def softmax() -> None:
  from tinyhw import Tensor
  Tensor.empty(4096, 1024).softmax().realize()

def matmul() -> None:
  from tinyhw import Tensor
  (Tensor.empty(4096, 4096, dtype="half") @ Tensor.empty(4096, 4096, dtype="half")).realize()

SMALL = {"chains": chains, "softmax": softmax, "matmul": matmul}
COMPARED = ("convnet", *SMALL)

def seconds_of(model: str, arch: str) -> float:
  """CPU seconds of a cold process, whose modules are kept as bytecode by the first one."""
  environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
  run = subprocess.run([sys.executable, __file__, model, "--arch", arch], capture_output=True, text=True, check=True,
                       env=environment)
  found = re.search(r"([\d.]+) s,", run.stdout)
  assert found is not None, run.stdout
  return float(found[1])

def compare(arch: str, other: str, rounds: int) -> None:
  """A line for each model: seconds on both, and the ratio."""
  print(f"{'':8} {arch:>12} {other:>12}  ratio")
  for model in COMPARED:
    times = [(seconds_of(model, arch), seconds_of(model, other)) for _ in range(rounds)]
    one, two = (min(column) for column in zip(*times))
    print(f"{model:8} {one:10.3f} s {two:10.3f} s  {two / one:.2f}", flush=True)

class Clock:
  """Adds up the thread's CPU time in wrapped functions, by name."""
  def __init__(self) -> None: self.spent: dict[str, float] = collections.defaultdict(float)

  def wrap(self, name: str, function: Callable[..., Any],
           then: Callable[[Any, float], None] | None = None) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
      start = time.thread_time()
      result = function(*args, **kwargs)
      took = time.thread_time() - start
      self.spent[name] += took
      if then is not None: then(result, took)
      return result
    return timed

def main() -> None:
  args = arguments()
  if args.against: return compare(args.arch, args.against, args.rounds)
  os.environ.update(CACHE="0", DEV="NULL", NULL_ARCH=args.arch)
  import models
  from tinyhw.codegen import optimize, passes
  from tinyhw.engine.run import compile as engine, realize
  from tinyhw.engine.schedule import schedule as scheduling
  from tinyhw.errors import DeviceError
  from tinyhw.machine.passes import PASSES
  clock, digest, kernels = Clock(), hashlib.blake2b(digest_size=8), []

  def compiled(made: Any, took: float) -> None:
    digest.update(made.code.text)
    kernels.append((took, len(made.code.text), made.code.name))
  run = SMALL[args.model] if args.model in SMALL else models.MODELS[args.model]["tinyhw"]()
  setattr(realize, "schedule", clock.wrap("schedule", scheduling.schedule))
  optimize.optimize, passes.lower = clock.wrap("optimize", optimize.optimize), clock.wrap("lower", passes.lower)
  engine._compile = clock.wrap("compile", engine._compile, compiled)
  for name in PASSES: PASSES[name] = clock.wrap(f"machine.{name}", PASSES[name])
  profile = cProfile.Profile()
  start = time.thread_time()
  if args.profile: profile.enable()
  try: run()
  except DeviceError: pass  # NULL has nothing to read
  profile.disable()
  total = time.thread_time() - start
  print(f"{args.model}: {len(kernels)} kernels, {total:.4f} s, code {digest.hexdigest()}")
  for name, seconds in sorted(clock.spent.items(), key=lambda item: -item[1]):
    if seconds >= 0.001: print(f"  {name:20} {seconds * 1e3:7.1f} ms")
  for took, size, name in sorted(kernels, reverse=True)[:args.kernels]:
    print(f"  {took * 1e3:7.1f} ms {size:6} bytes  {name}")
  if args.profile: pstats.Stats(profile).sort_stats(args.profile).print_stats(40)

if __name__ == "__main__": main()
