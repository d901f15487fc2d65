"""Kernels of users, and the kernels that realize would run."""
import numpy as np
import pytest

from test.helpers import arrays, same
from tinyhw import Tensor, TinyJit, UOp, dtypes
from tinyhw.errors import ArgumentError, DeviceError, GradientError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import KernelInfo

def add(out: UOp, a: UOp, b: UOp) -> UOp:
  i, j = UOp.range(out.shape[0], 0), UOp.range(out.shape[1], 1)
  return out[i, j].store(a[i, j] + b[i, j]).end(i, j).sink(arg=KernelInfo(name="add"))

def double(out: UOp, x: UOp) -> UOp:
  out, x = out.flatten(), x.flatten()
  i = UOp.range(x.size, 0)
  return out[i].store(x[i] * 2).end(i).sink()

def product(out: UOp, a: UOp, b: UOp) -> UOp:
  i, j, k = UOp.range(a.shape[0], 0), UOp.range(b.shape[1], 1), UOp.range(b.shape[0], 2)
  return out[i, j].store((a[i, k] * b[k, j]).reduce(Ops.ADD, k)).end(i, j).sink()

def product_gradient(g: UOp, kernel: UOp) -> tuple[object, ...]:
  _, a, b = kernel.src[1:]
  return None, Tensor(g) @ Tensor(b).T, (Tensor(a).T @ Tensor(g)).uop

@pytest.mark.slow
def test_elementwise():
  a, b = arrays((3, 5), (3, 5))
  out = Tensor.empty(3, 5)
  found = out.custom_kernel(Tensor(a), Tensor(b), fxn=add)
  assert len(found) == 3
  same(found[0], a + b)
  same(out, a + b)              # the same storage
  same(found[1], a)

@pytest.mark.slow
def test_operands_are_expressions_and_views():
  a = arrays((4, 3))[0]
  same(Tensor.empty(3, 4).custom_kernel(Tensor(a).T, fxn=double)[0], a.T * 2)
  same(Tensor.zeros(2, 3).custom_kernel(Tensor(a)[1:3] + 1, fxn=double)[0], (a[1:3] + 1) * 2)

@pytest.mark.slow
def test_reduction():
  a, b = arrays((4, 7), (7, 3))
  same(Tensor.empty(4, 3).custom_kernel(Tensor(a), Tensor(b), fxn=product)[0], a @ b)

@pytest.mark.slow
def test_in_place_and_several_results():
  def both(x: UOp, y: UOp) -> UOp:
    i = UOp.range(x.size, 0)
    return UOp.group(x[i].store(x[i] + 1), y[i].store(x[i].load() * 10)).end(i).sink()
  x, y = Tensor([1.0, 2, 3]).realize(), Tensor.empty(3)
  before = x * 3                # keeps its value
  found = x.custom_kernel(y, fxn=both)
  same(found[0], np.float32([2, 3, 4]))
  same(found[1], np.float32([10, 20, 30]))
  same(x, np.float32([2, 3, 4]))
  same(before, np.float32([3, 6, 9]))

@pytest.mark.slow
def test_gradient():
  a, b = (Tensor(x) for x in arrays((3, 4), (4, 2)))
  out = Tensor.empty(3, 2).custom_kernel(a, b, fxn=product, grad_fxn=product_gradient)[0]
  got = (out.square() + out).sum().gradient(a, b)
  want = ((a @ b).square() + a @ b).sum().gradient(a, b)
  for x, y in zip(got, want): same(x, y.numpy(), rtol=1e-4, atol=1e-5)
  a.requires_grad = True
  Tensor.empty(3, 2).custom_kernel(a, b, fxn=product, grad_fxn=product_gradient)[0].sum().backward()
  same(a.grad, np.broadcast_to(b.numpy().sum(1), (3, 4)))

def test_gradient_that_is_missing_or_wrong():
  x = Tensor([1.0, 2.0])
  out = Tensor.empty(2).custom_kernel(x, fxn=double)[0]
  with pytest.raises(GradientError, match="grad_fxn"): out.sum().gradient(x)
  for wrong in (None, (None,), (None, 5), (None, Tensor([1.0]))):
    out = Tensor.empty(2).custom_kernel(x, fxn=double, grad_fxn=lambda g, kernel, wrong=wrong: wrong)[0]
    with pytest.raises(GradientError, match="grad_fxn"): out.sum().gradient(x)

@pytest.mark.slow
def test_replayed(engine):
  if engine == "interpreter": pytest.skip("replays run kernels")
  f = TinyJit(lambda x: Tensor.empty(3).custom_kernel(x + 1, fxn=double)[0])
  kept = []
  for seed in range(5):
    x = arrays((3,), seed=seed)[0]
    kept.append((f(Tensor(x).realize()), (x + 1) * 2))
  for got, want in kept: same(got, want)      # each call has a result of its own

def test_of_no_elements():
  assert Tensor.empty(0, 3).custom_kernel(Tensor.empty(0, 3), Tensor.empty(0, 3), fxn=add)[0].shape == (0, 3)

def ranged(store, *ranges):
  def make(out: UOp, x: UOp) -> UOp:
    i = UOp.range(out.size, 0)
    return store(out, x, i)
  return make

@pytest.mark.parametrize("fxn, text", [
  (None, "function"), (lambda out, x: None, "SINK"), (lambda out, x: UOp.sink(x), "stores something"),
  (ranged(lambda out, x, i: out[i].store(x[i]).sink()), "not ended"),
  (ranged(lambda out, x, i: out[i + 1].store(x[i]).end(i).sink()), "breaks a rule"),
  (ranged(lambda out, x, i: out[i].store(x[i].cast(dtypes.int32)).end(i).sink()), "breaks a rule")])
def test_kernels_that_are_refused(fxn, text):
  with pytest.raises(ArgumentError, match=text): Tensor.empty(3).custom_kernel(Tensor([1.0, 2, 3]), fxn=fxn)

def test_operands_that_are_refused():
  x = Tensor([[1.0, 2], [3, 4]]).realize()
  with pytest.raises(ArgumentError, match="part"): x[0].custom_kernel(x[1], fxn=double)
  with pytest.raises(ArgumentError, match="shares"): x.custom_kernel(x, fxn=double)
  with pytest.raises(ArgumentError, match="Tensor"): x.custom_kernel(5, fxn=double)
  with pytest.raises(DeviceError, match="one device"): x.custom_kernel(Tensor([1.0]).to("NULL"), fxn=double)

def test_schedule_linear():
  x = Tensor([1.0, 2.0]).realize()
  assert x.schedule_linear() == []
  y = (x * 2).contiguous().sum()
  kernels = Tensor.schedule_linear(y, x.exp().contiguous().max())
  assert len(kernels) == 3 and all(k.sink.op is Ops.SINK for k in kernels)
  assert y.uop.realized is None
