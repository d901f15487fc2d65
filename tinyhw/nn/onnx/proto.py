"""ONNX files as Python's dicts: the protobuf wire format, and a table of the messages in a model.

A message is a sequence of (field number and wire type, value). Fields that the table does not name are skipped, as in
protobuf. Every length is checked before it is used. Messages nest at most `_DEEPEST` levels. Groups (which ONNX does
not have) are refused. Everything made from the file is charged to a budget. Nothing is interpreted here: `data.py`
makes tensors of TensorProtos.

Source: protobuf documentation, "Encoding"; onnx.proto of ONNX 1.18.
"""
from __future__ import annotations
from array import array
from collections.abc import Callable
from typing import Any

from tinyhw.errors import FileFormatError
from tinyhw.files.budget import SLOT, Budget
from tinyhw.named_tuple import NamedTuple

_DEEPEST = 100  # levels of messages, protobuf's own limit

class FieldDescriptor(NamedTuple):
  """A row of a message: its name, its kind (one of `_SCALARS`, "string", "bytes" or a message), and whether it may
  occur many times."""
  name: str
  kind: str
  repeated: bool

def _message(text: str) -> dict[int, FieldDescriptor]:
  """Return {number: Field} from lines of "number name kind", where kind* is repeated."""
  rows = [line.split() for line in text.strip().splitlines()]
  return {int(number): FieldDescriptor(name, kind.rstrip("*"), kind.endswith("*")) for number, name, kind in rows}

MESSAGES: dict[str, dict[int, FieldDescriptor]] = {name: _message(text) for name, text in {
  "Model": """1 ir_version int
              2 producer_name string
              3 producer_version string
              4 domain string
              5 model_version int
              6 doc_string string
              7 graph Graph
              8 opset_import OperatorSetId*
              14 metadata_props StringStringEntry*
              25 functions Function*""",
  "OperatorSetId": """1 domain string
                      2 version int""",
  "StringStringEntry": """1 key string
                          2 value string""",
  "Graph": """1 node Node*
              2 name string
              5 initializer Tensor*
              10 doc_string string
              11 input ValueInfo*
              12 output ValueInfo*
              13 value_info ValueInfo*
              15 sparse_initializer SparseTensor*
              16 metadata_props StringStringEntry*""",
  "Node": """1 input string*
             2 output string*
             3 name string
             4 op_type string
             5 attribute Attribute*
             6 doc_string string
             7 domain string
             8 overload string
             9 metadata_props StringStringEntry*""",
  "Attribute": """1 name string
                  2 f float
                  3 i int
                  4 s bytes
                  5 t Tensor
                  6 g Graph
                  7 floats float*
                  8 ints int*
                  9 strings bytes*
                  10 tensors Tensor*
                  11 graphs Graph*
                  13 doc_string string
                  14 tp Type
                  15 type_protos Type*
                  20 type int
                  21 ref_attr_name string
                  22 sparse_tensor SparseTensor
                  23 sparse_tensors SparseTensor*""",
  "Tensor": """1 dims int*
               2 data_type int
               4 float_data float*
               5 int32_data int*
               6 string_data bytes*
               7 int64_data int*
               8 name string
               9 raw_data bytes
               10 double_data double*
               11 uint64_data uint*
               12 doc_string string
               13 external_data StringStringEntry*
               14 data_location int""",
  "SparseTensor": """1 values Tensor
                     2 indices Tensor
                     3 dims int*""",
  "ValueInfo": """1 name string
                  2 type Type
                  3 doc_string string""",
  "Type": """1 tensor_type TensorType
             4 sequence_type ElementType
             5 map_type MapType
             6 denotation string
             8 sparse_tensor_type TensorType
             9 optional_type ElementType""",
  "TensorType": """1 elem_type int
                   2 shape TensorShape""",
  "ElementType": "1 elem_type Type",
  "MapType": """1 key_type int
                2 value_type Type""",
  "TensorShape": "1 dim Dimension*",
  "Dimension": """1 dim_value int
                  2 dim_param string
                  3 denotation string""",
  "Function": """1 name string
                 4 input string*
                 5 output string*
                 6 attribute string*
                 7 node Node*
                 8 doc_string string
                 9 opset_import OperatorSetId*
                 10 domain string
                 11 attribute_proto Attribute*
                 12 value_info ValueInfo*
                 13 overload string""",
}.items()}

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# kind: (wire type, the array's type code)
_SCALARS = {"int": (_VARINT, "q"), "uint": (_VARINT, "Q"), "float": (_FIXED32, "f"), "double": (_FIXED64, "d")}
_FIXED_BYTES = {_FIXED32: 4, _FIXED64: 8}
# Bytes, at most: of a message, of its first field (with the table for several), of another field, of a list or array,
# of a value of each kind.
_MESSAGE, _FIRST, _FIELD, _LIST, _VALUE = 96, 168, 40, 96, {"bytes": 224, "string": 64}
_NUMBER = 40
_CONTINUED = bytes(range(128, 256))   # bytes of a varint that are not its last

class Message(dict[str, Any]):
  """The fields of a message that are present, by name.

  A repeated field that does not occur is empty, and costs nothing.
  """
  __slots__ = ("kind",)
  def __init__(self, kind: str):
    super().__init__()
    self.kind = kind

  def __missing__(self, name: str) -> Any:
    field = next((f for f in MESSAGES[self.kind].values() if f.name == name and f.repeated), None)
    if field is None: raise KeyError(name)
    return array(_SCALARS[field.kind][1]) if field.kind in _SCALARS else []

  def get(self, name: str, default: Any = None) -> Any:
    try: return self[name]
    except KeyError: return default

  def many(self, field: FieldDescriptor) -> Any:
    """Return the values of a repeated field, so that values can be appended."""
    if field.name not in self: self[field.name] = self[field.name]
    return self[field.name]

class _Reader:
  """A cursor over the bytes of a file."""
  def __init__(self, data: memoryview, name: str, budget: Budget):
    self.data, self.name, self.budget = data, name, budget

  def bad(self, at: int, why: str) -> FileFormatError:
    return FileFormatError(f"{self.name} is no whole ONNX file: {why} at byte {at}")

  def varint(self, at: int, end: int) -> tuple[int, int]:
    """Return (a number of up to 64 bits, 7 in each byte with the lowest first; the offset after it)."""
    value = shift = 0
    data = self.data
    for i in range(at, min(end, at + 10)):
      byte = data[i]
      value |= (byte & 127) << shift
      if byte < 128:
        if value >> 64: raise self.bad(at, "a number has more than 64 bits")
        return value, i + 1
      shift += 7
    raise self.bad(at, "a number is cut off" if end < at + 10 else "a number has more than ten bytes")

  def length(self, at: int, end: int) -> tuple[int, int]:
    """Return (the first byte, the byte after the last) of a value that is preceded by its length."""
    size, at = self.varint(at, end)
    if size > end - at: raise self.bad(at, f"a value of {size} bytes is longer than the {end - at} that are left")
    return at, at + size

  def message(self, kind: str, at: int, end: int, depth: int = 0) -> Message:
    """Return the present fields of a message, by name. Repeated ones are lists (numbers: arrays)."""
    if depth > _DEEPEST: raise self.bad(at, f"messages nest more than {_DEEPEST} levels")
    fields = MESSAGES[kind]
    found = Message(kind)
    self.budget.take(_MESSAGE + (_FIRST if at < end else 0))
    while at < end:
      start = at
      key, at = self.varint(at, end)
      number, wire = key >> 3, key & 7
      if not number: raise self.bad(start, "a field has the number 0")
      field = fields.get(number)
      if field is None: at = self.skip(wire, at, end)
      elif field.repeated and field.kind in _SCALARS and wire == _BYTES:
        at, after = self.length(at, end)
        self.budget.take(0 if field.name in found else _FIELD + _LIST)
        at = self.packed(found.many(field), field.kind, at, after)
      else:
        if field.name not in found: self.budget.take(_FIELD + _LIST if field.repeated else _FIELD)
        elif field.repeated: self.budget.take(SLOT // 2)
        value, at = self.value(field, wire, at, end, depth)
        if field.repeated: found.many(field).append(value)
        else: found[field.name] = value
    return found

  def skip(self, wire: int, at: int, end: int) -> int:
    """Return the offset after a field that the table does not name."""
    if wire == _VARINT: return self.varint(at, end)[1]
    if wire == _BYTES: return self.length(at, end)[1]
    if wire not in _FIXED_BYTES: raise self.bad(at, f"a field has wire type {wire}, which ONNX does not use")
    if end - at < _FIXED_BYTES[wire]: raise self.bad(at, "a number is cut off")
    return at + _FIXED_BYTES[wire]

  def value(self, field: FieldDescriptor, wire: int, at: int, end: int, depth: int) -> tuple[Any, int]:
    """Return (one value of a field, the offset after it)."""
    wanted = _SCALARS[field.kind][0] if field.kind in _SCALARS else _BYTES
    if wire != wanted: raise self.bad(at, f"the field {field.name} has wire type {wire} instead of {wanted}")
    self.budget.take(_VALUE.get(field.kind, _NUMBER))
    if wire in _FIXED_BYTES:
      after = self.skip(wire, at, end)
      return array(_SCALARS[field.kind][1], bytes(self.data[at:after]))[0], after
    if wire == _VARINT:
      number, after = self.varint(at, end)
      return (_signed(number) if field.kind == "int" else number), after
    at, after = self.length(at, end)
    if field.kind == "bytes": return self.data[at:after], after
    if field.kind == "string":
      self.budget.take(after - at if bytes(self.data[at:after]).isascii() else 4 * (after - at))
      try: return str(self.data[at:after], "utf-8"), after
      except UnicodeDecodeError: raise self.bad(at, f"the text of {field.name} is no UTF-8") from None
    return self.message(field.kind, at, after, depth + 1), after

  def packed(self, numbers: array[Any], kind: str, at: int, end: int) -> int:
    """Append the packed numbers, which have no keys, between two offsets."""
    wire, code = _SCALARS[kind]
    if wire in _FIXED_BYTES:
      if (end - at) % _FIXED_BYTES[wire]: raise self.bad(at, f"{end - at} bytes are no whole number of values")
      self.budget.take(2 * (end - at))
      numbers.frombytes(self.data[at:end])
      return end
    with self.budget.borrowed():
      self.budget.take(2 * (end - at))
      count = len(bytes(self.data[at:end]).translate(None, _CONTINUED))
    self.budget.take(10 * count)   # as an array grows
    convert: Callable[[int], int] = _signed if kind == "int" else int
    while at < end:
      number, at = self.varint(at, end)
      numbers.append(convert(number))
    return end

def _signed(number: int) -> int: return number - (1 << 64) if number >> 63 else number

def parse(data: bytes | memoryview, name: str = "the data", message: str = "Model",
          budget: Budget | None = None) -> Message:
  """Return the fields of a message. name: of the file, for errors. Raises FileFormatError if the data is no such
  message."""
  view = memoryview(data).cast("B") if len(data) else memoryview(b"")
  return _Reader(view, name, budget or Budget(name, len(view))).message(message, 0, len(view))
