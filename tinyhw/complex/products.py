"""Sums of products of complex tensors: matrix products, Einstein sums, and products along an axis."""
from __future__ import annotations
import itertools

from tinyhw.complex.arithmetic import Planes, mul
from tinyhw.tensor import Tensor

def dot(x: Planes, y: Planes) -> Planes:
  """Return x @ y, by four real products."""
  return Planes(x.real.dot(y.real).sub(x.imag.dot(y.imag)), x.real.dot(y.imag).add(x.imag.dot(y.real)))

# i ** n is real or imaginary, with a sign: which plane, and the sign.
_POWERS_OF_I = ((0, 1), (1, 1), (0, -1), (1, -1))

def einsum(formula: str, operands: list[Planes]) -> Planes:
  """Return an Einstein sum: that of each choice of a plane from each operand, times a power of i."""
  sums: list[list[Tensor]] = [[], []]
  for choice in itertools.product((0, 1), repeat=len(operands)):
    plane, sign = _POWERS_OF_I[sum(choice) % 4]
    found = Tensor.einsum(formula, *[x[k] for x, k in zip(operands, choice)])
    sums[plane].append(found if sign > 0 else found.neg())
  real, imag = (total[0].usum(*total[1:]) for total in sums)
  return Planes(real, imag)

def _part(x: Planes, axis: int, begin: int, end: int) -> Planes:
  arg = [(begin, end) if i == axis else None for i in range(x.real.ndim)]
  return Planes(x.real.shrink(arg), x.imag.shrink(arg))

def _joined(x: Planes, y: Planes, axis: int) -> Planes:
  return Planes(x.real.cat(y.real, dim=axis), x.imag.cat(y.imag, dim=axis))

def prod(x: Planes, axis: int) -> Planes:
  """Return the product along an axis, which stays with size 1. Halves are multiplied, so there are log2(n) steps."""
  n = int(x.real.shape[axis])
  if n == 0:
    shape = [1 if i == axis else d for i, d in enumerate(x.real.shape)]
    return Planes(Tensor.full(shape, 1, x.real.dtype), Tensor.full(shape, 0, x.real.dtype))
  while n > 1:
    half = n // 2
    found = mul(_part(x, axis, 0, half), _part(x, axis, half, 2 * half))
    x = _joined(found, _part(x, axis, 2 * half, n), axis) if n % 2 else found
    n = half + n % 2
  return x

def cumprod(x: Planes, axis: int) -> Planes:
  """Return the products up to each position, by log2(n) steps of doubled reach. Source: Hillis and Steele 1986."""
  n, reach = int(x.real.shape[axis]), 1
  while reach < n:
    x = _joined(_part(x, axis, 0, reach), mul(_part(x, axis, reach, n), _part(x, axis, 0, n - reach)), axis)
    reach *= 2
  return x
