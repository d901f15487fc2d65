"""Writes ONNX models from the format's description, without the onnx package.

The numbers of fields are written here once more on purpose.
"""
from __future__ import annotations
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyhw import Tensor
from tinyhw.nn.onnx import OnnxRunner

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
         "float64": 11, "uint32": 12,
         "uint64": 13}
TEXT = 8

def type_of(array: Any) -> int: return TEXT if array.dtype.kind == "U" else TYPES[array.dtype.name]

def varint(value: int) -> bytes:
  value &= (1 << 64) - 1
  out = bytearray()
  while value > 127:
    out.append(value & 127 | 128)
    value >>= 7
  return bytes([*out, value])

def field(number: int, value: Any) -> bytes:
  """One field: an int as a varint, a float as 4 bytes, text and bytes with their length."""
  if isinstance(value, int): return varint(number << 3) + varint(value)
  if isinstance(value, float): return varint(number << 3 | 5) + struct.pack("<f", value)
  raw = value.encode() if isinstance(value, str) else value
  return varint(number << 3 | 2) + varint(len(raw)) + raw

def tensor(array: Any, name: str = "") -> bytes:
  """A TensorProto with raw_data, or of strings."""
  array = np.asarray(array)
  data = (b"".join(field(6, str(text)) for text in array.flatten()) if type_of(array) == TEXT
          else field(9, array.tobytes()))
  return b"".join(field(1, int(d)) for d in array.shape) + field(2, type_of(array)) + field(8, name) + data

def attribute(name: str, value: Any) -> bytes:
  """An AttributeProto: int, float, str, lists of them, a NumPy array (a tensor), bytes (a GraphProto)."""
  head = field(1, name)
  if isinstance(value, bool): value = int(value)
  if isinstance(value, int): return head + field(3, value) + field(20, 2)
  if isinstance(value, float): return head + field(2, value) + field(20, 1)
  if isinstance(value, str): return head + field(4, value) + field(20, 3)
  if isinstance(value, (np.ndarray, np.generic)): return head + field(5, tensor(value)) + field(20, 4)
  if isinstance(value, bytes): return head + field(6, value) + field(20, 5)
  number, kind = {int: (8, 7), float: (7, 6), str: (9, 8)}[type(value[0]) if value else int]
  return head + b"".join(field(number, v) for v in value) + field(20, kind)

def node(op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any) -> bytes:
  """A NodeProto."""
  names = b"".join(field(1, x) for x in inputs) + b"".join(field(2, x) for x in outputs)
  return names + field(4, op) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()) + field(7, domain)

def value_info(name: str, dtype: Any = None, shape: Sequence[int | str] | None = None) -> bytes:
  """A ValueInfoProto of a tensor; dtype: a NumPy name or a number of TensorProto.DataType; None says nothing."""
  if dtype is None: return field(1, name)
  kind = field(1, dtype if isinstance(dtype, int) else TYPES[np.dtype(dtype).name])
  if shape is not None:
    kind += field(2, b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in shape))
  return field(1, name) + field(2, field(1, kind))

def graph(nodes: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[str],
          constants: Mapping[str, Any] | None = None,
          name: str = "g") -> bytes:
  """A GraphProto."""
  parts = [field(1, n) for n in nodes] + [field(2, name)]
  parts += [field(5, v if isinstance(v, bytes) else tensor(v, k)) for k, v in (constants or {}).items()]
  return b"".join(parts + [field(11, i) for i in inputs] + [field(12, value_info(o)) for o in outputs])

def model(body: bytes, opset: int = 22, domains: Mapping[str, int] | None = None,
          functions: Sequence[bytes] = ()) -> bytes:
  """A ModelProto."""
  imports = {"": opset, "com.microsoft": 1, "ai.onnx.ml": 1, **(domains or {})}
  sets = b"".join(field(8, field(1, d) + field(2, v)) for d, v in imports.items())
  return field(1, 8) + field(7, body) + sets + b"".join(field(25, f) for f in functions)

def function(domain: str, name: str, inputs: Sequence[str], outputs: Sequence[str], nodes: Sequence[bytes],
             opset: int = 22) -> bytes:
  """A FunctionProto."""
  names = field(1, name) + b"".join(field(4, x) for x in inputs) + b"".join(field(5, x) for x in outputs)
  return names + b"".join(field(7, n) for n in nodes) + field(9, field(1, "") + field(2, opset)) + field(10, domain)

def single(op: str, inputs: Mapping[str, Any], outputs: int = 1, opset: int = 22, domain: str = "",
           constants: Sequence[str] = (), domains: Mapping[str, int] | None = None, **attributes: Any) -> bytes:
  """A model of one node. inputs: arrays by name (None for one left out); those in `constants` are initializers."""
  names = [k if v is not None else "" for k, v in inputs.items()]
  results = [f"y{i}" for i in range(outputs)]
  given = [value_info(k, type_of(v), v.shape) for k, v in inputs.items() if v is not None and k not in constants]
  return model(graph([node(op, names, results, domain, **attributes)], given, results,
                     {k: inputs[k] for k in constants}), opset, domains)

def run(op: str, *inputs: Any, outputs: int = 1, opset: int = 22, domain: str = "", known: Sequence[int] = (),
        domains: Mapping[str, int] | None = None, **attributes: Any) -> Any:
  """Return the results of OnnxRunner for a model of one node: an array, or a list of them. known: which inputs are
  constants of the model. domains: versions of the sets of operators, where another than 1 is wanted."""
  named = {f"x{i}": None if x is None else np.asarray(x) for i, x in enumerate(inputs)}
  runner = OnnxRunner(single(op, named, outputs, opset, domain, [f"x{i}" for i in known], domains,
                             **attributes))
  given = {k: v if v.dtype.kind == "U" else Tensor(np.ascontiguousarray(v).reshape(v.shape))
           for k, v in named.items() if v is not None and k in runner.graph_inputs}
  found = [x.numpy() for x in runner(given).values()]
  return found[0] if outputs == 1 else found
