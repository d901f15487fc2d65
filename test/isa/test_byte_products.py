"""Sums of four products of bytes (DOT4) on each GPU: the results of the exact code, and its instructions."""
from __future__ import annotations
import itertools
import random

import pytest

from test.isa.gpus import GPUS, lowered
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.target import compile as compile_amd
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

I32, U32 = dtypes.int32, dtypes.uint32
CORNERS = (0x80, 0xff, 0x7f, 0x00, 0x01, 0x81)   # -128 or 128, -1 or 255, 127, ...
WORDS = 96

def words(dtype: DType, seed: int) -> list[int]:
  """Return words of the corners, then random ones."""
  rng = random.Random(seed)
  data = bytes([rng.choice(CORNERS) for _ in range(2 * WORDS)]) + rng.randbytes(2 * WORDS)
  return [int.from_bytes(data[4 * k:4 * k + 4], "little", signed=dtype is I32) for k in range(WORDS)]

def dot(a: DType, b: DType, masks: tuple[int | None, int | None] = (None, None), kind: AxisType = AxisType.LOCAL,
        constant: int | None = None) -> UOp:
  """Return the kernel of out[i] = dot4(a[i] & mask, b[i] & mask) + c[i]. constant: b, instead of memory."""
  r = UOp.range(WORDS, 0, kind)
  x, y, z = (UOp.param(k, dtype, WORDS).index(r).load() for k, dtype in ((1, a), (2, b), (3, I32)))
  x, y = (u if mask is None else u.alu(Ops.AND, UOp.const(u.dtype, mask)) for u, mask in zip((x, y), masks))
  if constant is not None: y = UOp.const(b, constant)
  return UOp.sink(UOp.param(0, I32, WORDS).index(r).store(UOp(Ops.DOT4, I32, (x, y, z)), r))

def check(kernel: UOp, arch: str, a: DType, b: DType) -> None:
  data = {0: [0] * WORDS, 1: words(a, 1), 2: words(b, 2), 3: words(I32, 3)}
  GPUS[arch].check(kernel, arch, data=data, optimized=False)

@pytest.mark.parametrize("arch", GPUS)
@pytest.mark.parametrize("a, b", list(itertools.product((I32, U32), (I32, U32))), ids=str)
def test_all_bytes(a: DType, b: DType, arch: str) -> None:
  for kind in (AxisType.LOCAL, AxisType.GLOBAL): check(dot(a, b, kind=kind), arch, a, b)

@pytest.mark.parametrize("arch", GPUS)
def test_bytes_that_are_small(arch: str) -> None:
  """CDNA has no products of unsigned by signed bytes; those below 128 are both."""
  for a, b, masks in ((U32, I32, (0x0f0f0f0f, None)), (I32, U32, (None, 0x7f7f7f7f)), (U32, I32, (0x8f8f8f8f, None))):
    check(dot(a, b, masks), arch, a, b)

@pytest.mark.parametrize("arch", GPUS)
@pytest.mark.parametrize("constant", (0, 0x01010101, 0x80ff7f01))
def test_constant_bytes(constant: int, arch: str) -> None: check(dot(I32, U32, constant=constant), arch, I32, U32)

def test_one_instruction_where_the_processor_has_it() -> None:
  """A mixed product of CDNA takes two, and one more for the sign bits."""
  def lines(arch: str, a: DType, b: DType, mask: int | None = None) -> int:
    program = lowered(dot(a, b, (mask, None)), arch)
    return len(compile_amd(program, arch).text)
  assert lines("gfx942", U32, I32) > lines("gfx942", U32, I32, 0x7f7f7f7f) >= lines("gfx942", I32, I32)
  assert lines("gfx1100", U32, I32) == lines("gfx1100", I32, I32)
