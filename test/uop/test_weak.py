"""Floats that consist of Variables: types, and arithmetic without an operation of its own."""
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import UnknownValueError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

V = UOp.variable("v", 0, 8)
v, x = V.bind(3), UOp.variable("x", 0, 9, dtypes.float32)

def test_types():
  assert (v / 2).dtype is (1 / v).dtype is (v * 0.5).dtype is (v / 2 + v).dtype is (-(v / 2)).dtype is dtypes.weakfloat
  assert ((v / 2 * x).dtype is dtypes.float32 and (x.cast(dtypes.half) / (v / 2)).dtype is dtypes.half
          and (v / 2 < v).dtype is dtypes.bool)
  assert ((UOp.variable("i", 0, 9, dtypes.int32) * (v / 2)).dtype is dtypes.default_float
          and (UOp.range(4, 0) / 2).dtype is dtypes.default_float)

def test_other_types_are_by_way_of_float64():
  for u in ((v / 3).cast(dtypes.half), v / 3 < 1, UOp.param(0, dtypes.float32, 1).index(0).store(v / 3)):
    assert all(n.dtype is not dtypes.weakfloat for n in u.toposort()) and any(n.dtype is dtypes.float64
                                                                              for n in u.toposort())

def test_values():
  assert (float(v / 7), int(v / 2), float(v ** 0.5), float(v // 0.75),
          float(v % 0.75)) == (3 / 7, 1, 3 ** 0.5, 3 // 0.75, 3 % 0.75)
  assert (2 ** v, v ** v, v ** -1, v ** 20, int(v ** 3), int(abs(v - 5)),
          [int(q) for q in divmod(17, v)]) == (8, 27, 1 / 3, 3 ** 20, 27, 2, [5, 2])
  assert (round(v), round(v / 7, 2), round(v, -1), +v) == (v, round(3 / 7, 2), 0,
                                                           v) and v / 2 > 1.4 and not v / 2 >= 1.6
  assert (v / 4).simplify().src[1].arg == 0.25 and (v / 2).render() == "(v[=3]*0.5)"

def test_powers_of_kernels_and_what_is_no_number():
  assert (x ** 2).op is Ops.MUL and (x ** 9).op is (x ** x).op is (2.0 ** x).op is Ops.POW
  with pytest.raises(UnknownValueError, match="v has no value yet"): 2 ** V
  with pytest.raises(TypeError, match=r"\(v\[=3\]\*0.5\) is a float, not a whole number; use // instead of /, or int"):
    range(v / 2)
