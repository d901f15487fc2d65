"""The discrete Fourier transform along the last axis, of any length, without a scale.

    X[f] = sum over t of x[t] w**(t f),    w = exp(sign 2 pi i / n)

A length n = r m with a divisor r of at most MOST_RADIX is split (Cooley and Tukey 1965). Let t = a m + b and
f = c + r d. Transform along a by a matrix of r x r, multiply by w**(b c), and transform along b, of length m. Primes
above MOST_RADIX are radices, too, up to MOST_PRIME. Every other length is a convolution with a chirp, by two transforms
of a power of two (Bluestein 1970), since 2 t f = t**2 + f**2 - (f - t)**2.

Tables are computed on the host in float64, from exponents that are reduced modulo n exactly, and kept.
"""
from __future__ import annotations
import functools
import math

from tinyhw.complex.arithmetic import Planes, mul
from tinyhw.device import DeviceLike
from tinyhw.dtype import DType
from tinyhw.tensor import Tensor

MOST_RADIX = 16   # the largest composite radix: a stage does about this many products for each element
MOST_PRIME = 61   # the largest prime that is transformed by a matrix of its own

def transform(x: Planes, sign: int) -> Planes:
  """Return the transform along the last axis. sign: -1 for the forward one, 1 for the inverse one."""
  n = int(x.real.shape[-1])
  if n <= 1: return x
  r = radix(n)
  if r == 0: return _bluestein(x, sign)
  if r == n: return _by_matrix(Planes(x.real.unsqueeze(-1), x.imag.unsqueeze(-1)), sign, n, -1)
  m = n // r
  split = Planes(*[part.reshape(*part.shape[:-1], r, m) for part in x])
  rotated = mul(_by_matrix(split, sign, r, None), _table(sign, n, r, m, x.real.dtype, x.real.device))
  inner = transform(Planes(*[part.contiguous() for part in rotated]), sign)
  return Planes(*[part.transpose(-2, -1).reshape(*part.shape[:-2], n) for part in inner])

def transform_real(x: Tensor) -> Planes:
  """Return the forward transform of real numbers along the last axis, of even length: the frequencies 0 to n / 2.

  Adjacent pairs are complex numbers z, of half the length. With Z' the conjugate of Z backwards, X = (Z + Z') / 2 +
  w**f (Z - Z') / 2i. Source: Sorensen et al. 1987.
  """
  *lead, n = [int(d) for d in x.shape]
  m = n // 2
  pairs = x.reshape(*lead, m, 2)
  z = transform(Planes(*[pairs[..., k].contiguous() for k in range(2)]), -1)
  a, b = (part.contiguous() for part in z)
  w = _halves(n, x.dtype, x.device)
  def ahead(part: Tensor) -> Tensor: return part.cat(part[..., :1], dim=-1)
  def back(part: Tensor) -> Tensor: return part[..., :1].cat(part.flip(-1), dim=-1)
  c, d, e, f = ahead(a), ahead(b), back(a), back(b)
  odd = mul(Planes(d.add(f), e.sub(c)), w)
  return Planes(c.add(e).mul(0.5).add(odd.real), d.sub(f).mul(0.5).add(odd.imag))

def transform_half(x: Planes, n: int) -> Tensor:
  """Return the inverse transform to n real numbers, n even, of the frequencies 0 to n / 2 along the last axis.

  It is transform_real backwards. Imaginary parts of the first and the last frequency do not count.
  """
  m = n // 2
  a, b = x.real, x.imag[..., 1:m].pad([None] * (x.real.ndim - 1) + [(1, 1)])
  c, d, e, f = a[..., :m], b[..., :m], a.flip(-1)[..., :m], b.flip(-1)[..., :m]
  w = Planes(*[part[:m].mul(2) for part in _halves(n, x.real.dtype, x.real.device)])
  odd = mul(Planes(c.sub(e), d.add(f)), Planes(w.real, w.imag.neg()))
  z = transform(Planes(c.add(e).sub(odd.imag).contiguous(), d.sub(f).add(odd.real).contiguous()), 1)
  return z.real.stack(z.imag, dim=-1).flatten(-2)

def radix(n: int) -> int:
  """Return the radix of the first stage of a length; 0 where there is none."""
  composite = max((r for r in range(2, MOST_RADIX + 1) if n % r == 0), default=0)
  return composite or next((r for r in range(MOST_RADIX + 1, MOST_PRIME + 1) if n % r == 0), 0)

def _by_matrix(x: Planes, sign: int, r: int, drop: int | None) -> Planes:
  """Transform along the second last axis, of r elements, by the sums of products with a matrix. drop: an axis of size 1
  to drop."""
  w = _table(sign, r, r, r, x.real.dtype, x.real.device)
  a, b = (part.unsqueeze(-3) for part in x)                 # (..., 1, a, m)
  c, d = (part.unsqueeze(-1) for part in w)                 # (c, a, 1)
  found = Planes(a.mul(c).sub(b.mul(d)).sum(-2), a.mul(d).add(b.mul(c)).sum(-2))
  return found if drop is None else Planes(found.real.squeeze(drop), found.imag.squeeze(drop))

def _bluestein(x: Planes, sign: int) -> Planes:
  n = int(x.real.shape[-1])
  size = 1 << (2 * n - 2).bit_length()
  chirp = _chirp(sign, n, x.real.dtype, x.real.device)
  kernel = _kernel(sign, n, size, x.real.dtype, x.real.device)
  padded = Planes(*[part.pad_to(*part.shape[:-1], size) for part in mul(x, chirp)])
  product = mul(transform(padded, -1), kernel)
  found = transform(Planes(*[part.contiguous() for part in product]), 1)
  return mul(Planes(*[part.shrink_to(*part.shape[:-1], n).mul(1 / size) for part in found]), chirp)

# ***** tables *****

def _kept(angles: list[float], shape: tuple[int, ...], dtype: DType, device: DeviceLike) -> Planes:
  """Return the points of the unit circle at angles, as constants in storage."""
  parts = [[f(t) for t in angles] for f in (math.cos, math.sin)]
  return Planes(*[Tensor(part, dtype=dtype, device=device, requires_grad=False).reshape(shape) for part in parts])

@functools.lru_cache(maxsize=64)
def _table(sign: int, n: int, r: int, m: int, dtype: DType, device: DeviceLike) -> Planes:
  """Return w**(b c) for c of 0..r and b of 0..m."""
  unit = sign * 2 * math.pi / n
  return _kept([unit * (b * c % n) for c in range(r) for b in range(m)], (r, m), dtype, device)

@functools.lru_cache(maxsize=16)
def _halves(n: int, dtype: DType, device: DeviceLike) -> Planes:
  """Return w**f / 2 for f of 0..n / 2."""
  parts = [[g(-2 * math.pi * k / n) / 2 for k in range(n // 2 + 1)] for g in (math.cos, math.sin)]
  return Planes(*[Tensor(part, dtype=dtype, device=device, requires_grad=False) for part in parts])

@functools.lru_cache(maxsize=16)
def _chirp(sign: int, n: int, dtype: DType, device: DeviceLike) -> Planes:
  """Return exp(sign pi i t**2 / n)."""
  return _kept([sign * math.pi * (t * t % (2 * n)) / n for t in range(n)], (n,), dtype, device)

@functools.lru_cache(maxsize=16)
def _kernel(sign: int, n: int, size: int, dtype: DType, device: DeviceLike) -> Planes:
  """Return the transform of the conjugate chirp, which wraps around."""
  chirp = _chirp(-sign, n, dtype, device)
  wrapped = Planes(*[part.cat(Tensor.zeros(size - 2 * n + 1, dtype=dtype, device=device), part[1:].flip(0))
                   for part in chirp])
  found = transform(wrapped, -1)
  kept = Planes(*[part.detach().contiguous() for part in found])
  kept.real.realize(kept.imag)
  for part in kept: part.requires_grad_(False)
  return kept
