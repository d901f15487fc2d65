"""Folds of terms."""
from tinyhw.codegen.transform.fold import accumulate, begun, fold_tree
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

F32, I32 = dtypes.float32, dtypes.int32

def test_products_fuse_only_into_float_sums() -> None:
  x, i = UOp.const(F32, 2.0), UOp.const(dtypes.int32, 2)
  product = UOp(Ops.MUL, F32, (x, x))
  assert accumulate(Ops.ADD, x, product).op is Ops.MULACC and accumulate(Ops.MAX, x, product).op is Ops.MAX
  assert accumulate(Ops.ADD, i, UOp(Ops.MUL, dtypes.int32, (i, i))).op is Ops.ADD

def test_a_chain_of_products_of_bytes_starts_with_the_total() -> None:
  total, x, y, zero = UOp.variable("t", 0, 9).cast(I32), UOp.const(I32, 3), UOp.const(I32, 4), UOp.const(I32, 0)
  def dot(last: UOp, *factors: UOp) -> UOp:
    for k in factors: last = UOp(Ops.DOT4, I32, (k, y, last))
    return last
  assert accumulate(Ops.ADD, total, dot(zero, x)) is dot(total, x)
  assert accumulate(Ops.ADD, total, dot(zero, x, y, x)) is dot(total, x, y, x)
  # one that starts with something else
  assert accumulate(Ops.ADD, total, dot(x, y)) is dot(UOp(Ops.ADD, I32, (total, x)), y)
  assert accumulate(Ops.MAX, total, dot(zero, x)) is UOp(Ops.MAX, I32, (total, dot(zero, x)))

def test_a_chain_of_vectors_starts_with_the_total() -> None:
  vector = I32.vec(4)
  total, x = UOp(Ops.BROADCAST, vector, (UOp.variable("t", 0, 9).cast(I32),)), UOp.const(vector, 3)
  made = accumulate(Ops.ADD, total, UOp(Ops.DOT4, vector, (x, x, UOp.const(vector, 0))))
  assert made is UOp(Ops.DOT4, vector, (x, x, total))

def test_trees_are_flat() -> None:
  values = [UOp.variable(str(k), 0, 1) for k in range(5)]
  tree = fold_tree(Ops.ADD, values)
  depth: dict[UOp, int] = {}
  for u in tree.toposort(): depth[u] = 1 + max((depth[s] for s in u.src), default=-1)
  assert depth[tree] == 3

def test_sums_of_floats_start_at_zero() -> None:
  """Terms that are all -0.0 have the sum 0.0. A maximum, and a sum of integers, start with their first term."""
  x, i = UOp.variable("x", 0, 1).cast(F32), UOp.variable("i", 0, 1)
  assert begun(Ops.ADD, x).src[0].arg == 0.0 and begun(Ops.MAX, x) is x and begun(Ops.ADD, i) is i
