"""Pooling over 1 to 3 axes, with and without a batch axis: maxima, means, norms, adaptive and fractional windows.

Windows are those of Tensor.max_pool2d and avg_pool2d, which slide over any number of axes. Indices are int64, in the
flattened pooled axes.
"""
from __future__ import annotations
from collections.abc import Sequence
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.known import want_index
from tinyhw.functional.operands import checked, sizes, spread, want_int
from tinyhw.functional.rules import with_rule
from tinyhw.functional.shapes import cat, part
from tinyhw.helpers import ceildiv
from tinyhw.tensor import Tensor

def _pooled_axes(what: str, x: Tensor, n: int) -> None:
  if checked(what, x).ndim not in (n + 1, n + 2):
    raise ShapeError(f"{what} wants {n + 1} or {n + 2} axes, not {x.shape}")
  if any(d == 0 for d in sizes(x)[-n - 1:]): raise ShapeError(f"{what} of no elements: the shape is {x.shape}")

def _options(what: str, n: int, kernel_size: Any, stride: Any, padding: Any,
             dilation: Any) -> tuple[tuple[int, ...], ...]:
  kernel = spread("kernel_size", kernel_size, n)
  if stride is None or isinstance(stride, (tuple, list)) and not stride: stride = kernel
  strides, pads, dilations = spread("stride", stride, n), spread("padding", padding, n), spread("dilation", dilation, n)
  for name, given, least in (("kernel_size", kernel, 1), ("stride", strides, 1), ("padding", pads, 0),
                             ("dilation", dilations, 1)):
    if min(given) < least: raise ArgumentError(f"{what}: {name} is {given}; each is {least} at least")
  for k, p, d in zip(kernel, pads, dilations):
    if 2 * p > (k - 1) * d + 1: raise ArgumentError(f"{what}: padding {p} is more than half of the window {k}")
  return kernel, strides, pads, dilations

def _count(n: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
  """Return the number of windows along an axis."""
  span = n + 2 * p - d * (k - 1) - 1
  count = (ceildiv(span, s) if ceil_mode else span // s) + 1
  return count - 1 if ceil_mode and (count - 1) * s >= n + p else count

def _max_pool(n: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
              return_indices: bool) -> Any:
  what = f"max_pool{n}d"
  _pooled_axes(what, input, n)
  kernel, strides, pads, dilations = _options(what, n, kernel_size, stride, padding, dilation)
  for size, k, s, p, d in zip(sizes(input)[-n:], kernel, strides, pads, dilations):
    if _count(size, k, s, p, d, ceil_mode) < 1: raise ShapeError(f"{what}: no window of {k} fits into {size}")
  if not return_indices: return input.max_pool2d(kernel, strides, dilations, pads, ceil_mode)
  best, places = input.max_pool2d(kernel, strides, dilations, pads, ceil_mode, return_indices=True)
  return best, places.long()

def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
  """Return the largest element of each window of one axis."""
  return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
  """Return the largest element of each window of two axes."""
  return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

def max_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
  """Return the largest element of each window of three axes."""
  return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

def max_pool2d_with_indices_backward(grad_output: Tensor, input: Tensor, kernel_size: Any, stride: Any, padding: Any,
                                     dilation: Any, ceil_mode: bool, indices: Tensor) -> Tensor:
  """Return the gradient of max_pool2d: that of each window, added to the element whose index it returned."""
  lead, rest = sizes(input)[:-2], sizes(input)[-2:]
  flat = Tensor.zeros(*lead, math.prod(rest), dtype=input.dtype)
  n = len(lead)
  found = flat.scatter_reduce(n, indices.reshape(*lead, -1), grad_output.reshape(*lead, -1), "sum")
  return found.reshape(*lead, *rest)

def _avg_pool(n: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
              count_include_pad: bool, divisor_override: int | None) -> Tensor:
  what = f"avg_pool{n}d"
  _pooled_axes(what, input, n)
  kernel, strides, pads, _ = _options(what, n, kernel_size, stride, padding, 1)
  for size, k, s, p in zip(sizes(input)[-n:], kernel, strides, pads):
    if _count(size, k, s, p, 1, ceil_mode) < 1: raise ShapeError(f"{what}: no window of {k} fits into {size}")
  if not dtypes.is_float(input.dtype):     # integers stay, rounded to zero
    wide = _avg_pool(n, input.double(), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return wide.cast(input.dtype)
  if divisor_override is not None:
    if not divisor_override: raise ArgumentError(f"{what}: divisor_override is 0")
    view, axes = input._pooled(kernel, strides, 1, pads, ceil_mode, 0)
    return input._new(view).sum(axes).div(divisor_override)
  return input.avg_pool2d(kernel, strides, 1, pads, ceil_mode, count_include_pad)

def avg_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
  """Return the mean of each window of one axis."""
  return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)

def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
  """Return the mean of each window of two axes."""
  return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

def avg_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
  """Return the mean of each window of three axes."""
  return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

def _lp_pool(n: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
  count = math.prod(spread("kernel_size", kernel_size, n))
  mean = _avg_pool(n, input.pow(norm_type), kernel_size, stride, 0, ceil_mode, True, None)
  size = mean.abs()
  return mean.sign().mul(size.le(0).where(0, size)).mul(count).pow(1 / norm_type)

def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
  """Return the p-norm of each window of one axis."""
  return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)

def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
  """Return the p-norm of each window of two axes."""
  return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)

def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
  """Return the p-norm of each window of three axes."""
  return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)

# ***** adaptive *****

def _outputs(what: str, input: Tensor, output_size: Any, n: int) -> tuple[int, ...]:
  if checked(what, input).ndim not in (n + 1, n + 2): raise ShapeError(f"{what} wants {n + 1} or {n + 2} axes")
  given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
  if len(given) != n: raise ArgumentError(f"{what}: output_size is one number or {n}, not {output_size!r}")
  found = tuple([d if o is None else int(o) for o, d in zip(given, sizes(input)[-n:])])
  if min(found, default=0) < 0: raise ArgumentError(f"{what}: output_size is {found}; it is not negative")
  if 0 in sizes(input)[-n:]: raise ShapeError(f"{what} of no elements: the shape is {input.shape}")
  return found

def _bounds(old: int, new: int) -> list[tuple[int, int]]:
  return [(i * old // new, -(-(i + 1) * old // new)) for i in range(new)]

def _adaptive_avg_pool(n: int, input: Tensor, output_size: Any) -> Tensor:
  x = input
  for i, new in enumerate(_outputs(f"adaptive_avg_pool{n}d", input, output_size, n)):
    axis = x.ndim - n + i
    old = sizes(x)[axis]
    if new == old: continue
    if not new: x = part(x, axis, 0, 0)
    elif old % new == 0: x = x.reshape(*sizes(x)[:axis], new, old // new, *sizes(x)[axis + 1:]).mean(axis + 1)
    else: x = cat([part(x, axis, b, e).mean(axis, keepdim=True) for b, e in _bounds(old, new)], axis)
  return x

def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
  """Return the means of output_size windows that cover one axis."""
  return _adaptive_avg_pool(1, input, output_size)

def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
  """Return the means of output_size windows that cover two axes."""
  return _adaptive_avg_pool(2, input, output_size)

def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
  """Return the means of output_size windows that cover three axes."""
  return _adaptive_avg_pool(3, input, output_size)

def _largest_of_windows(input: Tensor, windows: Sequence[list[list[int]]]) -> tuple[Tensor, Tensor]:
  """Return the largest element of each window and its index. windows: for each of the last axes, the elements of each
  window along it, all windows of one length."""
  n = len(windows)
  lengths = sizes(input)[-n:]
  lead = sizes(input)[:-n]
  counts, spans = [len(w) for w in windows], [len(w[0]) for w in windows]
  places = Tensor.full((1,) * (2 * n), 0, dtypes.int32)
  for i, rows in enumerate(windows):
    shape = [counts[i] if k == i else spans[i] if k == n + i else 1 for k in range(2 * n)]
    places = places.mul(lengths[i]).add(Tensor(rows, dtype=dtypes.int32).reshape(shape))
  flat = places.reshape(math.prod(counts), math.prod(spans))
  values = input.reshape(*lead, math.prod(lengths))[..., flat]          # (..., windows, elements)
  at = values.argmax(-1, keepdim=True)
  best = values.gather(-1, at).squeeze(-1)
  chosen = flat.expand(*lead, *sizes(flat)).gather(-1, at).squeeze(-1)
  return best.reshape(*lead, *counts), chosen.reshape(*lead, *counts).long()

def _adaptive_max_pool(n: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
  what = f"adaptive_max_pool{n}d"
  wanted = _outputs(what, input, output_size, n)
  if 0 in wanted or 0 in sizes(input):
    shape = (*sizes(input)[:-n], *wanted)
    found = Tensor.empty(*shape, dtype=input.dtype), Tensor.empty(*shape, dtype=dtypes.int64)
    return found if return_indices else found[0]
  windows = []
  for old, new in zip(sizes(input)[-n:], wanted):
    bounds = _bounds(old, new)
    longest = max(e - b for b, e in bounds)
    windows.append([[min(b + k, e - 1) for k in range(longest)] for b, e in bounds])   # the last one repeats
  found = _largest_of_windows(input, windows)
  return found if return_indices else found[0]

def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
  """Return the largest elements of output_size windows that cover one axis."""
  return _adaptive_max_pool(1, input, output_size, return_indices)

def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
  """Return the largest elements of output_size windows that cover two axes."""
  return _adaptive_max_pool(2, input, output_size, return_indices)

def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
  """Return the largest elements of output_size windows that cover three axes."""
  return _adaptive_max_pool(3, input, output_size, return_indices)

# ***** fractional *****

def _fractional(n: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, return_indices: bool,
                samples: Any) -> Any:
  """Windows that begin at pseudo-random places, drawn once per call. Source: Graham 2014."""
  what = f"fractional_max_pool{n}d"
  _pooled_axes(what, input, n)
  if (output_size is None) == (output_ratio is None): raise ArgumentError(f"{what} wants output_size or output_ratio")
  kernel = spread("kernel_size", kernel_size, n)
  if output_size is None:
    ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
    if any(not 0 < r < 1 for r in ratios): raise ArgumentError(f"{what}: output_ratio is from 0 to 1, not {ratios}")
    wanted = tuple([int(d * r) for d, r in zip(sizes(input)[-n:], ratios)])
  else: wanted = spread("output_size", output_size, n)
  lengths, lead = sizes(input)[-n:], sizes(input)[:-n]
  planes = math.prod(lead)
  shares = Tensor.rand(planes, n) if samples is None else samples.reshape(-1, n)[:planes]
  places = Tensor.full((1,) * (1 + 2 * n), 0, dtypes.int32)            # (planes, windows ..., elements ...)
  for i, (old, new, k) in enumerate(zip(lengths, wanted, kernel)):
    if new < 1 or new + k - 1 > old: raise ShapeError(f"{what}: {new} windows of {k} do not fit into {old}")
    at = n - 1 - i if n == 2 else i          # of two numbers, PyTorch takes the width's first
    begins = _begins(part(shares, 1, at, at + 1), old, new, k)
    begins = begins.reshape(planes, *[new if j == i else 1 for j in range(2 * n)])
    inner = Tensor.arange(k, dtype=dtypes.int32).reshape([k if j == n + i else 1 for j in range(2 * n)])
    places = places.mul(old).add(begins.add(inner))
  count, each = math.prod(wanted), math.prod(kernel)
  flat = places.reshape(planes, count * each)
  values = input.reshape(planes, math.prod(lengths)).gather(1, flat).reshape(planes, count, each)
  chosen = values.argmax(-1, keepdim=True)
  best = values.gather(-1, chosen).reshape(*lead, *wanted)
  if not return_indices: return best
  return best, flat.reshape(planes, count, each).gather(-1, chosen).reshape(*lead, *wanted).long()

def _begins(share: Tensor, old: int, new: int, k: int) -> Tensor:
  """Return where windows begin along an axis, (planes, new). share: (planes, 1), from 0 to 1."""
  last = Tensor.full((sizes(share)[0], 1), old - k, dtypes.int32)
  if new == 1: return last
  step = (old - k) / (new - 1)
  first = share.add(Tensor.arange(new - 1, dtype=share.dtype)).mul(step).int().sub(share.mul(step).int())
  return cat([first, last], 1)

def fractional_max_pool2d(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
  """Return the largest elements of windows of two axes at pseudo-random distances."""
  return _fractional(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)

def fractional_max_pool3d(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
  """Return the largest elements of windows of three axes at pseudo-random distances."""
  return _fractional(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)

# ***** inverses *****

def _max_unpool(n: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any,
                output_size: Any) -> Tensor:
  what = f"max_unpool{n}d"
  if checked(what, input).ndim not in (n + 1, n + 2): raise ShapeError(f"{what} wants {n + 1} or {n + 2} axes")
  if sizes(checked(what, indices)) != sizes(input): raise ShapeError(f"{what}: indices have shape {indices.shape}")
  want_int(f"{what}'s indices", indices)
  kernel, strides, pads, _ = _options(what, n, kernel_size, stride, padding, 1)
  usual = [(d - 1) * s - 2 * p + k for d, s, p, k in zip(sizes(input)[-n:], strides, pads, kernel)]
  wanted = usual if output_size is None else list(output_size)[-n:]
  for w, u, s in zip(wanted, usual, strides):
    if not u - s < w < u + s: raise ArgumentError(f"{what}: output_size {w} is not within {s} of {u}")
  lead = sizes(input)[:-n]
  count = math.prod(wanted)
  want_index(f"an index of {what}", indices, count)
  flat = Tensor.zeros(*lead, count, dtype=input.dtype)
  if not input.numel(): return flat.reshape(*lead, *wanted)
  places = indices.reshape(*lead, -1)
  found = flat.scatter(len(lead), places, input.detach().reshape(*lead, -1))
  def rule(y: Tensor, g: Tensor, x: Tensor) -> tuple[Tensor]:      # PyTorch's, also where two have one index
    return (g.reshape(*lead, count).gather(len(lead), places).reshape(sizes(x)),)
  return with_rule(found.reshape(*lead, *wanted), (input,), rule)

def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
  """Put the values of max_pool1d at their indices, zeros elsewhere."""
  return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)

def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
  """Put the values of max_pool2d at their indices, zeros elsewhere."""
  return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)

def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
  """Put the values of max_pool3d at their indices, zeros elsewhere."""
  return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)

