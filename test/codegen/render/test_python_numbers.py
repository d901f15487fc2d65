"""Expressions of Python for one lane: when they round, wrap and are guarded. Their values are tested in test_python.py.
"""
import pytest
from generators.program_builder import i32

from tinyhw.codegen.render.python_numbers import exact_bounds, expression, literal, needs_rounding, wrap
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def between(low: int, high: int) -> UOp: return UOp.variable("x", low, high, i32)

def test_integers_wrap_unless_their_bounds_exclude_it() -> None:
  small, large = between(0, 1000), between(-2**31, 2**31 - 1)
  assert not needs_rounding(UOp(Ops.MUL, i32, (small, small))) and needs_rounding(UOp(Ops.ADD, i32, (large, large)))
  assert exact_bounds(UOp(Ops.SUB, i32, (small, small))) == (-1000, 1000)
  assert wrap("x", dtypes.uint8) == "(x) & 0xff" and wrap("x", dtypes.int8) == "((x) + 0x80 & 0xff) - 0x80"
  assert wrap("x", dtypes.weakint) == "x"

def test_floats_round_where_the_result_is_not_exact() -> None:
  x, wide = UOp.param(0, dtypes.float32, 1).index(0).load(), UOp.param(1, dtypes.float64, 1).index(0).load()
  assert needs_rounding(x * x) and not needs_rounding(UOp(Ops.NEG, x.dtype, (x,))) and not needs_rounding(wide * wide)

def test_divisors_and_amounts_are_guarded() -> None:
  x = between(-9, 9)
  assert expression(UOp(Ops.IDIV, i32, (x, x)), ["a", "b"]) == "(a // b if b else 0)"
  assert expression(UOp(Ops.IDIV, i32, (x, between(1, 9))), ["a", "b"]) == "a // b"
  assert expression(UOp(Ops.SHL, i32, (x, x)), ["a", "b"]) == "(a << b if 0 <= b <= 31 else 0)"

def test_literals() -> None:
  texts = [(float("nan"), "math.nan"), (float("-inf"), "(-math.inf)"), (-0.5, "(-0.5)"), (0.1, "0.10000000149011612")]
  for value, text in texts: assert literal(UOp.const(dtypes.float32, value)) == text

def test_what_python_has_not() -> None:
  with pytest.raises(CompileError, match="device PYTHON has no DOT4 of"):
    expression(UOp(Ops.DOT4, i32, (between(0, 1),) * 3), ["a", "b", "c"])
