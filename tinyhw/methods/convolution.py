"""Convolutions and pooling over any number of spatial axes.

A convolution is sliding windows (views.windows: a view, nothing is copied) times weights, summed: one kernel. Its
gradient is two more sums of the same form, rather than the transpose of each step (`define_gradient`). So each of them
is one kernel too. The gradient for the input of a strided convolution is a transposed convolution, which is done by
phases (`transposed_convolve`).
"""
from __future__ import annotations
from collections.abc import Callable, Sequence
import math
from typing import TYPE_CHECKING, Any, Literal, overload

from tinyhw.dtype import DTypeLike, dtypes, least_upper_dtype, to_dtype
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.gradient import define_gradient
from tinyhw.helpers import ceildiv
from tinyhw.methods.checks import flag, size, whole, wholes
from tinyhw.methods.graph import graph
from tinyhw.methods.graph.views import Pairs, dilate, fixed, pad_constant, static, windows
from tinyhw.methods.sorting import Sorting
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.decide import holds
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint
if TYPE_CHECKING: from tinyhw.tensor import Tensor

Sizes = int | Sequence[int]

def spread(x: Sizes, n: int, what: str, least: int = 1) -> tuple[int, ...]:
  """Return one number for each of n spatial axes, at least `least`. Raises ArgumentError."""
  found = wholes(what, x, least)
  if not isinstance(x, (tuple, list)): found *= n
  if len(found) != n:
    raise ArgumentError(f"{what}={found} does not fit: give one number, or one for each of {n} spatial axes")
  return found

def padding_pairs(padding: Sizes, n: int) -> Pairs:
  """Return (before, after) for each of n spatial axes. padding: one number, one per axis, or two per axis beginning
  with the last."""
  if isinstance(padding, str):
    raise ArgumentError(f"padding={padding!r}: give numbers; nn.Conv2d knows 'same' and 'valid'")
  if not isinstance(padding, (tuple, list)): return [(size("padding", padding),) * 2] * n
  flat = [size("padding", p) for p in padding]
  if len(flat) == 2 * n: return list(zip(flat[::2], flat[1::2]))[::-1]
  if len(flat) != n:
    raise ArgumentError(f"padding={tuple(padding)} does not fit: give 1, {n} or {2 * n} numbers for {n} spatial axes")
  return [(p, p) for p in flat]

def window_view(u: UOp, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> UOp:
  """Return (..., *sizes) as (..., *windows, *elements of the window) for the last len(kernel) axes."""
  n = len(kernel)
  lead = len(u.shape) - n
  for i in reversed(range(n)): u = windows(u, lead + i, kernel[i], stride[i], dilation[i])
  return graph.permute(u, (*range(lead), *range(lead + 1, lead + 2 * n, 2), *range(lead, lead + 2 * n, 2)))

class Convolution(Sorting):
  """conv2d, pooling and their transposes."""
  __slots__ = ()

  def conv2d(self, weight: Tensor, bias: Tensor | None = None, groups: int = 1, stride: Sizes = 1, dilation: Sizes = 1,
             padding: Sizes = 0,
             dtype: DTypeLike | None = None) -> Tensor:
    """Compute a cross-correlation. self: (N, Cin, *sizes)  weight: (Cout, Cin / groups, *kernel)  bias: (Cout,)  ->
    (N, Cout, *sizes).

    It takes any number of spatial axes. padding: one number, one per axis, or two per axis beginning with the last.
    Raises ShapeError.

    >>> Tensor.ones(1, 1, 3, 3).conv2d(Tensor.ones(1, 1, 3, 3), padding=1).tolist()
    [[[[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]]]
    """
    n = self._spatial_axes("conv2d", weight)
    self._check_convolution("conv2d", weight, groups, weight.shape[1], weight.shape[0])
    self._check_bias("conv2d", bias, weight.shape[0])
    weight, kernel = self._new(fixed(weight.uop, "convolve with")), [static(d, "convolve with")
                                                                     for d in weight.shape[2:]]
    strides, dilations = spread(stride, n, "stride"), spread(dilation, n, "dilation")
    pairs = padding_pairs(padding, n)
    for d, (b, e), k, dil in zip(self.shape[2:], pairs, kernel, dilations):
      if holds(d + b + e < dil * (k - 1) + 1):
        raise ShapeError(f"cannot convolve {graph.show(self.shape)} with {graph.show(weight.shape)}: the window of "
                         f"{dil * (k - 1) + 1} "
                         f"(dilated) is larger than the padded input of {graph.show_dimension(d + b + e)}")
    return self._convolved(weight, bias, dtype, lambda x, w: convolve(x, w, groups, strides, dilations, pairs))

  def _convolved(self, weight: Tensor, bias: Tensor | None, dtype: DTypeLike | None,
                 convolved: Callable[[UOp, UOp], UOp]) -> Tensor:
    """Apply `convolved` to this tensor and the weight, in the type of the accumulator, and add the bias there, too.

    So results of 16 bits are rounded once.
    """
    out = least_upper_dtype(self.dtype, weight.dtype)
    wide = graph.accumulator(out) if dtype is None else to_dtype(dtype)
    channels = graph.shrink_axis(self.uop, 1, 0, static(self.shape[1], "convolve the channels of"))
    y = self._new(convolved(graph.cast(channels, wide), graph.cast(weight.uop, wide)))
    once = dtype is None and bias is not None and bias.dtype is out
    if dtype is None and not once: y = y.cast(out)
    if bias is None: return y
    along = bias.reshape(1, -1, *(1,) * (self.ndim - 2))
    return y.add(along.cast(wide)).cast(out) if once else y.add(along)

  def _spatial_axes(self, what: str, weight: Tensor) -> int:
    """Return the number of axes over which a convolution slides."""
    if self._on_this_device(what, weight).ndim < 3 or self.ndim != weight.ndim:
      raise ShapeError(f"cannot {what} {graph.show(self.shape)} with {graph.show(weight.shape)}: both need two axes "
                       f"and the same spatial ones; "
                       "add the batch axis with unsqueeze(0)")
    return weight.ndim - 2

  def _check_convolution(self, what: str, weight: Tensor, groups: int, per_group: sint, outputs: sint) -> None:
    if (not isinstance(groups, int) or groups < 1 or not graph.equal(self.shape[1], groups * per_group)
        or not graph.equal(outputs % groups, 0)):
      raise ShapeError(f"cannot {what} {graph.show(self.shape)} with {graph.show(weight.shape)} in {groups} groups: "
                       f"the input has {self.shape[1]} "
                       f"channels, the weight is for {groups} x {per_group}, and {outputs} outputs must be a multiple "
                       f"of the groups")

  def conv_transpose2d(self, weight: Tensor, bias: Tensor | None = None, groups: int = 1, stride: Sizes = 1,
                       dilation: Sizes = 1,
                       padding: Sizes = 0, output_padding: Sizes = 0) -> Tensor:
    """Compute the transpose of conv2d (its gradient for the input). weight: (Cin, Cout / groups, *kernel).
    output_padding: less than stride or dilation.

    >>> Tensor([[[[1.0, 2.0]]]]).conv_transpose2d(Tensor.ones(1, 1, 1, 2)).tolist()
    [[[[1.0, 3.0, 2.0]]]]
    """
    n = self._spatial_axes("conv_transpose2d", weight)
    self._check_convolution("conv_transpose2d", weight, groups, int(weight.shape[0]) // max(groups, 1), weight.shape[0])
    strides, dilations, extra = spread(stride, n, "stride"), spread(dilation, n,
                                                                    "dilation"), spread(output_padding, n,
                                                                                        "output_padding", 0)
    for o, s, d in zip(extra, strides, dilations):
      if o >= max(s, d):
        raise ArgumentError(f"output_padding {o} is for a stride or dilation above it, and these are {s} and {d}: it "
                            f"tells apart the sizes of input "
                            "that give one size of output; pad() the result for more")
    kernel, pairs = [int(d) for d in weight.shape[2:]], padding_pairs(padding, n)
    for old, k, s, dil, (b, e), o in zip(self.shape[2:], kernel, strides, dilations, pairs, extra):
      if holds(old > 0) and holds(s * (old - 1) + dil * (k - 1) + 1 + o <= b + e):
        raise ShapeError(f"cannot conv_transpose2d {graph.show(self.shape)} with {graph.show(weight.shape)}: the "
                         f"padding of {b} and {e} takes away "
                         f"all {s * (old - 1) + dil * (k - 1) + 1 + o} elements of an axis; use less")
    self._check_bias("conv_transpose2d", bias, groups * weight.shape[1])
    sizes = [graph.simple(s * (old - 1) + dil * (k - 1) + 1 + o - b - e)
             for old, k, s, dil, (b, e), o in zip(self.shape[2:], kernel, strides, dilations, pairs, extra)]
    return self._convolved(weight, bias, None, lambda y, w: transposed_convolve(y, w, groups, strides, dilations,
                                                                                [b for b, _ in pairs], sizes))

  def _check_bias(self, what: str, bias: Tensor | None, outputs: sint) -> None:
    if bias is not None and self._operand(what, bias).numel() != outputs:
      raise ShapeError(f"a bias of shape {graph.show(bias.shape)} does not fit {outputs} output channels; give one "
                       f"number for each")

  # ***** pooling *****

  def _pooled(self, kernel_size: Sizes, stride: Sizes | None, dilation: Sizes, padding: Sizes, ceil_mode: bool,
              value: float | int | bool) -> tuple[UOp, tuple[int, ...]]:
    """Return windows over the last axes, with `value` outside of the tensor, and the axes of a window, which are the
    last ones."""
    n = _axes_of(kernel_size)
    kernel = spread(kernel_size, n, "kernel_size")
    strides, dilations = spread(kernel if stride is None else stride, n, "stride"), spread(dilation, n, "dilation")
    if self.ndim < n: raise ShapeError(f"cannot pool {graph.show(self.shape)}: windows of {n} axes")
    pairs = padding_pairs(padding, n)
    if flag("ceil_mode", ceil_mode):
      pairs = _ceil_pairs([static(d, "pool") for d in self.shape[-n:]], kernel, strides, dilations, pairs)
    for d, (b, e), k, dil in zip(self.shape[-n:], pairs, kernel, dilations):
      if holds(d + b + e < dil * (k - 1) + 1):
        raise ShapeError(f"cannot pool {graph.show(self.shape)}: a window of {k} with dilation {dil} "
                         f"is larger than the padded {graph.show_dimension(d + b + e)}")
    padded = pad_constant(self.uop, [(0, 0)] * (self.ndim - n) + pairs, value)
    return window_view(padded, kernel, strides, dilations), tuple(range(self.ndim, self.ndim + n))

  @overload
  def max_pool2d(self, kernel_size: Sizes = ..., stride: Sizes | None = ..., dilation: Sizes = ...,
                 padding: Sizes = ..., ceil_mode: bool = ...,
                 return_indices: Literal[False] = ...) -> Tensor: ...
  @overload
  def max_pool2d(self, kernel_size: Sizes = ..., stride: Sizes | None = ..., dilation: Sizes = ...,
                 padding: Sizes = ..., ceil_mode: bool = ...,
                 *, return_indices: Literal[True]) -> tuple[Tensor, Tensor]: ...
  def max_pool2d(self, kernel_size: Sizes = (2, 2), stride: Sizes | None = None, dilation: Sizes = 1,
                 padding: Sizes = 0,
                 ceil_mode: bool = False, return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """Return the largest element of each window. return_indices: also its index in the flattened spatial axes.

    >>> Tensor.arange(16).reshape(1, 1, 4, 4).max_pool2d().tolist()
    [[[[5, 7], [13, 15]]]]
    """
    view, axes = self._pooled(kernel_size, stride, dilation, padding, ceil_mode, self.dtype.min)
    best = self._new(graph.fold(view, Ops.MAX, axes))
    if not flag("return_indices", return_indices): return best
    if not graph.is_plain(self.shape):
      return self._new(fixed(self.uop, "pool")).max_pool2d(kernel_size, stride, dilation, padding, ceil_mode,
                                                           return_indices=True)
    n = len(axes)
    count = math.prod(int(d) for d in self.shape[-n:])
    place = self._new(graph.broadcast(graph.reshape(graph.iota(count, graph.place_type(count), self.device),
                                                    self.shape[-n:]), self.shape))
    late = place.sub(count, reverse=True)  # the first of equal elements has the largest value
    late_view, _ = late._pooled(kernel_size, stride, dilation, padding, ceil_mode, 0)
    shape = (*best.shape, *(1,) * n)
    same = self._new(view)._or_nan(
      self._new(graph.compare(Ops.CMPEQ, view, graph.expand(graph.reshape(best.uop, shape), view.shape)))).uop
    chosen = self._new(graph.fold(graph.where(same, late_view, graph.like(late_view, 0)), Ops.MAX, axes))
    return best, chosen.sub(count, reverse=True)

  def avg_pool2d(self, kernel_size: Sizes = (2, 2), stride: Sizes | None = None, dilation: Sizes = 1,
                 padding: Sizes = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """Return the mean of each window. count_include_pad: padding counts as zeros. The padding of ceil_mode never
    counts.

    >>> Tensor.arange(16).reshape(1, 1, 4, 4).avg_pool2d().tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    count_include_pad = flag("count_include_pad", count_include_pad)
    def averages(x: Tensor) -> Tensor:
      view, axes = x._pooled(kernel_size, stride, dilation, padding, ceil_mode, 0)
      total = self._new(view).sum(axes)
      if count_include_pad and not ceil_mode: return total.mul(1 / math.prod(int(d) for d in view.shape[-len(axes):]))
      ones = x.const_like(1.0)
      if count_include_pad:
        ones = ones.pad([(0, 0)] * (self.ndim - len(axes)) + padding_pairs(padding, len(axes)), value=1)
        counted, _ = ones._pooled_rest(kernel_size, stride, dilation, total.shape[-len(axes):])
      else: counted, _ = ones._pooled(kernel_size, stride, dilation, padding, ceil_mode, 0)
      return total.div(self._new(counted).sum(axes))
    return self._precisely(averages)

  def _pooled_rest(self, kernel_size: Sizes, stride: Sizes | None, dilation: Sizes,
                   counts: Sequence[object]) -> tuple[UOp, tuple[int, ...]]:
    """Return as many windows as `counts`. Missing elements at the end are padded with zeros."""
    n = len(counts)
    kernel = spread(kernel_size, n, "kernel_size")
    strides, dilations = spread(kernel if stride is None else stride, n, "stride"), spread(dilation, n, "dilation")
    # counts are ints here
    pairs = [(0, max(0, (int(c) - 1) * s + d * (k - 1) + 1 - int(size)))  # type: ignore[call-overload]
             for c, k, s, d, size in zip(counts, kernel, strides, dilations, self.shape[-n:])]
    padded = graph.pad(self.uop, [(0, 0)] * (self.ndim - n) + pairs)
    return window_view(padded, kernel, strides, dilations), tuple(range(self.ndim, self.ndim + n))

  def max_unpool2d(self, indices: Tensor, kernel_size: Sizes = (2, 2), stride: Sizes | None = None, dilation: Sizes = 1,
                   padding: Sizes = 0,
                   output_size: Sequence[int] | None = None) -> Tensor:
    """Invert max_pool2d with return_indices and the same options: put values at their indices, zeros elsewhere.

    >>> values, places = Tensor.arange(4).reshape(1, 1, 2, 2).max_pool2d(return_indices=True)
    >>> values.max_unpool2d(places).tolist()
    [[[[0, 0], [0, 3]]]]
    """
    if self._on_this_device("max_unpool2d", indices).shape != self.shape:
      graph.refuse_shape("max_unpool2d", self.shape, indices.shape)
    n = _axes_of(kernel_size)
    kernel = spread(kernel_size, n, "kernel_size")
    strides, dilations = spread(kernel if stride is None else stride, n, "stride"), spread(dilation, n, "dilation")
    if output_size is None:
      spans = [dil * (k - 1) + 1 for dil, k in zip(dilations, kernel)]
      sizes = [(int(d) - 1) * s - int(b) - int(e) + w for d, s, w, (b, e) in zip(self.shape[-n:], strides, spans,
                                                                                 padding_pairs(padding, n))]
    else: sizes = list(wholes("output_size", output_size, 0)[-n:])
    if len(sizes) != n or self.ndim < n:
      raise ShapeError(f"cannot max_unpool2d {graph.show(self.shape)} to {sizes}: windows have {n} axes")
    lead = self.shape[:-n]
    empty = self._new(graph.full((*lead, math.prod(sizes)), self.dtype, 0, self.device))
    return empty.scatter(len(lead), indices.flatten(-n), self.flatten(-n)).reshape(*lead, *sizes)

  def interpolate(self, size: Sequence[int], mode: str = "linear", align_corners: bool = False) -> Tensor:
    """Resize the last len(size) axes. mode: "nearest", "nearest-exact" or "linear" (along each resized axis).

    >>> Tensor([[[1.0, 3.0]]]).interpolate((4,)).tolist()
    [[[1.0, 1.5, 2.5, 3.0]]]
    """
    if mode not in ("nearest", "nearest-exact", "linear"):
      raise ArgumentError(f"mode is 'nearest', 'nearest-exact' or 'linear', not {mode!r}")
    align_corners = flag("align_corners", align_corners)
    if align_corners and mode != "linear": raise ArgumentError("align_corners goes with mode='linear' only")
    if not isinstance(size, (tuple, list)): raise ArgumentError(f"interpolate wants a tuple of sizes, not {size!r}")
    if len(size) > self.ndim: raise ShapeError(f"cannot resize {len(size)} axes of {graph.show(self.shape)}")
    def resized(x: Tensor) -> Tensor:
      for i, new in enumerate(size):
        axis = x.ndim - len(size) + i
        x = x._resized(axis, static(x.shape[axis], "resize"), whole("a size", new), mode, align_corners)
      return x
    return self._precisely(resized).cast(self.dtype) if mode == "linear" else resized(self._self())

  def _resized(self, axis: int, old: int, new: int, mode: str, align_corners: bool) -> Tensor:
    if old == 0 or new <= 0: raise ShapeError(f"cannot resize an axis of size {old} to {new}")
    i = self.arange(new, device=self.device, dtype=dtypes.float64 if self.dtype is dtypes.float64 else dtypes.float32)
    index: tuple[slice, ...] = (slice(None),) * axis
    kind = graph.place_type(old)
    if mode == "nearest": return _at(self, *index, i.mul(old / new).floor().cast(kind).minimum(old - 1))
    if mode == "nearest-exact": return _at(self, *index, i.add(0.5).mul(old / new).floor().cast(kind).minimum(old - 1))
    place = i.mul((old - 1) / (new - 1) if new > 1 else 0.0) if align_corners else i.add(0.5).mul(old / new).sub(0.5)
    place = place.clamp(0, old - 1)
    low = place.floor()
    weight = place.sub(low).reshape(-1, *(1,) * (self.ndim - axis - 1))
    first = _at(self, *index, low.cast(kind))
    second = _at(self, *index, low.add(1).clamp(0, old - 1).cast(kind))
    return first.lerp(second, weight)

def _at(x: Convolution, *indices: Any) -> Tensor: return x[indices]

def _ceil_pairs(sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
                pairs: Pairs) -> Pairs:
  """Add padding at the ends, so that the last window is whole. That window must start inside of the input or of the
  padding at its start."""
  found: Pairs = []
  for d, k, s, dil, (b, e) in zip(sizes, kernel, strides, dilations, pairs):
    before, after = int(b), int(e)
    count = ceildiv(d + before + after - dil * (k - 1) - 1, s) + 1
    if s * (count - 1) >= d + before: count -= 1
    found.append((before, after + max(0, s * (count - 1) + dil * (k - 1) + 1 - (d + before + after))))
  return found

# ***** convolution on nodes *****

def convolve(x: UOp, w: UOp, groups: int, stride: Sequence[int], dilation: Sequence[int], pairs: Pairs,
             inside: UOp | None = None) -> UOp:
  """Convolve x: (N, Cin, *sizes) with w: (Cout, Cin / groups, *kernel) of the same type -> (N, Cout, *windows).

  inside: (1, Cout / groups, 1, *kernel), true for the elements of the weight that exist. The others are 0, and do not
  make NaN from an infinite x.
  """
  n = len(stride)
  kernel: Any = tuple([static(d, "convolve") for d in w.shape[2:]])
  batch, outputs = x.shape[0], static(w.shape[0], "convolve")
  per, inputs = outputs // groups, w.shape[1]
  view = window_view(graph.pad(x, [(0, 0), (0, 0), *pairs]), kernel, stride, dilation)  # (N, Cin, *windows, *kernel)
  count = view.shape[2:2 + n]
  shape = (batch, groups, per, *count, inputs, *kernel)
  a = graph.reshape(view, (batch, groups, inputs, *count, *kernel))
  a = graph.permute(a, (0, 1, *range(3, 3 + n), 2, *range(3 + n, 3 + 2 * n)))
  a = graph.expand(graph.reshape(a, (batch, groups, 1, *count, inputs, *kernel)), shape)
  b = graph.expand(graph.reshape(w, (1, groups, per, *(1,) * n, inputs, *kernel)), shape)
  if inside is not None:
    a = graph.where(graph.expand(graph.reshape(inside, (1, 1, per, *(1,) * n, 1, *kernel)), shape), a, graph.like(a, 0))
  axes = tuple(range(3 + n, 4 + 2 * n))
  total = graph.reduce(graph.mul(a, b), Ops.ADD, axes)
  sizes, weight_shape = x.shape, w.shape

  def backward(u: UOp, g: UOp) -> tuple[UOp, UOp]:
    """Return the gradient of x, which is g convolved with the reversed weights, and that of w, which is g times the
    windows, summed over batch and windows."""
    a, b = u.src[0].src
    wide = graph.expand(g, shape)
    dw = graph.reshape(graph.reduce(graph.mul(a, wide), Ops.ADD, (0, *range(3, 3 + n))), weight_shape)
    y = graph.reshape(g, (batch, outputs, *count))
    weights = graph.reshape(b.src[0] if b.op is Ops.EXPAND else b, weight_shape)
    return transposed_convolve(y, weights, groups, stride, dilation, [before for before, _ in pairs], sizes[2:]), dw

  if total.op is Ops.REDUCE_AXIS: define_gradient(total, (x, w), backward)   # otherwise it has no terms
  return graph.reshape(total, (batch, outputs, *count))

# ***** transposed convolution on nodes *****

class Phases(NamedTuple):
  """The phases of an axis of a transposed convolution. For each phase p, the elements q * stride + p are one
  convolution without a stride.

  - step: the distance between two elements of the kernel in one phase.
  - phases: the number of phases with elements.
  - taps: the largest number of elements in a phase.
  - tap_distance: the distance in the input from one tap to the next.
  - between: the number of phases without elements after each one that may have some.
  - first: the first q.
  - quotients: the number of values of q.
  """
  step: int
  phases: int
  taps: int
  tap_distance: int
  between: int
  first: int
  quotients: sint

def phases_of(kernel: int, stride: int, dilation: int, before: int, size: sint) -> Phases:
  """Return the phases of an axis. The stride must divide the dilation, or the dilation the stride."""
  step, first = max(stride // dilation, 1), before // stride
  quotients = graph.simple(ceildiv(before + size, stride) - first)
  return Phases(step, min(step, kernel), ceildiv(kernel, step), max(dilation // stride, 1), stride // step - 1, first,
                quotients)

def transposed_convolve(y: UOp, w: UOp, groups: int, stride: Sequence[int], dilation: Sequence[int],
                        before: Sequence[sint],
                        sizes: Sequence[sint]) -> UOp:
  """Return the gradient of `convolve` for x, from that of its result. y: (N, Cout, *windows), w: (Cout, Cin / groups,
  *kernel) -> (N, Cin, *sizes).

  x[i] gets y[o] * w[j] where i + before = o * stride + j * dilation. A phase is the elements with one remainder of i +
  before by the stride. It uses every (stride / dilation)-th element of the kernel, so it is a convolution without a
  stride. All phases are channels of one convolution.

  Phases with fewer elements than others are masked (`inside`). If neither of stride and dilation divides the other,
  zeros are inserted between the elements of y.
  """
  n = len(stride)
  stride = list(stride)
  for i, (s, d) in enumerate(zip(stride, dilation)):
    if s % d and d % s: y, stride[i] = dilate(y, 2 + i, s), 1
  kernel, outputs, inputs = [static(d, "convolve") for d in w.shape[2:]], static(w.shape[0],
                                                                                 "convolve"), static(w.shape[1],
                                                                                                     "convolve")
  phases = [phases_of(*axis) for axis in zip(kernel, stride, dilation, map(int, before), sizes)]
  filled = all(p.phases * p.taps == k for p, k in zip(phases, kernel))
  inside = None if filled else by_phase(graph.full((1, 1, inputs, *kernel), dtypes.bool, True), phases)
  w = by_phase(graph.reshape(w, (groups, outputs // groups, inputs, *kernel)), phases)
  w = graph.reshape(w, (groups * inputs * math.prod([p.phases for p in phases]), outputs // groups,
                        *[p.taps for p in phases]))
  around: Pairs = [((p.taps - 1) * p.tap_distance - p.first, graph.simple(p.first + p.quotients - used))
                   for p, used in zip(phases, y.shape[2:])]
  x = convolve(pad_constant(y, [(0, 0), (0, 0), *around], 0), w, groups, (1,) * n, [p.tap_distance for p in phases],
               [(0, 0)] * n, inside)
  x = graph.reshape(x, (y.shape[0], groups * inputs, *[p.phases for p in phases], *[p.quotients for p in phases]))
  x = graph.permute(x, (0, 1, *[axis for i in range(n) for axis in (2 + n + i, 2 + i)]))
  if any(s > 1 for s in stride): x = graph.contiguous(x)   # so that the loops of the kernel are phases and quotients
  for i, p in enumerate(phases): x = side_by_side(x, 2 + i, p)
  cuts = [(b - p.first * s, graph.simple(b - p.first * s + d)) for b, p, s, d in zip(before, phases, stride, sizes)]
  return graph.shrink(x, [(0, d) for d in x.shape[:2]] + cuts)

def by_phase(w: UOp, phases: Sequence[Phases]) -> UOp:
  """Return (groups, outputs, inputs, *kernel) as (groups, inputs, *phases, outputs, *taps), the last taps first.
  Elements outside of the kernel are 0."""
  n = len(phases)
  w = graph.pad(w, [(0, 0)] * 3 + [(0, p.phases * p.taps - k) for p, k in zip(phases, w.shape[3:])])
  w = graph.reshape(w, (*w.shape[:3], *[m for p in phases for m in (p.taps, p.phases)]))
  w = graph.permute(w, (0, 2, *range(4, 4 + 2 * n, 2), 1, *range(3, 3 + 2 * n, 2)))
  return graph.flip(w, tuple(range(3 + n, 3 + 2 * n)))

def side_by_side(x: UOp, axis: int, p: Phases) -> UOp:
  """Merge the quotients and phases of an axis into one axis, with zeros for phases without elements of the kernel."""
  lead, rest = x.shape[:axis], x.shape[axis + 2:]
  x = graph.pad_axis(x, axis + 1, 0, p.step - p.phases)
  x = graph.pad_axis(graph.reshape(x, (*lead, p.quotients, p.step, 1, *rest)), axis + 2, 0, p.between)
  return graph.reshape(x, (*lead, graph.simple(p.quotients * (p.step * (1 + p.between))), *rest))

def _axes_of(kernel_size: Sizes) -> int:
  """Return the number of axes of a window."""
  n = len(kernel_size) if isinstance(kernel_size, (tuple, list)) else 2
  if not n: raise ArgumentError("kernel_size is empty; give the size of the window along each axis that is pooled")
  return n
