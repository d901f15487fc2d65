"""The capabilities of AMD GPUs for codegen."""
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.amd.capabilities import capabilities, generation_of
from tinyhw.uop.enums import Ops

def test_lanes_are_those_of_a_wave() -> None:
  assert [capabilities(a).lanes for a in ("gfx1100", "gfx1200", "gfx1100:wave64", "gfx942")] == [32, 32, 64, 64]

def test_there_is_no_divider_and_no_conversion_of_64_bit_integers() -> None:
  caps = capabilities("gfx1100")
  assert not any(caps.supports(Ops.IDIV, d) or caps.supports(Ops.MOD, d) for d in dtypes.ints)
  assert caps.supports(Ops.CAST, dtypes.uint32) and not caps.supports(Ops.CAST, dtypes.int64)

@pytest.mark.parametrize("arch", ("x86_64:avx2", "amd", "gfx803", "gfx942:wave32"))
def test_other_architectures_are_refused(arch: str) -> None:
  with pytest.raises(CompileError, match="gfx1100"): generation_of(arch)
