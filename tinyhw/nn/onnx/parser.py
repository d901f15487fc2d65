"""ONNX files as dicts with the names of onnx.proto. Tensors, descriptions of values and nodes are parsed."""
from __future__ import annotations
from collections.abc import Sequence
import os
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, FileFormatError
from tinyhw.files.budget import ENTRY, SLOT, Budget
from tinyhw.files.regular import open_input
from tinyhw.named_tuple import NamedTuple
from tinyhw.nn.onnx import proto
from tinyhw.nn.onnx.data import TYPES, to_dense, to_tensor
from tinyhw.tensor import Tensor

# Several names for one set of operators. Source: ONNX, "Versioning"
DOMAINS = {"ai.onnx": "", "ai.onnx.ml": "ai.onnx.ml"}

class OnnxValue(NamedTuple):
  """The model's description of an input or output. shape: sizes, or names where they may vary; None if it is not
  given."""
  shape: tuple[int | str, ...] | None
  dtype: DType | None
  is_optional: bool = False
  is_sequence: bool = False
  is_text: bool = False

class OpSetId(NamedTuple):
  """A set of operators and its version."""
  domain: str
  version: int

class OnnxNode(NamedTuple):
  """A node as in the file."""
  op: str
  opset_id: OpSetId
  inputs: tuple[str, ...]
  outputs: tuple[str, ...]
  opts: dict[str, Any]

def where_of(node: dict[str, Any]) -> str:
  return f"node {node.get('name') or '/'.join(node['output'])!r} ({node.get('op_type', '')})"

def value_of(info: dict[str, Any]) -> OnnxValue:
  """Convert a ValueInfoProto."""
  kind, optional, sequence = info.get("type", {}), False, False
  for _ in range(4):
    if "optional_type" in kind: kind, optional = kind["optional_type"].get("elem_type", {}), True
    elif "sequence_type" in kind: kind, sequence = kind["sequence_type"].get("elem_type", {}), True
  tensor = kind.get("tensor_type", {})
  row = TYPES.get(tensor.get("elem_type", 0))
  shape = None
  if "shape" in tensor:
    shape = tuple(d["dim_value"] if d.get("dim_value", -1) >= 0 else d.get("dim_param", "")
                  for d in tensor["shape"]["dim"])
  is_text = row is not None and row.name == "string"
  return OnnxValue(shape, None if row is None else row.dtype, optional, sequence, is_text)

# AttributeProto.type: the field. Source: onnx.proto
_ATTRIBUTE_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors",
                     10: "graphs", 11: "sparse_tensor", 13: "tp"}

class OnnxPBParser:
  """A parser of an ONNX file: a path, bytes, or a tensor of bytes.

  load_external_data: False omits tensors that are in other files. Their `parsed_tensor` is None.
  """
  def __init__(self, inp: Tensor | str | os.PathLike[str] | bytes, load_external_data: bool = True):
    self.load_external_data = load_external_data
    self.folder: str | None = None
    self.budget: Budget
    if isinstance(inp, (bytes, bytearray, memoryview)): self.data, self.name = memoryview(inp), "the model"
    elif isinstance(inp, Tensor):
      if inp.dtype is not dtypes.uint8: raise ArgumentError(f"a model is a tensor of bytes, not of {inp.dtype}")
      self.data, self.name = inp._read()[0], "the model"
    elif isinstance(inp, (str, os.PathLike)):
      self.name = os.fspath(inp)
      with open_input(inp, "an ONNX model") as file: self.data = memoryview(file.read())
      self.folder = os.path.dirname(os.path.abspath(inp))
    else: raise ArgumentError(f"a model is a path, bytes or a tensor of bytes, not {inp!r:.80}")
    self.budget = Budget(self.name, self.data.nbytes)

  def parse(self) -> dict[str, Any]:
    """Return the model as dicts with the names of onnx.proto. Tensors have `parsed_tensor`, inputs and outputs
    `parsed_type`, nodes `parsed_node`.

    Raises FileFormatError if the file is not a complete model.
    """
    model = proto.parse(self.data, self.name, budget=self.budget)
    if "graph" not in model: raise FileFormatError(f"{self.name} is no ONNX model: it has no graph")
    imports = imported_sets(model["opset_import"])
    self._graph(model["graph"], imports)
    for function in model["functions"]:
      own = imported_sets(function["opset_import"]) or imports
      for node in function["node"]: self._node(node, own)
    return model

  def _graph(self, graph: dict[str, Any], imports: dict[str, int]) -> None:
    for tensor in graph["initializer"]:
      tensor["parsed_tensor"] = to_tensor(tensor, self.folder, self.load_external_data, self.budget)
    for tensor in graph["sparse_initializer"]:
      tensor["parsed_tensor"] = to_dense(tensor, self.folder, self.load_external_data, self.budget)
    for info in (*graph["input"], *graph["output"]):
      self.budget.take(ENTRY)
      info["parsed_type"] = value_of(info)
    for node in graph["node"]: self._node(node, imports)

  def _node(self, node: dict[str, Any], imports: dict[str, int]) -> None:
    domain = DOMAINS.get(node.get("domain", ""), node.get("domain", ""))
    self.budget.take(ENTRY + SLOT // 2 * (len(node["input"]) + len(node["output"]))
                     + attributes_cost(len(node["attribute"])))
    opts = {a.get("name", ""): self._attribute(a, imports, node) for a in node["attribute"]}
    opset = OpSetId(domain, imports.get(domain, 1))
    node["parsed_node"] = OnnxNode(node.get("op_type", ""), opset, tuple(node["input"]), tuple(node["output"]), opts)

  def _attribute(self, attribute: dict[str, Any], imports: dict[str, int], node: dict[str, Any]) -> Any:
    """Return an attribute: a number, text, list, Tensor, graph (its dict) or AttributeReference."""
    if attribute.get("ref_attr_name"): return AttributeReference(attribute["ref_attr_name"])
    kind = attribute.get("type", 0) or next((n for n, field in _ATTRIBUTE_FIELDS.items() if attribute.get(field)), 0)
    field = _ATTRIBUTE_FIELDS.get(kind)
    if field is None:
      raise FileFormatError(f"{where_of(node)}: the attribute {attribute.get('name')!r} has the type {kind}, which is "
                            f"not supported")
    value = attribute.get(field, {"f": 0.0, "i": 0, "s": b""}.get(field))
    if value is None: raise FileFormatError(f"{where_of(node)}: the attribute {attribute.get('name')!r} has no {field}")
    if field == "t": return to_tensor(value, self.folder, self.load_external_data, self.budget)
    if field == "sparse_tensor": return to_dense(value, self.folder, self.load_external_data, self.budget)
    if field == "tensors": return [to_tensor(v, self.folder, self.load_external_data, self.budget) for v in value]
    if field == "g": self._graph(value, imports)
    if field == "graphs":
      for graph in value: self._graph(graph, imports)
    if field == "s": return _text(value)
    if field == "strings": return [_text(v) for v in value]
    if field not in ("ints", "floats"): return value
    self.budget.take(2 * SLOT * len(value))
    return list(value)

class AttributeReference(NamedTuple):
  """An attribute of a node in a function that takes the value of an attribute of the function."""
  name: str

ATTRIBUTE = 160   # bytes, at most, of an entry of a dict while it grows

def attributes_cost(count: int) -> int: return 192 + ATTRIBUTE * count if count else 0

def _text(raw: Any) -> str: return bytes(raw).decode("utf-8", "replace")

def imported_sets(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
  return {DOMAINS.get(row.get("domain", ""), row.get("domain", "")): row.get("version", 1) for row in rows}
