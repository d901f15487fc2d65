"""State dicts, and safetensors files: round trips, and damaged and hostile ones."""
import json

import numpy as np
import pytest

from tinyhw import nn
from tinyhw.errors import ArgumentError, FileFormatError, MissingFileError
from tinyhw.nn.state import get_parameters, get_state_dict, load_state_dict, safe_dtypes, safe_load, safe_load_metadata, safe_save
from tinyhw.tensor import Tensor

pytestmark = pytest.mark.usefixtures("engine")

class Model:
  def __init__(self) -> None:
    self.layers = [nn.Linear(2, 3), {"norm": nn.LayerNorm(3)}]
    self.scale, self.name, self.me = Tensor(2.0), "x", self

def test_names():
  model = Model()
  assert list(get_state_dict(model)) == ["layers.0.weight", "layers.0.bias", "layers.1.norm.weight", "layers.1.norm.bias", "scale"]
  assert list(get_state_dict(model.layers[0], "p")) == ["p.weight", "p.bias"] and len(get_parameters([model, (1, None)])) == 5

def test_only_tensors_are_saved(tmp_path):
  with pytest.raises(ArgumentError, match="'a': a safetensors file holds Tensors, not 5"): nn.state.safe_save({"a": 5}, tmp_path / "f")
  assert not (tmp_path / "f").exists()

def test_load_state_dict():
  a, b = Model(), Model()
  assert load_state_dict(a, get_state_dict(b), verbose=False) == get_parameters(a)
  assert a.layers[0].weight.tolist() == b.layers[0].weight.tolist() and a.layers[0].weight is not b.layers[0].weight
  a.layers[0].weight.assign(Tensor.zeros(3, 2)).realize()
  assert b.layers[0].weight.tolist() != a.layers[0].weight.tolist()
  with pytest.raises(ArgumentError, match="has no 'layers.0.weight' and 4 more"): load_state_dict(a, {}, verbose=False)
  assert load_state_dict(a, {"scale": Tensor([5.0])}, strict=False, verbose=False) == [a.scale] and a.scale.item() == 5.0
  with pytest.raises(ArgumentError, match="shape"): load_state_dict(a, {"scale": Tensor([5.0, 6.0])}, strict=False, verbose=False)
  state = get_state_dict(b)
  load_state_dict(a, state, verbose=False, consume=True)
  assert not state

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
  assert safe_load(Tensor(file.read_bytes()))["scalar"].item() == 3.5 and not [p for p in tmp_path.iterdir() if p != file]

def write(path, header, data=b"", length=None):
  text = header if isinstance(header, bytes) else json.dumps(header).encode()
  path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
  return path

def entry(dtype="F32", shape=(2,), offsets=(0, 8)): return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}

@pytest.mark.parametrize("header, data, length, text", [
  (entry(), bytes(4), None, "ends at byte 8 of its data, which has 4"), (entry(shape=(3,)), bytes(8), None, "cannot have 8 bytes"),
    (entry(offsets=(8, 0)), bytes(8), None, "cannot have -8"),
  (entry(shape=(-2,)), bytes(8), None, "natural"), (entry("F99"), bytes(8), None, "F99"),
  (entry(shape=(2 ** 62, 2 ** 62)), bytes(8), None, "cannot have"), (b"[]", b"", None, "does not begin with {"),
  (b"{", b"", None, "no JSON"), (b"{\xff", b"", None, "no JSON"), (entry(), bytes(8), 2 ** 63, "should have 9223372036854775808 bytes"),
  (b'{"a":' * 50000, b"", None, "no JSON"),
  ({"a": 5}, b"", None, "lacks dtype"), (entry(offsets=(0,)), bytes(8), None, "natural"), (entry(shape=(True,)), bytes(8), None, "natural"),
  (entry(offsets=(0, 8.0)), bytes(8), None, "natural"), (entry(["F32"]), bytes(8), None, "which is not known"),
  (entry(), bytes(9), None, "end at byte 8 of the data, which has 9"), (entry(offsets=(4, 12)), bytes(12), None, "begins at byte 4"),
  (entry() | {"b": entry()["a"]}, bytes(8), None, "'b' begins at byte 0 of the data, and what lies before it ends at 8"),
  (entry() | {"__metadata__": 5}, bytes(8), None, "not strings"), (entry() | {"__metadata__": {"a": 5}}, bytes(8), None, "not strings"),
  (json.dumps(entry()).encode()[:-1] + b"," + json.dumps(entry()).encode()[1:], bytes(8), None, "a name stands twice among a, a")])
def test_damaged_files(tmp_path, header, data, length, text):
  with pytest.raises(FileFormatError, match=text): safe_load(write(tmp_path / "f", header, data, length))

def test_truncated_and_missing_files(tmp_path):
  (tmp_path / "f").write_bytes(b"abc")
  with pytest.raises(FileFormatError, match="3 bytes"): safe_load(tmp_path / "f")
  with pytest.raises(MissingFileError, match="there is no file .*none"): safe_load(tmp_path / "none")
  with pytest.raises(ArgumentError, match="is a folder"): safe_load(tmp_path)
  with pytest.raises(MissingFileError, match="there is no folder .*none; make it first"): safe_save({"a": Tensor([1])}, tmp_path / "none" / "f")
  assert not (tmp_path / "none").exists()

def test_a_name_alone_is_a_file_here(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  safe_save({"a": Tensor([1, 2])}, "f")
  assert safe_load("f")["a"].tolist() == [1, 2]
