"""Windows of signals, as vectors: PyTorch's torch.signal.windows.

sym: symmetric; else one period, for spectra. Source of the formulas: PyTorch's documentation.
"""
from __future__ import annotations
from collections.abc import Sequence
import math
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import ArgumentError, DTypeError
from tinyhw.functional.operands import dtype_or
from tinyhw.tensor import Tensor

def _kind(M: int, dtype: Any, layout: Any) -> DType:
  kind = dtype_or(dtype, dtypes.default_float)
  if not isinstance(M, int) or M < 0: raise ArgumentError(f"a window has M elements, at least 0, not {M!r}")
  if kind not in (dtypes.float32, dtypes.float64): raise DTypeError(f"windows are float32 or float64, not {kind}")
  if layout is not None and "strided" not in str(layout): raise ArgumentError(f"layout is strided, not {layout}")
  return kind

def _made(M: int, kind: DType, values: Sequence[float]) -> Tensor:
  return Tensor(list(values), dtype=kind) if M else Tensor.empty(0, dtype=kind)

def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, dtype: Any = None, layout: Any = None,
                   device: Any = None, requires_grad: bool = False) -> Tensor:
  """Return the sum of (-1)**k a[k] cos(2 pi k n / (M - 1))."""
  kind = _kind(M, dtype, layout)
  if not isinstance(a, (tuple, list)) or not a: raise ArgumentError(f"a is a list of coefficients, not {a!r}")
  if M == 1: return Tensor.ones(1, dtype=kind)
  step = 2 * math.pi / (M if not sym else M - 1) if M else 0.0
  return _made(M, kind, [sum((-1) ** k * c * math.cos(k * n * step) for k, c in enumerate(a)) for n in range(M)])

def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None,
                    device: Any = None, requires_grad: bool = False) -> Tensor:
  """Return alpha - (1 - alpha) cos(2 pi n / (M - 1))."""
  return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout)

def hamming(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:
  """Return the Hamming window."""
  return general_hamming(M, sym=sym, dtype=dtype, layout=layout)

def hann(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
         requires_grad: bool = False) -> Tensor:
  """Return the Hann window."""
  return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout)

def blackman(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
  """Return the Blackman window."""
  return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout)

def nuttall(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Tensor:
  """Return the Nuttall window of four terms."""
  return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout)

def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
  """Return the triangular window that ends at 0."""
  kind = _kind(M, dtype, layout)
  if M == 1: return Tensor.ones(1, dtype=kind)
  n = M if not sym else M - 1
  return _made(M, kind, [1 - abs(2 * i / n - 1) for i in range(M)])

def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
  """Return half a wave of the sine."""
  kind = _kind(M, dtype, layout)
  if M == 1: return Tensor.ones(1, dtype=kind)
  n = M if sym else M + 1
  return _made(M, kind, [math.sin(math.pi * (i + 0.5) / n) for i in range(M)])

def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
                layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
  """Return exp(-|n - center| / tau)."""
  kind = _kind(M, dtype, layout)
  if M == 1: return Tensor.ones(1, dtype=kind)
  if tau <= 0: raise ArgumentError(f"tau is {tau}; it must be positive")
  if sym and center is not None: raise ArgumentError("center goes with sym=False")
  middle = (M - 1 if sym else M) / 2 if center is None else center
  return _made(M, kind, [math.exp(-abs(i - middle) / tau) for i in range(M)])

def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:
  """Return exp(-((n - middle) / std)**2 / 2)."""
  kind = _kind(M, dtype, layout)
  if M == 1: return Tensor.ones(1, dtype=kind)
  if std <= 0: raise ArgumentError(f"std is {std}; it must be positive")
  middle = (M - 1 if sym else M) / 2
  return _made(M, kind, [math.exp(-((i - middle) / std) ** 2 / 2) for i in range(M)])

def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:
  """Return I0(beta sqrt(1 - (2 n / (M - 1) - 1)**2)) / I0(beta)."""
  kind = _kind(M, dtype, layout)
  if beta < 0: raise ArgumentError(f"beta is {beta}; it is not negative")
  if M == 1: return Tensor.ones(1, dtype=kind)
  n = M if not sym else M - 1
  return _made(M, kind, [_bessel(beta * math.sqrt(max(1 - (2 * i / n - 1) ** 2, 0))) / _bessel(beta) for i in range(M)])

def _bessel(x: float) -> float:
  """Return the modified Bessel function I0, by its power series, which has positive terms only."""
  total = term = 1.0
  k = 0
  while term > 1e-17 * total:
    k += 1
    term *= (x / 2 / k) ** 2
    total += term
  return total

# ***** torch's older names: one period unless periodic is False *****

def _older(window_length: int, window: Any, periodic: bool, **options: Any) -> Tensor:
  kept = {k: v for k, v in options.items() if k not in ("device", "requires_grad", "pin_memory")}
  found: Tensor = window(window_length, sym=not periodic, **kept)
  if options.get("requires_grad"): found.requires_grad_()
  return found

def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
  """Return Hann's window."""
  return _older(window_length, hann, periodic, **options)

def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46,
                   **options: Any) -> Tensor:
  """Return Hamming's window, alpha - beta cos(2 pi n / N)."""
  if beta == 1.0 - alpha or (alpha, beta) == (0.54, 0.46):
    return _older(window_length, general_hamming, periodic, alpha=alpha, **options)
  return _older(window_length, general_cosine, periodic, a=[alpha, beta], **options)

def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
  """Return Blackman's window."""
  return _older(window_length, blackman, periodic, **options)

def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
  """Return Bartlett's window, a triangle."""
  return _older(window_length, bartlett, periodic, **options)

def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
  """Return Kaiser's window."""
  return _older(window_length, kaiser, periodic, beta=beta, **options)
