"""Truth values are computed as far as they are known; names of the notation stand for operands of uniform
instructions, too."""
import pytest

from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.semantics.terms import (
  both, chosen, different, either, float_comparison, is_nothing, term, truth)
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.isa.sass.asm.syntax import parse

def operands(line: str) -> Operands: return Operands(parse(line, "sm_90")[0])

def test_truth_values() -> None:
  for a in ("True", "False"):
    for b in ("True", "False", "x"):
      for x in (True, False):
        values = {"x": x}
        assert eval(either(a, b), values) == (eval(a) or eval(b, values))
        assert eval(both(a, b), values) == (eval(a) and eval(b, values))
        assert eval(different(b, a), values) == (eval(a) != eval(b, values))
        assert eval(chosen(b, "1", "2"), values) == (1 if eval(b, values) else 2)

def test_operands() -> None:
  o = operands("ISETP.LT.AND P0, PT, R1, RZ, !P3")
  assert truth(o, "PP") == "(not PP.bool)" and is_nothing(o, "PV") and is_nothing(o, "B") and not is_nothing(o, "PU")
  uniform = operands("UIADD3 UR6, UP1, UR4, -UR5, URZ")
  assert (uniform.named("A"), uniform.named("PU"), uniform.named("PP")) == ("ua", "qu", "")
  assert term(uniform, "B") == "(-B.u32)" and term(uniform, "A") == "A.u32" and is_nothing(uniform, "C")

def test_comparisons_of_floats_with_nan() -> None:
  nan = float("nan")
  for word, found in (("LT", False), ("LTU", True), ("NE", False), ("NEU", True), ("NUM", False), ("NAN", True)):
    assert eval(float_comparison(word, "a", "b"), {"a": nan, "b": 1.0}) is found
  with pytest.raises(UnknownInstruction, match="comparison MIN"): float_comparison("MIN", "a", "b")
