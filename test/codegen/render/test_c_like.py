"""Arithmetic with C's expressions. What C and OpenCL C make of it is in test_c.py and test_opencl.py."""
import pytest
from generators.program_builder import Builder, convert, named

from tinyhw.codegen.render import c, opencl
from tinyhw.codegen.render.c_like import CLike
from tinyhw.codegen.render.source import SourceText
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

def divide(positive: bool) -> Program:
  b = Builder("divide")
  out, x, n = b.param(0, dtypes.int32, 1), b.param(1, dtypes.int32, 1), b.add(UOp.variable("n", 1, 9, dtypes.int32))
  a = b.load(x, 0) & 0xff if positive else b.load(x, 0)
  b.store(out, 0, b.add(UOp(Ops.IDIV, dtypes.int32, (b.add(a), n))))
  return b.program()

def test_divisions_are_guarded_where_their_operands_may_be_negative() -> None:
  """OpenCL C has no function for that: codegen makes the operands positive."""
  assert "idiv_int32(" in c.render(divide(False)) and "idiv_int32(" not in c.render(divide(True))
  assert "(int)(v2 / n1)" in opencl.render(divide(False))

def test_a_function_brings_those_that_it_calls() -> None:
  source = SourceText(convert(dtypes.float64, dtypes.uint64, 1), opencl.OPENCL)
  opencl.WORDS.helper(source, "float64_to_uint64")
  assert [text.split()[1] for text in opencl.WORDS.needed_helpers(source)] == ["HAS_float64_to_int64",
                                                                               "HAS_float64_to_uint64"]
  with pytest.raises(CompileError, match="convert: OpenCL C has no function sine"): opencl.WORDS.helper(source, "sine")

@pytest.mark.parametrize("words", (c.WORDS, opencl.WORDS), ids=lambda words: words.language)
def test_types(words: CLike) -> None:
  assert all(words.type_of_lane(dtype) for dtype in dtypes.all)
  with pytest.raises(CompileError, match=f"{words.language} has no values of"): words.type_of_lane(dtypes.void)

def test_lanes_are_not_reinterpreted_as_another_number_of_lanes() -> None:
  b = Builder("lanes")
  out, x = b.param(0, dtypes.int64, 1), b.param(1, dtypes.int32, 2)
  b.store(out, 0, b.add(UOp(Ops.BITCAST, dtypes.int64, (b.load(x, 0, 2),))))
  with pytest.raises(CompileError, match="lanes: no BITCAST between numbers of lanes"): opencl.render(b.program())

def test_the_same_programs_in_both() -> None:
  assert all(c.render(program) and opencl.render(program) for program in named())
