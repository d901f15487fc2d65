"""`torch.nn.init`: functions that write initial values into a tensor, now, and return it."""
from __future__ import annotations
import math
from typing import Any

from tinyhw.compat.torch.generators import drawing
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError
from tinyhw.functional.operands import sizes
from tinyhw.linalg.factors import linalg_qr
from tinyhw.methods.base import Handle
from tinyhw.special.errors import erfinv
from tinyhw.tensor import Tensor

def _written(tensor: Any, value: Tensor) -> Any:
  if not isinstance(tensor, Handle): raise ArgumentError(f"initial values are written into a tensor, not {tensor!r}")
  if not tensor._self().numel(): return tensor
  tensor.assign(value.detach().cast(tensor.dtype).reshape(tensor.shape).to(tensor.device))
  return tensor.realize()

def _between(tensor: Any, low: float, high: float) -> Tensor:
  return Tensor.rand(*sizes(tensor), dtype=_wide(tensor)) * (high - low) + low

def _normal(tensor: Any, mean: float, std: float) -> Tensor:
  return Tensor.randn(*sizes(tensor), dtype=_wide(tensor)) * std + mean

def _wide(tensor: Any) -> Any: return dtypes.float64 if tensor.dtype is dtypes.float64 else dtypes.float32

def calculate_gain(nonlinearity: str, param: Any = None) -> float:
  """Return the factor by which a nonlinearity wants initial values to be larger."""
  if nonlinearity == "leaky_relu":
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
      raise ArgumentError(f"param is the slope of leaky_relu, a number, not {param!r}")
    return math.sqrt(2.0 / (1 + slope ** 2))
  gains = {"sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75, "linear": 1.0,
           **{f"conv{way}{n}d": 1.0 for way in ("", "_transpose") for n in (1, 2, 3)}}
  if nonlinearity not in gains:
    raise ArgumentError(f"no gain is known for {nonlinearity!r}; known are {', '.join(gains)}, leaky_relu")
  return gains[nonlinearity]

def fans(tensor: Any) -> tuple[int, int]:
  """Return the counts of inputs and outputs of an element of a layer with this weight."""
  shape = sizes(tensor)
  if len(shape) < 2: raise ArgumentError(f"fans are those of a weight with two axes at least, not {shape}")
  field = math.prod(shape[2:])
  return shape[1] * field, shape[0] * field

@drawing
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0) -> Any:
  """Draw evenly from a to b."""
  return _written(tensor, _between(tensor, a, b))

@drawing
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0) -> Any:
  """Draw from a normal distribution."""
  return _written(tensor, _normal(tensor, mean, std))

@drawing
def trunc_normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Any:
  """Draw from a normal distribution between a and b."""
  low, high = (math.erf((x - mean) / std / math.sqrt(2.0)) for x in (a, b))
  drawn = erfinv(_between(tensor, low, high).cast(dtypes.float64)) * (std * math.sqrt(2.0)) + mean
  return _written(tensor, drawn.clamp(a, b))

def constant_(tensor: Any, val: float) -> Any:
  """Write one value."""
  return _written(tensor, Tensor.full(sizes(tensor), val, tensor.dtype))

def ones_(tensor: Any) -> Any:
  """Write ones."""
  return constant_(tensor, 1.0)

def zeros_(tensor: Any) -> Any:
  """Write zeros."""
  return constant_(tensor, 0.0)

def eye_(tensor: Any) -> Any:
  """Write the identity matrix."""
  if tensor.ndim != 2: raise ArgumentError(f"eye_ wants a matrix, not {tensor.shape}")
  rows, columns = sizes(tensor)
  return _written(tensor, Tensor.eye(rows, columns))

def dirac_(tensor: Any, groups: int = 1) -> Any:
  """Write the kernel of a convolution that keeps as many channels as it can, in each group."""
  if tensor.ndim not in (3, 4, 5): raise ArgumentError(f"dirac_ wants the weight of a convolution, not {tensor.shape}")
  outs, ins, *field = sizes(tensor)
  if outs % groups: raise ArgumentError(f"{outs} channels do not divide into {groups} groups")
  each, size = outs // groups, math.prod(field)
  middle = 0
  for d in field: middle = middle * d + d // 2
  values = [0.0] * (outs * ins * size)
  for g in range(groups):
    for d in range(min(each, ins)): values[((g * each + d) * ins + d) * size + middle] = 1.0
  return _written(tensor, Tensor(values))

@drawing
def xavier_uniform_(tensor: Any, gain: float = 1.0) -> Any:
  """Draw evenly, with a deviation of gain * sqrt(2 / (inputs + outputs)). Source: Glorot and Bengio 2010."""
  bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(fans(tensor)))
  return _written(tensor, _between(tensor, -bound, bound))

@drawing
def xavier_normal_(tensor: Any, gain: float = 1.0) -> Any:
  """Draw from a normal distribution, with a deviation of gain * sqrt(2 / (inputs + outputs))."""
  return _written(tensor, _normal(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor)))))

def _he(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
  if mode not in ("fan_in", "fan_out"): raise ArgumentError(f"mode is 'fan_in' or 'fan_out', not {mode!r}")
  return calculate_gain(nonlinearity, a) / math.sqrt(fans(tensor)[mode == "fan_out"])

@drawing
def kaiming_uniform_(tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Any:
  """Draw evenly, with a deviation of gain / sqrt(inputs). Source: He et al. 2015."""
  if 0 in tensor.shape: return tensor
  bound = math.sqrt(3.0) * _he(tensor, a, mode, nonlinearity)
  return _written(tensor, _between(tensor, -bound, bound))

@drawing
def kaiming_normal_(tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Any:
  """Draw from a normal distribution, with a deviation of gain / sqrt(inputs)."""
  if 0 in tensor.shape: return tensor
  return _written(tensor, _normal(tensor, 0.0, _he(tensor, a, mode, nonlinearity)))

@drawing
def orthogonal_(tensor: Any, gain: float = 1) -> Any:
  """Write orthogonal rows or columns, of the axes after the first flattened. Source: Saxe et al. 2013."""
  if tensor.ndim < 2: raise ArgumentError(f"orthogonal_ wants two axes at least, not {tensor.shape}")
  if 0 in tensor.shape: return tensor
  rows, *rest = sizes(tensor)
  columns = math.prod(rest)
  drawn = Tensor.randn(max(rows, columns), min(rows, columns), dtype=_wide(tensor)).realize()
  q, r = linalg_qr(drawn)
  found = q * r.diagonal().sign()
  return _written(tensor, (found if rows >= columns else found.transpose()) * gain)

@drawing
def sparse_(tensor: Any, sparsity: float, std: float = 0.01) -> Any:
  """Draw from a normal distribution, with a share of zeros in each column."""
  if tensor.ndim != 2: raise ArgumentError(f"sparse_ wants a matrix, not {tensor.shape}")
  rows, columns = sizes(tensor)
  places = Tensor.rand(rows, columns).argsort(0).argsort(0)
  return _written(tensor, (places < math.ceil(sparsity * rows)).where(0.0, _normal(tensor, 0.0, std)))
