"""Orthogonal polynomials, by their recurrences of three terms: one table.

The degree n is a number or a tensor. A polynomial of a negative degree is 0. Source: Abramowitz and Stegun, table 22.7.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.functional.operands import broadcast, tensors
from tinyhw.errors import ArgumentError
from tinyhw.named_tuple import NamedTuple
from tinyhw.special.horner import in_double
from tinyhw.tensor import Tensor

class Recurrence(NamedTuple):
  """P_0 = 1, P_1 = first(x), P_{k+1} = step(k, x, P_k, P_{k-1})."""
  first: Callable[[Tensor], Tensor]
  step: Callable[[int, Tensor, Tensor, Tensor], Tensor]

def _double(k: int, x: Tensor, p: Tensor, q: Tensor) -> Tensor: return x.mul(2).mul(p).sub(q)

CHEBYSHEV: dict[str, Callable[[Tensor], Tensor]] = {
  "t": lambda x: x, "u": lambda x: x.mul(2), "v": lambda x: x.mul(2).sub(1), "w": lambda x: x.mul(2).add(1)}
HERMITE_H = Recurrence(lambda x: x.mul(2), lambda k, x, p, q: x.mul(p).sub(q.mul(k)).mul(2))
HERMITE_HE = Recurrence(lambda x: x, lambda k, x, p, q: x.mul(p).sub(q.mul(k)))
LAGUERRE = Recurrence(lambda x: x.sub(1, reverse=True), lambda k, x, p, q: x.sub(2 * k + 1, reverse=True).mul(p).sub(
  q.mul(k)).div(k + 1))
LEGENDRE = Recurrence(lambda x: x, lambda k, x, p, q: x.mul(p).mul(2 * k + 1).sub(q.mul(k)).div(k + 1))

_MOST = 1 << 12

def _evaluated(name: str, recurrence: Recurrence, x: Any, n: Any) -> Tensor:
  values, degrees = broadcast(*tensors(x, n))
  most = int(degrees.max().item()) if degrees.numel() else 0
  if most > _MOST: raise ArgumentError(f"{name}: a degree of {most} is above {_MOST}")
  def recur(y: Tensor, d: Tensor) -> Tensor:
    whole = d.trunc()
    q, p = y.const_like(1.0), recurrence.first(y)
    found = whole.eq(0).where(q, whole.eq(1).where(p, 0))
    for k in range(1, most):
      q, p = p, recurrence.step(k, y, p, q)
      found = whole.eq(k + 1).where(p, found)
      if k % 8 == 0: q, p, found = q.contiguous(), p.contiguous(), found.contiguous()
    return found
  return in_double(recur, values, degrees)

def chebyshev_polynomial_t(input: Any, n: Any) -> Tensor:
  """Return the Chebyshev polynomial of the first kind."""
  return _evaluated("chebyshev_polynomial_t", Recurrence(CHEBYSHEV["t"], _double), input, n)

def chebyshev_polynomial_u(input: Any, n: Any) -> Tensor:
  """Return the Chebyshev polynomial of the second kind."""
  return _evaluated("chebyshev_polynomial_u", Recurrence(CHEBYSHEV["u"], _double), input, n)

def chebyshev_polynomial_v(input: Any, n: Any) -> Tensor:
  """Return the Chebyshev polynomial of the third kind."""
  return _evaluated("chebyshev_polynomial_v", Recurrence(CHEBYSHEV["v"], _double), input, n)

def chebyshev_polynomial_w(input: Any, n: Any) -> Tensor:
  """Return the Chebyshev polynomial of the fourth kind."""
  return _evaluated("chebyshev_polynomial_w", Recurrence(CHEBYSHEV["w"], _double), input, n)

def _shifted(kind: str) -> Recurrence:
  first = CHEBYSHEV[kind]
  return Recurrence(lambda x: first(x.mul(2).sub(1)), lambda k, x, p, q: _double(k, x.mul(2).sub(1), p, q))

def shifted_chebyshev_polynomial_t(input: Any, n: Any) -> Tensor:
  """Return T_n(2 x - 1)."""
  return _evaluated("shifted_chebyshev_polynomial_t", _shifted("t"), input, n)

def shifted_chebyshev_polynomial_u(input: Any, n: Any) -> Tensor:
  """Return U_n(2 x - 1)."""
  return _evaluated("shifted_chebyshev_polynomial_u", _shifted("u"), input, n)

def shifted_chebyshev_polynomial_v(input: Any, n: Any) -> Tensor:
  """Return V_n(2 x - 1)."""
  return _evaluated("shifted_chebyshev_polynomial_v", _shifted("v"), input, n)

def shifted_chebyshev_polynomial_w(input: Any, n: Any) -> Tensor:
  """Return W_n(2 x - 1)."""
  return _evaluated("shifted_chebyshev_polynomial_w", _shifted("w"), input, n)

def hermite_polynomial_h(input: Any, n: Any) -> Tensor:
  """Return the physicists' Hermite polynomial."""
  return _evaluated("hermite_polynomial_h", HERMITE_H, input, n)

def hermite_polynomial_he(input: Any, n: Any) -> Tensor:
  """Return the probabilists' Hermite polynomial."""
  return _evaluated("hermite_polynomial_he", HERMITE_HE, input, n)

def laguerre_polynomial_l(input: Any, n: Any) -> Tensor:
  """Return the Laguerre polynomial."""
  return _evaluated("laguerre_polynomial_l", LAGUERRE, input, n)

def legendre_polynomial_p(input: Any, n: Any) -> Tensor:
  """Return the Legendre polynomial."""
  return _evaluated("legendre_polynomial_p", LEGENDRE, input, n)
