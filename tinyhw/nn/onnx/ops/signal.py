"""Signal processing of ONNX: windows, Fourier transforms (products with tables of sines), mel filters.

Source: ONNX operator schemas (ai.onnx).
"""
from __future__ import annotations
from collections.abc import Callable
import math

from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.methods.convolution import window_view
from tinyhw.nn.onnx.data import dtype_of
from tinyhw.nn.onnx.operator import Float, Int, define, operator
from tinyhw.nn.onnx.ops.shape import axis_of, check_count
from tinyhw.tensor import Tensor

def _window(*terms: float) -> Callable[..., Tensor]:
  """Return a sum of cosines: a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N)."""
  def compute(size: Int, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    if size < 0: raise ArgumentError(f"a window of {size}")
    check_count(size, "a window")
    angle = Tensor.arange(size, dtype=dtypes.float32) * (2 * math.pi / max(size if periodic else size - 1, 1))
    total = angle * 0 + terms[0]
    for k, a in enumerate(terms[1:], 1): total = total + (angle * k).cos() * (a * (-1) ** k)
    return total.cast(dtype_of(output_datatype))
  return compute

define("HannWindow", _window(0.5, 0.5), 17)
define("HammingWindow", _window(25 / 46, 21 / 46), 17)
define("BlackmanWindow", _window(0.42, 0.5, 0.08), 17)

def _transform(x: Tensor, length: int, inverse: bool, onesided: bool) -> Tensor:
  """Compute the discrete Fourier transform along the axis before the last. The last axis has the real and the imaginary
  part (or the real part alone)."""
  n = int(x.shape[-2])
  if length < 1: raise ArgumentError(f"a Fourier transform of {length} elements")
  real_input = int(x.shape[-1]) == 1
  if onesided and inverse:                       # the missing half mirrors the given half
    rest = x[..., 1:length - n + 1, :].flip(-2) if length > n else x[..., :0, :]
    x = x.cat(rest[..., :1].cat(-rest[..., 1:], dim=-1), dim=-2)
  elif n > length: x = x[..., :length, :]
  elif n < length: x = x.pad([None] * (x.ndim - 2) + [(0, length - n), None])
  kept = length // 2 + 1 if onesided and not inverse else length
  check_count(length * kept, "a table of sines")
  place = Tensor.arange(length, dtype=dtypes.int64, device=x.device)
  turns = (place.reshape(-1, 1) * place[:kept].reshape(1, -1)) % length
  angle = turns.cast(dtypes.float64) * ((2 if inverse else -2) * math.pi / length)
  cos, sin = angle.cos().cast(x.dtype), angle.sin().cast(x.dtype)
  re = x[..., 0]
  if real_input: parts = re.matmul(cos), re.matmul(sin)
  else: parts = re.matmul(cos) - x[..., 1].matmul(sin), re.matmul(sin) + x[..., 1].matmul(cos)
  if onesided and inverse: y = parts[0].unsqueeze(-1)
  else: y = parts[0].stack(parts[1], dim=-1)
  return y / length if inverse else y

def _dft(x: Tensor, length: int | None, axis: int, inverse: int, onesided: int) -> Tensor:
  if x.ndim < 2 or x.shape[-1] not in (1, 2):
    raise ShapeError(f"a Fourier transform wants 1 or 2 numbers in the last axis, not {x.shape}")
  axis = axis_of(axis, x.ndim)
  if axis == x.ndim - 1: raise ArgumentError("a Fourier transform along the axis of real and imaginary parts")
  n = int(x.shape[axis]) if length is None else length
  if onesided and inverse and length is None: n = 2 * (int(x.shape[axis]) - 1)
  return _transform(x.transpose(axis, -2), n, bool(inverse), bool(onesided)).transpose(axis, -2)

@operator("DFT", 17)
def dft_by_attribute(x: Tensor, length: Int | None = None, *, axis: int = 1, inverse: int = 0,
                     onesided: int = 0) -> Tensor:
  return _dft(x, length, axis, inverse, onesided)
@operator("DFT", 20)
def dft(x: Tensor, length: Int | None = None, axis: Int | None = None, *, inverse: int = 0,
        onesided: int = 0) -> Tensor:
  return _dft(x, length, -2 if axis is None else axis, inverse, onesided)

@operator("STFT", 17)
def stft(x: Tensor, step: Int, window: Tensor | None = None, length: Int | None = None, *, onesided: int = 1) -> Tensor:
  """Compute the short-time Fourier transform. x: (N, samples, 1 or 2)  ->  (N, frames, frequencies, 2)."""
  if x.ndim == 2: x = x.unsqueeze(-1)
  size = length if length is not None else int(window.shape[0]) if window is not None else 0
  if x.ndim != 3 or size < 1 or step < 1 or size > int(x.shape[1]):
    raise ArgumentError(f"STFT of {x.shape} in frames of {size} by steps of {step}")
  frames = Tensor(window_view(x.transpose(1, 2).uop, (size,), (step,), (1,))).permute(0, 2, 3, 1)
  if window is not None: frames = frames * window.cast(x.dtype).reshape(1, 1, -1, 1)
  return _transform(frames, size, False, bool(onesided) and int(x.shape[2]) == 1)

@operator("MelWeightMatrix", 17)
def mel_weight_matrix(bins: Int, length: Int, rate: Int, lower: Float, upper: Float, *,
                      output_datatype: int = 1) -> Tensor:
  """Return triangular filters between frequencies that are evenly spaced in mel: (length // 2 + 1, bins)."""
  spectrum = length // 2 + 1
  if bins < 1 or length < 1 or rate < 1:
    raise ArgumentError(f"a mel matrix of {bins} bins for {length} samples at {rate} Hz")
  check_count(bins * spectrum, "MelWeightMatrix")
  low, high = (2595 * math.log10(1 + f / 700) for f in (lower, upper))
  edges = [700 * (10 ** ((low + k * (high - low) / (bins + 2)) / 2595) - 1) for k in range(bins + 2)]
  points = [int((length + 1) * f // rate) for f in edges]
  rows = [[0.0] * bins for _ in range(spectrum)]
  for i in range(bins):
    first, centre, last = points[i:i + 3]
    if first == centre and 0 <= centre < spectrum: rows[centre][i] = 1.0
    for j in range(max(first, 0), min(centre + 1, spectrum)):
      if centre != first: rows[j][i] = (j - first) / (centre - first)
    for j in range(max(centre, 0), min(last, spectrum)):
      if last != centre: rows[j][i] = (last - j) / (last - centre)
  return Tensor(rows, dtype=dtype_of(output_datatype))
