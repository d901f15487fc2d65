"""Operands of products that CPUs store anew: which ones, in which order, and that no result changes."""
from __future__ import annotations
import random

import pytest

from tinyhw.device import Device
from tinyhw.engine.schedule import schedule as scheduling
from tinyhw.engine.schedule.operands import adjacent_axis, factors_of
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
  """The NULL device compiles nothing, so graphs of any size are scheduled at once."""
  monkeypatch.setattr(Device["NULL"], "shares_operands", True)

def empty(*shape: int, dtype: str = "float32") -> Tensor: return Tensor.empty(*shape, dtype=dtype, device="NULL")

def stored(result: Tensor) -> list[UOp]:
  """Return the values that have a kernel of their own, besides the result."""
  return [k.node for k in schedule(canonicalize([result.uop])).kernels][:-1]

def test_only_cpus_share_operands() -> None:
  assert Device["CPU"].shares_operands and Device["PYTHON"].shares_operands

@pytest.mark.parametrize("make, shape", [
  (lambda: empty(512, 300).T @ empty(512, 700), (300, 512)),
  (lambda: empty(4, 512, 300).transpose(1, 2) @ empty(4, 512, 700), (4, 300, 512)),
  (lambda: (empty(700, 512) @ empty(300, 512).T).T @ empty(700, 256), None)])   # a gradient's product
def test_the_shared_operand_gets_rows_along_the_sum(make: object, shape: tuple[int, ...] | None) -> None:
  made = [u for u in stored(make()) if u.op is Ops.CONTIGUOUS]   # type: ignore[operator]  # a function
  assert len(made) == 1
  if shape is not None: assert tuple(n for n in made[0].shape if n != 1) == shape

def test_a_gradient_of_weights_transposes_one_operand() -> None:
  x, w = empty(512, 300), empty(400, 300).requires_grad_()
  found = (x @ w.T).gradient(w, gradient=empty(512, 400))[0]
  made = stored(found)
  assert [u.op for u in made] == [Ops.CONTIGUOUS] and made[0].size in (512 * 300, 512 * 400)

def test_products_of_halves_convert_the_smaller_operand_once() -> None:
  made = stored(empty(128, 512, dtype="float16") @ empty(2048, 512, dtype="float16").T)
  assert len(made) == 1 and made[0].size == 128 * 512 and made[0].dtype.name == "float"
  both = stored(empty(512, 128, dtype="float16").T @ empty(512, 2048, dtype="float16"))
  assert len(both) == 1 and tuple(n for n in both[0].shape if n != 1) == (128, 512) and both[0].dtype.name == "float"

@pytest.mark.parametrize("make", (
  lambda: empty(512, 300) @ empty(300, 700),                                   # a's rows are along the sum
  lambda: empty(512, 300) @ empty(700, 300).T,                                 # both
  lambda: empty(300, 512).T @ empty(700, 300).T,                               # b's
  lambda: empty(512, 300).T @ empty(512, 64),                                  # few uses
  lambda: empty(32, 300).T @ empty(32, 700),                                   # few terms
  lambda: empty(512, 8).T @ empty(512, 700),                                   # few rows
  lambda: empty(512).dot(empty(512)), lambda: empty(512, 300).sum(0),
  lambda: empty(1, 512, dtype="float16") @ empty(4096, 512, dtype="float16").T,   # a vector by a matrix
  lambda: empty(128, 512, dtype="float16") @ empty(64, 512, dtype="float16").T,   # few uses
  lambda: empty(8, 32, 20, 20).conv2d(empty(64, 32, 3, 3)),
  lambda: empty(300, 512, dtype="int32").T @ empty(300, 700, dtype="int32")))
def test_others_stay(make: object) -> None:
  assert not stored(make())   # type: ignore[operator]  # a function

def test_symbolic_sizes_stay() -> None:
  from tinyhw import Variable
  n = Variable("n", 1, 512).bind(300)
  assert not any(u.op is Ops.CONTIGUOUS for u in stored(empty(512, 300).shrink(((0, n), None)).T
                                                        @ empty(512, 700).shrink(((0, n), None))))

@pytest.mark.parametrize("make, axis", [
  (lambda t: t, 2), (lambda t: t.permute(2, 0, 1), 0), (lambda t: t.permute(0, 2, 1), 1),
  (lambda t: t.reshape(12, 5), 1), (lambda t: t.reshape(3, 20), 1), (lambda t: t.reshape(60, 1, 1), 0),
  (lambda t: t.permute(2, 0, 1).reshape(5, 12), 0), (lambda t: t.permute(2, 0, 1).reshape(60), None),
  (lambda t: t.permute(0, 2, 1).reshape(15, 4), None), (lambda t: t.permute(0, 2, 1).reshape(3, 5, 2, 2), 1),
  (lambda t: t.shrink(((0, 2), None, (1, 4))).flip(2).pad(((0, 0), (0, 0), (1, 1))), 2),
  (lambda t: t.permute(2, 0, 1) + 1, 2), (lambda t: t.permute(2, 0, 1).half(), 0), (lambda t: t[0, 0, 0], None)])
def test_the_adjacent_axis(make: object, axis: int | None) -> None:
  assert adjacent_axis(make(empty(3, 4, 5)).uop) == axis   # type: ignore[operator]  # a function

def test_the_factors_of_a_product() -> None:
  product = (empty(300, 512) @ empty(512, 700)).uop
  while product.op is not Ops.REDUCE_AXIS: product = product.src[0]
  found = factors_of(product.src[0], product.arg[1])
  assert found is not None
  assert [(f.rows, f.uses) for f in found] == [(0, 700), (1, 300)]

def test_results_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
  """Whole numbers, so that no order of additions matters."""
  rng = random.Random(0)
  def whole(*shape: int, dtype: str = "float32") -> Tensor:
    data = [float(rng.randrange(-3, 4)) for _ in range(shape[0] * shape[1])]
    return Tensor(data, device="CPU").reshape(shape).cast(dtype).realize()
  a, b, half = whole(515, 33), whole(515, 131), [whole(17, 129, dtype="float16"), whole(260, 129, dtype="float16")]
  def results() -> list[object]:
    monkeypatch.setattr(scheduling, "_schedules", type(scheduling._schedules)())   # none that was made before
    return [(a.T @ b).tolist(), (half[0] @ half[1].T).tolist()]
  made = results()
  monkeypatch.setattr(Device["CPU"], "shares_operands", False)
  assert results() == made
