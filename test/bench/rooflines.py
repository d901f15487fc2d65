"""Compare the bounds of kernels on GPUs with the cards' rooflines, without a GPU: nothing runs and nothing is timed.

    python3 test/bench/rooflines.py [case ...] [--arch gfx1100 gfx942 sm_80 sm_90] [--kernels]

A case is one tensor expression. Its *roofline* is the larger one of two times by the card's published rates: that of
its operations on the best unit for them, and that of the bytes of its operands and results, each once, in memory. Its
*bound* is the sum over its kernels of the bound in their listings (DEBUG=7): a lower bound of the time, by a model of
the card that no card has confirmed. The command prints bound / roofline as a table. --kernels adds the kernels of a
case, with the resource that binds each.
"""
from __future__ import annotations
import argparse
import importlib
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ.update(DEV="NULL", CACHE="0", NULL_ARCH="sm_90")   # all cards here make one kernel of an attention
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tinyhw import Device, Tensor
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.engine.run.compile import capabilities_of, kernel_name
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.isa import LISTERS
from tinyhw.llm.blocks import TYPES
from tinyhw.llm.packed import PackedMatrix, Rounded
from tinyhw.machine.model.hardware import Hardware
from tinyhw.machine.model.listing_waves import time
from tinyhw.uop.enums import Ops

Device["NULL"].copies_operands = True   # as GPUs do
ARCHS = ("gfx1100", "gfx942", "sm_80", "sm_90")

class Case(NamedTuple):
  """An expression, and what it needs at least. unit: keys of `Hardware.flops`, of which the fastest counts."""
  results: list[Tensor]
  operations: float
  bytes: float
  unit: tuple[str, ...]

F16, F32, I8 = ("wgmma f16", "f16"), ("f32", "vf32"), ("i8", "iu8")

def empty(*shape: int, dtype: str = "float16", grad: bool = False) -> Tensor:
  return Tensor.empty(*shape, dtype=dtype, requires_grad=grad or None)

def size_of(*tensors: Tensor) -> float: return sum(math.prod(t.shape) * t.dtype.itemsize for t in tensors)

# ***** cases *****

def product(m: int, n: int, k: int) -> Case:
  a, b = empty(m, k), empty(k, n)
  c = a @ b
  return Case([c], 2.0 * m * n * k, size_of(a, b, c), F16)

def convolution(which: str) -> Case:
  """A 3x3 convolution of 32 images of 64 channels of 56x56, or one of its gradients."""
  x, w = empty(32, 64, 56, 56, grad=True), empty(64, 64, 3, 3, grad=True)
  y = x.conv2d(w, padding=1)
  operations = 2.0 * math.prod(y.shape) * 64 * 9
  if which == "forward": return Case([y], operations, size_of(x, w, y), F16)
  given = empty(*y.shape)
  found = y.gradient(x, w, gradient=given)[which == "weights"]
  return Case([found], operations, size_of(x, w, given), F16)

def embedding() -> Case:
  """The gradient of a table of 32,000 rows of 512 for 4,096 tokens."""
  table, tokens = empty(32000, 512, dtype="float32", grad=True), empty(4096, dtype="int32")
  given = empty(4096, 512, dtype="float32")
  found = table[tokens].gradient(table, gradient=given)[0]
  return Case([found], math.prod(given.shape), size_of(given, tokens, found), F32)

def cumsum(axis: int) -> Case:
  x = empty(4096, 4096, dtype="float32")
  return Case([x.cumsum(axis)], math.prod(x.shape), 2 * size_of(x), F32)

def attention(heads: int, tokens: int, size: int, causal: bool) -> Case:
  q, k, v = (empty(1, heads, tokens, size) for _ in range(3))
  y = q.scaled_dot_product_attention(k, v, is_causal=causal)
  pairs = tokens * (tokens + 1) / 2 if causal else tokens * tokens
  return Case([y], 4.0 * heads * pairs * size, size_of(q, k, v, y), F16)

def decoding(name: str, m: int = 4096, k: int = 14336) -> Case:
  """A quantized matrix by one vector."""
  kind = next(kind for kind in TYPES.values() if kind.name == name)
  data = empty(m * k // kind.length * kind.size, dtype="uint8")
  x = Rounded(empty(1, k, dtype="float32").realize())
  for t in (x.q, x.scale): t.realize()
  matrix = PackedMatrix(data, (m, k), kind)
  for sums in x.parts(kind)[1]: sums.realize()
  y = matrix @ x
  held = [*matrix.planes, matrix.scale, *[t for t in (matrix.factors, matrix.minimum, matrix.shifts) if t is not None]]
  return Case([y], 2.0 * m * k, size_of(*held, x.q, x.scale, y), I8)

CASES: dict[str, Callable[[], Case]] = {
  "product": lambda: product(4096, 4096, 4096),
  "odd": lambda: product(1001, 1001, 1001),
  "odd-4001": lambda: product(4001, 4001, 4001),
  "long": lambda: product(64, 64, 1 << 18),
  "long-256": lambda: product(256, 256, 1 << 16),
  "convolution": lambda: convolution("forward"),
  "image": lambda: convolution("image"),
  "weights": lambda: convolution("weights"),
  "embedding": embedding,
  "cumsum-rows": lambda: cumsum(1),
  "cumsum-columns": lambda: cumsum(0),
  "attention": lambda: attention(16, 2048, 128, False),
  "attention-causal": lambda: attention(16, 2048, 128, True),
  "attention-64": lambda: attention(12, 2048, 64, True),
  "Q4_0": lambda: decoding("Q4_0"),
  "Q4_K": lambda: decoding("Q4_K"),
  "Q8_0": lambda: decoding("Q8_0"),
  "Q4_K-rows": lambda: decoding("Q4_K", 14336, 4096),
  "Q4_K-vocabulary": lambda: decoding("Q4_K", 32000, 4096),
  "Q6_K-rows": lambda: decoding("Q6_K", 14336, 4096),
}

# ***** bounds *****

class Kernel(NamedTuple):
  name: str
  seconds: float
  binding: str

def kernels_of(results: list[Tensor], arch: str) -> list[Kernel]:
  """Compile the kernels of an expression, and return their bounds."""
  lister, capabilities = importlib.import_module(LISTERS[arch]), capabilities_of(arch, "")
  found = []
  for kernel in schedule(canonicalize([t.uop for t in results])).kernels:
    if kernel.sink.op is not Ops.SINK: continue
    name = kernel_name(kernel.sink)
    bounds = lister.bounds(lower(optimize(kernel.sink, capabilities), capabilities, name), arch)
    assert bounds.seconds is not None, f"{name}: its loops depend on the launch"
    found.append(Kernel(name, bounds.seconds, bounds.whole.binding))
  return found

def roofline_of(case: Case, card: Hardware) -> tuple[float, str]:
  """Return the least seconds, and what takes them."""
  rate = max(card.flops.get(unit, 0.0) for unit in case.unit) * card.unit.simds * card.units * card.clock_ghz * 1e9
  return max((case.operations / rate, "arithmetic"), (case.bytes / (card.memory_gbs * 1e9), "memory"))

# ***** the table *****

def hardware_of(arch: str) -> Hardware:
  found: Hardware = importlib.import_module(LISTERS[arch]).hardware(arch)
  return found

def cell(case: Case, arch: str, detailed: bool) -> str:
  """Return bound / roofline on a card. detailed: print the kernels, too."""
  kernels, (least, what) = kernels_of(case.results, arch), roofline_of(case, hardware_of(arch))
  whole = sum([k.seconds for k in kernels])
  if detailed:
    print(f"  {arch}: {time(whole)}, {100 * least / whole:.1f} % of the rate of {what} ({time(least)})")
    for k in kernels: print(f"    {time(k.seconds):>8} {k.name}, by {k.binding}")
  return f"{whole / least:.2f}"

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("cases", nargs="*", metavar="case", help=", ".join(CASES))
  parser.add_argument("--arch", nargs="+", default=ARCHS)
  parser.add_argument("--kernels", action="store_true")
  given = parser.parse_args()
  for name in given.cases:
    if name not in CASES: parser.error(f"there is no case {name}; there are {', '.join(CASES)}")
  print(f"| case | {' | '.join(given.arch)} |\n|{'---|' * (1 + len(given.arch))}")
  for name in given.cases or CASES:
    case = CASES[name]()
    print(f"| {name} | {' | '.join(cell(case, arch, given.kernels) for arch in given.arch)} |", flush=True)

if __name__ == "__main__": main()
