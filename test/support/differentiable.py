"""Every differentiable method of Tensor, with inputs at which it is smooth: what test_gradients.py differentiates.

A Case's function takes Tensors; `torch` is the same with PyTorch's names where they differ (None: PyTorch has nothing
like it). Inputs are shapes of random float64 arrays in [low, high), or arrays. order: how many derivatives are compared
with finite differences (1 where the second is zero or not continuous).
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinyhw import Tensor

Function = Callable[..., Any]
SAME: Function = lambda *x: None   # PyTorch's method has this name and these arguments

class Case(NamedTuple):
  name: str
  f: Function
  inputs: tuple[Any, ...]
  torch: Function | None = SAME
  low: float = -2.0
  high: float = 2.0
  order: int = 2

def spaced(*shape: int, seed: int = 0) -> Any:
  """Values that are well apart from each other, in random order: no small step changes which is larger."""
  n = int(np.prod(shape))
  return (np.random.default_rng(seed).permutation(n) * (4 / n) - 1.9).reshape(shape)

def away(*shape: int, seed: int = 0) -> Any:
  """Values between 0.2 and 1.7 with random signs, away from kinks at whole numbers, 0 and 1/2."""
  rng = np.random.default_rng(seed)
  return rng.choice([-1, 1], shape) * (rng.integers(0, 2, shape) + rng.choice([0.2, 0.3, 0.7], shape)
                                       + rng.uniform(0, 0.05, shape))

def unary(names: str, *inputs: Any, torch: Function | None = SAME, **options: Any) -> list[Case]:
  """Methods without arguments."""
  return [Case(name, lambda x, n=name: getattr(x, n)(), inputs or ((2, 3),), torch, **options)
          for name in names.split()]

def functional(names: str, *inputs: Any, **options: Any) -> list[Case]:
  """Methods without arguments that are functions in torch.nn.functional."""
  return [unary(name, *inputs, torch=lambda x, n=name: getattr(F(), n)(x), **options)[0] for name in names.split()]

def F() -> Any:
  import torch.nn.functional
  return torch.nn.functional

def T() -> Any:
  import torch
  return torch

def indices(*values: Any) -> Any: return np.array(values)

def own(x: Any, values: Any) -> Any:
  """Values of no interest to gradients (indices, masks, labels) as x's kind of tensor."""
  if isinstance(x, Tensor): return Tensor(values, device=x.device)
  return T().tensor(values)

ELEMENTWISE = [
  *unary("exp exp2 sin cos tanh sinh cosh erf sigmoid square neg asinh atan"),
  *functional("logsigmoid silu mish softplus"),
  *unary("sqrt rsqrt log log2 log10 reciprocal", low=0.3, high=3), *unary("tan", low=-1.2, high=1.2),
  *unary("asin acos atanh", low=-0.9, high=0.9), *unary("acosh", low=1.2, high=4),
  *unary("abs relu", away(2, 5)), *functional("relu6 selu celu elu leaky_relu hardswish hardtanh softsign", away(2, 5)),
  *functional("hardsigmoid", away(2, 5)),
  *unary("sign floor ceil trunc round", away(2, 5), order=1),
  Case("swish", lambda x: x.swish(), ((2, 3),), lambda x: F().silu(x)),
  Case("quick_gelu", lambda x: x.quick_gelu(), ((2, 3),), lambda x: x * (1.702 * x).sigmoid()),
  Case("gelu", lambda x: x.gelu(), ((2, 3),), lambda x: F().gelu(x, approximate="tanh")),
  Case("gelu none", lambda x: x.gelu(approximate="none"), ((2, 3),), lambda x: F().gelu(x)),
  Case("softplus beta", lambda x: x.softplus(beta=2.5), ((2, 3),), lambda x: F().softplus(x, beta=2.5)),
  Case("leaky_relu slope", lambda x: x.leaky_relu(0.3), (away(2, 5),), lambda x: F().leaky_relu(x, 0.3)),
  Case("elu alpha", lambda x: x.elu(1.7), (away(2, 5),), lambda x: F().elu(x, 1.7)),
  Case("celu alpha", lambda x: x.celu(1.7), (away(2, 5),), lambda x: F().celu(x, 1.7)),
  Case("hardtanh limits", lambda x: x.hardtanh(-0.5, 1.5), (away(2, 5),), lambda x: F().hardtanh(x, -0.5, 1.5)),
  Case("hardsigmoid slope", lambda x: x.hardsigmoid(0.3, 0.4), (away(2, 5),), None),
  Case("selu alpha", lambda x: x.selu(1.5, 1.2), (away(2, 5),), None),
  Case("clamp", lambda x: x.clamp(-0.5, 1.5), (away(2, 5),)), Case("clip", lambda x: x.clip(-0.5, None), (away(2, 5),)),
  Case("clamp tensors", lambda x, a, b: x.clamp(a, b),
       (spaced(3, 4), spaced(3, 1, seed=2) - 0.93, spaced(4, seed=3) + 1.07), order=1),
  Case("add", lambda x, y: x + y, ((2, 3), (3,)), order=1),
  Case("sub", lambda x, y: x - y, ((3, 1), (2, 1, 4)), order=1),
  Case("mul", lambda x, y: x * y, ((2, 3), (2, 1))), Case("div", lambda x, y: x / y, ((2, 3), away(3))),
  Case("mul itself", lambda x: x * x * x, ((3,),)), Case("rsub", lambda x: 2 - x, ((3,),), order=1),
  Case("rtruediv", lambda x: 2 / x, (away(3),)),
  Case("div reverse", lambda x, y: x.div(y, reverse=True), (away(3), (2, 3)), lambda x, y: y / x),
  Case("div floor", lambda x, y: x.div(y, rounding_mode="floor"), (away(2, 3), np.full((3,), 0.437)), order=1),
  Case("pow", lambda x, y: x ** y, ((2, 3), (3,)), low=0.4, high=2), Case("pow 3", lambda x: x ** 3, (away(2, 3),)),
  Case("pow -2", lambda x: x ** -2, (away(2, 3),)), Case("pow 0.5", lambda x: x ** 0.5, ((3,),), low=0.4),
  Case("rpow", lambda x: 2.5 ** x, ((3,),)),
  Case("pow 0", lambda x: x ** 0, (away(3),), order=1), Case("pow 1", lambda x: x ** 1, (away(3),), order=1),
  Case("pow 2", lambda x: x ** 2, ((3,),)),
  Case("pow negative base", lambda x: x ** Tensor([2.0, 3.0, -1.0], dtype="float64", device=x.device), (away(3),),
       lambda x: x ** T().tensor([2.0, 3.0, -1.0])),
  Case("mod", lambda x, y: x % y, (away(2, 3), np.array([0.93, 1.57, -1.19])), order=1),
  Case("fmod", lambda x, y: x.fmod(y), (away(2, 3), np.array([0.93, 1.57, -1.19])), order=1),
  Case("maximum", lambda x, y: x.maximum(y), (spaced(2, 3), spaced(3, seed=5) + 0.07), order=1),
  Case("minimum", lambda x, y: x.minimum(y), (spaced(2, 3), spaced(3, seed=5) + 0.07), order=1),
  Case("where", lambda x, y: (x > 0).where(x * y, y.sin()), (away(2, 3), (3,)), lambda x,
       y: T().where(x > 0, x * y, y.sin())),
  Case("masked_fill", lambda x: x.masked_fill(own(x, [True, False, True]), 2.0).square(), ((2, 3),)),
  Case("copysign", lambda x, y: x.copysign(y), (away(2, 3), away(2, 3, seed=1)), order=1),
  Case("lerp", lambda x, y, w: x.lerp(y, w), ((2, 3), (3,), (2, 1))),
  Case("lerp number", lambda x, y: x.lerp(y, 0.3), ((2, 3), (3,)), order=1),
  Case("logaddexp", lambda x, y: x.logaddexp(y), ((2, 3), (3,))),
  Case("contiguous", lambda x: x.contiguous().sin(), ((3,),)),
  Case("contiguous_backward", lambda x: x.contiguous_backward().sin(), ((3,),), None),
  Case("cast", lambda x: x.float().double() * 3, (np.array([0.5, 1.0, -2.0]),), order=0),
  Case("clone", lambda x: x.clone().sin(), ((3,),)), Case("detach", lambda x: x.detach() * x.sin() + 0 * x, ((3,),),
                                                          order=0),
]

MOVEMENT = [
  Case("reshape", lambda x: x.reshape(3, -1).sin(), ((2, 3),)), Case("view", lambda x: x.view(6), ((2, 3),), order=1),
  Case("expand", lambda x: x.expand(2, 3, 4).sin(), ((3, 1),)),
  Case("permute", lambda x: x.permute(2, 0, 1).sin(), ((2, 3, 4),)),
  Case("transpose", lambda x: x.transpose(-1, 0).sin(), ((2, 3, 4),)), Case("T", lambda x: x.T.sin(), ((2, 3),)),
  Case("flip", lambda x: x.flip((0, -1)).cumsum(0), ((2, 3),), order=1),
  Case("flatten", lambda x: x.flatten(1, 2).sin(), ((2, 3, 4),)),
  Case("unflatten", lambda x: x.unflatten(-1, (2, 3)).sin(), ((2, 6),)),
  Case("squeeze", lambda x: x.squeeze(1).sin(), ((2, 1, 3),)),
  Case("unsqueeze", lambda x: x.unsqueeze(-1).sin(), ((2, 3),)),
  Case("shrink", lambda x: x.shrink(((0, 1), (1, 3))).sin(), ((2, 3),), lambda x: x[:1, 1:3].sin()),
  Case("shrink_to", lambda x: x.shrink_to(2, 2).sin(), ((2, 3),), lambda x: x[:2, :2].sin()),
  Case("split", lambda x: x.split([1, 2], 1)[1].sin(), ((2, 3),)),
  Case("chunk", lambda x: x.chunk(2, -1)[1].sin(), ((2, 3),)),
  Case("unfold", lambda x: x.unfold(1, 3, 2).sin(), ((2, 8),)),
  Case("diagonal", lambda x: x.diagonal(1, 0, 1).sin(), ((3, 4),)),
  Case("diag", lambda x: x.diag().cumsum(0).sin(), ((3,),)),
  Case("cat", lambda x, y: x.cat(y, x, dim=-1).sin(), ((2, 3), (2, 1)), lambda x, y: T().cat((x, y, x), -1).sin()),
  Case("stack", lambda x, y: x.stack(y, dim=1).sin(), ((2, 3), (2, 3)), lambda x, y: T().stack((x, y), 1).sin()),
  Case("repeat", lambda x: x.repeat(2, 1, 3).sin(), ((2, 3),)),
  Case("repeat_interleave", lambda x: x.repeat_interleave(2, 1).sin(), ((2, 3),)),
  Case("roll", lambda x: x.roll((1, -2), (0, 1)).cumsum(1).sin(), ((2, 3),)),
  Case("meshgrid", lambda x, y: (lambda a, b: a.sin() * b)(*x.meshgrid(y)), ((2,), (3,)),
       lambda x, y: (lambda a, b: a.sin() * b)(*T().meshgrid(x, y, indexing="ij"))),
  *[Case(f"pad {mode}", lambda x, mode=mode: x.pad((1, 2), mode=mode).sin(), ((1, 2, 4),),
         lambda x, mode=mode: F().pad(x, (1, 2), mode=mode).sin())
    for mode in ("reflect", "replicate", "circular")],
  Case("pad", lambda x: x.pad((1, 2, 0, 1), value=0.5).sin(), ((2, 3),),
       lambda x: F().pad(x, (1, 2, 0, 1), value=0.5).sin()),
  Case("pad negative", lambda x: x.pad((-1, 2)).sin(), ((2, 3),), lambda x: F().pad(x, (-1, 2)).sin()),
  Case("pad_to", lambda x: x.pad_to(3, 4).cos(), ((2, 3),), lambda x: F().pad(x, (0, 1, 0, 1)).cos()),
  Case("rearrange", lambda x: x.rearrange("b (h d) -> h b d", h=2).sin(), ((2, 6),),
       lambda x: x.unflatten(1, (2, 3)).permute(1, 0, 2).sin()),
  Case("tril", lambda x: x.tril(-1).cos(), ((3, 4),)), Case("triu", lambda x: x.triu(1).cos(), ((3, 4),)),
  Case("to", lambda x: x.to("PYTHON:1").sin().to(x.device), ((3,),), lambda x: x.sin()),
]

REDUCTIONS = [
  *[Case(f"{name} {axis} {keep}", lambda x, n=name, a=axis, k=keep: getattr(x, n)(a, keepdim=k).sin(), ((2, 3, 4),),
         lambda x, n=name, a=axis, k=keep: getattr(x, n)(a, keepdim=k).sin() if a is not None else getattr(x,
             n)().reshape((1,) * 3 if k else ()).sin())
    for name, axes in (("sum", (None, -1, (0, 2))), ("mean", (None, 1, (0, -1))), ("var", (1,)), ("std", (-1,)),
                       ("logsumexp", (1, (0, 2))))
    for axis in axes for keep in (False, True)],
  *[Case(f"{name} {axis}", lambda x, n=name, a=axis: getattr(x, n)(a).sin(), (spaced(3, 4),),
         lambda x, n=name, a=axis: getattr(x, "a" + n)(() if a is None else a).sin()) for name in ("max", "min")
    for axis in (None, 0, -1)],
  Case("prod", lambda x: x.prod(1), (away(2, 3),)), Case("prod all", lambda x: x.prod(), (away(2, 2),)),
  Case("var correction", lambda x: x.var(0, correction=0), ((4, 2),)),
  Case("std correction", lambda x: x.std(0, keepdim=True, correction=2), ((4, 2),)),
  Case("var_mean", lambda x: (lambda v, m: v * m)(*x.var_mean(1)), ((2, 4),), lambda x: x.var(1) * x.mean(1)),
  Case("std_mean", lambda x: (lambda v, m: v * m)(*x.std_mean(1)), ((2, 4),), lambda x: x.std(1) * x.mean(1)),
  Case("softmax", lambda x: x.softmax(0), ((3, 4),)), Case("log_softmax", lambda x: x.log_softmax(1), ((3, 4),)),
  Case("softmin", lambda x: x.softmin(-1), ((3, 4),), lambda x: (-x).softmax(-1)),
  Case("layernorm", lambda x: x.layernorm((-2, -1)), ((2, 3, 4),), lambda x: F().layer_norm(x, (3, 4))),
  Case("batchnorm", lambda x, w, b, m, v: x.batchnorm(w, b, m, v), ((2, 3, 4), (3,), (3,), (3,), (3,)),
       lambda x, w, b, m, v: (x - m[:, None]) * (v * w)[:, None] + b[:, None], 0.5, 2.0),
  *[Case(f"normalize {p}", lambda x, p=p: x.normalize(p=p, dim=1), (spaced(3, 4),), lambda x,
         p=p: F().normalize(x, p, 1)) for p in (1, 2, 3)],
  Case("cumsum", lambda x: x.cumsum(1).sin(), ((2, 5),)), Case("cumprod", lambda x: x.cumprod(-1), (away(2, 4),)),
  Case("cummax", lambda x: x.cummax(1)[0].sin(), (spaced(2, 5),)),
  Case("cummin", lambda x: x.cummin(0)[0].sin(), (spaced(5, 2),)),
  Case("logcumsumexp", lambda x: x.logcumsumexp(1), ((2, 5),)),
  Case("usum", lambda x, y: Tensor.usum(x, y, x), ((3,), (3,)), lambda x, y: x + y + x, order=1),
  Case("uprod", lambda x, y: Tensor.uprod(x, y, x), ((3,), (3,)), lambda x, y: x * y * x),
]

INDEXING = [
  Case("slices", lambda x: x[1:, ::2].sin(), ((3, 5),)),
  Case("negative steps", lambda x: x[::-1, -1].sin(), ((3, 5),), lambda x: x.flip(0)[:, -1].sin()),
  Case("ints and None", lambda x: x[None, 1, ..., None].sin(), ((3, 5),)),
  Case("index", lambda x: x[own(x, [[0, 2], [2, 2]])].sin(), ((3, 2),)),
  Case("two indices", lambda x: x[own(x, [0, 2, 0]), :, own(x, [1, 1, 1])].sin(), ((3, 2, 2),)),
  Case("gather", lambda x: x.gather(1, own(x, [[0, 0, 2], [1, 1, 1]])).sin(), ((2, 3),)),
  Case("scatter", lambda x, y: x.scatter(1, own(x, [[0, 2], [1, 0]]), y).sin(), ((2, 3), (2, 2))),
  Case("scatter add", lambda x, y: x.scatter(1, own(x, [[0, 0], [1, 0]]), y, reduce="add").sin(), ((2, 3), (2, 2))),
  Case("scatter multiply", lambda x, y: x.scatter(1, own(x, [[0, 2], [1, 0]]), y, reduce="multiply").sin(),
       ((2, 3), (2, 2)), None),
  *[Case(f"scatter_reduce {reduce} {itself}",
         lambda x, y, r=reduce, i=itself: x.scatter_reduce(1, own(x, [[0, 0], [1, 0]]), y, reduce=r,
                                                           include_self=i).sin(),
         (spaced(2, 3), spaced(2, 2, seed=4) + 0.043)) for reduce in ("sum", "prod", "mean", "amax", "amin")
    for itself in (True, False)],
  Case("setitem", lambda x, y: written(x, y).sin(), ((3, 4), (2,))),
  Case("sort", lambda x: x.sort(0)[0].cumsum(0).sin(), (spaced(5, 2),)),
  Case("sort descending", lambda x: x.sort(-1, True)[0].cumsum(-1).sin(), (spaced(2, 5),)),
  Case("topk", lambda x: x.topk(3, -1)[0].cumsum(-1).sin(), (spaced(2, 5),)),
  Case("topk smallest", lambda x: x.topk(2, 0, largest=False)[0].sin(), (spaced(5, 2),)),
  Case("masked_select", lambda x: x.masked_select(own(x, [[True, False], [False, True]])).sin(), ((2, 2),)),
]

def written(x: Any, y: Any) -> Any:
  """A copy of x with y in a part."""
  z = x + 0
  z[1:, 2] = y
  z[0, 0] = 3.0
  return z

PRODUCTS = [
  Case("dot", lambda x, y: x.dot(y), ((4,), (4,))), Case("matmul", lambda x, y: x @ y, ((2, 3), (3, 4))),
  Case("matmul batch", lambda x, y: x @ y, ((2, 1, 2, 3), (3, 3, 2))),
  Case("matmul vector", lambda x, y: x @ y, ((3,), (2, 3, 2))),
  Case("linear", lambda x, w, b: x.linear(w, b), ((2, 3), (3, 4), (4,)), lambda x, w, b: x @ w + b),
  *[Case(f"einsum {formula}", lambda *x, f=formula: Tensor.einsum(f, *x), shapes, lambda *x,
         f=formula: T().einsum(f, *x))
    for formula, shapes in (("ij,jk->ik", ((2, 3), (3, 2))), ("bij,bkj->bik", ((2, 2, 3), (2, 4, 3))),
                            ("ii->i", ((3, 3),)), ("...i,i->...",
                                                   ((2, 3), (3,))), ("i,j", ((2,), (3,))))],
  Case("sdpa", lambda q, k, v: q.scaled_dot_product_attention(k, v), ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4)),
       lambda q, k, v: F().scaled_dot_product_attention(q, k, v)),
  Case("sdpa causal", lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
       ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)),
       lambda q, k, v: F().scaled_dot_product_attention(q, k, v, is_causal=True)),
  Case("sdpa mask", lambda q, k, v, m: q.scaled_dot_product_attention(k, v, attn_mask=m),
       ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4), (3, 5)),
       lambda q, k, v, m: F().scaled_dot_product_attention(q, k, v, attn_mask=m)),
  Case("sdpa groups", lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True),
       ((1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2)),
       lambda q, k, v: F().scaled_dot_product_attention(q, k, v, enable_gqa=True)),
  Case("sequential", lambda x: x.sequential([Tensor.sin, Tensor.exp]), ((3,),), lambda x: x.sin().exp()),
  Case("newton_schulz", lambda x: x.newton_schulz(2, (2.0, -1.5, 0.5)), ((2, 3),), None, order=1),
]

def conv(**options: Any) -> tuple[Function, Function]:
  """conv2d and conv_transpose2d by PyTorch's and by our names."""
  def torch(x: Any, w: Any, *b: Any) -> Any: return getattr(F(), f"conv{w.ndim - 2}d")(x, w, *b, **options)
  return lambda x, w, *b: x.conv2d(w, *b, **options), torch

def transposed(**options: Any) -> tuple[Function, Function]:
  def torch(x: Any, w: Any, *b: Any) -> Any: return getattr(F(), f"conv_transpose{w.ndim - 2}d")(x, w, *b, **options)
  return lambda x, w, *b: x.conv_transpose2d(w, *b, **options), torch

def both(name: str, functions: tuple[Function, Function], *inputs: Any, **options: Any) -> Case:
  return Case(name, functions[0], inputs,
              functions[1], **options)

WINDOWS = [
  both("conv2d", conv(padding=1), (2, 2, 4, 3), (3, 2, 3, 3), (3,)),
  both("conv2d stride", conv(stride=(2, 1), padding=(1, 0)), (1, 2, 5, 4), (2, 2, 3, 2)),
  both("conv2d groups", conv(groups=2, dilation=2), (1, 4, 5, 5), (4, 2, 2, 2)),
  both("conv1d", conv(stride=3), (1, 2, 8), (2, 2, 3)),
  both("conv3d", conv(padding=1), (1, 1, 2, 3, 2), (2, 1, 2, 2, 2)),
  Case("conv2d padding", lambda x, w: x.conv2d(w, padding=(0, 1, 2, 0)), ((1, 1, 3, 3), (1, 1, 2, 2)),
       lambda x, w: F().conv2d(F().pad(x, (0, 1, 2, 0)), w)),
  both("conv_transpose2d", transposed(stride=2, padding=1, output_padding=1), (1, 2, 2, 3), (2, 2, 3, 3), (2,)),
  both("conv_transpose2d groups", transposed(groups=2, dilation=2), (1, 4, 2, 2), (4, 1, 2, 2)),
  both("conv_transpose1d", transposed(stride=3), (1, 2, 3), (2, 1, 2)),
  Case("max_pool2d", lambda x: x.max_pool2d((2, 3), stride=(1, 2), padding=1).sin(), (spaced(1, 2, 4, 5),),
       lambda x: F().max_pool2d(x, (2, 3), (1, 2), 1).sin()),
  Case("max_pool2d ceil", lambda x: x.max_pool2d(2, dilation=2, ceil_mode=True).sin(), (spaced(1, 1, 5, 5),),
       lambda x: F().max_pool2d(x, 2, dilation=2, ceil_mode=True).sin()),
  Case("max_pool2d indices", lambda x: x.max_pool2d(2, return_indices=True)[0].sin(), (spaced(1, 1, 4, 4),),
       lambda x: F().max_pool2d(x, 2).sin()),
  Case("max_unpool2d", lambda x: (lambda y, i: y.max_unpool2d(i).cos())(*x.max_pool2d(2, return_indices=True)),
       (spaced(1, 1, 4, 4),),
       lambda x: F().max_unpool2d(*F().max_pool2d(x, 2, return_indices=True), 2).cos()),
  Case("avg_pool2d", lambda x: x.avg_pool2d(2, stride=1, padding=1).sin(), ((1, 2, 3, 4),),
       lambda x: F().avg_pool2d(x, 2, 1, 1).sin()),
  Case("avg_pool2d uncounted", lambda x: x.avg_pool2d(2, padding=1, ceil_mode=True, count_include_pad=False).sin(),
       ((1, 1, 4, 5),),
       lambda x: F().avg_pool2d(x, 2, padding=1, ceil_mode=True, count_include_pad=False).sin()),
  Case("interpolate", lambda x: x.interpolate((5, 7), mode="linear").sin(), ((1, 1, 3, 4),),
       lambda x: F().interpolate(x, (5, 7), mode="bilinear").sin()),
  Case("interpolate corners", lambda x: x.interpolate((5,), mode="linear", align_corners=True).sin(), ((1, 1, 3),),
       lambda x: F().interpolate(x, 5, mode="linear", align_corners=True).sin()),
  Case("interpolate nearest", lambda x: x.interpolate((2, 5), mode="nearest").sin(), ((1, 1, 3, 4),),
       lambda x: F().interpolate(x, (2, 5), mode="nearest").sin()),
]

LABELS, PARTS = indices(0, 2, 1, 2), [0.5, 1.0, 2.0]
LOSSES = [
  *[Case(f"cross_entropy {r} {s}", lambda x, r=r, s=s: x.cross_entropy(own(x, LABELS), reduction=r, label_smoothing=s),
         ((4, 3),),
         lambda x, r=r, s=s: F().cross_entropy(x, own(x, LABELS), reduction=r, label_smoothing=s))
    for r in ("mean", "sum", "none")
    for s in (0.0, 0.2)],
  Case("cross_entropy probabilities", lambda x, y: x.cross_entropy(y.softmax(1)), ((4, 3), (4, 3)),
       lambda x, y: F().cross_entropy(x, y.softmax(1))),
  Case("cross_entropy axes", lambda x: x.cross_entropy(own(x, [[0, 2], [1, 1]])), ((2, 3, 2),),
       lambda x: F().cross_entropy(x, own(x, [[0, 2], [1, 1]]))),
  *[Case(f"sparse_categorical_crossentropy {r}",
         lambda x, r=r: x.sparse_categorical_crossentropy(own(x, LABELS), ignore_index=2, label_smoothing=0.1,
                                                          reduction=r), ((4, 3),),
         lambda x, r=r: F().cross_entropy(x, own(x, LABELS), ignore_index=2, label_smoothing=0.1, reduction=r))
    for r in ("mean", "sum", "none")],
  *[Case(f"nll_loss {r}",
         lambda x, r=r: x.log_softmax(1).nll_loss(own(x, LABELS), weight=own(x, np.array(PARTS)), ignore_index=1,
                                                  reduction=r), ((4, 3),),
         lambda x, r=r: F().nll_loss(x.log_softmax(1), own(x, LABELS), weight=own(x, np.array(PARTS)), ignore_index=1,
                                     reduction=r))
    for r in ("mean", "sum", "none")],
  *[Case(f"binary_crossentropy {r}", lambda x, y, r=r: x.sigmoid().binary_crossentropy(y.sigmoid(), reduction=r),
         ((2, 3), (2, 3)),
         lambda x, y, r=r: F().binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction=r))
    for r in ("mean", "sum", "none")],
  Case("binary_crossentropy_logits", lambda x, y: x.binary_crossentropy_logits(y.sigmoid()), ((2, 3), (2, 3)),
       lambda x, y: F().binary_cross_entropy_with_logits(x, y.sigmoid())),
  Case("binary_crossentropy_logits weight", lambda x,
       y: x.binary_crossentropy_logits(y.sigmoid(), pos_weight=own(x, np.array(PARTS))),
       ((2, 3), (2, 3)),
       lambda x, y: F().binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=own(x, np.array(PARTS)))),
]

CASES = [*ELEMENTWISE, *MOVEMENT, *REDUCTIONS, *INDEXING, *PRODUCTS, *WINDOWS, *LOSSES]

def arrays(case: Case) -> list[Any]:
  """The inputs of a case."""
  rng = np.random.default_rng(len(case.name))
  return [np.asarray(x, np.float64) if not isinstance(x, tuple) else rng.uniform(case.low, case.high, x)
          for x in case.inputs]

# ***** where there is no derivative *****

INF, NAN = float("inf"), float("nan")

class Kink(NamedTuple):
  """A function where mathematics leaves the gradient open, or formulas have holes: the gradient of its sum that we
  give. torch None: it differs."""
  name: str
  f: Function
  at: Any
  gradient: Any
  torch: Function | None = SAME

def scaled(x: Any, *factors: float) -> Any: return x * own(x, np.array(factors))

KINKS = [
  *[Kink(name, lambda x, n=name: getattr(x, n)(), at, gradient, torch) for name, at, gradient, torch in (
    ("relu", [0.0, -0.0, INF, -INF], [0, 0, 1, 0], SAME), ("abs", [0.0, -0.0, INF, -INF], [0, 0, 1, -1], SAME),
    ("sign", [0.0, 2], [0, 0], SAME),
    ("relu6", [0.0, 6, 3, INF], [0, 0, 1, 0], lambda x: F().relu6(x)),
    ("hardtanh", [-1.0, 1, 0.5], [0, 0, 1], lambda x: F().hardtanh(x)),
    ("hardsigmoid", [-3.0, 3, 0], [0, 0, 1 / 6], None),
    ("hardswish", [-3.0, 3, 100, -100], [0, 1, 1, 0], lambda x: F().hardswish(x)),
    ("leaky_relu", [0.0, -0.0], [0.01, 0.01], lambda x: F().leaky_relu(x)),
    ("elu", [0.0, 1000, -1000], [1, 1, 0], lambda x: F().elu(x)),
    ("selu", [1000.0, -1000], [1.0507009873554805, 0], lambda x: F().selu(x)),
    ("celu", [0.0, 1000, -1000], [1, 1, 0], lambda x: F().celu(x)),
    ("softsign", [0.0], [1], lambda x: F().softsign(x)), ("floor", [0.0, 1.5], [0, 0], SAME),
    ("sqrt", [0.0, INF, -1], [INF, 0, NAN], SAME),
    ("log", [0.0, INF], [INF, 0], SAME), ("reciprocal", [0.0, INF], [-INF, 0], SAME), ("rsqrt", [0.0], [-INF], SAME),
    ("sigmoid", [1000.0, -1000], [0, 0], SAME), ("tanh", [1000.0, -1000], [0, 0], SAME),
    ("erf", [1000.0, INF], [0, 0], SAME),
    ("logsigmoid", [1000.0, -1000, -INF], [0, 1, 1], lambda x: F().logsigmoid(x)),
    ("softplus", [1000.0, -1000, INF], [1, 0, 1],
     lambda x: F().softplus(x)),
    ("mish", [1000.0, -1000], [1, 0], lambda x: F().mish(x)), ("silu", [1000.0, -1000], [1, 0], lambda x: F().silu(x)),
    ("gelu", [1000.0, -1000], [1, 0], lambda x: F().gelu(x, approximate="tanh")),
    ("exp", [1000.0, -1000, -INF], [INF, 0, 0], SAME))],
  Kink("asinh", lambda x: x.asinh(), [1e200, -1e200, 0], [1e-200, 1e-200, 1], None),  # PyTorch's overflows
  Kink("clamp at its limits", lambda x: x.clamp(-1, 1), [-1.0, 1, 2, -INF], [1, 1, 0, 0]),
  Kink("maximum of equals", lambda x: x.maximum(own(x, [1.0, 1.0])), [1.0, 2], [0.5, 1]),
  Kink("minimum of equals", lambda x: x.minimum(own(x, [1.0, 1.0])), [1.0, 0], [0.5, 1]),
  Kink("binary_crossentropy of certainty", lambda x: x.binary_crossentropy(own(x, np.array([0.0, 1, 1, 0]))),
       [0.0, 1, 0, 1],
       [0.25, -0.25, -0.25e12, 0.25e12], None),   # PyTorch: 0 where it is right
  Kink("max ties", lambda x: x.max(), [1.0, 1, 0], [0.5, 0.5, 0], lambda x: x.amax()),
  Kink("min ties", lambda x: x.min(0), [[1.0, 2], [1, 3]], [[0.5, 1], [0.5, 0]], lambda x: x.amin(0)),
  Kink("max of infinities", lambda x: x.max(), [-INF, -INF], [0.5, 0.5], lambda x: x.amax()),
  # PyTorch: the first
  Kink("max_pool2d ties", lambda x: x.max_pool2d(2), [[[[1.0, 1], [1, 0]]]], [[[[1 / 3, 1 / 3], [1 / 3, 0]]]], None),
  Kink("sort ties", lambda x: scaled(x.sort(0)[0], 1, 2, 4), [1.0, 1, 0], [2, 4, 1]),
  Kink("sort ties down", lambda x: scaled(x.sort(0, True)[0], 1, 2, 4), [0.0, 1, 1], [4, 1, 2]),
  Kink("topk ties", lambda x: scaled(x.topk(2)[0], 1, 2), [1.0, 1, 0, 1], [1, 2, 0, 0], None),  # PyTorch: any of them
  Kink("prod with a zero", lambda x: x.prod(), [1.0, 0, 2], [0, 2, 0]),
  Kink("prod with two", lambda x: x.prod(), [1.0, 0, 0], [0, 0, 0]),
  Kink("cumprod with zeros", lambda x: x.cumprod(0), [2.0, 0, 3, 0, 4], [1, 8, 0, 0, 0]),
  Kink("std of equals", lambda x: x.std(), [1.0, 1, 1], [0, 0, 0]),
  Kink("var of equals", lambda x: x.var(), [1.0, 1], [0, 0]),
  Kink("norm of nothing", lambda x: x.normalize(dim=0), [0.0, 0], [1e12, 1e12], lambda x: F().normalize(x, dim=0)),
  Kink("softmax of -inf", lambda x: scaled(x.softmax(0), 1, 2, 3), [0.0, -INF, 0], [-0.5, 0, 0.5]),
  Kink("logsumexp of -inf", lambda x: x.logsumexp(0), [0.0, -INF, 0], [0.5, 0, 0.5]),
  Kink("masked softmax", lambda x: scaled(x.masked_fill(own(x, [True, False, False]), -INF).softmax(0), 3, 2, 4),
       [2.0, 1, 1], [0, -0.5, 0.5]),
  Kink("powers of 0", lambda x: x ** own(x, [0.0, 1, 2, 0.5]), [0.0, 0, 0, 0], [0, 1, 0, INF]), Kink("x ** 0",
      lambda x: x ** 0, [0.0, INF], [0, 0]),
  Kink("0 to powers", lambda x: own(x, [0.0, 0, 2]) ** x, [0.0, 1, 0], [0, 0, np.log(2)]),
  Kink("a number over itself", lambda x: x / x, [2.0, -3], [0, 0]),
  Kink("where before log",
       lambda x: T().where(x > 0, x, 1.0).log() if not isinstance(x, Tensor) else (x > 0).where(x, 1.0).log(), [0.0, 2],
       [0, 0.5]),
  Kink("an index twice", lambda x: x[own(x, [0, 0, 1])].square(), [2.0, 3], [8, 6]),
]
