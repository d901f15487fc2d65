"""A language is a record: here one is made of C's, with words of its own."""
import inspect

import pytest
from generators.program_builder import workgroups

from tinyhw.codegen import render
from tinyhw.codegen.render.c import C
from tinyhw.codegen.render.dialect import Dialect
from tinyhw.errors import CompileError
from tinyhw.uop.enums import AxisType

MOST_LINES = 150   # of a language: its record, and the functions that it names

@pytest.mark.parametrize("name", ("c", "metal", "opencl", "wgsl", "python", "pseudo"))
def test_a_language_is_one_short_file(name: str) -> None:
  module = getattr(render, name)
  assert len(inspect.getsource(module).splitlines()) <= MOST_LINES
  assert sum(isinstance(value, Dialect) for value in vars(module).values()) == 1

def test_a_language_with_lanes_is_a_record_more() -> None:
  metal = C._replace(name="C with lanes", barrier="meet();", loops={
    AxisType.GLOBAL: "{{ {type} {name} = group();", AxisType.LOCAL: "{{ {type} {name} = lane();"})
  text = metal.render(workgroups())
  assert "{ int32_t i1_1 = group();" in text and "{ int32_t i2_2 = lane();" in text and "      meet();" in text
  with pytest.raises(CompileError, match="workgroups: C has no BARRIER; compile without workgroups and matrix units"):
    C.render(workgroups())
