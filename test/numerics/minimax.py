"""Where the coefficients in tinyhw/codegen/{exponential,logarithm,power,saturating,trigonometric}.py come from:
`python3 test/numerics/minimax.py [name …]`.

Minimax polynomials by Remez's exchange, in 220 bits (needs mpmath), on a grid of Chebyshev points. Coefficients are
rounded to the float type one after the other, from the lowest power; after each, the rest is fitted again, so that it
makes up for the rounding. Prints the errors, as powers of two, of the ideal polynomial and of the one with rounded
coefficients, and these.
"""
from __future__ import annotations
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp

Function = Callable[[Any], Any]
SINGLE, DOUBLE = 24, 53  # bits
mp.mp.prec = 220

def rounded(x: Any, bits: int) -> Any:
  mantissa, exponent = mp.frexp(x)
  return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), int(exponent) - bits)

def grid(low: Any, high: Any, n: int) -> list[Any]:
  return [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / (n - 1)) for k in range(n)]

# ***** exchange *****

def extrema(errors: list[Any]) -> list[int]:
  """The largest error of each stretch of one sign."""
  found: list[int] = []
  for k, e in enumerate(errors):
    if not found or (e >= 0) != (errors[found[-1]] >= 0): found.append(k)
    elif abs(e) > abs(errors[found[-1]]): found[-1] = k
  return found

def alternation(errors: list[Any], n: int) -> list[int]:
  """n of the extrema that alternate in sign, without the smallest."""
  found = extrema(errors)
  while len(found) > n:
    if len(found) == n + 1: found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
    else:
      k = min(range(len(found)), key=lambda i: abs(errors[found[i]]))
      if k in (0, len(found) - 1): found.pop(k)
      else:
        other = k - 1 if abs(errors[found[k - 1]]) < abs(errors[found[k + 1]]) else k + 1
        for i in sorted((k, other), reverse=True): found.pop(i)
  return found

def exchange(xs: list[Any], goal: list[Any], weights: list[Any], powers: list[int]) -> tuple[list[Any], Any]:
  """(coefficients, largest weighted error)."""
  n = len(powers)
  rows = [[w * x ** p for p in powers] for x, w in zip(xs, weights)]
  goal = [w * g for w, g in zip(weights, goal)]
  points = [round((len(xs) - 1) * (k + 0.5) / (n + 1)) for k in range(n + 1)]
  best: tuple[list[Any], Any] | None = None
  for _ in range(30):
    system, right = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
    for r, k in enumerate(points):
      for c in range(n): system[r, c] = rows[k][c]
      system[r, n], right[r] = (-1) ** r, goal[k]
    solution = mp.lu_solve(system, right)
    coefficients = [solution[k] for k in range(n)]
    errors = [g - sum(c * b for c, b in zip(coefficients, row)) for g, row in zip(goal, rows)]
    largest = max(abs(e) for e in errors)
    if best is None or largest < best[1]: best = coefficients, largest
    if largest <= abs(solution[n]) * (1 + mp.mpf("1e-4")) or len(extrema(errors)) < n + 1: break
    points = alternation(errors, n + 1)
  assert best is not None
  return best

class Fit(NamedTuple):
  """sum(c[p] * x**p) near f(x) for low <= x <= high; `weight` makes the error relative to what is computed.

  `fixed`: given coefficients.
  """
  f: Function
  low: Any
  high: Any
  powers: range
  weight: Function
  bits: int
  fixed: dict[int, Any]

  def run(self, n: int = 400) -> tuple[dict[int, Any], Any, Any]:
    """(coefficients, ideal error, error)."""
    xs = grid(self.low, self.high, n)
    coefficients = dict(self.fixed)
    rest = [self.f(x) - sum(c * x ** p for p, c in coefficients.items()) for x in xs]
    weights = [abs(self.weight(x)) for x in xs]
    ideal = None
    for k, p in enumerate(self.powers):
      odd = [-w if p % 2 and x < 0 else w for w, x in zip(weights, xs)]  # what is left has a zero of order p at 0
      found, largest = exchange(xs, rest, odd, list(self.powers[k:]))
      ideal = largest if ideal is None else ideal
      coefficients[p] = rounded(found[0], self.bits)
      rest = [r - coefficients[p] * x ** p for r, x in zip(rest, xs)]
    return coefficients, ideal, max(w * abs(r) for w, r in zip(weights, rest))

# ***** functions *****

LOG_2, WIDER = mp.log(2), mp.mpf("1.0001")  # intervals a little wider than needed, since reduction rounds

def smooth(f: Function, near_0: Function, below: str = "1e-20") -> Function:
  return lambda x: near_0(x) if abs(x) < mp.mpf(below) else f(x)

def of_root(f: Function) -> Function: return lambda z: f(mp.sqrt(z))

def nonzero(f: Function) -> Function: return lambda x: f(x) if x else mp.mpf(0)

log_rest = smooth(lambda x: (mp.log1p(x) - x) / x ** 2, lambda x: mp.mpf(-1) / 2 + x / 3)
atanh_rest = smooth(of_root(lambda s: 2 * (mp.atanh(s) / s - 1) / s ** 2), lambda z: mp.mpf(2) / 3 + z * 2 / 5)
power_rest = smooth(of_root(lambda s: (mp.atanh(s) / s - 1 - s ** 2 / 3) / s ** 4), lambda z: mp.mpf(1) / 5 + z / 7)
sine_rest = smooth(of_root(lambda r: (mp.sin(r) / r - 1) / r ** 2), lambda z: -mp.mpf(1) / 6 + z / 120)
cosine_rest = smooth(of_root(lambda r: (mp.cos(r) - 1) / r ** 2), lambda z: -mp.mpf(1) / 2 + z / 24)
LOW, HIGH = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1
SQUARE = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * WIDER
QUARTER = (mp.pi / 4 * WIDER) ** 2

def exp(degree: int, bits: int) -> Fit:
  return Fit(mp.exp, -LOG_2 * WIDER, LOG_2 * WIDER, range(1, degree + 1), lambda x: mp.exp(-x), bits, {0: mp.mpf(1)})

def exp2(degree: int, bits: int) -> Fit:
  return Fit(lambda x: mp.mpf(2) ** x, -mp.mpf(1) / 2, mp.mpf(1) / 2, range(1, degree + 1), lambda x: mp.mpf(2) ** -x,
             bits, {0: mp.mpf(1)})

def expm1(degree: int, bits: int) -> Fit:
  return Fit(mp.expm1, -LOG_2 / 2 * WIDER, LOG_2 / 2 * WIDER, range(2, degree + 1), nonzero(lambda x: 1 / mp.expm1(x)),
             bits, {1: mp.mpf(1)})

def logarithm(degree: int, scale: Any) -> Fit:
  return Fit(lambda x: log_rest(x) * scale, LOW, HIGH, range(degree + 1),
             nonzero(lambda x: x ** 2 / mp.log1p(x) / scale), SINGLE, {})

def atanh(degree: int) -> Fit: return Fit(atanh_rest, mp.mpf(0), SQUARE, range(degree + 1), lambda z: z / 2, DOUBLE, {})

def power(degree: int, bits: int) -> Fit:
  scale = 2 / LOG_2
  return Fit(lambda z: power_rest(z) * scale, mp.mpf(0), SQUARE, range(degree + 1), lambda z: z ** 2 / scale, bits, {})

def sine(degree: int, bits: int) -> Fit:
  return Fit(sine_rest, mp.mpf(0), QUARTER, range(degree + 1), nonzero(of_root(lambda r: r ** 3 / mp.sin(r))), bits, {})

def cosine(degree: int, bits: int) -> Fit:
  return Fit(cosine_rest, mp.mpf(0), QUARTER, range(1, degree + 1), of_root(lambda r: r ** 2 / mp.cos(r)), bits,
             {0: -mp.mpf(1) / 2})

def erf(degree: int, high: int, bits: int) -> Fit:
  slope = -2 / mp.sqrt(mp.pi)
  first = rounded(slope, bits)
  weight = nonzero(lambda x: mp.erfc(x) / mp.erf(x))
  return Fit(lambda x: mp.log(mp.erfc(x)), mp.mpf(0), mp.mpf(high), range(2, degree + 1), weight, bits,
             {1: first + rounded(slope - first, bits)})

FITS: dict[str, Callable[[], Fit]] = {
  "exp.float32": lambda: exp(7, SINGLE), "exp.float64": lambda: exp(13, DOUBLE),
  "exp2.float32": lambda: exp2(6, SINGLE), "exp2.float64": lambda: exp2(11, DOUBLE),
  "expm1.float32": lambda: expm1(6, SINGLE), "expm1.float64": lambda: expm1(11, DOUBLE),
  "log.float32": lambda: logarithm(7, mp.mpf(1)), "log2.float32": lambda: logarithm(8, 1 / LOG_2),
  "atanh.float64": lambda: atanh(6),
  "power.float32": lambda: power(2, SINGLE), "power.float64": lambda: power(6, DOUBLE),
  "sin.float32": lambda: sine(2, SINGLE), "sin.float64": lambda: sine(5, DOUBLE),
  "cos.float32": lambda: cosine(3, SINGLE), "cos.float64": lambda: cosine(6, DOUBLE),
  "erf.float32": lambda: erf(9, 4, SINGLE), "erf.float64": lambda: erf(24, 6, DOUBLE),
}

def main(names: list[str]) -> None:
  for name in names or FITS:
    coefficients, ideal, error = FITS[name]().run()
    print(f"{name}: ideal 2**{float(mp.log(ideal, 2)):.1f}, rounded 2**{float(mp.log(error, 2)):.1f}")
    for p, c in sorted(coefficients.items()): print(f"  x**{p}: {float(c)!r}")

if __name__ == "__main__": main(sys.argv[1:])
