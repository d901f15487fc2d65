"""Time one or more calls of each family of operations beside PyTorch's, on tensors of a million elements, and those of
linalg on matrices of 256 to 1,024 rows beside LAPACK, which PyTorch calls. The libraries take turns (turns.py).

    python3 test/bench/families.py [family or call ...] [--seconds 0.3] [--all] [--json FILE]

A call is one function of both, by `tinyhw.compat.torch` and `torch`. tinyhw runs captured (TinyJit), except for calls
that read numbers back to know the size of their result. Printed: the medians in milliseconds and tinyhw's time over
PyTorch's, the slowest first; only those above the bar unless --all is given. Bars: 2, and 4 for linalg.
"""
from __future__ import annotations
import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import turns
from turns import Run

N = 10**6
BAR, LINALG_BAR = 2.0, 4.0

class Call(NamedTuple):
  """A call that is timed: a function of a library and its inputs."""
  family: str
  f: Callable[..., Any]
  inputs: Callable[[], tuple[np.ndarray, ...]]
  reads_back: bool = False     # the size of the result depends on values, so it cannot be captured

def generator() -> np.random.Generator: return np.random.default_rng(0)
def normal(*shape: int) -> np.ndarray: return generator().standard_normal(shape, dtype=np.float32)
def unit(*shape: int) -> np.ndarray: return generator().random(shape, dtype=np.float32) * 0.98 + 0.01
def whole(most: int, *shape: int) -> np.ndarray: return generator().integers(0, most, shape, dtype=np.int64)
def mask(*shape: int) -> np.ndarray: return generator().random(shape, dtype=np.float32) < 0.5
def imaginary(*shape: int) -> np.ndarray: return (normal(*shape) + 1j * normal(*shape)[::-1]).astype(np.complex64)
def definite(n: int) -> np.ndarray:
  a = normal(n, n)
  return a @ a.T / n + np.eye(n, dtype=np.float32)

CALLS: dict[str, Call] = {}

def add(family: str, name: str, f: Callable[..., Any], *inputs: Callable[[], np.ndarray],
        reads_back: bool = False) -> None:
  CALLS[name] = Call(family, f, lambda: tuple([make() for make in inputs]), reads_back)

def pointwise() -> None:
  x, y, p, q = lambda: normal(N), lambda: normal(N) + 3, lambda: unit(N) * 5, lambda: unit(N)
  i, j = lambda: whole(1000, N), lambda: whole(1000, N) + 1
  for name in ("exp", "log1p", "sin", "tan", "atan", "sinh", "sigmoid", "tanh", "erf", "round", "frac", "sign", "sinc",
               "lgamma", "digamma", "isnan", "expm1", "rsqrt", "nan_to_num", "i0"):
    add("pointwise", name, lambda t, a, name=name: getattr(t, name)(a), p)
  for name in ("erfinv", "logit", "asin", "acosh", "atanh"):
    add("pointwise", name, lambda t, a, name=name: getattr(t, name)(a), q)
  for name in ("i0e", "i1", "i1e", "ndtri", "ndtr", "log_ndtr", "erfcx", "entr", "bessel_j0", "bessel_j1",
               "bessel_y0", "modified_bessel_k0", "spherical_bessel_j0", "airy_ai"):
    add("special", name, lambda t, a, name=name: getattr(t.special, name)(a), q)
  add("special", "polygamma", lambda t, a: t.polygamma(1, a), p)
  add("special", "zeta", lambda t, a, b: t.special.zeta(a + 1.5, b), p, p)
  add("special", "igamma", lambda t, a, b: t.igamma(a, b), p, q)
  add("special", "igammac", lambda t, a, b: t.igammac(a, b), p, q)
  add("special", "chebyshev", lambda t, a: t.special.chebyshev_polynomial_t(a, 8), q)
  add("special", "laguerre", lambda t, a: t.special.laguerre_polynomial_l(a, 8), q)
  for name in ("add", "mul", "div", "atan2", "hypot", "copysign", "nextafter", "remainder", "fmod", "floor_divide",
               "logaddexp", "xlogy", "maximum", "fmax", "eq", "lt", "isclose", "heaviside"):
    add("pointwise", name, lambda t, a, b, name=name: getattr(t, name)(a, b), x, y)
  add("pointwise", "pow", lambda t, a, b: t.pow(a, b), p, x)
  add("pointwise", "where", lambda t, m, a, b: t.where(m, a, b), lambda: mask(N), x, y)
  add("pointwise", "clamp", lambda t, a: t.clamp(a, -1, 1), x)
  add("pointwise", "lerp", lambda t, a, b: t.lerp(a, b, 0.3), x, y)
  add("pointwise", "addcmul", lambda t, a, b: t.addcmul(a, a, b, value=0.5), x, y)
  add("pointwise", "frexp", lambda t, a: t.frexp(a), x)
  add("pointwise", "ldexp", lambda t, a, b: t.ldexp(a, b % 10), x, i)
  for name in ("gcd", "lcm", "bitwise_and", "bitwise_xor", "floor_divide", "remainder", "bitwise_left_shift"):
    add("integers", f"{name} of integers", lambda t, a, b, name=name: getattr(t, name)(a, b % 60 + 1), i, j)

def reductions() -> None:
  x, rows, i = lambda: normal(N), lambda: normal(1000, 1000), lambda: whole(1000, N)
  for name in ("sum", "mean", "prod", "max", "argmax", "std", "var", "amin", "norm", "median", "count_nonzero",
               "aminmax"):
    add("reductions", name, lambda t, a, name=name: getattr(t, name)(a), x)
    if name in ("norm", "aminmax"): continue
    for axis in (0, 1):
      add("reductions", f"{name} along axis {axis}", lambda t, a, name=name, axis=axis: getattr(t, name)(a, dim=axis),
          rows)
  add("reductions", "logsumexp", lambda t, a: t.logsumexp(a, 1), rows)
  add("reductions", "any", lambda t, a: t.any(a > 9), x)
  add("reductions", "all of bools", lambda t, a: t.all(a, 1), lambda: mask(1000, 1000))
  add("statistics", "quantile", lambda t, a: t.quantile(a, 0.3, 1), rows)
  add("statistics", "mode", lambda t, a: t.mode(a), i)
  add("statistics", "mode of rows", lambda t, a: t.mode(a, 1), lambda: whole(100, 1000, 1000))
  add("statistics", "median of rows", lambda t, a: t.median(a, 1), rows)
  add("statistics", "nanmedian", lambda t, a: t.nanmedian(a), x)
  add("statistics", "kthvalue", lambda t, a: t.kthvalue(a, 1000), x)
  add("statistics", "histc", lambda t, a: t.histc(a, 100, -3, 3), x)
  add("statistics", "histogram", lambda t, a: t.histogram(a, 100, range=(-3.0, 3.0)), x)
  add("statistics", "bincount", lambda t, a: t.bincount(a), i, reads_back=True)
  add("statistics", "bincount with weights", lambda t, a, b: t.bincount(a, b), i, x, reads_back=True)
  add("statistics", "cov", lambda t, a: t.cov(a), lambda: normal(100, 10000))
  add("statistics", "corrcoef", lambda t, a: t.corrcoef(a), lambda: normal(100, 10000))
  add("statistics", "unique of integers", lambda t, a: t.unique(a), i, reads_back=True)
  add("statistics", "unique", lambda t, a: t.unique(a), x, reads_back=True)
  add("statistics", "unique with inverse and counts",
      lambda t, a: t.unique(a, return_inverse=True, return_counts=True), i, reads_back=True)
  add("statistics", "unique_consecutive", lambda t, a: t.unique_consecutive(a // 500), i, reads_back=True)
  add("statistics", "searchsorted", lambda t, a, b: t.searchsorted(a, b), lambda: np.sort(normal(N)), x)
  add("statistics", "bucketize", lambda t, a, b: t.bucketize(b, a), lambda: np.sort(normal(100)), x)
  add("statistics", "isin", lambda t, a, b: t.isin(a, b), i, lambda: whole(1000, 100))
  for name, shape in (("", (N,)), (" of rows", (1000, 1000)), (" of columns", (1000, 1000))):
    axis, data = (0 if name != " of rows" else 1), lambda shape=shape: normal(*shape)
    add("sorting", f"sort{name}", lambda t, a, axis=axis: t.sort(a, axis), data)
    add("sorting", f"topk{name}", lambda t, a, axis=axis: t.topk(a, 10, axis), data)
    for f in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
      add("cumulative", f"{f}{name}", lambda t, a, axis=axis, f=f: getattr(t, f)(a, axis), data)
  add("sorting", "sort of integers", lambda t, a: t.sort(a), i)
  add("sorting", "argsort, stable", lambda t, a: t.argsort(a, stable=True), x)
  add("sorting", "topk of 100,000", lambda t, a: t.topk(a, 100000), x)
  add("cumulative", "cumulative_trapezoid", lambda t, a: t.cumulative_trapezoid(a), x)
  add("cumulative", "diff", lambda t, a: t.diff(a), x)

def indexing() -> None:
  x, rows, at = lambda: normal(N), lambda: normal(1000, 1000), lambda: whole(N, N)
  few, wide, other = lambda: whole(1000, 1000), lambda: whole(1000, 1000, 1000), lambda: normal(1000, 1000) + 1
  each = lambda: generator().permutation(N)
  add("indexing", "gather", lambda t, a, i: t.gather(a, 0, i), x, at)
  add("indexing", "gather of rows", lambda t, a, i: t.gather(a, 1, i), rows, wide)
  add("indexing", "index_select", lambda t, a, i: t.index_select(a, 0, i), rows, few)
  add("indexing", "index_select of columns", lambda t, a, i: t.index_select(a, 1, i), rows, few)
  add("indexing", "take", lambda t, a, i: t.take(a, i), rows, at)
  add("indexing", "put", lambda t, a, i, b: a.put(i, b), x, each, x)
  add("indexing", "scatter", lambda t, a, i, b: t.scatter(a, 0, i, b), x, each, x)
  add("indexing", "scatter of rows", lambda t, a, i, b: t.scatter(a, 1, i, b), rows, wide, other)
  add("indexing", "scatter_add", lambda t, a, i, b: t.scatter_add(a, 0, i, b), x, at, x)
  add("indexing", "scatter_add to few", lambda t, a, i, b: t.scatter_add(a, 0, i, b), lambda: normal(100),
      lambda: whole(100, N), x)
  add("indexing", "scatter_add of rows", lambda t, a, i, b: t.scatter_add(a, 1, i, b), rows, wide, other)
  for how in ("amax", "mean", "prod"):
    add("indexing", f"scatter_reduce {how}", lambda t, a, i, b, how=how: t.scatter_reduce(a, 0, i, b, how), x, at, x)
  add("indexing", "index_add", lambda t, a, i, b: t.index_add(a, 0, i, b), rows, few, other)
  add("indexing", "index_add of columns", lambda t, a, i, b: t.index_add(a, 1, i, b), rows, few, other)
  add("indexing", "index_copy", lambda t, a, i, b: t.index_copy(a, 0, i, b), rows,
      lambda: generator().permutation(1000), other)
  add("indexing", "index_fill", lambda t, a, i: t.index_fill(a, 0, i, 2.0), rows, lambda: whole(1000, 100))
  add("indexing", "index_put", lambda t, a, i, b: t.index_put(a, (i,), b), x, each, x)
  add("indexing", "index_put, accumulate", lambda t, a, i, b: t.index_put(a, (i,), b, accumulate=True), x, at, x)
  add("indexing", "masked_fill", lambda t, a, m: t.masked_fill(a, m, 2.0), x, lambda: mask(N))
  add("indexing", "masked_select", lambda t, a, m: t.masked_select(a, m), x, lambda: mask(N), reads_back=True)
  add("indexing", "masked_scatter", lambda t, a, m, b: t.masked_scatter(a, m, b), x, lambda: mask(N), x)
  add("indexing", "nonzero", lambda t, m: t.nonzero(m), lambda: mask(N), reads_back=True)
  add("indexing", "select_scatter", lambda t, a, b: t.select_scatter(a, b, 0, 5), rows, lambda: normal(1000))

def shapes() -> None:
  x, rows = lambda: normal(N), lambda: normal(1000, 1000)
  add("shapes", "transpose", lambda t, a: a.t().contiguous(), rows)
  add("shapes", "flip", lambda t, a: t.flip(a, (0, 1)), rows)
  add("shapes", "roll", lambda t, a: t.roll(a, 300, 1), rows)
  add("shapes", "rot90", lambda t, a: t.rot90(a).contiguous(), rows)
  add("shapes", "tile", lambda t, a: t.tile(a, (2, 2)), lambda: normal(500, 500))
  add("shapes", "repeat_interleave", lambda t, a: t.repeat_interleave(a, 4, 0), lambda: normal(500, 500))
  add("shapes", "cat", lambda t, a, b: t.cat([a, b], 1), lambda: normal(1000, 500), lambda: normal(1000, 500))
  add("shapes", "stack", lambda t, a, b: t.stack([a, b], 1), lambda: normal(1000, 500), lambda: normal(1000, 500))
  add("shapes", "block_diag", lambda t, a, b: t.block_diag(a, b), lambda: normal(500, 500), lambda: normal(500, 500))
  add("shapes", "cartesian_prod", lambda t, a, b: t.cartesian_prod(a, b), lambda: normal(1000), lambda: normal(500))
  add("shapes", "combinations", lambda t, a: t.combinations(a), lambda: normal(1000))
  add("shapes", "tril", lambda t, a: t.tril(a), rows)
  add("shapes", "diag_embed", lambda t, a: t.diag_embed(a), lambda: normal(1000))
  add("shapes", "pad, reflect", lambda t, a: t.nn.functional.pad(a, (9, 9, 9, 9), "reflect"),
      lambda: normal(4, 4, 250, 250))
  add("shapes", "permute", lambda t, a: a.permute(2, 0, 1).contiguous(), lambda: normal(100, 100, 100))
  add("shapes", "as_strided", lambda t, a: t.as_strided(a, (1000, 500), (999, 2)).contiguous(), x)
  add("shapes", "unfold", lambda t, a: a.unfold(0, 8, 4).contiguous(), x)

def products() -> None:
  square = lambda: normal(512, 512)
  add("products", "addmm", lambda t, a, b, c: t.addmm(a, b, c), square, square, square)
  add("products", "addmv", lambda t, a, b, c: t.addmv(a, b, c), lambda: normal(1000), lambda: normal(1000, 1000),
      lambda: normal(1000))
  add("products", "bmm", lambda t, a, b: t.bmm(a, b), lambda: normal(64, 128, 128), lambda: normal(64, 128, 128))
  add("products", "baddbmm", lambda t, a, b: t.baddbmm(a, a, b), lambda: normal(64, 128, 128),
      lambda: normal(64, 128, 128))
  add("products", "tensordot", lambda t, a, b: t.tensordot(a, b, 2), lambda: normal(100, 100, 100),
      lambda: normal(100, 100, 100))
  add("products", "outer", lambda t, a, b: t.outer(a, b), lambda: normal(1000), lambda: normal(1000))
  add("products", "dot", lambda t, a, b: t.dot(a, b), lambda: normal(N), lambda: normal(N))
  add("products", "kron", lambda t, a, b: t.kron(a, b), lambda: normal(32, 32), lambda: normal(32, 32))
  add("products", "cdist", lambda t, a, b: t.cdist(a, b), lambda: normal(1000, 64), lambda: normal(1000, 64))
  add("products", "cdist, p=1", lambda t, a, b: t.cdist(a, b, 1.0), lambda: normal(1000, 64),
      lambda: normal(1000, 64))
  add("products", "pdist", lambda t, a: t.pdist(a), lambda: normal(1000, 64))
  add("products", "renorm", lambda t, a: t.renorm(a, 2, 0, 1.0), lambda: normal(1000, 1000))
  add("products", "einsum", lambda t, a, b: t.einsum("bij,bkj->bik", a, b), lambda: normal(64, 128, 128),
      lambda: normal(64, 128, 128))
  add("products", "cross", lambda t, a, b: t.cross(a, b, 1), lambda: normal(N // 3, 3), lambda: normal(N // 3, 3) + 1)
  add("products", "vander", lambda t, a: t.vander(a, 10), lambda: unit(N // 10))

def layers() -> None:
  x, y, rows = lambda: normal(N), lambda: normal(N) + 1, lambda: normal(1000, 1000)
  def call(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    return lambda t, *tensors: getattr(t.nn.functional, name)(*tensors, *args, **kwargs)
  for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"): add("losses", name, call(name), x, y)
  add("losses", "cross_entropy", call("cross_entropy"), rows, lambda: whole(1000, 1000))
  add("losses", "nll_loss", call("nll_loss"), lambda: normal(100000, 10), lambda: whole(10, 100000))
  add("losses", "binary_cross_entropy", call("binary_cross_entropy"), lambda: unit(N), lambda: unit(N))
  add("losses", "bce with logits", call("binary_cross_entropy_with_logits"), x, lambda: unit(N))
  add("losses", "kl_div", call("kl_div", reduction="batchmean"), rows, lambda: unit(1000, 1000))
  add("losses", "poisson_nll_loss", call("poisson_nll_loss"), x, lambda: unit(N))
  add("losses", "gaussian_nll_loss", call("gaussian_nll_loss"), x, y, lambda: unit(N))
  add("losses", "cosine_embedding_loss", call("cosine_embedding_loss"), rows, lambda: normal(1000, 1000) + 1,
      lambda: np.ones(1000, np.float32))
  add("losses", "triplet_margin_loss", call("triplet_margin_loss"), rows, lambda: normal(1000, 1000) + 1,
      lambda: normal(1000, 1000) + 2)
  add("losses", "multi_margin_loss", call("multi_margin_loss"), rows, lambda: whole(1000, 1000))
  add("losses", "multilabel_soft_margin_loss", call("multilabel_soft_margin_loss"), rows, lambda: unit(1000, 1000))
  lengths = lambda value: lambda: np.full(16, value, np.int64)
  add("losses", "ctc_loss", lambda t, a, b, c, d: t.nn.functional.ctc_loss(a.log_softmax(2), b, c, d),
      lambda: normal(200, 16, 300), lambda: whole(299, 16, 30) + 1, lengths(200), lengths(30))
  for name in ("relu", "gelu", "silu", "mish", "softplus", "elu", "selu", "hardswish", "logsigmoid"):
    add("activations", name, call(name), x)
  for name in ("softmax", "log_softmax", "softmin"):
    for axis in (0, 1): add("activations", f"{name} along axis {axis}", call(name, dim=axis), rows)
  add("activations", "glu", call("glu"), rows)
  image, line, volume = lambda: normal(4, 16, 125, 125), lambda: normal(4, 16, 15625), lambda: normal(4, 16, 25, 25, 25)
  for n, data in enumerate((line, image, volume), 1):
    for kind in ("max", "avg"): add("pooling", f"{kind}_pool{n}d", call(f"{kind}_pool{n}d", 3, 2, 1), data)
    add("pooling", f"lp_pool{n}d", call(f"lp_pool{n}d", 2.0, 3, 2), data)
    add("pooling", f"adaptive_avg_pool{n}d", call(f"adaptive_avg_pool{n}d", 7), data)
    add("pooling", f"adaptive_max_pool{n}d", call(f"adaptive_max_pool{n}d", 7), data)
    weight = lambda n=n: normal(16, 16, *(3,) * n)
    add("convolutions", f"conv{n}d", call(f"conv{n}d", padding=1), data, weight)
    add("convolutions", f"conv_transpose{n}d", call(f"conv_transpose{n}d", stride=2), data, weight)
  add("pooling", "max_pool2d with indices", call("max_pool2d", 3, 2, 1, return_indices=True), image)
  add("convolutions", "conv2d, depthwise", call("conv2d", padding=1, groups=16), image, lambda: normal(16, 1, 3, 3))
  add("convolutions", "conv2d, stride 2", call("conv2d", stride=2, padding=1), image, lambda: normal(16, 16, 3, 3))
  add("normalizations", "batch_norm", lambda t, a, m, v: t.nn.functional.batch_norm(a, m, v, training=True), image,
      lambda: normal(16), lambda: unit(16))
  add("normalizations", "layer_norm", call("layer_norm", (1000,)), rows)
  add("normalizations", "rms_norm", call("rms_norm", (1000,)), rows)
  add("normalizations", "group_norm", call("group_norm", 4), image)
  add("normalizations", "instance_norm", call("instance_norm"), image)
  add("normalizations", "local_response_norm", call("local_response_norm", 5), image)
  add("normalizations", "normalize", call("normalize"), rows)
  add("images", "grid_sample", call("grid_sample", align_corners=False), image,
      lambda: unit(4, 125, 125, 2) * 2 - 1)
  add("images", "affine_grid", lambda t, a: t.nn.functional.affine_grid(a, (4, 3, 300, 300), align_corners=False),
      lambda: normal(4, 2, 3))
  for how in ("nearest", "bilinear", "bicubic", "area"):
    add("images", f"interpolate, {how}", call("interpolate", (200, 90), mode=how), image)
  add("images", "pixel_shuffle", call("pixel_shuffle", 2), image)
  add("images", "pixel_unshuffle", call("pixel_unshuffle", 2), lambda: normal(4, 16, 124, 124))
  add("images", "unfold of images", call("unfold", 3, padding=1), lambda: normal(4, 4, 125, 125))
  add("images", "fold", call("fold", (125, 125), 3, padding=1), lambda: normal(4, 36, 15625))
  add("images", "channel_shuffle", call("channel_shuffle", 4), image)
  add("embeddings", "embedding", call("embedding"), lambda: whole(10000, 10000), lambda: normal(10000, 100))
  for how in ("mean", "sum", "max"):
    add("embeddings", f"embedding_bag, {how}", call("embedding_bag", mode=how), lambda: whole(10000, 1000, 10),
        lambda: normal(10000, 100))
  heads = lambda: normal(4, 8, 256, 64)
  add("attention", "scaled_dot_product_attention", call("scaled_dot_product_attention"), heads, heads, heads)
  add("attention", "the same, causal", call("scaled_dot_product_attention", is_causal=True), heads, heads, heads)

def transforms() -> None:
  x, signal = lambda: normal(N), lambda: normal(1000, 1024)
  add("fft", "fft 2^20", lambda t, a: t.fft.fft(a), lambda: imaginary(1 << 20))
  add("fft", "fft of rows", lambda t, a: t.fft.fft(a), lambda: imaginary(1000, 1024))
  add("fft", "rfft of rows", lambda t, a: t.fft.rfft(a), signal)
  add("fft", "irfft of rows", lambda t, a: t.fft.irfft(a), lambda: imaginary(1000, 513))
  add("fft", "fft 10^6", lambda t, a: t.fft.fft(a), lambda: imaginary(N))
  add("fft", "fft of 1,009", lambda t, a: t.fft.fft(a), lambda: imaginary(1000, 1009))
  add("fft", "fft2", lambda t, a: t.fft.fft2(a), lambda: imaginary(1024, 1024))
  add("fft", "stft", lambda t, a, w: t.stft(a, 512, 256, window=w, return_complex=True), x, lambda: unit(512))
  add("fft", "fftshift", lambda t, a: t.fft.fftshift(a), signal)
  for name in ("mul", "div", "add"):
    add("complex", f"{name}, complex", lambda t, a, b, name=name: getattr(t, name)(a, b), lambda: imaginary(N),
        lambda: imaginary(N))
  for name in ("exp", "abs", "angle", "sqrt", "log"):
    add("complex", f"{name}, complex", lambda t, a, name=name: getattr(t, name)(a), lambda: imaginary(N))
  add("complex", "matmul, complex", lambda t, a, b: a @ b, lambda: imaginary(512, 512), lambda: imaginary(512, 512))
  add("complex", "polar", lambda t, a, b: t.polar(a, b), lambda: unit(N), x)
  add("random", "rand", lambda t: t.rand(N))
  add("random", "randn", lambda t: t.randn(N))
  add("random", "randint", lambda t: t.randint(0, 100, (N,)))
  add("random", "bernoulli", lambda t, a: t.bernoulli(a), lambda: unit(N))
  add("random", "randperm", lambda t: t.randperm(N))
  add("random", "multinomial", lambda t, a: t.multinomial(a, N, True), lambda: unit(1000))
  add("random", "dropout", lambda t, a: t.nn.functional.dropout(a, 0.3, True), x)

def linear_algebra() -> None:
  def each(name: str, f: Callable[..., Any], *inputs: Callable[[], np.ndarray]) -> None:
    add("linalg", name, f, *inputs, reads_back=True)    # whether a matrix is singular is read
  for n in (256, 512, 1024):
    square, spd, side = (lambda n=n: normal(n, n)), (lambda n=n: definite(n)), (lambda n=n: normal(n, 16))
    for name in ("inv", "det", "slogdet", "lu_factor", "qr", "svdvals", "svd", "pinv", "matrix_exp", "eigvals", "eig"):
      each( f"{name} {n}", lambda t, a, name=name: getattr(t.linalg, name)(a), square)
    for name in ("cholesky", "eigh", "eigvalsh", "matrix_rank", "cond"):
      each( f"{name} {n}", lambda t, a, name=name: getattr(t.linalg, name)(a), spd)
    each( f"solve {n}", lambda t, a, b: t.linalg.solve(a, b), square, side)
    each( f"solve_triangular {n}", lambda t, a, b: t.linalg.solve_triangular(a, b, upper=False),
        lambda n=n: np.linalg.cholesky(definite(n)), side)
    each( f"cholesky_solve {n}", lambda t, a, b: t.cholesky_solve(b, a), spd, side)
    each( f"lstsq {n}", lambda t, a, b: t.linalg.lstsq(a, b)[0], lambda n=n: normal(2 * n, n),
        lambda n=n: normal(2 * n, 16))
    each( f"matrix_power {n}", lambda t, a: t.linalg.matrix_power(a, 5), square)
    each( f"matrix_norm {n}", lambda t, a: t.linalg.matrix_norm(a), square)
  many = lambda: normal(64, 64, 64)
  for name in ("inv", "qr", "svdvals", "det"):
    each( f"{name} of 64 matrices of 64", lambda t, a, name=name: getattr(t.linalg, name)(a), many)

for fill in (pointwise, reductions, indexing, shapes, products, layers, transforms, linear_algebra): fill()

def prepare(library: str, name: str) -> Run | None:
  """Return the function that a library runs for a call; None if it lacks the operation."""
  asked = CALLS[name]
  try: return _torch(asked) if library == "torch" else _own(asked)
  except Exception as error:  # noqa: BLE001  what one library lacks, the other is timed without
    print(f"{library} {name}: {type(error).__name__}: {str(error).splitlines()[0][:120]}", file=sys.stderr, flush=True)
    return None

def _torch(asked: Call) -> Run:
  import torch
  torch.set_grad_enabled(False)
  torch.set_num_threads(len(os.sched_getaffinity(0)))
  inputs = [torch.from_numpy(a) for a in asked.inputs()]
  def run() -> object: return asked.f(torch, *inputs)
  run()
  return run

def _own(asked: Call) -> Run:
  import tinyhw.compat.torch as torch
  from tinyhw import Device, TinyJit
  arrays = asked.inputs()
  halves = tuple([np.iscomplexobj(a) for a in arrays])
  planes = [part for a in arrays for part in ((a.real, a.imag) if np.iscomplexobj(a) else (a,))]
  inputs = [torch.from_numpy(np.ascontiguousarray(a)).contiguous().realize() for a in planes]
  device = Device[Device.DEFAULT]
  def called(*tensors: Any) -> object:
    rest = iter(tensors)   # a complex number is two planes
    args = [torch.complex(next(rest), next(rest)) if two else next(rest) for two in halves]
    with torch.no_grad(): return _realized(asked.f(torch, *args))
  f = called if asked.reads_back else TinyJit(called)
  def run() -> object:
    result = f(*inputs)
    device.synchronize()
    return result
  for _ in range(3): run()
  return run

def _realized(found: Any) -> Any:
  """Realize the tensors of a result together, views as copies. A complex tensor is two planes."""
  tensors = [x for x in (found if isinstance(found, (tuple, list)) else (found,)) if hasattr(x, "realize")]
  planes = [part.contiguous() for x in tensors for part in ((x.real, x.imag) if x.is_complex() else (x,))]
  if planes: planes[0].realize(*planes[1:])
  return tuple(planes)

def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("names", nargs="*", help="families, or beginnings of the names of calls")
  parser.add_argument("--seconds", type=float, default=0.3, help="of each library and call")
  parser.add_argument("--all", action="store_true", help="print the calls within the bar, too")
  parser.add_argument("--json")
  parser.add_argument("--serve", help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.serve: return turns.serve(lambda name: prepare(args.serve, name))
  libraries = [turns.Library(__file__, name) for name in ("tinyhw", "torch")]
  found: dict[str, dict[str, float]] = {}
  for name, asked in CALLS.items():
    if args.names and not any(asked.family == n or name.startswith(n) for n in args.names): continue
    found[name] = turns.medians(turns.take_turns(libraries, name, args.seconds))
    if args.json: Path(args.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
  for process in libraries: process.close()
  report(found, args.all)

def report(found: dict[str, dict[str, float]], everything: bool) -> None:
  """Print the calls by their ratios, the slowest first, and how many are within their bars."""
  timed = {name: times for name, times in found.items() if len(times) == 2}
  ratios = {name: times["tinyhw"] / times["torch"] for name, times in timed.items()}
  bars = {name: LINALG_BAR if CALLS[name].family == "linalg" else BAR for name in timed}
  print(f"{'call':36s}{'family':16s}{'tinyhw':>12s}{'torch':>12s}     ratio")
  for name in sorted(ratios, key=lambda n: -ratios[n]):
    if not everything and ratios[name] <= bars[name]: continue
    times = timed[name]
    print(f"{name:36s}{CALLS[name].family:16s}{times['tinyhw'] * 1e3:10.3f}ms{times['torch'] * 1e3:10.3f}ms"
          f"{ratios[name]:9.2f}x")
  met = sum(ratios[name] <= bars[name] for name in ratios)
  print(f"{met} of {len(ratios)} calls within the bar; not timed: "
        f"{', '.join(sorted(set(found) - set(timed))) or 'none'}")

if __name__ == "__main__": main()
