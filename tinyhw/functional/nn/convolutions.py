"""Convolutions and their transposes over 1 to 3 axes, with and without a batch axis; patches of images.

Source of the meanings: PyTorch's documentation.
"""
from __future__ import annotations
from collections.abc import Callable
import math
from typing import Any

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.functional.operands import checked, sizes, spread
from tinyhw.methods.convolution import window_view
from tinyhw.tensor import Tensor

def _conv(n: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
          groups: int) -> Tensor:
  what = f"conv{n}d"
  x, batched = _batched(what, n, input, weight, bias)
  strides, dilations = spread("stride", stride, n), spread("dilation", dilation, n)
  _at_least_one(what, strides, dilations, groups)
  kernel = sizes(weight)[2:]
  if 0 in kernel: raise ShapeError(f"{what}: the weight {weight.shape} has no elements")
  if isinstance(padding, str):
    if padding not in ("same", "valid"): raise ArgumentError(f"{what}: padding is 'same', 'valid' or numbers")
    if padding == "same" and max(strides) > 1: raise ArgumentError(f"{what}: padding='same' wants stride 1")
    totals = [d * (k - 1) if padding == "same" else 0 for k, d in zip(kernel, dilations)]
    pairs = [(t // 2, t - t // 2) for t in totals]
    x = x.pad([None, None, *pairs]) if any(totals) else x
    pads = (0,) * n
  else: pads = spread("padding", padding, n)
  if min(pads, default=0) < 0: raise ArgumentError(f"{what}: padding is {pads}; it is not negative")
  if not x.numel(): return _nothing(x, weight, batched, [
    (d + 2 * p - dil * (k - 1) - 1) // s + 1 for d, p, dil, k, s in zip(sizes(x)[2:], pads, dilations, kernel,
                                                                        strides)])
  found = x.conv2d(weight, bias, groups, strides, dilations, pads)
  return found if batched else found.squeeze(0)

def _nothing(x: Tensor, weight: Tensor, batched: bool, lengths: list[int]) -> Tensor:
  if min(lengths) < 0 or min(lengths) == 0 and sizes(x)[0]: raise ShapeError(f"no window fits into {x.shape}")
  shape = (sizes(x)[0], sizes(weight)[0], *lengths)
  return Tensor.zeros(*(shape if batched else shape[1:]), dtype=x.dtype)

def _batched(what: str, n: int, input: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, bool]:
  if checked(what, weight).ndim != n + 2: raise ShapeError(f"{what} wants a weight of {n + 2} axes, not {weight.shape}")
  if checked(what, input).ndim not in (n + 1, n + 2):
    raise ShapeError(f"{what} wants {n + 1} or {n + 2} axes, not {input.shape}")
  for x in (weight, bias):
    if x is not None and x.dtype is not input.dtype:
      raise DTypeError(f"{what} wants tensors of one type, not {input.dtype} and {x.dtype}")
  batched = input.ndim == n + 2
  return (input if batched else input.unsqueeze(0)), batched

def _at_least_one(what: str, strides: tuple[int, ...], dilations: tuple[int, ...], groups: int) -> None:
  for name, given in (("stride", strides), ("dilation", dilations), ("groups", (groups,))):
    if min(given) < 1: raise ArgumentError(f"{what}: {name} is {given}; it must be at least 1")

def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:
  """Return the cross-correlation over one axis."""
  return _conv(1, input, weight, bias, stride, padding, dilation, groups)

def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:
  """Return the cross-correlation over two axes."""
  return _conv(2, input, weight, bias, stride, padding, dilation, groups)

def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> Tensor:
  """Return the cross-correlation over three axes."""
  return _conv(3, input, weight, bias, stride, padding, dilation, groups)

def _conv_transpose(n: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
                    output_padding: Any, groups: int, dilation: Any) -> Tensor:
  what = f"conv_transpose{n}d"
  x, batched = _batched(what, n, input, weight, bias)
  strides, dilations = spread("stride", stride, n), spread("dilation", dilation, n)
  _at_least_one(what, strides, dilations, groups)
  found = x.conv_transpose2d(weight, bias, groups, strides, dilations, spread("padding", padding, n),
                             spread("output_padding", output_padding, n))
  return found if batched else found.squeeze(0)

def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:
  """Return the transpose of conv1d."""
  return _conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)

def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:
  """Return the transpose of conv2d."""
  return _conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)

def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Tensor:
  """Return the transpose of conv3d."""
  return _conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)

# ***** patches *****

def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
  """Return the patches of images as columns: (N, C, H, W) -> (N, C * elements, patches)."""
  if checked("unfold", input).ndim not in (3, 4): raise ShapeError(f"unfold wants 3 or 4 axes, not {input.shape}")
  kernel, dilations, pads, strides = (spread(name, given, 2) for name, given in (
    ("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding), ("stride", stride)))
  for name, given, least in (("kernel_size", kernel, 1), ("dilation", dilations, 1), ("padding", pads, 0),
                             ("stride", strides, 1)):
    if min(given) < least: raise ArgumentError(f"unfold: {name} is {given}; each is {least} at least")
  x = input if input.ndim == 4 else input.unsqueeze(0)
  x = x.pad([None, None, *[(p, p) for p in pads]])
  for d, k, dil in zip(sizes(x)[2:], kernel, dilations):
    if dil * (k - 1) + 1 > d: raise ShapeError(f"unfold: a window of {k} does not fit into {d}")
  view = x._new(window_view(x.uop, kernel, strides, dilations))        # (N, C, windows 2, elements 2)
  n, channels, *rest = sizes(view)
  found = view.permute(0, 1, 4, 5, 2, 3).reshape(n, channels * rest[2] * rest[3], rest[0] * rest[1])
  return found if input.ndim == 4 else found.squeeze(0)

def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
         stride: Any = 1) -> Tensor:
  """Add patches up into images, the transpose of unfold: (N, C * elements, patches) -> (N, C, H, W)."""
  if checked("fold", input).ndim not in (2, 3): raise ShapeError(f"fold wants 2 or 3 axes, not {input.shape}")
  wanted, kernel, dilations, pads, strides = (spread(name, given, 2) for name, given in (
    ("output_size", output_size), ("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding),
    ("stride", stride)))
  x = input if input.ndim == 3 else input.unsqueeze(0)
  n, rows, count = sizes(x)
  windows = [(o + 2 * p - d * (k - 1) - 1) // s + 1 for o, p, d, k, s in zip(wanted, pads, dilations, kernel, strides)]
  each = math.prod(kernel)
  if rows % each or count != math.prod(windows):
    raise ShapeError(f"fold: {x.shape} is not (N, C * {each}, {math.prod(windows)})")
  ones = Tensor.eye(each, dtype=x.dtype).reshape(each, 1, *kernel)
  y = x.reshape(n * (rows // each), each, *windows)
  extra = [o + 2 * p - ((w - 1) * s + d * (k - 1) + 1) for o, p, w, s, d, k in zip(
    wanted, pads, windows, strides, dilations, kernel)]
  full = y.conv_transpose2d(ones, None, 1, strides, dilations, 0)
  full = full.pad([None, None, *[(0, e) for e in extra]])
  found = full.shrink([None, None, *[(p, p + o) for p, o in zip(pads, wanted)]])
  found = found.reshape(n, rows // each, *wanted)
  return found if input.ndim == 3 else found.squeeze(0)

def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
  """Turn groups of r * r channels into r times larger images."""
  r = upscale_factor
  if checked("pixel_shuffle", input).ndim < 3: raise ShapeError(f"pixel_shuffle wants 3 axes, not {input.shape}")
  if r < 1: raise ArgumentError(f"upscale_factor is {r}; it must be at least 1")
  *lead, c, h, w = sizes(input)
  if c % (r * r): raise ShapeError(f"pixel_shuffle: {c} channels are no multiple of {r * r}")
  n = len(lead)
  x = input.reshape(*lead, c // (r * r), r, r, h, w)
  return x.permute([*range(n), n, n + 3, n + 1, n + 4, n + 2]).reshape(*lead, c // (r * r), h * r, w * r)

def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
  """Turn squares of r * r pixels into channels."""
  r = downscale_factor
  if checked("pixel_unshuffle", input).ndim < 3: raise ShapeError(f"pixel_unshuffle wants 3 axes, not {input.shape}")
  if r < 1: raise ArgumentError(f"downscale_factor is {r}; it must be at least 1")
  *lead, c, h, w = sizes(input)
  if h % r or w % r: raise ShapeError(f"pixel_unshuffle: {h} x {w} pixels are no multiple of {r}")
  n = len(lead)
  x = input.reshape(*lead, c, h // r, r, w // r, r)
  return x.permute([*range(n), n, n + 2, n + 4, n + 1, n + 3]).reshape(*lead, c * r * r, h // r, w // r)

def channel_shuffle(input: Tensor, groups: int) -> Tensor:
  """Interleave the channels of groups."""
  if checked("channel_shuffle", input).ndim < 3: raise ShapeError(f"channel_shuffle wants 3 axes, not {input.shape}")
  n, c, *rest = sizes(input)
  if groups < 1 or c % groups: raise ShapeError(f"channel_shuffle: {c} channels do not divide into {groups} groups")
  return input.reshape(n, groups, c // groups, *rest).transpose(1, 2).reshape(n, c, *rest)

native_channel_shuffle = channel_shuffle

def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
  """Add elements around the last axes: (left, right, top, bottom, ...). Negative counts cut."""
  counts = [int(n) for n in pad]
  if len(counts) % 2: raise ArgumentError(f"pad wants two counts for each axis, not {len(counts)}")
  if len(counts) > 2 * checked("pad", input).ndim: raise ShapeError(f"pad: {len(counts)} counts for {input.shape}")
  if mode == "constant":
    fill = 0 if value is None else value
    return input.pad(counts, value=bool(fill) if input.dtype is dtypes.bool else fill) if counts else input.clone()
  if mode not in ("reflect", "replicate", "circular"):
    raise ArgumentError(f"mode is 'constant', 'reflect', 'replicate' or 'circular', not {mode!r}")
  if value: raise ArgumentError(f"mode {mode!r} takes no value")
  if input.ndim not in (len(counts) // 2 + 1, len(counts) // 2 + 2):
    raise ShapeError(f"pad: {len(counts)} counts in mode {mode} want {len(counts) // 2 + 1} axes or one more, "
                     f"not {input.shape}")
  if mode == "replicate" and min(counts) < 0: return _replicated(input, counts)
  return input.pad(counts, mode=mode)

def _replicated(x: Tensor, counts: list[int]) -> Tensor:
  """Pad by the edges, where a cut may be longer than the axis: each element is the nearest of the input."""
  for i in range(len(counts) // 2):
    axis, (before, after) = x.ndim - 1 - i, counts[2 * i:2 * i + 2]
    n = sizes(x)[axis]
    if n + before + after < 1: raise ShapeError(f"pad: axis {axis} of {x.shape} has no element left")
    x = x[(slice(None),) * axis + ([min(max(k - before, 0), n - 1) for k in range(n + before + after)],)]
  return x

def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
  """Add elements of one value around the last axes."""
  return _padded(input, pad, "constant", value)

_padded: Callable[..., Tensor] = globals()["pad"]   # the parameter hides the function
