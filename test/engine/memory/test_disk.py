"""Tensors in files, on every device: reads, refusals, and the order of writes."""
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, dtypes
from tinyhw.device import Device
from tinyhw.engine.memory.disk import resolve
from tinyhw.errors import DeviceError, DTypeError, FileFormatError, JitError, OutOfMemory, ShapeError

@pytest.fixture(autouse=True)
def device(engine: str) -> None:
  if engine == "interpreter": pytest.skip("it computes values, and knows no copies and no files")

@pytest.fixture
def numbers(tmp_path: pathlib.Path) -> tuple[Tensor, np.ndarray]:
  """Return a tensor of shape (2, 3, 4) in a file, and its contents."""
  array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
  (tmp_path / "numbers").write_bytes(array.tobytes())
  return Tensor(tmp_path / "numbers", dtype=dtypes.float32).reshape(2, 3, 4), array

VIEWS = {
  "all": (lambda t: t, 24), "row": (lambda t: t[1], 12), "rows": (lambda t: t[1, 1:3], 8),
  "element": (lambda t: t[1, 2, 3], 1),
  "columns": (lambda t: t[:, :, 1:3], 24), "rows and columns": (lambda t: t[1:, 1:, 1:3], 8),
  "transposed": (lambda t: t.transpose(0, 2), 24),
  "flipped": (lambda t: t[0].flip(1), 12), "steps": (lambda t: t[:, ::2], 24),
  "reshaped": (lambda t: t.reshape(6, 4)[2:5].reshape(-1)[3:7], 4),
  "expanded": (lambda t: t[0, 0].reshape(1, 4).expand(3, 4), 4), "padded": (lambda t: t[1, 1].pad((1, 2)), 4),
  "nothing": (lambda t: t[1:1], 0),
  "detached": (lambda t: t.detach()[1].contiguous(), 12), "through size 1": (lambda t: t[1:2, 2:3, 1:2], 1),
}

@pytest.mark.parametrize("name", VIEWS)
def test_views(numbers, name):
  f, wanted = VIEWS[name]
  t, array = numbers
  part, same = f(t), f(Tensor(array)).tolist()
  assert part.device == t.device and part.device.startswith("DISK:")
  assert resolve(part.uop).size == wanted, "no more is read than that"
  assert (part.tolist() == same and part.to(None).tolist() == same and (part.to(None) * 2).tolist()
          == (f(Tensor(array)) * 2).tolist())

def test_only_the_part_is_read(tmp_path):
  with open(tmp_path / "f", "wb") as file: file.truncate(1 << 40)
  t = Tensor(tmp_path / "f")
  assert (t.shape == (1 << 40,) and t[1 << 39:(1 << 39) + 2].tolist() == [0, 0]
          and t.reshape(1 << 20, -1)[5, :3].to(None).tolist() == [0, 0, 0])

def test_more_than_memory(tmp_path):
  with open(tmp_path / "f", "wb") as file: file.truncate(1 << 43)
  t = Tensor(tmp_path / "f")
  for x in (t, t.reshape(2, -1), t[3:]):
    assert repr(x) == f"<Tensor {x.shape} uint8 on {x.device}, in a file>", "nothing is read"
  with pytest.raises(OutOfMemory, match="no memory for a copy of 8.00 TB"): Tensor(tmp_path / "f").data()

def test_bytes_of_other_types(numbers):
  t, array = numbers
  assert t.bitcast("int32").tolist() == array.view(np.int32).tolist() and t.bitcast("uint8").shape == (2, 3, 16)
  assert t[1].bitcast("uint16").to(None).tolist() == array[1].view(np.uint16).tolist()
  assert t.bitcast("uint8")[0, 0, 4:8].bitcast("float32").item() == 1.0
  with pytest.raises(ShapeError, match="bytes of the last axis are no whole number of elements"):
    t.bitcast("uint8")[0, 0, :3].bitcast("float32")
  with pytest.raises(DeviceError, match="not in one piece"): t.transpose(0, 1).bitcast("int32")

def test_any_byte_but_zero_is_true(tmp_path):
  data = bytes([0, 1, 2, 0, 128, 255])
  (tmp_path / "f").write_bytes(data)
  wanted = [False, True, True, False, True, True]
  whole = Tensor(tmp_path / "f", dtype=dtypes.bool)
  for t in (whole, whole.to(None), Tensor(data, dtype=dtypes.bool), Tensor(memoryview(data).cast("?"))):
    moved = t.to(None)
    assert (t.tolist() == wanted and bytes(t.data()) == bytes(wanted) and moved.sum().item() == 4
            and (~moved).sum().item() == 2)
    assert moved.cast("int32").tolist() == wanted and (moved == True).tolist() == wanted   # noqa: E712
  assert whole.reshape(2, 3).T.tolist() == [[False, False], [True, True],
                                            [True, True]] and whole.reshape(2, 3)[:, 1:].to(None).sum().item() == 4

def test_sizes_must_fit(tmp_path):
  (tmp_path / "f").write_bytes(b"abcde")
  with pytest.raises(ShapeError, match="5 bytes, no whole number of dtypes.float"):
    Tensor(tmp_path / "f", dtype=dtypes.float32)
  (tmp_path / "f").write_bytes(b"")
  assert Tensor(tmp_path / "f").tolist() == [] and Tensor(tmp_path / "f").to(None).tolist() == []

def test_computing_is_refused(numbers):
  t, _ = numbers
  for f in (lambda: (t + 1).tolist(), lambda: (t + t).realize(), lambda: t.sum().item(),
            lambda: (t * 2).to(None).tolist(), lambda: t + Tensor([1.0]),
            lambda: t.cat(t).realize(), lambda: t.contiguous().realize(),
            lambda: t.zeros_like(device=t.device).realize(), lambda: t.exp().tolist()):
    with pytest.raises(DeviceError, match=r"DISK:.*numbers, which keeps a file and computes nothing; move the tensor "
                       r"first, with .to\(None\)"):
      f()

def test_nothing_but_assign_and_to_writes(numbers):
  t, array = numbers
  for f in (lambda: Tensor.full((24,), 1.0, device=t.device).realize(), lambda: t.rand_like(device=t.device).realize(),
            lambda: t + [[[1.0] * 4] * 3] * 2,
            lambda: Tensor.rand(24, device=t.device).realize(), lambda: t.assign(t.to(None) * 0),
            lambda: t.__setitem__(0, 1.0)):
    with pytest.raises(DeviceError): f().tolist()
  assert t.tolist() == array.tolist()

def test_values_like_it_are_not_on_disk(numbers):
  t, array = numbers
  for made in (t.clone(), t.copied(), pickle.loads(pickle.dumps(t)), t.to(None)):
    assert made.device == Device.DEFAULT and made.tolist() == array.tolist()
  assert t.zeros_like().device == t.empty_like().device == Device.DEFAULT

def test_writing(tmp_path):
  path = tmp_path / "f"
  t = Tensor.empty(2, 3, device=f"DISK:{path}", dtype=dtypes.float32)
  assert not path.exists()
  t.assign(Tensor([[1.0, 2, 3], [4, 5, 6]]))
  assert np.fromfile(path, np.float32).tolist() == [1, 2, 3, 4, 5, 6] == t.reshape(6).tolist()
  t[1] = Tensor([7.0, 8, 9])
  t[0, 1:] = 0.0
  assert np.fromfile(path, np.float32).tolist() == [1, 0, 0, 7, 8, 9]
  t.bitcast("uint8")[0, :4].assign(Tensor([0, 0, 0, 64], dtype=dtypes.uint8))
  assert t[0, 0].item() == 2.0
  with pytest.raises(DeviceError, match="not in one piece; write whole rows"): t[:, 1].assign(Tensor([1.0, 2.0]))
  with pytest.raises(DTypeError, match="cast it first"): t.assign(Tensor([[1, 2, 3], [4, 5, 6]]))
  with pytest.raises(ShapeError, match="assign"): t.assign(Tensor([1.0, 2.0]))
  copy = (Tensor([1, 2, 3]) + 1).to(f"DISK:{tmp_path / 'g'}")
  assert copy.device == f"DISK:{tmp_path / 'g'}" and np.fromfile(tmp_path / "g",
                                                                 np.int32).tolist() == [2, 3, 4] == copy.tolist()
  assert Tensor([5, 6], device=f"disk:{tmp_path / 'h'}").tolist() == [5, 6] and (tmp_path / "h").stat().st_size == 8

def test_values_keep_what_was_there_when_they_were_expressed(tmp_path):
  t = Tensor.empty(4, device=f"DISK:{tmp_path / 'f'}", dtype=dtypes.int32).assign(Tensor([1, 2, 3, 4]))
  whole, part, bits = t.to(None) * 2, t[1:3].to(None) + 0, t.bitcast("uint8").to(None) + 0
  moved = t.to(None)
  t[1:3] = 9
  assert (t.tolist() == [1, 9, 9, 4] and whole.tolist() == [2, 4, 6, 8] and part.tolist() == [2, 3]
          and bits[4].item() == 2)
  assert moved.tolist() == [1, 2, 3, 4]

def test_a_file_that_became_shorter(numbers):
  t, _ = numbers
  moved = t.to(None)
  os.truncate(t.device.removeprefix("DISK:"), 10)
  with pytest.raises(FileFormatError, match="it became shorter"): moved.realize()
  with pytest.raises(FileFormatError, match="it became shorter"): t.tolist()

def test_jit(numbers):
  t, array = numbers
  @TinyJit
  def f(x): return (t[1].to(None) + x).realize()
  for i in range(4): assert f(Tensor.full((3, 4), float(i)).contiguous().realize()).tolist() == (array[1] + i).tolist()
  out = Tensor.empty(1, device=f"{t.device}.out")
  @TinyJit
  def g(x):
    out.assign(1.0)
    return x + 1
  with pytest.raises(JitError, match="a file is written while TinyJit captures"):
    for _ in range(3): g(Tensor([1.0]).realize())

def test_what_is_read_may_have_a_gradient(numbers):
  """As other data, computed or not."""
  t, array = numbers
  for move in (lambda: t.to(None), lambda: t.to(None).realize(), lambda: t.to(None).requires_grad_()):
    w = move()
    (w * w).sum().backward()
    assert w.grad.tolist() == (2 * array).tolist()
  assert t.grad is None

def test_several_devices(numbers):
  t, array = numbers
  pair = (Device.DEFAULT, f"{Device.DEFAULT.partition(':')[0]}:5")
  for moved in (t.shard(pair, axis=0), t.to(pair), t[:, 1].shard(pair)): assert (moved + 0).device == pair
  assert (t.shard(pair, axis=2) * 2).tolist() == (array * 2).tolist()
  with pytest.raises(DeviceError): t.to(("CPU", t.device)).realize()

MEMORY = """
import resource, sys
from tinyhw import Tensor
from tinyhw.device import Device
Device.default
size = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), size + (64 << 20)))
import pathlib
t = Tensor(pathlib.Path(sys.argv[1]), dtype="float32")
print(t.shape[0], t[1 << 28:(1 << 28) + 1024].to(None).sum().item())
"""

@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc")
def test_a_file_larger_than_memory(tmp_path, engine):
  if engine != "PYTHON": pytest.skip("it is the host that reads; once is enough, and a process of its own")
  with open(tmp_path / "f", "wb") as file: file.truncate(2 << 30)
  done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path / "f")],
                        env={**os.environ, "PYTHONPATH": os.getcwd(), "DEV": "PYTHON"},
                        capture_output=True, text=True, timeout=60)
  assert done.stdout == f"{1 << 29} 0.0\n", done.stderr
