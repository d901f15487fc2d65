"""The renderers accept all operations in the capabilities of the source devices."""
import pytest
from generators.program_builder import ARITY, Builder, add

from tinyhw.codegen.render import render
from tinyhw.codegen.render.targets import capabilities, compile
from tinyhw.dtype import dtypes
from tinyhw.errors import VerifyError
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.verify.verify import verify

ARCHS = ("c", "metal", "opencl", "opencl:fp64", "opencl:fp64+vectors64", "python")

@pytest.mark.parametrize("arch", ARCHS)
def test_code(arch: str) -> None:
  code = compile(add(), arch)
  assert (code.name, code.arch, code.text.decode()) == ("add_16_1", arch, render(add(), arch.partition(":")[0]))

@pytest.mark.parametrize("arch", ARCHS)
def test_capabilities_are_accepted(arch: str) -> None:
  found = capabilities(arch)
  for op, dtype in sorted(found.operations, key=lambda pair: (pair[0], pair[1].name)):
    for lanes in (1, 4) if (op, dtype) in found.vector_operations else (1,):
      b = Builder("one")
      p = [b.param(k, dtype, 4) for k in range(2)]
      x = b.load(p[1], 0, lanes)
      if op in (Ops.CAST, Ops.BITCAST): u = UOp(op, x.dtype, (x,))
      elif op is Ops.WHERE: u = b.load(b.param(3, dtypes.bool, 4), 0, lanes).where(x, x)
      else: u = x.alu(op, *[x] * ((1 if op in GroupOp.Unary else ARITY.get(op, 2)) - 1))
      b.store(p[0] if u.dtype is x.dtype else b.param(2, dtypes.bool, 4), 0, u)
      program = b.program()
      try: verify(program, 1)
      except VerifyError: continue  # the set has pairs without a meaning, such as IDIV of floats; nothing asks for them
      assert render(program, arch.partition(":")[0])
