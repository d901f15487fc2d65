"""The wire format: every kind of field, packed and not, and errors."""
import struct

import pytest

from formats.onnx_writer import field, model, node, tensor, varint
from tinyhw.errors import FileFormatError
from tinyhw.nn.onnx.proto import parse

def test_a_model_is_read_field_by_field() -> None:
  data = model(field(1, node("Add", ["a", "b"], ["c"], axis=-1)) + field(2, "name"), opset=17)
  found = parse(data)
  assert found["ir_version"] == 8 and found["opset_import"][0] == {"domain": "", "version": 17}
  read = found["graph"]["node"][0]
  assert (read["op_type"], read["input"], read["output"]) == ("Add", ["a", "b"],
                                                              ["c"]) and read["attribute"][0]["i"] == -1

def test_repeated_numbers_are_packed_or_not_or_both() -> None:
  packed = field(1, b"".join(map(varint, (2, -3)))) + field(1, 7)
  assert list(parse(packed, message="Tensor")["dims"]) == [2, -3, 7]
  floats = field(4, struct.pack("<2f", 1.5, -2.0)) + field(4, 0.25)
  assert list(parse(floats, message="Tensor")["float_data"]) == [1.5, -2.0, 0.25]
  doubles = field(10, struct.pack("<2d", 1e300, -0.0)) + varint(10 << 3 | 1) + struct.pack("<d", 2.5)
  assert list(parse(doubles, message="Tensor")["double_data"]) == [1e300, -0.0, 2.5]
  assert list(parse(field(11, (1 << 64) - 1), message="Tensor")["uint64_data"]) == [(1 << 64) - 1]

def test_unknown_fields_of_every_wire_type_are_skipped() -> None:
  extra = field(90, 5) + field(91, b"abc") + field(92, 1.0) + varint(93 << 3 | 1) + bytes(8)
  assert parse(extra + field(8, "t") + extra, message="Tensor")["name"] == "t"

@pytest.mark.parametrize("data, why", [
  (b"\x08", "is cut off"), (b"\x08" + b"\xff" * 10 + b"\1", "more than ten bytes"),
  (b"\x08" + b"\xff" * 9 + b"\x7f", "more than 64 bits"),
  (b"\x00\x00", "number 0"), (varint(7 << 3 | 3), "wire type 3"), (varint(99 << 3 | 3), "wire type 3"),
  (varint(99 << 3 | 5) + b"\0\0", "is cut off"),
  (field(7, b"")[:-1] + b"\x7f", "longer than"), (varint(1 << 3 | 2) + b"\0", "wire type 2 instead of 0"),
  (field(2, b"\xff"), "no UTF-8"),
  (field(7, field(5, field(4, b"123"))), "whole number of values"),
])
def test_damage_is_refused(data: bytes, why: str) -> None:
  with pytest.raises(FileFormatError, match=why): parse(data, "model.onnx")

def test_messages_nest_so_deep_only() -> None:
  body = b""
  for _ in range(60): body = field(1, field(5, field(6, body)))
  with pytest.raises(FileFormatError, match="nest"): parse(field(7, body))

def test_raw_data_is_not_copied() -> None:
  data = field(9, tensor([1]))
  assert parse(data, message="Tensor")["raw_data"].obj is data
