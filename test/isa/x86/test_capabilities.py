"""The capabilities of each level are consistent. The selector's tests execute every one (test_select_scalar, _vector
and _cast)."""
from tinyhw.dtype import dtypes
from tinyhw.isa.x86.capabilities import LEVELS, capabilities
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.target import target
from tinyhw.uop.enums import GroupOp, Ops

def test_levels_grow() -> None:
  avx2, avx512 = (capabilities(arch) for arch in ("x86_64:avx2", "x86_64:avx512"))
  assert avx2.operations == avx512.operations and avx2.vector_operations < avx512.vector_operations
  assert (avx2.vector_bytes, avx2.vector_registers) == (32, 16) and (avx512.vector_bytes,
                                                                     avx512.vector_registers) == (64, 32)

def test_claims_are_of_operations_that_types_have() -> None:
  for arch in LEVELS:
    known = capabilities(arch)
    for op, dtype in known.operations | known.vector_operations:
      assert op in GroupOp.Elementwise and dtype.count == 1
      assert op not in GroupOp.Transcendental - {Ops.SQRT} and op is not Ops.THREEFRY, "those are decomposed"
      if op in (Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR): assert dtypes.is_int(dtype)
      if op in (Ops.FDIV, Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL): assert dtypes.is_float(dtype)
    assert not any(op in (Ops.IDIV, Ops.MOD) for op, _ in known.vector_operations), ("no vector instruction divides "
                                                                                     "integers")

def test_what_every_kernel_needs_is_there() -> None:
  """Indices are int32 and int64; conditions are bool; data of any type are moved and chosen."""
  for arch in LEVELS:
    known = capabilities(arch)
    for dtype in dtypes.int32s + dtypes.int64s:
      assert all(known.supports(op, dtype) for op in (Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.CMPLT))
    assert all(known.supports(op, dtypes.bool) for op in (Ops.AND, Ops.OR, Ops.XOR, Ops.CMPNE))
    assert all(known.supports(Ops.WHERE, dtype) for dtype in dtypes.all)
    assert all(known.supports(Ops.WHERE, dtype.vec(known.vector_bytes // dtype.itemsize)) for dtype in dtypes.all)

def test_the_target_may_allocate_what_is_claimed() -> None:
  for arch in LEVELS:
    assert target(arch).allocatable[regs.VEC.name] == tuple(range(capabilities(arch).vector_registers))
