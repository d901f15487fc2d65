"""Attention and embeddings with PyTorch's parameters.

Source: Vaswani et al. 2017; PyTorch's documentation.
"""
from __future__ import annotations
import math

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.known import extent, want_all, want_index
from tinyhw.functional.nn.activations import dropout
from tinyhw.functional.operands import checked, sizes, want_float, want_int
from tinyhw.functional.products import linear
from tinyhw.functional.rules import with_scaled_gradient
from tinyhw.functional.shapes import cat
from tinyhw.methods.base import Handle
from tinyhw.methods.matmul import masked_softmax
from tinyhw.tensor import Tensor

def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
  """Return softmax(query key^T * scale + mask) value. scale: by default 1 / sqrt(d)."""
  for x in (query, key, value):
    if checked("attention", x).ndim < 2: raise ShapeError(f"attention wants two axes at least, not {x.shape}")
    if x.dtype is not query.dtype: raise DTypeError("attention wants query, key and value of one type")
  if is_causal and attn_mask is not None: raise ArgumentError("give attn_mask or is_causal, not both")
  if query.dtype.itemsize == 2 and not dropout_p and {sizes(x)[:-3] if x.ndim == 4 else None
                                                      for x in (query, key, value)} != {sizes(query)[:-3]}:
    # as PyTorch: heads of a batch are multiplied in the type, other shapes in float32
    if attn_mask is not None and attn_mask.dtype is query.dtype: attn_mask = attn_mask.float()
    found = scaled_dot_product_attention(query.float(), key.float(), value.float(), attn_mask, 0.0, is_causal, scale,
                                         enable_gqa)
    return found.cast(query.dtype)
  width = max(sizes(query)[-1], 1)
  if scale is not None: query = query.mul(scale * math.sqrt(width))
  if not dropout_p:
    return query.scaled_dot_product_attention(key, value, attn_mask, 0.0, is_causal, enable_gqa)
  if enable_gqa: key, value = (x.repeat_interleave(sizes(query)[-3] // sizes(x)[-3], -3) for x in (key, value))
  scores = query.mul(1 / math.sqrt(width)).matmul(key.transpose(-2, -1))
  if is_causal:
    rows, columns = sizes(scores)[-2:]
    attn_mask = Tensor.arange(columns).le(Tensor.arange(rows).unsqueeze(1))
  if attn_mask is not None:
    scores = attn_mask.where(scores, -math.inf) if attn_mask.dtype is dtypes.bool else scores.add(attn_mask)
  return dropout(masked_softmax(scores), dropout_p).matmul(value)

def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
  """Return (attention of several heads between projections, its weights). query: (T, N, E) or (T, E).

  is_causal is a hint that attn_mask is causal. Raises ArgumentError for the hint without a mask.
  """
  batched = checked("attention", query).ndim == 3
  if is_causal and attn_mask is None:
    raise ArgumentError("is_causal is a hint about attn_mask; give the mask, too (generate_square_subsequent_mask)")
  q, k, v = (x if batched else x.unsqueeze(1) for x in (query, key, value))
  if key_padding_mask is not None and not batched: key_padding_mask = key_padding_mask.unsqueeze(0)
  length, n, width = sizes(q)
  if width != embed_dim_to_check: raise ShapeError(f"attention wants {embed_dim_to_check} features, not {width}")
  if num_heads < 1 or width % num_heads: raise ArgumentError(f"{width} features do not divide into {num_heads} heads")
  matrices = ((q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight
              else in_proj_weight.chunk(3))  # type: ignore[union-attr]
  biases = (None,) * 3 if in_proj_bias is None else tuple(in_proj_bias.chunk(3))
  q, k, v = (linear(x, w, b) for x, w, b in zip((q, k, v), matrices, biases))
  extra = 0
  if bias_k is not None and bias_v is not None:
    k, v, extra = cat([k, bias_k.expand(1, n, width)], 0), cat([v, bias_v.expand(1, n, width)], 0), extra + 1
  each = width // num_heads
  def heads(x: Tensor, given: Tensor | None) -> Tensor:
    if given is not None: return given
    return x.reshape(sizes(x)[0], n * num_heads, each).transpose(0, 1)
  q, k, v = heads(q, None), heads(k, static_k), heads(v, static_v)
  if add_zero_attn:
    zero = Tensor.zeros(n * num_heads, 1, each, dtype=k.dtype)
    k, v, extra = cat([k, zero], 1), cat([v, zero], 1), extra + 1
  scores = q.mul(1 / math.sqrt(each)).matmul(k.transpose(1, 2))        # (N * heads, T, S)
  scores = _masked(scores, attn_mask, key_padding_mask, n, num_heads, extra)
  weights = scores.softmax(-1)
  found = dropout(weights, dropout_p, training).matmul(v)
  found = linear(found.transpose(0, 1).reshape(length, n, width), out_proj_weight, out_proj_bias)
  shown = weights.reshape(n, num_heads, length, sizes(k)[1])
  if average_attn_weights: shown = shown.mean(1)
  if not batched: found, shown = found.squeeze(1), shown.squeeze(0)
  return found, shown if need_weights else None

def _masked(scores: Tensor, attn_mask: Tensor | None, padding: Tensor | None, n: int, heads: int,
            extra: int) -> Tensor:
  """Add masks, which are true (or -inf) where nothing may attend. extra: keys that were appended, which all see."""
  def added(mask: Tensor, x: Tensor) -> Tensor:
    mask = mask.pad((0, extra), value=False if mask.dtype is dtypes.bool else 0) if extra else mask
    return mask.where(-math.inf, x) if mask.dtype is dtypes.bool else x.add(mask)
  if attn_mask is not None: scores = added(attn_mask, scores)
  if padding is None: return scores
  rows, columns = sizes(scores)[1:]
  if sizes(padding) != (n, columns - extra):
    raise ShapeError(f"key_padding_mask has shape {padding.shape}; it is {(n, columns - extra)}, (N, S)")
  wide = added(padding.reshape(n, 1, 1, -1), scores.reshape(n, heads, rows, columns))
  return wide.reshape(n * heads, rows, columns)

# ***** embeddings *****

def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
  """Return the rows of a matrix that indices name. max_norm: longer rows are scaled down to it, in place."""
  want_int("embedding", checked("embedding", input))
  if checked("embedding", weight).ndim != 2: raise ShapeError(f"embedding wants a matrix, not {weight.shape}")
  rows, width = sizes(weight)
  if padding_idx is not None and not -rows <= padding_idx < rows:
    raise ArgumentError(f"padding_idx is {padding_idx}; it is a row from {-rows} to {rows - 1}")
  if not input.numel(): return Tensor.empty(*sizes(input), width, dtype=weight.dtype)
  want_index("an index of embedding", input, rows)
  table = weight if max_norm is None else _renormed(weight, input, max_norm, norm_type)
  found = table[input]
  if scale_grad_by_freq: found = with_scaled_gradient(found, _counts(input, rows)[input].reciprocal().unsqueeze(-1))
  if padding_idx is None: return found
  return input.eq(padding_idx % rows).unsqueeze(-1).where(found.detach(), found)

def _counts(index: Tensor, rows: int) -> Tensor:
  """Return how often each row is named, as floats."""
  flat = index.reshape(-1)
  return Tensor.zeros(rows).scatter_reduce(0, flat, Tensor.ones(sizes(flat)[0]), "sum")

def _renormed(weight: Tensor, used: Tensor, max_norm: float, norm_type: float) -> Tensor:
  norm = weight.abs().pow(norm_type).sum(1, keepdim=True).pow(1 / norm_type)
  named = used.reshape(1, -1).eq(Tensor.arange(sizes(weight)[0], dtype=dtypes.int32).unsqueeze(1)).any(1, keepdim=True)
  factor = (norm.gt(max_norm) & named).where(norm.add(1e-7).reciprocal().mul(max_norm), 1)
  return weight.assign(weight.mul(factor))

def _check_offsets(offsets: Tensor, total: int, include_last: bool) -> None:
  want_int("offsets", offsets)
  if offsets.ndim != 1: raise ShapeError(f"offsets are a vector, not {offsets.shape}")
  if include_last and not sizes(offsets)[0]:
    raise ShapeError("embedding_bag: include_last_offset wants an offset at least, that of the end")
  if not sizes(offsets)[0]: return
  if (first := extent(offsets[:1])) is not None and first[0] != 0:
    raise ArgumentError(f"embedding_bag: the first of the offsets is {first[0]}; the first bag begins at 0")
  if (found := extent(offsets)) is not None and (found[0] < 0 or found[1] > total):
    raise ArgumentError(f"embedding_bag: one of the offsets is {found[0] if found[0] < 0 else found[1]}; it must be "
                        f"from 0 to {total}, the count of indices")
  want_all("embedding_bag wants offsets in ascending order", offsets[1:].ge(offsets[:-1]), offsets)

def _in_bags(begins: Tensor, total: int, include_last_offset: bool) -> Tensor:
  """Return whether each of `total` indices is in each bag: (bags, indices). begins: the first index of each bag."""
  _check_offsets(begins, total, include_last_offset)
  ends = begins[1:]
  if include_last_offset: begins = begins[:-1]
  else: ends = cat([ends, Tensor([total], dtype=begins.dtype)], 0)
  place = Tensor.arange(total, dtype=dtypes.int32) if total else Tensor.empty(0, dtype=dtypes.int32)
  return place.ge(begins.unsqueeze(1)) & place.lt(ends.unsqueeze(1))

def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
  """Reduce bags of rows that indices name: mean, sum or max. A matrix of indices has a bag in each row."""
  if mode not in ("mean", "sum", "max"): raise ArgumentError(f"mode is 'mean', 'sum' or 'max', not {mode!r}")
  if scale_grad_by_freq and mode == "max":
    raise ArgumentError("embedding_bag: scale_grad_by_freq does not go with mode 'max'")
  if per_sample_weights is not None and mode != "sum": raise ArgumentError("per_sample_weights go with mode 'sum'")
  if per_sample_weights is not None and sizes(per_sample_weights) != sizes(input):
    raise ShapeError(f"per_sample_weights have shape {per_sample_weights.shape}, not {input.shape}")
  if input.ndim not in (1, 2):
    raise ShapeError(f"embedding_bag wants a vector or a matrix of indices, not {input.shape}")
  if (input.ndim == 1) != isinstance(offsets, Handle):
    raise ArgumentError("embedding_bag wants offsets with a vector of indices, and none with a matrix")
  want_float("embedding_bag's weight", checked("embedding_bag", weight))
  rows = embedding(input.reshape(-1), weight, None, max_norm, norm_type, scale_grad_by_freq)
  total, columns = sizes(rows)[0], sizes(weight)[1]
  if isinstance(offsets, Handle):
    inside, rows = _in_bags(offsets._self(), total, include_last_offset), rows.unsqueeze(0)
  else: inside, rows = input.const_like(True, dtypes.bool), rows.reshape(*sizes(input), columns)
  if not total: return Tensor.zeros(sizes(inside)[0], columns, dtype=weight.dtype)
  if padding_idx is not None: inside = inside & input.ne(padding_idx % sizes(weight)[0])
  if mode == "max":
    best = inside.unsqueeze(2).where(rows, -math.inf).max(1)
    return inside.any(1, keepdim=True).where(best, 0)
  shares = inside.cast(weight.dtype)
  if per_sample_weights is not None: shares = shares.mul(per_sample_weights)
  found = inside.unsqueeze(2).where(rows, 0).mul(shares.unsqueeze(2)).sum(1)
  return found if mode == "sum" else found.div(shares.sum(1, keepdim=True).maximum(1))
