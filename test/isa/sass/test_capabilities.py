"""The capabilities of each architecture for codegen."""
import pytest

from tinyhw.drivers.nvidia.chips import CHIPS
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.sass.capabilities import capabilities, generation_of
from tinyhw.uop.enums import Ops

def test_what_there_is() -> None:
  for arch in ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"):
    known = capabilities(arch)
    assert known.lanes == 32 and known.copies == (4, 8, 16)
    assert {m.operand for m in known.matrix} == {dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.uint8,
                                                 dtypes.float32}
    assert (known.supports(Ops.FDIV, dtypes.float64) and known.supports(Ops.CAST, dtypes.int64)
            and not known.supports(Ops.IDIV, dtypes.int32))

def test_generations() -> None:
  assert generation_of("sm_86").name == "sm_80"
  for arch in ("sm_120", "sm_70"):
    with pytest.raises(CompileError): generation_of(arch)

def test_shared_memory_is_what_drivers_give_a_block() -> None:
  """Plans without a card equal those with one."""
  assert {chip.arch: chip.local_bytes for chip in CHIPS[2:]} == {chip.arch: capabilities(chip.arch).local_bytes
                                                                 for chip in CHIPS[2:]}
