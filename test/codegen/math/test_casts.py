"""Conversions of all pairs of types, for corners of the source type; narrow floats for every code."""
import itertools
import math
import random
from dataclasses import replace

import pytest

from test.codegen.kernels import ALL_TARGETS, AVX2, POOR, axis, check, data_for, wild
from tinyhw.arithmetic import CODED
from tinyhw.codegen.math.casts import lanewise
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def convert(source: DType, target: DType, lanes: int, n: int) -> UOp:
  r, v = axis(n // lanes, 0), axis(lanes, 1, "VECTOR")
  i = r * lanes + v
  value = UOp(Ops.CAST, target, (UOp.param(1, source, n).index(i).load(),))
  return UOp.sink(UOp.param(0, target, n).index(i).store(value, r, v))

@pytest.mark.slow
@pytest.mark.parametrize("lanes", (1, 8))
@pytest.mark.parametrize("target", ALL_TARGETS)
def test_all_pairs(target: str, lanes: int) -> None:
  for source, result in itertools.permutations(dtypes.all, 2):
    kernel = convert(source, result, lanes, 32)
    check(kernel, ALL_TARGETS[target], data=data_for(kernel, 2, wild))

@pytest.mark.parametrize("flushes", (False, True))
@pytest.mark.parametrize("dtype", dtypes.fp8s)
def test_every_code_of_eight_bits(dtype: DType, flushes: bool) -> None:
  """On a target without subnormal numbers of float32 none is made: test_types.py shows that on the virtual Metal."""
  codes = [CODED[dtype][0](k) for k in range(256)]
  check(convert(dtype, dtypes.float32, 8, 256), replace(AVX2, flushes=flushes), data={0: [0.0] * 256, 1: codes})

@pytest.mark.parametrize("source", (dtypes.float32, dtypes.float64))
@pytest.mark.parametrize("dtype", (*dtypes.fp8s, dtypes.bfloat16, dtypes.float16))
def test_rounding_to_narrow_floats(dtype: DType, source: DType) -> None:
  """Ties and values one step next to them (of a float64: a step that float32 does not resolve). Subnormal numbers, the
  largest number, and larger ones."""
  step = 2.0 ** (-22 if source is dtypes.float32 else -45)
  rng = random.Random(3)
  decode = CODED[dtype][0]
  bits = dtype.bitsize
  values = []
  for code in (rng.sample(range(1 << (bits - 1)), 60) if bits > 8 else range(127)):
    a, b = decode(code), decode(code + 1)
    if a != a or b != b or b == float("inf"): continue
    middle = (a + b) / 2
    values += [a, middle, middle * (1 + step), middle * (1 - step), -middle]
  values = (values + [1e30, -1e30, 0.0, -0.0, 1e-30] + ([1e300, -1e300, 1e-300, math.nan, -math.inf]
                                                        if source is dtypes.float64 else []))
  values += [1.0] * (-len(values) % 8)
  for target in (POOR, AVX2):
    check(convert(source, dtype, 8, len(values)), target, data={0: [0.0] * len(values), 1: values})

def test_pairs_that_no_vector_unit_has() -> None:
  assert (lanewise(dtypes.int64, dtypes.float32) and lanewise(dtypes.float64, dtypes.uint32)
          and not lanewise(dtypes.int32, dtypes.float64))

def test_a_target_without_conversions_is_told_so() -> None:
  with pytest.raises(CompileError, match="does not convert .*int32 to .*float32"):
    lower(convert(dtypes.int32, dtypes.float32, 1, 8), Capabilities(0, 0), "x")

def test_lanes_that_are_threads_convert_one_by_one_what_they_can() -> None:
  """Vectors that are built to be stored are converted by scalar conversions, not by operations on their codes."""
  operations = frozenset({(Ops.CAST, dtypes.float16), (Ops.ADD, dtypes.int32), (Ops.MUL, dtypes.int32)})
  target = Capabilities(16, 64, operations=operations, lanes=32)
  uops = lower(convert(dtypes.float32, dtypes.float16, 8, 64), target, "k").uops
  casts = [u for u in uops if u.op is Ops.CAST and u.dtype is dtypes.float16]
  assert len(casts) == 8 and not any(u.op is Ops.SHR for u in uops)
