"""tensor.py and methods/base.py: data in and out, devices, realize and assign, modes, backward."""
import array
import math
import pickle
import threading

import numpy as np
import pytest

from test.helpers import same
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, GradientError, ShapeError
from tinyhw.methods.base import is_storage
from tinyhw.tensor import Tensor, is_numpy_ndarray
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

pytestmark = pytest.mark.usefixtures("engine")

@pytest.mark.parametrize("data, shape, dtype", [
  (1, (), dtypes.int32), (1.5, (), dtypes.float32), (True, (), dtypes.bool), ([1, 2], (2,), dtypes.int32),
  ([[1, 2.5]], (1, 2), dtypes.float32),
    ([True], (1,), dtypes.bool),
  ([], (0,), dtypes.float32), ([[], []], (2, 0), dtypes.float32), ([1, True], (2,), dtypes.int32),
  (b"ab", (2,), dtypes.uint8),
  (None, (), dtypes.float32),
  (array.array("d", [1, 2]), (2,), dtypes.float64), (memoryview(bytes(8)).cast("i"), (2,), dtypes.int32),
  (np.zeros((2, 3), np.float16), (2, 3), dtypes.float16),
  (np.zeros((2, 3), np.int64).T, (3, 2), dtypes.int64), (np.array(3, np.int8), (), dtypes.int8),
  (np.zeros((0, 2)), (0, 2), dtypes.float64),
  (np.float32(2), (), dtypes.float32),
  (range(3), (3,), dtypes.int32), (np.array([True]), (1,), dtypes.bool), ([np.float32(1.5), 2], (2,), dtypes.float32)])
def test_from_data(data, shape, dtype):
  t = Tensor(data)
  assert t.shape == shape and t.dtype is dtype and t.numpy().shape == shape
  if isinstance(data, np.ndarray): same(t, data)

def test_from_data_with_a_type():
  assert Tensor([1, 2], dtype="float16").tolist() == [1.0, 2.0] and Tensor([1.9, -1.9],
                                                                           dtype=dtypes.int8).tolist() == [1, -1]
  assert Tensor(np.array([300, -1]), dtype=dtypes.uint8).tolist() == [44, 255]
  assert Tensor([0.1, 3.0], dtype=dtypes.bfloat16).tolist() == [0.10009765625, 3.0]
  assert Tensor(np.arange(3), dtype=dtypes.float32).tolist() == [0.0, 1.0, 2.0]
  assert Tensor([1.0, 500.0], dtype=dtypes.fp8e5m2).tolist() == [1.0, 512.0]
  assert (Tensor(array.array("i", [1, 2]), dtype=dtypes.float32).tolist() == [1.0, 2.0]
          and Tensor(bytes(8), dtype="float32").shape == (2,))
  assert Tensor(5, dtype=dtypes.float32).item() == 5.0 and Tensor(2.0, dtype="int32").dtype is dtypes.int32
  assert Tensor(None, dtype="int8").item() == 0 == Tensor().item() and Tensor(None, dtype=bool).item() is False

def test_from_tensors_nodes_and_files(tmp_path):
  x = Tensor([1.0, 2.0])
  assert Tensor(x).uop is x.uop and Tensor(x, dtype="int32").dtype is dtypes.int32
  same(Tensor([x, x]), np.array([[1, 2], [1, 2]], np.float32))
  assert (Tensor(UOp.variable("n", 0, 9).bind(4)).item() == 4
          and (Tensor([1.0]) + UOp.variable("n", 0, 9).bind(4)).item() == 5.0)
  (tmp_path / "f").write_bytes(b"\x01\x02")
  assert Tensor(tmp_path / "f").tolist() == [1, 2]
  assert is_numpy_ndarray(np.zeros(1)) and not is_numpy_ndarray([1])

@pytest.mark.parametrize("data, error, text", [
  ([[1, 2], [3]], ShapeError, "different lengths at depth 1"), ([1, [2]], ShapeError, "mix numbers and lists"),
  (["a"], DTypeError, "give numbers"),
    ("abc", ArgumentError, "cannot make a tensor of.*pathlib.Path"),
  (object(), ArgumentError, "cannot make a tensor of"), ([math.nan], None, ""), (1j, None, "")])
def test_refused_data(data, error, text):
  if error is None: Tensor(data)
  else:
    with pytest.raises(error, match=text): Tensor(data)

def test_more_refused_data():
  for wide in (1 << 31, [0, -1 << 40]):
    with pytest.raises(DTypeError, match="does not fit into dtypes.int32.*int64"): Tensor(wide)
    assert Tensor(wide, dtype="int64").tolist() == wide
  with pytest.raises(DTypeError, match="cannot make nan an element"): Tensor([math.nan], dtype="int32")
  with pytest.raises(DTypeError, match="cannot make -inf an element .* use a float type"):
    Tensor(-math.inf, dtype="int32")
  with pytest.raises(DTypeError, match="cannot make nan an element"): Tensor.full((2,), math.nan, dtype="uint8")
  with pytest.raises(ShapeError, match="no whole number"): Tensor(b"abc", dtype="float32")
  with pytest.raises(DTypeError): Tensor(np.array(["a"]))
  with pytest.raises(DTypeError, match="unknown dtype"): Tensor([1], dtype="int33")

def test_reading():
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  assert (x.data().tolist() == x.tolist() and x.data().shape == (2, 2) and x[0, 1].item() == 2.0
          and Tensor(3).data().tolist() == 3)
  assert (np.asarray(x).shape == (2, 2) and np.asarray(x, dtype=np.float64).dtype == np.float64
          and Tensor(np.zeros((2, 0))).tolist() == [[], []])
  assert Tensor([1.0], dtype="bfloat16").numpy().dtype == np.float32 and f"{x.sum():.1f}" == "10.0"
  with pytest.raises(DTypeError, match="tolist"): Tensor([1.0], dtype="bfloat16").data()
  with pytest.raises(ShapeError, match="one element"): x.item()

def test_python_protocols():
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  assert float(x[1, 0]) == 3.0 and int(x.sum()) == 10
  with pytest.raises(ShapeError, match="one element"): float(x)
  assert (len(x) == 2 and [row.tolist() for row in x] == x.tolist() and hash(x) == id(x) and {x: 1}[x] == 1
          and x.lazydata is x.uop)
  assert "float32" in repr(x) and "(2, 2)" in repr(x)
  for wrong in (lambda: bool(x), lambda: len(Tensor(1)), lambda: 1.0 in x): pytest.raises(TypeError, wrong)
  copy = pickle.loads(pickle.dumps(x + 1))
  assert copy.tolist() == [[2.0, 3.0], [4.0, 5.0]]

def test_reading_keeps_the_graph():
  x = Tensor([3.0])
  y = x * x
  assert y.item() == 9.0
  y.backward()
  assert x.grad.item() == 6.0

def test_realize():
  x = Tensor([1.0, 2.0]) + 1
  y = x * 2
  assert x.realize(y) is x and is_storage(x.uop) and is_storage(y.uop) and y.tolist() == [4.0, 6.0]
  view = x[1:]
  assert view.realize().uop is view.uop and Tensor.ones(2).realize().uop.base.op is Ops.BUFFER

def test_equal_tensors_get_storage_of_their_own():
  a, b = Tensor.zeros(3), Tensor.zeros(3)
  c, d = a.contiguous(), b.contiguous()
  assert c.uop is d.uop
  Tensor.realize(a, b, c, d)
  assert len({t.uop.base for t in (a, b, c, d)}) == 4
  a.assign(Tensor([1.0, 2.0, 3.0])).realize()
  assert b.tolist() == c.tolist() == [0.0] * 3

def test_assign():
  x = Tensor([1.0, 2.0])
  view, memory = x[1:], x.uop.base.storage
  assert x.assign(x * 3) is x and x.tolist() == [3.0, 6.0] and x.uop.base.storage is memory and view.item() == 6.0
  x.assign(5)
  x.assign(x + 1)
  assert x.realize().tolist() == [6.0, 6.0]
  y = x + 1
  assert y.assign([9.0, 9.0]).tolist() == [9.0, 9.0] and x.tolist() == [6.0, 6.0]
  x.shrink(((0, 1),)).assign(Tensor([7.0])).realize()
  assert x.tolist() == [7.0, 6.0]
  with pytest.raises(DTypeError, match="cannot assign"): x.assign(Tensor([1, 2]))
  with pytest.raises(ShapeError, match="cannot assign"): x.assign(Tensor([[1.0, 2.0]]))
  with pytest.raises(ShapeError, match="cannot replace"): x.replace(Tensor([1.0]))

def test_devices():
  x = Tensor([1.0], device="PYTHON", requires_grad=True)
  assert x.to("python").uop is x.uop and x.to("PYTHON:1").device == "PYTHON:1" and x.device == "PYTHON"
  x.to_("PYTHON:1")
  assert x.device == "PYTHON:1" and x.tolist() == [1.0]
  y = x.clone()
  assert y.realize().uop.base is not x.realize().uop.base

def test_constants_stay_on_the_device():
  x, n = (Tensor(v, device="PYTHON:1").realize() for v in ([1.0, 2.0, 3.0], [1, 2, 3]))
  y = x.sum()
  for t in (x ** 0, n ** 0, n ** 0.0, *y.gradient(y, x), *(x.detach().sum() + y * 0).gradient(x), x.zeros_like(),
            x.const_like(2)):
    assert t.device == t.uop.device == "PYTHON:1" and t.realize().device == "PYTHON:1"
  assert ((x ** 0) + n.argmax()).tolist() == [3.0] * 3

def test_training_mode():
  assert Tensor.training is False
  with Tensor.train():
    assert Tensor.training is True
    with Tensor.train(False): assert Tensor.training is False
  assert Tensor.training is False
  Tensor.training = True
  assert Tensor.training is True
  Tensor.training = False
  @Tensor.train()
  def f() -> bool: return Tensor.training
  assert f() is True and Tensor.training is False

def test_no_grad():
  x = Tensor([2.0], requires_grad=True)
  with Tensor.no_grad():
    y = x * 3
    x[0:1].assign(Tensor([2.0]))
  assert not Tensor.no_grad
  (y * x).backward()
  assert x.grad.item() == 6.0
  Tensor.no_grad = True
  assert Tensor.no_grad
  Tensor.no_grad = False

def test_no_grad_is_of_a_thread():
  x, found = Tensor([2.0], requires_grad=True), []
  def other() -> None: found.append((x * 3).sum().gradient(x)[0].item())
  with Tensor.no_grad():
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
  assert found == [3.0]

def test_backward_reaches_leaves():
  x, w, c = Tensor([1.0, 2.0]), Tensor.ones(2), Tensor([1.0, 1.0], requires_grad=False)
  h = x * w * c
  h.sum().backward()
  assert x.grad.tolist() == [1.0, 1.0] and w.grad.tolist() == [1.0, 2.0] and c.grad is None and h.grad is None
  (x * x).sum().backward()
  assert x.grad.tolist() == [3.0, 5.0]

def test_marked_tensors_are_the_only_ones():
  x, w = Tensor([1.0, 2.0]), Tensor([3.0, 4.0], requires_grad=True)
  h = (x * w).requires_grad_()
  h.sum().backward()
  assert (x.grad is None and w.grad.tolist() == [1.0, 2.0] and h.grad.tolist() == [1.0, 1.0] and w.requires_grad is True
          and x.requires_grad is None)

def test_backward_with_a_weight_and_refusals():
  x = Tensor([1.0, 2.0])
  (x * 2).backward(Tensor([1.0, 3.0]))
  assert x.grad.tolist() == [2.0, 6.0]
  with pytest.raises(GradientError, match="one number"): (x * 2).backward()
  y = Tensor([1], dtype="int32").cast("float32")
  with pytest.raises(GradientError, match="no tensor that wants"): y.sum().backward()

def test_the_walk_through():
  """2+3 as a graph whose sources are constants; unrealized, then realized."""
  y = Tensor([2]) + Tensor([3])
  assert y.uop.op is Ops.ADD and not is_storage(y.uop)
  assert y.realize().item() == 5 and is_storage(y.uop)

def test_sums_of_tensors():
  assert Tensor.usum(Tensor(1), Tensor(2), Tensor(3)).item() == 6 and Tensor.uprod(Tensor(2), Tensor(3)).item() == 6

@pytest.mark.parametrize("url", [True, None, 3, b"https://x"])
def test_a_url_is_text(url):
  with pytest.raises(ArgumentError, match="a URL is text, not"): Tensor.from_url(url)
