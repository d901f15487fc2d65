"""What codegen may ask of AArch64."""
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.arm64.capabilities import capabilities
from tinyhw.isa.arm64.select.rules import LEVELS
from tinyhw.uop.enums import Ops

@pytest.mark.parametrize("arch", LEVELS)
def test_vectors_of_16_bytes(arch: str) -> None:
  known = capabilities(arch)
  assert known.supports(Ops.MULACC, dtypes.float32.vec(4)) and not known.supports(Ops.MULACC, dtypes.float32.vec(8))
  assert not known.supports(Ops.MUL, dtypes.int64.vec(2)) and known.supports(Ops.MUL, dtypes.int64)
  assert known.masked_bytes == () and not known.gathers and not known.wide_casts

def test_levels_that_there_are_not() -> None:
  with pytest.raises(CompileError, match="arm64:sme is no level of arm64"): capabilities("arm64:sme")

def test_levels_add_operations() -> None:
  """Each level has those of the one before."""
  known = [capabilities(arch).vector_operations for arch in LEVELS]
  assert all(lower <= higher for lower, higher in zip(known, known[1:]))
  assert all((Ops.DOT4, dtypes.int32) in found for found in known)
  assert [(Ops.DOT2, dtypes.float32) in found for found in known] == [False, False, True, True]
