"""Strided lanes: the same elements as one by one, from accesses of adjacent elements and SHUFFLEs."""
from dataclasses import replace
import random

import pytest

from test.codegen.kernels import ALL_TARGETS, AVX2, axis, check
from tinyhw.codegen.lower.strided import (
  adjacent, blocks_of, interleaved, joined, picked, shuffle, transposed, StridedAddress)
from tinyhw.codegen.lower.vectorize import vectorize
from tinyhw.codegen.transform.tiling import MOST_STRIDE
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32
AVX512 = capabilities("x86_64:avx512")
TARGETS = {**ALL_TARGETS, "avx512": AVX512}
LANES = axis(8, 9, "VECTOR")
R = axis(5, 0)

def kernel(load: UOp, store: UOp | None = None, copies: int = 1, dtype: DType = F32, lanes: UOp = LANES) -> UOp:
  """Return out[store] = 3 * a[load], over R, `copies` unrolled iterations and lanes. Indices are given for copy 0."""
  u = axis(copies, 1, "UPCAST")
  at = R * (8 * copies) + u * 8 + lanes if store is None else store
  value = UOp.param(1, dtype, 4096).index(load).load()
  return UOp.sink(UOp.param(0, dtype, 4096).index(at).store(value + value + value, R, u, lanes))

U4, U2, U6, U8 = (axis(n, 1, "UPCAST") for n in (4, 2, 6, 8))

def count(sink: UOp, op: Ops, capabilities: object = AVX2) -> list[int]:
  """Return the lanes of each node of this kind."""
  found = [u for u in vectorize_unrolled(sink, capabilities).toposort() if u.op is op]
  return [(u.src[1].dtype if op is Ops.STORE else u.dtype).count for u in found]

def vectorize_unrolled(sink: UOp, target: object) -> UOp:
  from tinyhw.codegen.lower.expand import unroll
  return vectorize(unroll(sink), target)   # type: ignore[arg-type]  # Capabilities

@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", (F32, dtypes.float64, dtypes.int32, dtypes.uint64, dtypes.int16),
                         ids=lambda d: d.name)
@pytest.mark.parametrize("stride", (-5, -4, -3, -2, -1, 2, 3, 4, 5, 9))
def test_a_strided_load(stride: int, dtype: DType, target: str) -> None:
  check(kernel(LANES * stride + R * 7 + (100 if stride < 0 else 0), dtype=dtype), TARGETS[target], passes=True)

@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", (F32, dtypes.float64, dtypes.int64), ids=lambda d: d.name)
@pytest.mark.parametrize("u, stride", [(U4, 20), (U2, 20), (U6, 20), (U4, -20), (axis(16, 1, "UPCAST"), 33),
                                       *[(axis(n, 1, "UPCAST"), 20) for n in (3, 5, 7, 14)]])
def test_rows_are_transposed(u: UOp, stride: int, dtype: DType, target: str) -> None:
  """Both ways: vectors of loads, and vectors that are stored."""
  n, first = int(u.src[0].arg), 7 * abs(stride) if stride < 0 else 0
  across = LANES * stride + u + R * 300 + first
  check(kernel(across, None, n, dtype), TARGETS[target], passes=True)
  check(kernel(R * (8 * n) + u * 8 + LANES, across, n, dtype), TARGETS[target], passes=True)

@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", (dtypes.int16, dtypes.float16), ids=lambda d: d.name)
@pytest.mark.parametrize("u", (U8, axis(12, 1, "UPCAST")))
def test_rows_of_two_bytes_are_transposed(u: UOp, dtype: DType, target: str) -> None:
  """Blocks of 8 x 8; the last block of 12 loads overlaps."""
  n = int(u.src[0].arg)
  across = LANES * 20 + u + R * 300
  check(kernel(across, None, n, dtype), TARGETS[target], passes=True)
  check(kernel(R * (8 * n) + u * 8 + LANES, across, n, dtype), TARGETS[target], passes=True)

def test_a_block_of_two_bytes_has_pieces_of_16_bytes_and_three_steps() -> None:
  sink = kernel(LANES * 20 + U8 + R * 300, None, 8, dtypes.int16)
  assert count(sink, Ops.LOAD) == [8] * 8 and count(sink, Ops.SHUFFLE) == [8] * 24
  assert count(kernel(LANES * 2 + U2, None, 2, dtypes.int16), Ops.SHUFFLE) == [], "none are picked"

@pytest.mark.parametrize("target", TARGETS)
def test_lanes_of_two_copies_are_interleaved(target: str) -> None:
  check(kernel(R * 16 + U2 * 8 + LANES, R * 16 + LANES * 2 + U2, 2), TARGETS[target], passes=True)

def test_memory_between_the_lanes_is_loaded_as_a_whole() -> None:
  assert count(kernel(LANES * 2), Ops.LOAD) == [8, 8] and len(count(kernel(LANES * 2), Ops.SHUFFLE)) == 1
  assert count(kernel(LANES * MOST_STRIDE), Ops.LOAD) == [8] * MOST_STRIDE
  assert count(kernel(LANES * -1 + 7), Ops.LOAD) == [8], "backwards"

@pytest.mark.parametrize("stride", (-4, -3, -2, -1, 2, 3, 4))
@pytest.mark.parametrize("lanes", (4, 8, 16))
def test_nothing_outside_of_the_lanes_is_loaded(stride: int, lanes: int) -> None:
  buffer = UOp.param(0, F32, 100)
  load = buffer.index(UOp.const(dtypes.weakint, 50)).load()
  made = picked(load, StridedAddress(buffer, UOp.const(dtypes.weakint, 50), stride, lanes))
  reached = {u.src[0].src[1].arg + k for u in made.toposort() if u.op is Ops.LOAD for k in range(u.dtype.count)}
  ends = (50, 50 + stride * (lanes - 1))
  assert min(reached) == min(ends) and max(reached) == max(ends)

def test_pieces_of_rows_are_16_bytes() -> None:
  sink = kernel(LANES * 20 + U4 + R * 300, None, 4)
  assert count(sink, Ops.LOAD) == [4] * 8, "a piece for each lane"
  assert count(sink, Ops.SHUFFLE) == [8] * 12, "4 rows are joined, and 4 x 4 transposed in 8 steps"
  stored = kernel(R * 32 + U4 * 8 + LANES, LANES * 20 + U4 + R * 300, 4)
  assert count(stored, Ops.STORE) == [4] * 8

def test_a_longer_run_has_several_pieces() -> None:
  """Of 6 loads, the second piece begins early enough to be whole. Stores would store twice: they have a piece of 2."""
  load = kernel(LANES * 20 + U6 + R * 300, None, 6)
  assert count(load, Ops.LOAD) == [4] * 16
  store = kernel(R * 48 + U6 * 8 + LANES, LANES * 20 + U6 + R * 300, 6)
  assert count(store, Ops.STORE) == [4, 2] * 8, "row by row"

def test_other_accesses_stay() -> None:
  few = kernel(LANES * 20 + axis(3, 1, "UPCAST") + R * 300, None, 3)
  assert count(few, Ops.SHUFFLE) == [], "three copies would load a fourth element"
  assert count(kernel(LANES * 2, dtype=dtypes.int16), Ops.SHUFFLE) == [], "elements of two bytes"
  gated = UOp.param(1, F32, 4096).index(LANES * 2).load(LANES < 5)
  assert count(UOp.sink(UOp.param(0, F32, 64).index(R * 8 + LANES).store(gated, R, LANES)), Ops.SHUFFLE) == []
  assert count(kernel(LANES * 2), Ops.SHUFFLE, replace(AVX2, shuffled_bytes=(), transposed_bytes=())) == []
  wide = axis(16, 9, "VECTOR")
  assert count(kernel(wide * 2, lanes=wide), Ops.SHUFFLE) == [], "wider than a register"

def test_two_stores_to_one_place_stay() -> None:
  """Their order matters."""
  at, out = LANES * 20, UOp.param(0, F32, 4096)
  stores = [out.index(at + k).store(UOp.const(F32, float(k)), R, LANES) for k in range(4)]
  again = out.index(at).store(UOp.const(F32, 9.0), R, LANES)
  assert blocks_of(stores, AVX2) and not blocks_of([*stores, again], AVX2)

def test_runs() -> None:
  assert list(adjacent([1, 2, 3, 7, 9, 10])) == [[1, 2, 3], [7], [9, 10]] and list(adjacent([])) == []

def lanes_of(u: UOp, values: dict[UOp, list[int]]) -> list[int]:
  """Return the lanes of SHUFFLEs of vectors with these lanes."""
  if u in values: return values[u]
  lanes = [x for s in u.src for x in lanes_of(s, values)]
  return [lanes[k] for k in u.arg]

@pytest.mark.parametrize("n, each", [(4, 4), (8, 4), (16, 4), (2, 2), (4, 2), (8, 2), (8, 8), (16, 8), (32, 8)])
def test_what_shuffles_move(n: int, each: int) -> None:
  rng = random.Random(n)
  rows = [UOp.variable(f"v{k}", 0, 1) for k in range(each)]
  rows = [UOp(Ops.BROADCAST, F32.vec(n), (UOp.const(F32, float(k)),)) for k in range(each)]
  values = {row: [rng.randrange(1000) for _ in range(n)] for row in rows}
  for k, u in enumerate(transposed(rows)):
    assert lanes_of(u, values) == [values[rows[q]][part + k] for part in range(0, n, each) for q in range(each)]
  assert lanes_of(joined(rows), values) == [x for row in rows for x in values[row]]
  both = interleaved(rows[0], rows[1])
  assert [x for u in both for x in lanes_of(u, values)] == [x for pair in zip(values[rows[0]], values[rows[1]])
                                                            for x in pair]
  assert shuffle([1, 0], rows[0]).dtype is F32.vec(2)

@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", (F32, dtypes.float64, dtypes.int32, dtypes.int16), ids=lambda d: d.name)
def test_a_masked_load_backwards(target: str, dtype: DType) -> None:
  """Lanes from the last element to the first, where some, all or none are inside. Others are 7."""
  lanes, r = axis(8 if dtype.itemsize < 8 else 4, 9, "VECTOR"), axis(7, 0)
  width = int(lanes.src[0].arg)
  at = r * width + lanes
  load = UOp.param(1, dtype, 20).index(at * -1 + 29).load((at < 30) & (9 < at), 7)
  kernel = UOp.sink(UOp.param(0, dtype, 7 * width).index(at).store(load + load, r, lanes))
  check(kernel, TARGETS[target], passes=True)
  if TARGETS[target] is AVX512 and dtype.itemsize >= 4: assert count(kernel, Ops.SHUFFLE, AVX512)
