"""Kernels of attention are taken apart, and others are not."""
from __future__ import annotations
import math

import pytest

from test.codegen.attention.attentions import F32, attention
from test.codegen.products import halved, product
from tinyhw.codegen.attention.recognize import POWER, PRODUCT, TOTAL, attention_in, unguarded, without_factors
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("guarded", (False, True))
def test_parts_of_an_attention(causal: bool, guarded: bool) -> None:
  found = attention_in(attention(2, 20, 24, 8, 12, causal, guarded=guarded))
  assert found is not None
  assert [r.src[0].arg for r in (found.row, found.position)] == [20, 24]
  assert found.column is not None and found.column.src[0].arg == 12
  assert ranges_of(found.inner)[0].src[0].arg == 8
  assert PRODUCT in found.score.toposort() and POWER in found.weight.toposort() and found.power is Ops.EXP
  assert len(found.factors) == 1 and TOTAL in found.factors[0].toposort()
  assert not any(u.op in (Ops.STAGE, Ops.REDUCE) for u in (*found.score.toposort(), *found.weight.toposort(),
                                                           *found.store.toposort()))

def test_heads_are_no_columns() -> None:
  """With one column, values depend on the head and on the position alone."""
  kernel = attention(3, 20, 24, 8, 1)
  column = next(u for u in kernel.toposort() if u.op is Ops.RANGE and u.arg[0] == 2)
  store = kernel.src[0].substitute({column: UOp.const(dtypes.weakint, 0)})
  found = attention_in(UOp.sink(store.replace(src=tuple([s for s in store.src if s.arg != 0]))))
  assert found is not None and found.column is None and found.row.arg[0] == 1

def test_other_kernels_are_none() -> None:
  assert attention_in(halved(product(16, 16, 16, F32, F32))) is None
  kernel = attention(1, 16, 16, 8, 8)
  sums = next(u for u in kernel.toposort() if u.op is Ops.REDUCE and u.arg is Ops.MAX)
  assert attention_in(kernel.substitute({sums: UOp.const(F32, 1)})) is None, "without the largest score"
  assert attention_in(UOp.sink(*kernel.src, *kernel.src)) is None, "two stores"

def test_a_guard_is_left_out() -> None:
  x, zero, infinity = UOp.param(0, F32, 1).index(0).load(), UOp.const(F32, 0), UOp.const(F32, -math.inf)
  assert unguarded(x.alu(Ops.CMPEQ, infinity).where(zero, x)) is x
  for u in (x, x.alu(Ops.CMPEQ, zero).where(zero, x), x.alu(Ops.CMPEQ, infinity).where(UOp.const(F32, 1), x)):
    assert unguarded(u) is u

def test_factors_of_a_row() -> None:
  position = UOp.range(8, 0, AxisType.REDUCE)
  total = PRODUCT.reduce(Ops.ADD, UOp.range(8, 1, AxisType.REDUCE))
  scale, zero = UOp.param(0, F32, 8).index(position).load(), UOp.const(F32, 0)
  inverse = total.alu(Ops.RECIPROCAL)
  kept = position.cast(dtypes.int32) < 3
  assert without_factors(POWER * inverse, POWER, position) == (POWER, (inverse,))
  assert without_factors(POWER.alu(Ops.FDIV, total), POWER, position) == (POWER, (inverse,))
  half = (POWER * inverse).cast(dtypes.float16)
  assert without_factors(half, POWER, position) == (POWER.cast(dtypes.float16), (inverse,))
  assert without_factors(kept.where(POWER * inverse * scale, zero), POWER, position) == (
    kept.where(POWER * scale, zero), (inverse,))
  for other in (POWER + 1.0, POWER * POWER, kept.where(POWER, UOp.const(F32, 1)), POWER.alu(Ops.SQRT),
                POWER * (total * scale)):
    assert without_factors(other, POWER, position) is None, other
