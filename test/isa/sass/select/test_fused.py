"""Two operations in one instruction: sums, products, bools, each compared with the interpreter and counted."""
from __future__ import annotations
from collections import Counter

import pytest

from test.codegen.kernels import axis, data_for, wild
from test.isa.sass.machine import ARCHS, check
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.capabilities import capabilities
from tinyhw.isa.sass.macros.macros import macros_of
from tinyhw.isa.sass.select.fused import combined
from tinyhw.isa.sass.target import assemble
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

N = 64

def inputs(dtype: DType, count: int) -> list[UOp]:
  return [UOp.param(1 + k, dtype, N).index(axis(N, 0, "LOCAL")).load() for k in range(count)]
def stored(value: UOp) -> UOp:
  return UOp.sink(UOp.param(0, value.dtype, N).index(axis(N, 0, "LOCAL")).store(value, axis(N, 0, "LOCAL")))
def alu(op: Ops, *src: UOp) -> UOp:
  return UOp(op, dtypes.bool if op in (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ) else src[0].dtype, src)

def counts(kernel: UOp, arch: str = "sm_90") -> Counter[str]:
  return Counter(inst.row.name for _, inst, _ in assemble(lower(kernel, capabilities(arch), "k"), arch)[2])

def others(kernel: UOp, count: int, dtype: DType) -> Counter[str]:
  """Return the instructions that do not copy the last operand."""
  return counts(kernel) - counts(stored(inputs(dtype, count)[-1]))

@pytest.mark.slow
@pytest.mark.parametrize("dtype", (dtypes.int32, dtypes.uint32), ids=str)
def test_sums(dtype: DType) -> None:
  a, b, c = inputs(dtype, 3)
  nine = UOp.const(dtype, 9)
  for value, name in ((alu(Ops.ADD, alu(Ops.MUL, a, b), c), "IMAD"), (alu(Ops.ADD, c, alu(Ops.MUL, a, nine)), "IMAD"),
                      (alu(Ops.SUB, c, alu(Ops.MUL, a, nine)), "IMAD"), (alu(Ops.ADD, alu(Ops.ADD, a, b), c), "IADD3")):
    kernel = stored(value)
    for arch in ARCHS:
      check(kernel, arch, data=data_for(kernel, 3, wild), optimized=False, what=f"{value.op.name} {name}")
    found = others(kernel, 3, dtype)
    assert found["IMAD"] + found["IADD3"] == found[name] == 1

def test_a_product_with_another_user_stays() -> None:
  a, b = inputs(dtypes.int32, 2)
  product = alu(Ops.MUL, a, b)
  kernel = stored(alu(Ops.XOR, product, alu(Ops.ADD, product, a)))
  check(kernel, "sm_90", data=data_for(kernel, 3, wild), optimized=False)
  assert others(kernel, 2, dtypes.int32)["IADD3"] == 1

@pytest.mark.slow
@pytest.mark.parametrize("source, letters", [(dtypes.int32, "IMAD.WIDE"), (dtypes.uint32, "IMAD.WIDE"),
                                             (dtypes.int16, "IMAD.WIDE"),
                                             (dtypes.uint8, "IMAD.WIDE")], ids=str)
def test_products_of_64_bits_of_narrow_factors(source: DType, letters: str) -> None:
  for factor in (7, -5, (1 << 31) - 1, 1 << 31):
    a, b = inputs(source, 2)
    wide = [UOp(Ops.CAST, dtypes.int64, (x,)) for x in (a, b)]
    c = UOp.const(dtypes.int64, factor)
    for value in (alu(Ops.MUL, *wide), alu(Ops.MUL, wide[0], c), alu(Ops.ADD, alu(Ops.MUL, wide[0], c), wide[1])):
      kernel = stored(value)
      check(kernel, "sm_89", data=data_for(kernel, 4, wild), optimized=False, what=f"{source} {factor}")
  a, b = inputs(source, 2)
  product = alu(Ops.MUL, *[UOp(Ops.CAST, dtypes.int64, (x,)) for x in (a, b)])
  assert counts(stored(product))["IMAD"] == 0, "no product of upper halves"

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", (dtypes.int32, dtypes.uint32, dtypes.float32, dtypes.int64, dtypes.float64), ids=str)
def test_truths(dtype: DType, arch: str) -> None:
  a, b, c = inputs(dtype, 3)
  for compare in (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ):
    for op in (Ops.AND, Ops.OR, Ops.XOR):
      kernel = stored(alu(op, alu(compare, a, b), alu(Ops.CMPLT, b, c)))
      check(kernel, arch, data=data_for(kernel, 5, wild), optimized=False, what=f"{compare.name} {op.name}")
      assert (counts(kernel, arch)["PLOP3.LUT"] == 0) == (dtype.itemsize == 4)

def test_the_text_of_combined_comparisons() -> None:
  found = combined(macros_of("sm_90")["lt_s32"], "OR")
  assert found.lines == ("ISETP.LT.OR d, PT, a, b, p",) and found.shown == 4
  with pytest.raises(AssertionError, match="is no comparison"): combined(macros_of("sm_90")["add32"], "AND")

@pytest.mark.parametrize("dtype", (dtypes.int8, dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int64,
                                   dtypes.bool), ids=str)
def test_constants_in_the_place_of_what_is_not_loaded(dtype: DType) -> None:
  """They are made again for each load, as scalars and vectors, in the format of registers."""
  r, k = axis(32, 0, "LOCAL"), axis(2, 1, "UPCAST")
  gate = alu(Ops.CMPLT, r, UOp.const(dtypes.weakint, 20))
  at = r * 2 + k
  load = UOp(Ops.LOAD, dtype, (UOp.param(1, dtype, N).index(at), gate, UOp.const(dtype, 5)))
  kernel = UOp.sink(UOp.param(0, dtype, N).index(at).store(load, r, k))
  check(kernel, "sm_90", data=data_for(kernel, 6, wild), optimized=False, what=str(dtype))

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_bits(arch: str) -> None:
  """Test all pairs of operations, with a constant at any operand."""
  logic = (Ops.AND, Ops.OR, Ops.XOR)
  a, b, c = inputs(dtypes.uint32, 3)
  number = UOp.const(dtypes.uint32, 0x0ff1c3a5)
  for inside in logic:
    for outside in logic:
      for x, y, z in ((a, b, c), (a, b, number), (a, number, c), (number, b, c)):
        for src in ((alu(inside, x, y), z), (z, alu(inside, x, y))):
          kernel = stored(alu(outside, *src))
          check(kernel, arch, data=data_for(kernel, 7, wild), optimized=False, what=f"{inside.name} in {outside.name}")
          assert counts(kernel, arch)["LOP3.LUT"] == 1

@pytest.mark.slow
def test_rotations() -> None:
  (x,) = inputs(dtypes.uint32, 1)
  def shifted(op: Ops, n: int) -> UOp: return alu(op, x, UOp.const(dtypes.uint32, n))
  for n in (1, 13, 31):
    for op in (Ops.OR, Ops.XOR):
      kernel = stored(alu(op, shifted(Ops.SHR, 32 - n), shifted(Ops.SHL, n)))
      check(kernel, "sm_90", data=data_for(kernel, 7, wild), optimized=False, what=f"by {n}")
      assert counts(kernel)["SHF"] == 1 + 1 and not counts(kernel)["LOP3.LUT"], "one is the address's"
  assert counts(stored(alu(Ops.OR, shifted(Ops.SHR, 20), shifted(Ops.SHL, 13))))["SHF"] == 2 + 1, "not all bits"
