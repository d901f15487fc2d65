"""Functions of several operations in float16 and bfloat16: computed in float32, and rounded once.

PyTorch's kernels do so. The operations of which such a function is composed here would round each step.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.methods.base import Handle

NARROW = (dtypes.float16, dtypes.bfloat16)
# Names outside of torch and nn.functional have their namespace. `div` and its kin: see ROUNDED.
WIDE = frozenset("""
  addbmm baddbmm addmm addmv addr addcmul addcdiv cov corrcoef cross linalg.cross gradient _softmax_backward_data
  lerp sinc special.sinc logit special.logit special.entr special.xlog1py cosine_similarity pairwise_distance cdist
  pdist renorm bilinear trapezoid trapz cumulative_trapezoid diff hypot logaddexp logaddexp2 logcumsumexp dist frac
  vander linalg.vander adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d
  lp_pool1d lp_pool2d lp_pool3d conv_transpose1d conv_transpose2d conv_transpose3d interpolate upsample
  upsample_bilinear _upsample_bilinear2d_aa grid_sample grid_sampler grid_sampler_2d grid_sampler_3d affine_grid
  local_response_norm normalize multi_head_attention_forward embedding_bag segment_reduce _segment_reduce
  binary_cross_entropy binary_cross_entropy_with_logits mse_loss l1_loss smooth_l1_loss huber_loss kl_div
  poisson_nll_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss soft_margin_loss multi_margin_loss
  multilabel_margin_loss multilabel_soft_margin_loss cosine_embedding_loss triplet_margin_loss
  triplet_margin_with_distance_loss ctc_loss linear_cross_entropy elu celu selu mish silu hardswish softplus gelu
  logsigmoid glu tanhshrink softsign hardsigmoid histc index_add index_put _unsafe_masked_index_put_accumulate
  scatter_add scatter_reduce index_reduce put masked.mean masked.var masked.std masked.norm masked.normalize
  masked.softmax masked.log_softmax masked.softmin masked.logsumexp masked.logaddexp masked.sum masked.prod
  masked.cumsum masked.cumprod norm linalg.norm linalg.vector_norm linalg.matrix_norm matrix_exp linalg.matrix_exp
  """.split())
# Quotients that are rounded to whole numbers: with `rounding_mode` alone.
ROUNDED = frozenset("div divide".split())

def widened(function: Callable[..., Any], namespace: str, name: str) -> Callable[..., Any]:
  """Let a function of the list compute in float32 where all its floats are of one narrow type."""
  full = name if namespace in ("", "methods", "nn.functional") else f"{namespace}.{name}"
  if full not in WIDE and full not in ROUNDED: return function
  @functools.wraps(function)
  def called(*args: Any, **keywords: Any) -> Any:
    kinds = _kinds(args) | _kinds(tuple(keywords.values()))
    if len(kinds) != 1 or not kinds <= set(NARROW) or "dtype" in keywords or full in ROUNDED and (
       len(args) < 3 and keywords.get("rounding_mode") is None): return function(*args, **keywords)
    found = function(*_cast(args, dtypes.float32), **{k: _cast(x, dtypes.float32) for k, x in keywords.items()})
    return _narrowed(found, next(iter(kinds)))
  return called

def _kinds(x: Any) -> set[DType]:
  if isinstance(x, Handle): return {x.dtype} if dtypes.is_float(x.dtype) else set()
  return set().union(*[_kinds(y) for y in x]) if isinstance(x, (tuple, list)) else set()

def _cast(x: Any, kind: DType) -> Any:
  if isinstance(x, Handle): return x._self().cast(kind) if x.dtype in NARROW else x
  return type(x)([_cast(y, kind) for y in x]) if type(x) in (tuple, list) else x

def _narrowed(x: Any, kind: DType) -> Any:
  if isinstance(x, Handle): return x._self().cast(kind) if x.dtype is dtypes.float32 else x
  if not isinstance(x, (tuple, list)): return x
  items = [_narrowed(y, kind) for y in x]
  return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
