"""What codegen may ask of RISC-V."""
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.riscv64.capabilities import capabilities
from tinyhw.isa.riscv64.select.rules import LEVELS
from tinyhw.uop.enums import Ops

@pytest.mark.parametrize("arch", LEVELS)
def test_scalars(arch: str) -> None:
  known = capabilities(arch)
  assert known.supports(Ops.MULACC, dtypes.float64) and known.supports(Ops.CMPLT, dtypes.uint32)
  assert not known.supports(Ops.TRUNC, dtypes.float32)
  assert known.supports(Ops.CAST, dtypes.float16) == (arch != "riscv64:g")

@pytest.mark.parametrize("arch,size", [("riscv64:g", 0), ("riscv64:rva22", 0), ("riscv64:v128", 16),
                                       ("riscv64:v256", 32)])
def test_vectors(arch: str, size: int) -> None:
  known = capabilities(arch)
  assert known.vector_bytes == size and known.supports(Ops.MULACC, dtypes.float32.vec(4)) == (size > 0)
  assert known.supports(Ops.MUL, dtypes.int64.vec(4)) == (size == 32)

def test_levels_that_there_are_not() -> None:
  with pytest.raises(CompileError, match="riscv64:c is no level of riscv64"): capabilities("riscv64:c")

def test_levels_add_operations() -> None:
  known = [capabilities(arch).operations for arch in LEVELS]
  assert all(lower <= higher for lower, higher in zip(known, known[1:]))
