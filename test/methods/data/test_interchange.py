"""Memory shared with NumPy and PyTorch, both ways; buffers, copies, pickles, and the printed text."""
import copy
import gc
import math
import pickle
import sys
from typing import Any

import numpy as np
import pytest

from tinyhw import Device, Tensor, TinyJit, dtypes, nn
from tinyhw.errors import ArgumentError, DeviceError, InterchangeError
from tinyhw.methods.data import dlpack

shares = pytest.mark.host_memory("a GPU's own memory is none that NumPy or PyTorch could look at")
takes = pytest.mark.foreign_memory("the device has no memory of the program in place")

NUMPY_TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
               "float64")

# ***** giving *****

@shares
@pytest.mark.parametrize("kind", NUMPY_TYPES)
def test_numpy_shares_every_type(kind):
  x = Tensor([[0, 1], [1, 1]], dtype=kind).realize()
  a = np.from_dlpack(x)
  assert a.dtype == kind and a.tolist() == x.tolist() and x.__dlpack_device__() == (1, 0)
  a[0, 0] = 1
  assert x.tolist() == [[1, 1], [1, 1]]

@shares
def test_values_are_computed_and_the_graph_stays():
  x = Tensor([1.0, 2.0])
  y = x * x
  assert np.from_dlpack(y).tolist() == [1.0, 4.0]
  y.sum().backward()
  assert x.grad.tolist() == [2.0, 4.0]

@pytest.mark.slow
@shares
def test_views_of_storage_are_shared_with_strides():
  x = Tensor.arange(24).reshape(2, 3, 4).contiguous().realize()
  def turned(t: Any) -> Any: return t.transpose(0, 2) if isinstance(t, Tensor) else t.swapaxes(0, 2)
  for view in (turned, lambda t: t[:, 1:, 2:4], lambda t: t[1], lambda t: t[1, 2, 3]):
    shared, want = np.from_dlpack(view(x)), view(np.arange(24).reshape(2, 3, 4))
    assert shared.tolist() == want.tolist() and shared.shape == want.shape
    shared[...] = 99
    assert (view(x).numpy() == 99).all()
    x.assign(Tensor.arange(24).reshape(2, 3, 4)).realize()
  flipped = np.from_dlpack(x.flip(0))     # no strides describe it: a copy
  assert flipped[0, 0, 0] == 12 and np.from_dlpack(x[:, :0]).shape == (2, 0, 4)
  with pytest.raises(InterchangeError, match="no strides"): x.flip(0).__dlpack__(copy=False)

@shares
def test_an_expanded_constant_and_an_asked_for_copy():
  assert np.from_dlpack(Tensor.ones(2, 2)).tolist() == [[1.0, 1.0], [1.0, 1.0]]
  x = Tensor([1.0, 2.0])
  a = np.from_dlpack(x, copy=True)
  a[0] = 5
  assert x.tolist() == [1.0, 2.0]

@shares
@pytest.mark.parametrize("flag", [np.bool_, np.array])
def test_copy_is_a_flag_of_numpy(flag):
  x = Tensor([1.0, 2.0]).realize()
  for yes in (True, False):
    a = np.from_dlpack(Tensor.from_dlpack(x.__dlpack__(copy=flag(yes))))
    a[0] = 5
    assert (x.tolist() == [1.0, 2.0]) is yes
  with pytest.raises(ArgumentError, match="copy is True or False"): x.__dlpack__(copy=np.array([True, False]))

@pytest.mark.slow
@shares
def test_the_memory_outlives_the_tensor():
  x = Tensor([1.0, 2.0]) + 1
  a = np.from_dlpack(x)
  del x
  gc.collect()
  others = [Tensor.full((2,), float(i)).contiguous().realize() for i in range(8)]
  assert a.tolist() == [2.0, 3.0] and len(others) == 8

@pytest.mark.slow
@shares
def test_nothing_is_kept_when_the_takers_are_gone():
  x = Tensor([1.0, 2.0])
  before = len(dlpack._given)
  a, unused, old = np.from_dlpack(x), x.__dlpack__(max_version=(1, 0)), x.__dlpack__()
  assert len(dlpack._given) == before + 3
  del a, unused, old
  gc.collect()
  assert len(dlpack._given) == before

def test_what_the_host_cannot_share_is_refused():
  x = Tensor([1.0])
  with pytest.raises(InterchangeError, match="streams"): x.__dlpack__(stream=1)
  with pytest.raises(InterchangeError, match="device"): x.__dlpack__(dl_device=(2, 0))
  with pytest.raises(BufferError): x.__dlpack__(dl_device=(2, 0))

# ***** taking *****

@takes
@pytest.mark.parametrize("kind", NUMPY_TYPES)
def test_numpy_is_shared(kind):
  a = np.array([[0, 1, 1], [1, 0, 0]]).astype(kind)
  x = Tensor.from_dlpack(a)
  assert x.dtype.name == kind or kind in str(x.dtype)
  a[0, 0] = 1
  assert x.tolist() == a.tolist()
  x.assign(x.bitwise_not() if kind == "bool" else x + x).realize()
  Device[x.device].synchronize()   # NumPy sees memory, even while it is written
  assert a.tolist() == x.tolist() and a[0, 1] == (0 if kind == "bool" else 2)

@takes
def test_what_was_computed_from_shared_memory_is_computed_again_when_asked():
  a = np.arange(4, dtype=np.float32)
  for t in (Tensor.from_dlpack(a), Tensor.from_blob(a.ctypes.data, (4,), "float32")):
    a[:] = 1
    scale = Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    total, kept, waiting = (t * scale).sum(), (t + 1).realize(), t.reshape(2, 2).sum(0)
    copy, far = t.clone(), (t * 2).sum() + 1
    assert total.item() == 10 and far.item() == 9 and copy.tolist() == [1] * 4
    a[:] = 3
    assert t.tolist() == [3] * 4 and total.item() == 10 and (t * scale).sum().item() == 10  # nobody called invalidate()
    assert t[1:].invalidate().tolist() == [3] * 3
    assert total.item() == 30 and (t * scale).sum().item() == 30 and far.item() == 25 and waiting.tolist() == [6, 6]
    assert kept.tolist() == [2] * 4 and copy.tolist() == [3] * 4   # storage stays, an expression is computed again
    total.backward()
    assert scale.grad.tolist() == [3] * 4

@takes
@pytest.mark.parametrize("other", [
  lambda a, t: Tensor.from_dlpack(a), lambda a, t: Tensor.from_dlpack(a[2:]),
  pytest.param(lambda a, t: Tensor.from_dlpack(t), marks=shares),
  lambda a, t: Tensor.from_blob(a.ctypes.data, (4,), "float32"),
  lambda a, t: Tensor.from_blob(a.ctypes.data + 8, (2,), "float32")])
def test_who_else_computes_from_the_memory_is_told(other):
  a = np.arange(4, dtype=np.float32)
  t = Tensor.from_dlpack(a)
  u, far = other(a, t), Tensor.from_dlpack(a[:2])
  x, y, z = t.sum(), u.sum(), far.sum()
  for told in (t, u, u[1:]):
    before = x.item(), y.item(), z.item()
    a += 1
    assert (x.item(), y.item(), z.item()) == before
    told.invalidate()
    reaches = u.numel() == 4 or told is t     # the last two elements are not among the first two
    assert (x.item(), y.item()) == (a.sum(), a[-u.numel():].sum()) and z.item() == (a[:2].sum() if reaches
                                                                                    else before[2])

@shares
def test_who_else_computes_from_the_memory_of_a_tensor_is_told():
  t = Tensor([1.0, 2.0]).contiguous().realize()
  a, x, y = np.from_dlpack(t), t.sum(), Tensor.from_dlpack(t)
  before = x.item()
  a[:] = 7
  assert before == x.item() == 3
  y.invalidate()
  assert x.item() == 14

def test_who_else_computes_from_a_file_is_told(tmp_path):
  file = tmp_path / "f"
  file.write_bytes(bytes(8))
  x, y = Tensor(file), Tensor(file, dtype="int32")
  values = x.to("CPU") + 1, y.to("CPU") + 1
  assert [v.tolist() for v in values] == [[1] * 8, [1] * 2]
  with open(file, "r+b") as opened: opened.write(bytes([1, 0, 0, 0, 2]))
  x.invalidate()
  assert [v.tolist() for v in values] == [[2, 1, 1, 1, 3, 1, 1, 1], [2, 3]]

@takes
def test_replays_read_shared_memory_in_each_call():
  a = np.ones(3, dtype=np.float32)
  t, step = Tensor.from_dlpack(a), TinyJit(lambda x: (x * 2).realize())
  for k in range(4):
    a[:] = k
    assert step(t.invalidate()).tolist() == [2 * k] * 3

def test_only_storage_is_invalidated():
  with pytest.raises(ArgumentError, match="has no storage that others could have written"):
    (Tensor([1.0]) + 1).invalidate()

@takes
def test_permuted_arrays_are_shared():
  a = np.arange(24.0).reshape(2, 3, 4)
  for view in (a.T, a.transpose(1, 0, 2), a.transpose(2, 0, 1)[:, :, None], a[1], a[1, 2, 3:]):
    x = Tensor.from_dlpack(view)
    view[...] += 1
    assert x.tolist() == view.tolist() and x.shape == view.shape

@takes
def test_memory_at_any_address_is_taken():
  """Kernels of some devices read vectors at multiples of their size: they get a copy."""
  a = np.arange(4097, dtype=np.float32)
  for view in (a[1:], a[2:], a[:4096], a[4096:]):
    x = Tensor.from_dlpack(view)
    assert (x * 2).numpy().tolist() == (view * 2).tolist() and x.sum().item() == view.sum()
  try: x = Tensor.from_dlpack(a[1:], copy=False)
  except InterchangeError as error:
    assert "where kernels of" in error.message
    with pytest.raises(DeviceError, match="kernels want a multiple of 16 bytes; copy the data with Tensor"):
      Tensor.from_blob(a[1:].ctypes.data, (4096,), "float32")
  else:
    a[1] = 7
    assert x[0].item() == 7

def test_other_strides_and_read_only_memory_are_copied():
  a = np.arange(24.0).reshape(2, 3, 4)
  for view in (a[:, 1:], a[..., ::2], a[::-1], np.broadcast_to(a, (3, 2, 3, 4)), a[:, :, 1]):
    assert Tensor.from_dlpack(view).tolist() == view.tolist()
    with pytest.raises(InterchangeError, match="copied"): Tensor.from_dlpack(view, copy=False)
  a.flags.writeable = False
  x = Tensor.from_dlpack(a)
  x.assign(x + 1).realize()
  assert a[0, 0, 0] == 0.0
  with pytest.raises(InterchangeError, match="read-only"): Tensor.from_dlpack(a, copy=False)

@takes
def test_scalars_and_empty_arrays_are_taken():
  assert Tensor.from_dlpack(np.array(3.0)).item() == 3.0 and Tensor.from_dlpack(np.zeros((2, 0))).shape == (2, 0)
  a = np.zeros(2)
  x = Tensor.from_dlpack(a, copy=True)
  a[0] = 1
  assert x.tolist() == [0.0, 0.0]

@takes
@pytest.mark.slow
def test_the_array_lives_as_long_as_the_tensor():
  class Array(np.ndarray): pass
  a = np.arange(3.0).view(Array)
  gone: list[int] = []
  import weakref
  weakref.finalize(a, gone.append, 1)
  x = Tensor.from_dlpack(a)
  del a
  gc.collect()
  assert not gone and x.tolist() == [0.0, 1.0, 2.0]
  view = x[1:]
  del x
  gc.collect()
  assert not gone and view.tolist() == [1.0, 2.0]
  del view
  gc.collect()
  assert gone

@shares
def test_what_cannot_be_taken_is_refused():
  with pytest.raises(ArgumentError, match="Tensor\\(x\\) copies"): Tensor.from_dlpack([1, 2])
  capsule = Tensor([1.0]).__dlpack__()
  assert Tensor.from_dlpack(capsule).tolist() == [1.0]
  with pytest.raises(InterchangeError, match="taken already"): Tensor.from_dlpack(capsule)
  with pytest.raises(InterchangeError, match="no dtype"): Tensor.from_dlpack(np.zeros(1, np.complex64))
  class Odd:
    def __dlpack__(self, **_: Any) -> int: return 3
  with pytest.raises(InterchangeError, match="int, which is no DLPack capsule"): Tensor.from_dlpack(Odd())

@shares
def test_there_and_back_is_the_same_memory():
  x = Tensor([1.0, 2.0]).realize()
  y = Tensor.from_dlpack(x)
  array = np.from_dlpack(y)
  assert array.ctypes.data == np.from_dlpack(x).ctypes.data
  if not array.flags.writeable: return   # NumPy 2.2 lets nobody write to what it took
  array[0] = 7
  assert x.tolist() == [7.0, 2.0]

@shares
def test_pytorch_shares_both_ways():
  torch = pytest.importorskip("torch")
  x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
  t = torch.from_dlpack(x.T)
  t += 1
  assert x.tolist() == [[2.0, 3.0], [4.0, 5.0]]
  for kind in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "int64", "bool"):
    t = torch.tensor([0, 1, 1]).to(getattr(torch, kind))
    y = Tensor.from_dlpack(t)
    assert y.float().tolist() == [0.0, 1.0, 1.0] and torch.from_dlpack(y).dtype == t.dtype
  with pytest.raises(InterchangeError, match="does not share"): Tensor.from_dlpack(torch.zeros(1, requires_grad=True))

# ***** NumPy and Python *****

@shares
def test_asarray_is_a_read_only_view():
  x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
  a = np.asarray(x)
  assert a.dtype == np.float32 and a.tolist() == x.tolist() and not a.flags.writeable and np.array(x).flags.writeable
  np.from_dlpack(x)[0, 0] = 9
  assert a[0, 0] == 9 and np.asarray(x, dtype=np.float64).dtype == np.float64
  assert np.asarray(Tensor([1.0], dtype="bfloat16")).dtype == np.float32 and np.asarray(Tensor(3)).tolist() == 3
  assert np.asarray(Tensor.empty(2, 0)).shape == (2, 0) and (np.asarray(x + x) == x.numpy() * 2).all()
  assert not hasattr(Tensor([1.0], dtype="bfloat16"), "__array_interface__")

@pytest.mark.parametrize("kind", NUMPY_TYPES)
def test_the_array_interface_names_types(kind): assert np.asarray(Tensor([1], dtype=kind)).dtype == kind

def test_buffers():
  x = Tensor([[1, 2], [3, 4]])
  view = x.__buffer__(0)
  assert view.readonly and view.shape == (2, 2) and view.tolist() == x.tolist()
  if sys.version_info >= (3, 12):
    assert memoryview(x).tolist() == [[1, 2], [3, 4]] and bytes(Tensor([1, 2], dtype="uint8")) == b"\1\2"
  with pytest.raises(InterchangeError, match="tolist"): Tensor([1.0], dtype="bfloat16").__buffer__(0)

@pytest.mark.slow
@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2), np.uint8(2)],
                         ids=lambda x: type(x).__name__)
def test_numbers_of_numpy_are_weak_as_those_of_python(number):
  """`x / np.sqrt(n)` keeps float32, in either order, as in tinygrad and PyTorch."""
  for kind in ("float16", "float32", "int8", "bool"):
    x = Tensor([1, 3, 4], dtype=kind)
    for f in (lambda a, b: a * b, lambda a, b: a - b, lambda a, b: a / b, lambda a, b: a < b, lambda a, b: a == b):
      for got, want in ((f(x, number), f(x, number.item())), (f(number, x), f(number.item(), x))):
        assert type(got) is Tensor and got.dtype is want.dtype and got.tolist() == want.tolist()
  x = Tensor([1.0, 4.0])
  assert (x ** number).dtype is x.maximum(number).dtype is (x > 2).where(x, number).dtype is dtypes.float32
  assert (x ** number).tolist() == [1.0, 16.0] and (number ** x).tolist() == [2.0, 16.0]
  assert (Tensor([1], dtype="int8") < np.int64(300)).tolist() == [True]

def test_numpy_arrays_and_tensors_in_one_expression():
  x = Tensor([1.0, 2.0])
  assert (x + np.array([1.0, 2.0], np.float32)).tolist() == [2.0, 4.0] and np.add(x,
                                                                                  np.float32(1)).tolist() == [2.0, 3.0]

# ***** copies *****

def test_copies():
  x = Tensor([1.0, 2.0], requires_grad=True)
  (x * x).sum().backward()
  same, other = copy.copy(x), copy.deepcopy(x)
  x.assign(x.detach() + 1).realize()
  assert (same.tolist() == [2.0, 3.0] and other.tolist() == [1.0, 2.0] and other.requires_grad
          and other.grad.tolist() == [2.0, 4.0])
  assert other.grad is not x.grad and same.grad is x.grad

def test_deep_copies_of_a_model_keep_what_is_shared_in_it():
  layer = nn.Linear(2, 2)
  model = {"first": layer, "second": layer, "list": [layer.weight]}
  copied = copy.deepcopy(model)
  assert copied["first"] is copied["second"] and copied["list"][0] is copied["first"].weight is not layer.weight
  before = layer.weight.tolist()
  copied["first"].weight.assign(Tensor.zeros(2, 2)).realize()
  assert layer.weight.tolist() == before

@pytest.mark.parametrize("kind", [*NUMPY_TYPES, "bfloat16", "fp8e4m3", "fp8e5m2"])
def test_pickles_of_tensors(kind):
  x = Tensor([[0, 1, 1]], dtype=kind, requires_grad=False)
  for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.dtype is x.dtype and y.tolist() == x.tolist() and y.requires_grad is False and y.device == x.device

def test_large_tensors_leave_a_pickle_without_a_copy():
  x = Tensor.arange(1 << 12).realize()
  for what in (x, x.uop.base.buffer):
    outside: list[pickle.PickleBuffer] = []
    data = pickle.dumps([what, what], 5, buffer_callback=outside.append)
    assert len(data) < 512 and [b.raw().nbytes for b in outside] == [4 << 12]
    if Device.DEFAULT in ("CPU", "PYTHON", "CLANG"):   # the host sees their memory
      assert np.frombuffer(outside[0], "int32").ctypes.data == np.asarray(x).ctypes.data
    first, second = pickle.loads(data, buffers=outside)
    assert (first is second and bytes(memoryview(first.data() if what is x else first.as_memoryview()))
            == bytes(x.data()))
    with pytest.raises(pickle.UnpicklingError): pickle.loads(data)

@pytest.mark.slow
def test_what_left_a_pickle_keeps_the_memory_of_a_tensor_that_is_gone():
  outside: list[pickle.PickleBuffer] = []
  data = pickle.dumps(Tensor.arange(1 << 12).realize(), 5, buffer_callback=outside.append)
  others = [Tensor.full((1 << 12,), k).contiguous().realize() for k in range(8)]
  assert pickle.loads(data, buffers=outside).tolist() == list(range(1 << 12)) and len(others) == 8

@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_tensors_that_share_memory_do_so_after_a_pickle(protocol):
  """Tensors over all of the memory still share it, even in other shapes. A part, or another order, becomes a tensor of
  its own, as when it is pickled alone."""
  x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
  again, flat, row, turned, alone = pickle.loads(pickle.dumps((x, x.reshape(4), x[0], x.T, x.clone()), protocol))
  assert [t.tolist() for t in (again, flat, row, turned, alone)] == [[[1, 2], [3, 4]], [1, 2, 3, 4], [1, 2],
                                                                     [[1, 3], [2, 4]], [[1, 2], [3, 4]]]
  before = flat * 10
  again[0, 0] = 5
  flat.assign(flat + 1)
  assert again.tolist() == [[6, 3], [4, 5]] and flat.tolist() == [6, 3, 4, 5] and before.tolist() == [10, 20, 30, 40]
  assert row.tolist() == [1, 2] and turned.tolist() == [[1, 3],
                                                        [2, 4]] and alone.tolist() == x.tolist() == [[1, 2], [3, 4]]

@pytest.mark.parametrize("copied", (lambda pair: pickle.loads(pickle.dumps(pair)), copy.deepcopy))
def test_views_of_what_is_only_expressed_are_not_shared_by_a_copy(copied):
  """copy.deepcopy does not share views of storage either. A pickle shares a view that is taken after realize()."""
  x = Tensor([1.0, 2.0]) * 2
  base, view = copied((x, x.reshape(2, 1)))
  base += 1
  assert base.tolist() == [3, 5] and view.tolist() == [[2], [4]] and x.tolist() == [2, 4]
  x.realize()
  base, view = copied((x, x.reshape(2, 1)))
  base += 1
  assert view.tolist() == ([[2], [4]] if copied is copy.deepcopy else [[3], [5]]) and x.tolist() == [2, 4]

def test_values_that_are_equal_are_not_shared_by_a_pickle():
  x = Tensor([1.0, 2.0])
  first, second = x + 1, x + 1
  a, b = pickle.loads(pickle.dumps((first, second)))
  a.assign(a * 10).realize()
  assert a.tolist() == [20, 30] and b.tolist() == second.tolist() == [2, 3]

def test_a_write_that_waits_is_in_a_pickle():
  x = Tensor([1.0, 2.0]).realize()
  x.assign(x + 1)
  assert pickle.loads(pickle.dumps(x)).tolist() == [2, 3]

@pytest.mark.slow
def test_pickles_of_models_and_optimizers():
  class Model:
    def __init__(self) -> None: self.l = nn.Linear(2, 1)
    def __call__(self, x: Tensor) -> Tensor: return self.l(x)
  def step(model: Any, opt: Any) -> float:
    with Tensor.train():
      opt.zero_grad()
      loss = model(Tensor([[1.0, 2.0]])).square().mean().backward()
      opt.step()
    return float(loss.item())
  globals()["Model"] = Model
  Model.__qualname__ = "Model"
  model = Model()
  opt = nn.optim.Adam(nn.state.get_parameters(model), lr=0.1)
  step(model, opt)
  other, other_opt = pickle.loads(pickle.dumps((model, opt)))
  for _ in range(3): assert math.isclose(step(model, opt), step(other, other_opt), rel_tol=1e-6)
  del globals()["Model"]

# ***** printing *****

def test_printing_says_what_is_known():
  x = Tensor([[1.0, 2.5], [3.0, 4.0]]).realize()
  device = Device.DEFAULT
  assert repr(x) == f"<Tensor (2, 2) float32 on {device}, realized:\n [[1.0, 2.5],\n  [3.0, 4.0]]>"
  assert repr(x + 1) == f"<Tensor (2, 2) float32 on {device}, not realized: ADD>"
  assert repr(Tensor(5)) == f"<Tensor () int32 on {device}, constant 5>"
  assert repr(Tensor([True])) == f"<Tensor (1,) bool on {device}, realized: [True]>"
  assert (repr(x[1].flip(0)) == f"<Tensor (2,) float32 on {device}, realized: [4.0, 3.0]>"
          and repr(Tensor.empty(0)).endswith("realized>"))
  assert repr(Tensor([math.nan, math.inf, 1e-9, 123456.0])).endswith("[nan, inf, 1e-09, 1.2346e+05]>")
  x.grad = Tensor.ones(2, 2)
  assert repr(x).startswith(f"<Tensor (2, 2) float32 on {device}, grad (2, 2), realized:")
  x.assign(x + 1)
  assert "not realized: ASSIGN" in repr(x) or "realized:" in repr(x)

def test_printing_many_values_shows_the_ends():
  x = Tensor.arange(4000).reshape(2, 2000).realize()
  text = repr(x)
  assert "[   0,    1,    2, …, 1997, 1998, 1999]" in text and len(text) < 300 and text.count("\n") == 2

def test_printing_computes_nothing():
  x = Tensor([1.0, 2.0]) + 1
  repr(x)
  assert x.uop.realized is None
