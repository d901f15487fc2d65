"""Attention and rotary embeddings of ONNX. Source: ONNX operator schemas (ai.onnx 23 to 25, ai.onnx.preview)."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.methods.matmul import masked_softmax
from tinyhw.nn.onnx.data import dtype_of, wide
from tinyhw.nn.onnx.operator import Body, Outputs, as_tensor, operator
from tinyhw.tensor import Tensor

def heads(x: Tensor, count: int | None) -> Tensor:
  """Split heads: (B, T, heads * d) -> (B, heads, T, d)."""
  if x.ndim == 4: return x
  if x.ndim != 3 or not count or int(x.shape[2]) % count:
    raise ShapeError(f"{x.shape} does not split into {count} heads")
  return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2)

def merged(x: Tensor) -> Tensor: return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)

def _bias(mask: Tensor, columns: int, like: Tensor) -> Tensor:
  """Return a mask as numbers to add. Columns that it lacks are masked."""
  if mask.dtype is dtypes.bool: mask = mask.where(0.0, -math.inf)
  missing = columns - int(mask.shape[-1])
  if missing > 0 and mask.shape[-1] != 1: mask = mask.pad([(0, 0)] * (mask.ndim - 1) + [(0, missing)], value=-math.inf)
  return mask.cast(like.dtype)

def near(rows: int, columns: int, offset: Any, like: Tensor, left: int = -1, right: int = 0) -> Tensor:
  """Return a mask of numbers to add: row i, at position p = i + offset, sees columns p - left to p + right. -1: no
  limit on that side. offset: a number, or a tensor of one per batch."""
  position = Tensor.arange(rows, device=like.device).reshape(-1, 1) + offset
  column = Tensor.arange(columns, device=like.device).reshape(1, -1)
  seen: Tensor | None = column <= position + right if right >= 0 else None
  if left >= 0:
    later: Tensor = column >= position - left
    seen = later if seen is None else seen & later
  assert seen is not None
  return seen.where(0.0, -math.inf).cast(like.dtype)

def _grouped(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
  """Return key and value heads, each repeated for the query heads that share it."""
  groups = int(q.shape[1]) // max(int(k.shape[1]), 1)
  if groups < 1 or int(q.shape[1]) != groups * int(k.shape[1]):
    raise ShapeError(f"{q.shape[1]} query heads do not share {k.shape[1]} key heads")
  return (k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)) if groups > 1 else (k, v)

@operator("Attention", 23)
def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, past_key: Tensor | None = None,
              past_value: Tensor | None = None, nonpad: Tensor | None = None, *, is_causal: int = 0,
              kv_num_heads: int | None = None, left_window_size: int = -1, q_num_heads: int | None = None,
              qk_matmul_output_mode: int = 0, right_window_size: int = -1, scale: float | None = None,
              softcap: float = 0.0, softmax_precision: int = 1, outputs: Outputs = 1) -> Any:
  """Compute the scaled dot product attention of heads in (B, heads, T, d) or (B, T, heads * d). nonpad: the number of
  valid keys of each batch."""
  flat = q.ndim == 3
  q, k, v = heads(q, q_num_heads), heads(k, kv_num_heads), heads(v, kv_num_heads)
  past = 0
  if past_key is not None and past_value is not None:
    past = int(past_key.shape[2])
    k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
  present = k, v
  k, v = _grouped(q, k, v)
  rows, columns = int(q.shape[2]), int(k.shape[2])
  root = math.sqrt(scale if scale is not None else 1 / math.sqrt(int(q.shape[3])))
  scores = (wide(q) * root).matmul(wide(k * root).transpose(2, 3))
  stages = [scores]
  if softcap: scores = (scores / softcap).tanh() * softcap
  stages.append(scores)
  if mask is not None: scores = scores + _bias(mask, columns, scores)
  offset: Any = past
  if nonpad is not None: offset = (nonpad.cast(dtypes.int32) - rows).reshape(-1, 1, 1, 1)
  left, right = left_window_size, 0 if is_causal else right_window_size
  if right >= 0 or left >= 0: scores = scores + near(rows, columns, offset, scores, left, right)
  if nonpad is not None:
    there = Tensor.arange(columns, device=q.device).reshape(1, 1, 1,
                                                            -1) < nonpad.cast(dtypes.int32).reshape(-1, 1, 1, 1)
    scores = there.where(scores, -math.inf)
  weights = masked_softmax(scores)
  stages += [scores, weights]
  y = weights.cast(q.dtype).matmul(v).cast(q.dtype)
  if not 0 <= qk_matmul_output_mode <= 3:
    raise ArgumentError(f"qk_matmul_output_mode is 0 to 3, not {qk_matmul_output_mode}")
  results = (merged(y) if flat else y), *present, stages[qk_matmul_output_mode].cast(q.dtype)
  return results[:max(1, outputs)]

@operator("FlexAttention", 1, "ai.onnx.preview", folds=False)
def flex_attention(q: Tensor, k: Tensor, v: Tensor, *, prob_mod: Body | None = None, scale: float | None = None,
                   score_mod: Body | None = None, softmax_precision: int | None = None) -> Tensor:
  """Attention with two graphs of the model, which change the scores and the weights. q, k, v: (B, heads, T, d)."""
  if not q.ndim == k.ndim == v.ndim == 4:
    raise ShapeError(f"FlexAttention wants shapes (B, heads, T, d), not {q.shape}, {k.shape}, {v.shape}")
  k, v = _grouped(q, k, v)
  kind = wide(q).dtype if softmax_precision is None else dtype_of(softmax_precision)
  scores = wide(q).matmul(wide(k).transpose(2, 3)) * (1 / math.sqrt(int(q.shape[3])) if scale is None else scale)
  scores = _changed(scores.cast(kind), score_mod, "score_mod")
  weights = _changed(scores.softmax(-1), prob_mod, "prob_mod")
  return weights.cast(q.dtype).matmul(v).cast(q.dtype)

def _changed(x: Tensor, body: Any, name: str) -> Tensor:
  """Return the result of a graph of the model on x."""
  if body is None: return x
  found = body(x)
  y = as_tensor(found[0]) if len(found) == 1 else None
  if y is None or y.shape != x.shape: raise ShapeError(f"{name} gives no result of the shape {x.shape} of its input")
  return y.cast(x.dtype)

def _rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: int) -> Tensor:
  """Rotate pairs of numbers by an angle. A pair is two neighbours, or one number from each half."""
  if interleaved: a, b = x[..., ::2], x[..., 1::2]
  else: a, b = x.chunk(2, dim=-1)
  left, right = a * cos - b * sin, b * cos + a * sin
  if interleaved: return left.stack(right, dim=-1).reshape(x.shape)
  return left.cat(right, dim=-1)

def rotary(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None, interleaved: int, heads: int,
            width: int) -> Tensor:
  flat = x.ndim == 3
  y = x.reshape(x.shape[0], x.shape[1], heads or 1, -1) if flat else x.transpose(1, 2)   # (B, T, heads, d)
  width = width or int(y.shape[-1])
  if not 0 < width <= int(y.shape[-1]) or width % 2: raise ShapeError(f"cannot turn {width} of {y.shape[-1]} numbers")
  if positions is not None: cos, sin = cos[positions], sin[positions]                   # (B, T, width / 2)
  c, s = cos[..., :width // 2].unsqueeze(-2), sin[..., :width // 2].unsqueeze(-2)
  rotated = _rotated(y[..., :width], c, s, interleaved)
  z = rotated if width == int(y.shape[-1]) else rotated.cat(y[..., width:], dim=-1)
  return z.reshape(x.shape) if flat else z.transpose(1, 2)

@operator("RotaryEmbedding", 23)
def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None, *, interleaved: int = 0,
                     num_heads: int = 0,
                     rotary_embedding_dim: int = 0) -> Tensor:
  """Apply rotary positions. x: (B, heads, T, d) or (B, T, heads * d)."""
  return rotary(x, cos, sin, positions, interleaved, num_heads, rotary_embedding_dim)
