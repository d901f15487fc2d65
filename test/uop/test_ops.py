"""Nodes: interning, structure, walks of deep graphs, arithmetic of users."""
from __future__ import annotations
import copy
import gc
import math
import pickle
import random

import numpy as np
import pytest

from generators.expressions import value_at
from tinyhw import trace
from tinyhw.dtype import dtypes
from tinyhw.errors import ArgumentError, DTypeError, SymbolicError, UnknownValueError, VerifyError
from tinyhw.uop import ops
from tinyhw.uop.enums import Ops
from tinyhw.uop.evaluate.evaluate import evaluate
from tinyhw.uop.ops import KernelInfo, UOp, Variable, resolve, same_shape, sint_prod, to_index, to_indices
from tinyhw.uop.text import parse, show

a, b = Variable("a", 0, 10), Variable("b", -5, 5)
f = UOp.variable("f", 0, 1).cast(dtypes.float32)

# ***** interning *****

def test_equal_nodes_are_one_object() -> None:
  assert a + b * 2 is a + b * 2 and a + b is not b + a and Variable("a", 0, 10) is a
  assert UOp(Ops.ADD, a.dtype, (a, b), tag=1) is not a + b and UOp(Ops.ADD, a.dtype, (a, b), tag=1).tag == 1

def test_constants_are_told_apart() -> None:
  zero, negative = UOp.const(dtypes.float32, 0.0), UOp.const(dtypes.float32, -0.0)
  assert zero is not negative and math.copysign(1.0, negative.arg) < 0 < math.copysign(1.0, zero.arg)
  nan = UOp.const(dtypes.float32, math.nan)
  assert nan is UOp.const(dtypes.float32, float("nan")) and nan.arg != nan.arg
  assert UOp.const(dtypes.int32, 1) is not UOp.const(dtypes.bool, True) and UOp.const(dtypes.int32,
                                                                                      True).arg.__class__ is int

def test_copies_and_pickles_are_the_same_node() -> None:
  u = (a + b) % 3
  assert copy.copy(u) is u and copy.deepcopy([u])[0] is u and pickle.loads(pickle.dumps(u)) is u

def test_replace() -> None:
  u = a + b
  assert u.replace(op=Ops.MUL) is a * b and u.replace(src=(b, a)) is b + a and u.replace() is u
  with pytest.raises(TypeError, match="no source"): u.replace(source=(b, a))

def test_repr_names_sources() -> None: assert repr(a + 3) == "UOp(Ops.ADD, dtypes.weakint, (<DEFINE_VAR>, 3), None)"

# ***** walks *****

def test_toposort_has_sources_first() -> None:
  u = (a + b) * (a - b)
  order = list(u.toposort())
  assert order[-1] is u and len(set(order)) == len(order) and all(order.index(s) < order.index(n) for n in order
                                                                  for s in n.src)
  assert list(u.toposort(lambda n: n.op is not Ops.ADD)) == [a + b, a - b, u]

def test_substitute() -> None:
  assert (((a + 1) * b).substitute({a: b}) is (b + 1) * b and (a + b).substitute({a: b, b: a}) is b + a
          and a.substitute({}) is a)
  assert ((a + 1) * 2).substitute({a + 1: a}) is a * 2 and a.substitute({a: b}) is b

def test_substitute_keeps_origins() -> None:
  u = a * 91 + 2
  trace.follow(u, ("model.py", 3, "forward"))
  try: assert trace.origin(u.substitute({a: b})) == ("model.py", 3, "forward")
  finally: trace.unfollow()

@pytest.mark.slow
def test_depth_does_not_matter() -> None:
  deep = a
  for i in range(100_000): deep = UOp(Ops.ADD, deep.dtype, (deep, b))
  assert (len(deep.toposort()) == 100_002 and deep.vmax == 10 + 5 * 100_000 and deep.ranges == () and deep.shape == ()
          and deep.device is None)
  assert deep.substitute({a: b}).vmin == -5 * 100_001 and sum(1 for _ in deep.split_add()) == 100_001
  del deep
  gc.collect()

# ***** arithmetic *****

def test_python_numbers_take_the_type_of_the_other() -> None:
  assert (a + 1).dtype is dtypes.weakint and (f + 1).src[1].arg == 1.0 and (f + 1).src[1].dtype is dtypes.float32
  # as in Python: the type of the tensor next to it
  assert (a * 0.5).dtype is dtypes.weakfloat and (a * 0.5).src[1].arg == 0.5
  assert (UOp.range(4, 0) * 0.5).dtype is dtypes.default_float and (f * (a * 0.5)).dtype is dtypes.float32
  condition = a < b
  assert condition.where(1, 2).dtype is dtypes.weakint and condition.where(1.5, 2.5).dtype is dtypes.weakfloat
  assert condition.where(f, 0).dtype is dtypes.float32

def test_types_promote() -> None:
  i8, u8 = UOp.variable("i", 0, 9, dtypes.int8), UOp.variable("u", 0, 9, dtypes.uint8)
  assert ((i8 + u8).dtype is dtypes.int16 and (i8 + f).dtype is dtypes.float32 and (i8 + a).dtype is dtypes.weakint
          and (a < b).dtype is dtypes.bool)
  with pytest.raises(DTypeError, match="4 and 1 lanes"): UOp.const(dtypes.float32.vec(4), 1.0) + f
  assert (UOp.const(dtypes.float32.vec(4), 1.0) < 2.0).dtype is dtypes.bool.vec(4) and i8.cast(dtypes.int8) is i8

def test_operators_compute_what_python_computes() -> None:
  for i in range(11):
    for j in range(-5, 6):
      point = {a: i, b: j}
      expected = [(a + b, i + j), (a - b, i - j), (5 - a, 5 - i), (a * b, i * j), (a // 3, i // 3), (b // 3, j // 3),
                  (b % 4, j % 4),
                  (7 // (a + 1), 7 // (i + 1)),
                  (20 % (a + 1), 20 % (i + 1)), (-a, -i), (a & 6, i & 6), (a | 6, i | 6), (a ^ 6, i ^ 6),
                  (a << 2, i << 2),
                  (b >> 1, j >> 1), (1 << a, 1 << i),
                  (1000 >> a, 1000 >> i), (a < b, i < j), (a > b, i > j), (a <= b, i <= j), (a >= b, i >= j),
                  (a.eq(b), i == j), (a.ne(b), i != j),
                  (a.maximum(b), max(i, j)), (a.minimum(b), min(i, j)), ((a < b).where(a, b), i if i < j else j),
                  (~a, ~i), (~(a < b), not i < j)]
      for u, value in expected: assert value_at(u, point) == value, u

@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8])
def test_minimum_at_the_ends_of_a_type(dtype: dtypes.__class__) -> None:  # type: ignore[name-defined]
  x, y = (UOp.variable(name, int(dtype.min), int(dtype.max), dtype) for name in "xy")
  ends = [dtype.min, dtype.min + 1, 0, 1, dtype.max - 1, dtype.max]
  for i in ends:
    for j in ends: assert value_at(x.minimum(y), {x: i, y: j}) == min(i, j)

def test_truth_of_comparisons() -> None:
  assert (bool(a < 11) and not (a > 10) and int(a.const_like(4)) == 4 and resolve(a < 5) and not resolve(a < 5, False)
          and resolve(False) is False)
  with pytest.raises(UnknownValueError, match=r"the truth of \(a<5\) is not known"): bool(a < 5)
  with pytest.raises(UnknownValueError, match="a has no value yet: bounds 0..10"): int(a)

# ***** variables *****

def test_bind() -> None:
  bound = a.bind(3)
  assert bound.unbind() == (a, 3) and bound.op is Ops.BIND and (bound.vmin, bound.vmax) == (0, 10) and a.expr == "a"
  assert (a + b * a).variables() == [a, b]
  with pytest.raises(SymbolicError, match="cannot bind 11 to a: it must be in 0..10"): a.bind(11)
  with pytest.raises(SymbolicError, match=r"cannot bind 4 to a\[=3\]: only a Variable that has no value yet can be "
                     r"bound; unbind\(\)"):
    bound.bind(4)
  for value in (2.5, 2.0, "2", None, np.array([3])):
    with pytest.raises(SymbolicError, match="cannot bind .* to a: its value is a whole number"):
      a.bind(value)  # type: ignore[arg-type]  # users do this
  with pytest.raises(SymbolicError, match="it has no value"): a.unbind()
  with pytest.raises(SymbolicError, match="cannot be in 5..3"): Variable("x", 5, 3)

def test_variables_that_are_multiples() -> None:
  n, a = Variable("n", 1, 17, multiple_of=4, param=True), Variable("a", 0, 9)
  assert ((n.vmin, n.vmax) == (4, 16) and n.bind(8).unbind() == (n, 8)
          and Variable("n", 1, 17) is Variable("n", 1, 17, multiple_of=1))
  for u, text in ((n % 4, "0"), ((n + 3) // 4, "(n//4)"), (n * 3 // 12, "(n//4)"), (n // 2 * 2, "n"),
                  (n // 8 * 8 + n % 8, "n"), (n < 5, "(n<5)"),
                  ((n + a) // 4, "((a//4)+(n//4))"), ((n + 1).eq(n * 2), "False"),
                  (n.bind(8) // 4 * 4 - n.bind(8), "0")):
    assert u.render() == text
  assert (n * 3).const_factor() == 12 and parse(show(n)) is n
  rng = random.Random(1)
  def expression(depth: int) -> UOp:
    if not depth: return rng.choice([n, a, n + rng.randint(-9, 9)])
    x, kind = expression(depth - 1), rng.randrange(5)
    if kind < 2: return x + expression(depth - 1) * (1 - 2 * kind)
    return (x * rng.randint(-4, 6) if kind == 2 else x // rng.choice([2, 3, 4, 8, 12]) if kind == 3
            else x % rng.choice([2, 3, 4, 8, 12]))
  for _ in range(400):
    u = expression(rng.randint(1, 4))
    for values in ({"n": 4, "a": 3}, {"n": 12, "a": 0}, {"n": 16, "a": 9}):
      assert eval(u.render(False), values) == eval(u.simplify().render(False), values)

def test_variables_that_cannot_be() -> None:
  n = Variable("n", 1, 17, multiple_of=4)
  with pytest.raises(SymbolicError, match="cannot bind 6 to n: it must be a multiple of 4"): n.bind(6)
  with pytest.raises(SymbolicError, match="5..7 has no multiple of 4"): Variable("n", 5, 7, multiple_of=4)
  with pytest.raises(SymbolicError, match="the factor at least 1"): Variable("n", 5, 7, multiple_of=0)
  with pytest.raises(VerifyError, match="no multiple of 4"):
    evaluate(UOp.sink(UOp.param(0, dtypes.int32, 1).index(0).store(n.cast(dtypes.int32))),
             {0: [0]}, {"n": 6})

def test_metadata_and_storage_of_nodes() -> None:
  line = ("model.py", 3, "forward")
  node = UOp(Ops.BUFFER, dtypes.int8, (), (("test", 1), "PYTHON", 4), metadata=line, _buffer="storage")
  assert (node is UOp(Ops.BUFFER, dtypes.int8, (), (("test", 1), "PYTHON", 4)) and node.storage == "storage"
          and node.metadata == line)
  assert UOp(Ops.CONST, dtypes.int8, (), 99).metadata is None
  with pytest.raises(ArgumentError, match="only a BUFFER has storage, and this is CONST"):
    UOp(Ops.CONST, dtypes.int8, (), 1, _buffer="storage")
  with pytest.raises(ArgumentError, match="has other storage"):
    UOp(Ops.BUFFER, dtypes.int8, (), (("test", 1), "PYTHON", 4), _buffer="other")

def test_shape_helpers() -> None:
  assert sint_prod([2, 3]) == 6 and sint_prod([2, a, 3]) is a * 6 and sint_prod([]) == 1
  assert to_index(3) is a.const_like(3) and to_indices((a, 1)) == (a, a.const_like(1))
  assert same_shape((2, a), (2, a)) and not same_shape((2, a), (2, b)) and not same_shape((2,), (2, 3))

def test_kernel_builders() -> None:
  place = UOp.param(1, dtypes.float32, 10).index(a)
  gated = place.load(a < 3, 1.5)
  assert place.load().src == (place,) and gated.src[2].arg == 1.5 and place.store(f,
                                                                                  gate=a < 3).src == (place, f, a < 3)
  assert f.reduce(Ops.ADD) is f and UOp.sink(place.store(f), arg=KernelInfo("k")).arg.name == "k"
  with pytest.raises(AssertionError, match="wants an INDEX"): f.load()
  with pytest.raises(AssertionError, match="wants an INDEX"): f.store(f)

def test_key_is_a_digest_of_the_structure() -> None:
  assert (a + b).key == (a + b).key != (b + a).key and len((a + b).key) >= 16

def test_no_other_attribute() -> None:
  with pytest.raises(AttributeError, match="no attribute 'no_such_name'"): _ = ops.no_such_name
