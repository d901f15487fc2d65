"""Compare the predicted cycles of tiles for GPUs with the bounds of their listings, without a GPU: nothing is timed.

    python3 test/bench/tiles.py [--arch gfx1100 gfx942 sm_80 sm_90] [--products 12] [--seed 1] [--tiles 30]
                                [--record FOLDER]

Products on matrix units are drawn by a seed: plain ones and those with weights, batches, convolutions and their
gradients, of even and odd sizes. The chosen tile of each is compiled, and so are other tiles at random. *Regret* is the
bound of the chosen one over the least bound: 1 is perfect. The correlation is that of the ranks of predictions and
bounds. A record has the sizes of products, tiles and bounds. test/codegen/plan/test_predict.py predicts its tiles
again, which compiles nothing.
"""
from __future__ import annotations
import argparse
import importlib
import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tinyhw import Device, Tensor
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.plan import matrix_tile
from tinyhw.codegen.plan.predict import predict
from tinyhw.codegen.plan.tile_shape import CopiedOperand, PlannedProduct, TileShape
from tinyhw.engine.run.compile import capabilities_of, kernel_name
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.errors import CompileError
from tinyhw.isa import LISTERS
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import UOp

ARCHS = ("gfx1100", "gfx942", "sm_80", "sm_90")

class Candidate(NamedTuple):
  """A tile of a product, the unit's shape, and the bound of its kernel in seconds."""
  shape: TileShape
  product: PlannedProduct
  matrix: Matrix
  seconds: float

# ***** drawing *****

def size(rng: random.Random, low: int, high: int) -> int:
  """Return a size whose logarithm is uniform; two thirds are multiples of 64 or of 8."""
  n = round(math.exp(rng.uniform(math.log(low), math.log(high))))
  step = rng.choice((1, 8, 64))
  return max(step, n // step * step)

def empty(*shape: int) -> Tensor: return Tensor.empty(*shape, dtype="float16", device="NULL")

def product(rng: random.Random) -> tuple[str, Tensor]:
  m, n, k = size(rng, 64, 8192), size(rng, 64, 8192), size(rng, 64, 4096)
  kind = rng.choice(("a @ b", "x @ w.T", "a.T @ b"))
  x = empty(k, m).T if kind == "a.T @ b" else empty(m, k)
  return f"{kind} {m}x{k}x{n}", x @ (empty(n, k).T if kind == "x @ w.T" else empty(k, n))

def batched(rng: random.Random) -> tuple[str, Tensor]:
  b, m, n, k = size(rng, 2, 64), size(rng, 64, 2048), size(rng, 64, 2048), size(rng, 64, 256)
  if rng.random() < 0.5: return f"q @ k.T {b}x{m}x{k}x{n}", empty(b, m, k) @ empty(b, n, k).transpose(1, 2)
  return f"p @ v {b}x{m}x{n}x{k}", empty(b, m, n) @ empty(b, n, k)

def convolution(rng: random.Random) -> tuple[str, Tensor]:
  b, c, o, side, kernel = rng.choice((4, 16, 32)), size(rng, 16, 256), size(rng, 32, 256), size(rng, 14, 64), 3
  x, w = empty(b, c, side, side), empty(o, c, kernel, kernel)
  y = x.conv2d(w, padding=1)
  which = rng.choice(("convolution", "image", "weights"))
  found = y if which == "convolution" else y.gradient(x, w, gradient=empty(*y.shape))[which == "weights"]
  return f"{which} {b}x{c}x{side} to {o}", found

FAMILIES: tuple[Callable[[random.Random], tuple[str, Tensor]], ...] = (product, batched, product, convolution)

def drawn(seed: int, count: int) -> list[tuple[str, list[UOp]]]:
  """Return names and kernels."""
  rng, out, device = random.Random(seed), [], Device["NULL"]
  before, device.copies_operands = device.copies_operands, True   # as GPUs do
  try:
    for k in range(count):
      name, result = FAMILIES[k % len(FAMILIES)](rng)
      kernels = schedule(canonicalize([result.uop])).kernels
      out.append((name, [kernel.sink for kernel in kernels if kernel.sink.op is Ops.SINK]))
  finally: device.copies_operands = before
  return out

# ***** bounds *****

def candidates(sink: UOp, arch: str, capabilities: Capabilities, most: int, rng: random.Random) -> list[Candidate]:
  """Return the chosen tile of a kernel and others at random; nothing for a kernel that has no tile."""
  seen: dict[tuple[TileShape, PlannedProduct, Matrix], float] = {}
  def noted(*key: Any) -> float:
    seen[key[:3]] = predict(*key)
    return seen[key[:3]]
  matrix_tile.predict = noted
  optimize(sink, capabilities)
  if not seen: return []
  chosen, *others = sorted(seen, key=seen.__getitem__)
  found = []
  for key in [chosen, *rng.sample(others, min(most - 1, len(others)))]:
    matrix_tile.predict = lambda *this, key=key: 0.0 if this[:3] == key else 1.0 + predict(*this)
    program = lower(optimize(sink, capabilities), capabilities, kernel_name(sink))
    try: seconds = importlib.import_module(LISTERS[arch]).bounds(program, arch).seconds
    except CompileError:
      if key is chosen: raise
      continue    # it needs more registers than there are
    found.append(Candidate(*key, seconds))
  matrix_tile.predict = predict
  return found

# ***** numbers *****

def regret(tiles: Sequence[Candidate], predicted: Sequence[float]) -> float:
  """Return the bound of the tile with the least prediction over the least bound."""
  first = min(range(len(tiles)), key=lambda k: predicted[k])
  return tiles[first].seconds / min(tile.seconds for tile in tiles)

def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
  """Return the correlation of ranks. Equal values share a rank."""
  def ranks(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    return [(order.index(v) + len(order) - order[::-1].index(v) - 1) / 2 for v in values]
  a, b = ranks(xs), ranks(ys)
  return statistics.correlation(a, b) if len(set(a)) > 1 and len(set(b)) > 1 else 1.0

def mean(values: Sequence[float]) -> float: return math.exp(statistics.fmean(map(math.log, values)))

# ***** records *****

def to_json(tiles: Sequence[Candidate], capabilities: Capabilities) -> list[Any]:
  """Return tiles of one kernel in plain words: a product, then [shape, number of the unit's shape, seconds]."""
  out: list[Any] = []
  for t in tiles:
    if not out or out[-1]["product"] != t.product: out.append({"product": t.product, "tiles": []})
    out[-1]["tiles"].append([t.shape, capabilities.matrix.index(t.matrix), float(f"{t.seconds:.4g}")])
  return out

def from_json(parts: Sequence[Any], capabilities: Capabilities) -> list[Candidate]:
  out = []
  for part in parts:
    *sizes, operands, bulk = part["product"][:6]
    a, b = (CopiedOperand(*operand) for operand in operands)
    whole = PlannedProduct(*sizes, (a, b), bulk)
    out += [Candidate(TileShape(*shape), whole, capabilities.matrix[unit], seconds)
            for shape, unit, seconds in part["tiles"]]
  return out

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--arch", nargs="+", default=ARCHS)
  parser.add_argument("--products", type=int, default=12)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--tiles", type=int, default=30, help="of each product")
  parser.add_argument("--record", type=Path, help="a folder for ARCH.json")
  given = parser.parse_args()
  for arch in given.arch:
    capabilities, regrets, correlations, record = capabilities_of(arch, ""), [], [], []
    for name, sinks in drawn(given.seed, given.products):
      for sink in sinks:
        tiles = candidates(sink, arch, capabilities, given.tiles, random.Random(name))
        if len(tiles) < 2: continue
        predicted = [predict(t.shape, t.product, t.matrix, capabilities) for t in tiles]
        regrets.append(regret(tiles, predicted))
        correlations.append(rank_correlation(predicted, [t.seconds for t in tiles]))
        record.append({"name": name, "parts": to_json(tiles, capabilities)})
        print(f"{arch} {name}: regret {regrets[-1]:.2f}, correlation {correlations[-1]:.2f}", flush=True)
    print(f"{arch}: regret {mean(regrets):.3f}, at most {max(regrets):.2f}; correlation "
          f"{statistics.median(correlations):.2f}, median of {len(regrets)} products")
    if given.record: (given.record / f"{arch}.json").write_text(json.dumps(record, separators=(",", ":")) + "\n")

if __name__ == "__main__": main()
