"""Whole kernels through selection, allocation, waits and hazards to bytes that decode again, for each generation."""
import pytest

from test.codegen.kernels import axis
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.codegen.program import Program
from tinyhw.dtype import dtypes
from tinyhw.isa.amd.decode import decode
from tinyhw.isa.amd.target import assemble, capabilities, compile
from tinyhw.uop.ops import UOp

ARCHS = ("gfx1100", "gfx1100:wave64", "gfx1200", "gfx942", "gfx950")

def elementwise(arch: str, n: int = 1000) -> Program:
  out, a, b = [UOp.param(k, dtypes.float32, n) for k in range(3)]
  r = axis(n, 0)
  kernel = UOp.sink(out.index(r).store(a.index(r).load() * b.index(r).load() + a.index(r).load(), r))
  return lower(optimize(kernel, capabilities(arch)), capabilities(arch), "E")

@pytest.mark.parametrize("arch", ARCHS)
def test_what_is_encoded_decodes(arch: str) -> None:
  function, text, placed = assemble(elementwise(arch), arch)
  for offset, inst in placed:
    found, size = decode(text, offset, arch)
    assert found.row.name == inst.row.name, f"{inst} at {offset} is read as {found}"
  assert placed[-1][1].row.name == "s_endpgm"
  assert len(text) >= placed[-1][0] + 256, "the fetch of instructions runs on behind the end"

@pytest.mark.parametrize("arch", ARCHS)
def test_code_says_what_a_launch_needs(arch: str) -> None:
  code = compile(elementwise(arch), arch)
  assert code.lanes in (125, 250) and code.arguments == ("buffer",) * 3
  counts = dict(code.registers)
  assert 0 < counts["vgpr"] <= 24 and 0 < counts["sgpr"] <= 106
