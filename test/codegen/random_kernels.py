"""Random kernels.

`Generator`: input of the passes. It has loops, tiles and lanes of any size, indices with // and %, gates, nested
reductions, shared arrays, several outputs. `Nest`: input of the optimisation, with random choices for its loops.
"""
from __future__ import annotations
import random

from test.codegen.kernels import axis
from tinyhw.codegen.transform.tiling import Opt, OptOps, size_of
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

TYPES = (dtypes.float32, dtypes.float32, dtypes.float32, dtypes.int32, dtypes.int64, dtypes.float64, dtypes.uint8,
         dtypes.int16)

class Generator:
  """One kernel from one seed."""
  def __init__(self, seed: int):
    self.rng = random.Random(seed)
    self.ids = 0
    self.slots = 0
    self.stages = 0
    self.variables: dict[str, int] = {}
    self.vector_output = self.rng.random() < 0.6   # else lanes may appear in reductions
    self.budget = 14

  def chance(self, p: float) -> bool: return self.rng.random() < p

  def range(self, end: int | UOp, kind: AxisType) -> UOp:
    self.ids += 1
    return UOp.range(end, self.ids, kind)

  def axis(self, kinds: tuple[AxisType, AxisType], lanes: bool) -> tuple[UOp, int, list[UOp]]:
    """Return an index over an axis that may be split into a loop, a tile and lanes; its size; its ranges."""
    parts = []
    if self.chance(0.8): parts.append((self.rng.choice((1, 2, 3, 5)), kinds[0]))
    if self.chance(0.4): parts.append((self.rng.choice((1, 2, 3, 4)), kinds[1]))
    if lanes: parts.append((self.rng.choice((2, 4, 8)), AxisType.VECTOR))
    if not parts: parts.append((3, kinds[0]))
    if self.chance(0.2): self.rng.shuffle(parts)
    index, size, ranges = UOp.const(dtypes.weakint, 0), 1, []
    for n, kind in parts:
      r = self.range(n, kind)
      index, size = index * n + r, size * n
      ranges.append(r)
    return index, size, ranges

  # ***** indices *****

  def position(self, axes: list[tuple[UOp, int]], size: int) -> UOp:
    """Return an index inside of 0..size-1."""
    i, high = self.sum(axes)
    return i if high < size and self.chance(0.9) else i % size

  def sum(self, axes: list[tuple[UOp, int]]) -> tuple[UOp, int]:
    """Return a sum of multiples of axes that is not negative, and its largest value."""
    total, high = UOp.const(dtypes.weakint, self.rng.randint(0, 3)), 3
    for index, n in axes:
      if self.chance(0.25): continue
      x, top = index, n - 1
      if self.chance(0.2): d = self.rng.choice((2, 3, 4)); x, top = x // d, top // d
      elif self.chance(0.2): d = self.rng.choice((2, 3, 4)); x, top = x % d, d - 1
      elif self.chance(0.1): x = n - 1 - x
      factor = self.rng.choice((1, 1, 1, 2, 4, n))
      total, high = total + x * factor, high + top * factor
    if self.chance(0.1): d = self.rng.choice((2, 4, 6)); total, high = (total + 1) // d, (high + 1) // d
    return total, high

  # ***** values *****

  def load(self, axes: list[tuple[UOp, int]], dtype: DType) -> UOp:
    size = self.rng.choice((7, 16, 24, 40))
    self.slots += 1
    buffer = UOp.param(self.slots, dtype, size)
    if self.chance(0.3):
      i = self.sum(axes)[0] - self.rng.randint(0, 3)
      gate = (i < size) & (i > -1)
      if self.chance(0.3): gate = gate & (self.sum(axes)[0] < 9)
      return buffer.index(i).load(gate, self.rng.randint(0, 2))
    if self.chance(0.1):
      self.slots += 1
      at = UOp.param(self.slots, dtypes.int32, 12).index(self.position(axes, 12)).load().cast(dtypes.weakint)
      return buffer.index(at).load((at < size) & (at > -1))
    return buffer.index(self.position(axes, size)).load()

  def value(self, axes: list[tuple[UOp, int]], dtype: DType, depth: int, lanes: bool) -> UOp:
    """Return an expression over axes. lanes: it already depends on a VECTOR range."""
    self.budget -= 1
    if depth == 0 or self.budget < 0: return self.load(axes, dtype)
    kind = self.rng.random()
    if kind < 0.25: return self.reduction(axes, dtype, depth, lanes)
    if kind < 0.32: return self.stage(axes, dtype, depth, lanes)
    if kind < 0.38: return self.sum(axes)[0].cast(dtype)
    if kind < 0.45: return self.value(axes, self.rng.choice(TYPES), depth - 1, lanes).cast(dtype)
    a, b = self.value(axes, dtype, depth - 1, lanes), self.value(axes, dtype, depth - 1, lanes)
    if kind < 0.55: return (a < b).where(a, b + 1)
    if kind < 0.65: return a.maximum(b)
    if kind < 0.8: return a * (b if depth == 1 else 2)
    if kind < 0.9: return a - b
    return a + b

  def reduction(self, axes: list[tuple[UOp, int]], dtype: DType, depth: int, lanes: bool) -> UOp:
    own = not lanes and not self.vector_output and self.chance(0.6)
    index, size, ranges = self.axis((AxisType.REDUCE, AxisType.UNROLL), own)
    inner = axes + [(index, size)] if self.chance(0.95) else axes
    value = self.value(inner, dtype, depth - 1, lanes or own)
    return value.reduce(self.rng.choice((Ops.ADD, Ops.ADD, Ops.MAX)), *ranges)

  def stage(self, axes: list[tuple[UOp, int]], dtype: DType, depth: int, lanes: bool) -> UOp:
    index, size, ranges = self.axis((AxisType.STAGE, AxisType.UPCAST), not lanes and not self.vector_output
                                    and self.chance(0.4))
    outside = [a for a in axes if not any(r.arg[1] is AxisType.VECTOR for r in a[0].ranges)]
    value = self.value(outside + [(index, size)], dtype, min(depth - 1, 1), True)
    self.stages += 1
    local = UOp(Ops.STAGE, dtype, (value, *ranges), (self.stages,))
    return local.index(self.position(axes, size)).load()

  def kernel(self) -> UOp:
    stores: list[UOp] = []
    for _ in range(1 if self.chance(0.75) else 2):
      axes, ranges, strides = [], [], 1
      vector = self.rng.randint(0, 2) if self.vector_output else -1
      grid = self.chance(0.5)
      for k in range(self.rng.randint(0, 3)):
        kind = AxisType.GLOBAL if grid and k < 2 else AxisType.LOOP
        index, size, own = self.axis((kind, AxisType.UPCAST), k == vector)
        axes.append((index, size))
        ranges += own
      if self.chance(0.3):
        name = f"n{self.ids}"
        variable = UOp.variable(name, 1, 5)
        self.variables[name] = self.rng.randint(1, 5)
        r = self.range(variable, AxisType.LOOP)
        axes.append((r, 5))
        ranges.append(r)
      position = UOp.const(dtypes.weakint, 0)
      for index, size in reversed(axes) if self.chance(0.3) else axes:
        position, strides = position * size + index, strides * size
      dtype = self.rng.choice(TYPES)
      slot = 100 + len(stores)
      has_lanes = any(r.arg[1] is AxisType.VECTOR for r in ranges)
      value = self.value(axes, dtype, self.rng.randint(1, 3), has_lanes)
      gate = self.sum(axes)[0] < self.rng.randint(3, 30) if self.chance(0.2) else None
      stores.append(UOp.param(slot, dtype, strides).index(position).store(value, *ranges, gate=gate))
    return UOp.sink(*stores)

INNER = (OptOps.VECTOR, OptOps.UPCAST, OptOps.BLOCK)
MOST_ITERATIONS = 1500

class Nest:
  """A kernel of one store with loops of any size. Output ranges have the ids 0, 1, ...; those of its reduction come
  after."""
  def __init__(self, seed: int, in_place: bool = False):
    rng = self.rng = random.Random(seed)
    self.iterations = 1
    self.outputs = [axis(self.size(13), k) for k in range(rng.randint(1, 3))]
    self.inner = [axis(self.size(11), len(self.outputs) + k, "REDUCE") for k in range(rng.randint(0, 2))]
    size = 1
    at = UOp.const(dtypes.weakint, 0)
    for r in self.outputs: at, size = at * size_of(r) + r, size * size_of(r)
    self.slots = 1
    out = UOp.param(0, dtypes.float32, size)
    value = self.load(self.outputs + self.inner) * self.load(self.outputs + self.inner)
    if self.inner: value = value.reduce(rng.choice((Ops.ADD, Ops.MAX)), *self.inner)
    if in_place: value = value + out.index(at).load() * 2
    self.store = out.index(at).store(value + self.load(self.outputs), *self.outputs)
    self.sink = UOp.sink(self.store)

  def size(self, most: int) -> int:
    """Return a random size of a range, small enough that all iterations together are soon interpreted."""
    n = min(self.rng.randint(1, most), max(MOST_ITERATIONS // self.iterations, 1))
    self.iterations *= n
    return n

  def load(self, ranges: list[UOp]) -> UOp:
    """Return an element of a new buffer at a sum of multiples of ranges, gated at times."""
    at, high = UOp.const(dtypes.weakint, 0), 0
    for r in ranges:
      factor = self.rng.choice((0, 1, 1, 2, 5))
      at, high = at + r * factor, high + (size_of(r) - 1) * factor
    buffer = UOp.param(self.slots, dtypes.float32, max(high, 1) if self.rng.random() < 0.3 else high + 1)
    self.slots += 1
    return buffer.index(at).load(at < buffer.arg[1] if buffer.arg[1] <= high else None)

  def opts(self, ranges: list[UOp], whole: bool = False) -> tuple[Opt, ...]:
    """Return opts for some of these ranges. whole: amounts whose product divides the size."""
    found: list[Opt] = []
    for r in ranges:
      n = size_of(r)
      left = n
      for op in self.rng.sample(INNER, self.rng.randint(0, 2)):
        fitting = [k for k in range(2, left + 1) if not whole or left % k == 0]
        if not fitting: continue
        found.append(Opt(op, r.arg[0], self.rng.choice(fitting)))
        left //= found[-1].amount
      if r in self.outputs and self.rng.random() < 0.5: found.append(Opt(OptOps.GRID, r.arg[0]))
    return tuple(found)
