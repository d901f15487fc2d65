"""Operators of ONNX Runtime for transformers (domain com.microsoft). Source: ONNX Runtime, ContribOperators."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.nn.onnx.data import wide
from tinyhw.nn.onnx.operator import Ints, Outputs, operator
from tinyhw.nn.onnx.ops.math import gemm
from tinyhw.nn.onnx.ops.normalization import layer_normalization
from tinyhw.nn.onnx.ops.shape import sizes
from tinyhw.nn.onnx.sequence.attention import heads, merged, near, rotary
from tinyhw.tensor import Tensor

MICROSOFT = "com.microsoft"

@operator("RotaryEmbedding", 1, MICROSOFT)
def rotary_embedding_of_runtime(x: Tensor, positions: Tensor, cos: Tensor, sin: Tensor, *, interleaved: int = 0,
                                num_heads: int = 0,
                                rotary_embedding_dim: int = 0, scale: float = 1.0,
                                is_packed_batching: int = 0) -> Tensor:
  if positions.numel() == 1:   # the position of the first token
    positions = positions.reshape(1, 1) + Tensor.arange(int(x.shape[1 if x.ndim == 3 else 2]), dtype=positions.dtype,
                                                        device=x.device)
  if x.ndim == 3 and not num_heads: num_heads = int(x.shape[2]) // (2 * int(cos.shape[-1]))
  return rotary(x, cos, sin, positions, interleaved, num_heads, rotary_embedding_dim)

# ***** attention *****

def _padding_bias(mask: Tensor, columns: int, filter_value: float, like: Tensor) -> Tensor:
  """Convert a mask of 1 and 0 to numbers to add: (B, S), (B, T, S) or (B, 1, T, S)."""
  if mask.ndim == 1: raise ArgumentError("a mask of lengths is not supported; give (B, S) of 1 and 0")
  there = mask.bool().where(0.0, filter_value).cast(like.dtype)
  return (there.reshape(there.shape[0], 1, 1, columns) if mask.ndim == 2 else there.unsqueeze(1) if mask.ndim == 3
          else there)

def _attend(q: Tensor, k: Tensor, v: Tensor, scale: float, biases: list[Tensor | None], causal: bool,
            filter_value: float) -> Tensor:
  """Attend with heads (B, heads, T, d). The result is (B, T, heads * d)."""
  scores = wide(q).matmul(wide(k).transpose(2, 3)) * (scale or 1 / math.sqrt(int(q.shape[3])))
  for bias in biases:
    if bias is not None: scores = scores + bias
  if causal:
    rows, columns = sizes(scores)[2:]
    scores = (near(rows, columns, columns - rows, scores) >= 0).where(scores, filter_value)
  return merged(scores.softmax(-1).cast(q.dtype).matmul(v))

@operator("Attention", 1, MICROSOFT)
def attention_of_runtime(x: Tensor, w: Tensor, b: Tensor | None = None, mask: Tensor | None = None,
                         past: Tensor | None = None,
                         attention_bias: Tensor | None = None, *, num_heads: int, unidirectional: int = 0,
                         scale: float = 0.0,
                         mask_filter_value: float = -10000.0, qkv_hidden_sizes: Ints | None = None,
                         outputs: Outputs = 1) -> Any:
  """Project to query, key and value in one product, then attend."""
  y = x.matmul(w)
  if b is not None: y = y + b
  parts = qkv_hidden_sizes or [int(y.shape[-1]) // 3] * 3
  q, k, v = (heads(part, num_heads) for part in y.split(parts, 2))
  if past is not None: k, v = past[0].cat(k, dim=2), past[1].cat(v, dim=2)
  bias = None if mask is None else _padding_bias(mask, int(k.shape[2]), mask_filter_value, wide(q))
  result = _attend(q, k, v, scale, [bias, attention_bias], bool(unidirectional), mask_filter_value)
  return (result, k.stack(v)) if outputs > 1 else result

@operator("MultiHeadAttention", 1, MICROSOFT)
def multi_head_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, mask: Tensor | None = None,
                         attention_bias: Tensor | None = None, past_key: Tensor | None = None,
                         past_value: Tensor | None = None, *, num_heads: int,
                         scale: float = 0.0, mask_filter_value: float = -10000.0, unidirectional: int = 0,
                         outputs: Outputs = 1) -> Any:
  if bias is not None:
    a, b, c = bias.split([int(q.shape[-1]), int(q.shape[-1]), int(bias.shape[0]) - 2 * int(q.shape[-1])])
    q = q + a
    if k.ndim == 3: k, v = k + b, v + c
  q, k, v = heads(q, num_heads), heads(k, num_heads), heads(v, num_heads)
  if past_key is not None and past_value is not None: k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
  padding = None if mask is None else _padding_bias(mask, int(k.shape[2]), mask_filter_value, wide(q))
  result = _attend(q, k, v, scale, [padding, attention_bias], bool(unidirectional), mask_filter_value)
  return (result, k, v)[:max(1, outputs)]

# ***** normalization, embedding, activations, products *****

def simplified_layer_normalization(x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5,
                                   stash_type: int = 1,
                                   outputs: Outputs = 1) -> Any:
  """Apply layer normalization without a mean."""
  v = wide(x)
  inverse = (v.square().mean(axis, keepdim=True) + epsilon).rsqrt()
  y = (v * inverse).cast(x.dtype) * scale
  return (y, inverse) if outputs > 1 else y

for _domain in ("", MICROSOFT): operator("SimplifiedLayerNormalization", 1, _domain)(simplified_layer_normalization)

@operator("SkipLayerNormalization", 1, MICROSOFT)
def skip_layer_normalization(x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None = None,
                             bias: Tensor | None = None, *,
                             epsilon: float = 1e-12, outputs: Outputs = 1) -> Any:
  total = x + skip if bias is None else x + skip + bias
  return (*layer_normalization(total, gamma, beta, epsilon=epsilon, outputs=3), total)[:max(1, outputs)]

@operator("SkipSimplifiedLayerNormalization", 1, MICROSOFT)
def skip_simplified_layer_normalization(x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *,
                                        epsilon: float = 1e-12,
                                        outputs: Outputs = 1) -> Any:
  total = x + skip if bias is None else x + skip + bias
  y, inverse = simplified_layer_normalization(total, gamma, epsilon=epsilon, outputs=2)
  return (y, inverse * 0, inverse, total)[:max(1, outputs)]

@operator("EmbedLayerNormalization", 1, MICROSOFT)
def embed_layer_normalization(words: Tensor, segments: Tensor | None, word_table: Tensor, position_table: Tensor,
                              segment_table: Tensor | None,
                              gamma: Tensor, beta: Tensor, mask: Tensor | None = None, positions: Tensor | None = None,
                              *, epsilon: float = 1e-12,
                              mask_index_type: int = 0, outputs: Outputs = 1) -> Any:
  length = int(words.shape[1])
  where = positions if positions is not None else Tensor.arange(length, dtype=dtypes.int32,
                                                                device=words.device).reshape(1, -1)
  total = word_table[words] + position_table[where]
  if segments is not None and segment_table is not None: total = total + segment_table[segments]
  y = layer_normalization(total, gamma, beta, epsilon=epsilon, outputs=1)[0]
  counted = (Tensor.zeros(words.shape[0], dtype=dtypes.int32, device=words.device) if mask is None
             else mask.sum(1).cast(dtypes.int32))
  return (y, counted, total)[:max(1, outputs)]

@operator("FastGelu", 1, MICROSOFT)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor: return (x if bias is None else x + bias).gelu("tanh")
@operator("BiasGelu", 1, MICROSOFT)
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor: return (x + bias).gelu("none")
@operator("Gelu", 1, MICROSOFT)
def gelu(x: Tensor) -> Tensor: return x.gelu("none")
@operator("QuickGelu", 1, MICROSOFT)
def quick_gelu(x: Tensor, *, alpha: float = 1.702) -> Tensor: return x * (x * alpha).sigmoid()

@operator("FusedMatMul", 1, MICROSOFT)
def fused_matmul(a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0,
                 transBatchB: int = 0) -> Tensor:
  if transBatchA or transBatchB: raise ArgumentError("FusedMatMul with transBatchA or transBatchB is not supported")
  product = (a.transpose(-2, -1) if transA else a).matmul(b.transpose(-2, -1) if transB else b, dtype=wide(a).dtype)
  return (product if alpha == 1 else product * alpha).cast(a.dtype)

@operator("FusedGemm", 1, MICROSOFT)
def fused_gemm(a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
               transB: int = 0,
               activation: str = "Relu") -> Tensor:
  functions = {"Relu": Tensor.relu, "Tanh": Tensor.tanh, "Sigmoid": Tensor.sigmoid}
  if activation not in functions:
    raise ArgumentError(f"activation is one of {', '.join(functions)}, not {activation!r}")
  return functions[activation](gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB))

@operator("MatMulNBits", 1, MICROSOFT)
def matmul_n_bits(a: Tensor, b: Tensor, scales: Tensor, zeros: Tensor | None = None, *, K: int, N: int, bits: int = 4,
                  block_size: int = 128,
                  accuracy_level: int = 0) -> Tensor:
  """Return a @ W^T, for W (N, K) in blocks along K of 4 or 8 bits. A byte holds two of 4 bits, the first in the low
  half. Each block has a scale and a zero point."""
  if bits not in (4, 8): raise ArgumentError(f"MatMulNBits has 4 or 8 bits, not {bits}")
  blocks = -(-K // block_size)
  def unpacked(x: Tensor, count: int) -> Tensor:
    rows = x.reshape(N, -1)
    if bits == 4: rows = rows.bitwise_and(15).stack(rows.rshift(4), dim=-1).reshape(N, -1)
    return rows[:, :count]
  codes = unpacked(b, blocks * block_size).reshape(N, blocks, block_size).cast(dtypes.float32)
  if zeros is None: centred = codes - float(1 << bits - 1)
  elif dtypes.is_float(zeros.dtype): centred = codes - zeros.reshape(N, blocks, 1).cast(dtypes.float32)
  else: centred = codes - unpacked(zeros, blocks).reshape(N, blocks, 1).cast(dtypes.float32)
  w = (centred * scales.reshape(N, blocks, 1).cast(dtypes.float32)).reshape(N, -1)[:, :K]
  return a.matmul(w.cast(a.dtype).transpose())
