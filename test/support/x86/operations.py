"""Programs of one operation each, for what capabilities.py says that the selector knows, and their data: the corners of
every type.

`run` executes a program's machine code on the processor in Python and compares what it writes with the program's
evaluation.
"""
from __future__ import annotations
import math
import random
from collections.abc import Callable, Iterator

from x86 import kernels as x86_kernels
from generators.program_builder import Builder

from tinyhw.arithmetic import elements, to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

ARITY = {**dict.fromkeys(GroupOp.Unary, 1), Ops.MULACC: 3}
CORNERS = (0.0, -0.0, 1.0, -1.5, 0.1, float("inf"), float("-inf"), float("nan"), 1e-40, -1e-310, 65504.0, 3e9, -3e9,
           9.3e18, -1e19, 2.5, 3.5, 1e30)
ITEMS = 40   # elements of a parameter, at least

def number(dtype: DType, rng: random.Random) -> bool | int | float:
  """A value of a type, from its corners as often as not."""
  if dtype is dtypes.bool: return rng.random() < 0.5
  if dtypes.is_float(dtype): return rng.choice(CORNERS) if rng.random() < 0.6 else rng.uniform(-300, 300)
  low, high = int(dtype.min), int(dtype.max)
  return rng.choice((low, low + 1, 0, 1, 2, high - 1, high, max(low, -7), rng.randint(low, high),
                     rng.randint(low, high)))

def operands(op: Ops, dtype: DType) -> list[tuple[DType, Callable[[random.Random], bool | int | float]]]:
  """For each operand its type and what makes a value that a selector may rely on (docs/design/program.md)."""
  def any_value(rng: random.Random) -> bool | int | float: return number(dtype, rng)
  if op is Ops.WHERE: return [(dtypes.bool, lambda rng: rng.random() < 0.5), (dtype, any_value), (dtype, any_value)]
  if op is Ops.DOT2:
    return [(dtypes.uint32, lambda rng: number(dtypes.uint32, rng))] * 2 + [(dtype, any_value)]
  if op is Ops.DOT4:
    return [(dtypes.uint32, lambda rng: number(dtypes.uint32, rng)), (dtype, any_value), (dtype, any_value)]
  if op in (Ops.SHL, Ops.SHR): return [(dtype, any_value), (dtype, lambda rng: rng.randrange(dtype.bitsize))]
  if op in (Ops.IDIV, Ops.MOD):
    return [(dtype, lambda rng: number(dtype, rng) & int(dtype.max)),
            (dtype, lambda rng: (number(dtype, rng) & int(dtype.max)) or 3)]
  return [(dtype, any_value)] * ARITY.get(op, 2)

def memory(types: list[tuple[DType, Callable[[random.Random], bool | int | float]]], count: int) -> list[bytes]:
  rng = random.Random(count)
  return [b"".join(to_bytes(make(rng), dtype) for _ in range(count)) for dtype, make in types]

Execute = Callable[[Program, str, list[bytes]], None]   # a program on an arch, with the bytes of each parameter

def run(op: Ops, dtype: DType, lanes: int, arch: str, execute: Execute = x86_kernels.run) -> None:
  """op of operands of a type, element by element or in vectors."""
  result = dtypes.bool if op in GroupOp.Comparison else dtype
  types, count = operands(op, dtype), -(-ITEMS // lanes) * lanes
  b = Builder(f"{op.name.lower()}_{dtype.name}_{lanes}")
  out, given = b.param(0, result, count), [b.param(k + 1, d, count) for k, (d, _) in enumerate(types)]
  with b.loop(count // lanes, AxisType.GLOBAL) as g:
    at = g * lanes if lanes > 1 else g
    b.store(out, at, b.add(UOp(op, result.vec(lanes), tuple(b.load(p, at, lanes) for p in given))))
  execute(b.program(), arch, [bytes(count * result.itemsize), *memory(types, count)])

def convert(op: Ops, source: DType, target: DType, lanes: int, arch: str, execute: Execute = x86_kernels.run) -> None:
  """CAST, or BITCAST: of no NaN, whose bits are not defined."""
  count = -(-ITEMS // lanes) * lanes
  def value(rng: random.Random) -> bool | int | float:
    x = number(source, rng)
    return 1.0 if op is Ops.BITCAST and not math.isfinite(decoded(x, source)) else x
  execute(conversion(op, source, target, lanes, count), arch,
          [bytes(count * target.itemsize), *memory([(source, value)], count)])

def decoded(x: bool | int | float, dtype: DType) -> float:
  """Return a number as it is after a store: infinity and NaN may come from finite numbers."""
  return float(elements(to_bytes(x, dtype), dtype)[0])

def conversion(op: Ops, source: DType, target: DType, lanes: int, count: int) -> Program:
  b = Builder(f"{op.name.lower()}_{source.name}_{target.name}_{lanes}")
  out, x = b.param(0, target, count), b.param(1, source, count)
  with b.loop(count // lanes, AxisType.GLOBAL) as g:
    at = g * lanes if lanes > 1 else g
    b.store(out, at, b.add(UOp(op, target.vec(lanes), (b.load(x, at, lanes),))))
  return b.program()

def lanes_of(dtype: DType, arch: str) -> Iterator[int]:
  """Lanes of vectors of a type, up to a whole register."""
  lanes = 2
  while lanes * dtype.itemsize <= capabilities(arch).vector_bytes:
    yield lanes
    lanes *= 2

def by_name(pairs: frozenset[tuple[Ops, DType]]) -> list[tuple[Ops, DType]]:
  """Operations and types in an order that does not change; without conversions, which have two types."""
  return sorted((p for p in pairs if p[0] not in (Ops.CAST, Ops.BITCAST)), key=lambda p: (p[0], p[1].name))
