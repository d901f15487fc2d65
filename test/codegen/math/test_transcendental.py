"""Errors of every function against exact values, fused or not; special values; lanes; narrow types.

Programs on targets must compute the same as the expansion.
"""
import math

import numpy as np
import pytest
import ulps

from test.codegen.kernels import AVX2, POOR
from tinyhw import arithmetic
from tinyhw.codegen.math.transcendental import expand, expansions
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp

BOTH = (dtypes.float32, dtypes.float64)

@pytest.mark.parametrize("fused", (True, False), ids=("fused", "unfused"))
@pytest.mark.parametrize("dtype", BOTH, ids=("float32", "float64"))
@pytest.mark.parametrize("op", ulps.FUNCTIONS, ids=lambda op: op.name)
def test_errors_are_within_bounds(op: Ops, dtype: DType, fused: bool) -> None:
  """All exponents, with subnormal numbers, zeros, infinities and NaN.

  For float64, Python's math may itself be wrong in the last place.
  """
  n = 1 << 16 if dtype is dtypes.float32 else 1 << 12
  operands = ulps.power_samples(dtype, n) if op is Ops.POW else (ulps.samples(dtype, n),)
  error, where = ulps.worst(op, dtype, fused, operands)
  bound = ulps.BOUNDS[op, dtype][0 if fused else 1] + (0 if dtype is dtypes.float32 else 1)
  assert error <= bound, f"{op.name} of {where} is wrong by {error} ULP"

@pytest.mark.parametrize("dtype", BOTH, ids=("float32", "float64"))
@pytest.mark.parametrize("op", ulps.FUNCTIONS, ids=lambda op: op.name)
def test_zeros_have_the_right_sign(op: Ops, dtype: DType) -> None:
  operands = ulps.power_samples(dtype, 0) if op is Ops.POW else (np.array(ulps.edges(dtype), ulps.numpy_type(dtype)),)
  got = ulps.compute(ulps.expression(op, dtype), *operands)
  f = arithmetic.operation(op.name, dtype)
  for row in zip(got, *operands):
    want = f(*[float(x) for x in row[1:]])
    if want == 0: assert math.copysign(1, row[0]) == math.copysign(1, want), f"{op.name} of {row[1:]} is {row[0]}"

@pytest.mark.parametrize("op", ulps.FUNCTIONS, ids=lambda op: op.name)
def test_expressions_are_of_operations_that_every_target_has(op: Ops) -> None:
  simple = (GroupOp.ALU - GroupOp.Transcendental - {Ops.IDIV, Ops.MOD, Ops.THREEFRY}) | {Ops.CAST, Ops.BITCAST,
                                                                                         Ops.CONST, Ops.NOOP}
  for dtype in BOTH:
    for u in ulps.expression(op, dtype).toposort():
      assert u.op in simple and u.dtype.scalar().itemsize in (1, dtype.itemsize)
      assert not (u.op is Ops.MUL and dtypes.is_int(u.dtype)
                  and dtype is dtypes.float64), ("few vector units multiply 64 bits")

OPERATIONS = {Ops.EXP: 16, Ops.EXP2: 17, Ops.LOG: 29, Ops.LOG2: 30, Ops.SIN: 82, Ops.COS: 82, Ops.TANH: 20, Ops.ERF: 28,
              Ops.POW: 122}

@pytest.mark.parametrize("op", ulps.FUNCTIONS, ids=lambda op: op.name)
def test_operations_of_float32_do_not_grow(op: Ops) -> None:
  assert ulps.operation_count(op, dtypes.float32) <= OPERATIONS[op]

@pytest.mark.parametrize("op", ulps.FUNCTIONS, ids=lambda op: op.name)
def test_lanes_are_those_of_the_operands(op: Ops) -> None:
  def shape(body: UOp) -> list[tuple[Ops, DType, object]]:
    return [(u.op, u.dtype.scalar(), str(u.arg)) for u in body.toposort()]
  for dtype in BOTH:
    wide = dtype.vec(4)
    vector = expand(UOp(op, wide, tuple([UOp(Ops.NOOP, wide, (), k) for k in range(ulps.ARITY.get(op, 1))])))
    assert vector is not None and all(u.dtype.count == 4 for u in vector.toposort())
    assert shape(vector) == shape(ulps.expression(op, dtype))

@pytest.mark.parametrize("op", ulps.FUNCTIONS, ids=lambda op: op.name)
def test_float16_is_rounded_once(op: Ops) -> None:
  """Errors of float32 seldom change the rounding to float16."""
  every = np.arange(0, 1 << 16, 7, dtype=np.uint16).view(np.float16)
  operands = (every, np.roll(every, 1234)) if op is Ops.POW else (every,)
  result = ulps.expression(op, dtypes.float16)
  assert result.dtype is dtypes.float16 and result.op is Ops.CAST
  with np.errstate(all="ignore"): want = ulps.truth(op, dtypes.float32, *operands).astype(np.float16)
  got = ulps.compute(result, *operands)
  same = (got == want) | (np.isnan(got) & np.isnan(want))
  assert same.mean() > 0.998
  assert np.all(same | (np.abs(got.view(np.int16).astype(int) - want.view(np.int16)) <= 1))

def test_what_has_no_expansion() -> None:
  x = UOp(Ops.NOOP, dtypes.float32, (), 0)
  assert expand(x.sqrt()) is None
  with pytest.raises(CompileError, match="EXP of .*int32.* is not defined; cast the operand to a float"):
    expand(UOp(Ops.EXP, dtypes.int32, (UOp(Ops.NOOP, dtypes.int32, (), 0),)))
  assert set(expansions) == set(ulps.FUNCTIONS) == GroupOp.Transcendental
  assert expansions[Ops.EXP](UOp(Ops.EXP, dtypes.float32, (x,))) is ulps.expression(Ops.EXP, dtypes.float32)

VALUES = [0.0, -0.0, 0.75, -1.25, 2.0, -3.5, 40.0, 1e-40, -1e-3, 1e8, 3e38, -3e38, math.inf, -math.inf, math.nan, 1.0]

def kernel(op: Ops, dtype: DType, lanes: int) -> UOp:
  """Return out[i] = op(a[i]), or op(a[i], a[15 - i])."""
  n = len(VALUES)
  r, v = UOp.range(n // lanes, 0), UOp.range(lanes, 1)
  out, a = UOp.param(0, dtype, n), UOp.param(1, dtype, n)
  i = r * lanes + v
  operands = [a.index(i).load(), a.index((n - 1) - i).load()][:ulps.ARITY.get(op, 1)]
  return UOp.sink(out.index(i).store(UOp(op, dtype, tuple(operands)), r, v))

@pytest.mark.parametrize("target", (AVX2, POOR), ids=("avx2", "poor"))
@pytest.mark.parametrize("op", ulps.FUNCTIONS, ids=lambda op: op.name)
def test_targets_compute_what_the_expansion_says(op: Ops, target: object) -> None:
  """The Program runs in the reference interpreter. NumPy's evaluation of the expression is equal to the bit."""
  for dtype in BOTH:
    data = {0: [0.0] * len(VALUES), 1: [arithmetic.round_to(dtype)(x) for x in VALUES]}
    evaluate(lower(kernel(op, dtype, 1), target, "f"), data)
    operands = ([np.array(data[1], ulps.numpy_type(dtype))] + [np.array(data[1][::-1], ulps.numpy_type(dtype))]
                * (ulps.ARITY.get(op, 1) - 1))
    want = ulps.compute(ulps.expression(op, dtype, target is AVX2), *operands)
    for got, expected in zip(data[0], want.tolist()): assert got == expected or (got != got and expected != expected)

def test_numpy_adds_a_product_with_one_rounding() -> None:
  """This checks the tests' own fused multiply-add against exact fractions."""
  rng = np.random.default_rng(0)
  for dtype in BOTH:
    a, b = (rng.choice([-1, 1], 2000) * 2.0 ** rng.uniform(-40, 40, 2000) for _ in range(2))
    a, b = a.astype(ulps.numpy_type(dtype)), b.astype(ulps.numpy_type(dtype))
    c = np.where(rng.random(2000) < 0.5, -(a * b),
                 a * b * rng.uniform(-1, 1, 2000) * 2.0 ** rng.integers(-30, 30, 2000)).astype(a.dtype)
    x = [UOp(Ops.NOOP, dtype, (), k) for k in range(3)]
    got = ulps.compute(UOp(Ops.MULACC, dtype, tuple(x)), a, b, c)
    fused = arithmetic.operation("MULACC", dtype)
    assert got.tolist() == [fused(float(p), float(q), float(r)) for p, q, r in zip(a, b, c)]
