"""The meaning of methods of Tensor in NumPy, as a table: one row is a method, arguments, and the operands that it
takes.

test_methods.py runs every row on awkward operands (no elements, no axes, infinities, NaN); random programs
(generators/tensor_methods.py) draw rows as well.
"""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import Any, NamedTuple

import numpy as np

from tinyhw import Tensor, dtypes

KINDS = {"floats": ("float32", "float64", "float16"), "wide": ("float32", "float64"),
         "ints": ("int32", "int64", "uint8", "int8"), "bool": ("bool",),
         "signed": ("int32", "int64", "int8", "float32", "float64"),
         "numbers": ("int32", "int64", "uint8", "float32", "float64"),
         "all": ("int32", "int64", "uint8", "float32", "float64", "bool")}

SUMS = {"bool": np.int32, "int8": np.int32, "uint8": np.uint32}   # what narrow types are added up in

class Row(NamedTuple):
  """A method. array, tensor: what it does. kinds: names in KINDS. axes: least number of axes. result: "same" keeps
  values (a movement), "exact" is to be equal, "about" may be rounded differently. low, high: of floats that it is
  given. special: also infinities, NaN and -0.0."""
  name: str
  array: Callable[[Any], Any]
  tensor: Callable[[Tensor], Any]
  kinds: str = "all"
  axes: int = 0
  result: str = "same"
  low: float = -math.inf
  high: float = math.inf
  special: bool = False
  elements: int = 0      # least number of them

  def takes(self, a: Any) -> bool:
    """Is an array an operand of this row?"""
    if str(a.dtype) not in KINDS[self.kinds] or a.ndim < self.axes or a.size < self.elements: return False
    if self.axes and self.elements and 0 in a.shape: return False
    if a.dtype.kind != "f" or not a.size: return True
    return bool(np.isfinite(a).all()) and self.low <= a.min() and a.max() <= self.high

def method(name: str, array: Callable[[Any], Any], *args: Any, tensor: Callable[[Tensor], Any] | None = None,
           **options: Any) -> Row:
  """A row for t.name(*args)."""
  return Row(name, array, tensor or (lambda t: getattr(t, name)(*args)), **options)

def about(name: str, array: Callable[[Any], Any], *args: Any, kinds: str = "floats", **options: Any) -> Row:
  """A row for a function of floats: computed in float64 and rounded."""
  return method(name, lambda a: np.asarray(array(a.astype(np.float64))).astype(a.dtype), *args, kinds=kinds,
                result="about", **options)

def _sigmoid(a: Any) -> Any: return 0.5 + 0.5 * np.tanh(a / 2)
def _softplus(a: Any) -> Any: return np.logaddexp(a, 0)
def _erf(a: Any) -> Any: return np.vectorize(math.erf, otypes=[float])(a)
def _softmax(a: Any) -> Any:
  e = np.exp(a - a.max(-1, keepdims=True, initial=-np.inf))
  return e / e.sum(-1, keepdims=True)
def _expm1(a: Any) -> Any: return np.where(a > 0, a, np.expm1(np.minimum(a, 0)))
def _sum(a: Any) -> Any: return a.sum(dtype=SUMS.get(str(a.dtype), a.dtype))

FUNCTIONS = [
  about("acos", np.arccos, low=-1, high=1), about("acosh", np.arccosh, low=1), about("asin", np.arcsin, low=-1, high=1),
  about("asinh", np.arcsinh),
  about("atan", np.arctan), about("atanh", np.arctanh, low=-0.9, high=0.9), about("cos", np.cos, kinds="wide"),
  about("sin", np.sin, kinds="wide"),
  about("tan", np.tan, low=-1, high=1), about("cosh", np.cosh, low=-8, high=8), about("sinh", np.sinh, low=-8, high=8),
  about("tanh", np.tanh),
  about("exp", np.exp, low=-8, high=8), about("exp2", np.exp2, low=-8, high=8), about("log", np.log, low=0.1),
  about("log2", np.log2, low=0.1),
  about("log10", np.log10, low=0.1), about("sqrt", np.sqrt, low=0), about("rsqrt", lambda a: 1 / np.sqrt(a), low=0.1),
  about("reciprocal", lambda a: 1 / a, low=0.1), about("erf", _erf), about("sigmoid", _sigmoid),
  about("silu", lambda a: a * _sigmoid(a)),
  about("swish", lambda a: a * _sigmoid(a)), about("mish", lambda a: a * np.tanh(_softplus(a))),
  about("softplus", _softplus),
  about("logsigmoid", lambda a: -_softplus(-a)), about("softsign", lambda a: a / (1 + abs(a))), about("elu", _expm1),
  about("celu", _expm1),
  about("selu", lambda a: 1.0507009873554805 * np.where(a > 0, a, 1.6732632423543772 * np.expm1(np.minimum(a, 0)))),
  about("leaky_relu", lambda a: np.where(a < 0, a * 0.01, a)), about("quick_gelu", lambda a: a * _sigmoid(1.702 * a)),
  about("gelu", lambda a: a / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a ** 3))), low=-30, high=30),
  about("hardsigmoid", lambda a: np.clip(a / 6 + 0.5, 0, 1)),
  about("hardswish", lambda a: a * np.clip(a + 3, 0, 6) / 6),
  about("logaddexp", lambda a: np.logaddexp(a, 1), 1.0),
  about("lerp", lambda a: a + (2 - a) * 0.25, tensor=lambda t: t.lerp(t * 0 + 2, 0.25)),
  about("softmax", _softmax, axes=1, elements=1), about("softmin", lambda a: _softmax(-a), axes=1, elements=1),
  about("log_softmax", lambda a: a - np.logaddexp.reduce(a, -1, keepdims=True), axes=1, elements=1, kinds="wide"),
  about("logsumexp", lambda a: np.logaddexp.reduce(a, 0), 0, axes=1, elements=1, kinds="wide"),
  about("logcumsumexp", lambda a: np.logaddexp.accumulate(a, 0), axes=1, elements=1, kinds="wide"),
  about("mean", lambda a: a.mean(-1), -1, axes=1, elements=1),
  about("var", lambda a: a.var(0, ddof=0), 0, False, 0, axes=1, elements=1, kinds="wide"),
  about("std", lambda a: a.std(0, ddof=0), 0, False, 0, axes=1, elements=1, kinds="wide"),
  about("var_mean", lambda a: np.stack([a.var(-1, ddof=0), a.mean(-1)]), axes=1, elements=1, kinds="wide",
        tensor=lambda t: Tensor.stack(*t.var_mean(-1, correction=0))),
  about("std_mean", lambda a: np.stack([a.std(-1, ddof=0), a.mean(-1)]), axes=1, elements=1, kinds="wide",
        tensor=lambda t: Tensor.stack(*t.std_mean(-1, correction=0))),
  about("layernorm", lambda a: (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5), axes=1,
        elements=1,
        kinds="wide"),
  about("normalize", lambda a: a / np.maximum(np.abs(a).sum(-1, keepdims=True), 1e-3), axes=1, kinds="wide",
        tensor=lambda t: t.normalize(1, -1, 1e-3)),
  about("div", lambda a: a / 3, 3), about("pow", lambda a: a ** 3, 3, low=-8, high=8),
  about("square", np.square, low=-100, high=100),
  about("dropout", lambda a: a, tensor=lambda t: t.dropout(0.5)),
  about("binary_crossentropy", lambda a: -np.log(np.clip(a, 0.1, 0.9)).mean(), low=0.1, high=0.9, elements=1,
        kinds="wide",
        tensor=lambda t: t.binary_crossentropy(t.ones_like())),
  about("binary_crossentropy_logits", lambda a: _softplus(-a).mean(), elements=1, kinds="wide",
        tensor=lambda t: t.binary_crossentropy_logits(t.ones_like())),
  about("cross_entropy", lambda a: -(a - np.logaddexp.reduce(a, -1, keepdims=True))[..., 0].mean(), axes=1, elements=1,
        kinds="wide",
        tensor=lambda t: t.reshape(-1,
                                   t.shape[-1]).cross_entropy(Tensor([0],
                                                                     device=t.device).expand(
  t.numel() // t.shape[-1]))),
  about("sparse_categorical_crossentropy", lambda a: -(a - np.logaddexp.reduce(a, -1, keepdims=True))[..., 0].mean(),
        axes=1, elements=1,
        kinds="wide", tensor=lambda t: t.sparse_categorical_crossentropy(t[..., 0].const_like(0).cast(dtypes.int32))),
  about("nll_loss", lambda a: -a[..., 0].mean(), axes=1, elements=1, kinds="wide",
        tensor=lambda t: t.reshape(-1, t.shape[-1]).nll_loss(Tensor([0],
                                                                    device=t.device).expand(t.numel() // t.shape[-1]))),
  about("batchnorm", lambda a: (a - 0.5) * 2, axes=2, tensor=lambda t: t.batchnorm(None, None, *[
    Tensor([x], dtype=t.dtype, device=t.device).expand(t.shape[1]) for x in (0.5, 2.0)])),
]

EXACT = [   # also of infinities and NaN where `special` says so
  method("neg", np.negative, kinds="signed", special=True), method("abs", np.abs, kinds="signed", special=True),
  method("sign", np.sign, kinds="signed", result="exact", special=True),
  method("relu", lambda a: np.maximum(a, a.dtype.type(0)), kinds="signed"),
  method("relu6", lambda a: np.clip(a, 0, 6).astype(a.dtype), kinds="signed", special=True),
  method("hardtanh", lambda a: np.clip(a, -1, 1).astype(a.dtype), kinds="signed", special=True),
  method("clamp", lambda a: np.clip(a, 1, 2).astype(a.dtype), 1, 2, kinds="numbers", special=True),
  method("clip", lambda a: np.minimum(a, a.dtype.type(2)), None, 2, kinds="numbers", special=True),
  *[method(name, f, kinds="floats", result="exact", special=True)
    for name, f in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", np.round))],
  *[method(name, f, kinds="floats", result="exact", special=True) for name,
    f in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite))],
  method("logical_not", np.logical_not, result="exact", special=True),
  method("bitwise_not", np.invert, kinds="ints", result="exact"),
  *[method(name, lambda a, f=f: f(a, a.dtype.type(1)), 1, kinds="numbers", result="exact", special=True)
    for name, f in (("eq", np.equal), ("ne", np.not_equal), ("maximum", np.maximum), ("minimum", np.minimum))],
  *[method(name, lambda a, f=f: f(a, a.dtype.type(1)), 1, kinds="numbers", result="exact", special=True)
    for name, f in (("lt", np.less), ("gt", np.greater), ("le", np.less_equal), ("ge", np.greater_equal))],
  method("add", lambda a: a + a.dtype.type(1), 1, kinds="numbers", result="about", special=True),
  method("sub", lambda a: a.dtype.type(1) - a, 1, True, kinds="signed", result="about", special=True),
  method("mul", lambda a: a * a.dtype.type(2), 2, kinds="numbers", result="about", special=True),
  method("idiv", lambda a: a // a.dtype.type(3), 3, kinds="ints", result="exact"),
  method("mod", lambda a: np.mod(a, a.dtype.type(3)), 3, kinds="ints", result="exact"),
  method("fmod", lambda a: np.fmod(a, a.dtype.type(3)), 3, kinds="numbers", result="exact"),
  method("copysign", lambda a: np.copysign(a, -1).astype(a.dtype), -1.0, kinds="floats", special=True),
  method("lshift", lambda a: np.left_shift(a, a.dtype.type(2)), 2, kinds="ints", result="exact"),
  method("rshift", lambda a: np.right_shift(a, a.dtype.type(2)), 2, kinds="ints", result="exact"),
  method("bitwise_and", lambda a: a & a.dtype.type(5), 5, kinds="ints", result="exact"),
  method("bitwise_or", lambda a: a | a.dtype.type(5), 5, kinds="ints", result="exact"),
  method("bitwise_xor", lambda a: a ^ a.dtype.type(5), 5, kinds="ints", result="exact"),
  method("isclose", lambda a: np.isclose(a, a), kinds="wide", result="exact", special=True,
         tensor=lambda t: t.isclose(t)),
  method("allclose", lambda a: np.bool_(True), kinds="numbers", result="exact",
         tensor=lambda t: Tensor(t.allclose(t), device=t.device)),
  method("masked_fill", lambda a: np.where(a == a, a.dtype.type(1), a), kinds="numbers",
         tensor=lambda t: t.masked_fill(t.eq(t), 1)),
  method("where", lambda a: np.where(a > 0, a, a.dtype.type(0)), kinds="numbers", special=True,
         tensor=lambda t: (t > 0).where(t, 0)),
  method("cast", lambda a: a.astype(np.float64), "float64", special=True),
  method("double", lambda a: a.astype(np.float64), special=True),
  method("float", lambda a: a.astype(np.float32), kinds="bool"),
  method("int", lambda a: a.astype(np.int32), kinds="bool"),
  method("long", lambda a: a.astype(np.int64), kinds="ints", result="exact"),
  method("short", lambda a: a.astype(np.int16), kinds="ints", result="exact"),
  method("half", lambda a: a.astype(np.float16), kinds="bool"), method("bool", lambda a: a.astype(bool), result="exact",
                                                                       special=True),
  method("bfloat16", lambda a: a.astype(np.float32), kinds="bool"),
  method("bitcast", lambda a: np.ascontiguousarray(a).view(np.uint8), "uint8", kinds="ints", axes=1,
         result="exact"),
]

REDUCTIONS = [
  method("sum", _sum, result="about"), method("sum", lambda a: a.sum(-1), -1, kinds="wide", axes=1, result="about"),
  method("prod", lambda a: a.prod(-1, dtype=a.dtype), -1, kinds="wide", axes=1, result="about", low=-2, high=2),
  method("max", lambda a: a.max(-1), -1, axes=1, elements=1), method("min", lambda a: a.min(0, keepdims=True), 0, True,
                                                                     axes=1, elements=1),
  method("any", lambda a: a.astype(bool).any(-1), -1, axes=1, result="exact"),
  method("all", lambda a: np.asarray(a.astype(bool).all()), result="exact"),
  method("argmax", lambda a: a.argmax(-1).astype(np.int32), -1, axes=1, elements=1, result="exact"),
  method("argmin", lambda a: np.int32(a.argmin()), kinds="numbers", elements=1, result="exact"),
  method("cumsum", lambda a: a.cumsum(-1, dtype=a.dtype), -1, kinds="wide", axes=1, result="about"),
  method("cumprod", lambda a: a.cumprod(0, dtype=a.dtype), kinds="wide", axes=1, result="about", low=-2, high=2),
  method("cummax", lambda a: np.maximum.accumulate(a, 0), axes=1, kinds="numbers", tensor=lambda t: t.cummax(0)[0]),
  method("cummin", lambda a: np.minimum.accumulate(a, -1), axes=1, kinds="numbers", tensor=lambda t: t.cummin(-1)[0]),
  method("sort", lambda a: np.sort(a, -1), axes=1, tensor=lambda t: t.sort(-1)[0]),
  method("argsort", lambda a: np.argsort(a, 0, kind="stable").astype(np.int32), 0, axes=1, result="exact"),
  method("topk", lambda a: np.flip(np.sort(a, -1), -1)[..., :1], axes=1, elements=1, tensor=lambda t: t.topk(1)[0]),
]

MOVEMENTS = [
  method("reshape", lambda a: a.reshape(-1), -1, elements=1),
  method("view", lambda a: a.reshape(1, *a.shape), tensor=lambda t: t.view(1, *t.shape)),
  method("expand", lambda a: np.broadcast_to(a, (2, *a.shape)), tensor=lambda t: t.expand(2, *t.shape)),
  method("permute", lambda a: a.transpose(*range(a.ndim)[::-1]), tensor=lambda t: t.permute(*range(t.ndim)[::-1]),
         axes=1),
  method("transpose", lambda a: np.swapaxes(a, 0, -1), 0, -1, axes=1),
  method("T", lambda a: np.swapaxes(a, 0, 1), axes=2, tensor=lambda t: t.T
         if t.ndim == 2 else t.transpose(0, 1)),
  method("flip", lambda a: np.flip(a, -1), -1, axes=1), method("flatten", lambda a: a.reshape(-1)),
  method("unflatten", lambda a: a.reshape(1, *a.shape), 0, (1, -1), axes=1, elements=1), method("squeeze", np.squeeze),
  method("unsqueeze", lambda a: a[..., None], -1), method("shrink", lambda a: a[1:], axes=1, elements=1,
                                                          tensor=lambda t: t.shrink([(1, t.shape[0])] + [None]
                                                                                    * (t.ndim - 1))),
  method("shrink_to", lambda a: a[:1], axes=1, elements=1, tensor=lambda t: t.shrink_to(1, *[None] * (t.ndim - 1))),
  method("pad", lambda a: np.pad(a, [(0, 0)] * (a.ndim - 1) + [(1, 2)]), (1, 2), axes=1),
  method("pad_to", lambda a: np.pad(a, [(0, 2)] + [(0, 0)] * (a.ndim - 1)), axes=1,
         tensor=lambda t: t.pad_to(t.shape[0] + 2, *t.shape[1:])),
  method("split", lambda a: a[:2], axes=1, elements=1, tensor=lambda t: t.split(2)[0]),
  method("chunk", lambda a: a[:-(-len(a) // 2)], axes=1, elements=1, tensor=lambda t: t.chunk(2)[0]),
  method("unfold", lambda a: a[..., None], -1, 1, 1, axes=1, elements=1),
  method("diagonal", lambda a: np.diagonal(a, 1), 1, axes=2),
  method("diag", lambda a: np.diag(a.reshape(-1)), tensor=lambda t: t.flatten().diag()),
  method("tril", lambda a: np.tril(a), axes=2), method("triu", lambda a: np.triu(a, 1), 1, axes=2),
  method("roll", lambda a: np.roll(a, 1, -1), 1, -1, axes=1), method("roll", lambda a: np.roll(a, -2), -2),
  method("repeat", lambda a: np.tile(a, (2, *(1,) * a.ndim)), tensor=lambda t: t.repeat(2, *(1,) * t.ndim)),
  method("repeat_interleave", lambda a: np.repeat(a, 2), 2),
  method("stack", lambda a: np.stack([a, a]), tensor=lambda t: t.stack(t)),
  method("cat", lambda a: np.concatenate([a, a], -1), axes=1, tensor=lambda t: t.cat(t, dim=-1)),
  method("meshgrid", lambda a: np.meshgrid(a.reshape(-1), a.reshape(-1)[:2], indexing="ij")[1],
         tensor=lambda t: t.flatten().meshgrid(
    t.flatten()[:2])[1]),
  method("rearrange", lambda a: np.moveaxis(a, 0, -1), "a ... -> ... a", axes=1),
  method("contiguous", lambda a: a, special=True),
  method("contiguous_backward", lambda a: a), method("detach", lambda a: a), method("clone", lambda a: a, special=True),
  method("realize", lambda a: a, tensor=lambda t: (t.clone()).realize()),
  method("sequential", lambda a: a, [], kinds="all"),
  method("to", lambda a: a, tensor=lambda t: t.to(t.device)),
  method("ufix", lambda a: a[..., None], tensor=lambda t: t.ufix(t).unsqueeze(-1)),
  method("replace", lambda a: a, tensor=lambda t: t.zeros_like().replace(t)),
  method("assign", lambda a: a, tensor=lambda t: t.zeros_like().contiguous().realize().assign(t)),
  method("usum", lambda a: a * 2, kinds="wide", tensor=lambda t: Tensor.usum(t, t), result="about"),
  method("uprod", lambda a: a * a, kinds="wide", tensor=lambda t: Tensor.uprod(t, t), result="about", low=-100,
         high=100),
  method("__getitem__", lambda a: a[..., ::-1, None], axes=1, tensor=lambda t: t[..., ::-1, None]),
  method("__getitem__", lambda a: a[[0, -1]], axes=1, elements=1, tensor=lambda t: t[[0, -1]]),
  method("gather", lambda a: np.take_along_axis(a, np.zeros(a.shape, np.int64), -1), axes=1, elements=1,
         tensor=lambda t: t.gather(-1, t.const_like(0).cast(dtypes.int32))),
  method("scatter", lambda a: np.concatenate([a[..., -1:], a[..., 1:]], -1), axes=1, elements=1,
         tensor=lambda t: t.scatter(-1, t.const_like(0).cast(dtypes.int32), t)),
  method("scatter_reduce", lambda a: np.concatenate([a.max(-1, keepdims=True), a[..., 1:]], -1), axes=1, elements=1,
         kinds="numbers",
         tensor=lambda t: t.scatter_reduce(-1, t.const_like(0).cast(dtypes.int32), t, "amax")),
  method("masked_select", lambda a: a[a > 0], kinds="numbers", tensor=lambda t: t.masked_select(t > 0)),
  method("nonzero", lambda a: np.argwhere(a).astype(np.int32), result="exact"),
  method("one_hot", lambda a: (a[..., None] == np.arange(4)).astype(np.int32), 4, kinds="ints", result="exact"),
]

PRODUCTS = [
  about("dot", lambda a: a @ np.swapaxes(a, -1, -2), axes=2, kinds="wide", tensor=lambda t: t.dot(t.transpose(-1, -2)),
        low=-100, high=100),
  about("matmul", lambda a: np.swapaxes(a, -1, -2) @ a, axes=2, kinds="wide",
        tensor=lambda t: t.matmul(t.transpose(-1, -2), reverse=True), low=-100,
        high=100),
  about("linear", lambda a: a * 2 + 1, kinds="wide", axes=1,
        tensor=lambda t: t.linear(t[(0,) * (t.ndim - 1)].const_like(2), Tensor(
    1.0, dtype=t.dtype, device=t.device)), elements=1),
  about("einsum", lambda a: np.einsum("...i->...", a), axes=1, kinds="wide",
        tensor=lambda t: Tensor.einsum("...i->...", t)),
  about("scaled_dot_product_attention", lambda a: _softmax(a @ np.swapaxes(a, -1, -2) / math.sqrt(a.shape[-1])) @ a,
        axes=2,
        elements=1, kinds="wide",
        tensor=lambda t: t.scaled_dot_product_attention(t, t), low=-8, high=8),
  about("qr", lambda a: a, axes=2, elements=1, kinds="wide", tensor=lambda t: (lambda q, r: q @ r)(*t.qr())),
  about("svd", lambda a: np.linalg.svd(a, compute_uv=False), axes=2, elements=1, kinds="wide",
        tensor=lambda t: t.svd()[1]),
  about("newton_schulz", lambda a: 2 * a / (np.sqrt((a * a).sum((-1, -2), keepdims=True)) + 1e-7), 1, (2.0,), axes=2,
        elements=1,
        kinds="wide"),
  about("conv2d", lambda a: a[:, None] * 2, axes=2, elements=1, kinds="wide", tensor=lambda t: t.unsqueeze(1).conv2d(
    Tensor.full((1, 1, *(1,) * (t.ndim - 1)), 2.0, dtype=t.dtype, device=t.device))),
  about("conv_transpose2d", lambda a: a[:, None] * 2, axes=2, elements=1, kinds="wide",
        tensor=lambda t: t.unsqueeze(1).conv_transpose2d(
    Tensor.full((1, 1, *(1,) * (t.ndim - 1)), 2.0, dtype=t.dtype, device=t.device))),
  method("max_pool2d", lambda a: a, 1, kinds="numbers", axes=2, elements=1),
  about("avg_pool2d", lambda a: a, 1, axes=2, elements=1, kinds="wide"),
  method("max_unpool2d", lambda a: a, kinds="wide", axes=2, elements=1,
         tensor=lambda t: (lambda x, i: x.max_unpool2d(i, 1))(
    *t.max_pool2d(1, return_indices=True))),
  about("interpolate", lambda a: np.repeat(a, 2, -1), axes=1, elements=1, kinds="wide",
        tensor=lambda t: t.interpolate((2 * t.shape[-1],), "nearest")),
]

CREATION = [
  method("zeros_like", np.zeros_like), method("ones_like", np.ones_like),
  method("full_like", lambda a: np.full_like(a, 1), 1),
  method("const_like", lambda a: np.full_like(a, 1), 1),
  method("empty_like", lambda a: np.zeros_like(a), tensor=lambda t: t.empty_like().zeros_like()),
  method("zeros", lambda a: np.zeros(a.shape, np.float32), tensor=lambda t: Tensor.zeros(t.shape, device=t.device)),
  method("ones", lambda a: np.ones(a.shape, np.float32), tensor=lambda t: Tensor.ones(*t.shape, device=t.device)),
  method("full", lambda a: np.full(a.shape, 3, np.int32), tensor=lambda t: Tensor.full(t.shape, 3, device=t.device),
         result="exact"),
  method("empty", lambda a: np.zeros(a.shape, np.int16),
         tensor=lambda t: Tensor.empty(t.shape, device=t.device, dtype="int16").zeros_like()),
  method("arange", lambda a: np.arange(a.size, dtype=np.int32),
         tensor=lambda t: Tensor.arange(t.numel(), device=t.device), result="exact"),
  method("linspace", lambda a: np.linspace(0, a.size, a.size + 1, dtype=np.float32), result="about",
         tensor=lambda t: Tensor.linspace(
    0, t.numel(), t.numel() + 1, device=t.device)),
  method("eye", lambda a: np.eye(a.size % 5, 3, dtype=np.float32),
         tensor=lambda t: Tensor.eye(t.numel() % 5, 3, device=t.device)),
]

ROWS = [*FUNCTIONS, *EXACT, *REDUCTIONS, *MOVEMENTS, *PRODUCTS, *CREATION]
