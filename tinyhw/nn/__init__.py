"""Layers: classes with parameters as attributes, and a call that computes. The names of the attributes are the keys of
`state.get_state_dict`."""
from __future__ import annotations
from collections.abc import Sequence
import importlib
import math
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import dtypes, least_upper_dtype, least_upper_float
from tinyhw.errors import ArgumentError
from tinyhw.methods.checks import flag, whole, wholes
from tinyhw.methods.graph.graph import show
from tinyhw.nn import optim as optim
from tinyhw.nn import state as state
from tinyhw.tensor import Tensor
from tinyhw.trace import of_one_line
if TYPE_CHECKING: from tinyhw.nn import datasets as datasets

def _filled(value: float, *shape: int, requires_grad: bool | None = None) -> Tensor:
  """Return a parameter filled with one value. It is storage from the start, filled without a kernel."""
  flat = Tensor([value] * math.prod(shape))
  return Tensor(flat.uop if len(shape) == 1 else flat.reshape(shape).uop, requires_grad=requires_grad)

def _input(layer: object, x: object) -> Tensor:
  """Return the argument of a layer. Raises ArgumentError unless it is a Tensor."""
  if isinstance(x, Tensor): return x
  raise ArgumentError(f"{type(layer).__name__} is called with a Tensor, not {x!r}; make one with Tensor(...)")

class Linear:
  """x @ weight.T + bias. weight: (out_features, in_features).

  >>> nn.Linear(4, 2)(Tensor.ones(3, 4)).shape
  (3, 2)
  """
  def __init__(self, in_features: int, out_features: int, bias: bool = True):
    in_features, out_features = whole("in_features", in_features, 0), whole("out_features", out_features, 0)
    bound = 1 / math.sqrt(in_features) if in_features else 0.0
    self.weight = Tensor.uniform(out_features, in_features, low=-bound, high=bound)
    self.bias = Tensor.uniform(out_features, low=-bound, high=bound) if flag("bias", bias) else None

  def __call__(self, x: Tensor) -> Tensor: return _input(self, x).linear(self.weight.transpose(), self.bias)

class _Convolution:
  """Base of the convolutions: sizes and initial values."""
  def __init__(self, axes: int, in_channels: int, out_channels: int, kernel_size: int | tuple[int, ...],
               stride: int | tuple[int, ...],
               padding: int | str | tuple[int, ...], dilation: int | tuple[int, ...], groups: int, bias: bool,
               transposed: bool = False):
    in_channels, out_channels, groups = (whole(what, n, 1) for what, n in (("in_channels", in_channels),
                                                                           ("out_channels", out_channels),
                                                                           ("groups", groups)))
    self.kernel_size = ((whole("kernel_size", kernel_size, 1),) * axes if isinstance(kernel_size, int)
                        else wholes("kernel_size", kernel_size, 1))
    if len(self.kernel_size) != axes:
      raise ArgumentError(f"kernel_size={kernel_size}: give one number, or one for each of {axes} axes")
    self.stride, self.dilation, self.groups = stride, dilation, groups
    self.padding = _same_padding(self.kernel_size, stride, dilation, padding) if isinstance(padding, str) else padding
    if in_channels % groups or out_channels % groups:
      raise ArgumentError(f"{in_channels} input and {out_channels} output channels must be multiples of "
                          f"groups={groups}")
    first, second = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
    bound = 1 / math.sqrt(second * math.prod(self.kernel_size))
    self.weight = Tensor.uniform(first, second, *self.kernel_size, low=-bound, high=bound)
    self.bias: Tensor | None = Tensor.uniform(out_channels, low=-bound, high=bound) if flag("bias", bias) else None

def _same_padding(kernel: tuple[int, ...], stride: int | tuple[int, ...], dilation: int | tuple[int, ...],
                  padding: str) -> tuple[int, ...]:
  """Return padding by name: "valid" is none, "same" keeps the sizes (with stride 1). It has two counts per axis,
  beginning with the last."""
  if padding == "valid": return (0,) * 2 * len(kernel)
  if padding != "same": raise ArgumentError(f"padding is a number, numbers, 'same' or 'valid', not {padding!r}")
  if stride != 1 and set(stride if isinstance(stride, tuple) else (stride,)) != {1}:
    raise ArgumentError("padding='same' needs stride 1")
  dilations = (dilation,) * len(kernel) if isinstance(dilation, int) else dilation
  return tuple(p for d, k in reversed(list(zip(dilations, kernel)))
               for p in (d * (k - 1) // 2, d * (k - 1) - d * (k - 1) // 2))

class Conv2d(_Convolution):
  """Tensor.conv2d with parameters. padding may be "same" or "valid".

  >>> nn.Conv2d(3, 8, 3, padding=1)(Tensor.ones(2, 3, 16, 16)).shape
  (2, 8, 16, 16)
  """
  def __init__(self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, ...],
               stride: int | tuple[int, ...] = 1,
               padding: int | str | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1,
               bias: bool = True):
    super().__init__(2, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)

  def __call__(self, x: Tensor) -> Tensor:
    return _input(self, x).conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)

class Conv1d(_Convolution):
  """Conv2d with one spatial axis.

  >>> nn.Conv1d(3, 8, 5)(Tensor.ones(2, 3, 16)).shape
  (2, 8, 12)
  """
  def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1,
               padding: int | str | tuple[int, ...] = 0,
               dilation: int = 1, groups: int = 1, bias: bool = True):
    super().__init__(1, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)

  def __call__(self, x: Tensor) -> Tensor:
    return _input(self, x).conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)

class ConvTranspose2d(_Convolution):
  """Tensor.conv_transpose2d with parameters.

  >>> nn.ConvTranspose2d(3, 8, 3, stride=2)(Tensor.ones(2, 3, 8, 8)).shape
  (2, 8, 17, 17)
  """
  def __init__(self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, ...],
               stride: int | tuple[int, ...] = 1,
               padding: int | tuple[int, ...] = 0, output_padding: int | tuple[int, ...] = 0,
               dilation: int | tuple[int, ...] = 1, groups: int = 1,
               bias: bool = True, _axes: int = 2):
    super().__init__(_axes, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
                     transposed=True)
    self.output_padding = output_padding

  def __call__(self, x: Tensor) -> Tensor:
    return _input(self, x).conv_transpose2d(self.weight, self.bias, self.groups, self.stride, self.dilation,
                                            self.padding, self.output_padding)

class ConvTranspose1d(ConvTranspose2d):
  """ConvTranspose2d with one spatial axis.

  >>> nn.ConvTranspose1d(3, 8, 5)(Tensor.ones(2, 3, 16)).shape
  (2, 8, 20)
  """
  def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0,
               output_padding: int = 0,
               dilation: int = 1, groups: int = 1, bias: bool = True):
    super().__init__(in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation, groups, bias,
                     _axes=1)

def _wide(x: Tensor) -> Tensor: return x.cast(least_upper_dtype(x.dtype, dtypes.float32))

class BatchNorm:
  """Normalize each channel (axis 1) to mean 0 and variance 1. In training it uses the statistics of the batch, else the
  running ones. Source: Ioffe and Szegedy 2015.

  The result has the type to which the input and the weights promote, whatever the type of the statistics. It is
  computed in float32 at least, and rounded once. In training the running statistics are assigned to. That is computed
  together with the parameters, if the optimizer was given the statistics too (as `state.get_parameters(model)` does),
  or when they are read.

  >>> nn.BatchNorm(3)(Tensor.ones(2, 3, 4, 4)).shape
  (2, 3, 4, 4)
  """
  def __init__(self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True,
               momentum: float = 0.1):
    self.channels = sz = whole("sz", sz, 0)
    self.eps, self.track_running_stats, self.momentum = eps, flag("track_running_stats", track_running_stats), momentum
    self.weight: Tensor | None = _filled(1.0, sz) if flag("affine", affine) else None
    self.bias: Tensor | None = _filled(0.0, sz) if flag("affine", affine) else None
    self.num_batches_tracked = Tensor(Tensor([0], dtype=dtypes.int64).reshape(()), requires_grad=False)
    if self.track_running_stats:
      self.running_mean, self.running_var = _filled(0.0, sz, requires_grad=False), _filled(1.0, sz, requires_grad=False)

  def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance, in float32 at least: of x in training (or if none are tracked), else the running
    ones."""
    if self.track_running_stats and not Tensor.training: return _wide(self.running_mean), _wide(self.running_var)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    wide = _wide(x)
    mean = wide.mean(axes)
    centred = wide - mean.reshape(1, -1, *[1] * (x.ndim - 2))
    return mean, (centred * centred).mean(axes)

  @of_one_line
  def __call__(self, x: Tensor) -> Tensor:
    if _input(self, x).ndim < 2 or x.shape[1] != self.channels:
      raise ArgumentError(f"{type(self).__name__}({self.channels}) does not fit a tensor of shape {show(x.shape)}: "
                          f"axis 1 must have {self.channels} channels")
    mean, var = self.calc_stats(x)
    if self.track_running_stats and Tensor.training: self._track(x, mean.detach(), var.detach())
    kinds = [t.dtype for t in (x, self.weight, self.bias) if t is not None]  # the type of the statistics does not count
    return x.batchnorm(self.weight, self.bias, mean,
                       var.add(self.eps).rsqrt()).cast(least_upper_float(least_upper_dtype(*kinds)))

  def _track(self, x: Tensor, mean: Tensor, var: Tensor) -> None:
    """Move the running statistics towards those of a batch. The variance is that of a sample."""
    n = int(x.numel()) // int(x.shape[1])
    self.running_mean.assign(self.running_mean * (1 - self.momentum) + mean.cast(self.running_mean.dtype)
                             * self.momentum)
    self.running_var.assign(self.running_var * (1 - self.momentum) + var.cast(self.running_var.dtype)
                            * (self.momentum * n / max(n - 1, 1)))
    self.num_batches_tracked += 1

BatchNorm2d = BatchNorm3d = BatchNorm

class LayerNorm:
  """Normalize the last axes to mean 0 and variance 1, then apply weight and bias. Source: Ba et al. 2016.

  >>> nn.LayerNorm(4)(Tensor([[1.0, 2.0, 3.0, 4.0]])).realize()
  <Tensor (1, 4) float32 on CPU, realized:
   [[ -1.3416, -0.44721,  0.44721,   1.3416]]>
  """
  def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True):
    self.normalized_shape = wholes("normalized_shape", normalized_shape, 0)
    self.axis = tuple(-1 - i for i in range(len(self.normalized_shape)))
    self.eps = eps
    self.weight: Tensor | None = _filled(1.0, *self.normalized_shape) if flag("elementwise_affine",
                                                                              elementwise_affine) else None
    self.bias: Tensor | None = _filled(0.0, *self.normalized_shape) if flag("elementwise_affine",
                                                                            elementwise_affine) else None

  @of_one_line
  def __call__(self, x: Tensor) -> Tensor:
    if _input(self, x).shape[-len(self.normalized_shape):] != self.normalized_shape:
      raise ArgumentError(f"LayerNorm({self.normalized_shape}) does not fit a tensor of shape {x.shape}: its last "
                          f"sizes must be those")
    y = x.layernorm(self.axis, self.eps)
    if self.weight is None or self.bias is None: return y
    return y * self.weight + self.bias

class LayerNorm2d(LayerNorm):
  """LayerNorm over the channels (axis 1) of images.

  >>> nn.LayerNorm2d(3)(Tensor.ones(1, 3, 2, 2)).shape
  (1, 3, 2, 2)
  """
  def __call__(self, x: Tensor) -> Tensor:
    if _input(self, x).ndim != 4:
      raise ArgumentError(f"LayerNorm2d wants images (N, C, H, W), not a tensor of shape {show(x.shape)}")
    return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

class GroupNorm:
  """Normalize groups of channels (axis 1), over all positions, to mean 0 and variance 1. Source: Wu and He 2018.

  >>> nn.GroupNorm(2, 6)(Tensor.ones(1, 6, 4, 4)).shape
  (1, 6, 4, 4)
  """
  def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True):
    num_groups, num_channels = whole("num_groups", num_groups), whole("num_channels", num_channels, 0)
    if num_groups < 1 or num_channels % num_groups:
      raise ArgumentError(f"{num_channels} channels do not make {num_groups} groups")
    self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
    self.weight: Tensor | None = _filled(1.0, num_channels) if flag("affine", affine) else None
    self.bias: Tensor | None = _filled(0.0, num_channels) if flag("affine", affine) else None

  @of_one_line
  def __call__(self, x: Tensor) -> Tensor:
    if _input(self, x).ndim < 2 or x.shape[1] != self.num_channels:
      raise ArgumentError(f"{type(self).__name__} for {self.num_channels} channels does not fit a tensor of shape "
                          f"{show(x.shape)}: they are axis 1")
    group = self.num_channels // self.num_groups * math.prod(x.shape[2:])
    y = x.reshape(x.shape[0], self.num_groups, group).layernorm(eps=self.eps).reshape(x.shape)
    if self.weight is None or self.bias is None: return y
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return y * self.weight.reshape(shape) + self.bias.reshape(shape)

class InstanceNorm(GroupNorm):
  """Normalize the positions of each channel to mean 0 and variance 1.

  >>> nn.InstanceNorm(6)(Tensor.ones(1, 6, 4, 4)).shape
  (1, 6, 4, 4)
  """
  def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True):
    super().__init__(num_features, num_features, eps, affine)
    self.num_features = num_features

class RMSNorm:
  """Normalize the last axis to a root mean square of 1, computed in float32 at least. Source: Zhang and Sennrich 2019.

  >>> nn.RMSNorm(2)(Tensor([[3.0, 4.0]])).realize()
  <Tensor (1, 2) float32 on CPU, realized:
   [[0.84853,  1.1314]]>
  """
  def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True):
    self.eps = eps
    self.weight: Tensor | None = _filled(1.0, whole("dim", dim, 0)) if flag("elementwise_affine",
                                                                            elementwise_affine) else None

  @of_one_line
  def __call__(self, x: Tensor) -> Tensor:
    out = least_upper_float(_input(self, x).dtype)
    wide = x.cast(least_upper_dtype(out, dtypes.float32))
    y = (wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()).cast(out)
    return y if self.weight is None else y * self.weight

class Embedding:
  """Look up the row of weight for each integer.

  >>> nn.Embedding(10, 4)(Tensor([[1, 2, 9]])).shape
  (1, 3, 4)
  """
  def __init__(self, vocab_size: int, embed_size: int):
    self.vocab_sz, self.embed_sz = vocab_size, embed_size
    self.weight = Tensor.glorot_uniform(vocab_size, embed_size)

  def __call__(self, idx: Tensor) -> Tensor:
    if not dtypes.is_int(_input(self, idx).dtype):
      raise ArgumentError(f"an Embedding is indexed by integers, not {idx.dtype}")
    return self.weight[idx]

class LSTMCell:
  """One step of an LSTM. The gates are in the order input, forget, cell, output. Source: Hochreiter and Schmidhuber
  1997.

  >>> h, c = nn.LSTMCell(3, 5)(Tensor.ones(2, 3))
  >>> h.shape, c.shape
  ((2, 5), (2, 5))
  """
  def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
    input_size, hidden_size = whole("input_size", input_size, 0), whole("hidden_size", hidden_size, 1)
    bound = 1 / math.sqrt(hidden_size)
    def uniform(*shape: int) -> Tensor: return Tensor.uniform(*shape, low=-bound, high=bound)
    self.weight_ih, self.weight_hh = uniform(hidden_size * 4, input_size), uniform(hidden_size * 4, hidden_size)
    self.bias_ih: Tensor | None = uniform(hidden_size * 4) if flag("bias", bias) else None
    self.bias_hh: Tensor | None = uniform(hidden_size * 4) if flag("bias", bias) else None

  @of_one_line
  def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Return (hidden, cell) after x. hc None: both are zeros before x."""
    if _input(self, x).ndim != 2:
      raise ArgumentError(f"LSTMCell wants (batch, inputs), not a tensor of shape {show(x.shape)}; unsqueeze(0) makes "
                          f"one")
    if hc is not None and not (isinstance(hc, (tuple, list)) and len(hc) == 2
                               and all(isinstance(t, Tensor) for t in hc)):
      raise ArgumentError(f"LSTMCell wants (hidden, cell) as two Tensors, not {hc!r}")
    if hc is None:
      zero = Tensor.zeros(x.shape[0], self.weight_hh.shape[1], dtype=x.dtype, device=x.device)
      hc = zero, zero
    gates = x.linear(self.weight_ih.transpose(), self.bias_ih) + hc[0].linear(self.weight_hh.transpose(), self.bias_hh)
    i, f, g, o = gates.chunk(4, dim=1)
    cell = f.sigmoid() * hc[1] + i.sigmoid() * g.tanh()
    hidden = o.sigmoid() * cell.tanh()
    return hidden.contiguous(), cell.contiguous()

def __getattr__(name: str) -> Any:
  if name == "datasets": return importlib.import_module("tinyhw.nn.datasets")
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
