"""Layers without parameters: one row for each, its constructor and the function of nn.functional that it calls.

    Name function(parameter, parameter=default, ...)

The layer keeps the parameters as attributes, and passes them to the function by name. Of `inplace`, `size_average` and
`reduce`, the function keeps PyTorch's meaning. `training` is passed where a row says so, by a star.
"""
from __future__ import annotations
import ast
import inspect
from typing import Any

from tinyhw.compat.torch.modules.module import Module
from tinyhw.compat.torch.table import find
from tinyhw.errors import ArgumentError

_OLD = "size_average=None, reduce=None, reduction='mean'"
_CLASSES = "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'"
_DISTANCE = "distance_function=None"
_POOL = "kernel_size, stride=None, padding=0"
_FRACTIONAL = "kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None"

ROWS = f"""
ReLU relu(inplace=False)
ReLU6 relu6(inplace=False)
LeakyReLU leaky_relu(negative_slope=0.01, inplace=False)
ELU elu(alpha=1.0, inplace=False)
CELU celu(alpha=1.0, inplace=False)
SELU selu(inplace=False)
SiLU silu(inplace=False)
Mish mish(inplace=False)
GELU gelu(approximate='none')
GLU glu(dim=-1)
Hardswish hardswish(inplace=False)
Hardsigmoid hardsigmoid(inplace=False)
Hardtanh hardtanh(min_val=-1.0, max_val=1.0, inplace=False)
Hardshrink hardshrink(lambd=0.5)
Softshrink softshrink(lambd=0.5)
Softplus softplus(beta=1.0, threshold=20.0)
Softsign softsign()
Tanh tanh()
Tanhshrink tanhshrink()
Sigmoid sigmoid()
LogSigmoid logsigmoid()
Threshold threshold(threshold, value, inplace=False)
RReLU rrelu*(lower=0.125, upper=0.3333333333333333, inplace=False)
Softmax softmax(dim=None)
Softmin softmin(dim=None)
LogSoftmax log_softmax(dim=None)
Dropout dropout*(p=0.5, inplace=False)
Dropout1d dropout1d*(p=0.5, inplace=False)
Dropout2d dropout2d*(p=0.5, inplace=False)
Dropout3d dropout3d*(p=0.5, inplace=False)
AlphaDropout alpha_dropout*(p=0.5, inplace=False)
FeatureAlphaDropout feature_alpha_dropout*(p=0.5, inplace=False)
MaxPool1d max_pool1d({_POOL}, dilation=1, return_indices=False, ceil_mode=False)
MaxPool2d max_pool2d({_POOL}, dilation=1, return_indices=False, ceil_mode=False)
MaxPool3d max_pool3d({_POOL}, dilation=1, return_indices=False, ceil_mode=False)
AvgPool1d avg_pool1d({_POOL}, ceil_mode=False, count_include_pad=True)
AvgPool2d avg_pool2d({_POOL}, ceil_mode=False, count_include_pad=True, divisor_override=None)
AvgPool3d avg_pool3d({_POOL}, ceil_mode=False, count_include_pad=True, divisor_override=None)
LPPool1d lp_pool1d(norm_type, kernel_size, stride=None, ceil_mode=False)
LPPool2d lp_pool2d(norm_type, kernel_size, stride=None, ceil_mode=False)
LPPool3d lp_pool3d(norm_type, kernel_size, stride=None, ceil_mode=False)
FractionalMaxPool2d fractional_max_pool2d({_FRACTIONAL})
FractionalMaxPool3d fractional_max_pool3d({_FRACTIONAL})
AdaptiveAvgPool1d adaptive_avg_pool1d(output_size)
AdaptiveAvgPool2d adaptive_avg_pool2d(output_size)
AdaptiveAvgPool3d adaptive_avg_pool3d(output_size)
AdaptiveMaxPool1d adaptive_max_pool1d(output_size, return_indices=False)
AdaptiveMaxPool2d adaptive_max_pool2d(output_size, return_indices=False)
AdaptiveMaxPool3d adaptive_max_pool3d(output_size, return_indices=False)
MaxUnpool1d max_unpool1d({_POOL})
MaxUnpool2d max_unpool2d({_POOL})
MaxUnpool3d max_unpool3d({_POOL})
Fold fold(output_size, kernel_size, dilation=1, padding=0, stride=1)
Unfold unfold(kernel_size, dilation=1, padding=0, stride=1)
PixelShuffle pixel_shuffle(upscale_factor)
PixelUnshuffle pixel_unshuffle(downscale_factor)
ChannelShuffle channel_shuffle(groups)
LocalResponseNorm local_response_norm(size, alpha=0.0001, beta=0.75, k=1.0)
CosineSimilarity cosine_similarity(dim=1, eps=1e-08)
PairwiseDistance pairwise_distance(p=2.0, eps=1e-06, keepdim=False)
Upsample interpolate(size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None)
L1Loss l1_loss({_OLD})
MSELoss mse_loss({_OLD})
SmoothL1Loss smooth_l1_loss({_OLD}, beta=1.0)
HuberLoss huber_loss(reduction='mean', delta=1.0)
BCELoss binary_cross_entropy(weight=None, {_OLD})
BCEWithLogitsLoss binary_cross_entropy_with_logits(weight=None, {_OLD}, pos_weight=None)
NLLLoss nll_loss({_CLASSES})
CrossEntropyLoss cross_entropy({_CLASSES}, label_smoothing=0.0)
KLDivLoss kl_div({_OLD}, log_target=False)
PoissonNLLLoss poisson_nll_loss(log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean')
GaussianNLLLoss gaussian_nll_loss(full=False, eps=1e-06, reduction='mean')
HingeEmbeddingLoss hinge_embedding_loss(margin=1.0, {_OLD})
MarginRankingLoss margin_ranking_loss(margin=0.0, {_OLD})
SoftMarginLoss soft_margin_loss({_OLD})
MultiMarginLoss multi_margin_loss(p=1, margin=1.0, weight=None, {_OLD})
MultiLabelMarginLoss multilabel_margin_loss({_OLD})
MultiLabelSoftMarginLoss multilabel_soft_margin_loss(weight=None, {_OLD})
CosineEmbeddingLoss cosine_embedding_loss(margin=0.0, {_OLD})
TripletMarginLoss triplet_margin_loss(margin=1.0, p=2.0, eps=1e-06, swap=False, {_OLD})
TripletMarginWithDistanceLoss triplet_margin_with_distance_loss({_DISTANCE}, margin=1.0, swap=False, reduction='mean')
CTCLoss ctc_loss(blank=0, reduction='mean', zero_infinity=False)
""".strip().splitlines()

# Parameters of tensors, which are buffers: state dicts and casts have them.
_BUFFERS = ("weight", "pos_weight", "_random_samples")

class LossModule(Module):
  """The base of losses, also of a program's own: it keeps how to reduce."""
  def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"):
    super().__init__()
    old = {(True, True): "mean", (False, True): "sum"}.get((size_average is not False, reduce is not False), "none")
    self.reduction = reduction if size_average is None and reduce is None else old

class WeightedLossModule(LossModule):
  """The base of losses with a weight for each class."""
  def __init__(self, weight: Any = None, size_average: bool | None = None, reduce: bool | None = None,
               reduction: str = "mean"):
    super().__init__(size_average, reduce, reduction)
    self.register_buffer("weight", weight)

class Stateless(Module):
  """A layer of a row."""
  signature: inspect.Signature
  function: str
  takes_training: bool

  def __init__(self, *args: Any, **keywords: Any):
    Module.__init__(self)
    try: given = self.signature.bind(*args, **keywords)
    except TypeError as error:
      raise ArgumentError(f"{type(self).__name__}: {error}; it takes {self.signature}") from None
    given.apply_defaults()
    for name, value in given.arguments.items():
      if name in _BUFFERS: self.register_buffer(name, value)
      else: setattr(self, name, value)

  def forward(self, *args: Any, **keywords: Any) -> Any:
    """Call the function."""
    options = {name: getattr(self, name) for name in self.signature.parameters}
    if self.takes_training: options["training"] = self.training
    return find("nn.functional", self.function)(*args, **options, **keywords)

  def extra_repr(self) -> str:
    """Return the parameters that differ from their defaults."""
    return ", ".join([f"{name}={getattr(self, name)!r}" for name, p in self.signature.parameters.items()
                      if name not in _BUFFERS and getattr(self, name) != p.default])

def _signature(text: str) -> inspect.Signature:
  """Parse `a, b=1, c='x'` to a signature."""
  call = ast.parse(f"def f({text}): pass").body[0]
  assert isinstance(call, ast.FunctionDef)
  names = [a.arg for a in call.args.args]
  defaults = [inspect.Parameter.empty] * (len(names) - len(call.args.defaults)) + [
    ast.literal_eval(d) for d in call.args.defaults]
  return inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d)
                            for n, d in zip(names, defaults)])

def _made(row: str) -> type[Stateless]:
  name, _, call = row.partition(" ")
  function, _, parameters = call.rstrip(")").partition("(")
  doc = f"nn.functional.{function.rstrip('*')} as a layer."
  kinds = (Stateless, WeightedLossModule if "weight=None" in row and "pos" not in row else LossModule)
  return type(name, kinds if "Loss" in name else (Stateless,), {
    "signature": _signature(parameters), "function": function.rstrip("*"), "takes_training": function.endswith("*"),
    "__doc__": doc, "__module__": __name__})

LAYERS: dict[str, type[Stateless]] = {made.__name__: made for made in map(_made, ROWS)}

class UpsamplingNearest2d(LAYERS["Upsample"]):  # type: ignore[name-defined,misc,valid-type]  # a class of a row
  """Images of another size, whose pixels are the nearest ones."""
  def __init__(self, size: Any = None, scale_factor: Any = None):
    super().__init__(size, scale_factor, "nearest")

class UpsamplingBilinear2d(LAYERS["Upsample"]):  # type: ignore[name-defined,misc,valid-type]  # a class of a row
  """Images of another size, by linear interpolation along both axes. Corners stay corners."""
  def __init__(self, size: Any = None, scale_factor: Any = None):
    super().__init__(size, scale_factor, "bilinear", True)

class Identity(Module):
  """Return the input. Arguments are ignored."""
  def __init__(self, *args: Any, **keywords: Any): super().__init__()

  def forward(self, input: Any) -> Any:
    """Return the input."""
    return input

class Flatten(Module):
  """Join axes, by default all but the first."""
  def __init__(self, start_dim: int = 1, end_dim: int = -1):
    super().__init__()
    self.start_dim, self.end_dim = start_dim, end_dim

  def forward(self, input: Any) -> Any:
    """Join the axes."""
    return input.flatten(self.start_dim, self.end_dim)

  def extra_repr(self) -> str:
    """Return the axes."""
    return f"start_dim={self.start_dim}, end_dim={self.end_dim}"

class Unflatten(Module):
  """Split an axis."""
  def __init__(self, dim: int, unflattened_size: Any):
    super().__init__()
    self.dim, self.unflattened_size = dim, unflattened_size

  def forward(self, input: Any) -> Any:
    """Split the axis."""
    return input.unflatten(self.dim, self.unflattened_size)

class Softmax2d(Module):
  """Softmax over the channels of images."""
  def forward(self, input: Any) -> Any:
    """Normalize each pixel."""
    if input.ndim not in (3, 4): raise ArgumentError(f"Softmax2d wants images, not {input.shape}")
    return find("nn.functional", "softmax")(input, -3)

class _Padding(Module):
  axes, mode = 1, "constant"

  def __init__(self, padding: Any):
    super().__init__()
    self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
    self.value: float | None = 0.0 if self.mode == "constant" else None

  def forward(self, input: Any) -> Any:
    """Add elements around the last axes."""
    return find("nn.functional", "pad")(input, self.padding, self.mode, self.value)

  def extra_repr(self) -> str:
    """Return the counts."""
    return f"{self.padding}"

class _ConstantPadding(_Padding):
  def __init__(self, padding: Any, value: float):
    super().__init__(padding)
    self.value = value

  def extra_repr(self) -> str:
    """Return the counts and the value."""
    return f"padding={self.padding}, value={self.value}"

def _padding(name: str, axes: int, mode: str) -> type[_Padding]:
  base = _ConstantPadding if name.startswith("Constant") else _Padding
  return type(name, (base,), {"axes": axes, "mode": mode, "__doc__": f"nn.functional.pad of {axes} axes, {mode}.",
                                  "__module__": __name__})

for _title, _mode in (("Zero", "constant"), ("Constant", "constant"), ("Reflection", "reflect"),
                      ("Replication", "replicate"), ("Circular", "circular")):
  for _n in (1, 2, 3): LAYERS[f"{_title}Pad{_n}d"] = _padding(f"{_title}Pad{_n}d", _n, _mode)  # type: ignore[assignment]

globals().update(LAYERS)
