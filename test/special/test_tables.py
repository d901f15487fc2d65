"""special/tables.py: its coefficients give the functions, and are those that the command makes."""
from __future__ import annotations
import math
import sys
from pathlib import Path

import pytest

from tinyhw.special import tables

def _sum(coefficients: tuple[float, ...], t: float) -> float:
  return math.fsum(c * math.cos(k * math.acos(t)) for k, c in enumerate(coefficients))

def test_values() -> None:
  assert _sum(tables.J0_NEAR, 2 * 4 / 64 - 1) == pytest.approx(0.22389077914123567, rel=1e-15)     # J0(2)
  assert _sum(tables.I0E_NEAR, -1) == pytest.approx(1, rel=1e-15)

def test_they_are_what_the_command_makes() -> None:
  pytest.importorskip("mpmath")
  sys.path.insert(0, str(Path(__file__).parent))
  from make_tables import table
  for name in ("ERFCX", "ERFINV_NEAR", "K0_FAR", "AIRY_F"): assert tuple(table(name)) == getattr(tables, name)
