"""What codegen may ask for, by architecture."""
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.sass.capabilities import capabilities, generation_of
from tinyhw.uop.enums import Ops

def test_what_there_is() -> None:
  for arch in ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"):
    known = capabilities(arch)
    assert known.lanes == 32 and known.local_bytes == 48 << 10 and {m.operand for m in known.matrix} == {dtypes.float16, dtypes.bfloat16}
    assert known.supports(Ops.FDIV, dtypes.float64) and known.supports(Ops.CAST, dtypes.int64) and not known.supports(Ops.IDIV, dtypes.int32)

def test_generations() -> None:
  assert generation_of("sm_86").name == "sm_80"
  for arch in ("sm_120", "sm_70"):
    with pytest.raises(CompileError): generation_of(arch)
