"""What arguments have to be."""
import math

import numpy as np
import pytest

from tinyhw import UOp, dtypes
from tinyhw.errors import ArgumentError
from tinyhw.methods import checks

def test_numbers_of_other_libraries_are_numbers():
  assert checks.whole("n", np.int64(3)) == 3 and type(checks.whole("n", np.int64(3))) is int
  assert type(checks.real("x", np.float32(2.5))) is float and type(checks.real("x", np.uint8(2))) is int
  assert checks.wholes("n", (np.int8(1), 2)) == (1, 2) and checks.wholes("n", 5) == (5,) and checks.wholes("n", range(2)) == (0, 1)
  n = UOp.variable("n", 1, 3)
  assert checks.sizes("n", [1, np.int64(2), n]) == (1, 2, n)

def test_numbers_of_others_become_plain():
  assert checks.plain(np.float64(2.5)) == 2.5 and type(checks.plain(np.float64(2.5))) is float and type(checks.plain(np.uint8(3))) is int
  array = np.ones(2)
  assert checks.plain(array) is array and checks.plain(True) is True and checks.plain("x") == "x"

@pytest.mark.parametrize("f, text", [
  (lambda: checks.whole("n", 2.5), "n is a whole number, not 2.5"), (lambda: checks.whole("n", "3"), "not '3'"),
  (lambda: checks.whole("n", -1, 0), "n is -1; it must be at least 0"), (lambda: checks.real("x", "3"), "x is a number"),
  (lambda: checks.real("x", 1j), "x is a number"), (lambda: checks.finite("x", math.inf), "finite"),
  (lambda: checks.sizes("n", [1, None]), "not None"),
  (lambda: checks.size("n", UOp.const(dtypes.float32, 1.0)), "Variable"), (lambda: checks.wholes("n", [1, "a"]), "not 'a'"),
  (lambda: checks.function("f", 3), "f is a function")])
def test_refusals(f, text):
  with pytest.raises(ArgumentError, match=text): f()
