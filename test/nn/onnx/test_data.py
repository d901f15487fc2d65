"""TensorProtos of every type, with elements in every location, and errors."""
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import field, tensor, varint
from tinyhw import dtypes
from tinyhw.dtype import DType
from tinyhw.errors import ArgumentError, FileFormatError
from tinyhw.nn.onnx.data import dtype_of, to_dense, to_tensor
from tinyhw.nn.onnx.proto import parse
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.uop.enums import Ops

def proto(kind: int, shape: tuple[int, ...], *fields: bytes) -> dict[str, Any]:
  return parse(b"".join(field(1, d) for d in shape) + field(2, kind) + field(8, "t") + b"".join(fields),
               message="Tensor")

@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16",
                                  "uint32", "uint64", "bool"])
def test_raw_data_of_numpys_types(name: str) -> None:
  array = (np.arange(6).reshape(2, 3) % 5 - (2 if name[0] not in "ub" else 0)).astype(name)
  found = to_tensor(parse(tensor(array), message="Tensor"))
  assert found is not None and found.shape == (2, 3)
  np.testing.assert_array_equal(found.numpy(), array)
  assert found.numpy().dtype == array.dtype

# type, the field's bytes, the elements
TYPED = [
  (1, field(4, struct.pack("<2f", 1.5, -2.0)), dtypes.float32, [1.5, -2.0]),
  (11, field(10, struct.pack("<2d", 1.5, -2.0)), dtypes.float64, [1.5, -2.0]),
  (3, field(5, varint(-3) + varint(4)), dtypes.int8, [-3, 4]),
  (2, field(5, varint(200) + varint(4)), dtypes.uint8, [200, 4]),
  (5, field(5, varint(-300) + varint(4)), dtypes.int16, [-300, 4]),
  (6, field(5, varint(-70000) + varint(4)), dtypes.int32, [-70000, 4]),
  (7, field(7, varint(-1 << 40) + varint(4)), dtypes.int64, [-1 << 40, 4]),
  (12, field(11, varint(1 << 31) + varint(4)), dtypes.uint32, [1 << 31, 4]),
  (13, field(11, varint(1 << 63) + varint(4)), dtypes.uint64, [1 << 63, 4]),
  (9, field(5, varint(7) + varint(0)), dtypes.bool, [True, False]),
  (10, field(5, varint(0x3c00) + varint(0xc000)), dtypes.float16, [1.0, -2.0]),
  (16, field(5, varint(0x3f80) + varint(0xc000)), dtypes.bfloat16, [1, -2]),
  (17, field(5, varint(0x38) + varint(0xc0)), dtypes.fp8e4m3, [1.0, -2.0]),
  (19, field(5, varint(0x3c) + varint(0xc0)), dtypes.fp8e5m2, [1.0, -2.0]),
  (21, field(5, varint(0xf3)), dtypes.uint8, [3, 15]), (22, field(5, varint(0xf3)), dtypes.int8, [3, -1]),
  (23, field(5, varint(0x9f)), dtypes.fp8e4m3, [-6.0, -0.5]),
  (24, field(5, varint(0x80) + varint(0x7e)), dtypes.bfloat16, [2.0, 0.5]),
  (25, field(5, varint(0b1110)), dtypes.uint8, [2, 3]), (26, field(5, varint(0b1110)), dtypes.int8, [-2, -1]),
  (27, field(5, varint(0x3f) + varint(8)), dtypes.fp8e4m3, [-7.5, 1.0]),
  (28, field(9, b"\xdf\x08"), dtypes.fp8e4m3, [28.0, -0.1875]),
]

@pytest.mark.parametrize("kind, data, dtype, values", TYPED)
def test_typed_data(kind: int, data: bytes, dtype: DType, values: list[Any]) -> None:
  found = to_tensor(proto(kind, (2,), data))
  assert found is not None and found.dtype is dtype and found.tolist() == values

def test_four_bits_in_raw_data() -> None:
  found = to_tensor(proto(22, (3,), field(9, b"\x87\x01")))
  assert found is not None and found.tolist() == [7, -8, 1]

def test_packed_constants_stay_packed() -> None:
  """The tensor is an expression over the file's bytes."""
  found = to_tensor(proto(22, (64,), field(9, bytes(range(32)))))
  assert found is not None and found.dtype is dtypes.int8
  held = [u.size for u in found.uop.toposort() if u.op is Ops.BUFFER]
  assert held == [32]

def test_text() -> None:
  found = to_tensor(proto(8, (2, 1), field(6, "ä".encode()), field(6, b"")))
  assert isinstance(found, TextTensor) and found.tolist() == [["ä"], [""]]

def sparse(shape: tuple[int, ...], values: list[float], indices: Any) -> dict[str, Any]:
  data = (field(1, tensor(np.array(values, np.float32))) + field(2, tensor(np.array(indices)))
          + b"".join(field(3, d) for d in shape))
  return parse(data, message="SparseTensor")

def test_sparse_tensors_become_dense() -> None:
  for indices in ([1, 5], [[0, 1], [1, 2]]):
    found = to_dense(sparse((2, 3), [7.0, 8.0], indices))
    assert found is not None and found.tolist() == [[0, 7, 0], [0, 0, 8]]
  for bad, why in (([1], "2 values at indices"), ([1, 6], "outside of"), ([-1, 2], "outside of")):
    with pytest.raises(FileFormatError, match=why): to_dense(sparse((2, 3), [7.0, 8.0], bad))

def test_empty_and_scalar_tensors() -> None:
  empty, scalar = to_tensor(proto(1, (0, 3), field(9, b""))), to_tensor(proto(7, (), field(7, 5)))
  assert empty is not None and empty.shape == (0, 3) and scalar is not None and scalar.item() == 5

@pytest.mark.parametrize("kind, shape, data, why", [
  (1, (2,), field(9, bytes(7)), "should have 8 bytes, and has 7"), (1, (-1,), b"", "negative size"),
  (99, (1,), b"", "does not define"),
  (8, (2,), field(6, b"x"), "has 1 strings"), (14, (1,), b"", "complex64"),
  (6, (3,), field(5, varint(1)), "should have 3 numbers"),
  (1, (1 << 62, 4), field(9, b""), "should have"), (0, (1,), b"", "does not define"),
])
def test_damage_is_refused(kind: int, shape: tuple[int, ...], data: bytes, why: str) -> None:
  with pytest.raises(FileFormatError, match=why): to_tensor(proto(kind, shape, data))

def external(**entries: str) -> bytes:
  return field(14, 1) + b"".join(field(13, field(1, k) + field(2, v)) for k, v in entries.items())

def test_external_data_is_read_from_the_models_folder(tmp_path: Path) -> None:
  (tmp_path / "sub").mkdir()
  (tmp_path / "sub" / "w.bin").write_bytes(bytes(4) + struct.pack("<2f", 1.5, 2.5))
  data = proto(1, (2,), external(location="sub/w.bin", offset="4", length="8"))
  found = to_tensor(data, str(tmp_path))
  assert found is not None and found.tolist() == [1.5, 2.5]
  assert to_tensor(data, str(tmp_path), load_external=False) is None

@pytest.mark.parametrize("entries, why", [
  ({"location": "../w.bin"}, "not inside"), ({"location": "/etc/passwd"}, "not inside"),
  ({"location": ""}, "not inside"),
  ({"location": "a/../../w.bin"}, "not inside"), ({"location": "link"}, "not inside"),
  ({"location": "none"}, "cannot be read"),
  ({"location": "w.bin", "offset": "8"}, "which has 12"), ({"location": "w.bin", "offset": "-4"}, "stands at bytes"),
  ({"location": "w.bin", "offset": "x"}, "no number"), ({"location": "w.bin", "length": "4"}, "should have 8 bytes"),
  ({"location": "w\0"}, "not inside"),
  ({"location": "sub"}, "cannot be read|no file"), ({"location": "w" * 5000}, "cannot be read"),
])
def test_external_data_stays_inside(tmp_path: Path, entries: dict[str, str], why: str) -> None:
  inside = tmp_path / "model"
  (inside / "sub").mkdir(parents=True)
  (inside / "w.bin").write_bytes(bytes(12))
  (tmp_path / "w.bin").write_bytes(bytes(12))
  os.symlink(tmp_path / "w.bin", inside / "link")
  with pytest.raises(FileFormatError, match=why): to_tensor(proto(1, (2,), external(**entries)), str(inside))

def test_external_data_of_a_model_in_memory_is_refused() -> None:
  with pytest.raises(FileFormatError, match="given as bytes"): to_tensor(proto(1, (2,), external(location="w.bin")))

def test_types_by_number() -> None:
  assert dtype_of(16) is dtypes.bfloat16
  for number in (0, 8, 22, 99):
    with pytest.raises(ArgumentError, match="element type"): dtype_of(number)
