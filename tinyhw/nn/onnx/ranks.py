"""Operators that compare or move elements, on text.

They work on ranks: on the positions of the texts in a sorted list of all texts of their inputs. So Gather, Concat,
Equal or Unique need no second implementation.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.nn.onnx.operator import Known, as_numbers
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.tensor import Tensor

# Operators whose results have the texts of their inputs, and those that compare: which results are texts. None: all.
BY_RANK: dict[str, tuple[int, ...] | None] = {
  **dict.fromkeys(("Equal", "Shape", "Size"), ()), "Unique": (0,),
  **dict.fromkeys("""Reshape Flatten Squeeze Unsqueeze Transpose Expand Tile Concat Split Slice Gather GatherElements
    GatherND Scatter ScatterElements ScatterND Where Compress DepthToSpace SpaceToDepth ReverseSequence SplitToSequence
    ArrayFeatureExtractor""".split()),
}

def by_rank(name: str, call: Callable[[list[Any]], list[Any]], inputs: list[Any]) -> list[Any]:
  """Return the results of an operator of BY_RANK. call: the operator as a function of its inputs."""
  table = sorted({text for x in inputs if isinstance(x, TextTensor) for text in x.values})
  rank = {text: i for i, text in enumerate(table)}
  numbers = [Known([rank[t] for t in x.values], x.shape, dtypes.int64) if isinstance(x, TextTensor) else x
             for x in inputs]
  places = BY_RANK[name]
  return [_texts(x, table) if places is None or i in places else x for i, x in enumerate(call(numbers))]

def _texts(ranks: Any, table: list[str]) -> Any:
  if isinstance(ranks, list): return [_texts(x, table) for x in ranks]
  shape = ranks.shape if isinstance(ranks, (Tensor, Known)) else ()
  return TextTensor([table[i] for i in as_numbers(ranks)], [int(d) for d in shape])
