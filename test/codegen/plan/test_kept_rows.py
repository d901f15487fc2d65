"""The tile of a kernel that keeps rows between two products."""
from __future__ import annotations
from dataclasses import replace

import pytest

from tinyhw.codegen.optimize import choose_all, with_few_ranges
from tinyhw.codegen.plan.heuristic import nest_of
from tinyhw.codegen.plan.kept_rows import folds, rows_of
from tinyhw.codegen.transform.tiling import Opt, OptOps, factor_of, size_of
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.isa.x86.capabilities import capabilities
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

pytestmark = pytest.mark.skipif(not Device[Device.DEFAULT].row_bytes, reason="workers of this device keep no rows")

def attention(rows: int = 128, row: int = 128, width: int = 64, heads: int = 12) -> UOp:
  """Return the kernel of an attention."""
  q, k, v = (Tensor.empty(heads, n, width) for n in (rows, row, row))
  return schedule(canonicalize([q.scaled_dot_product_attention(k, v).uop])).kernels[-1].sink

def chosen(sink: UOp, arch: str) -> tuple[Opt, ...]:
  return choose_all(with_few_ranges(sink, capabilities(arch)), capabilities(arch))

def axes(sink: UOp, opts: tuple[Opt, ...], op: OptOps) -> list[int]:
  return [o.axis for o in opts if o.op is op]

@pytest.mark.parametrize("arch, lanes", (("x86_64:avx2", 8), ("x86_64:avx512", 16)))
def test_lanes_are_rows_and_no_register_is_folded(arch: str, lanes: int) -> None:
  sink = attention()
  rows = rows_of(nest_of(sink.src[0]))
  assert rows is not None and size_of(rows) == 128
  opts = chosen(sink, arch)
  assert [o for o in opts if o.op is OptOps.VECTOR] == [Opt(OptOps.VECTOR, rows.arg[0], lanes)]
  assert axes(sink, opts, OptOps.GRID) == [0, rows.arg[0]] and len(axes(sink, opts, OptOps.STAGE)) == 1
  tiles = [o for o in opts if o.op is OptOps.UPCAST]
  assert len(tiles) >= 5 and min(o.amount for o in tiles) >= 2, "products in two directions, folds with several sums"

def test_rows_fit_into_scratch_memory() -> None:
  sink = attention(row=4096, heads=1)
  for size in (1 << 18, 1 << 19, 1 << 20):
    target = replace(capabilities("x86_64:avx2"), local_bytes=size)
    rows = rows_of(nest_of(sink.src[0]))
    assert rows is not None
    factor = factor_of(rows, choose_all(with_few_ranges(sink, target), target))
    assert factor * 4096 * 4 <= size

def test_few_rows_are_a_part_of_a_register() -> None:
  with Context(NOOPT=0): opts = chosen(attention(rows=20, row=1024), "x86_64:avx512")
  assert [o.amount for o in opts if o.op is OptOps.VECTOR] == [16]

def test_a_prime_row_is_not_repeated() -> None:
  sink = attention(row=197)
  loops = {u.arg[0]: size_of(u) for u in sink.toposort() if u.op is Ops.RANGE}
  for o in chosen(sink, "x86_64:avx2"):
    if o.op is OptOps.UPCAST and loops[o.axis] == 197: assert o.amount > 1
  nodes = sink.toposort()
  assert not [o for o in folds(nodes, set(), 2) if loops[o.axis] == 197]

def test_kernels_without_arrays_have_no_rows() -> None:
  sink = schedule(canonicalize([(Tensor.empty(8, 8) @ Tensor.empty(8, 8)).uop])).kernels[-1].sink
  assert rows_of(nest_of(sink.src[0])) is None
