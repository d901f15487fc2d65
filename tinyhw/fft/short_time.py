"""Transforms of overlapping frames of a signal, and their inverse, with PyTorch's parameters."""
from __future__ import annotations
from typing import Any

from tinyhw.complex.tensor import Complex, made, view_as_real
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.fft.transforms import fft, ifft, irfft, rfft
from tinyhw.functional.nn.convolutions import fold, pad
from tinyhw.functional.operands import checked, rank, sizes
from tinyhw.methods.checks import whole
from tinyhw.tensor import Tensor

_LEAST_WEIGHT = 1e-11    # squares of windows that add up to less leave a sample undetermined

def _steps(what: str, n_fft: Any, hop_length: Any, win_length: Any, window: Tensor | None) -> tuple[int, int, int]:
  """Return the sizes of a frame, of a step and of a window."""
  n = whole("n_fft", n_fft, 1)
  hop = n // 4 if hop_length is None else whole("hop_length", hop_length)
  length = n if win_length is None else whole("win_length", win_length)
  if hop < 1: raise ArgumentError(f"{what}: hop_length is {hop}; it must be at least 1")
  if not 0 < length <= n: raise ArgumentError(f"{what}: win_length {length} is outside of 1..{n}, the frame")
  if window is not None and sizes(checked("a window", window)) != (length,):
    raise ShapeError(f"{what}: a window of shape {window.shape} for win_length {length}")
  return n, hop, length

def _window(window: Tensor | None, length: int, n: int, like: Tensor) -> Tensor:
  """Return the window in the middle of a frame; ones if there is none."""
  w = Tensor.full((length,), 1, like.real.dtype if isinstance(like, Complex) else like.dtype,
                  like.device) if window is None else window
  left = (n - length) // 2
  return w.pad(((left, n - length - left),)) if length < n else w

def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:
  """Return the transforms of overlapping frames: (..., frequencies, frames).

  input: (L) or (batch, L), real or complex. center: frames are centred at multiples of hop_length, with padding.
  onesided: frequencies 0 to n_fft // 2 only, by default for real input. return_complex=False gives pairs of floats.
  """
  x = checked("stft", input)
  if rank(x.dtype) < 2: raise DTypeError(f"stft wants floats or complex numbers, not {x.dtype}")
  if x.ndim not in (1, 2): raise ShapeError(f"stft wants (L) or (batch, L), not {x.shape}")
  n, hop, length = _steps("stft", n_fft, hop_length, win_length, window)
  is_complex = isinstance(x, Complex) or isinstance(window, Complex)
  if return_complex is None and not is_complex: raise ArgumentError("stft of real input wants return_complex=True")
  half = not is_complex if onesided is None else bool(onesided)
  if half and is_complex: raise ArgumentError("stft of complex input gives all frequencies; leave out onesided")
  if align_to_window is not None and center: raise ArgumentError("stft: align_to_window is for center=False")
  rows = x.reshape(1, -1) if x.ndim == 1 else x
  if center: rows = _centred(rows, n // 2, pad_mode)
  if sizes(rows)[1] < n: raise ShapeError(f"stft: a signal of {sizes(rows)[1]} samples is shorter than a frame of {n}")
  frames = rows.unfold(1, n, hop).mul(_window(window, length, n, x))
  found = (rfft if half else fft)(frames, norm="ortho" if normalized else None)
  found = found.contiguous().transpose(1, 2)      # to write it so would be one element at a time
  found = found if x.ndim == 2 else found.squeeze(0)
  return found if return_complex or return_complex is None else view_as_real(found)

def _centred(rows: Tensor, margin: int, mode: str) -> Tensor:
  if isinstance(rows, Complex):
    return made(*[_centred(part, margin, mode) for part in rows.pair])
  return pad(rows.unsqueeze(0), (margin, margin), mode).squeeze(0)

def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
          length: int | None = None, return_complex: bool = False) -> Tensor:
  """Return the signal of which the transforms of overlapping frames are given: the least squares solution.

  input: complex, (frequencies, frames) or (batch, frequencies, frames). length: that of the result. Raises
  ArgumentError for a window under which samples are undetermined.
  """
  x = checked("istft", input)
  if not isinstance(x, Complex): raise DTypeError(f"istft wants complex numbers, not {x.dtype}; use view_as_complex")
  if x.ndim not in (2, 3): raise ShapeError(f"istft wants (batch, frequencies, frames), not {x.shape}")
  n, hop, size = _steps("istft", n_fft, hop_length, win_length, window)
  rows = x.reshape(1, *x.shape) if x.ndim == 2 else x
  half = sizes(rows)[1] != n if onesided is None else bool(onesided)
  if sizes(rows)[1] != (n // 2 + 1 if half else n):
    raise ShapeError(f"istft: {sizes(rows)[1]} frequencies do not fit a frame of {n}")
  if return_complex and half: raise ArgumentError("istft: a complex result wants all frequencies, onesided=False")
  w = _window(window, size, n, x)
  norm = "ortho" if normalized else None
  spectra = rows.transpose(1, 2)
  frames = (irfft(spectra, n, norm=norm) if half else ifft(spectra, norm=norm)).mul(w)
  if not return_complex and isinstance(frames, Complex): frames = frames.real
  count = sizes(rows)[2]
  total = n + hop * (count - 1)
  squares = (w.abs() if isinstance(w, Complex) else w).square()
  weights = _added(squares.reshape(1, 1, n).expand(1, count, n), n, hop, total)
  start = n // 2 if center else 0
  end = start + length if length is not None else total - (n // 2 if center else 0)
  inside = (None, (start, min(end, total)))
  weights = weights.shrink(inside)
  if not bool(weights.detach().gt(_LEAST_WEIGHT).all().item()):
    raise ArgumentError("istft: the window leaves samples undetermined; shorten hop_length, or change the window")
  found = _overlapped(frames, n, hop, total)
  found = found.shrink(inside).div(weights)
  if end > total: found = found.pad((None, (0, end - total)))
  return found if x.ndim == 3 else found.squeeze(0)

def _overlapped(frames: Tensor, n: int, hop: int, total: int) -> Tensor:
  """Add overlapping frames of real or complex numbers."""
  if isinstance(frames, Complex): return made(*[_added(part, n, hop, total) for part in frames.pair])
  return _added(frames, n, hop, total)

def _added(frames: Tensor, n: int, hop: int, total: int) -> Tensor:
  """Add overlapping frames: (batch, frames, n) -> (batch, total)."""
  return fold(frames.transpose(1, 2), (1, total), (1, n), stride=(1, hop)).reshape(int(frames.shape[0]), total)
