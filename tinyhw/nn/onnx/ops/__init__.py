"""The operators of ONNX and of ONNX Runtime, one file for each family."""
from __future__ import annotations

from tinyhw.nn.onnx.ops import (
  control as control, images as images, indexing as indexing, loss as loss, math as math,
  normalization as normalization, old as old, quant as quant, random as random, resize as resize, shape as shape,
  signal as signal, text as text, training as training, windows as windows)
