"""Simplification: documented examples, limits for floats, and random expressions compared with their values."""
from __future__ import annotations
import math
import random

from hypothesis import given, settings, strategies as st
import pytest

from generators.expressions import condition, integer, random_point, same, value_at, variables
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp, Variable
from tinyhw.uop.rewrite.rewrite import graph_rewrite
from tinyhw.uop.symbolic.symbolic import simplify, symbolic, symbolic_simple
from tinyhw.uop.text import render

a, b, c = Variable("a", 0, 10), Variable("b", 0, 19), Variable("c", 0, 3)
f, g = (UOp(Ops.DEFINE_VAR, dtypes.float32, (), (name, -math.inf, math.inf)) for name in "fg")
p, q = (UOp(Ops.DEFINE_VAR, dtypes.bool, (), (name, False, True)) for name in "pq")
n32 = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("n", -2**31, 2**31 - 1))

def test_documented_variables() -> None:
  assert (a * 10).vmin == 0 and (a * 10).vmax == 100
  assert simplify((a + b * 10) % 10) is simplify(a % 10)
  assert simplify((a * 40 + b) // 20) is simplify(a * 2)

# text of an expression -> text of its simplest form
EXAMPLES = {
  "a*6//3": "(a*2)", "a%11": "a", "(a*4+c)//4": "a", "(a*4+c)%4": "c", "(a*4+2)//6": "(((a*2)+1)//3)", "(a//3)//4": "0",
  "b//3//2": "(b//6)",
  "b//4*4+b%4": "b", "b//4%3*4+b%4": "(b%12)", "b-b//4*4": "(b%4)", "b%12//4": "((b//4)%3)", "b%12%4": "(b%4)",
  "(b+20)%10": "(b%10)",
  "a*3+b+a*2": "((a*5)+b)", "a+b-a": "b", "(a+b)*3": "((a*3)+(b*3))", "2*a+(3*a+1)*2": "((a*8)+2)", "0-a+a": "0",
  "(a+13)//10": "(((a+3)//10)+1)", "(c*-1+9)%10": "((c*-1)+9)", "(13*c+a)//13": "c", "a*c//c": "((a*c)//c)",
  "a//-3": "((a*-1)//3)",
  "a*1+0": "a", "a*0": "0", "a//1": "a", "a%1": "0", "a//0": "0", "a%0": "0", "a%a": "0", "(a+1)//(a+1)": "1",
  "a<11": "True", "a<0": "False", "a<3": "(a<3)", "a*4+c<16": "(a<4)", "b//4<3": "(b<12)", "2<b//4": "(11<b)",
  "a+3<b+5": "(a<(b+2))",
  "a*2<7": "(a<4)", "a==20": "False", "a*4==b*4+2": "False", "a+3==5": "(a==2)", "a!=a": "False", "a*-1<-3": "(3<a)",
  "a-b<0": "(a<b)",
  "a<3 and a<5": "(a<3)", "a<3 and 5<a": "False", "a<3 and not a<3": "False", "a<3 or not a<3": "True",
  "not a<3": "(2<a)", "not a==3": "(a!=3)",
  "max(a, 10)": "10", "max(a, a+1)": "(a+1)", "max(a, 3)": "max(a, 3)", "max(max(a, 3), 5)": "max(a, 5)",
  "max(4*c+3, 2)": "((c*4)+3)",

}
_NAMES = {"a": a, "b": b, "c": c}

def expression(text: str) -> UOp:
  """The expression of Python text in this file's tables."""
  import ast
  build = {ast.Add: lambda x, y: x + y, ast.Sub: lambda x, y: x - y, ast.Mult: lambda x, y: x * y,
           ast.FloorDiv: lambda x, y: x // y,
           ast.Mod: lambda x, y: x % y, ast.Lt: lambda x, y: x < y, ast.Eq: lambda x, y: x.eq(y), ast.NotEq: lambda x,
           y: x.ne(y)}
  def walk(node: ast.AST) -> UOp:
    if isinstance(node, ast.Name): return _NAMES[node.id]
    if isinstance(node, ast.Constant): return UOp.const(dtypes.weakint, node.value)
    if isinstance(node, ast.BinOp): return build[type(node.op)](walk(node.left), walk(node.right))
    if isinstance(node, ast.Compare): return build[type(node.ops[0])](walk(node.left), walk(node.comparators[0]))
    if isinstance(node, ast.Call): return walk(node.args[0]).maximum(walk(node.args[1]))
    if isinstance(node, ast.UnaryOp):
      return walk(node.operand).logical_not() if isinstance(node.op, ast.Not) else walk(node.operand) * -1
    assert isinstance(node, ast.BoolOp)
    x, y = (walk(v) for v in node.values)
    return x & y if isinstance(node.op, ast.And) else x | y
  return walk(ast.parse(text, mode="eval").body)

@pytest.mark.parametrize("text", [t for t in EXAMPLES if t != "(a<3)*0"])
def test_example(text: str) -> None: assert render(simplify(expression(text))) == EXAMPLES[text]

def test_ranges_below_symbolic_ends() -> None:
  n, m = Variable("n", 1, 100), Variable("m", 1, 100)
  i, j, k = UOp.range(n, 0), UOp.range(m, 1), UOp.range(8, 2)
  assert simplify((i * m + j) // m) is i and simplify((i * m + j) % m) is j
  assert simplify(((i * m + j) * 8 + k) // (m * 8)) is i and simplify((i * m + j) // (n * m)) is i.const_like(0)
  assert simplify((i * m + j) % (n * m)) is simplify(i * m + j)
  assert simplify(i < n).arg is True and simplify(j % n) is j % n and simplify(n // n) is n.const_like(1)

def test_variable_bound_to_a_value_stays_symbolic() -> None:
  bound = a.bind(3)
  assert simplify(bound + 1).op is Ops.ADD and simplify(bound < 11).arg is True

def test_where() -> None:
  x, y = a + 1, b + 2
  assert (simplify(p.where(x, x)) is x and simplify((a < 20).where(x, y)) is x
          and simplify(p.logical_not().where(x, y)) is p.where(y, x))
  assert (simplify(p.where(p.where(x, y), b)) is p.where(x, b)
          and simplify(p.where(q.where(x, y), y)) is simplify((p & q).where(x, y)))
  assert simplify(p.where(UOp.const(dtypes.bool, True), False)) is p
  assert simplify(p.where(UOp.const(dtypes.bool, False), True)) is p.logical_not()
  assert simplify(p.where(a.const_like(1), 2) + 3) is p.where(a.const_like(4), 5)

def test_bool_algebra() -> None:
  true, false = p.const_like(True), p.const_like(False)
  for u, simple in [(p & true, p), (p & false, false), (p | true, true), (p | false, p), (p ^ false, p), (p ^ p, false),
                    (p & p, p),
                    (p.logical_not().logical_not(), p), (p & (p | q), p), (p | (p & q), p),
                    (p & p.logical_not(), false), (p | p.logical_not(), true),
                    (p + q, p | q), (p * q, p & q), (p.maximum(q), p | q), (p.ne(q), p ^ q),
                    (p.ne(true), p.logical_not()), (p.eq(true), p)]:
    assert simplify(u) is simplify(simple), render(u)

def test_casts() -> None:
  i8, i32 = UOp(Ops.DEFINE_VAR, dtypes.int8, (), ("i", -128, 127)), n32
  assert simplify(i8.cast(dtypes.int32).cast(dtypes.int64)) is i8.cast(dtypes.int64)
  assert (simplify(i8.cast(dtypes.int32).cast(dtypes.int8)) is i8
          and simplify(i8.cast(dtypes.float32).cast(dtypes.int8)) is i8)
  assert simplify(i32.cast(dtypes.int16).cast(dtypes.int8)) is i32.cast(dtypes.int8)
  for stays in (i32.cast(dtypes.float32).cast(dtypes.int32), f.cast(dtypes.float16).cast(dtypes.float32)):
    assert simplify(stays) is stays
  assert (simplify(f.const_like(3.7).cast(dtypes.int32)) is n32.const_like(3)
          and simplify(n32.const_like(300).cast(dtypes.uint8)).arg == 44)
  assert simplify(p.cast(dtypes.float32).ne(0.0)) is p and simplify(p.cast(dtypes.int32).eq(0)) is p.logical_not()
  assert (simplify(f.const_like(1.0).bitcast(dtypes.int32)).arg == 0x3f800000
          and simplify(f.bitcast(dtypes.int32).bitcast(dtypes.float32)) is f)
  assert simplify(UOp.const(dtypes.int32, -1).bitcast(dtypes.float32)).op is Ops.BITCAST  # NaN
  assert simplify(a.cast(dtypes.int32).cast(dtypes.weakint)) is a

def test_lanes() -> None:
  v4 = dtypes.float32.vec(4)
  vector = UOp(Ops.BROADCAST, v4, (f,))
  lanes = tuple(UOp(Ops.GEP, dtypes.float32, (UOp(Ops.PARAM, v4, (), (0, 4)),), i) for i in range(4))
  assert simplify(UOp(Ops.GEP, dtypes.float32, (vector,), 2)) is f
  assert simplify(UOp(Ops.GEP, dtypes.float32, (UOp(Ops.VECTORIZE, v4, (f, g, f, g)),), 3)) is g
  v2 = dtypes.float32.vec(2)
  assert simplify(UOp(Ops.GEP, v2, (vector,), 2)) is UOp(Ops.BROADCAST, v2, (f,))
  assert simplify(UOp(Ops.GEP, v2, (UOp(Ops.VECTORIZE, v4, (f, g, g, f)),), 2)).src == (g, f)
  assert (simplify(UOp(Ops.VECTORIZE, v4, lanes)) is lanes[0].src[0]
          and simplify(UOp(Ops.VECTORIZE, v4, lanes[::-1])).op is Ops.VECTORIZE)
  two = f.const_like(2.0)
  assert (simplify(UOp(Ops.VECTORIZE, v4, (two,) * 4)) is UOp.const(v4, 2.0)
          and simplify(UOp(Ops.BROADCAST, v4, (two,))) is UOp.const(v4, 2.0))
  assert (simplify(vector * UOp.const(v4, 1.0)) is vector
          and simplify(UOp.const(v4, 2.0) + UOp.const(v4, 3.0)) is UOp.const(v4, 5.0))

def test_gates_of_loads() -> None:
  place = UOp.param(0, dtypes.float32, 16).index(a)
  assert simplify(place.load(a < 20)) is place.load() and simplify(place.load(a < 0, 1.5)) is f.const_like(1.5)

# ***** floats: only what IEEE 754 allows *****

def test_float_identities_that_hold() -> None:
  for u, simple in [(f * 1.0, f), (f / 1.0, f), (f + -0.0, f), (f.alu(Ops.SUB, f.const_like(0.0)), f), (-(-f), f),
                    (f / 4.0, f * 0.25),
                    (f / -2.0, f * -0.5),
                    (a.cast(dtypes.float32) + 0.0, a.cast(dtypes.float32)), (f * f + 0.0, f * f),
                    (f < f, p.const_like(False)), (f.maximum(f), f),
                    (f.eq(g).logical_not(), f.ne(g)), (f.alu(Ops.EXP2) + 0.0, f.alu(Ops.EXP2))]:
    assert simplify(u) is simple, render(u)

@pytest.mark.parametrize("u", [f * 0.0, f + 0.0, f - f, f / f, f.eq(f), f.ne(f), (f + 1.0) + 2.0, (f * 3.0) * 2.0,
                               (f < g).logical_not(), f / 3.0,
                               f / 2.0**127, f.maximum(g), f + g, g + f, f * g + f, f * -1.0,
                               f.alu(Ops.SUB, f.const_like(-0.0))])
def test_float_expressions_that_stay(u: UOp) -> None: assert simplify(u) is u

SPECIAL = (0.0, -0.0, 1.0, -1.5, 0.1, 65504.0, 1e-40, 3e38, math.inf, -math.inf, math.nan)

@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
def test_float_rules_keep_special_values(dtype: DType) -> None:
  x, y = (UOp(Ops.DEFINE_VAR, dtype, (), (name, -math.inf, math.inf)) for name in "xy")
  numbers = [UOp.const(dtype, k) for k in (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, math.inf)]
  for op in (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE):
    with_numbers = [e for k in numbers for e in (x.alu(op, k), k.alu(op, x), (x * x).alu(op, k), (-x).alu(op, k))]
    extremes = [x.alu(Ops.NEG).maximum(k).alu(Ops.NEG) for k in numbers] + [(k < x).alu(Ops.WHERE, x, x.maximum(k))
                                                                            for k in numbers]
    extremes += [x.alu(Ops.NEG).maximum((x * y).alu(Ops.NEG)).alu(Ops.NEG),
                 (x < x * y).alu(Ops.WHERE, x * y, (x * y).maximum(x))]
    for u in with_numbers + extremes + [x.alu(op, x), x.alu(op, y), x.alu(op, -x)]:
      s = simplify(u)
      for value in SPECIAL:
        point = {x: dtype_value(dtype, value), y: 2.0}
        assert same(value_at(u, point), value_at(s, point)), (render(u), render(s), value)

def dtype_value(dtype: DType, x: float) -> float:
  from tinyhw.arithmetic import round_to
  return float(round_to(dtype)(x))

def test_constants_are_rounded_and_wrapped() -> None:
  assert (simplify(UOp.const(dtypes.float16, 0.1) + UOp.const(dtypes.float16, 0.2)).arg
          == dtype_value(dtypes.float16, 0.2998046875))
  assert simplify(UOp.const(dtypes.uint8, 200) + UOp.const(dtypes.uint8, 100)).arg == 44
  assert simplify(UOp.const(dtypes.int8, -128) * UOp.const(dtypes.int8, -1)).arg == -128
  assert simplify(UOp.const(dtypes.float32, 1.0) / UOp.const(dtypes.float32, 0.0)).arg == math.inf
  # NaN
  assert simplify(UOp.const(dtypes.float32, -1.0).sqrt()).arg != simplify(UOp.const(dtypes.float32, -1.0).sqrt()).arg
  # equal as float32
  assert simplify(UOp.const(dtypes.float32, 0.1).eq(UOp.const(dtypes.float32, 0.1 + 1e-9))).arg is True

def test_maxima_and_minima_are_one_choice() -> None:
  zero = f.const_like(0.0)
  assert simplify((zero < f).alu(Ops.WHERE, f, f.maximum(zero))) is f.maximum(zero)
  assert simplify(f.alu(Ops.NEG).maximum(-1.0).alu(Ops.NEG)) is (f.const_like(1.0) < f).alu(Ops.WHERE,
                                                                                            f.const_like(1.0), f)
  smaller = f.alu(Ops.NEG).maximum(g.alu(Ops.NEG)).alu(Ops.NEG)
  assert not any(u.op is Ops.NEG for u in simplify(smaller).toposort())

# ***** types that wrap *****

def test_wrapping_types_keep_what_may_wrap() -> None:
  for u in (n32 * 6 // 3, (n32 + 1 < n32.const_like(5)), (n32 + 3) % 4, n32 // -1, (n32 * 2).eq(4)):
    assert simplify(u) is u, render(u)
  small = UOp(Ops.DEFINE_VAR, dtypes.int32, (), ("s", 0, 100))
  assert (simplify(small * 6 // 3) is small * 2
          and simplify(small + 1 < small.const_like(5)) is (small < small.const_like(4)))
  assert simplify(n32 * 3 + n32 * 4) is n32 * 7 and simplify((n32 + 1) + 2) is n32 + 3

# ***** properties *****

KINDS = [dtypes.weakint, dtypes.weakint, dtypes.weakint, dtypes.int32, dtypes.int8, dtypes.uint8, dtypes.int64,
         dtypes.uint32]

@settings(max_examples=400)
@given(st.integers(0, 2**40))
def test_random_expressions_keep_their_values(seed: int) -> None:
  rng = random.Random(seed)
  dtype = rng.choice(KINDS)
  leaves = variables(rng, rng.randint(1, 4), dtype, 0 if dtypes.is_unsigned(dtype) else -8)
  u = (integer if rng.random() < 0.7 else condition)(rng, leaves, rng.randint(1, 5))
  s = simplify(u)
  assert s.dtype is u.dtype and simplify(s) is s and graph_rewrite(s, symbolic) is s
  simple = graph_rewrite(u, symbolic_simple)
  for _ in range(8):
    point = random_point(rng, leaves)
    value = value_at(u, point)
    assert same(value, value_at(s, point)) and same(value, value_at(simple, point)), (render(u), render(s), point)
    assert u.vmin <= value <= u.vmax and s.vmin <= value <= s.vmax, (render(u), render(s), point)

def test_order_of_operands_does_not_matter() -> None:
  rng = random.Random(7)
  for _ in range(100):
    leaves = variables(rng, 4)
    terms = [integer(rng, leaves, 2) for _ in range(4)]
    sums = set()
    for _ in range(4):
      rng.shuffle(terms)
      sums.add(simplify((terms[0] + terms[1]) + (terms[2] + terms[3]) if rng.random() < 0.5
                        else ((terms[0] + terms[1]) + terms[2]) + terms[3]))
    assert len(sums) == 1, [render(s) for s in sums]

# ***** an index of a convolution *****

def convolution(first: int) -> tuple[UOp, UOp]:
  """The index into the input, and its gate, of a padded 3x3 convolution whose axes were flattened and split again."""
  n, oc, h, w, ic, kh, kw = (UOp.range(size, first + k, AxisType.LOOP)
                             for k, size in enumerate((32, 64, 56, 56, 64, 3, 3)))
  flat = (((((n * 64 + oc) * 56 + h) * 56 + w) * 64 + ic) * 3 + kh) * 3 + kw
  y, x = (flat // (576 * 56)) % 56 + (flat // 3) % 3 - 1, (flat // 576) % 56 + flat % 3 - 1
  return ((((flat // (576 * 56 * 56 * 64)) * 64 + (flat // 9) % 64) * 56 + y) * 56 + x,
          (y >= 0) & (y < 56) & (x >= 0) & (x < 56))

def test_convolution_index() -> None:
  index, gate = (simplify(u) for u in convolution(0))
  assert render(index) == "(((((((r0*200704)+(r2*56))+r3)+(r4*3136))+(r5*56))+r6)+-57)"
  assert len(list(gate.split(Ops.AND))) == 4 and not any(u.op in (Ops.MOD, Ops.IDIV) for u in gate.toposort())

def test_result_is_remembered() -> None:
  index, _ = convolution(20)
  first = simplify(index)
  assert simplify(index) is first and index._simple_ is first and first._simple_ is True

def test_deep_expressions() -> None:
  u = a
  for i in range(20_000): u = UOp(Ops.MAX, u.dtype, (u * b, c))
  assert simplify(u).op is Ops.MAX

def test_shared_expressions_do_not_blow_up() -> None:
  square, double, both, either = n32, n32, p, p
  for i in range(60):
    square, double = square * square, double + double
    bit = UOp.variable(f"v{i}", 0, 10) < 5
    both, either = (both & bit) & (both & q), (either | bit) | (either | q)
  for u in (square, double, both, either, square % 7, double // 3): simplify(u)

def test_long_conjunction_keeps_every_clause() -> None:
  bits = [UOp.variable(f"v{i}", 0, 10) < 5 for i in range(40)]
  u = bits[0]
  for bit in bits[1:] + bits: u = u & bit
  assert set(bits) <= set(simplify(u).toposort())
