"""`torch.autocast`: within it, products are computed in a narrow float type, and sensitive functions in float32.

The lists are those that PyTorch's documentation gives for CUDA. Operands of float64 stay as they are.
"""
from __future__ import annotations
from collections.abc import Callable
import functools
import threading
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError
from tinyhw.methods.base import Handle
from tinyhw.methods.checks import flag

LOWERED = frozenset("""matmul mm bmm mv addmm addmv addr addbmm baddbmm chain_matmul linear conv1d conv2d conv3d
  conv_transpose1d conv_transpose2d conv_transpose3d prelu scaled_dot_product_attention multi_head_attention_forward
  einsum""".split())
RAISED = frozenset("""acos asin cosh sinh tan exp expm1 log log10 log1p log2 pow reciprocal rsqrt cumprod cumsum sum
  prod norm dist pdist cdist renorm logsumexp softmax log_softmax softmin softplus gelu layer_norm group_norm
  cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy_with_logits
  hinge_embedding_loss
  margin_ranking_loss cosine_embedding_loss triplet_margin_loss multi_margin_loss multilabel_margin_loss
  soft_margin_loss poisson_nll_loss gaussian_nll_loss cosine_similarity""".split())

class _State(threading.local):
  dtype: DType | None = None

_state = _State()

class autocast:
  """A context and decorator. device_type: accepted; it decides the type where dtype is None (float16 for "cuda",
  bfloat16 for others)."""
  def __init__(self, device_type: str = "cuda", dtype: Any = None, enabled: bool = True,
               cache_enabled: bool | None = None):
    if not isinstance(device_type, str): raise ArgumentError(f"device_type is a name, not {device_type!r}")
    kind = dtype or (dtypes.float16 if device_type.startswith("cuda") else dtypes.bfloat16)
    if kind not in (dtypes.float16, dtypes.bfloat16, dtypes.float32):
      raise ArgumentError(f"autocast computes in float16, bfloat16 or float32, not in {kind}")
    self.dtype = kind if flag("enabled", enabled) else None
    self._before: list[DType | None] = []

  def __enter__(self) -> autocast:
    self._before.append(_state.dtype)
    _state.dtype = self.dtype
    return self

  def __exit__(self, *_: object) -> None: _state.dtype = self._before.pop()

  def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **keywords: Any) -> Any:
      with self: return function(*args, **keywords)
    return called

def is_autocast_enabled(device_type: str | None = None) -> bool:
  """Is an autocast in force here?"""
  return _state.dtype is not None

def get_autocast_dtype(device_type: str = "cuda") -> DType:
  """Return the type of products within an autocast of a device."""
  return _state.dtype or (dtypes.float16 if device_type.startswith("cuda") else dtypes.bfloat16)

def casting(function: Callable[..., Any], name: str) -> Callable[..., Any]:
  """Let a function of the lists cast its operands within an autocast."""
  if name not in LOWERED and name not in RAISED: return function
  lower = name in LOWERED
  @functools.wraps(function)
  def called(*args: Any, **keywords: Any) -> Any:
    if _state.dtype is None: return function(*args, **keywords)
    kind = _state.dtype if lower else dtypes.float32
    return function(*[_cast(x, kind) for x in args], **{k: _cast(x, kind) for k, x in keywords.items()})
  return called

def _cast(x: Any, kind: DType) -> Any:
  if isinstance(x, Handle):
    narrow = x.dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32)
    return x._self().cast(kind) if narrow and x.dtype is not kind else x
  return type(x)([_cast(y, kind) for y in x]) if type(x) in (list, tuple) else x
