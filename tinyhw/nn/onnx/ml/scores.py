"""Scores and labels of ai.onnx.ml's classifiers: transforms of scores, and the label of each row."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.operator import as_numbers
from tinyhw.nn.onnx.texts import TextTensor
from tinyhw.tensor import Tensor

def _softmax_zero(scores: Tensor) -> Tensor:
  """Softmax over the scores that are not zero. The others stay zero; without any, all become one half."""
  there = scores.abs() > 1e-7
  parts = there.where((scores - scores.max(1, keepdim=True)).exp(), 0)
  total = parts.sum(1, keepdim=True)
  return total.eq(0).where(0.5, parts / total.eq(0).where(1, total))

def _probit(scores: Tensor) -> Tensor:
  """The inverse of the normal distribution's function, by Winitzki's formula of 2008, as ONNX's runtimes compute it."""
  x = scores * 2 - 1
  log = ((1 - x) * (1 + x)).log()
  half = log * 0.5 + 2 / (math.pi * 0.147)
  found = ((half.square() - log / 0.147).sqrt() - half).sqrt() * math.sqrt(2)
  return (x < 0).where(-found, found)

TRANSFORMS: dict[str, Any] = {"NONE": lambda x: x, "SOFTMAX": lambda x: x.softmax(1), "LOGISTIC": Tensor.sigmoid,
                              "SOFTMAX_ZERO": _softmax_zero, "PROBIT": _probit}

def transformed(scores: Tensor, name: str) -> Tensor:
  """Return scores (N, E) after a post_transform. Raises ArgumentError for an unknown one."""
  if name not in TRANSFORMS: raise ArgumentError(f"post_transform is one of {', '.join(TRANSFORMS)}, not {name!r}")
  found: Tensor = TRANSFORMS[name](scores)
  return found

def labelled(index: Tensor, ints: list[int] | None, strings: list[str] | None) -> Any:
  """Return the labels with these indices. Text labels are chosen on the host."""
  if strings: return TextTensor([strings[i] for i in as_numbers(index)], [int(d) for d in index.shape])
  if not ints: return index.cast(dtypes.int64)
  return Tensor(ints, dtype=dtypes.int64, device=index.device)[index.cast(dtypes.int32)]

def label_count(ints: list[int] | None, strings: list[str] | None) -> int:
  """Return the number of labels. Raises ArgumentError for both kinds."""
  if ints and strings: raise ArgumentError("a classifier has integers or strings as labels, not both")
  return len(ints or strings or [])

def rows_of(x: Tensor) -> Tensor:
  """Return features as rows in float32 at least: (F,) -> (1, F)."""
  if x.ndim not in (1, 2): raise ArgumentError(f"features have a shape (F,) or (N, F), not {x.shape}")
  wide = x if x.dtype is dtypes.float64 else x.cast(dtypes.float32)
  return wide.reshape(1, -1) if x.ndim == 1 else wide
