"""Operators of ONNX with a state that a later call continues: linear attention and causal convolutions.

Linear attention computes chunks of the sequence by matrix products, and passes a state from chunk to chunk. Within a
chunk, u[t] is the update of the state by token t, and G[t] the sum of decays until t:

  S[t] = exp(G[t]) S[0] + sum over s <= t of exp(G[t] - G[s]) k[s] u[s]'
  u[t] = v[t], or for the delta rule beta[t] (v[t] - S' k[t]), with the S before token t, decayed

So the updates of the delta rule solve a triangular system.

Source: ONNX operator schemas (ai.onnx 27); Yang et al. 2024.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.nn.onnx.data import wide
from tinyhw.nn.onnx.operator import operator
from tinyhw.nn.onnx.ops.shape import sizes
from tinyhw.tensor import Tensor

_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}

@operator("LinearAttention", 27)
def linear_attention(q: Tensor, k: Tensor, v: Tensor, past: Tensor | None = None, decay: Tensor | None = None,
                     beta: Tensor | None = None, *, q_num_heads: int, kv_num_heads: int, chunk_size: int = 64,
                     scale: float = 0.0, update_rule: str = "gated_delta") -> Any:
  """Attend without softmax. q, k, v: (B, T, heads * d)  ->  (B, T, q heads * dv) and the state (B, heads, dk, dv)."""
  if update_rule not in _RULES: raise ArgumentError(f"update_rule is one of {', '.join(_RULES)}, not {update_rule!r}")
  gated, delta = _RULES[update_rule]
  if gated and decay is None or delta and beta is None:
    raise ArgumentError(f"the rule {update_rule} wants {'decay' if gated and decay is None else 'beta'}")
  groups = q_num_heads // max(kv_num_heads, 1)
  if min(groups, chunk_size) < 1 or groups * kv_num_heads != q_num_heads:
    raise ArgumentError(f"{q_num_heads} query heads do not share {kv_num_heads} key heads in chunks of {chunk_size}")
  queries = _split(q, q_num_heads)
  batch, _, steps, width = sizes(queries)
  queries = queries.reshape(batch, kv_num_heads, groups, steps, width) * (scale or 1 / math.sqrt(width))
  keys, values = _split(k, kv_num_heads), _split(v, kv_num_heads)
  decays = _split(decay, kv_num_heads) if gated and decay is not None else None
  rates = _rates(beta, kv_num_heads) if delta and beta is not None else None
  state = (Tensor.zeros(batch, kv_num_heads, width, values.shape[3], dtype=keys.dtype, device=q.device) if past is None
           else wide(past))
  results = []
  for begin in range(0, steps, chunk_size):
    part = (slice(None), slice(None), slice(begin, begin + chunk_size))
    y, state = _chunk(queries[:, :, :, begin:begin + chunk_size], keys[part], values[part],
                      None if decays is None else decays[part], None if rates is None else rates[part], state)
    results.append(y)
  if not results: return q, state.cast(q.dtype)
  y = results[0].cat(*results[1:], dim=3).reshape(batch, q_num_heads, steps, -1)
  return (y.transpose(1, 2).reshape(batch, steps, -1).cast(q.dtype),
          state.cast(q.dtype if past is None else past.dtype))

def _split(x: Tensor, heads: int) -> Tensor:
  """(B, T, heads * d) -> (B, heads, T, d), in float32 at least."""
  if x.ndim != 3 or int(x.shape[2]) % heads: raise ShapeError(f"{x.shape} does not split into {heads} heads")
  return wide(x).reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

def _rates(beta: Tensor, heads: int) -> Tensor:
  """(B, T, heads or 1) -> (B, heads or 1, T, 1)."""
  return _split(beta, heads if int(beta.shape[-1]) == heads else 1)

def _chunk(q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None, beta: Tensor | None,
           state: Tensor) -> tuple[Tensor, Tensor]:
  """Return the results of a chunk, and the state after it. q: (B, heads, groups, T, dk)."""
  steps = int(k.shape[2])
  total = None if decay is None else decay.cumsum(2)                                # G: (B, heads, T, dk or 1)
  decayed = k if total is None else k * total.exp()
  rows = Tensor.arange(steps, device=k.device)
  seen: Tensor = rows.reshape(-1, 1) >= rows.reshape(1, -1)
  if beta is None: updates = v
  else:
    products = _products(k, k, total) * beta
    earlier = (rows.reshape(-1, 1) > rows.reshape(1, -1)).where(products, 0)
    updates = _inverse(earlier).matmul(beta * (v - decayed.matmul(state)))
  groups = []
  for g in range(int(q.shape[2])):
    own = q[:, :, g]
    inside = seen.where(_products(own, k, total), 0).matmul(updates)
    groups.append((own if total is None else own * total.exp()).matmul(state) + inside)
  y = groups[0].stack(*groups[1:], dim=2)
  if total is None: return y, state + k.transpose(2, 3).matmul(updates)
  last = total[:, :, -1:]
  kept = (k * (last - total).exp()).transpose(2, 3).matmul(updates)
  return y, state * last.exp().transpose(2, 3) + kept

def _products(a: Tensor, k: Tensor, total: Tensor | None) -> Tensor:
  """Return sums over d of a[t, d] exp(G[t, d] - G[s, d]) k[s, d]: (B, heads, T, T). Only those with s <= t are of
  use."""
  if total is None: return a.matmul(k.transpose(2, 3))
  apart = (total.unsqueeze(3) - total.unsqueeze(2)).minimum(0).exp()                # (B, heads, T, T, dk or 1)
  if int(total.shape[3]) == 1: return a.matmul(k.transpose(2, 3)) * apart.squeeze(4)
  return (a.unsqueeze(3) * apart * k.unsqueeze(2)).sum(4)

def _inverse(lower: Tensor) -> Tensor:
  """Return the inverse of I + a strictly lower triangular matrix, from blocks of 1 to blocks of twice the size."""
  n = int(lower.shape[-1])
  place = Tensor.arange(n, dtype=dtypes.int32, device=lower.device)
  found: Tensor = Tensor.eye(n, dtype=lower.dtype, device=lower.device)
  size = 1
  while size < n:
    pair, half = place // (2 * size), place // size
    below = pair.reshape(-1, 1).eq(pair.reshape(1, -1)) & (half.reshape(-1, 1) > half.reshape(1, -1))
    found = found - found.matmul(below.where(lower, 0)).matmul(found)
    size *= 2
  return found

@operator("CausalConvWithState", 27)
def causal_conv_with_state(x: Tensor, w: Tensor, bias: Tensor | None = None, past: Tensor | None = None, *,
                           activation: str = "none") -> Any:
  """Convolve each channel with its own weights, over the present and earlier elements. x: (B, C, T)  w: (C, 1, k)  ->
  (B, C, T) and the last k - 1 elements (B, C, k - 1). Without `past`, zeros come before x."""
  if x.ndim != 3 or w.ndim != 3 or w.shape[1] != 1 or w.shape[0] != x.shape[1]:
    raise ShapeError(f"a convolution of each channel of {x.shape} (B, C, T) wants weights (C, 1, k), not {w.shape}")
  if activation not in ("none", "silu", "swish"):
    raise ArgumentError(f"activation is none, silu or swish, not {activation!r}")
  batch, channels, _ = sizes(x)
  lead = int(w.shape[2]) - 1
  before = Tensor.zeros(batch, channels, lead, dtype=x.dtype, device=x.device) if past is None else past
  if sizes(before) != (batch, channels, lead):
    raise ShapeError(f"the state has shape {before.shape}, and {batch, channels, lead} is wanted")
  given = before.cat(x, dim=2) if lead else x
  y = wide(given).conv2d(wide(w), None if bias is None else wide(bias), channels).cast(x.dtype)
  if activation != "none": y = wide(y).silu().cast(x.dtype)
  return y, given[:, :, int(x.shape[2]):]
