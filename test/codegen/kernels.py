"""Handmade kernels for the tests of codegen, and the check that they share: lowering must not change a kernel's
results."""
from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tinyhw.arithmetic import round_to
from tinyhw.codegen.lower.linearize import linearize
from tinyhw.codegen.math.maximum import FOLD
from tinyhw.codegen.passes import PASSES, lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

AVX2 = capabilities("x86_64:avx2")
_ALL = frozenset((op, d) for op in GroupOp.Elementwise for d in dtypes.all)
EVERYTHING = Capabilities(vector_bytes=0, vector_registers=0, operations=_ALL)

_few = (Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR, Ops.CMPLT, Ops.CMPNE, Ops.WHERE, Ops.CAST,
        Ops.BITCAST, Ops.SUB)
_bool = frozenset((op, dtypes.bool) for op in (Ops.AND, Ops.OR, Ops.XOR))
_poor = (frozenset((op, d) for op in _few for d in (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64))
         - {(Ops.CMPLT, dtypes.uint32)})
_poor |= frozenset((op, d) for op in (Ops.ADD, Ops.MUL, Ops.CMPLT, Ops.CMPNE, Ops.WHERE, Ops.CAST, Ops.BITCAST,
                                      Ops.SQRT, Ops.FDIV)
                   for d in (dtypes.float32, dtypes.float64)) | _bool | frozenset((Ops.IDIV, d) for d in dtypes.ints)
_poor -= {(Ops.CAST, dtypes.uint64), (Ops.CAST, dtypes.uint32)}
_poor |= frozenset((Ops.CAST, d) for d in dtypes.int8s + dtypes.int16s)
POOR = Capabilities(vector_bytes=16, vector_registers=8, operations=_poor,
                    vector_operations=_poor - {(Ops.IDIV, d) for d in dtypes.ints})
"""The poorest target of codegen: 16 byte vectors, no masks, no gathers, no MAX, NEG, MULACC, MOD, RECIPROCAL."""
_halves = _poor - {(Ops.IDIV, d) for d in dtypes.ints} - {(Ops.CAST, dtypes.int64)} | {(Ops.CAST, dtypes.uint32),
                                                                                       (Ops.TRUNC, dtypes.float64)}
HALVES = replace(POOR, operations=_halves, vector_operations=_halves)
"""As little, and neither a divider nor conversions between 64-bit integers and floats, as GPUs have it."""
ALL_TARGETS = {"everything": EVERYTHING, "avx2": AVX2, "avx2-plain": replace(AVX2, masked_bytes=(), gathers=False,
                                                                             scatters=False), "poor": POOR,
               "halves": HALVES}

def axis(end: int | UOp, id: int, kind: str = "LOOP") -> UOp: return UOp.range(end, id, AxisType[kind])

def data_for(sink: UOp, seed: int = 0,
             make: Callable[[DType, random.Random], Any] | None = None) -> dict[int, list[Any]]:
  """Return contents for each parameter of a kernel: small integers, so that no sum is rounded."""
  rng = random.Random(seed)
  out: dict[int, list[Any]] = {}
  for u in sorted({u for u in sink.toposort() if u.op is Ops.PARAM}, key=lambda u: u.arg[0]):
    out[u.arg[0]] = [make(u.dtype, rng) if make else small(u.dtype, rng) for _ in range(u.arg[1])]
  return out

def small(dtype: DType, rng: random.Random) -> Any:
  if dtype is dtypes.bool: return rng.random() < 0.5
  if dtypes.is_float(dtype): return float(rng.randint(-4, 4))
  return rng.randint(0 if dtypes.is_unsigned(dtype) else -9, 9)

def wild(dtype: DType, rng: random.Random) -> Any:
  """Return values from the corners of a type."""
  if dtype is dtypes.bool: return rng.random() < 0.5
  if dtypes.is_float(dtype):
    corners = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 3e9, -3e9, 5e18, 1e19, 2e19, 1e-40, 448.0, 464.0,
               57344.0, 65504.0, 1e-3, 0.017]
    return round_to(dtype)(rng.choice(corners) if rng.random() < 0.6 else rng.uniform(-100, 100))
  low, high = int(dtype.min), int(dtype.max)
  return rng.choice([low, low + 1, -1 if low else 3, 0, 1, 2, 7, high - 1, high, rng.randint(low, high),
                     rng.randint(low, high)])

def same(a: Any, b: Any, tolerance: float = 0.0) -> bool:
  if isinstance(a, float) and isinstance(b, float):
    if math.isnan(a) or math.isnan(b): return math.isnan(a) and math.isnan(b)
    if a == b: return math.copysign(1, a) == math.copysign(1, b) or a != 0 or tolerance > 0
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-30)
  return bool(a == b)

def compare(name: str, a: dict[int, list[Any]], b: dict[int, list[Any]], tolerance: float) -> None:
  for slot in a:
    for k, (x, y) in enumerate(zip(a[slot], b[slot])):
      assert same(x, y, tolerance), f"{name}: slot {slot} element {k} is {y}, the kernel gives {x}"

def agree(kernel: UOp, changed: UOp, tolerance: float = 0.0) -> None:
  """Check that both kernels compute the same."""
  first, second = data_for(kernel), data_for(kernel)
  evaluate(kernel, first)
  evaluate(changed, second)
  compare("changed kernel", first, second, tolerance)

def check(sink: UOp, target: Capabilities, variables: dict[str, int] | None = None,
          data: dict[int, list[Any]] | None = None, tolerance: float = 0.0,
          passes: bool = False) -> Program:
  """Lower a kernel and compare its Program with the kernel. passes: compare the result of each pass, too."""
  data = data or data_for(sink)
  expected = {k: list(v) for k, v in data.items()}
  evaluate(sink, expected, variables)
  kernel = sink
  for step in PASSES if passes else ():
    kernel = step.run(kernel, target)
    found = {k: list(v) for k, v in data.items()}
    # from "accumulate" on there are variables, whose values depend on the time of reading
    evaluate(kernel if step.is_kernel else Program(step.name, tuple(linearize(kernel, target.lanes > 0))), found,
             variables)
    compare(step.name, expected, found, tolerance)
  program = lower(sink, target, "test")
  verify(program, 1)
  check_form(program, target)
  found = {k: list(v) for k, v in data.items()}
  evaluate(program, found, variables)
  compare("program", expected, found, tolerance)
  return program

def check_form(program: Program, target: Capabilities) -> None:
  """Check the properties that every selector may rely on (docs/design/program.md and decompose.py)."""
  for u in program.uops:
    scalar = u.dtype.scalar()
    assert scalar is not dtypes.weakint, f"{u} has no width"
    assert u.dtype.count == 1 or u.op in (Ops.CONST, Ops.BROADCAST,
                                          Ops.VECTORIZE) or u.dtype.itemsize <= target.vector_bytes, f"{u} is too wide"
    if u.op in (Ops.IDIV, Ops.MOD):
      assert dtypes.is_unsigned(u.dtype) or (u.src[0].vmin >= 0 and u.src[1].vmin > 0), f"{u} may trap"
    if u.op in GroupOp.Elementwise:
      operand = u.src[0].dtype if u.op in GroupOp.Comparison else u.dtype
      resize = u.op is Ops.CAST and dtypes.is_int(u.dtype) and dtypes.is_int(u.src[0].dtype)
      folds = u.op is Ops.MAX and u.tag == FOLD and u.dtype in target.maxima
      assert resize or folds or target.supports(u.op, operand) or u.op is Ops.BITCAST, (f"{u.op.name} of {operand} is "
                                                                                        f"not there")
  seen = set()
  for u in program.uops:
    assert u not in seen or u.op is Ops.BARRIER, f"{u} stands twice"
    seen.add(u)

def count(program: Program, op: Ops, inside: int | None = None, vector: bool | None = None) -> int:
  """Count the uops of a kind in a Program, or in the body of the loop with this number."""
  depth, total = [], 0
  for u in program.uops:
    if u.op is Ops.RANGE: depth.append(u.arg[0])
    elif u.op is Ops.END: depth.pop()
    if u.op is op and (inside is None or depth[-1:] == [inside]) and (vector is None or (u.dtype.count > 1) == vector):
      total += 1
  return total

# ***** kernels *****

def elementwise(n: int, lanes: int, tile: int, dtype: DType = dtypes.float32) -> UOp:
  """Return a kernel of out = a*b + a over n elements, a multiple of lanes*tile."""
  out, a, b = [UOp.param(k, dtype, n) for k in range(3)]
  g, u, v = axis(n // (lanes * tile), 0, "GLOBAL"), axis(tile, 1, "UPCAST"), axis(lanes, 2, "VECTOR")
  i = g * (lanes * tile) + u * lanes + v
  x = a.index(i).load()
  return UOp.sink(out.index(i).store(x * b.index(i).load() + x, g, u, v))

def masked(n: int, lanes: int, dtype: DType = dtypes.float32) -> UOp:
  """Return a kernel of out = -a over n elements, for any n."""
  out, a = UOp.param(0, dtype, n), UOp.param(1, dtype, n)
  g, v = axis(-(-n // lanes), 0, "GLOBAL"), axis(lanes, 1, "VECTOR")
  i = g * lanes + v
  gate = i < n
  return UOp.sink(out.index(i).store(a.index(i).load(gate) * -1 + 1, g, v, gate=gate))

def matmul(m: int, n: int, k: int, rows: int = 6, columns: int = 2, lanes: int = 8, unroll: int = 1,
           dtype: DType = dtypes.float32) -> UOp:
  out, a, b = UOp.param(0, dtype, m * n), UOp.param(1, dtype, m * k), UOp.param(2, dtype, k * n)
  width = columns * lanes
  g, j, r = axis(m // rows, 0, "GLOBAL"), axis(n // width, 1), axis(k // unroll, 2, "REDUCE")
  u, x, y, v = axis(unroll, 3, "UNROLL"), axis(rows, 4, "UPCAST"), axis(columns, 5, "UPCAST"), axis(lanes, 6, "VECTOR")
  row, column, step = g * rows + x, j * width + y * lanes + v, r * unroll + u
  product = a.index(row * k + step).load() * b.index(step * n + column).load()
  return UOp.sink(out.index(row * n + column).store(product.reduce(Ops.ADD, r, u), g, j, x, y, v))

def softmax(rows: int, columns: int, lanes: int = 8, shared: bool = False) -> UOp:
  """Return a softmax without exponentials: (x - max) * sum(x - max); the reductions use one range or two."""
  out, a = UOp.param(0, dtypes.float32, rows * columns), UOp.param(1, dtypes.float32, rows * columns)
  g = axis(rows, 0, "GLOBAL")
  def run(id: int, kind: str) -> tuple[UOp, UOp]: return axis(columns // lanes, id, kind), axis(lanes, id + 1, "VECTOR")
  def x(r: UOp, v: UOp) -> UOp: return a.index(g * columns + r * lanes + v).load()
  first = run(1, "REDUCE")
  top = x(*first).reduce(Ops.MAX, *first)
  second = first if shared else run(3, "REDUCE")
  total = (x(*second) - top).reduce(Ops.ADD, *second)
  r, v = run(5, "LOOP")
  return UOp.sink(out.index(g * columns + r * lanes + v).store((x(r, v) - top) * total, g, r, v))

def convolution(size: int, lanes: int = 4, tile: int = 2, unroll: bool = True) -> UOp:
  """Return a 3x3 convolution, padded by 1, over one image of size x size."""
  out, a, w = UOp.param(0, dtypes.float32, size * size), UOp.param(1, dtypes.float32,
                                                                   size * size), UOp.param(2, dtypes.float32, 9)
  kind = "UNROLL" if unroll else "REDUCE"
  y, x, t, v = axis(size, 0, "GLOBAL"), axis(size // (lanes * tile), 1), axis(tile, 4,
                                                                              "UPCAST"), axis(lanes, 5, "VECTOR")
  i, j = axis(3, 2, kind), axis(3, 3, kind)
  column = x * (lanes * tile) + t * lanes + v
  yy, xx = y + i - 1, column + j - 1
  inside = (yy < size) & (yy > -1) & (xx < size) & (xx > -1)
  value = a.index(yy * size + xx).load(inside) * w.index(i * 3 + j).load()
  return UOp.sink(out.index(y * size + column).store(value.reduce(Ops.ADD, i, j), y, x, t, v))

def gather(n: int, table: int, lanes: int = 8, dtype: DType = dtypes.int32) -> UOp:
  """Return a kernel of out[i] = table[index[i]] where index is inside, else 0."""
  out, a, index = UOp.param(0, dtypes.float32, n), UOp.param(1, dtypes.float32, table), UOp.param(2, dtype, n)
  g, v = axis(n // lanes, 0), axis(lanes, 1, "VECTOR")
  at = index.index(g * lanes + v).load().cast(dtypes.weakint)
  return UOp.sink(out.index(g * lanes + v).store(a.index(at).load((at < table) & (at > -1)), g, v))

def staged_matmul(m: int, n: int, k: int, lanes: int = 8) -> UOp:
  """Return a product that copies a panel of k x lanes of b to shared memory for each block of columns."""
  out, a, b = UOp.param(0, dtypes.float32, m * n), UOp.param(1, dtypes.float32,
                                                             m * k), UOp.param(2, dtypes.float32, k * n)
  g, i, r = axis(n // lanes, 0, "GLOBAL"), axis(m // 2, 1), axis(k, 2, "REDUCE")
  s, t, x, v = axis(k, 3, "STAGE"), axis(lanes, 4, "VECTOR"), axis(2, 5, "UPCAST"), axis(lanes, 6, "VECTOR")
  panel = UOp(Ops.STAGE, dtypes.float32, (b.index(s * n + g * lanes + t).load(), s, t), (0,))
  product = a.index((i * 2 + x) * k + r).load() * panel.index(r * lanes + v).load()
  return UOp.sink(out.index((i * 2 + x) * n + g * lanes + v).store(product.reduce(Ops.ADD, r), g, i, x, v))

def lower_text(sink: UOp, target: Capabilities = AVX2) -> str:
  """Return a Program as one line for each uop: operation, type, argument."""
  return "\n".join(f"{u.op.name} {u.dtype} {u.arg}" for u in lower(sink, target, "test").uops)
