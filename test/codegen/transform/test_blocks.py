"""Long sums in blocks: the sums that are cut, equal values, and correct sums of many equal numbers."""
import numpy as np
import pytest

from test.codegen.kernels import AVX2, axis, check
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.blocks import BLOCK, LONG_SUM, divisor, in_blocks, is_long, terms_of
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.table.matrix import product_of_group
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32 = dtypes.float32

def total(*ends: int, dtype: DType = F32, op: Ops = Ops.ADD) -> UOp:
  """Return out[0] = a folded, by nested loops."""
  ranges = [axis(n, k, "REDUCE") for k, n in enumerate(ends)]
  at: UOp | int = 0
  for r, n in zip(ranges, ends): at = r if isinstance(at, int) else at * n + r
  assert isinstance(at, UOp)
  out, a = UOp.param(0, dtype, 1), UOp.param(1, dtype, int(np.prod(ends)))
  return UOp.sink(out.index(0).store(a.index(at).load().reduce(op, *ranges)))

def loops(sink: UOp) -> list[list[int]]:
  """Return the lengths of each REDUCE's loops, outermost first."""
  return [[r.src[0].arg for r in ranges_of(u)] for u in reversed(list(in_blocks(sink).toposort()))
          if u.op is Ops.REDUCE]

def test_what_is_cut() -> None:
  assert loops(total(LONG_SUM)) == [[LONG_SUM]] and loops(total(2 * LONG_SUM)) == [[2 * LONG_SUM // BLOCK], [BLOCK]]
  assert loops(total(LONG_SUM, 3, 3)) == [[LONG_SUM // BLOCK],
                                          [BLOCK, 3, 3]] or loops(total(LONG_SUM, 3, 3))[-1][-2:] == [3, 3]
  assert loops(total(64, 256)) == [[64], [256]]
  assert loops(total(1 << 20))[-1] == [BLOCK]
  for other in (total(1 << 14, dtype=dtypes.int32), total(1 << 14, op=Ops.MAX), total(1 << 14, op=Ops.MUL)):
    assert in_blocks(other) is other

def test_additions_of_shared_operands_are_the_unit_s() -> None:
  """An addition is 32 bytes of steps: a product of 64 halves is four additions."""
  r, unit = axis(8, 0, "REDUCE"), product_of_group(64, dtypes.float16)
  zero = UOp(Ops.CONST, F32.vec(32), (), 0.0)
  product = UOp(Ops.MMA, F32.vec(32), (zero, zero, zero), unit)
  assert terms_of(UOp(Ops.REDUCE, F32.vec(32), (product, r), Ops.ADD)) == 4
  assert terms_of(UOp(Ops.REDUCE, F32.vec(32), (UOp(Ops.GROUP, dtypes.void, (product, product)), r), Ops.ADD)) == 8
  assert terms_of(UOp(Ops.REDUCE, F32.vec(32), (zero, r), Ops.ADD)) == 1

def test_a_prime_is_done_in_two_loops() -> None:
  assert divisor(7919, BLOCK) == 1 and divisor(1000, 256) == 250 and divisor(4096, 256) == 256
  assert sorted(loops(total(7919))) == [[7919 // BLOCK], [7919 % BLOCK], [BLOCK]]

def test_lengths_must_be_known() -> None:
  n = UOp(Ops.DEFINE_VAR, dtypes.weakint, (), ("n", 1, 1 << 20))
  assert not is_long(UOp.param(1, F32, 1 << 20).index(axis(n, 0, "REDUCE")).load().reduce(Ops.ADD,
                                                                                          axis(n, 0, "REDUCE")))

@pytest.mark.parametrize("ends", [(3000,), (2048, 3, 3), (5, 1024), (2053,), (2, 2503)])
def test_values(ends: tuple[int, ...]) -> None:
  for dtype in (F32, dtypes.float16): check(total(*ends, dtype=dtype), AVX2)

def test_sums_of_other_kinds_share_the_loop() -> None:
  out, a = UOp.param(0, F32, 1), UOp.param(1, F32, 4096)
  r = axis(4096, 0, "REDUCE")
  x = a.index(r).load()
  kernel = UOp.sink(out.index(0).store(x.reduce(Ops.ADD, r) + x.reduce(Ops.MAX, r)))
  check(kernel, AVX2)
  assert sum(u.op is Ops.RANGE for u in lower(kernel, AVX2, "x").uops) == 2

@pytest.mark.parametrize("shape, axes", [((1 << 20,), 0), ((1 << 17, 8), 0), ((3, 300000), 1), ((65537, 4), 0),
                                         ((512, 700), (0, 1))])
def test_many_equal_numbers(shape: tuple[int, ...], axes: int | tuple[int, ...]) -> None:
  x = np.full(shape, 0.1, np.float32)
  want = x.astype(np.float64).sum(axes)
  np.testing.assert_allclose(Tensor(x, device="CPU").sum(axes).numpy(), want, rtol=6e-6)
