"""Kinds of types that functions of PyTorch take: a table by name, and the check.

Tensor's methods compute with more types than PyTorch's functions: the gelu of integers casts them, a product of bools
is their conjunction. A program that gets there in PyTorch has a fault, and PyTorch raises. So does `compat.torch`.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
from typing import Any

from tinyhw.errors import DTypeError
from tinyhw.functional.operands import rank
from tinyhw.methods.base import Handle

# What the first operand may be: 0 bools, 1 integers, 2 floats, 3 complex numbers. Names outside of torch and
# nn.functional have their namespace.
_ROWS = {
  "2": """cauchy exponential log_normal native_group_norm native_layer_norm native_batch_norm
    _native_batch_norm_legit _batch_norm_with_update group_norm instance_norm layer_norm batch_norm adaptive_avg_pool1d
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d max_pool1d
    fractional_max_pool2d fractional_max_pool3d max_unpool1d max_unpool2d max_unpool3d _upsample_bilinear2d_aa
    upsample_bilinear glu hypot smooth_l1_loss mse_loss huber_loss dropout dropout1d dropout2d dropout3d alpha_dropout
    pdist kl_div _segment_reduce segment_reduce hardswish leaky_relu elu celu selu rrelu
    hardsigmoid logsigmoid mish softshrink hardshrink gelu softplus igamma igammac special.gammainc special.gammaincc
    prelu grid_sample grid_sampler grid_sampler_2d grid_sampler_3d ctc_loss nll_loss cross_entropy binary_cross_entropy
    binary_cross_entropy_with_logits multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
    soft_margin_loss max_pool2d_with_indices_backward""",
  "23": """logaddexp logaddexp2 _softmax_backward_data normalize rms_norm silu scaled_dot_product_attention dist lerp
    renorm linalg.vecdot masked.mean masked.norm masked.softmax masked.log_softmax masked.softmin masked.normalize
    masked.logaddexp""",
  "12": """isin median nanmedian kthvalue topk argmax argmin masked.argmax masked.argmin masked.amax masked.amin
    bucketize""",
  "123": """addmm addmv addbmm baddbmm dot vdot bmm mv mm inner tensordot linear bilinear conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d avg_pool1d avg_pool2d avg_pool3d max_pool2d max_pool3d
    local_response_norm softsign tanhshrink threshold hardtanh relu6 softmin cov corrcoef addcmul trace gradient
    index_reduce mvlgamma special.multigammaln trapz trapezoid cumulative_trapezoid poisson_nll_loss clamp clip
    linalg.matrix_power linalg.multi_dot linalg.vander linalg.matmul masked.cumsum masked.cumprod masked.var masked.std
    masked.logsumexp matmul""",
  "012": "sign deg2rad rad2deg max min nansum unique_consecutive",
}
KINDS: dict[str, frozenset[int]] = {
  name: frozenset(int(c) for c in ranks) for ranks, names in _ROWS.items() for name in names.split()}
_WORDS = ("bools", "integers", "floats", "complex numbers")

def of_kinds(function: Callable[..., Any], namespace: str, name: str) -> Callable[..., Any]:
  """Let a function refuse types that PyTorch's refuses, by the table. Raises DTypeError."""
  kinds = KINDS.get(name if namespace in ("", "methods", "nn.functional") else f"{namespace}.{name}")
  if kinds is None: return function
  @functools.wraps(function)
  def called(*args: Any, **keywords: Any) -> Any:
    x = args[0] if args else keywords.get("input")
    if isinstance(x, Handle) and rank(x.dtype) not in kinds:
      wanted = " and ".join([_WORDS[k] for k in sorted(kinds)])
      way = "cast with .float()" if 2 in kinds and rank(x.dtype) < 2 else "cast first"
      raise DTypeError(f"{name} takes {wanted}, not {x.dtype}; {way}")
    return function(*args, **keywords)
  return called
