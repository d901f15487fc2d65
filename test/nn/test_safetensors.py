"""Safetensors files: round trips, the reference implementation, damaged and hostile ones."""
import json
import os
import subprocess
import sys

from formats.mutations import fuzz, use
import numpy as np
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, FileFormatError, MissingFileError
from tinyhw.nn.safetensors import safe_dtypes, safe_load, safe_load_metadata, safe_save
from tinyhw.nn.state import load_state_dict
from tinyhw.tensor import Tensor

@pytest.fixture(autouse=True)
def device(engine): pass

def test_only_tensors_are_saved(tmp_path):
  with pytest.raises(ArgumentError, match="'a': a safetensors file holds Tensors, not 5"):
    safe_save({"a": 5}, tmp_path / "f")
  for tensors, text in (([1], "wants a dict of Tensors by name"),
                        ({5: Tensor(1)}, "5: a name in a safetensors file is a string"),
                        ({"__metadata__": Tensor(1)}, "no tensor can be named __metadata__"),
                        ({"\udc80": Tensor(1)}, "half of a surrogate pair")):
    with pytest.raises(ArgumentError, match=text): safe_save(tensors, tmp_path / "f")
  with pytest.raises(ArgumentError, match="metadata are strings by name"): safe_save({}, tmp_path / "f", metadata=[1])
  with pytest.raises(ArgumentError, match="it is a folder; give the path of a safetensors file"):
    safe_save({}, tmp_path)
  assert not (tmp_path / "f").exists()

def test_round_trip(tmp_path):
  tensors = {name: Tensor([[0.0, 1.0, 2.0]], dtype=dtype) for name, dtype in safe_dtypes.items()}
  tensors |= {"empty": Tensor(np.zeros((0, 3), np.float32)), "scalar": Tensor(3.5), "lazy": Tensor([1, 2]) + 1}
  file = tmp_path / "f.safetensors"
  safe_save(tensors, file, {"format": "pt"})
  loaded = safe_load(file)
  assert list(loaded) == list(tensors)
  for name, t in tensors.items():
    assert (loaded[name].shape, loaded[name].dtype, loaded[name].tolist()) == (t.shape, t.dtype, t.tolist()), name
  _, start, header = safe_load_metadata(file)
  assert header["__metadata__"] == {"format": "pt"} and start % 8 == 0
  assert all(t.device == f"DISK:{file}" for t in loaded.values() if 0 not in t.shape)
  assert safe_load(Tensor(file.read_bytes()))["scalar"].item() == 3.5 and not [p for p in tmp_path.iterdir()
                                                                               if p != file]

def write(path, header, data=b"", length=None):
  text = header if isinstance(header, bytes) else json.dumps(header).encode()
  path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
  return path

def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
  return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}

@pytest.mark.parametrize("header, data, length, text", [
  (entry(), bytes(4), None, "ends at byte 8 of its data, which has 4"),
  (entry(shape=(3,)), bytes(8), None, "cannot have 8 bytes"),
    (entry(offsets=(8, 0)), bytes(8), None, "cannot have -8"),
  (entry(shape=(-2,)), bytes(8), None, "natural"), (entry("F99"), bytes(8), None, "F99"),
  (entry(shape=(2 ** 62, 2 ** 62)), bytes(8), None, "cannot have"), (b"[]", b"", None, "does not begin with {"),
  (b"{", b"", None, "no JSON"), (b"{\xff", b"", None, "no JSON"),
  (entry(), bytes(8), 2 ** 63, "should have 9223372036854775808 bytes"),
  (b'{"a":' * 50000, b"", None, "no JSON"),
  ({"a": 5}, b"", None, "lacks dtype"), (entry(offsets=(0,)), bytes(8), None, "natural"),
  (entry(shape=(True,)), bytes(8), None, "natural"),
  (entry(offsets=(0, 8.0)), bytes(8), None, "natural"), (entry(["F32"]), bytes(8), None, "which is not known"),
  (entry(), bytes(9), None, "end at byte 8 of the data, which has 9"),
  (entry(offsets=(4, 12)), bytes(12), None, "begins at byte 4"),
  (entry() | {"b": entry()["a"]}, bytes(8), None, "'b' begins at byte 0 of the data, and what lies before it ends at "
   "8"),
  (entry() | {"__metadata__": 5}, bytes(8), None, "not strings"),
  (entry() | {"__metadata__": {"a": 5}}, bytes(8), None, "not strings"),
  (json.dumps(entry()).encode()[:-1] + b"," + json.dumps(entry()).encode()[1:], bytes(8), None,
   "a name stands twice among a, a")])
def test_damaged_files(tmp_path, header, data, length, text):
  with pytest.raises(FileFormatError, match=text): safe_load(write(tmp_path / "f", header, data, length))

def test_truncated_and_missing_files(tmp_path):
  (tmp_path / "f").write_bytes(b"abc")
  with pytest.raises(FileFormatError, match="3 bytes"): safe_load(tmp_path / "f")
  with pytest.raises(MissingFileError, match="there is no file .*none"): safe_load(tmp_path / "none")
  with pytest.raises(ArgumentError, match="is a folder"): safe_load(tmp_path)
  with pytest.raises(ArgumentError, match="wants a path or a Tensor of bytes, not 5"): safe_load(5)
  with pytest.raises(ArgumentError, match="wants a vector of uint8, not dtypes.int32 of shape"):
    safe_load(Tensor([[1]]))
  with pytest.raises(MissingFileError, match="there is no folder .*none; make it first"):
    safe_save({"a": Tensor([1])}, tmp_path / "none" / "f")
  assert not (tmp_path / "none").exists()

def test_a_name_alone_is_a_file_here(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  safe_save({"a": Tensor([1, 2])}, "f")
  assert safe_load("f")["a"].tolist() == [1, 2]

# ***** with the reference implementation *****

def test_the_reference_reads_ours(tmp_path):
  safetensors = pytest.importorskip("safetensors")
  numpy_of = pytest.importorskip("safetensors.numpy")
  tensors = {"bools": Tensor([True, False, True]), "doubles": Tensor([1.5, 2.5], dtype=dtypes.float64),
             "halves": Tensor([[1.0], [2.0]], dtype=dtypes.half)}
  safe_save(tensors, tmp_path / "f", {"format": "pt", "note": "ü"})
  loaded = numpy_of.load_file(tmp_path / "f")
  assert {name: array.tolist() for name, array in loaded.items()} == {name: t.tolist() for name, t in tensors.items()}
  with safetensors.safe_open(tmp_path / "f", "numpy") as file: assert file.metadata() == {"format": "pt", "note": "ü"}
  _, start, header = safe_load_metadata(tmp_path / "f")
  assert all((start + header[name]["data_offsets"][0]) % t.dtype.itemsize == 0
             for name, t in tensors.items()), "elements are aligned"

def test_ours_reads_the_reference(tmp_path):
  numpy_of = pytest.importorskip("safetensors.numpy")
  arrays = {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "b": np.array(2.5), "c": np.zeros((0, 4), np.uint64),
            "d": np.array([1, 2], np.uint32)}
  numpy_of.save_file(arrays, tmp_path / "f", {"k": "v"})
  loaded = safe_load(tmp_path / "f")
  for name, array in arrays.items(): assert (loaded[name].shape, loaded[name].tolist()) == (array.shape, array.tolist())
  numpy_of.save_file({"c": np.array([1j], np.complex64)}, tmp_path / "g")
  with pytest.raises(FileFormatError, match="'c' has dtype C64, which tinyhw does not have"): safe_load(tmp_path / "g")

def test_every_type_is_exact_both_ways(tmp_path):
  torch = pytest.importorskip("torch")
  torch_of = pytest.importorskip("safetensors.torch")
  kinds = {torch_of._TYPES[name]: dtype for name, dtype in safe_dtypes.items()}
  tensors = {str(kind): torch.arange(256).to(torch.uint8).view(kind) if kind != torch.bool
             else torch.tensor([True, False]) for kind in kinds}
  torch_of.save_file(tensors, tmp_path / "f")
  loaded = safe_load(tmp_path / "f")
  for kind, dtype in kinds.items():
    assert loaded[str(kind)].dtype is dtype
    assert bytes(loaded[str(kind)]._read()[0]) == bytes(tensors[str(kind)].view(torch.uint8).numpy())
  safe_save(loaded, tmp_path / "g")
  for name, again in torch_of.load_file(tmp_path / "g").items():
    assert torch.equal(again.view(torch.uint8), tensors[name].view(torch.uint8))

def test_tinygrad_and_ours_read_each_other(tmp_path):
  tinygrad = pytest.importorskip("tinygrad")
  theirs = pytest.importorskip("tinygrad.nn.state")
  safe_save({"a": Tensor([[1.0, 2.0]]), "b": Tensor([1, 2, 3], dtype=dtypes.int8), "c": Tensor(5)}, tmp_path / "f",
            {"k": "v"})
  found = theirs.safe_load(str(tmp_path / "f"))
  assert {name: t.tolist() for name, t in found.items()} == {"a": [[1.0, 2.0]], "b": [1, 2, 3], "c": 5}
  theirs.safe_save({"x": tinygrad.Tensor([[1.5], [2.5]]), "y": tinygrad.Tensor([7], dtype="uint16")},
                   str(tmp_path / "g"))
  assert {name: t.tolist() for name, t in safe_load(tmp_path / "g").items()} == {"x": [[1.5], [2.5]], "y": [7]}

# ***** laziness *****

class Model:
  def __init__(self): self.weight = Tensor.zeros(4, 4).contiguous().realize()

def test_files_stay_on_disk_until_they_are_loaded(tmp_path):
  safe_save({"weight": Tensor.arange(16).reshape(4, 4).float(), "other": Tensor.ones(3)}, tmp_path / "f")
  model, state = Model(), safe_load(tmp_path / "f")
  load_state_dict(model, state, verbose=False)
  assert model.weight.tolist() == np.arange(16.0).reshape(4, 4).tolist() and not model.weight.device.startswith("DISK")
  safe_save({"weight": state["weight"]}, tmp_path / "f")       # overwrites the file from which it is read
  assert (safe_load(tmp_path / "f")["weight"].tolist() == model.weight.tolist() == state["weight"].tolist()
          and state["other"].tolist() == [1, 1, 1])

LARGE = """
import resource, sys
from tinyhw import Tensor
from tinyhw.device import Device
from tinyhw.nn.state import safe_load
Device.default
size = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), size + (64 << 20)))
state = safe_load(sys.argv[1])
print(state["large"].shape, state["large"][-1, :4].to(None).tolist(), state["small"].item())
"""

@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc")
def test_a_file_larger_than_memory(tmp_path, engine):
  if engine != "PYTHON": pytest.skip("once is enough, and a process of its own")
  size = 2 << 30
  header = {"large": {"dtype": "BF16", "shape": [1 << 15, 1 << 15], "data_offsets": [0, size]},
            "small": {"dtype": "F32", "shape": [], "data_offsets": [size, size + 4]}}
  write(tmp_path / "f", header)
  with open(tmp_path / "f", "r+b") as file: file.truncate(os.path.getsize(tmp_path / "f") + size + 4)
  done = subprocess.run([sys.executable, "-c", LARGE, str(tmp_path / "f")],
                        env={**os.environ, "PYTHONPATH": os.getcwd(), "DEV": "PYTHON"},
                        capture_output=True, text=True, timeout=60)
  assert done.stdout == "(32768, 32768) [0.0, 0.0, 0.0, 0.0] 0.0\n", done.stderr

def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
  safe_save({"a": Tensor([1])}, tmp_path / "f")
  def refuse(*_): raise KeyboardInterrupt
  monkeypatch.setattr(os, "replace", refuse)
  with pytest.raises(KeyboardInterrupt): safe_save({"a": Tensor([2])}, tmp_path / "f")
  assert safe_load(tmp_path / "f")["a"].tolist() == [1] and os.listdir(tmp_path) == ["f"]

# ***** fuzzing *****

def test_mutated_files(tmp_path, engine):
  if engine != "PYTHON": pytest.skip("reading is the same for all devices")
  safe_save({"weights": Tensor([[1.0, 2.0], [3.0, 4.0]]), "b": Tensor([1, 2, 3], dtype=dtypes.uint8)}, tmp_path / "one",
            {"format": "pt"})
  safe_save({name: Tensor([1, 0], dtype=dtype) for name, dtype in safe_dtypes.items()}, tmp_path / "two")
  def read(data):
    (tmp_path / "f").write_bytes(data)
    use(safe_load(tmp_path / "f"))
  fuzz(read, {name: (tmp_path / name).read_bytes() for name in ("one", "two")})
