"""Products in tiles of a CPU's matrix unit: the Program computes what the kernel means, and falls back to vectors."""
from __future__ import annotations
import itertools
import random
import struct
from typing import Any

import pytest

from test.codegen.kernels import axis, count
from tinyhw.codegen.lower.tiles import tiles
from tinyhw.codegen.optimize import with_dots, with_opts
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.tile_sums import TileProduct
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.matrix import MatrixRows
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

AMX = capabilities("x86_64:amx")
BF16, F32, I8, U8, I32 = dtypes.bfloat16, dtypes.float32, dtypes.int8, dtypes.uint8, dtypes.int32

def product(m: int, n: int, k: int, types: tuple[DType, DType] = (BF16, BF16), swapped: bool = False,
            batch: int = 1, mask: int = 255) -> UOp:
  """Return the kernel of 2 * x @ (w & mask).T + 1, in words. swapped: w is the first factor."""
  result = F32 if types[0] is BF16 else I32
  out, x, w = (UOp.param(slot, dtype, batch * size) for slot, dtype, size in
               ((0, result, m * n), (1, types[0], m * k), (2, types[1], n * k)))
  b, i, j, r = axis(batch, 3), axis(m, 4), axis(n, 5), axis(k, 6, "REDUCE")
  left, right = (p.index((b * rows + at) * k + r).load() for p, rows, at in ((x, m, i), (w, n, j)))
  if mask < 255: right = right & mask
  left, right = left.cast(result), right.cast(result)
  total = (right * left if swapped else left * right).reduce(Ops.ADD, r)
  value = total * UOp.const(result, 2) + UOp.const(result, 1)
  return with_dots(UOp.sink(out.index((b * m + i) * n + j).store(value, b, i, j)), AMX)

def steps_of(kernel: UOp) -> int:
  return next(u for u in kernel.toposort() if u.op is Ops.REDUCE).src[1].arg[0]  # type: ignore[no-any-return]

def opts(kernel: UOp, down: int = 1, across: int = 1, staged: int = 2, rows: int = 4,
         columns: int = 5) -> tuple[Opt, ...]:
  return (Opt(OptOps.MATRIX, rows, 16), Opt(OptOps.MATRIX, steps_of(kernel), 16), Opt(OptOps.VECTOR, columns, 16),
          *(Opt(OptOps.UPCAST, a, n) for a, n in ((rows, down), (columns, across)) if n > 1),
          Opt(OptOps.STAGE, staged), Opt(OptOps.GRID, columns))

def values(dtype: DType, n: int, rng: random.Random) -> list[Any]:
  if dtype is not BF16: return [rng.randint(int(dtype.min), int(dtype.max)) for _ in range(n)]
  return [float(rng.randint(-4, 4)) for _ in range(n)]

def packed(dtype: DType, data: list[Any]) -> list[int]:
  """Return the words of elements."""
  raw = b"".join(struct.pack("<f", x)[2:] if dtype is BF16 else (x & 255).to_bytes(1, "little") for x in data)
  return [w for w, in struct.iter_unpack("<I", raw)]

def check(kernel: UOp, chosen: tuple[Opt, ...], size: tuple[int, int, int], types: tuple[DType, DType] = (BF16, BF16),
          batch: int = 1) -> Program:
  """Lower a product; compare kernel and Program with the exact result, and return the Program."""
  m, n, k = size
  rng = random.Random(str(size))
  x, w = values(types[0], batch * m * k, rng), values(types[1], batch * n * k, rng)
  exact = [2 * sum(x[(b * m + i) * k + r] * w[(b * n + j) * k + r] for r in range(k)) + 1
           for b in range(batch) for i in range(m) for j in range(n)]
  tiled = with_opts(kernel, chosen, AMX.matrix)
  verify(tiled, 2)
  program = lower(tiled, AMX, "product")
  verify(program, 2)
  for form in (tiled, program):
    out: list[Any] = [0.0 if types[0] is BF16 else 0] * (batch * m * n)
    evaluate(form, {0: out, 1: packed(types[0], x), 2: packed(types[1], w)})
    assert out == exact
  return program

@pytest.mark.parametrize("swapped", (False, True))
@pytest.mark.parametrize("size, shape", [((16, 16, 64), (1, 1)), ((32, 32, 64), (2, 2)), ((40, 48, 96), (2, 1)),
                                         ((17, 33, 64), (1, 2)), ((16, 48, 64), (1, 3))])
def test_products(size: tuple[int, int, int], shape: tuple[int, int], swapped: bool) -> None:
  """The last tiles of rows and columns overlap."""
  kernel = product(*size, swapped=swapped)
  program = check(kernel, opts(kernel, *shape), size)
  assert count(program, Ops.MMA) == shape[0] * shape[1] and count(program, Ops.DOT2) == 0
  loads = [u for u in program.uops if u.op is Ops.LOAD and u.arg is not None]
  assert len(loads) == sum(shape) and {u.arg.stride for u in loads} == {size[2] // 2, 16}

@pytest.mark.parametrize("types", list(itertools.product((I8, U8), (I8, U8))), ids=str)
@pytest.mark.parametrize("swapped", (False, True))
def test_products_of_bytes(types: tuple[DType, DType], swapped: bool) -> None:
  """Rows have the type of the operand that they come from, whichever factor it is."""
  kernel = product(16, 32, 128, types, swapped)
  program = check(kernel, opts(kernel), (16, 32, 128), types)
  unit = next(u.arg for u in program.uops if u.op is Ops.MMA)
  assert unit.words == types

def test_the_columns_may_be_either_loop() -> None:
  kernel = product(32, 16, 64)
  program = check(kernel, opts(kernel, staged=1, rows=5, columns=4), (32, 16, 64))
  assert count(program, Ops.MMA) == 1

def stored(program: Program) -> list[UOp]:
  """Return the values that a Program stores to its result."""
  return [u.src[1] for u in program.uops if u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM]

def test_lanes_of_results_are_adjacent_in_memory() -> None:
  """Results come from an array, so they are stored along rows or columns, whichever are adjacent."""
  for rows, columns, staged in ((4, 5, 2), (5, 4, 1)):
    kernel = product(16, 16, 64)
    values = stored(check(kernel, opts(kernel, rows=rows, columns=columns, staged=staged), (16, 16, 64)))
    assert len(values) == 16 and all(v.dtype.count == 16 for v in values)

@pytest.mark.parametrize("rows, columns, staged", [(4, 5, 2), (5, 4, 1)])
@pytest.mark.parametrize("blocks", [(2, 3), (3, 2), (2, 16), (2, 1)])
def test_a_panel_of_several_tiles(blocks: tuple[int, int], rows: int, columns: int, staged: int) -> None:
  """Rows are the outer loop, so the columns' loop reads them again. In parts, it prefetches the next rows."""
  size = tuple(16 * blocks[axis != rows] for axis in (4, 5))
  kernel = product(*size, 64)
  chosen = [o for o in opts(kernel, rows=rows, columns=columns) if o.op not in (OptOps.STAGE, OptOps.GRID)]
  chosen += [Opt(OptOps.STAGE, staged, 1), Opt(OptOps.BLOCK, rows, blocks[0]), Opt(OptOps.BLOCK, columns, blocks[1])]
  program = check(kernel, tuple(chosen), (*size, 64))
  loads = [u for u in program.uops if u.op is Ops.LOAD and u.arg is not None]
  assert [u.arg.prefetched for u in loads if len(u.src) > 1] == ([-(-16 // blocks[1])] if blocks[1] > 1 else [])
  panel, = {u.src[0].src[0] for u in loads if u.src[0].src[0].op is Ops.DEFINE_LOCAL}
  assert panel.arg[1] == 16 * blocks[1] * 32

def test_steps_that_are_left_over_are_done_by_vectors() -> None:
  kernel = product(16, 16, 88)
  program = check(kernel, opts(kernel), (16, 16, 88))
  assert count(program, Ops.MMA) == 1 and count(program, Ops.DOT2) > 0

def test_batches() -> None:
  kernel = product(16, 16, 64, batch=2)
  assert count(check(kernel, opts(kernel), (16, 16, 64), batch=2), Ops.MMA) == 1

def test_columns_that_are_not_adjacent_are_done_by_vectors() -> None:
  """Without a panel, the words of a step are as far apart as the rows of w. One step has none."""
  for steps, without in ((64, OptOps.STAGE), (32, None)):
    kernel = product(16, 16, steps)
    program = check(kernel, tuple(o for o in opts(kernel) if o.op is not without), (16, 16, steps))
    assert count(program, Ops.MMA) == 0 and count(program, Ops.DOT2) > 0

def test_a_gate_is_no_tile() -> None:
  """Rows of which some are not in memory."""
  out, x, w = UOp.param(0, F32, 256), UOp.param(1, dtypes.uint32, 256), UOp.param(2, dtypes.uint32, 256)
  i, j, r = axis(16, 0), axis(16, 1), axis(16, 2, "REDUCE")
  gated = UOp(Ops.LOAD, dtypes.uint32, (x.index(i * 16 + r), i < 12, UOp.const(dtypes.uint32, 0)))
  dot = UOp(Ops.DOT2, F32, (gated, w.index(j * 16 + r).load(), UOp.const(F32, 0.0)))
  kernel = UOp.sink(out.index(i * 16 + j).store(dot.reduce(Ops.ADD, r), i, j))
  chosen = (Opt(OptOps.MATRIX, 0, 16), Opt(OptOps.MATRIX, 2, 16), Opt(OptOps.VECTOR, 1, 16), Opt(OptOps.STAGE, 2))
  tiled = with_opts(kernel, chosen, AMX.matrix)
  assert any(isinstance(u.tag, TileProduct) for u in tiled.toposort())
  assert count(lower(tiled, AMX, "gated"), Ops.MMA) == 0

def test_a_kernel_without_such_sums_stays() -> None:
  kernel = product(16, 16, 32)
  assert tiles(kernel, AMX) is kernel
  assert not any(isinstance(u.arg, MatrixRows) for u in kernel.toposort())
