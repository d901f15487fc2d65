"""Every operation of every type, on targets that have it for vectors, for scalars, or not at all.

The values are corners of the types.
"""
import itertools
import random
from dataclasses import replace

import pytest

from test.codegen.kernels import ALL_TARGETS, AVX2, EVERYTHING, POOR, axis, check, data_for, wild
from tinyhw.codegen.math import decompose, transcendental
from tinyhw.codegen.math.decompose import Decomposer
from tinyhw.codegen.passes import lower
from tinyhw.codegen.render.targets import capabilities
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.machine.ir.target import Capabilities
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

N = 32
INTEGER = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR,
           *sorted(GroupOp.Comparison))
FLOAT = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, *sorted(GroupOp.Comparison))
BOOL = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, *sorted(GroupOp.Comparison))
UNARY = {Ops.NEG: dtypes.ints + dtypes.floats, Ops.SQRT: dtypes.floats, Ops.TRUNC: dtypes.floats,
         Ops.RECIPROCAL: dtypes.floats}

def apply(op: Ops, dtype: DType, operands: int, lanes: int) -> UOp:
  """Return a kernel of out[i] = op(a[i], …)."""
  r, v = axis(N // lanes, 0), axis(lanes, 1, "VECTOR")
  i = r * lanes + v
  inputs = [UOp.param(1 + k, dtype, N).index(i).load() for k in range(operands)]
  value = inputs[0].alu(op, *inputs[1:])
  return UOp.sink(UOp.param(0, value.dtype, N).index(i).store(value, r, v))

def agree(kernel: UOp, target: Capabilities) -> None: check(kernel, target, data=data_for(kernel, 1, wild))

@pytest.mark.slow
@pytest.mark.parametrize("lanes", (1, 8))
@pytest.mark.parametrize("target", ALL_TARGETS)
def test_binary_operations(target: str, lanes: int) -> None:
  for ops, types in ((INTEGER, dtypes.ints), (FLOAT, dtypes.floats), (BOOL, (dtypes.bool,))):
    for op, dtype in itertools.product(ops, types): agree(apply(op, dtype, 2, lanes), ALL_TARGETS[target])

@pytest.mark.parametrize("lanes", (1, 8))
@pytest.mark.parametrize("target", ALL_TARGETS)
def test_other_operations(target: str, lanes: int) -> None:
  for op, types in UNARY.items():
    for dtype in types: agree(apply(op, dtype, 1, lanes), ALL_TARGETS[target])
  agree(apply(Ops.THREEFRY, dtypes.uint64, 2, lanes), ALL_TARGETS[target])
  agree(apply(Ops.MULACC, dtypes.int32, 3, lanes), ALL_TARGETS[target])

def test_what_is_fused_where_mulacc_is_slow() -> None:
  """Terms of reductions, in loops and without, are not; LOG2, POW and what is fused by itself are."""
  slow = replace(AVX2, slow_fused=True)
  def count(kernel: UOp, target: Capabilities) -> int:
    return sum(u.op is Ops.MULACC and dtypes.is_float(u.dtype) for u in lower(kernel, target, "k").uops)
  def total(kind: str, dtype: DType) -> UOp:
    x, r = UOp.param(1, dtype, N), axis(8, 0, kind)
    term = x.index(r).load() * x.index(r + 8).load()
    return UOp.sink(UOp.param(0, dtype, N).index(0).store(term.reduce(Ops.ADD, r)))
  for kind, dtype in itertools.product(("REDUCE", "UNROLL"), (dtypes.float32, dtypes.float16)):
    assert count(total(kind, dtype), AVX2) and not count(total(kind, dtype), slow), (kind, dtype)
  for op, operands in {Ops.MULACC: 3, Ops.LOG2: 1, Ops.POW: 2}.items():
    kernel = apply(op, dtypes.float32, operands, 1)
    assert count(kernel, slow) == count(kernel, AVX2) > 0, op
    agree(kernel, slow)
  for op in (Ops.EXP, Ops.SIN, Ops.ERF): assert not count(apply(op, dtypes.float32, 1, 1), slow), op

def dot(a: DType, b: DType, lanes: int, total: bool = True) -> UOp:
  """Return the kernel of out[i] = the products of the four bytes of a[i] and b[i], and c[i]."""
  r, v = axis(N // lanes, 0), axis(lanes, 1, "VECTOR")
  i = r * lanes + v
  x, y, z = (UOp.param(1 + k, dtype, N).index(i).load() for k, dtype in enumerate((a, b, dtypes.int32)))
  value = UOp(Ops.DOT4, dtypes.int32, (x, y, z if total else UOp.const(dtypes.int32, 0)))
  return UOp.sink(UOp.param(0, dtypes.int32, N).index(i).store(value, r, v))

@pytest.mark.parametrize("lanes", (1, 8))
@pytest.mark.parametrize("target", ALL_TARGETS)
def test_products_of_four_bytes(target: str, lanes: int) -> None:
  """They are added one by one where the target has no DOT4 for so many lanes."""
  for a, b, total in itertools.product(dtypes.int32s, dtypes.int32s, (False, True)):
    kernel = dot(a, b, lanes, total)
    agree(kernel, ALL_TARGETS[target])
    found = [u.dtype.count for u in lower(kernel, ALL_TARGETS[target], "dot").uops if u.op is Ops.DOT4]
    assert found == {"everything": [1] * lanes, "avx2": [8] * (lanes == 8),
                     "avx2-plain": [8] * (lanes == 8)}.get(target, [])

@pytest.mark.parametrize("dtype", (dtypes.int32, dtypes.uint8, dtypes.bool, dtypes.float16, dtypes.float64))
def test_where(dtype: DType) -> None:
  out, c, a, b = UOp.param(0, dtype, N), UOp.param(1, dtypes.bool, N), UOp.param(2, dtype, N), UOp.param(3, dtype, N)
  r, v = axis(N // 8, 0), axis(8, 1, "VECTOR")
  i = r * 8 + v
  for target in (AVX2, POOR):
    agree(UOp.sink(out.index(i).store(c.index(i).load().where(a.index(i).load(), b.index(i).load()), r, v)), target)

def test_a_shift_by_a_known_amount_needs_no_guard() -> None:
  out, a = UOp.param(0, dtypes.int32, N), UOp.param(1, dtypes.int32, N)
  r = axis(N, 0)
  program = lower(UOp.sink(out.index(r).store(a.index(r).load() << 3, r)), AVX2, "shift")
  assert not any(u.op is Ops.WHERE for u in program.uops)

def test_subtraction_is_one_operation() -> None:
  out, a = UOp.param(0, dtypes.float32, N), UOp.param(1, dtypes.float32, N)
  r = axis(N - 1, 0)
  program = lower(UOp.sink(out.index(r).store(a.index(r).load() - a.index(r + 1).load(), r)), AVX2, "subtract")
  assert [u.op for u in program.uops if u.op in GroupOp.ALU and u.dtype is dtypes.float32] == [Ops.SUB]

def test_narrow_floats_are_rounded_when_they_are_stored_not_between() -> None:
  out, a = UOp.param(0, dtypes.float16, 8), UOp.param(1, dtypes.float16, 8)
  v = axis(8, 0, "VECTOR")
  x = a.index(v).load()
  program = lower(UOp.sink(out.index(v).store(x * x + x, v)), AVX2, "half")
  assert [u.op for u in program.uops if u.op in GroupOp.Elementwise and u.dtype.count == 8] == [Ops.CAST, Ops.MUL,
                                                                                                Ops.ADD, Ops.CAST]

def test_a_cast_of_a_narrow_float_rounds_it_first() -> None:
  out, a = UOp.param(0, dtypes.float32, 4), UOp.param(1, dtypes.float16, 4)
  r = axis(4, 0)
  x = a.index(r).load()
  check(UOp.sink(out.index(r).store((x * x).cast(dtypes.float32), r)), AVX2,
        data={0: [0.0] * 4, 1: [0.1, 0.7, 3.3, 1000.0]})

def test_a_sum_of_halves_is_a_sum_of_singles() -> None:
  out, a = UOp.param(0, dtypes.float16, 1), UOp.param(1, dtypes.float16, 4096)
  r = axis(4096, 0, "REDUCE")
  program = lower(UOp.sink(out.index(0).store(a.index(r).load().reduce(Ops.ADD, r))), AVX2, "sum")
  data = {0: [0.0], 1: [1.0] * 4096}
  evaluate(program, data)
  assert data[0] == [4096.0] and any(u.op is Ops.ACC and u.dtype is dtypes.float32 for u in program.uops)

@pytest.mark.parametrize("lanes", (1, 8))
def test_functions_are_templates_that_are_decomposed_once(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """A stand-in function: |x| by its bits, then twice the maximum of that and 1."""
  made = []
  def expansion(u: UOp, fused: bool) -> UOp:
    made.append(u)
    bits = u.src[0].bitcast(dtypes.uint32) & 0x7fffffff
    return bits.bitcast(dtypes.float32).maximum(1.0) * 2
  monkeypatch.setattr(transcendental, "expand", expansion)
  monkeypatch.setattr(decompose, "_templates", {})
  data = {0: [0.0] * N, 1: [float(k - 9) for k in range(N)]}
  expected = [max(abs(x), 1.0) * 2 for x in data[1]]
  for target in (AVX2, POOR, AVX2):
    evaluate(lower(apply(Ops.EXP2, dtypes.float32, 1, lanes), target, "exp2"), data)
    assert data[0] == expected
  assert len(made) == 2 and all(u.dtype is dtypes.float32 for u in made)

def test_what_cannot_be_expressed_is_refused() -> None:
  with pytest.raises(CompileError, match="the target has no SQRT of .*float32.*; cast the operands"):
    Decomposer(Capabilities(0, 0)).alu(Ops.SQRT, UOp.const(dtypes.float32, 2.0))

def test_what_the_target_has_is_left_alone() -> None:
  kernel = apply(Ops.MAX, dtypes.float32, 2, 1)
  assert any(u.op is Ops.MAX for u in lower(kernel, EVERYTHING, "max").uops)
  assert not any(u.op is Ops.MAX for u in lower(kernel, POOR, "max").uops)

def test_pairs_of_bfloat16_are_added_one_by_one() -> None:
  """The upper halves come first, each step is rounded, and subnormal numbers are zeros, as in the operation."""
  rng, n = random.Random(5), 200
  halves = (0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x3f80, 0xbf81, 0x3f00, 0x7f7f, 0x4049, 0x0f10)
  def half() -> int: return rng.choice(halves) if rng.random() < 0.6 else rng.randrange(0x7f00)
  def word() -> int: return half() << 16 | half()
  types = (dtypes.float32, dtypes.uint32, dtypes.uint32, dtypes.float32)
  out, x, y, z = (UOp.param(k, dtype, n) for k, dtype in enumerate(types))
  r = axis(n, 0)
  value = UOp(Ops.DOT2, dtypes.float32, tuple(p.index(r).load() for p in (x, y, z)))
  data = {0: [0.0] * n, 1: [word() for _ in range(n)], 2: [word() for _ in range(n)],
          3: [rng.choice((0.0, 1.0, 2.0 ** -127, -3.5, 2.0 ** 24)) for _ in range(n)]}
  check(UOp.sink(out.index(r).store(value, r)), AVX2, data=data)

@pytest.mark.parametrize("op", (Ops.TRUNC, Ops.SQRT, Ops.RECIPROCAL, Ops.SIN))
def test_a_type_that_a_target_does_not_have_is_refused_by_name(op: Ops) -> None:
  with pytest.raises(CompileError, match="dtypes.float64"):
    lower(apply(op, dtypes.float64, 1, 1), capabilities("metal"), "kernel")
