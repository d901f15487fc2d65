"""Models in the ONNX format: `OnnxRunner` runs one, `OnnxPBParser` reads its file, `onnx_ops` has the operators.

>>> from tinyhw.nn.onnx import onnx_ops
>>> onnx_ops["Gemm"](Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]]), alpha=2.0).tolist()
[[22.0]]
"""
from __future__ import annotations

from tinyhw.nn.onnx import ml as ml, ops as ops, sequence as sequence
from tinyhw.nn.onnx.operator import Operator as Operator, onnx_ops as onnx_ops
from tinyhw.nn.onnx.parser import (
  OnnxNode as OnnxNode, OnnxPBParser as OnnxPBParser, OnnxValue as OnnxValue, OpSetId as OpSetId)
from tinyhw.nn.onnx.runner import OnnxRunner as OnnxRunner
