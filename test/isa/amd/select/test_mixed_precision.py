"""Arithmetic of float16: its instructions, and results with the bits of rounded float32, compared with the
interpreter's."""
from __future__ import annotations
import random
from typing import Any

import pytest

from test.codegen.kernels import axis, data_for
from test.isa.amd.machine import ARCHS, check
from tinyhw.arithmetic import from_bytes
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.capabilities import capabilities
from tinyhw.isa.amd.target import assemble
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

LANES, COPIES = 32, 8
CORNERS = (0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3bff, 0x7bff, 0xfbff, 0x7c00,
           0xfc00, 0x7e00, 0x1400, 0x0801)
BINARY, ROUNDED = (Ops.ADD, Ops.SUB, Ops.MUL), dtypes.float16

def code(dtype: DType, rng: random.Random) -> Any:
  """The bits of a float16: a corner value, a subnormal number, or any."""
  word = rng.choice((rng.choice(CORNERS), rng.getrandbits(16), rng.getrandbits(10) | rng.getrandbits(1) << 15))
  return from_bytes(word.to_bytes(2, "little"), dtypes.float16) if dtype is dtypes.float16 else rng.uniform(-4, 4)

def elements(copies: int = COPIES) -> tuple[UOp, UOp, UOp, tuple[UOp, ...]]:
  """Adjacent elements of three buffers in a lane, and the ranges."""
  lane, k = axis(LANES, 0, "LOCAL"), axis(copies, 1, "UPCAST")
  def load(slot: int, at: UOp) -> UOp:
    return UOp.param(slot, dtypes.float16, LANES * copies).index(lane * copies + at).load()
  return load(1, k), load(2, k), load(3, k * -1 + (copies - 1)), (lane, k)

def kernel(value: UOp, ranges: tuple[UOp, ...], copies: int = COPIES) -> UOp:
  lane, k = ranges
  return UOp.sink(UOp.param(0, value.dtype, LANES * copies).index(lane * copies + k).store(value, lane, k))

def wide(x: UOp) -> UOp: return UOp(Ops.CAST, dtypes.float32, (x,))
def rounded(x: UOp) -> UOp: return UOp(Ops.CAST, dtypes.float16, (x,))

def made(sink: UOp, arch: str) -> list[str]:
  return [inst.row.name for block in assemble(lower(sink, capabilities(arch), "k"), arch)[0].blocks
          for inst in block.insts]

def counted(sink: UOp, arch: str, *parts: str) -> list[int]:
  names = made(sink, arch)
  return [sum(part in name for name in names) for part in parts]

def expression(rng: random.Random, leaves: list[UOp], depth: int) -> UOp:
  """A tree of float32 operations over the leaves, with shared nodes and constants."""
  if depth == 0: return rng.choice(leaves)
  op = rng.choice((*BINARY, Ops.MULACC, Ops.NEG, Ops.WHERE))
  def other() -> UOp: return expression(rng, leaves, depth - 1)
  a = other()
  if op is Ops.NEG: return UOp(op, a.dtype, (a,))
  if op is Ops.WHERE: return UOp(op, a.dtype, (UOp(Ops.CMPLT, dtypes.bool, (a, other())), other(), a))
  return UOp(op, a.dtype, tuple([a, other(), other()][:3 if op is Ops.MULACC else 2]))

@pytest.mark.slow
@pytest.mark.parametrize("op, key", [(Ops.ADD, "v_pk_add_f16"), (Ops.SUB, "v_pk_add_f16"), (Ops.MUL, "v_pk_mul_f16")])
@pytest.mark.parametrize("arch", (*ARCHS, "gfx950", "gfx1201"))
def test_one_operation_is_done_for_two_elements_at_once(arch: str, op: Ops, key: str) -> None:
  a, b, turned, ranges = elements()
  for other in (b, turned, UOp.const(dtypes.float16, 2.0), UOp.const(dtypes.float16, 0.3)):
    sink = kernel(UOp(op, dtypes.float16, (a, other)), ranges)
    assert counted(sink, arch, key, "v_cvt", "v_bfe", "v_fma_mix") == [COPIES // 2, 0, 0, 0]
    if arch in ARCHS: check(sink, arch, data_for(sink, make=code), optimized=False, what=f"{op.name}")

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_an_exact_product_and_a_sum_are_one_instruction(arch: str) -> None:
  a, b, c, ranges = (wide(x) if isinstance(x, UOp) else x for x in elements())
  for value in (a * b + a, a * b + c, c - a * b, a * b - c, a * 3.0 + 0.1, a * 0.5 - b):
    sink = kernel(rounded(value), ranges)
    assert counted(sink, arch, "v_fma_mix", "v_cvt", "v_bfe", "v_mul_f", "v_add_f",
                   "v_sub_f") == [COPIES, 0, 0, 0, 0, 0]
    check(sink, arch, data_for(sink, make=code), optimized=False)

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("arch", ARCHS)
def test_expressions_have_the_bits_of_float32(arch: str, seed: int) -> None:
  rng = random.Random(seed)
  a, b, c, ranges = elements()
  leaves = [*map(wide, (a, b, c)), *(UOp.const(dtypes.float32, x) for x in (1.0, -0.0, 0.1, 65504.0, 2.0 ** -30))]
  copies = rng.choice((2, 4, 8))
  if copies != COPIES:
    a, b, c, ranges = elements(copies)
    leaves[:3] = map(wide, (a, b, c))
  value = expression(rng, leaves, rng.choice((1, 2, 3)))
  for x in (rounded(value + leaves[0]), value * leaves[1]):
    sink = kernel(x, ranges, copies)
    check(sink, arch, data_for(sink, seed, code), optimized=False, what=f"seed {seed}")

@pytest.mark.parametrize("arch", ARCHS)
def test_a_variable_that_changes_after_it_was_read(arch: str) -> None:
  """Sums of a loop are rounded after it, together with their operands."""
  lane, k, r = axis(LANES, 0, "LOCAL"), axis(2, 1, "UPCAST"), axis(5, 2, "REDUCE")
  a = UOp.param(1, dtypes.float16, LANES * 10).index(lane * 10 + r * 2 + k).load()
  total = UOp(Ops.REDUCE, dtypes.float32, (wide(a) * 0.5, r), Ops.ADD)
  value = rounded(UOp(Ops.NEG, dtypes.float32, (total,)) * 0.25)
  sink = UOp.sink(UOp.param(0, dtypes.float16, LANES * 2).index(lane * 2 + k).store(value, lane, k))
  check(sink, arch, optimized=False)

def test_an_element_that_many_read_is_converted_once() -> None:
  a, b, c, ranges = elements(2)
  x = wide(a)
  value = x * 1.5
  for n in range(4): value = value * x + float(n)
  # of the high half, and of the low one
  assert counted(kernel(value, ranges, 2), "gfx1100", "v_fma_mix", "v_cvt") == [1, 1]

@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.int16, dtypes.uint8), ids=str)
@pytest.mark.parametrize("arch", ARCHS)
def test_memory_takes_the_lowest_bits(arch: str, dtype: DType) -> None:
  """A store of fewer bits cuts off the upper ones, so no instruction does it before."""
  lane, n = axis(LANES, 0, "LOCAL"), LANES
  a, b = (UOp.param(slot, dtype, n).index(lane).load() for slot in (1, 2))
  sink = UOp.sink(UOp.param(0, dtype, n).index(lane).store(a * b, lane))
  names = made(sink, arch)
  assert not any("v_and_b32" in name for name in names) and sum("bfe" in name for name in names) == 0
  check(sink, arch, optimized=False)

@pytest.mark.parametrize("dtype", (dtypes.int16, dtypes.uint16), ids=str)
@pytest.mark.parametrize("arch", ARCHS)
def test_integers_of_16_bits_are_put_together_as_they_are(arch: str, dtype: DType) -> None:
  lane, k = axis(LANES, 0, "LOCAL"), axis(4, 1, "UPCAST")
  a, b = (UOp.param(slot, dtype, LANES * 4).index(lane * 4 + k).load() for slot in (1, 2))
  sink = UOp.sink(UOp.param(0, dtype, LANES * 4).index(lane * 4 + k).store(a * b + a, lane, k))
  assert counted(sink, arch, "v_perm_b32", "v_lshl_or_b32", "v_and_b32") == [2, 0, 0]
  check(sink, arch, optimized=False)
