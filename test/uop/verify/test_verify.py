"""The verifier accepts correct graphs and names the problem of others, for each representation.

test_inbounds.py tests bounds of accesses.
"""
import dataclasses
from collections.abc import Callable

import pytest
from generators.program_builder import Builder, RandomProgram, add, gather, i32, matmul, pad, softmax, workgroups

from tinyhw.dtype import dtypes
from tinyhw.errors import VerifyError
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.matrix import MatrixRows, Scattered
from tinyhw.uop.ops import KernelInfo, UOp, to_indices
from tinyhw.uop.program import Program
from tinyhw.uop.verify.verify import verify

f32 = dtypes.float32

@pytest.mark.parametrize("program", [add(), add(16, 4), matmul(4), matmul(4, True), pad(), gather(), softmax(),
                                     workgroups()], ids=lambda p: p.name)
def test_programs_are_accepted(program: Program) -> None: verify(program)

@pytest.mark.parametrize("seed", range(10))
def test_random_programs_are_accepted(seed: int) -> None: verify(RandomProgram(seed, lanes=seed % 4 + 1).program)

def changed(program: Program, change: Callable[[list[UOp]], list[UOp]]) -> Program:
  return dataclasses.replace(program, uops=tuple(change(list(program.uops))))

def first(uops: list[UOp], op: Ops) -> int: return next(i for i, u in enumerate(uops) if u.op is op)

def without(op: Ops) -> Callable[[list[UOp]], list[UOp]]:
  def change(uops: list[UOp]) -> list[UOp]:
    del uops[first(uops, op)]
    return uops
  return change

def test_brackets_and_order() -> None:
  with pytest.raises(VerifyError, match="RANGE: is never closed"): verify(changed(add(), without(Ops.END)))
  with pytest.raises(VerifyError, match="source UOp.Ops.CONST.* does not stand before it"):
    verify(changed(add(), without(Ops.CONST)))
  with pytest.raises(VerifyError, match="STORE: source UOp.Ops.ADD.* does not stand before"):
    verify(changed(add(), without(Ops.ADD)))
  with pytest.raises(VerifyError, match="END: source|END: closes"):
    verify(changed(add(), lambda uops: uops + [uops[-1]]))
  program = matmul(4)
  ends = [i for i, u in enumerate(program.uops) if u.op is Ops.END]
  def swap(uops: list[UOp]) -> list[UOp]:
    uops[ends[-1]], uops[ends[-2]] = uops[ends[-2]], uops[ends[-1]]
    return uops
  with pytest.raises(VerifyError, match="not the innermost open bracket"): verify(changed(program, swap))

def test_a_value_of_a_closed_loop_is_not_visible() -> None:
  b = Builder("late")
  out = b.param(0, i32, 4)
  with b.loop(4) as r: inside = b.add(r + 1)
  b.uops.append(UOp(Ops.NEG, i32, (inside,)))
  with pytest.raises(VerifyError, match="NEG: source .* in a block that is still open"): verify(b.program())
  assert out.op is Ops.PARAM

def test_global_is_outermost_and_slots_are_unique() -> None:
  b = Builder("inner")
  with b.loop(4), b.loop(4, AxisType.GLOBAL): pass
  with pytest.raises(VerifyError, match="a GLOBAL range inside of RANGE"): verify(b.program())
  b = Builder("slots")
  b.param(0, f32, 4)
  b.param(0, i32, 4)
  with pytest.raises(VerifyError, match="slot 0 is defined twice"): verify(b.program())

def test_weak_types_do_not_reach_programs() -> None:
  with pytest.raises(VerifyError, match="type dtypes.weakint has no width"):
    verify(Program("p", (UOp.const(dtypes.weakint, 3),)))

def test_the_message_shows_the_lines_around() -> None:
  with pytest.raises(VerifyError) as e: verify(changed(add(), without(Ops.ADD)))
  lines = str(e.value).split("\n")
  assert "> u10 = STORE(void, u9, undefined_ADD)" in lines and any(line.startswith("  u8 = ") for line in lines)

x, y, g = UOp.const(f32, 1.0), UOp.const(dtypes.float64, 1.0), UOp.const(dtypes.bool, True)
v4 = UOp.const(f32.vec(4), 1.0)
i, j, u8 = UOp.const(i32, 1), UOp.const(dtypes.uint32, 1), UOp.const(dtypes.uint8, 1)
i4 = UOp.const(i32.vec(4), 1)
place = UOp.param(0, f32, 8).index(0)

@pytest.mark.parametrize(("u", "message"), [
  (UOp(Ops.ADD, f32, (x, y)), "ADD: an operand of type dtypes.float64 in an operation on dtypes.float32"),
  (UOp(Ops.ADD, f32, (x,)), "ADD: 1 sources, not 2"),
  (UOp(Ops.ADD, f32.vec(4), (v4, x)), "an operand of type dtypes.float32 in an operation on dtypes.float32.vec"),
  (UOp(Ops.IDIV, f32, (x, x)), "IDIV: has no meaning for dtypes.float32: it is for integers"),
  (UOp(Ops.CMPLT, f32, (x, x)), "CMPLT: gives dtypes.float32, not dtypes.bool"),
  (UOp(Ops.CMPLT, dtypes.bool, (x, y)), "operands of types dtypes.float32 and dtypes.float64"),
  (UOp(Ops.WHERE, f32, (x, x, x)), "WHERE: condition of type dtypes.float32"),
  (UOp(Ops.DOT4, i32, (i, i)), "DOT4: 2 sources, not 3"),
  (UOp(Ops.DOT4, dtypes.uint32, (j, j, j)), "DOT4: gives dtypes.uint.*, not int32"),
  (UOp(Ops.DOT4, f32, (i, i, x)), "DOT4: gives dtypes.float.*, not int32"),
  (UOp(Ops.DOT4, i32, (x, i, i)), "DOT4: four bytes in a dtypes.float.*, not an int32 or uint32"),
  (UOp(Ops.DOT4, i32, (i, u8, i)), "DOT4: four bytes in a dtypes.uint8, not"),
  (UOp(Ops.DOT4, i32.vec(4), (i4, i, i4)), "DOT4: four bytes in a dtypes.int.* with the lanes of"),
  (UOp(Ops.DOT4, i32, (i4, i4, i)), "DOT4: four bytes in a .* with the lanes of"),
  (UOp(Ops.DOT4, i32, (i, j, j)), "DOT4: an operand of type dtypes.uint"),
  (UOp(Ops.DOT4, i32.vec(4), (i4, i4, i)), "DOT4: an operand of type dtypes.int"),
  (UOp(Ops.CAST, f32.vec(2), (v4,)), "changes the number of lanes"),
  (UOp(Ops.BITCAST, dtypes.float64, (x,)), "differ in size"),
  (UOp(Ops.SHL, f32, (x, x)), "SHL: has no meaning for dtypes.float32"),
  (UOp(Ops.CONST, f32, (), 54321), "CONST: value 54321 is no float"),
  (UOp(Ops.LOAD, i32, (place,)), "LOAD: of dtypes.int from memory of dtypes.float32|LOAD: of dtypes.int32 from memory"),
  (UOp(Ops.LOAD, f32, (x,)), "LOAD: from CONST, not INDEX"),
  (UOp(Ops.LOAD, f32.vec(6), (place,), MatrixRows(4, 8)), "LOAD: of 6 elements by MatrixRows"),
  (UOp(Ops.LOAD, f32.vec(4), (place, g, UOp.const(f32.vec(4), 0)), MatrixRows(2, 2)), "or with a gate"),
  (UOp(Ops.LOAD, f32.vec(4), (place,), MatrixRows(2, 2, 1)), "LOAD: of 4 elements by MatrixRows"),
  (UOp(Ops.LOAD, f32.vec(4), (place, place), MatrixRows(2, 2)), "LOAD: of 4 elements by MatrixRows"),
  (UOp(Ops.LOAD, f32, (place, x, x)), "gate of type dtypes.float32"),
  (UOp(Ops.LOAD, f32, (place, g, y)), "an operand of type dtypes.float64"),
  (UOp(Ops.STORE, dtypes.void, (place, y)), "STORE: of dtypes.float64 into memory of dtypes.float32"),
  (UOp(Ops.STORE, dtypes.void, (place, x, g, g)), "not a gate and then ranges"),
  (UOp(Ops.STORE, dtypes.void, (place, v4), Scattered(2, ((0, 0), (3, 4)))), "STORE: of element 4 of 4"),
  (UOp(Ops.STORE, dtypes.void, (place, v4), Scattered(2, ((0, 0), (2, 1)))), "STORE: of pieces that overlap"),
  (UOp(Ops.STORE, dtypes.void, (place, v4), Scattered(2, ((0, 2), (2, 4)))), "none of which is where INDEX says"),
  (UOp(Ops.INDEX, i32, place.src), "INDEX: of type dtypes.int32 into memory of dtypes.float32"),
  (UOp(Ops.INDEX, f32, (x, place.src[1])), "INDEX: into CONST, which is no memory"),
  (UOp(Ops.GEP, f32, (v4,), 4), "GEP: lane 4 of"), (UOp(Ops.GEP, f32.vec(2), (v4,), 1), "GEP: lane 1 of"),
  (UOp(Ops.GEP, f32.vec(2), (v4,), 4), "GEP: lane 4 of"), (UOp(Ops.VECTORIZE, f32.vec(4), (x, x)), "VECTORIZE: "),
  (UOp(Ops.BROADCAST, f32.vec(4), (y,)), "BROADCAST: "),
  (UOp(Ops.RESHAPE, f32, (x,)), "not an operation of a kernel"),
  (UOp(Ops.REDUCE, f32, (x, UOp.range(3, 0)), Ops.SUB), "REDUCE: does not fold with"),
  (UOp(Ops.STAGE, dtypes.weakint, (UOp.const(dtypes.weakint, 1), UOp.range(3, 0)), (0,)),
   "STAGE: holds dtypes.weakint, which has no size"),
])
def test_nodes_of_kernels(u: UOp, message: str) -> None:
  store = u if u.op is Ops.STORE else UOp(Ops.STORE, dtypes.void, (place, u))
  with pytest.raises(VerifyError, match=message): verify(UOp.sink(store), 1)

def test_kernels() -> None:
  r, out = UOp.range(8, 0), UOp.param(0, f32, 8)
  good = UOp.sink(out.index(r).store(r.cast(f32), r), arg=KernelInfo("k"))
  verify(good)
  with pytest.raises(VerifyError, match="ranges .* are closed by nothing"):
    verify(UOp.sink(out.index(r).store(r.cast(f32))))
  with pytest.raises(VerifyError, match="slot 0 is"):
    verify(UOp.sink(out.index(r).store(UOp.param(0, f32, 9).index(r).load(), r)))
  verify(UOp.sink(out.index(r).store(r.cast(f32))), 1)

def test_products_of_four_bytes_are_accepted() -> None:
  total = UOp.param(0, i32, 8).index(0)
  for a in (i, j):
    for b in (i, j): verify(UOp.sink(total.store(UOp(Ops.DOT4, i32, (a, b, i)))), 1)
  b = Builder("dot")
  out = b.param(0, i32, 8)
  b.store(out, 0, b.add(UOp(Ops.DOT4, i32.vec(4), (i4, UOp.const(dtypes.uint32.vec(4), 1), i4))))
  verify(b.program(), 1)

t = UOp(Ops.BUFFER, f32, (), (0, "CPU", 12))
def reshaped(*dims: int) -> UOp: return UOp(Ops.RESHAPE, f32, (t, *to_indices(dims)))
m = reshaped(3, 4)
TWO = ("CPU", "CPU:1")
several = UOp(Ops.BUFFER, f32, (), (1, TWO, 12))

@pytest.mark.parametrize(("u", "message"), [
  (reshaped(5, 2), "RESHAPE: .* changes the number of elements"),
  (UOp(Ops.EXPAND, f32, (m, *to_indices((6, 4)))), "does not expand"),
  (UOp(Ops.PERMUTE, f32, (m,), (0, 0)), "does not order the axes"), (UOp(Ops.FLIP, f32, (m,), (2,)), "axes"),
  (UOp(Ops.PAD, f32, (m, *to_indices((1, 1)))), "2 numbers for the 2 axes"),
  (UOp(Ops.PAD, f32, (m, *to_indices((-1, 0, 0, 0)))), "negative amount"),
  (UOp(Ops.SHRINK, f32, (m, *to_indices((0, 4, 0, 4)))), "is not inside of"),
  (UOp(Ops.REDUCE_AXIS, f32, (m,), (Ops.ADD, (5,))), "axes"),
  (UOp(Ops.REDUCE_AXIS, f32, (m,), (Ops.SUB, (0,))), "does not fold with"),
  (UOp(Ops.ADD, f32, (m, t)), "operands of shapes"),
  (UOp(Ops.GATHER, f32, (m, reshaped(2, 6).cast(i32)), 0), "index of shape"),
  (UOp(Ops.COPY, f32, (t,)), "not .value, DEVICE."),
  (UOp(Ops.LOAD, f32, (t,)), "not an operation of a tensor graph"),
  (UOp(Ops.MULTI, f32, (t,), 0), "not a value on several devices"),
  (UOp(Ops.MULTI, f32, (several,), 1), "axis 1 of"), (UOp(Ops.COPY, f32, (t, UOp(Ops.DEVICE, arg="CPU")), 0),
                                                      "0 needs several devices"),
  (UOp(Ops.COPY, f32, (t, UOp(Ops.DEVICE, arg=TWO)), "swap"), "'swap' needs several devices"),
  (UOp(Ops.COPY, f32, (t, UOp(Ops.DEVICE, arg=("CPU",)))), "no name of a device"),
])
def test_tensor_graphs(u: UOp, message: str) -> None:
  with pytest.raises(VerifyError, match=message): verify(u)

def test_a_tensor_graph_is_accepted() -> None:
  u = UOp(Ops.REDUCE_AXIS, f32, (UOp(Ops.PERMUTE, f32, (m + m,), (1, 0)),), (Ops.ADD, (0,)))
  verify(u)
  n = UOp.variable("n", 1, 3)
  verify(UOp(Ops.SHRINK, f32, (m, *to_indices((0, n, 0, 4)))))
  verify(UOp(Ops.COPY, f32, (UOp(Ops.MULTI, f32, (several,), 0), UOp(Ops.DEVICE, arg=TWO))))

def test_level_zero_checks_nothing() -> None: verify(UOp(Ops.ADD, f32, (x,)), 0)
