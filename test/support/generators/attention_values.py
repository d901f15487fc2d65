"""Attention in NumPy, by its formula, and values for it."""
from __future__ import annotations
import math
from typing import Any

import numpy as np

F32 = np.float32

def random(*shape: int, seed: int = 0) -> Any: return np.random.default_rng(seed).standard_normal(shape).astype(F32)
def softmax(x: Any) -> Any:
  return np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
def attend(q: Any, k: Any, v: Any, bias: Any = 0.0) -> Any:
  return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) + bias) @ v
def heads(x: Any, n: int) -> Any: return x.reshape(*x.shape[:2], n, -1).transpose(0, 2, 1, 3)
def merged(x: Any) -> Any: return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)
