"""The operators of ONNX and of ONNX Runtime on sequences: attention, recurrent layers, states."""
from __future__ import annotations

from tinyhw.nn.onnx.sequence import (
  attention as attention, recurrent as recurrent, runtime as runtime, state as state)
