"""The normal form of index expressions: random expressions keep their value, and a tile's copies share a common node.
"""
import random

from hypothesis import given, strategies as st

from test.codegen.kernels import axis
from tinyhw.codegen.kernel.affine import NOTHING, common_factor, linear, make, number, total, truth
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

R, S, T = axis(5, 0), axis(7, 1), axis(4, 2)
weakint = dtypes.weakint

def index(op: Ops, a: UOp, b: UOp | int) -> UOp: return make(op, weakint, (a, b if isinstance(b, UOp) else number(b)))

def value(u: UOp, at: dict[UOp, int]) -> int:
  if u in at: return at[u]
  if u.op is Ops.CONST: return int(u.arg)
  a = [value(s, at) for s in u.src]
  return {Ops.ADD: lambda: a[0] + a[1], Ops.MUL: lambda: a[0] * a[1], Ops.IDIV: lambda: a[0] // a[1],
          Ops.MOD: lambda: a[0] % a[1],
          Ops.SUB: lambda: a[0] - a[1], Ops.NEG: lambda: -a[0], Ops.MAX: lambda: max(a)}[u.op]()

@given(st.integers(0, 1 << 30))
def test_random_expressions_keep_their_value(seed: int) -> None:
  rng = random.Random(seed)
  at = {r: rng.randrange(r.src[0].arg) for r in (R, S, T)}
  pool: list[tuple[UOp, int]] = [(r, at[r]) for r in at] + [(number(k), k) for k in (0, 1, 3, 8, -2)]
  for _ in range(12):
    (a, x), (b, y) = rng.choice(pool), rng.choice(pool)
    op = rng.choice((Ops.ADD, Ops.ADD, Ops.MUL, Ops.SUB, Ops.IDIV, Ops.MOD))
    if op in (Ops.IDIV, Ops.MOD): y = rng.choice((1, 2, 3, 4, 6, 8, 12)); b = number(y)
    result = {Ops.ADD: x + y, Ops.MUL: x * y, Ops.SUB: x - y, Ops.IDIV: x // max(y, 1), Ops.MOD: x % max(y, 1)}[op]
    made = index(op, a, b)
    assert value(made, at) == result and made.vmin <= result <= made.vmax
    pool.append((made, result))

def test_constants_go_outermost() -> None:
  base = index(Ops.ADD, index(Ops.MUL, R, 16), S)
  for k in range(1, 4):
    copy = index(Ops.ADD, index(Ops.ADD, index(Ops.MUL, R, 16), k), S)
    assert copy.op is Ops.ADD and copy.src[0] is base and copy.src[1].arg == k
  assert index(Ops.MUL, index(Ops.ADD, R, 3), 4) is index(Ops.ADD, index(Ops.MUL, R, 4), 12)

def test_divisions_are_resolved_where_bounds_allow_it() -> None:
  flat = index(Ops.ADD, index(Ops.MUL, R, 16), 5)
  assert index(Ops.IDIV, flat, 4) is index(Ops.ADD, index(Ops.MUL, R, 4), 1) and index(Ops.MOD, flat, 4) is number(1)
  lane = index(Ops.ADD, index(Ops.MUL, R, 4), T)
  assert index(Ops.MOD, lane, 16) is index(Ops.ADD, index(Ops.MUL, index(Ops.MOD, R, 4), 4), T)
  assert index(Ops.IDIV, lane, 16) is index(Ops.IDIV, R, 4) and index(Ops.IDIV, S, 8) is number(0)
  assert index(Ops.IDIV, number(-7), 2).arg == -4 and index(Ops.IDIV, number(5), number(0)).arg == 0

def test_gates_that_are_decided() -> None:
  place = UOp.param(0, dtypes.float32, 8).index(R)
  zero = UOp.const(dtypes.float32, 0.0)
  load = UOp(Ops.LOAD, dtypes.float32, (place,))
  inside = make(Ops.CMPLT, dtypes.bool, (R, number(5)))
  assert inside is truth(True)
  assert make(Ops.LOAD, dtypes.float32, (place, inside, zero)) is load and make(Ops.LOAD, dtypes.float32,
                                                                                (place, truth(False), zero)) is zero
  assert make(Ops.STORE, dtypes.void, (place, zero, truth(False), R)) is NOTHING
  assert make(Ops.STORE, dtypes.void, (place, zero, inside, R)).src == (place, zero, R)
  unknown = make(Ops.CMPLT, dtypes.bool, (R, number(3)))
  assert make(Ops.AND, dtypes.bool, (truth(True), unknown)) is unknown and make(Ops.OR, dtypes.bool,
                                                                                (unknown, truth(True))) is truth(True)
  assert make(Ops.WHERE, dtypes.float32, (truth(False), load, zero)) is zero

def test_linear_and_total_are_inverse() -> None:
  terms, constant = linear(index(Ops.SUB, index(Ops.ADD, index(Ops.MUL, R, 3), 7), S))
  assert terms == {R: 3, S: -1} and constant == 7 and linear(total(terms, constant)) == (terms, constant)
  assert linear(index(Ops.SUB, R, R)) == ({}, 0)

def test_what_a_sum_is_a_multiple_of() -> None:
  bound = make(Ops.MAX, weakint, (index(Ops.MUL, R, -192), number(-3904)))
  for u, wanted in ((index(Ops.MUL, R, 12), 12), (index(Ops.ADD, index(Ops.MUL, R, 12), index(Ops.MUL, S, 8)), 4),
                    (bound, 64),
                    (index(Ops.SUB, index(Ops.MUL, S, 96), bound), 32), (make(Ops.MAX, weakint, (bound, S)), 1)):
    assert common_factor(linear(u)[0]) == wanted
  assert common_factor({}) == 0
