"""Weights of convolutions in the order in which GPUs copy them: results stay, and only such weights get a buffer."""
from __future__ import annotations
from collections.abc import Callable
import math
import random

import pytest

from tinyhw.device import Device
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.drivers.nvidia.cuda import CudaDevice
from tinyhw.engine.schedule import schedule as scheduling
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.engine.schedule.weights import ordered
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def empty(*shape: int, dtype: str = "float16") -> Tensor: return Tensor.empty(*shape, dtype=dtype, device="NULL")

def stored(result: Tensor) -> list[UOp]:
  """Return the values that have a kernel of their own, besides the result."""
  return [k.node for k in schedule(canonicalize([result.uop])).kernels][:-1]

def image_gradient(x: Tensor, w: Tensor) -> Tensor:
  y = x.conv2d(w, padding=1)
  return y.gradient(x, gradient=empty(*y.shape))[0]

@pytest.mark.parametrize("make", (lambda x, w: x.conv2d(w, padding=1), image_gradient))
def test_weights_get_a_buffer_of_halves_with_channels_inside(make: Callable[[Tensor, Tensor], Tensor],
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
  x, w = empty(8, 16, 20, 20).requires_grad_(), empty(32, 16, 3, 3).requires_grad_()
  assert not stored(make(x, w))
  monkeypatch.setattr(Device["NULL"], "copies_operands", True)
  made = stored(make(empty(8, 16, 20, 21).requires_grad_(), w))   # another graph: schedules are cached
  assert len(made) == 1 and made[0].op is Ops.CONTIGUOUS and made[0].dtype.name == "half"
  assert [n for n in made[0].shape if n != 1][1:3] == [3, 3] and made[0].size == w.uop.size

def test_only_gpus_copy_operands() -> None:
  assert GpuDevice.copies_operands and CudaDevice.copies_operands
  assert not any(Device[name].copies_operands for name in ("CPU", "PYTHON", "NULL"))

def test_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
  """Matrix products, 1x1 convolutions, and weights that few products use."""
  monkeypatch.setattr(Device["NULL"], "copies_operands", True)
  assert not stored(empty(512, 256) @ empty(256, 512))
  assert not stored(empty(8, 32, 20, 20).conv2d(empty(16, 32, 1, 1)))
  assert not stored(empty(1, 16, 4, 4).conv2d(empty(32, 16, 3, 3)))
  assert not stored(empty(512, 256) @ empty(512, 256).T)

def test_a_factor_that_is_in_order_stays() -> None:
  inside, outside = empty(1, 4, 3, 8).expand(2048, 4, 3, 8).uop, empty(1, 4, 8, 3).expand(2048, 4, 8, 3).uop
  rows = empty(2048, 1).expand(2048, 4 * 3 * 8).reshape(2048, 4, 3, 8).uop   # adjacent along rows
  assert ordered(inside, (2, 3), rows) is inside and ordered(outside, (2, 3), rows) is not outside
  assert ordered(outside, (2,), rows) is outside and ordered(outside, (2, 3), rows).shape == outside.shape

@pytest.mark.parametrize("shape", ((4, 20, 20), (4, 9, 7), (16, 7, 7)))
def test_the_gradient_of_weights_keeps_its_factors_in_the_order_of_the_image(shape: tuple[int, int, int],
                                                                             monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(Device["NULL"], "copies_operands", True)
  b, h, w = shape
  x, weights = empty(b, 48, h, w), empty(32, 48, 3, 3).requires_grad_()
  y = x.conv2d(weights, padding=1)
  made = y.gradient(weights, gradient=empty(*y.shape))[0]
  assert not [u for u in stored(made) if u.op is Ops.CONTIGUOUS]

@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_results_are_the_same(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
  rng = random.Random(0)
  def whole(*shape: int) -> Tensor:
    data = [float(rng.randrange(-3, 4)) for _ in range(math.prod(shape))]
    return Tensor(data, device="CPU").reshape(shape).cast(dtype).realize()
  def results() -> list[object]:
    x, w = x0.clone().requires_grad_(), w0.clone().requires_grad_()
    y = x.conv2d(w, padding=1, groups=2, stride=(2, 1))
    return [t.tolist() for t in (y, *y.gradient(x, w, gradient=given))]
  x0, w0 = whole(4, 4, 18, 17), whole(6, 2, 3, 3)
  given = whole(4, 6, 9, 17)
  wanted = results()
  monkeypatch.setattr(Device["CPU"], "copies_operands", True)
  monkeypatch.setattr(scheduling, "_schedules", type(scheduling._schedules)())   # those without such buffers
  assert results() == wanted
