"""Write tinyhw/special/tables.py: Chebyshev coefficients of special functions, computed by mpmath with 50 digits.

    python3 test/special/make_tables.py

Each table approximates f on -1..1; FITS says what f is in terms of the functions' arguments. Coefficients that are
below 1e-18 of the largest one are left out. Tables for float32 results alone (ROUGH) leave out those below 1e-10, and
are polynomials, the coefficient of the highest power first.
"""
from __future__ import annotations
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp

mp.mp.dps = 50
TARGET = Path(__file__).resolve().parents[2] / "tinyhw/special/tables.py"
_TINY = mp.mpf(10) ** -60

ROUGH = ("ERFINV_NEAR", "ERFINV_TAIL")

def polynomial(f: Callable[[Any], Any]) -> list[float]:
  """The coefficients of a polynomial near f on -1..1, the highest power first."""
  series = coefficients(f, least=-10)
  basis: list[list[Any]] = [[mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]]      # of Chebyshev's polynomials, the lowest first
  while len(basis) < len(series):
    twice, before = [mp.mpf(0), *[2 * c for c in basis[-1]]], basis[-2]
    basis.append([c - (before[k] if k < len(before) else 0) for k, c in enumerate(twice)])
  found = [mp.fsum(c * part[k] for c, part in zip(series, basis) if k < len(part)) for k in range(len(series))]
  return [float(c) for c in reversed(found)]

def table(name: str) -> list[float]:
  """The coefficients of a table."""
  return (polynomial if name in ROUGH else coefficients)(FITS[name][1])

def coefficients(f: Callable[[Any], Any], most: int = 80, least: int = -18) -> list[float]:
  """The Chebyshev coefficients of f on -1..1, from its values at Chebyshev's nodes."""
  nodes = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / most) for k in range(most)]
  values = [f(t) for t in nodes]
  found = [2 / mp.mpf(most) * mp.fsum(v * mp.cos(mp.pi * j * (k + mp.mpf(1) / 2) / most) for k, v in enumerate(values))
           for j in range(most)]
  found[0] /= 2
  limit = max(map(abs, found)) * mp.mpf(10) ** least
  while abs(found[-1]) < limit: found.pop()
  return [float(c) for c in found]

def of_square(f: Callable[[Any], Any], reach: int) -> Callable[[Any], Any]:
  """f as a function of t with x * x = reach**2 (t + 1) / 2."""
  return lambda t: f(mp.sqrt(max((t + 1) / 2, _TINY)) * reach)

def of_inverse(f: Callable[[Any], Any], least: float) -> Callable[[Any], Any]:
  """f as a function of t with least / x = (t + 1) / 2."""
  return lambda t: f(mp.mpf(least) / max((t + 1) / 2, _TINY))

def of_inverse_square(f: Callable[[Any], Any], least: int) -> Callable[[Any], Any]:
  """f as a function of t with (least / x)**2 = (t + 1) / 2."""
  return lambda t: f(mp.mpf(least) / mp.sqrt(max((t + 1) / 2, _TINY)))

def erfcx(x: Any) -> Any: return (2 * x + 1) * mp.exp(x * x) * mp.erfc(x) if x < 1e4 else (2
                                                                                           + 1 / x) / mp.sqrt(mp.pi) * (
  1 - 1 / (2 * x * x))

def erfinv_over(w: Any) -> Any:
  """erfinv(x) / x for 1 - x * x = exp(-w)."""
  x = mp.sqrt(-mp.expm1(-max(w, _TINY)))
  return mp.erfinv(x) / x

def phase(n: int, x: Any, part: str) -> Any:
  """P or Q * x / 8 of J_n(x) = sqrt(2 / (pi x)) (P cos(c) - Q sin(c)), c = x - (2 n + 1) pi / 4."""
  if x > 1e6: return mp.mpf(1) if part == "p" else mp.mpf(4 * n * n - 1) / 64
  c, scale = x - (2 * n + 1) * mp.pi / 4, mp.sqrt(mp.pi * x / 2)
  j, y = mp.besselj(n, x), mp.bessely(n, x)
  if part == "p": return scale * (j * mp.cos(c) + y * mp.sin(c))
  return scale * (y * mp.cos(c) - j * mp.sin(c)) * x / 8

def airy_phase(x: Any, part: str) -> Any:
  """F or G * zeta of Ai(-x) = (F cos(c) + G sin(c)) / (sqrt(pi) x**(1/4)), c = zeta - pi / 4."""
  zeta = 2 * x ** mp.mpf(1.5) / 3
  if zeta > 1e6: return mp.mpf(1) if part == "f" else mp.mpf(5) / 72
  c, scale = zeta - mp.pi / 4, mp.sqrt(mp.pi) * x ** mp.mpf(0.25)
  a, b = mp.airyai(-x), mp.airybi(-x)
  return scale * (a * mp.cos(c) - b * mp.sin(c)) if part == "f" else scale * (a * mp.sin(c) + b * mp.cos(c)) * zeta

def of_zeta(f: Callable[[Any], Any], least: float, square: bool) -> Callable[[Any], Any]:
  """f as a function of t with (zeta(least) / zeta)**(1 or 2) = (t + 1) / 2."""
  first = 2 * mp.mpf(least) ** mp.mpf(1.5) / 3
  def at(t: Any) -> Any:
    share = max((t + 1) / 2, mp.mpf(10) ** -24)
    zeta = first / (mp.sqrt(share) if square else share)
    return f((mp.mpf(3) * zeta / 2) ** (mp.mpf(2) / 3))
  return at

def airy_right(x: Any) -> Any:
  zeta = 2 * x ** mp.mpf(1.5) / 3
  if zeta > 1e6: return 1 / (2 * mp.sqrt(mp.pi)) * (1 - mp.mpf(5) / (72 * zeta))
  return mp.exp(zeta) * x ** mp.mpf(0.25) * mp.airyai(x)

def right(f: Callable[[Any], Any], limit: Any) -> Callable[[Any], Any]:
  return lambda x: f(x) if x < 1e6 else mp.mpf(limit)

_ROOT = 1 / mp.sqrt(2 * mp.pi)
FITS: dict[str, tuple[str, Callable[[Any], Any]]] = {
  "ERFCX": ("(1 + 2 x) exp(x x) erfc(x), x = 3.75 (1 + t) / (1 - t)",
            lambda t: erfcx(mp.mpf(3.75) * (1 + t) / max(1 - t, _TINY))),
  "ERFINV_NEAR": ("A polynomial of erfinv(x) / x, -log(1 - x x) = 3 (t + 1)", lambda t: erfinv_over(3 * (t + 1))),
  "ERFINV_TAIL": ("A polynomial of erfinv(x) / x, sqrt(-log(1 - x x)) = 3.25 + t",
                  lambda t: erfinv_over((mp.mpf(3.25) + t) ** 2)),
  "I0E_NEAR": ("exp(-x) I0(x), x = 4 (t + 1)", lambda t: mp.exp(-4 * (t + 1)) * mp.besseli(0, 4 * (t + 1))),
  "I0E_FAR": ("sqrt(x) exp(-x) I0(x), 8 / x = (t + 1) / 2", of_inverse(right(
    lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(0, x), _ROOT), 8)),
  "I1E_NEAR": ("exp(-x) I1(x) / x, x = 4 (t + 1)", lambda t: mp.exp(-4 * (t + 1)) * mp.besseli(
    1, max(4 * (t + 1), _TINY)) / max(4 * (t + 1), _TINY)),
  "I1E_FAR": ("sqrt(x) exp(-x) I1(x), 8 / x = (t + 1) / 2", of_inverse(right(
    lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(1, x), _ROOT), 8)),
  "K0_NEAR": ("K0(x) + log(x / 2) I0(x), x x = 4 (t + 1) / 2", of_square(
    lambda x: mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x), 2)),
  "K0_FAR": ("sqrt(x) exp(x) K0(x), 2 / x = (t + 1) / 2", of_inverse(right(
    lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(0, x), mp.sqrt(mp.pi / 2)), 2)),
  "K1_NEAR": ("x (K1(x) - log(x / 2) I1(x)), x x = 4 (t + 1) / 2", of_square(
    lambda x: x * (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x)), 2)),
  "K1_FAR": ("sqrt(x) exp(x) K1(x), 2 / x = (t + 1) / 2", of_inverse(right(
    lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(1, x), mp.sqrt(mp.pi / 2)), 2)),
  "J0_NEAR": ("J0(x), x x = 64 (t + 1) / 2", of_square(lambda x: mp.besselj(0, x), 8)),
  "J1_NEAR": ("J1(x) / x, x x = 64 (t + 1) / 2", of_square(lambda x: mp.besselj(1, x) / x, 8)),
  "Y0_NEAR": ("Y0(x) - 2 / pi log(x) J0(x), x x = 64 (t + 1) / 2", of_square(
    lambda x: mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x), 8)),
  "Y1_NEAR": ("(Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x, x x = 64 (t + 1) / 2", of_square(
    lambda x: (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x if x > 1e-15 else
    (2 / mp.pi) * (-mp.log(2) + mp.euler - mp.mpf(1) / 2) / 2, 8)),
  "P0": ("P of J0, (8 / x)**2 = (t + 1) / 2", of_inverse_square(lambda x: phase(0, x, "p"), 8)),
  "Q0": ("Q x / 8 of J0, (8 / x)**2 = (t + 1) / 2", of_inverse_square(lambda x: phase(0, x, "q"), 8)),
  "P1": ("P of J1, (8 / x)**2 = (t + 1) / 2", of_inverse_square(lambda x: phase(1, x, "p"), 8)),
  "Q1": ("Q x / 8 of J1, (8 / x)**2 = (t + 1) / 2", of_inverse_square(lambda x: phase(1, x, "q"), 8)),
  "AIRY_NEAR": ("Ai(x), x = 4 t - 1", lambda t: mp.airyai(4 * t - 1)),
  "AIRY_RIGHT": ("exp(zeta) x**(1/4) Ai(x), zeta(3) / zeta = (t + 1) / 2", of_zeta(airy_right, 3, False)),
  "AIRY_F": ("F of Ai(-x), (zeta(5) / zeta)**2 = (t + 1) / 2", of_zeta(lambda x: airy_phase(x, "f"), 5, True)),
  "AIRY_G": ("G zeta of Ai(-x), (zeta(5) / zeta)**2 = (t + 1) / 2", of_zeta(lambda x: airy_phase(x, "g"), 5, True)),
}

def text() -> str:
  """The text of tables.py."""
  parts = ['"""Chebyshev coefficients on -1..1. Written by `python3 test/special/make_tables.py`."""']
  for name, (meaning, _) in FITS.items():
    body = textwrap.fill(", ".join(repr(c) for c in table(name)), 116, initial_indent="  ", subsequent_indent="  ")
    parts.append(f"# {meaning}\n{name} = (\n{body})")
  return "\n\n".join(parts) + "\n"

if __name__ == "__main__": TARGET.write_text(text(), encoding="utf-8")
