"""Arithmetic of 16-bit floats: the instructions for pairs, and their results, which are those of rounded float32."""
from __future__ import annotations
import random
from typing import Any

import pytest

from test.codegen.kernels import axis, data_for
from test.isa.sass.machine import ARCHS, check
from test.isa.sass.select.test_vector import texts
from tinyhw.arithmetic import from_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

LANES, COPIES, HALVES = 32, 8, (dtypes.float16, dtypes.bfloat16)
CORNERS = (0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3bff, 0x7bff, 0xfbff, 0x7c00,
           0xfc00, 0x7e00, 0x1400, 0x0801,
           0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0x0080, 0x2000, 0x9f83)
CONVERSIONS = ("HADD2.F32", "F2FP", "PRMT", "FADD", "FMUL", "FSETP", "SEL")

def code(dtype: DType, rng: random.Random) -> Any:
  """Draw a corner case, a small number, or any number."""
  if dtype is dtypes.bool: return rng.random() < 0.5
  word = rng.choice((rng.choice(CORNERS), rng.getrandbits(16), rng.getrandbits(10) | rng.getrandbits(1) << 15))
  return from_bytes(word.to_bytes(2, "little"), dtype) if dtype in HALVES else rng.uniform(-4, 4)

def elements(dtype: DType, copies: int = COPIES) -> tuple[UOp, UOp, UOp, tuple[UOp, ...]]:
  """Draw adjacent elements of three buffers in float32. Those of the third one are backwards."""
  lane, k = axis(LANES, 0, "LOCAL"), axis(copies, 1, "UPCAST")
  def load(slot: int, at: UOp) -> UOp:
    return UOp(Ops.CAST, dtypes.float32, (UOp.param(slot, dtype, LANES * copies).index(lane * copies + at).load(),))
  return load(1, k), load(2, k), load(3, k * -1 + (copies - 1)), (lane, k)

def kernel(dtype: DType, value: UOp, ranges: tuple[UOp, ...], copies: int = COPIES) -> UOp:
  lane, k = ranges
  stored = UOp(Ops.CAST, dtype, (value,))
  return UOp.sink(UOp.param(0, dtype, LANES * copies).index(lane * copies + k).store(stored, lane, k))

def constant(x: float) -> UOp: return UOp.const(dtypes.float32, x)
def binary(op: Ops, a: UOp, b: UOp) -> UOp: return UOp(op, dtypes.float32, (a, b))
def less(a: UOp, b: UOp) -> UOp: return UOp(Ops.CMPLT, dtypes.bool, (a, b))
def where(c: UOp, a: UOp, b: UOp) -> UOp: return UOp(Ops.WHERE, dtypes.float32, (c, a, b))
def larger(x: UOp, bound: float) -> UOp: return where(less(x, constant(bound)), constant(bound), x)
def smaller(x: UOp, bound: float) -> UOp: return where(less(constant(bound), x), constant(bound), x)

def counted(sink: UOp, arch: str, *names: str) -> list[int]:
  lines = texts(sink, arch)
  return [sum(line.startswith(name) for line in lines) for name in names]

def compare(sink: UOp, arch: str, seed: int = 0) -> None:
  check(sink, arch, data_for(sink, seed, code), optimized=False, what=f"{arch} {seed}")

@pytest.mark.slow
@pytest.mark.parametrize("op, name", [(Ops.ADD, "HADD2"), (Ops.SUB, "HADD2"), (Ops.MUL, "HMUL2")])
@pytest.mark.parametrize("arch", ARCHS)
def test_one_operation_is_done_for_two_elements_at_once(arch: str, op: Ops, name: str) -> None:
  a, b, turned, ranges = elements(dtypes.float16)
  for other in (b, constant(2.0), constant(-0.0), constant(65504.0)):
    sink = kernel(dtypes.float16, binary(op, a, other), ranges)
    assert counted(sink, arch, name, *CONVERSIONS) == [COPIES // 2, *[0] * len(CONVERSIONS)], f"{op.name} with {other}"
    compare(sink, arch)
  sink = kernel(dtypes.float16, binary(op, a, turned), ranges)
  assert counted(sink, arch, name, "PRMT", "F2FP") == [COPIES // 2, COPIES // 2,
                                                       0], "what stands the other way round is turned"
  compare(sink, arch)

@pytest.mark.slow
@pytest.mark.parametrize("arch, name", [("sm_80", "HFMA2.BF16_V2"), ("sm_89", "HFMA2.BF16_V2"),
                                        ("sm_90", "HADD2.BF16_V2")])
def test_sums_of_bfloat16(arch: str, name: str) -> None:
  a, b, _, ranges = elements(dtypes.bfloat16)
  for other in (b, constant(2.0), UOp(Ops.NEG, dtypes.float32, (b,))):
    for op in (Ops.ADD, Ops.SUB):
      sink = kernel(dtypes.bfloat16, binary(op, a, other), ranges)
      assert counted(sink, arch, name, "F2FP", "FADD") == [COPIES // 2, 0, 0]
      compare(sink, arch)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_products_of_bfloat16_are_rounded_as_float32_rounds_them(arch: str) -> None:
  a, b, _, ranges = elements(dtypes.bfloat16)
  sink = kernel(dtypes.bfloat16, a * b, ranges)
  assert counted(sink, arch, "HMUL2", "HFMA2", "FMUL", "F2FP") == [0, 0, COPIES, COPIES // 2]
  for seed in range(3): compare(sink, arch, seed)

@pytest.mark.slow
@pytest.mark.parametrize("dtype, arch", [*((dtypes.float16, arch) for arch in ARCHS), (dtypes.bfloat16, "sm_90")])
def test_choices_are_made_by_masks(dtype: DType, arch: str) -> None:
  a, b, _, ranges = elements(dtype)
  maximum = where(UOp(Ops.OR, dtypes.bool, (less(a, b), UOp(Ops.CMPNE, dtypes.bool, (b, b)))), b, a)
  opposite = binary(Ops.SUB, constant(0.0), a)
  for value, masks, choices, sums in ((larger(a, 0.0), 1, 1, 0), (where(less(a, b), a, b), 1, 1, 0),
                                      (where(less(a, b), a, constant(2.0)), 1, 1, 0),
                                      (larger(a + b, 0.0), 1, 1, 1), (maximum, 2, 2, 0),
                                      (where(less(opposite, a), a, opposite), 1, 1, 1)):
    sink = kernel(dtype, value, ranges)
    found = counted(sink, arch, "HSET2", "LOP3", "HADD2", *CONVERSIONS)
    assert (found[:3] == [count * COPIES // 2 for count in (masks, choices, sums)]
            and not any(found[3:])), f"{value}: {found}"
    for seed in range(2): compare(sink, arch, seed)

@pytest.mark.slow
@pytest.mark.parametrize("dtype, arch", [*((dtypes.float16, arch) for arch in ARCHS), (dtypes.bfloat16, "sm_90")])
def test_choices_by_truths_that_are_no_masks(dtype: DType, arch: str) -> None:
  """Two words are chosen, and half of each is taken. No element is converted for that."""
  a, b, _, ranges = elements(dtype)
  lane, k = ranges
  truth = UOp.param(4, dtypes.bool, LANES * COPIES).index(lane * COPIES + k).load()
  for value in (where(truth, a, b), where(truth, a, constant(0.0)), where(truth, constant(-1.5), a)):
    sink = kernel(dtype, value, ranges)
    assert counted(sink, arch, "SEL", "PRMT", "HADD2.F32", "F2FP") == [COPIES, COPIES // 2, 0, 0]
    compare(sink, arch)
  same = UOp.param(4, dtypes.bool, LANES).index(lane).load()
  sink = kernel(dtype, where(same, a, b), ranges)
  assert counted(sink, arch, "SEL", "PRMT", "F2FP") == [COPIES // 2, 0, 0], "one truth for both"
  compare(sink, arch)

@pytest.mark.slow
@pytest.mark.parametrize("dtype, arch", [*((dtypes.float16, arch) for arch in ARCHS), (dtypes.bfloat16, "sm_90")])
def test_a_bound_is_one_instruction(dtype: DType, arch: str) -> None:
  a, b, _, ranges = elements(dtype)
  on_the_left = where(less(a, constant(-1.0)), a, constant(-1.0))
  for value, count in ((larger(a, 1.0), 1), (smaller(a, 6.0), 1), (smaller(larger(a, -1.0), 6.0), 2),
                       (smaller(a + b, 6.0), 1), (on_the_left, 1),
                       (where(less(constant(2.0), a), a, constant(2.0)), 1)):
    sink = kernel(dtype, value, ranges)
    found = counted(sink, arch, "HMNMX2", "HSET2", "LOP3", *CONVERSIONS)
    assert found == [count * COPIES // 2, *[0] * (2 + len(CONVERSIONS))], f"{value}: {found}"
    for seed in range(2): compare(sink, arch, seed)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_a_sum_with_an_exact_product_is_fused_in_float32(arch: str) -> None:
  """It is not fused in float16, where it would be rounded once."""
  a, b, c, ranges = elements(dtypes.float16)
  for value in (a * b + a, a * b + c, binary(Ops.SUB, c, a * b), binary(Ops.SUB, a * b, c), a * 3.0 + 0.1,
                binary(Ops.SUB, a * 3.0, constant(0.1))):
    sink = kernel(dtypes.float16, value, ranges)
    assert counted(sink, arch, "FFMA", "FMUL", "FADD", "HFMA2", "F2FP") == [COPIES, 0, 0, 0, COPIES // 2]
    compare(sink, arch)
  a, b, _, ranges = elements(dtypes.bfloat16)
  assert counted(kernel(dtypes.bfloat16, a * b + a, ranges), arch, "FFMA",
                 "FMUL") == [0, COPIES], "such a product may be too small for float32"

def expression(rng: random.Random, leaves: list[UOp], depth: int) -> UOp:
  """Draw a tree of float32 over the leaves, with shared nodes and constants."""
  if depth == 0: return rng.choice(leaves)
  op = rng.choice((Ops.ADD, Ops.SUB, Ops.MUL, Ops.MULACC, Ops.NEG, Ops.WHERE, Ops.WHERE))
  def other() -> UOp: return expression(rng, leaves, depth - 1)
  a = other()
  if op is Ops.NEG: return UOp(op, a.dtype, (a,))
  if op is Ops.WHERE:
    return rng.choice((lambda: where(less(a, other()), other(), a), lambda: larger(a, 0.0), lambda: smaller(a, 0.5)))()
  return UOp(op, a.dtype, tuple([a, other(), other()][:3 if op is Ops.MULACC else 2]))

@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_expressions_have_the_bits_of_float32(dtype: DType, seed: int) -> None:
  rng = random.Random(seed)
  copies = rng.choice((1, 2, 4, 8))
  a, b, c, ranges = elements(dtype, copies)
  leaves = [a, b, c, *(constant(x) for x in (1.0, -0.0, 0.1, 0.5, 2.0 ** -24))]
  for depth in (1, 2, 3): compare(kernel(dtype, expression(rng, leaves, depth), ranges, copies), ARCHS[seed % 3], seed)

@pytest.mark.parametrize("arch", ARCHS)
def test_a_single_number_is_computed_where_only_memory_sees_it(arch: str) -> None:
  """Both halves of its register have the result. An integer of its bits has zeros in the upper half."""
  a, b, _, ranges = elements(dtypes.float16, 1)
  sink = kernel(dtypes.float16, a + b, ranges, 1)
  assert counted(sink, arch, "HADD2", "F2FP", "FADD") == [1, 0, 0]
  compare(sink, arch)
  lane, k = ranges
  bits = UOp(Ops.CAST, dtypes.uint32, (UOp(Ops.BITCAST, dtypes.uint16, (UOp(Ops.CAST, dtypes.float16, (a + b,)),)),))
  compare(UOp.sink(UOp.param(0, dtypes.uint32, LANES).index(lane + k).store(bits, lane, k)), arch)

@pytest.mark.slow
def test_a_variable_that_changes_after_it_was_read() -> None:
  """Sums of a loop are rounded after it, together with their terms."""
  lane, k, r = axis(LANES, 0, "LOCAL"), axis(2, 1, "UPCAST"), axis(5, 2, "REDUCE")
  a = UOp(Ops.CAST, dtypes.float32, (UOp.param(1, dtypes.float16, LANES * 10).index(lane * 10 + r * 2 + k).load(),))
  total = UOp(Ops.REDUCE, dtypes.float32, (a * a + a, r), Ops.ADD)
  for value in (UOp(Ops.NEG, dtypes.float32, (total,)) * 0.25, larger(total, 1.0)):
    check(kernel(dtypes.float16, value, (lane, k), 2), "sm_90", optimized=False)
