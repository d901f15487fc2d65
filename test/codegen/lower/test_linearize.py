"""The order of nodes: statements that share loops, the loops of values, and no duplicated nodes."""
from test.codegen.kernels import AVX2, EVERYTHING, POOR, axis, check, count, softmax
from tinyhw.codegen.lower.linearize import bits_of, tile_order
from tinyhw.codegen.optimize import with_order
from tinyhw.codegen.passes import lower
from tinyhw.codegen.transform.fold import BEFORE
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

F32 = dtypes.float32

def shape(program: Program) -> str:
  """Return loops as brackets, stores as s, assignments as a."""
  letters = {Ops.RANGE: "(", Ops.END: ")", Ops.STORE: "s", Ops.ASSIGN_ACC: "a"}
  return "".join(letters.get(u.op, "") for u in program.uops)

def test_a_reduction_that_needs_another_has_a_loop_of_its_own() -> None:
  assert shape(check(softmax(3, 16), AVX2)) == "((aa)(a)(s))"  # a maximum has two variables there
  assert shape(check(softmax(3, 16), EVERYTHING)).startswith("((aaaaaaaa)(aaaaaaaa)(s")
  assert shape(check(softmax(3, 16, shared=True), AVX2)) == "((aa)(a)(s))"

def test_independent_reductions_share_a_loop() -> None:
  out, a = UOp.param(0, F32, 8), UOp.param(1, F32, 32)
  g, r, s = axis(4, 0), axis(8, 1, "REDUCE"), axis(8, 2, "REDUCE")
  x, y = a.index(g * 8 + r).load(), a.index(g * 8 + s).load()
  total, top, second = x.reduce(Ops.ADD, r), x.reduce(Ops.MAX, r), y.reduce(Ops.ADD, s)
  assert shape(check(UOp.sink(out.index(g).store(total + top, g)), AVX2)) == "((aaa)s)"
  assert shape(check(UOp.sink(out.index(g).store(total + second, g)), AVX2)) == "((a)(a)s)"

def test_stores_share_loops_and_leave_them() -> None:
  out, sums, a = UOp.param(0, F32, 32), UOp.param(1, F32, 4), UOp.param(2, F32, 32)
  g, r, s = axis(4, 0), axis(8, 1), axis(8, 2, "REDUCE")
  x = a.index(g * 8 + s).load().reduce(Ops.ADD, s)
  kernel = UOp.sink(out.index(g * 8 + r).store(a.index(g * 8 + r).load() * x, g, r), sums.index(g).store(x, g))
  assert shape(check(kernel, AVX2)) in ("((a)s(s))", "((a)(s)s)")
  apart = UOp.sink(out.index(r).store(a.index(r).load(), r), sums.index(g).store(a.index(g).load(), g))
  assert shape(check(apart, AVX2)) == "(s)(s)"

def test_a_loop_waits_for_all_that_can_share_it() -> None:
  """p is over r, q over s, and t over r needs q. So p and t share the loop over r, after q."""
  out, a = UOp.param(0, F32, 1), UOp.param(1, F32, 8)
  r, s = axis(8, 0, "REDUCE"), axis(8, 1, "REDUCE")
  x = a.index(r).load()
  p, q = x.reduce(Ops.ADD, r), a.index(s).load().reduce(Ops.MAX, s)
  t = (x * q).reduce(Ops.ADD, r)
  assert shape(check(UOp.sink(out.index(0).store(p + t)), AVX2)) == "(aa)(aa)s"

def test_nested_reductions() -> None:
  out, a = UOp.param(0, F32, 1), UOp.param(1, F32, 12)
  r, s = axis(3, 0, "REDUCE"), axis(4, 1, "REDUCE")
  inner = a.index(r * 4 + s).load().reduce(Ops.MAX, s)
  assert shape(check(UOp.sink(out.index(0).store(inner.reduce(Ops.ADD, r))), AVX2)) == "((aa)a)s"
  outside = a.index(s).load().reduce(Ops.MAX, s)  # does not depend on r
  assert (shape(check(UOp.sink(out.index(0).store((outside + a.index(r).load()).reduce(Ops.ADD, r))), AVX2))
          == "(aa)(a)s")

def test_a_value_is_computed_in_the_innermost_loop_that_it_depends_on() -> None:
  out, a, b = UOp.param(0, F32, 20), UOp.param(1, F32, 4), UOp.param(2, F32, 20)
  g, r = axis(4, 0), axis(5, 1)
  program = check(UOp.sink(out.index(g * 5 + r).store(a.index(g).load() * 2 + b.index(g * 5 + r).load(), g, r)), AVX2)
  assert count(program, Ops.LOAD, 0) == 1 and count(program, Ops.LOAD, 1) == 1 and count(program, Ops.MUL, 1) == 0

def test_what_two_loops_need_is_in_both() -> None:
  out, a = UOp.param(0, F32, 8), UOp.param(1, F32, 8)
  r = axis(8, 0)
  x = a.index(r).load() * 3
  total = x.reduce(Ops.ADD, r)
  program = check(UOp.sink(out.index(r).store(x + total, r)), AVX2)
  assert shape(program) == "(a)(s)" and count(program, Ops.LOAD) == 2

def test_the_same_of_a_variable_before_and_after_its_loop_is_two_nodes() -> None:
  out, a = UOp.param(0, dtypes.int8, 1), UOp.param(1, dtypes.int8, 8)
  r = axis(8, 0, "REDUCE")
  top = a.index(r).load().reduce(Ops.MAX, r)
  check(UOp.sink(out.index(0).store(top.cast(dtypes.int32).cast(dtypes.int8))), POOR)

def test_stores_of_an_ordered_loop_keep_their_order() -> None:
  """x[k] += 1; then y[i] += x[k] for all i; then x[k] *= y[0]. The last one loads what the others have stored."""
  x, y = UOp.param(0, F32, 4), UOp.param(1, F32, 3)
  k, i = axis(4, 0, "ORDERED"), axis(3, 1)
  kernel = UOp.sink(x.index(k).store(x.index(k).load() + 1.0, k),
                    y.index(i).store(y.index(i).load() + x.index(k).load(), k, i),
                    x.index(k).store(x.index(k).load() * y.index(0).load(), k))
  program = lower(with_order(kernel), POOR, "ordered")
  assert shape(program) == "(s(s)s)"
  def run(what: Program) -> list[list[float]]:
    buffers = {0: [0.0, 1.0, 2.0, 3.0], 1: [0.0, 0.0, 0.0]}
    evaluate(what, buffers)
    return list(buffers.values())
  assert run(program) == [[1.0, 6.0, 18.0, 40.0], [10.0, 10.0, 10.0]]

def test_deep_expressions_need_no_recursion() -> None:
  out, a = UOp.param(0, F32, 4), UOp.param(1, F32, 4)
  r, v = axis(1, 0), axis(4, 1, "VECTOR")
  x = a.index(v).load()
  for k in range(3000): x = x + a.index(v).load() if k % 2 else x.maximum(0.0)
  assert len(lower(UOp.sink(out.index(v).store(x, r, v)), AVX2, "deep").uops) > 3000

def test_bits() -> None: assert list(bits_of(0b101001)) == [0, 3, 5] and list(bits_of(0)) == []

def tile(m: int, n: int, rows: int) -> tuple[list[UOp], list[UOp], list[UOp]]:
  """Return m x n accumulators of a tile of a product, in the order of its columns, and the operands of both sides.

  rows: the position of the first operand in a product.
  """
  r, x = axis(8, 0, "REDUCE"), UOp.param(0, F32, 8 * (m + n))
  one, other = [[x.index(r * (m + n) + k).load() for k in range(first, last)] for first, last in ((0, m), (m, m + n))]
  found = []
  for j, b in enumerate(other):
    for i, a in enumerate(one):
      variable = UOp(Ops.ACC, F32, (UOp.const(F32, 0),), (j * m + i, 0, 0))
      pair = (a, b) if rows == 0 else (b, a)
      found.append(UOp(Ops.REDUCE, F32, (variable, UOp(Ops.MULACC, F32, (*pair, variable)), r), Ops.ADD))
  return found, one, other

def test_the_fewer_operands_of_a_tile_stay_live() -> None:
  for rows in (0, 1):
    found, one, other = tile(4, 2, rows)
    assert [u.src[1].src[rows] for u in tile_order(found)] == [a for a in one for _ in other]
    found, one, other = tile(2, 4, rows)
    assert tile_order(found) == found, "they are in this order"

def test_what_is_no_whole_tile_keeps_its_order() -> None:
  found, *_ = tile(4, 2, 0)
  assert tile_order(found[:-1]) == found[:-1]
  assert tile_order(tile(4, 1, 0)[0]) == tile(4, 1, 0)[0]
  r = axis(8, 0, "REDUCE")
  total = UOp(Ops.REDUCE, F32, (found[0].src[0], found[0].src[0] + 1, r), Ops.ADD)
  assert tile_order([total, *found]) == [total, *found]

def test_other_variables_of_a_loop_read_a_value_before_it_changes() -> None:
  """A running sum that is scaled by 2**(largest before - largest after) in each iteration."""
  n, r = 8, axis(8, 0, "REDUCE")
  x = UOp.param(1, F32, n).index(r).load()
  def variable(start: float, number: int, update: int) -> UOp:
    return UOp(Ops.ACC, F32, (UOp.const(F32, start),), (-number, 0, update))
  before = variable(-100.0, 1, BEFORE)
  new = (before < x).where(x, before)
  total = UOp(Ops.REDUCE, F32, (variable(0, 2, 0), variable(0, 2, 0) * (before - new).alu(Ops.EXP2) + 1.0, r), Ops.ADD)
  largest = UOp(Ops.REDUCE, F32, (variable(-100.0, 1, 0), new, r), Ops.ADD)
  kernel = UOp.sink(UOp.param(0, F32, 1).index(0).store(largest + total))
  program = lower(kernel, EVERYTHING, "online")
  data = {0: [0.0], 1: [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]}
  evaluate(program, data)
  want, most = 0.0, -100.0
  for value in data[1]:
    want, most = want * 2.0 ** (most - max(most, value)) + 1, max(most, value)
  assert data[0] == [most + want]
