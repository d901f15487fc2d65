"""Which sums are noted for a CPU's matrix unit; the kernel stays what it is."""
from __future__ import annotations
import itertools

import pytest

from test.codegen.kernels import axis
from test.codegen.lower.test_tiles import AMX, BF16, I8, U8, opts, product
from tinyhw.codegen.optimize import with_opts
from tinyhw.codegen.transform.tile_sums import TileProduct, factors_by, unit_for
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def noted(kernel: UOp) -> list[TileProduct]: return [u.tag for u in kernel.toposort() if isinstance(u.tag, TileProduct)]

def sum_of(kernel: UOp) -> UOp: return next(u for u in kernel.toposort() if u.op is Ops.REDUCE)

@pytest.mark.parametrize("swapped", (False, True))
@pytest.mark.parametrize("types", [(BF16, BF16), *itertools.product((I8, U8), (I8, U8))], ids=str)
def test_the_first_type_is_that_of_the_rows(types: tuple[DType, DType], swapped: bool) -> None:
  reduce = sum_of(product(16, 16, 128, types, swapped))
  for loop, words in ((4, types), (5, types[::-1])):
    row = next(r for r in reduce.ranges if r.arg[0] == loop)
    factors, unit = factors_by(reduce, row), unit_for(reduce, row, AMX.matrix)
    assert factors is not None and row in factors[0].ranges and unit is not None and unit.words == words
    assert unit_for(reduce, row, ()) is None

def test_the_ranges_of_a_tile() -> None:
  kernel = product(32, 32, 128)
  (tile,) = noted(with_opts(kernel, opts(kernel, 2, 2), AMX.matrix))
  assert len({tile.rows, tile.columns, tile.steps}) == 3

def test_other_sums_are_not_noted() -> None:
  kernel = product(32, 32, 128)
  chosen = opts(kernel, 2, 2)
  assert not noted(with_opts(kernel, chosen, ()))
  assert not noted(with_opts(kernel, tuple(o for o in chosen if o.op is not OptOps.VECTOR), AMX.matrix))
  eight = tuple(Opt(o.op, o.axis, 8) if o.op is OptOps.MATRIX else o for o in chosen)
  assert not noted(with_opts(kernel, eight, AMX.matrix)), "the unit has no such shape"

def test_a_sum_that_begins_elsewhere_has_no_factors() -> None:
  i, r = axis(16, 0), axis(16, 1, "REDUCE")
  x = UOp.param(0, dtypes.uint32, 256).index(i * 16 + r).load()
  y = UOp.param(1, dtypes.uint32, 16).index(r).load()
  dot = UOp(Ops.DOT2, dtypes.float32, (x, y, UOp.const(dtypes.float32, 1.0)))
  assert factors_by(dot.reduce(Ops.ADD, r), i) is None
  assert factors_by(x.reduce(Ops.ADD, r), i) is None

def test_a_factor_that_is_computed_is_no_factor_of_the_unit() -> None:
  """Bytes of 4-bit numbers are masked."""
  for mask, found in ((255, True), (15, False)):
    reduce = sum_of(product(16, 16, 128, (I8, U8), mask=mask))
    for loop in (4, 5):
      row = next(r for r in reduce.ranges if r.arg[0] == loop)
      assert (factors_by(reduce, row) is not None) is found
