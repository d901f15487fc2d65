"""The text of a Tensor: shape, dtype, device, whether it is realized, and its values if they are available.

Printing computes nothing.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.arithmetic import elements
from tinyhw.device import Buffer, DeviceLike, on_disk
from tinyhw.dtype import DType
from tinyhw.engine.memory.buffers import buffer_of, buffers_in
from tinyhw.engine.memory.writes import memory_of
from tinyhw.engine.run.realize import this_thread
from tinyhw.methods.base import Handle
from tinyhw.methods.data.layout import layout
from tinyhw.methods.graph.graph import show
from tinyhw.methods.graph.memory import constant_value, storage_view
from tinyhw.threads import alone
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.shapetracker import View

MOST_VALUES = 1000   # a tensor with more elements shows only the ends of each axis longer than 2 * EDGE
EDGE = 3

@alone
def described(tensor: Handle) -> str:
  """Return the text of a tensor."""
  grad = None if tensor.grad is None else tensor.grad.shape
  return describe(tensor.uop, tensor.device, grad, _memory(tensor), constant_value(tensor.uop))

def _memory(tensor: Handle) -> tuple[Buffer, View] | None:
  """Return the memory of the values. None if they are not computed, or may not be read."""
  node, waits = memory_of(tensor.uop)
  # printing reads nothing from there
  if node is None or waits or this_thread.capture is not None or on_disk(tensor.device): return None
  if isinstance(tensor.device, tuple) and 0 not in tensor.shape:
    if not all(b.is_initialized() for b in buffers_in(buffer_of(node))): return None
    return tensor._buffer(), View.create(tensor._self()._static_shape())
  memory = storage_view(tensor.uop)
  found = None if memory is None else layout(memory)
  return None if found is None or not buffer_of(found[0]).is_initialized() else (buffer_of(found[0]), found[1])

def describe(u: UOp, device: DeviceLike, grad: tuple[Any, ...] | None, values: tuple[Buffer, View] | None,
             constant: Any) -> str:
  """Return the text of repr. values: the memory of a realized tensor, where it may be read. constant: the number that
  all elements equal, or None."""
  head = f"<Tensor {show(u.shape)} {str(u.dtype).removeprefix('dtypes.')} on {device}"
  if grad is not None: head += f", grad {show(grad)}"
  if values is not None:
    text = _values(*values, u.dtype)
    return f"{head}, realized{':' if text else ''}{' ' if text and chr(10) not in text else ''}{text}>"
  if on_disk(device): return f"{head}, in a file>"
  if constant is not None: return f"{head}, constant {_number(constant)}>"
  return f"{head}, not realized: {u.op.name}>"

def _values(buffer: Buffer, view: View, dtype: DType) -> str:
  """Return the elements as nested lists. Matrices have one line for each row, after a line break."""
  if not view.size: return ""
  numbers = elements(buffer.as_memoryview(allow_zero_copy=True), dtype)
  short = view.size > MOST_VALUES
  rows = _nested(numbers, view, 0, view.offset, short)
  width = max(map(len, _texts(rows))) if len(view.shape) > 1 else 0
  text = _joined(rows, len(view.shape), width, 1)
  return text if len(view.shape) < 2 else "\n " + text

def _nested(numbers: Sequence[Any], view: View, axis: int, position: int, short: bool) -> Any:
  """Return texts of the elements, in lists as deep as the shape. "…" stands for omitted elements."""
  if axis == len(view.shape): return _number(numbers[position])
  n, stride = view.shape[axis], view.strides[axis]
  kept = range(n) if not short or n <= 2 * EDGE else (*range(EDGE), *range(n - EDGE, n))
  items = [_nested(numbers, view, axis + 1, position + i * stride, short) for i in kept]
  return items if len(kept) == n else [*items[:EDGE], "…", *items[EDGE:]]

def _number(x: Any) -> str:
  if not isinstance(x, float): return str(x)
  text = f"{x:.5g}"
  return text + ".0" if text.lstrip("-").isdigit() else text

def _texts(rows: Any) -> list[str]:
  return [rows] if isinstance(rows, str) else [text for row in rows for text in _texts(row)]

def _joined(rows: Any, depth: int, width: int, indent: int) -> str:
  if isinstance(rows, str): return rows if rows == "…" else rows.rjust(width)
  gap = ", " if depth == 1 else "," + "\n" * (depth - 1) + " " * (indent + 1)
  return "[" + gap.join(_joined(row, depth - 1, width, indent + 1) for row in rows) + "]"
