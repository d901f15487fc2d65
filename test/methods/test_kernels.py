"""Kernels of users, and the kernels that realize would run."""
import numpy as np
import pytest

from test.helpers import arrays, same
from tinyhw import Tensor, TinyJit, UOp, Variable, dtypes
from tinyhw.errors import (ArgumentError, DeviceError, DTypeError, FunctionError, GradientError, IndexingError,
                           ShapeError)
from tinyhw.nn import optim
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

# ***** operations by name, placeholders and calls, limits of sizes, marks of parameters *****

def test_operations_by_name() -> None:
  x, y = Tensor([[1.0], [-2.0]]), Tensor([4.0, 0.5])
  assert x.alu(Ops.NEG).tolist() == [[-1.0], [2.0]]
  assert x.alu(Ops.ADD, y).tolist() == (x + y).tolist()
  assert x.alu(Ops.CMPLT, y).dtype is dtypes.bool and x.alu(Ops.CMPLT, y).tolist() == (x < y).tolist()
  assert (x < y).alu(Ops.WHERE, x, y).tolist() == (x < y).where(x, y).tolist()
  w = Tensor([3.0], requires_grad=True)
  w.alu(Ops.MUL, w).sum().backward()
  assert w.grad.tolist() == [6.0]

def test_operations_are_checked() -> None:
  with pytest.raises(ArgumentError, match="it takes 2"): Tensor([1.0]).alu(Ops.ADD)
  with pytest.raises(ArgumentError, match="not an elementwise"): Tensor([1.0]).alu(Ops.RESHAPE)
  with pytest.raises(DTypeError, match="cast them to one type"): Tensor([1.0]).alu(Ops.ADD, Tensor([1]))

def test_constants() -> None:
  assert Tensor.const(2).dtype is dtypes.int32 and Tensor.const(2, "half").dtype is dtypes.float16
  assert Tensor.const(True, shape=(1, 2)).tolist() == [[True, True]]
  assert not Tensor.const(0.0, shape=(3,)).schedule_linear() or Tensor.const(0.0).item() == 0.0
  with pytest.raises(DTypeError): Tensor.const(300, "uint8")
  assert Tensor.invalids(2, dtype="int8").dtype is dtypes.int8

def test_calls_of_an_expression() -> None:
  a, b = Tensor([[1.0, 2.0]]), Tensor([[3.0, 4.0]])
  plus = a.as_param(0) * 2 + b.as_param(1)
  assert Tensor.call(a, b, fxn=plus).tolist() == [[5.0, 8.0]]
  assert Tensor.call(b, a, fxn=plus.uop).tolist() == [[7.0, 10.0]]
  w = Tensor([[1.0, 1.0]], requires_grad=True)
  Tensor.call(w, b, fxn=plus).sum().backward()
  assert w.grad.tolist() == [[2.0, 2.0]]
  own = Tensor.call(w, b, fxn=plus, grad_fxn=lambda g, call: (g * 5, None)).sum()
  assert own.gradient(w)[0].tolist() == [[5.0, 5.0]]

def test_calls_are_checked() -> None:
  a = Tensor([1.0, 2.0])
  with pytest.raises(FunctionError, match="slot 1"): Tensor.call(a, fxn=a.as_param(1))
  with pytest.raises(FunctionError, match="argument 0"): Tensor.call(Tensor([1.0]), fxn=a.as_param(0))
  with pytest.raises(ArgumentError, match="fxn="): Tensor.call(a, fxn=3)  # type: ignore[arg-type]
  with pytest.raises(ShapeError, match="numbers"): Tensor.ones(4)[:Variable("n", 1, 4).bind(2)].as_param(0)

def test_limits_of_symbolic_sizes() -> None:
  n = Variable("n", 1, 10).bind(4)
  x = Tensor.ones(10, 2).contiguous().realize()[:n]
  assert x.max_shape == (10, 2) and x.max_numel() == 20
  kernels, values = (x + 1).contiguous().linear_with_vars()
  assert len(kernels) == 1 and values == {"n": 4}

def test_marks_of_parameters() -> None:
  x, y = Tensor([1.0]).is_param_(), Tensor([2.0]).is_param_(False)
  assert x.is_param and x.requires_grad is True and not y.is_param and not Tensor([1]).is_param
  (x * y).sum().backward()
  assert x.grad.tolist() == [2.0] and y.grad is None
  optim.SGD([x], lr=1.0)

def test_elements_are_not_deleted() -> None:
  x = Tensor([1.0, 2.0])
  with pytest.raises(IndexingError, match="cannot be deleted"): del x[0]
  assert x.callify().tolist() == [1.0, 2.0]
