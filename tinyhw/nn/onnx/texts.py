"""Tensors of text, which are on the host: no device computes with strings."""
from __future__ import annotations
from collections.abc import Iterable, Sequence
import importlib
from typing import Any

from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.helpers import prod

class TextTensor:
  """A tensor of strings. values: in row-major order."""
  __slots__ = ("values", "shape")
  dtype = None   # no DType

  def __init__(self, values: Iterable[str], shape: Sequence[int] | None = None) -> None:
    self.values = tuple(values)
    self.shape = (len(self.values),) if shape is None else tuple(shape)
    if prod(self.shape) != len(self.values):
      raise ShapeError(f"{len(self.values)} texts do not make the shape {self.shape}; give as many as it has elements")

  @property
  def ndim(self) -> int: return len(self.shape)

  def numel(self) -> int: return len(self.values)

  def tolist(self) -> Any:
    """The strings, in lists as deep as the shape; one string if there are no axes."""
    def nested(at: int, axis: int) -> Any:
      if axis == self.ndim: return self.values[at]
      step = prod(self.shape[axis + 1:])
      return [nested(at + i * step, axis + 1) for i in range(self.shape[axis])]
    return nested(0, 0)

  def numpy(self) -> Any:
    """The strings as a NumPy array of objects."""
    try: numpy = importlib.import_module("numpy")
    except ImportError:
      raise ArgumentError("numpy() needs NumPy, which is not installed; use tolist() instead") from None
    found = numpy.empty(len(self.values), dtype=object)
    found[:] = self.values
    return found.reshape(self.shape)

  def __repr__(self) -> str:
    shown = ", ".join(map(repr, self.values[:8]))
    return f"<TextTensor {self.shape}: [{shown}{', ...' if len(self.values) > 8 else ''}]>"

def texts_of(data: Any, what: str) -> TextTensor:
  """Return text in any form: TextTensor, a string, nested lists of strings or UTF-8 bytes, an array of these.

  Raises ArgumentError for anything else, ShapeError for lists of different lengths.
  """
  if isinstance(data, TextTensor): return data
  shape = getattr(data, "shape", None)
  rows: Any = data.tolist() if hasattr(data, "tolist") else data
  found: list[int] = []
  rows = [rows]
  while rows and all(isinstance(row, (list, tuple)) for row in rows):
    if any(len(row) != len(rows[0]) for row in rows):
      raise ShapeError(f"{what} has lists of different lengths; make the rows equally long")
    found.append(len(rows[0]))
    rows = [x for row in rows for x in row]
  if not all(isinstance(x, (str, bytes)) for x in rows):
    other = next(x for x in rows if not isinstance(x, (str, bytes)))
    raise ArgumentError(f"{what} is text, and {other!r:.60} is none; give strings, in lists or in an array")
  return TextTensor([x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in rows],
               found if shape is None else shape)
