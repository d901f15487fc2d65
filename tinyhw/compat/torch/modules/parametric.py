"""Layers with parameters: products, convolutions, normalizations, embeddings. Keys and shapes are PyTorch's."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.compat.torch.creation import place
from tinyhw.compat.torch.dress import dress, kind_of
from tinyhw.compat.torch.modules.module import Module, Parameter
from tinyhw.compat.torch.table import find
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.functional.operands import spread
from tinyhw.tensor import Tensor

def functional(name: str) -> Any:
  """Return a function of nn.functional."""
  return find("nn.functional", name)

def drawn(shape: tuple[int, ...], bound: float, dtype: Any, device: Any) -> Parameter:
  """Return a parameter drawn evenly from -bound to bound."""
  kind = kind_of(dtype) or dtypes.default_float
  some = math.prod(shape)
  found = Tensor.uniform(*shape, low=-bound, high=bound, dtype=kind) if some else Tensor.zeros(*shape, dtype=kind)
  return Parameter(found if device is None else found.to(place(device)))

def filled(shape: tuple[int, ...], value: float, dtype: Any, device: Any) -> Parameter:
  """Return a parameter of one value."""
  found = Tensor.full(shape, value, kind_of(dtype) or dtypes.default_float)
  return Parameter(found if device is None else found.to(place(device)))

def _bound(fan_in: int) -> float: return 1 / math.sqrt(fan_in) if fan_in else 0.0

class Linear(Module):
  """input @ weight.T + bias. weight: (out_features, in_features)."""
  def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
    super().__init__()
    if in_features < 0 or out_features < 0: raise ArgumentError(f"{in_features} and {out_features} features: negative")
    self.in_features, self.out_features = in_features, out_features
    bound = _bound(in_features)
    self.weight = drawn((out_features, in_features), bound, dtype, device)
    self.register_parameter("bias", drawn((out_features,), bound, dtype, device) if bias else None)

  def forward(self, input: Any) -> Any:
    """Return the product."""
    return functional("linear")(input, self.weight, self.bias)

  def extra_repr(self) -> str:
    """Return the sizes."""
    return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"

class Bilinear(Module):
  """input1 @ weight @ input2 + bias, for each output."""
  def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
               dtype: Any = None):
    super().__init__()
    if in1_features <= 0: raise ArgumentError(f"in1_features is {in1_features}; it must be at least 1")
    bound = _bound(in1_features)
    self.weight = drawn((out_features, in1_features, in2_features), bound, dtype, device)
    self.register_parameter("bias", drawn((out_features,), bound, dtype, device) if bias else None)

  def forward(self, input1: Any, input2: Any) -> Any:
    """Return the products."""
    return functional("bilinear")(input1, input2, self.weight, self.bias)

class ConvolutionModule(Module):
  """The base of convolutions."""
  axes, transposed = 1, False

  def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
               dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
               dtype: Any = None):
    super().__init__()
    if groups < 1 or in_channels % groups or out_channels % groups:
      raise ArgumentError(f"{in_channels} and {out_channels} channels do not divide into {groups} groups")
    if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
      raise ArgumentError(f"padding_mode is 'zeros', 'reflect', 'replicate' or 'circular', not {padding_mode!r}")
    self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
    self.padding_mode = padding_mode
    self.output_padding = (0,) * self.axes
    given = {"kernel_size": kernel_size, "stride": stride, "dilation": dilation}
    self.kernel_size, self.stride, self.dilation = (spread(name, value, self.axes) for name, value in given.items())
    self.padding = padding if isinstance(padding, str) else spread("padding", padding, self.axes)
    first, second = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
    bound = _bound(second * math.prod(self.kernel_size))
    self.weight = drawn((first, second, *self.kernel_size), bound, dtype, device)
    self.register_parameter("bias", drawn((out_channels,), bound, dtype, device) if bias else None)

  def forward(self, input: Any) -> Any:
    """Convolve."""
    padding: Any = self.padding
    if self.padding_mode != "zeros":
      input, padding = functional("pad")(input, self._margins(), self.padding_mode), 0
    return functional(f"conv{self.axes}d")(input, self.weight, self.bias, self.stride, padding, self.dilation,
                                           self.groups)

  def _margins(self) -> list[int]:
    """Return the counts of padding, beginning with the last axis."""
    if isinstance(self.padding, tuple): return [p for p in reversed(self.padding) for _ in range(2)]
    totals = [d * (k - 1) if self.padding == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]
    return [p for t in reversed(totals) for p in (t // 2, t - t // 2)]

  def extra_repr(self) -> str:
    """Return sizes, and the options that differ from their defaults."""
    text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
    none, one = (0,) * self.axes, (1,) * self.axes
    usuals: dict[str, Any] = {"padding": none, "dilation": one, "output_padding": none, "groups": 1}
    for name, usual in usuals.items():
      if getattr(self, name) != usual: text += f", {name}={getattr(self, name)}"
    return text + (", bias=False" if self.bias is None else "") + (
      f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")

class Conv1d(ConvolutionModule):
  """Convolution along one axis. weight: (out_channels, in_channels / groups, kernel)."""

class Conv2d(ConvolutionModule):
  """Convolution along two axes."""
  axes = 2

class Conv3d(ConvolutionModule):
  """Convolution along three axes."""
  axes = 3

class TransposedConvolution(ConvolutionModule):
  """The base of transposed convolutions. weight: (in_channels, out_channels / groups, kernel)."""
  transposed = True

  def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
               output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
               padding_mode: str = "zeros", device: Any = None, dtype: Any = None):
    if padding_mode != "zeros": raise ArgumentError("a transposed convolution is padded with zeros only")
    super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                     device, dtype)
    self.output_padding = spread("output_padding", output_padding, self.axes)

  def forward(self, input: Any, output_size: Any = None) -> Any:
    """Convolve. output_size: chooses among the sizes that the stride allows."""
    if output_size is not None and len(output_size) not in (self.axes, input.ndim):
      raise ArgumentError(f"output_size has {len(output_size)} sizes; it has {self.axes}, or one for each axis")
    extra = self.output_padding if output_size is None else self._extra(input, list(output_size)[-self.axes:])
    return functional(f"conv_transpose{self.axes}d")(input, self.weight, self.bias, self.stride, self.padding, extra,
                                                     self.groups, self.dilation)

  def _extra(self, input: Any, wanted: list[int]) -> tuple[int, ...]:
    padding: Any = self.padding
    least = [(int(n) - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in zip(
      input.shape[-self.axes:], self.stride, padding, self.dilation, self.kernel_size)]
    found = tuple([w - n for w, n in zip(wanted, least)])
    if any(not 0 <= e < s for e, s in zip(found, self.stride)):
      raise ArgumentError(f"output_size {wanted} is outside of {least} and the strides {self.stride} above it")
    return found

class ConvTranspose1d(TransposedConvolution):
  """The transpose of a convolution."""

class ConvTranspose2d(TransposedConvolution):
  """The transpose of a convolution along two axes."""
  axes = 2

class ConvTranspose3d(TransposedConvolution):
  """The transpose of a convolution along three axes."""
  axes = 3

class NormBase(Module):
  """Base of normalizations with running statistics."""
  ndims: tuple[int, ...] = ()

  def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool,
               device: Any, dtype: Any, bias: bool):
    super().__init__()
    self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
    self.track_running_stats = track_running_stats
    for name, value, wanted in (("weight", 1.0, True), ("bias", 0.0, bias)):
      self.register_parameter(name, filled((num_features,), value, dtype, device) if affine and wanted else None)
    for name, value in (("running_mean", 0.0), ("running_var", 1.0)):
      self.register_buffer(name, dress(filled((num_features,), value, dtype, device).detach().clone().realize())
                           if track_running_stats else None)
    self.register_buffer("num_batches_tracked", dress(Tensor(0, dtype=dtypes.int64).contiguous().realize())
                         if track_running_stats else None)

  def _check(self, input: Any) -> None:
    if input.ndim not in self.ndims:
      raise ArgumentError(f"{type(self).__name__} wants {' or '.join(map(str, self.ndims))} axes, not {input.shape}")

  def extra_repr(self) -> str:
    """Return the options."""
    return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")

class BatchNorm(NormBase):
  """The base of those that normalize each channel by the statistics of the batch, or the running ones."""

  def __init__(self, num_features: int, eps: float = 1e-05, momentum: float | None = 0.1, affine: bool = True,
               track_running_stats: bool = True, device: Any = None, dtype: Any = None, *, bias: bool = True):
    super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

  def forward(self, input: Any) -> Any:
    """Normalize."""
    self._check(input)
    factor = 0.0 if self.momentum is None else self.momentum
    if self.training and self.track_running_stats:
      self.num_batches_tracked.add_(1)
      if self.momentum is None: factor = 1.0 / int(self.num_batches_tracked.item())
    by_batch = self.training or self.running_mean is None
    keeps = not self.training or self.track_running_stats
    return functional("batch_norm")(input, self.running_mean if keeps else None, self.running_var if keeps else None,
                                    self.weight, self.bias, by_batch, factor, self.eps)

class BatchNorm1d(BatchNorm):
  """Normalize each channel."""
  ndims = (2, 3)

class BatchNorm2d(BatchNorm):
  """Normalize each channel of images."""
  ndims = (4,)

class BatchNorm3d(BatchNorm):
  """Normalize each channel of volumes."""
  ndims = (5,)

class SyncBatchNorm(BatchNorm):
  """Normalize each channel. There is one process, so nothing is exchanged; process_group is ignored."""
  ndims = tuple(range(2, 9))

  def __init__(self, num_features: int, eps: float = 1e-05, momentum: float | None = 0.1, affine: bool = True,
               track_running_stats: bool = True, process_group: Any = None, device: Any = None, dtype: Any = None):
    super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

  @classmethod
  def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
    """Return the module as it is: BatchNorm does the same in one process."""
    return module

class InstanceNorm(NormBase):
  """The base of those that normalize each channel of each example."""

  def __init__(self, num_features: int, eps: float = 1e-05, momentum: float = 0.1, affine: bool = False,
               track_running_stats: bool = False, device: Any = None, dtype: Any = None, *, bias: bool = True):
    super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

  def forward(self, input: Any) -> Any:
    """Normalize."""
    self._check(input)
    alone = input.ndim == min(self.ndims)
    found = functional("instance_norm")(input.unsqueeze(0) if alone else input, self.running_mean, self.running_var,
                                        self.weight, self.bias, self.training or not self.track_running_stats,
                                        self.momentum or 0.0, self.eps)
    return found.squeeze(0) if alone else found

class InstanceNorm1d(InstanceNorm):
  """Normalize each channel of each sequence."""
  ndims = (2, 3)

class InstanceNorm2d(InstanceNorm):
  """Normalize each channel of each image."""
  ndims = (3, 4)

class InstanceNorm3d(InstanceNorm):
  """Normalize each channel of each volume."""
  ndims = (4, 5)

class GroupNorm(Module):
  """Normalize groups of channels of each example."""
  def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-05, affine: bool = True, device: Any = None,
               dtype: Any = None, *, bias: bool = True):
    super().__init__()
    if num_groups < 1 or num_channels % num_groups:
      raise ArgumentError(f"{num_channels} channels do not divide into {num_groups} groups")
    self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
    for name, value, wanted in (("weight", 1.0, True), ("bias", 0.0, bias)):
      self.register_parameter(name, filled((num_channels,), value, dtype, device) if affine and wanted else None)

  def forward(self, input: Any) -> Any:
    """Normalize."""
    return functional("group_norm")(input, self.num_groups, self.weight, self.bias, self.eps)

  def extra_repr(self) -> str:
    """Return the options."""
    return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"

class LayerNorm(Module):
  """Normalize the last axes."""
  def __init__(self, normalized_shape: Any, eps: float = 1e-05, elementwise_affine: bool = True, bias: bool = True,
               device: Any = None, dtype: Any = None):
    super().__init__()
    self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    self.eps, self.elementwise_affine = eps, elementwise_affine
    for name, value, wanted in (("weight", 1.0, True), ("bias", 0.0, bias)):
      self.register_parameter(name, filled(self.normalized_shape, value, dtype, device)
                              if elementwise_affine and wanted else None)

  def forward(self, input: Any) -> Any:
    """Normalize."""
    return functional("layer_norm")(input, self.normalized_shape, self.weight, self.bias, self.eps)

  def extra_repr(self) -> str:
    """Return the options."""
    return (f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}")

class RMSNorm(Module):
  """Divide the last axes by the root of their mean square."""
  def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
               device: Any = None, dtype: Any = None):
    super().__init__()
    self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    self.eps, self.elementwise_affine = eps, elementwise_affine
    self.register_parameter("weight", filled(self.normalized_shape, 1.0, dtype, device) if elementwise_affine else None)

  def forward(self, input: Any) -> Any:
    """Normalize."""
    return functional("rms_norm")(input, self.normalized_shape, self.weight, self.eps)

  def extra_repr(self) -> str:
    """Return the options."""
    return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"

class PReLU(Module):
  """x for positive elements, else weight * x."""
  def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None):
    super().__init__()
    self.num_parameters = num_parameters
    self.weight = filled((num_parameters,), init, dtype, device)

  def forward(self, input: Any) -> Any:
    """Return the result."""
    return functional("prelu")(input, self.weight)

  def extra_repr(self) -> str:
    """Return the count."""
    return f"num_parameters={self.num_parameters}"

class Embedding(Module):
  """Rows of a table by their numbers. weight: (num_embeddings, embedding_dim)."""
  def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
               max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
               sparse: bool = False, _weight: Any = None, device: Any = None, dtype: Any = None):
    super().__init__()
    if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
      raise ArgumentError(f"padding_idx {padding_idx} is outside of the {num_embeddings} rows")
    self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
    self.padding_idx = padding_idx if padding_idx is None or padding_idx >= 0 else num_embeddings + padding_idx
    self.max_norm, self.norm_type = max_norm, norm_type
    self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
    self.weight = _rows(_weight, num_embeddings, embedding_dim, dtype, device, self.padding_idx)

  def forward(self, input: Any) -> Any:
    """Return the rows."""
    return functional("embedding")(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                                   self.scale_grad_by_freq, self.sparse)

  @classmethod
  def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Embedding:
    """Return a layer with given rows, which are trained only with freeze=False."""
    if embeddings.ndim != 2: raise ShapeError(f"from_pretrained wants (rows, columns), not {embeddings.shape}")
    rows, columns = (int(d) for d in embeddings.shape)
    found = cls(rows, columns, _weight=embeddings, **options)
    found.weight.requires_grad_(not freeze)
    return found

  def extra_repr(self) -> str:
    """Return the sizes."""
    return f"{self.num_embeddings}, {self.embedding_dim}" + (
      f", padding_idx={self.padding_idx}" if self.padding_idx is not None else "")

def _rows(given: Any, rows: int, columns: int, dtype: Any, device: Any, padding: int | None) -> Parameter:
  """Return given rows as a parameter, or random ones, with zeros in the row of padding."""
  if given is not None:
    if tuple(given.shape) != (rows, columns): raise ShapeError(f"a weight of {given.shape} for {rows} x {columns}")
    return Parameter(given)
  found = Tensor.randn(rows, columns, dtype=kind_of(dtype) or dtypes.default_float).realize()
  if padding is not None: found[padding] = 0
  return Parameter(found if device is None else found.to(place(device)))

class EmbeddingBag(Module):
  """Sums, means or maxima of rows of a table, for bags of numbers."""
  def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
               scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Any = None,
               include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None,
               dtype: Any = None):
    super().__init__()
    self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
    self.max_norm, self.norm_type = max_norm, norm_type
    self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
    self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
    self.weight = _rows(_weight, num_embeddings, embedding_dim, dtype, device, padding_idx)

  def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
    """Return a row for each bag."""
    return functional("embedding_bag")(
      input, self.weight, offsets, max_norm=self.max_norm, norm_type=self.norm_type,
      scale_grad_by_freq=self.scale_grad_by_freq, mode=self.mode, sparse=self.sparse,
      per_sample_weights=per_sample_weights, include_last_offset=self.include_last_offset,
      padding_idx=self.padding_idx)

  def extra_repr(self) -> str:
    """Return the sizes."""
    return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
