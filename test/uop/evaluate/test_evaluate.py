"""Tensor graphs in the interpreter, against NumPy.

Arithmetic itself is tested in test_arithmetic.py, kernels and Programs in test_execute.py.
"""
import itertools

import pytest

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import DTypeError, VerifyError
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import Result, evaluate
from tinyhw.uop.ops import UOp, to_indices

np = pytest.importorskip("numpy")
f32, i32 = dtypes.float32, dtypes.int32
numbers = itertools.count()

def buffer(size: int, dtype: DType = f32) -> UOp: return UOp(Ops.BUFFER, dtype, (), (next(numbers), "CPU", size))
def move(op: Ops, u: UOp, *dims: object) -> UOp: return UOp(op, u.dtype, (u, *to_indices(dims)))
def reshape(u: UOp, *shape: object) -> UOp: return move(Ops.RESHAPE, u, *shape)
def expand(u: UOp, *shape: object) -> UOp: return move(Ops.EXPAND, u, *shape)
def array(r: Result) -> object: return np.array(r.values).reshape(r.shape)

data = np.arange(24, dtype=np.float32)
base = buffer(24)
cube = reshape(base, 2, 3, 4)
shaped = data.reshape(2, 3, 4)
index = buffer(6, i32)
index_data = np.array([2, 0, 7, -1, 1, 2], dtype=np.int32)

@pytest.mark.parametrize(("u", "want"), [
  (base, data), (cube, shaped), (UOp(Ops.PERMUTE, f32, (cube,), (2, 0, 1)), shaped.transpose(2, 0, 1)),
  (UOp(Ops.FLIP, f32, (cube,), (0, 2)), shaped[::-1, :, ::-1]),
  (move(Ops.PAD, cube, 1, 0, 0, 2, 0, 0), np.pad(shaped, ((1, 0), (0, 2), (0, 0)))),
  (move(Ops.SHRINK, cube, 1, 2, 0, 3, 1, 3), shaped[1:2, 0:3, 1:3]),
  (expand(reshape(base, 24, 1), 24, 2), np.repeat(data[:, None], 2, 1)),
  (UOp(Ops.REDUCE_AXIS, f32, (cube,), (Ops.ADD, (0, 2))), shaped.sum((0, 2), keepdims=True)),
  (UOp(Ops.REDUCE_AXIS, f32, (cube,), (Ops.MAX, (1,))), shaped.max(1, keepdims=True)),
  (UOp(Ops.REDUCE_AXIS, f32, (move(Ops.SHRINK, cube, 0, 0, 0, 3, 0, 4),), (Ops.MUL, (0,))), np.ones((1, 3, 4))),
  (cube * 2.0 + cube, shaped * 3), ((cube < 5.0).where(cube, 0.0), np.where(shaped < 5, shaped, 0)),
  (UOp.const(f32, 2.5), np.array(2.5)),
  (cube.cast(dtypes.uint8).bitcast(dtypes.int8), shaped.astype(np.int8)), (UOp(Ops.DETACH, f32, (cube,)), shaped),
  (UOp(Ops.IOTA, i32, to_indices((4,))), np.arange(4)),
], ids=lambda x: x.op.name if isinstance(x, UOp) else "")
def test_operations(u: UOp, want: object) -> None:
  got = evaluate(u, {base: data, index: index_data})
  assert got.shape == want.shape and (array(got) == want).all()

def test_gather_reads_zero_outside() -> None:
  u = UOp(Ops.GATHER, f32, (reshape(base, 4, 6), expand(reshape(index, 1, 6), 4, 6)), 0)
  want = np.zeros((4, 6), np.float32)
  for r, c in itertools.product(range(4), range(6)):
    if 0 <= index_data[c] < 4: want[r, c] = data.reshape(4, 6)[index_data[c], c]
  assert (array(evaluate(u, {base: data, index: index_data})) == want).all()

def test_storage_of_every_kind_and_type() -> None:
  b = buffer(3, dtypes.bfloat16)
  assert evaluate(b, {b: bytes.fromhex("803f 0040 00c0")}).values == [1.0, 2.0, -2.0]
  assert evaluate(b, {b: [1.0, 2.0, 3.0]}).values == [1.0, 2.0, 3.0]
  h = buffer(2, dtypes.float16)
  assert evaluate(h * 2.0, {h: np.array([1.5, 60000], np.float16)}).values == [3.0, float("inf")]

def test_assign_writes_a_view_and_reads_come_before() -> None:
  b = buffer(6)
  memory = bytearray(np.arange(6, dtype=np.float32).tobytes())
  target = move(Ops.SHRINK, reshape(b, 2, 3), 1, 2, 0, 2)
  assign = UOp(Ops.ASSIGN, f32, (target, UOp.const(f32, 9.0)))
  before, after = evaluate(UOp.sink(assign, b + 0.0), {b: memory})[::-1]
  assert np.frombuffer(memory, np.float32).tolist() == [0, 1, 2, 9, 9, 5]
  assert before.values == [0, 1, 2, 3, 4, 5] and after == ([9.0, 9.0], (1, 2))
  again = UOp(Ops.ASSIGN, f32, (assign, assign + 1.0))
  evaluate(again, {b: memory})
  assert np.frombuffer(memory, np.float32).tolist() == [0, 1, 2, 10, 10, 5]

def test_parts_on_several_devices() -> None:
  b = UOp(Ops.BUFFER, f32, (), (1, ("CPU", "CPU:1"), 4))
  columns, whole = UOp(Ops.MULTI, f32, (reshape(b, 2, 2),), 1), UOp(Ops.MULTI, f32, (b,))
  memories = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]
  assert evaluate(columns, {b: memories}) == ([1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0], (2, 4))
  evaluate(UOp(Ops.ASSIGN, f32, (move(Ops.SHRINK, columns, 0, 1, 1, 3), UOp.const(f32, 0.0))), {b: memories})
  assert memories == [[1.0, 0.0, 3.0, 4.0], [0.0, 6.0, 7.0, 8.0]]
  evaluate(UOp(Ops.ASSIGN, f32, (whole, UOp.const(f32, 9.0))), {b: memories})
  assert memories == [[9.0] * 4] * 2 and evaluate(whole, {b: memories}).values == [9.0] * 4
  stacked = UOp(Ops.COPY, f32, (whole, UOp(Ops.DEVICE, arg="CPU")), "stack")
  with pytest.raises(VerifyError, match="'stack' is of what differs from device to device"):
    evaluate(stacked, {b: memories})

def test_symbolic_sizes() -> None:
  n = UOp.variable("n", 1, 4)
  u = move(Ops.SHRINK, reshape(base, 4, 6), 0, n, 0, 6)
  assert (array(evaluate(u, {base: data}, {"n": 2})) == data.reshape(4, 6)[:2]).all()
  bound = move(Ops.SHRINK, reshape(base, 4, 6), 0, n.bind(3), 0, 6)
  assert evaluate(UOp(Ops.REDUCE_AXIS, f32, (bound,), (Ops.ADD, (0, 1))),
                  {base: data}).values == [float(data[:18].sum())]
  with pytest.raises(VerifyError, match="variable n has no value"): evaluate(u, {base: data})

def test_wrong_graphs() -> None:
  with pytest.raises(VerifyError, match="no storage was given"): evaluate(base)
  with pytest.raises(VerifyError, match="storage of 3 elements"): evaluate(base, {base: [1.0, 2.0, 3.0]})
  with pytest.raises(VerifyError, match="cannot reshape"): evaluate(reshape(base, 5, 5), {base: data})
  with pytest.raises(VerifyError, match="cannot expand"): evaluate(expand(cube, 2, 3, 5), {base: data})
  with pytest.raises(VerifyError, match="cannot shrink"): evaluate(move(Ops.SHRINK, base, 0, 25), {base: data})
  with pytest.raises(VerifyError, match="insert EXPAND"):
    evaluate(UOp(Ops.ADD, f32, (base, reshape(base, 2, 12))), {base: data})
  with pytest.raises(VerifyError, match="LOAD has no value in a tensor graph"):
    evaluate(UOp(Ops.LOAD, f32, (base,)), {base: data})
  with pytest.raises(DTypeError, match="IDIV has no meaning"): evaluate(UOp(Ops.IDIV, f32, (base, base)), {base: data})
