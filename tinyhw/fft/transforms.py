"""Fourier transforms with NumPy's and PyTorch's parameters: of complex and real input, in 1 to n dimensions.

n, s: lengths to which axes are cut or filled with zeros. norm: "backward" scales the inverse by 1 / n, "forward" the
forward transform, "ortho" both by 1 / sqrt(n). Results are complex64 for float32 and complex128 for float64.
"""
from __future__ import annotations
from collections.abc import Sequence
import math
from typing import Any

from tinyhw.complex.arithmetic import Planes
from tinyhw.complex.tensor import Complex, made, of
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, ShapeError
from tinyhw.fft.stages import MOST_RADIX, transform, transform_half, transform_real
from tinyhw.functional.operands import axis_of, checked, sizes
from tinyhw.methods.checks import whole
from tinyhw.tensor import Tensor

_SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}

def _scale(norm: str | None, n: int, sign: int) -> float:
  if norm not in (None, "backward", "forward", "ortho"):
    raise ArgumentError(f"norm is 'backward', 'forward' or 'ortho', not {norm!r}")
  if norm == "ortho": return 1 / math.sqrt(n)
  return 1 / n if (norm == "forward") is (sign < 0) else 1.0

def _complex(what: str, x: Any) -> Complex:
  x = checked(what, x)
  if isinstance(x, Complex): return x
  return of(_real(what, x))

def _real(what: str, given: Any) -> Tensor:
  """Return real input as float32 or float64."""
  x: Tensor = checked(what, given)
  if isinstance(x, Complex): raise DTypeError(f"{what} wants real numbers, not {x.dtype}; use the complex transform")
  if dtypes.is_float(x.dtype) and x.dtype not in (dtypes.float32, dtypes.float64):
    raise DTypeError(f"{what} wants float32 or float64, not {x.dtype}; cast with .float()")
  return x if dtypes.is_float(x.dtype) else x.cast(dtypes.default_float)

def _axis(what: str, x: Tensor, dim: Any) -> int:
  if not x.ndim: raise ShapeError(f"{what} wants a tensor with an axis")
  return axis_of(x, dim)

def _length(what: str, n: Any, have: int) -> int:
  found = have if n is None else whole("n", n)
  if found < 1: raise ArgumentError(f"{what}: a transform of {found} elements; give n, at least 1")
  return found

def resized(x: Tensor, axis: int, n: int) -> Tensor:
  """Return an axis cut to n elements, or filled with zeros."""
  have = sizes(x)[axis]
  if have > n: return x.shrink([(0, n) if i == axis else None for i in range(x.ndim)])
  return x.pad([(0, n - have) if i == axis else None for i in range(x.ndim)]) if have < n else x

def _along(x: Complex, axis: int, sign: int, scale: float) -> Complex:
  """Transform along an axis, and scale."""
  last = axis == x.ndim - 1
  pair = Planes(*[part if last else part.transpose(axis, -1) for part in x.pair])
  found = Planes(*[part if scale == 1 else part.mul(scale) for part in transform(pair, sign)])
  return made(*[part if last else part.transpose(axis, -1) for part in found])

def _one(what: str, input: Any, n: Any, dim: Any, norm: str | None, sign: int) -> Tensor:
  x = _complex(what, input)
  axis = _axis(what, x, dim)
  size = _length(what, n, sizes(x)[axis])
  return _along(of(resized(x, axis, size)), axis, sign, _scale(norm, size, sign))

def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """Return the discrete Fourier transform along an axis."""
  return _one("fft", input, n, dim, norm, -1)

def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """Return the inverse transform along an axis."""
  return _one("ifft", input, n, dim, norm, 1)

def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """Return the transform of real numbers: the frequencies 0 to n // 2."""
  x = _real("rfft", input)
  axis = _axis("rfft", x, dim)
  size = _length("rfft", n, sizes(x)[axis])
  scale, x = _scale(norm, size, -1), resized(x, axis, size)
  if size % 2 or size <= MOST_RADIX: return resized(_along(of(x), axis, -1, scale), axis, size // 2 + 1)
  last = axis == x.ndim - 1
  pair = transform_real(x if last else x.transpose(axis, -1))
  scaled = [part if scale == 1 else part.mul(scale) for part in pair]
  return made(*[part if last else part.transpose(axis, -1) for part in scaled])

def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """Return real numbers of which the frequencies 0 to n // 2 are given. n: the number of results, even by default."""
  x = _complex("irfft", input)
  axis = _axis("irfft", x, dim)
  size = _length("irfft", n, 2 * (sizes(x)[axis] - 1))
  return _real_of_half(x, axis, size, _scale(norm, size, 1))

def _real_of_half(x: Complex, axis: int, size: int, scale: float) -> Tensor:
  """Return the inverse of half of a spectrum, whose other half is the conjugate. The imaginary parts of the frequencies
  0 and n / 2 count as 0."""
  half = of(resized(x, axis, size // 2 + 1))
  if size % 2 == 0 and size > MOST_RADIX:
    last = axis == x.ndim - 1
    found = transform_half(Planes(*[part if last else part.transpose(axis, -1) for part in half.pair]), size)
    found = found if scale == 1 else found.mul(scale)
    return found if last else found.transpose(axis, -1)
  def part(plane: Tensor, begin: int, end: int) -> Tensor:
    return plane.shrink([(begin, end) if i == axis else None for i in range(x.ndim)])
  middle = (size + 1) // 2                       # the frequencies from here on are the conjugates of those before
  ends = [part(half.imag, 0, 1).const_like(0), part(half.imag, 1, middle),
          part(half.imag, middle, size // 2 + 1).const_like(0)]
  imag = ends[0].cat(*ends[1:], dim=axis) if size > 1 else ends[0]
  spectrum = made(half.real, imag)
  if size > 2:
    inside = made(part(half.real, 1, middle).flip(axis), part(half.imag, 1, middle).flip(axis).neg())
    spectrum = of(spectrum.cat(inside, dim=axis))
  return _along(spectrum, axis, 1, scale).real

def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """Return the real transform of numbers whose other half is the conjugate."""
  return irfft(_complex("hfft", input).conj(), n, dim, _swapped(norm))

def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
  """Return the inverse transform of real numbers: the positions 0 to n // 2."""
  return of(rfft(_real("ihfft", input), n, dim, _swapped(norm))).conj()

def _swapped(norm: str | None) -> str:
  _scale(norm, 1, 1)
  return _SWAPPED[norm]

# ***** several axes *****

def _axes(what: str, x: Tensor, s: Any, dim: Any, last_of_half: bool = False) -> tuple[list[int], list[int]]:
  """Return axes and their lengths. last_of_half: the last length is that of a real result."""
  s = None if s is None else [whole("s", n) for n in (s if isinstance(s, (tuple, list)) else (s,))]
  if dim is None: axes = list(range(x.ndim)) if s is None else list(range(x.ndim - len(s), x.ndim))
  else: axes = [_axis(what, x, d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
  if len(set(axes)) != len(axes): raise ArgumentError(f"{what}: dim {dim!r} names an axis twice")
  if any(a < 0 for a in axes): raise ArgumentError(f"{what}: s {s} has more lengths than {x.shape} has axes")
  if s is not None and len(s) != len(axes): raise ArgumentError(f"{what}: {len(s)} lengths for {len(axes)} axes")
  lengths = [sizes(x)[a] if s is None or s[i] == -1 else s[i] for i, a in enumerate(axes)]
  if last_of_half and axes and (s is None or s[-1] == -1): lengths[-1] = 2 * (sizes(x)[axes[-1]] - 1)
  for n in lengths: _length(what, n, n)
  return axes, lengths

def _many(what: str, input: Any, s: Any, dim: Any, norm: str | None, sign: int) -> Tensor:
  x = _complex(what, input)
  axes, lengths = _axes(what, x, s, dim)
  _scale(norm, 1, sign)
  for axis, n in zip(axes, lengths): x = of(resized(x, axis, n))
  for axis, n in zip(axes[::-1], lengths[::-1]): x = _along(x, axis, sign, _scale(norm, n, sign))
  return x

def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
  """Return the transform along several axes."""
  return _many("fftn", input, s, dim, norm, -1)

def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
  """Return the inverse transform along several axes."""
  return _many("ifftn", input, s, dim, norm, 1)

def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
  """Return the transform of real numbers along several axes: of the last one, the frequencies 0 to n // 2."""
  x = _real("rfftn", input)
  axes, lengths = _axes("rfftn", x, s, dim)
  if not axes: raise ArgumentError("rfftn wants an axis at least")
  for axis, n in zip(axes, lengths): x = resized(x, axis, n)
  found = rfft(x, lengths[-1], axes[-1], norm)
  return _many("rfftn", found, lengths[:-1], axes[:-1], norm, -1) if axes[:-1] else found

def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
  """Return real numbers from the half of their spectrum along several axes."""
  x = _complex("irfftn", input)
  axes, lengths = _axes("irfftn", x, s, dim, last_of_half=True)
  if not axes: raise ArgumentError("irfftn wants an axis at least")
  if axes[:-1]: x = of(_many("irfftn", x, lengths[:-1], axes[:-1], norm, 1))
  return irfft(x, lengths[-1], axes[-1], norm)

def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
  """Return the real transform of numbers of which half is given, along several axes."""
  return irfftn(_complex("hfftn", input).conj(), s, dim, _swapped(norm))

def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
  """Return the inverse of hfftn."""
  return of(rfftn(_real("ihfftn", input), s, dim, _swapped(norm))).conj()

def fft2(input: Tensor, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
  """Return the transform along two axes."""
  return fftn(input, s, dim, norm)

def ifft2(input: Tensor, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
  """Return the inverse transform along two axes."""
  return ifftn(input, s, dim, norm)

def rfft2(input: Tensor, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
  """Return the transform of real numbers along two axes."""
  return rfftn(input, s, dim, norm)

def irfft2(input: Tensor, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
  """Return real numbers from the half of their spectrum along two axes."""
  return irfftn(input, s, dim, norm)

def hfft2(input: Tensor, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
  """Return the real transform of numbers of which half is given, along two axes."""
  return hfftn(input, s, dim, norm)

def ihfft2(input: Tensor, s: Any = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
  """Return the inverse of hfft2."""
  return ihfftn(input, s, dim, norm)

# ***** frequencies *****

def fftshift(input: Tensor, dim: Any = None) -> Tensor:
  """Move frequency 0 to the middle of axes."""
  return _rolled("fftshift", input, dim, lambda n: n // 2)

def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
  """Move frequency 0 from the middle of axes to the beginning."""
  return _rolled("ifftshift", input, dim, lambda n: (n + 1) // 2)

def _rolled(what: str, input: Any, dim: Any, by: Any) -> Tensor:
  x = checked(what, input)
  named = range(x.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
  axes = [axis_of(x, d) for d in named]
  axes = [a for a in axes if x.ndim and sizes(x)[a]]
  return x.roll([by(sizes(x)[a]) for a in axes], axes) if axes else x

def _samples(n: Any, d: float) -> int:
  """Return the number of samples, of which d is the distance. Raises ArgumentError unless it differs from 0."""
  if d == 0: raise ArgumentError("samples that are 0 apart have no frequencies; d must differ from 0")
  return whole("n", n, 1)

def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
  """Return the frequencies of a transform of n elements that are d apart."""
  n = _samples(n, d)
  return Tensor([k / (n * d) for k in (*range((n + 1) // 2), *range(-(n // 2), 0))], dtype=dtype, device=device,
                requires_grad=requires_grad or None)

def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
  """Return the frequencies 0 to n // 2 of a transform of n elements that are d apart."""
  n = _samples(n, d)
  return Tensor([k / (n * d) for k in range(n // 2 + 1)], dtype=dtype, device=device,
                requires_grad=requires_grad or None)
