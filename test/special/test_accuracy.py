"""Special functions in float32: within 4 ULP of mpmath, near zeros within 4 ULP of the function's amplitude."""
from __future__ import annotations
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as torch

mp = pytest.importorskip("mpmath")

Case = tuple[str, float, float, Callable[[Any], Any], float]   # name, least, most, the function, its amplitude near #
                                                              #zeros
CASES: list[Case] = [
  ("lgamma", 0.01, 80.0, lambda x: mp.loggamma(x), 0.0), ("lgamma", -5.9, -0.01, lambda x: mp.log(abs(mp.gamma(x))),
                                                          1.0),
  ("digamma", 0.01, 80.0, mp.digamma, 0.5), ("special.erfcx", -5.0, 40.0, lambda x: mp.exp(x * x) * mp.erfc(x), 0.0),
  ("special.erfc", -3.0, 9.0, mp.erfc, 0.0), ("special.erfinv", -0.9999, 0.9999, mp.erfinv, 0.0),
  ("special.ndtr", -12.0, 6.0, mp.ncdf, 0.0), ("special.ndtri", 1e-6, 0.9999,
                                               lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), 0.0),
  ("special.log_ndtr", -30.0, 4.0, lambda x: mp.log(mp.ncdf(x)), 0.0),
  ("special.i0", -30.0, 30.0, lambda x: mp.besseli(0, x), 0.0), ("special.i1", -30.0, 30.0, lambda x: mp.besseli(1, x),
                                                                 0.0),
  ("special.i0e", -90.0, 90.0, lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), 0.0),
  ("special.i1e", -90.0, 90.0, lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), 0.0),
  ("special.bessel_j0", -60.0, 60.0, lambda x: mp.besselj(0, x), 0.1),
  ("special.bessel_j1", -60.0, 60.0, lambda x: mp.besselj(1, x), 0.1),
  ("special.bessel_y0", 0.01, 60.0, lambda x: mp.bessely(0, x), 0.1),
  ("special.bessel_y1", 0.01, 60.0, lambda x: mp.bessely(1, x), 0.1),
  ("special.modified_bessel_k0", 0.01, 40.0, lambda x: mp.besselk(0, x), 0.0),
  ("special.modified_bessel_k1", 0.01, 40.0, lambda x: mp.besselk(1, x), 0.0),
  ("special.airy_ai", -25.0, 8.0, mp.airyai, 0.2),
]

@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_within_four_ulp(case: Case) -> None:
  name, least, most, exact, amplitude = case
  xs = np.random.default_rng(3).uniform(least, most, 120).astype(np.float32)
  function: Any = torch
  for part in name.split("."): function = getattr(function, part)
  for x, y in zip(xs, function(torch.tensor(xs)).tolist()):
    wanted = exact(mp.mpf(float(x)))
    ulp = float(np.spacing(np.float32(max(abs(float(wanted)), amplitude))))
    miss = float(abs(mp.mpf(y) - wanted)) / ulp
    assert miss <= 4, f"{name}({x}) is {y}, not {float(wanted)}: {miss} ULP"

def test_zeta_and_incomplete_gammas() -> None:
  draw = np.random.default_rng(4)
  s, q = draw.uniform(1.1, 9, 40).astype(np.float32), draw.uniform(0.1, 30, 40).astype(np.float32)
  for a, b, y in zip(s, q, torch.special.zeta(torch.tensor(s), torch.tensor(q)).tolist()):
    assert math.isclose(y, mp.zeta(float(a), float(b)), rel_tol=4 * 2.0 ** -24)
  for a, b, y in zip(s, q, torch.igamma(torch.tensor(s), torch.tensor(q)).tolist()):
    assert math.isclose(y, mp.gammainc(float(a), 0, float(b), regularized=True), rel_tol=4 * 2.0 ** -24)
