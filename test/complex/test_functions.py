"""complex/functions.py: against Python's cmath, on all sides of the branch cuts."""
from __future__ import annotations
import cmath
from collections.abc import Callable
import math

import pytest

from tinyhw import Tensor
from tinyhw.complex import functions
from tinyhw.complex.arithmetic import Planes

POINTS = [complex(a, b) for a in (-3.0, -1.0, -0.4, 0.3, 1.5) for b in (-2.0, -0.5, 0.25, 1.25)] + [
  complex(2, 0.0), complex(-2, 0.0), complex(0.0, 3), complex(0.0, -3), complex(1e-4, 1e-5)]
MEANINGS: dict[str, Callable[[complex], complex]] = {
  **{name: getattr(cmath, name)
     for name in "sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh log10".split()},
  "exp2": lambda z: 2 ** z, "log2": lambda z: cmath.log(z) / cmath.log(2), "rsqrt": lambda z: 1 / cmath.sqrt(z),
  "log1p": lambda z: cmath.log(1 + z), "expm1": lambda z: cmath.exp(z) - 1,
  "sigmoid": lambda z: 1 / (1 + cmath.exp(-z))}

@pytest.mark.parametrize("name", MEANINGS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 2e-6)])
def test_values(name: str, dtype: str, tolerance: float) -> None:
  x = Planes(Tensor([z.real for z in POINTS], dtype=dtype), Tensor([z.imag for z in POINTS], dtype=dtype))
  found = getattr(functions, name)(x)
  assert found.real.dtype is x.real.dtype
  for z, a, b in zip(POINTS, found.real.tolist(), found.imag.tolist()):
    expected = MEANINGS[name](z)
    assert abs(complex(a, b) - expected) <= tolerance * max(1.0, abs(expected)), (name, z, complex(a, b), expected)

def test_small_and_large_arguments() -> None:
  tiny = Planes(Tensor([1e-10]), Tensor([1e-12]))
  assert functions.log1p(tiny).real.item() == pytest.approx(1e-10, rel=1e-6)
  assert functions.expm1(tiny).real.item() == pytest.approx(1e-10, rel=1e-6)
  far = functions.tanh(Planes(Tensor([-400.0, 400.0]), Tensor([1.0, 1.0])))
  assert far.real.tolist() == [-1.0, 1.0]
  assert far.imag.tolist() == [0.0, 0.0]
  assert functions.moved(tiny, 2).real.tolist() == [2.0]

def test_no_cancellation_beyond_a_branch_point() -> None:
  found = functions.asin(Planes(Tensor([1e8, -1e8]), Tensor([0.0, 0.0])))
  assert found.real.tolist() == pytest.approx([math.pi / 2, -math.pi / 2], rel=1e-6)
  assert [abs(x) for x in found.imag.tolist()] == pytest.approx([19.113828] * 2, rel=1e-6)
