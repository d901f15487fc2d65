"""Which values of a graph have a narrow type (narrow.py), found before the graph runs.

A Tensor does not know that its numbers have 4 bits. Some operators take the type of their result from an input:
CastLike, and QuantizeLinear from its zero point. So the narrow types of constants and inputs follow the names of values
through Cast, Constant and operators that only move elements. Such a node then gets the type as an attribute.
"""
from __future__ import annotations
from typing import Any

from tinyhw.nn.onnx.narrow import NARROW
from tinyhw.nn.onnx.parser import OnnxNode

# The index of the input that has the type, and the attribute that also names the type.
_TYPED_BY_INPUT = {"CastLike": (1, "to"), "QuantizeLinear": (2, "output_dtype")}
_TYPED_BY_ATTRIBUTE = {"Cast": "to", "QuantizeLinear": "output_dtype"}
# Operators whose results have the type of the first input.
_MOVES = frozenset("""Identity Reshape Flatten Squeeze Unsqueeze Transpose Slice Gather GatherElements GatherND Concat
  Split Expand Tile Pad Where ScatterElements ScatterND DepthToSpace SpaceToDepth Compress""".split())

def declared(graph: dict[str, Any]) -> dict[str, int]:
  """Return the numbers of narrow types of a graph's constants and inputs, by name."""
  found = {t.get("name", ""): t.get("data_type", 0) for t in graph.get("initializer", ())}
  for info in graph["input"]:
    if isinstance(info, dict):
      found[info.get("name", "")] = info.get("type", {}).get("tensor_type", {}).get("elem_type", 0)
  return {name: number for name, number in found.items() if number in NARROW}

def with_narrow_type(node: OnnxNode, narrow: dict[str, int]) -> OnnxNode:
  """Return a node with its result's narrow type as an attribute, if that type follows an input."""
  place, attribute = _TYPED_BY_INPUT.get(node.op, (len(node.inputs), ""))
  if node.opset_id.domain or place >= len(node.inputs) or node.inputs[place] not in narrow: return node
  opts = {**node.opts, attribute: narrow[node.inputs[place]]}
  return (node._replace(op="Cast", inputs=node.inputs[:1], opts=opts) if node.op == "CastLike"
          else node._replace(opts=opts))

def spread(node: OnnxNode, proto_node: dict[str, Any], narrow: dict[str, int]) -> None:
  """Note the narrow types of a node's results."""
  number = 0
  if node.opset_id.domain: return
  if node.op in _TYPED_BY_ATTRIBUTE: number = node.opts.get(_TYPED_BY_ATTRIBUTE[node.op], 0)
  elif node.op in _MOVES:
    place = 1 if node.op == "Where" else 0
    number = narrow.get(node.inputs[place], 0) if len(node.inputs) > place else 0
  elif node.op in ("Constant", "ConstantOfShape"):
    number = next((a["t"].get("data_type", 0) for a in proto_node["attribute"] if "t" in a), 0)
  if isinstance(number, int) and number in NARROW: narrow.update(dict.fromkeys(filter(None, node.outputs), number))
