"""Conversions between all types, on corner cases, and reinterpretations of bits."""
import itertools
import math

import pytest

from test.codegen.kernels import data_for, wild
from test.isa.amd.select.test_cast import converted
from test.isa.sass.machine import ARCHS, check
from tinyhw.arithmetic import round_float32
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes, fp8_to_float
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.target import assemble
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_all_pairs(arch: str) -> None:
  for source, target in itertools.permutations(dtypes.all, 2):
    kernel = converted(Ops.CAST, source, target, AxisType.LOCAL, 64)
    check(kernel, arch, data=data_for(kernel, 2, wild), optimized=False, what=f"{source} to {target}")

@pytest.mark.parametrize("dtype, largest", [(dtypes.fp8e4m3, 448.0), (dtypes.fp8e5m2, 57344.0)], ids=("e4m3", "e5m2"))
def test_floats_of_a_byte(dtype: DType, largest: float) -> None:
  """Instructions convert two at once. Operands are all codes, numbers between them, and too large ones, which become
  NaN or an infinity."""
  def names(kernel: UOp) -> set[str]:
    return {inst.row.name for _, inst, _ in assemble(lower(kernel, capabilities("sm_89"), "cast"), "sm_89")[2]}
  for target in (dtypes.float32, dtypes.float16):
    kernel = converted(Ops.CAST, dtype, target, AxisType.LOCAL, 256)
    data = {0: [0.0] * 256, 1: [fp8_to_float(code, dtype) for code in range(256)]}
    assert "F2FP.UNPACK" in names(kernel)
    check(kernel, "sm_89", data=data, optimized=False)
  steps = [sign * largest * factor for sign in (1, -1) for factor in (1, 1.0357, 1.0358, 1.07143, 1.0714286, 1.2,
                                                                      math.inf, 2.0 ** -40, math.nan)]
  steps += [sign * base * (1 + k / 32) for sign in (1, -1) for base in (2.0 ** -17, 2.0 ** -9, 2.0 ** -7, 1.0, 8.0)
            for k in range(23)]
  kernel = converted(Ops.CAST, dtypes.float32, dtype, AxisType.LOCAL, 248)
  assert names(kernel) >= {"F2FP.PACK8", "FSETP"} and len(steps) == 248
  check(kernel, "sm_89", data={0: [0.0] * 248, 1: [round_float32(x) for x in steps]}, optimized=False)

@pytest.mark.parametrize("order", ((0, 1), (2, 3), (3, 0), (1, 2), (0, 0)))
@pytest.mark.parametrize("dtype", dtypes.fp8_ocp, ids=str)
def test_neighbours_become_halves_together(dtype: DType, order: tuple[int, int]) -> None:
  """One instruction converts two fp8 in a word to a word of float16. Others are first brought together."""
  r, halves = UOp.range(64, 0, AxisType.LOCAL), dtypes.float16.vec(2)
  loaded = UOp(Ops.LOAD, dtype.vec(4), (UOp.param(1, dtype, 256).index(r * 4),))
  pair = [UOp(Ops.GEP, dtype, (loaded,), k).cast(dtypes.float32).cast(dtypes.float16) for k in order]
  out = UOp.param(0, dtypes.float16, 128).index(r * 2)
  kernel = UOp.sink(UOp(Ops.STORE, dtypes.void, (out, UOp(Ops.VECTORIZE, halves, tuple(pair)), r)))
  names = [inst.row.name for _, inst, _ in assemble(lower(kernel, capabilities("sm_90"), "cast"), "sm_90")[2]]
  assert (names.count("F2FP.UNPACK") == 1 and "HADD2.F32" not in names
          and names.count("PRMT") == (order not in ((0, 1), (2, 3))))
  check(kernel, "sm_90", optimized=False)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_bits(arch: str) -> None:
  pairs = [(a, b) for a, b in itertools.permutations(dtypes.all, 2) if a.itemsize == b.itemsize
           and dtypes.bool not in (a, b)]
  for source, target in pairs:
    if dtypes.is_float(source) and source.itemsize < 4: continue  # only the NaN-ness of a NaN is kept
    kernel = converted(Ops.BITCAST, source, target, AxisType.LOCAL, 20)
    check(kernel, arch, data=data_for(kernel, 4, wild), optimized=False, what=f"bits of {source} as {target}")
