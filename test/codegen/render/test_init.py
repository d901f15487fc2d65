"""Code from source, for the devices that take it."""
import pytest
from generators.program_builder import add, pad

from tinyhw.codegen.render import compile_source, render
from tinyhw.errors import CompileError

def test_compile_source() -> None:
  code = compile_source(add(), "c")
  assert (code.name, code.arch, code.arguments, code.local_bytes) == ("add_16_1", "c", ("buffer",) * 3, 0)
  assert code.text.decode() == render(add(), "c")

def test_unknown_language() -> None:
  with pytest.raises(CompileError, match="no renderer for fortran; there are c, metal, opencl, python, pseudo"):
    render(pad(), "fortran")
