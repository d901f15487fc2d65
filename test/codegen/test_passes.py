"""The whole lowering: handmade and random kernels give the same as their Programs, on rich and poor targets."""
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from test.codegen.kernels import (ALL_TARGETS, AVX2, EVERYTHING, axis, check, convolution, count, data_for, elementwise,
                                  gather, masked, matmul,
                                  softmax, staged_matmul)
from test.codegen.random_kernels import Generator
from tinyhw.codegen.passes import LIST_PASSES, NAMES, PASSES, REASONS, lower
from tinyhw.config import Context
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

KERNELS = {
  "elementwise": elementwise(64, 8, 2), "float64": elementwise(64, 8, 2, dtypes.float64),
  "int8": elementwise(64, 8, 2, dtypes.int8),
  "masked": masked(13, 8), "masked bytes": masked(13, 8, dtypes.int8), "matmul": matmul(12, 32, 8),
  "unrolled matmul": matmul(12, 32, 8, unroll=4),
  "small matmul": matmul(4, 16, 8, 2, 1, 8, 4), "half matmul": matmul(4, 16, 8, 2, 1, 8, 2, dtypes.float16),
  "softmax": softmax(3, 16),
  "softmax over one range": softmax(3, 16, shared=True), "convolution": convolution(8),
  "convolution in loops": convolution(8, unroll=False),
  "gather": gather(16, 5), "gather by int64": gather(16, 5, dtype=dtypes.int64),
  "staged matmul": staged_matmul(4, 16, 5),
}

@pytest.mark.parametrize("target", ALL_TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_program_computes_what_the_kernel_computes(name: str, target: str) -> None:
  check(KERNELS[name], ALL_TARGETS[target], passes=True)

@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 1 << 30))
def test_random_kernels(seed: int) -> None:
  generator = Generator(seed)
  kernel = generator.kernel()
  for name, target in ALL_TARGETS.items():
    check(kernel, target, generator.variables, tolerance=1e-12, passes=name == "avx2")

def test_the_inner_loop_of_a_matmul_is_only_what_it_must_be() -> None:
  program = lower(matmul(12, 32, 8), AVX2, "matmul")
  assert count(program, Ops.MULACC, 2) == 12 and count(program, Ops.BROADCAST,
                                                       2) == 6 and count(program, Ops.LOAD, 2, vector=True) == 2
  assert count(program, Ops.LOAD, 2, vector=False) == 6
  body = _body(program, 2)
  vector = [u.op for u in body if u.dtype.count > 1 and u.op not in (Ops.MULACC, Ops.ASSIGN_ACC, Ops.LOAD,
                                                                     Ops.BROADCAST)]
  assert vector == []
  integer = [u for u in body if dtypes.is_int(u.dtype) and not (u.op is Ops.ADD and u.src[1].op is Ops.CONST)]
  assert len(integer) <= 4, f"{integer}"

def _body(program: Program, number: int) -> list[UOp]:
  """Return the uops between the RANGE with this number and its END."""
  uops = list(program.uops)
  start = next(k for k, u in enumerate(uops) if u.op is Ops.RANGE and u.arg[0] == number)
  end = next(k for k, u in enumerate(uops) if u.op is Ops.END and u.src[0] is uops[start])
  return uops[start + 1:end]

def test_no_ranges_at_all() -> None:
  out, a = UOp.param(0, dtypes.float32, 1), UOp.param(1, dtypes.float32, 4)
  program = check(UOp.sink(out.index(0).store(a.index(3).load() + 1)), AVX2)
  assert program.grid == 1 and program.written == frozenset((0,))

def test_symbolic_sizes() -> None:
  n = UOp.variable("n", 1, 20)
  out, a = UOp.param(0, dtypes.float32, 40), UOp.param(1, dtypes.float32, 400)
  g, r = axis(n * 2, 0, "GLOBAL"), axis(n, 1, "REDUCE")
  kernel = UOp.sink(out.index(g).store(a.index(g // 2 * n + r).load().reduce(Ops.ADD, r) + n.cast(dtypes.float32), g))
  for target in ALL_TARGETS.values(): check(kernel, target, {"n": 7})
  program = lower(kernel, AVX2, "symbolic")
  assert isinstance(program.grid, UOp) and [v.arg[0] for v in program.variables] == ["n"]

def test_parts_of_a_grid_are_independent() -> None:
  kernel = matmul(12, 32, 8)
  program, data = lower(kernel, AVX2, "matmul"), data_for(kernel)
  evaluate(program, data, first=1, last=2)
  expected = data_for(kernel)
  evaluate(kernel, expected)
  assert data[0][192:] == expected[0][192:] and data[0][:192] == data_for(kernel)[0][:192]

def test_a_kernel_may_write_what_it_reads() -> None:
  x = UOp.param(0, dtypes.float32, 32)
  r, u, v = axis(2, 0), axis(2, 1, "UPCAST"), axis(8, 2, "VECTOR")
  i = r * 16 + u * 8 + v
  check(UOp.sink(x.index(i).store(x.index(i).load() * 2, r, u, v)), AVX2)

def test_values_of_one_place_are_computed_before_any_is_stored() -> None:
  x, y = UOp.param(0, dtypes.float32, 4), UOp.param(1, dtypes.float32, 4)
  r = axis(4, 0)
  program = lower(UOp.sink(x.index(r).store(y.index(r).load(), r), y.index(r).store(x.index(r).load(), r)), AVX2,
                  "swap")
  data = {0: [1.0, 2.0, 3.0, 4.0], 1: [5.0, 6.0, 7.0, 8.0]}
  evaluate(program, data)
  assert data == {0: [5.0, 6.0, 7.0, 8.0], 1: [1.0, 2.0, 3.0, 4.0]}

def test_unused_arguments_stay() -> None:
  out, a, n = UOp.param(0, dtypes.int32, 4), UOp.param(1, dtypes.int32, 4), UOp.variable("n", 0, 9)
  r = axis(4, 0)
  gate = UOp.const(dtypes.bool, False) & (n < 3)
  program = lower(UOp.sink(out.index(r).store(a.index(r).load(gate), r)), AVX2, "unused")
  assert [p.arg[0] for p in program.params] == [0, 1] and [v.dtype for v in program.variables] == [dtypes.int32]

def test_lanes_of_a_workgroup_meet_at_barriers() -> None:
  out, a = UOp.param(0, dtypes.float32, 24), UOp.param(1, dtypes.float32, 24)
  g, lane, r = axis(6, 0, "GLOBAL"), axis(4, 1, "LOCAL"), axis(3, 2, "REDUCE")
  shared = UOp(Ops.STAGE, dtypes.float32, (a.index((g * 4 + lane + r) % 24).load(), lane), (0,))
  value = shared.index((lane + 1) % 4).load().reduce(Ops.ADD, r)
  program = check(UOp.sink(out.index(g * 4 + lane).store(value, g, lane)), replace(EVERYTHING, lanes=True))
  assert count(program, Ops.BARRIER) == 2 and count(program, Ops.RANGE) == 3

def test_two_vector_ranges_on_one_value_are_refused() -> None:
  out, a = UOp.param(0, dtypes.float32, 16), UOp.param(1, dtypes.float32, 16)
  v, w = axis(4, 0, "VECTOR"), axis(4, 1, "VECTOR")
  with pytest.raises(CompileError, match="two VECTOR ranges, 0 and 1; make one of them UPCAST"):
    lower(UOp.sink(out.index(v * 4 + w).store(a.index(w * 4 + v).load(), v, w)), AVX2, "two")
  with pytest.raises(CompileError, match="a kernel is a SINK"): lower(out, AVX2, "none")

def test_dump_prints_after_the_pass_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
  with Context(DUMP="unroll:mine"):
    lower(KERNELS["elementwise"], AVX2, "mine")
    lower(KERNELS["elementwise"], AVX2, "other")
  out = capsys.readouterr().out
  assert out.startswith("; mine after unroll\n") and out.count("; ") == 1
  with Context(DUMP="linearize"): lower(KERNELS["elementwise"], AVX2, "other")
  assert "; other after linearize" in capsys.readouterr().out
  with Context(DUMP="allocate"): lower(KERNELS["elementwise"], AVX2, "other")  # a pass of machine/passes.py

def test_passes_on_lists_are_dumped_for_the_targets_that_have_them(capsys: pytest.CaptureFixture[str]) -> None:
  has_lanes = {p.name: p.has_lanes for p in LIST_PASSES}
  for step in NAMES[len(PASSES):]:
    with Context(DUMP=step):
      lower(KERNELS["elementwise"], replace(EVERYTHING, lanes=32), "mine")
      assert capsys.readouterr().out.count(f"; mine after {step}\n") == has_lanes.get(step, True)
      lower(KERNELS["elementwise"], AVX2, "mine")
      assert capsys.readouterr().out.count("; mine after") == (not has_lanes.get(step, False))

def test_every_pass_says_why_it_stands_there() -> None:
  assert len(set(NAMES)) == len(NAMES) and all(REASONS[name] for name in NAMES)

def test_spec_verifies_between_passes() -> None:
  with Context(SPEC=2): lower(KERNELS["convolution"], AVX2, "verified")

def test_lowering_is_deterministic() -> None:
  def text() -> list[str]:
    return [f"{u.op.name} {u.dtype} {u.arg}" for u in lower(KERNELS["unrolled matmul"], AVX2, "x").uops]
  assert text() == text()
