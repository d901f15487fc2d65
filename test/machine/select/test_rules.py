"""Rows of rules, and the conditions of constants that several ISAs have."""
import pytest

from tinyhw.dtype import DType, dtypes
from tinyhw.machine.select.rules import family, left_shift, parse, power_of_two, right_shift
from tinyhw.uop.enums import Ops

def test_a_row() -> None:
  rules = parse("ADD  int  b:add  add R%d, R%a, #{b}\nADD  float  fadd F%t, F%a, F%b; fneg F%d, F%t")
  assert rules[Ops.ADD, dtypes.int8][0] == ("b:add", "", ("add R%d, R%a, #{b}",))
  (rule,) = parse("DOT4  word  us b:element  usdot v%d:c.T, v%a.H, v%b.4b[{b}]")[Ops.DOT4, dtypes.int32]
  assert (rule.condition, rule.signs) == ("b:element", "us")
  assert rules[Ops.ADD, dtypes.float32][0].lines == ("fadd F%t, F%a, F%b", "fneg F%d, F%t")

@pytest.mark.parametrize("dtype,name", [(dtypes.int8, "sint"), (dtypes.uint64, "uint"), (dtypes.bool, "uint"),
                                        (dtypes.float32.vec(4), "float")])
def test_families(dtype: DType, name: str) -> None: assert family(dtype) == name

def test_conditions() -> None:
  assert [left_shift(n, 32) for n in (-1, 0, 31, 32)] == [None, 0, 31, None]
  assert [right_shift(n, 8) for n in (0, 1, 8, 9)] == [None, 1, 8, None]
  assert [power_of_two(n, 64) for n in (-8, 0, 1, 8, 12)] == [None, None, 0, 3, None]
