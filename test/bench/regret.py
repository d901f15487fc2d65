"""Measure how far the chosen opts of kernels are from the best of some 50 that are timed.

    python3 test/bench/regret.py [--kernels 60] [--seed 1] [--candidates 50] [--family product] [--record FILE]
    python3 test/bench/regret.py --replay FILE

Kernels are drawn by a seed: families in turn, sizes at random. A search (codegen/search.py) starts at the choice, and
times neighbours of the fastest. *Regret* is the time of the choice over the least time: 1 is perfect. Candidates run in
turns with the choice, so that a drift of the machine meets both. A line is printed for each kernel, the worst last, and
the geometric mean of all. A record is JSON: the machine, kernels, opts and seconds. Replaying one runs nothing. It
chooses again for the machine of the record, and looks up the times there. test/codegen/plan/test_regret.py does that
with the records of test/golden/regret.
"""
from __future__ import annotations
import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tinyhw import Device, Tensor  # noqa: E402
from tinyhw.codegen.kernel.grid import ranges_of  # noqa: E402
from tinyhw.codegen.optimize import with_few_ranges  # noqa: E402
from tinyhw.codegen.plan.heuristic import choose  # noqa: E402
from tinyhw.codegen.plan.register_tile import TOGETHER  # noqa: E402
from tinyhw.codegen.search import search  # noqa: E402
from tinyhw.codegen.transform.tiling import Opt, OptOps  # noqa: E402
from tinyhw.engine.run.compile import MEASURED, capabilities_of  # noqa: E402
from tinyhw.engine.run.tune import Trial  # noqa: E402
from tinyhw.engine.schedule.schedule import canonicalize, schedule  # noqa: E402
from tinyhw.isa.x86.capabilities import capabilities as x86_capabilities  # noqa: E402
from tinyhw.machine.ir.target import Capabilities  # noqa: E402
from tinyhw.uop.enums import Ops  # noqa: E402
from tinyhw.uop.ops import UOp  # noqa: E402

MOST_BYTES = 1 << 27       # of a kernel's buffers
MOST_WORK = 4e9            # operations of a kernel
BEAM = 3
TURNS = 12                 # of the choice and of the fastest candidates, when the search is over
LEAST_SECONDS = 20e-6      # of a kernel: shorter ones measure the launch

class Case(NamedTuple):
  """One kernel: the expression that makes it, and its SINK."""
  name: str
  sink: UOp

# ***** drawing *****

def power(rng: random.Random, low: int, high: int) -> int:
  """Return a size whose logarithm is uniform; half of them are multiples of 16."""
  n = round(math.exp(rng.uniform(math.log(low), math.log(high))))
  return max(16, n // 16 * 16) if rng.random() < 0.5 and n >= 16 else n

def empty(*shape: int) -> Tensor: return Tensor.empty(*shape)

def product(rng: random.Random) -> tuple[str, Tensor]:
  m, n, k = power(rng, 8, 2048), power(rng, 16, 4096), power(rng, 16, 2048)
  kind = rng.choice(("a @ b", "x @ w.T", "a.T @ b"))
  x = empty(k, m).T if kind == "a.T @ b" else empty(m, k)
  return f"{kind} {m}x{k}x{n}", x @ (empty(n, k).T if kind == "x @ w.T" else empty(k, n))

def linear(rng: random.Random) -> tuple[str, Tensor]:
  """A layer: product with weights, bias, and an activation."""
  m, n, k = power(rng, 1, 512), power(rng, 64, 4096), power(rng, 64, 4096)
  activation = rng.choice(("relu", "gelu", "silu"))
  return f"{activation}(x @ w.T + b) {m}x{k}x{n}", getattr(empty(m, k).linear(empty(n, k).T, empty(n)), activation)()

def batched(rng: random.Random) -> tuple[str, Tensor]:
  b, m, n, k = power(rng, 2, 64), power(rng, 16, 512), power(rng, 16, 512), power(rng, 16, 128)
  if rng.random() < 0.5: return f"q @ k.T {b}x{m}x{k}x{n}", empty(b, m, k) @ empty(b, n, k).transpose(1, 2)
  return f"p @ v {b}x{m}x{n}x{k}", empty(b, m, n) @ empty(b, n, k)

def vector(rng: random.Random) -> tuple[str, Tensor]:
  n, k = power(rng, 256, 8192), power(rng, 256, 4096)
  if rng.random() < 0.5: return f"w @ x {n}x{k}", empty(n, k) @ empty(k)
  return f"x @ w {k}x{n}", empty(k) @ empty(k, n)

def convolution(rng: random.Random) -> tuple[str, Tensor]:
  b, c, o = rng.choice((1, 2, 8, 16)), power(rng, 1, 256), power(rng, 8, 256)
  size, kernel, stride = power(rng, 7, 112), rng.choice((1, 3, 3, 5, 7)), rng.choice((1, 1, 1, 2))
  y = empty(b, c, size, size).conv2d(empty(o, c, kernel, kernel), stride=stride, padding=kernel // 2)
  return f"conv {b}x{c}x{size} to {o}, {kernel}x{kernel}, stride {stride}", y

def gradient(rng: random.Random) -> tuple[str, Tensor]:
  """The gradient of a convolution's weights or image."""
  b, c, o = rng.choice((2, 8, 16)), power(rng, 3, 128), power(rng, 8, 128)
  size, kernel = power(rng, 7, 56), rng.choice((1, 3))
  x, w = empty(b, c, size, size), empty(o, c, kernel, kernel)
  which = rng.randrange(2)
  y = x.conv2d(w, padding=kernel // 2)
  found = y.gradient(x, w, gradient=empty(*y.shape))[which]
  return f"gradient of the {('image', 'weights')[which]} of {b}x{c}x{size} to {o}, {kernel}x{kernel}", found

def row(rng: random.Random) -> tuple[str, Tensor]:
  m, n = power(rng, 16, 8192), power(rng, 32, 8192)
  kind = rng.choice(("softmax", "layernorm", "logsumexp", "max", "var", "sum"))
  x = empty(m, n)
  return f"{kind} of rows {m}x{n}", x.layernorm() if kind == "layernorm" else getattr(x, kind)(-1)

def column(rng: random.Random) -> tuple[str, Tensor]:
  m, n = power(rng, 16, 8192), power(rng, 16, 8192)
  kind = rng.choice(("sum", "max", "mean"))
  return f"{kind} of columns {m}x{n}", getattr(empty(m, n), kind)(0)

def elementwise(rng: random.Random) -> tuple[str, Tensor]:
  m, n = power(rng, 64, 4096), power(rng, 64, 4096)
  x, y = empty(m, n), empty(n)
  made: dict[str, Callable[[], Tensor]] = {
    "x * y + 1": lambda: x * y + 1, "gelu": lambda: x.gelu(), "exp": lambda: x.exp(), "tanh": lambda: x.tanh(),
    "transpose": lambda: x.T.contiguous(), "x + x.T": lambda: empty(m, m) + empty(m, m).T,
    "permute": lambda: empty(8, m // 8 + 1, n // 4 + 1).permute(1, 0, 2).contiguous(), "flip": lambda: x.flip(1) * 2}
  kind = rng.choice(sorted(made))
  return f"{kind} {m}x{n}", made[kind]()

def pooling(rng: random.Random) -> tuple[str, Tensor]:
  b, c, size = rng.choice((1, 8, 16)), power(rng, 8, 128), power(rng, 16, 112)
  kind, k = rng.choice(("max_pool2d", "avg_pool2d")), rng.choice((2, 3))
  return f"{kind} {k} of {b}x{c}x{size}", getattr(empty(b, c, size, size), kind)((k, k))

FAMILIES = {f.__name__: f for f in (product, linear, batched, vector, convolution, gradient, row, column, elementwise,
                                    pooling)}

def kernels_of(t: Tensor) -> list[UOp]:
  return [k.sink for k in schedule(canonicalize([t.uop])).kernels if k.sink.op is Ops.SINK]

def work_of(sink: UOp) -> tuple[float, float]:
  """Return the bytes of a kernel's buffers, and its iterations."""
  nodes = sink.toposort()
  size = sum(u.arg[1] * u.dtype.itemsize for u in nodes if u.op is Ops.PARAM)
  return size, max(math.prod(int(r.src[0].vmax) for r in u.ranges) for u in nodes if u.op in (Ops.LOAD, Ops.REDUCE))

def cases(seed: int, count: int, family: str | None = None) -> list[Case]:
  """Draw kernels: of each expression the one with the most iterations."""
  rng, found = random.Random(seed), []
  names = [family] if family else list(FAMILIES)
  while len(found) < count:
    name, result = FAMILIES[names[len(found) % len(names)]](rng)
    sink = max(kernels_of(result), key=lambda k: work_of(k)[1])
    size, work = work_of(sink)
    if size <= MOST_BYTES and 1e5 <= work <= MOST_WORK: found.append(Case(name, sink))
  return found

# ***** measuring *****

def measured(case: Case, candidates: int) -> dict[str, Any] | None:
  """Return the seconds of the choice and of the candidates; None for a kernel that is too short to measure."""
  device = Device.DEFAULT
  trial, seen = Trial(device, case.sink), {}
  def measure(opts: tuple[Opt, ...]) -> float:
    if len(seen) >= candidates: return math.inf
    trial.best = math.inf if not seen else min(seen.values())
    seen[opts] = trial.seconds(opts)
    return seen[opts]
  search(case.sink, capabilities_of(Device[device].arch, device), measure, BEAM)
  chosen = next(iter(seen))
  fastest = sorted(seen, key=lambda opts: seen[opts])[:3]
  turns: dict[tuple[Opt, ...], list[float]] = {opts: [] for opts in (chosen, *fastest)}
  for _ in range(TURNS):
    trial.best = math.inf
    for opts, times in turns.items(): times.append(trial.seconds(opts))
  for opts, times in turns.items(): seen[opts] = min(times)    # others on the machine only add time
  if seen[chosen] < LEAST_SECONDS: return None
  seconds = {written(opts): float(f"{t:.4g}") for opts, t in seen.items() if t < math.inf}
  return {"name": case.name, "chosen": written(chosen), "seconds": seconds}

def written(opts: tuple[Opt, ...]) -> str: return " ".join(f"{o.op.name}:{o.axis}:{o.amount}" for o in opts)

def regret_of(found: dict[str, Any]) -> float:
  return float(found["seconds"][found["chosen"]] / min(found["seconds"].values()))

def mean_regret(found: list[dict[str, Any]]) -> float:
  return math.exp(statistics.mean(math.log(regret_of(one)) for one in found))

# ***** records *****

def machine_of(capabilities: Capabilities) -> dict[str, Any]:
  """Return the facts of a machine that a choice depends on, besides its architecture."""
  return {name: getattr(capabilities, name) for name in MEASURED}

def replayed(record: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
  """Choose again for the machine of a record. Return its kernels with the new choices, and the names of those whose
  choice has no time there."""
  target = x86_capabilities(record["arch"])
  machine = {**record["machine"], "cache_bytes": tuple(record["machine"]["cache_bytes"])}
  capabilities = replace(target, **machine)
  recorded = {one["name"]: one for one in record["kernels"]}
  found, unknown = [], []
  for case in cases(record["seed"], record["count"], record["family"]):
    if case.name not in recorded: continue     # it was too short
    sink, seconds = with_few_ranges(case.sink, capabilities), recorded[case.name]["seconds"]
    opts = choose(sink.src[0], capabilities)
    chosen = next((one for one in (written(opts), written(one_iteration(opts, sink))) if one in seconds), None)
    if chosen is not None: found.append({**recorded[case.name], "chosen": chosen})
    else: unknown.append(case.name)
  return found, unknown

def one_iteration(opts: tuple[Opt, ...], sink: UOp) -> tuple[Opt, ...]:
  """Return the choice with one iteration of a long sum in a body.

  Records that are older than bodies of several iterations have times of the tile alone.
  """
  sums = {r.arg[0] for u in sink.toposort() if u.op is Ops.REDUCE for r in ranges_of(u)}
  return tuple([o for o in opts if o.op is not OptOps.UPCAST or o.axis not in sums or o.amount != TOGETHER])

def report(found: list[dict[str, Any]]) -> None:
  """Print a line for each kernel, the worst last, and the geometric mean."""
  for one in sorted(found, key=regret_of):
    best = min(one["seconds"], key=lambda opts: one["seconds"][opts])
    sys.stdout.write(f"{regret_of(one):6.2f}  {one['seconds'][one['chosen']] * 1e6:9.1f} us  {one['name']}\n"
                     f"{'':20}chosen {one['chosen']}\n" + (f"{'':20}best   {best}\n" if best != one["chosen"] else ""))
  sys.stdout.write(f"{len(found)} kernels: geometric mean {mean_regret(found):.3f}, worst "
                   f"{max(map(regret_of, found)):.2f}\n")

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--kernels", type=int, default=60)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--candidates", type=int, default=50)
  parser.add_argument("--family", choices=list(FAMILIES))
  parser.add_argument("--record", type=Path)
  parser.add_argument("--replay", type=Path)
  given = parser.parse_args()
  if given.replay:
    known, unknown = replayed(json.loads(given.replay.read_text()))
    report(known)
    if unknown: sys.stdout.write(f"no time for the choice of {'; '.join(unknown)}\n")
    return
  found = []
  for case in cases(given.seed, given.kernels, given.family):
    one = measured(case, given.candidates)
    if one is None: continue
    found.append(one)
    sys.stderr.write(f"{len(found):3} {regret_of(one):6.2f} {case.name}\n")
  report(found)
  if given.record:
    arch = Device[Device.DEFAULT].arch
    record = {"arch": arch, "machine": machine_of(capabilities_of(arch, Device.DEFAULT)), "seed": given.seed,
              "count": given.kernels, "family": given.family, "kernels": found}
    given.record.write_text(json.dumps(record, indent=1) + "\n")

if __name__ == "__main__": main()
