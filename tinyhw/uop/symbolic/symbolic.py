"""Rules that simplify expressions without changing any value: constants, identities, bool algebra, casts, index
algebra.

`symbolic_simple` has cheap rules that only use a node and its sources. `symbolic` adds the algebra of integers:
canonical sums and products (linear.py), // and % (divmod.py), comparisons and conjunctions (compare.py), and decisions
by bounds. `simplify` applies `symbolic` to a fixed point and stores the result in the node. Both sets are for scalar
and vector expressions, not for tensor graphs: constants have no shape.

Rules for floats are exact. So these expressions are not changed:

- x*0, because of NaN, infinity and -0.0.
- x + 0.0, unless x is known not to be -0.0, which would become 0.0.
- x - x and x / x.
- The order of sums and products, and that of MAX, on which the sign of a zero depends.

tinyhw/arithmetic.py computes with constants, as for the interpreter.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw import trace
from tinyhw.arithmetic import cast, from_bytes, operation, round_to, to_bytes
from tinyhw.dtype import can_lossless_cast, dtypes
from tinyhw.errors import DTypeError, PatternError
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.rewrite.match import PatternMatcher, rule
from tinyhw.uop.rewrite.rewrite import LONGEST_CHAIN
from tinyhw.uop.symbolic.compare import COMPARE
from tinyhw.uop.symbolic.divmod import DIVMOD, INTEGERS, recombine
from tinyhw.uop.symbolic.linear import (
  VARIABLES, build, exact, factors, limits, linear, order, plus, product, span, term_order, weakint)
from tinyhw.uop.upat import UPat

BOOL, WHOLE = (dtypes.bool,), (dtypes.bool,) + INTEGERS
FLOATS = dtypes.floats + (dtypes.weakfloat,)
x, y, z, a, b = (UPat.var(name) for name in "xyzab")
c, c1, c2, c3 = (UPat.cvar(name) for name in ("c", "c1", "c2", "c3"))
i, f, p, q = UPat.var("x", INTEGERS), UPat.var("x", FLOATS), UPat.var("p", BOOL), UPat.var("q", BOOL)

def value(u: UOp) -> Any:
  """The number that a CONST holds, rounded to its type."""
  return round_to(u.dtype.scalar())(u.arg)

# ***** constants *****

@rule(UPat(GroupOp.ALU, src=UPat(Ops.CONST), name="u"))
def fold_constants(u: UOp) -> UOp | None:
  """2 + 3 -> 5, rounded or wrapped to the type."""
  try: compute = operation(u.op.name, u.dtype.scalar())
  except DTypeError: return None
  return u.const_like(compute(*[value(s) for s in u.src]))

@rule(UPat(Ops.CAST, src=(c,), name="u"))
def fold_cast(u: UOp, c: UOp) -> UOp | None:
  if u.dtype is dtypes.void: return None
  return u.const_like(cast(c.dtype.scalar(), u.dtype.scalar())(value(c)))

@rule(UPat(Ops.BITCAST, src=(c,), name="u"))
def fold_bitcast(u: UOp, c: UOp) -> UOp | None:
  """Not to or from NaN: a Python float cannot hold the bits of a NaN."""
  if u.dtype.count != c.dtype.count or u.dtype.itemsize != c.dtype.itemsize or c.arg != c.arg: return None
  if weakint in (u.dtype.scalar(), c.dtype.scalar()): return None
  result = from_bytes(to_bytes(c.arg, c.dtype.scalar()), u.dtype.scalar())
  return None if result != result else u.const_like(result)

@rule(UPat(tuple(GroupOp.Commutative - {Ops.MAX}), src=(c, x), name="u"))
def constant_right(u: UOp, c: UOp, x: UOp) -> UOp | None:
  """3 + x -> x + 3, so that other rules look on one side only."""
  return None if x.op is Ops.CONST else UOp(u.op, u.dtype, (x, c), u.arg, u.tag)

# ***** identities *****

def never_negative_zero(u: UOp) -> bool:
  """Whether a float is known not to be -0.0."""
  if u.op is Ops.CONST: return bool(u.arg != 0.0 or math.copysign(1.0, u.arg) > 0)
  if u.op is Ops.CAST: return not dtypes.is_float(u.src[0].dtype)
  if u.op in (Ops.EXP, Ops.EXP2, Ops.COS): return True
  if u.op is Ops.MUL: return u.src[0] is u.src[1]
  # only -0.0 + -0.0 is -0.0
  if u.op is Ops.ADD: return any(s.op is Ops.CONST and never_negative_zero(s) for s in u.src)
  return False

@rule(x + c)
def add_zero(x: UOp, c: UOp) -> UOp | None:
  """x + 0 -> x. For floats x + -0.0 -> x always, and x + 0.0 -> x if x cannot be -0.0."""
  if c.arg != 0: return None
  if dtypes.is_float(x.dtype) and math.copysign(1.0, c.arg) > 0 and not never_negative_zero(x): return None
  return x

@rule(UPat(Ops.SUB, src=(x, c)))
def subtract_zero(x: UOp, c: UOp) -> UOp | None:
  """x - 0 -> x. For floats the zero must be +0.0."""
  return x if c.arg == 0 and not (dtypes.is_float(x.dtype) and math.copysign(1.0, c.arg) < 0) else None

@rule(x * UPat.const(None, 1), UPat(Ops.FDIV, src=(x, UPat.const(None, 1))),
      UPat(Ops.IDIV, src=(x, UPat.const(None, 1))))
def times_one(x: UOp) -> UOp: return x

@rule(i * UPat.const(None, 0))
def times_zero(x: UOp) -> UOp:
  """Integers only."""
  return x.const_like(0)

@rule((f * UPat.const(None, -1)) * UPat.const(None, -1))
def negate_twice(x: UOp) -> UOp: return x

@rule(UPat(Ops.FDIV, src=(f, c)))
def divide_by_power_of_two(x: UOp, c: UOp) -> UOp | None:
  """x / 4 -> x * 0.25. It is exact if the reciprocal is a normal number."""
  divisor = value(c)
  if divisor == 0 or not math.isfinite(divisor) or abs(math.frexp(divisor)[0]) != 0.5: return None
  inverse, (exponent_bits, _) = 1.0 / divisor, dtypes.finfo(x.dtype)
  least = 2 - (1 << (exponent_bits - 1))
  return x * x.const_like(inverse) if least <= math.frexp(inverse)[1] - 1 < -least else None

@rule(UPat(Ops.IDIV, src=(i, i)))
def divide_by_itself(x: UOp) -> UOp | None:
  """x // x -> 1 if x is not 0 (0 // 0 is 0)."""
  low, high = limits(x)
  return x.const_like(1) if low > 0 or high < 0 else None

@rule(UPat(Ops.MOD, src=(i, i)))
def remainder_by_itself(x: UOp) -> UOp: return x.const_like(0)

@rule(UPat((Ops.AND, Ops.OR, Ops.MAX), src=(x, x)))
def idempotent(x: UOp) -> UOp: return x

@rule(UPat(Ops.XOR, src=(x, x)))
def xor_itself(x: UOp) -> UOp: return x.const_like(0)

@rule(UPat(Ops.CMPLT, src=(x, x), name="u"))
def less_than_itself(u: UOp, x: UOp) -> UOp:
  """False, for NaN too."""
  return u.const_like(False)

@rule(UPat((Ops.CMPEQ, Ops.CMPNE), src=(UPat.var("x", WHOLE), UPat.var("x", WHOLE)), name="u"))
def equal_to_itself(u: UOp, x: UOp) -> UOp:
  """Not for floats: NaN differs from itself."""
  return u.const_like(u.op is Ops.CMPEQ)

@rule(UPat((Ops.AND, Ops.OR, Ops.XOR), WHOLE, (x, c), name="u"))
def bits_with_constant(u: UOp, x: UOp, c: UOp) -> UOp | None:
  """x & 0, x & all ones, x | 0, x | all ones, x ^ 0."""
  bits = value(c)
  all_ones = u.dtype.max if dtypes.is_bool(u.dtype) or dtypes.is_unsigned(u.dtype) else -1
  if bits == 0: return c if u.op is Ops.AND else x
  if bits != all_ones or u.op is Ops.XOR: return None
  return x if u.op is Ops.AND else c

@rule(*[UPat(op, INTEGERS, (UPat(op, src=(x, c1)), c2), name="u") for op in (Ops.ADD, Ops.MUL)],
      *[UPat(op, WHOLE, (UPat(op, src=(x, c1)), c2), name="u") for op in (Ops.AND, Ops.OR, Ops.XOR)])
def merge_constants(u: UOp, x: UOp, c1: UOp, c2: UOp) -> UOp:
  """(x + 2) + 3 -> x + 5. Not for floats, because it rounds differently."""
  return UOp(u.op, u.dtype, (x, u.const_like(operation(u.op.name, u.dtype.scalar())(value(c1), value(c2)))))

@rule(UPat(Ops.MAX, INTEGERS, (UPat(Ops.MAX, src=(x, c1)), c2)))
def merge_maximum(x: UOp, c1: UOp, c2: UOp) -> UOp: return x.alu(Ops.MAX, c1 if value(c1) > value(c2) else c2)

# ***** bool *****

AS_LOGIC = {Ops.ADD: Ops.OR, Ops.MAX: Ops.OR, Ops.MUL: Ops.AND, Ops.SUB: Ops.XOR}

@rule(UPat(tuple(AS_LOGIC), BOOL, name="u"))
def bool_arithmetic(u: UOp) -> UOp:
  """Replace sums, products and maxima of bools by logic."""
  return UOp(AS_LOGIC[u.op], u.dtype, u.src)

@rule(UPat((Ops.CMPNE, Ops.CMPEQ, Ops.CMPLT), src=(p, q), name="u"))
def bool_comparison(u: UOp, p: UOp, q: UOp) -> UOp:
  """p != q is p ^ q. p < q is (not p) and q."""
  if u.op is Ops.CMPLT: return p.logical_not() & q
  return p ^ q if u.op is Ops.CMPNE else (p ^ q).logical_not()

@rule(UPat(Ops.XOR, BOOL, (UPat((Ops.CMPEQ, Ops.CMPNE), name="x"), c)))
def negate_equality(x: UOp, c: UOp) -> UOp | None:
  """not a == b -> a != b, also for NaN. not a < b -> b <= a is for integers only: compare.py."""
  return UOp(Ops.CMPNE if x.op is Ops.CMPEQ else Ops.CMPEQ, x.dtype, x.src) if c.arg else None

@rule(UPat((Ops.AND, Ops.OR), BOOL, [p, p.logical_not()], name="u"))
def excluded_middle(u: UOp, p: UOp) -> UOp: return u.const_like(u.op is Ops.OR)

@rule(UPat(Ops.AND, src=[x, UPat(Ops.OR, src=[x, y])]), UPat(Ops.OR, src=[x, UPat(Ops.AND, src=[x, y])]))
def absorb(x: UOp, y: UOp) -> UOp:
  """x & (x | y) -> x; x | (x & y) -> x."""
  return x

# ***** where *****

@rule(UPat(Ops.WHERE, src=(UPat(), x, x)))
def where_same(x: UOp) -> UOp: return x

@rule(UPat(Ops.WHERE, src=(c, x, y)))
def where_constant(c: UOp, x: UOp, y: UOp) -> UOp: return x if c.arg else y

@rule(UPat(Ops.WHERE, BOOL, (p, c1, c2)))
# equal constants: where_same
def where_is_condition(p: UOp, c1: UOp, c2: UOp) -> UOp: return p if c1.arg else p.logical_not()

@rule(UPat(Ops.WHERE, src=(p.logical_not(), x, y)))
def where_not(p: UOp, x: UOp, y: UOp) -> UOp: return UOp(Ops.WHERE, x.dtype, (p, y, x))

@rule(UPat(Ops.WHERE, src=(p, UPat(Ops.WHERE, src=(p, x, UPat())), y)),
      UPat(Ops.WHERE, src=(p, x, UPat(Ops.WHERE, src=(p, UPat(), y)))))
def where_in_where(p: UOp, x: UOp, y: UOp) -> UOp:
  """A condition that is tested twice has the same outcome."""
  return UOp(Ops.WHERE, x.dtype, (p, x, y))

@rule(UPat(Ops.WHERE, src=(p, UPat(Ops.WHERE, src=(q, x, y)), y)))
def where_both(p: UOp, q: UOp, x: UOp, y: UOp) -> UOp:
  return UOp(Ops.WHERE, x.dtype, (UOp(Ops.AND, p.dtype, (p, q)), x, y))

@rule(*[UPat(tuple(GroupOp.Binary - GroupOp.Transcendental), src=s, name="u") for s in
        ((UPat(Ops.WHERE, src=(p, c1, c2)), c3), (c3, UPat(Ops.WHERE, src=(p, c1, c2))))])
def into_where(u: UOp, p: UOp, c1: UOp, c2: UOp, c3: UOp) -> UOp:
  """(p ? 1 : 2) + 3 -> p ? 4 : 5."""
  first = u.src[0].op is Ops.CONST
  x, y = (UOp(u.op, u.dtype, (c3, k) if first else (k, c3), u.arg) for k in (c1, c2))
  return UOp(Ops.WHERE, u.dtype, (p, x, y))

@rule(UPat(Ops.WHERE, src=(UPat(Ops.CMPLT, src=(y, x)), x, UPat(Ops.MAX, src=(x, y), name="u"))))
def greater_or_maximum(x: UOp, y: UOp, u: UOp) -> UOp:
  """y < x ? x : max(x, y) -> max(x, y), also for NaN. relu is written in this form for its gradient."""
  return u

@rule(UPat(Ops.NEG, FLOATS, (UPat(Ops.MAX, src=(UPat(Ops.NEG, src=(x,)), UPat(Ops.NEG, src=(y,)))),)),
      UPat(Ops.NEG, FLOATS, (UPat(Ops.MAX, src=(UPat(Ops.NEG, src=(x,)), c)),)))
def minimum(x: UOp, y: UOp | None = None, c: UOp | None = None) -> UOp:
  """-max(-x, -y) -> the smaller, or NaN. The sign of a zero stays as it was."""
  if y is None:
    assert c is not None, "one of the patterns matched"
    y = c.const_like(-c.arg)
  truth = dtypes.bool.vec(x.dtype.count)
  smaller = UOp(Ops.WHERE, x.dtype, (UOp(Ops.CMPLT, truth, (y, x)), y, x))
  return UOp(Ops.WHERE, x.dtype, (UOp(Ops.CMPNE, truth, (y, y)), y, smaller))

# ***** casts and lanes *****

@rule(UPat((Ops.CAST, Ops.BITCAST), src=(x,), name="u"))
def cast_to_same(u: UOp, x: UOp) -> UOp | None: return x if u.dtype is x.dtype else None

@rule(UPat(Ops.CAST, src=(UPat(Ops.CAST, src=(x,), name="y"),), name="u"))
def cast_twice(u: UOp, x: UOp, y: UOp) -> UOp | None:
  """Drop the first of two casts if the type between holds every value of x, or if integers only lose bits."""
  source, middle, target = x.dtype.scalar(), y.dtype.scalar(), u.dtype.scalar()
  if middle is dtypes.bool: return None
  if source is weakint or not can_lossless_cast(source, middle):
    whole = all(dtypes.is_int(d) for d in (source, middle, target))
    return x.cast(target) if whole and target is not weakint and target.bitsize <= middle.bitsize else None
  # a float out of an integer type's range has no defined wrapping, an integer has
  if (dtypes.is_float(middle) and dtypes.is_int(source) and dtypes.is_int(target)
      and not can_lossless_cast(source, target)):
    return None
  return UOp(Ops.CAST, u.dtype, (x,)) if u.dtype is not x.dtype else x

@rule(UPat(Ops.BITCAST, src=(UPat(Ops.BITCAST, src=(x,)),), name="u"))
def bitcast_twice(u: UOp, x: UOp) -> UOp: return x.bitcast(u.dtype)

@rule(UPat((Ops.CMPNE, Ops.CMPEQ), src=(UPat(Ops.CAST, src=(p,)), c), name="u"))
def compare_cast_bool(u: UOp, p: UOp, c: UOp) -> UOp:
  """float(p) != 0 -> p."""
  number = value(c)
  if number not in (0, 1): return u.const_like(u.op is Ops.CMPNE)
  return p if (number == 1) is (u.op is Ops.CMPEQ) else p.logical_not()

@rule(UPat(Ops.GEP, src=(UPat((Ops.BROADCAST, Ops.VECTORIZE, Ops.CONST), name="x"),), name="u"))
def lane_of(u: UOp, x: UOp) -> UOp | None:
  """A lane, or several, of a vector that consists of scalars."""
  if type(u.arg) is not int: return None
  n = u.dtype.count
  if x.op is Ops.CONST: return UOp(Ops.CONST, u.dtype, (), x.arg)
  if n > 1: return UOp(x.op, u.dtype, x.src if x.op is Ops.BROADCAST else x.src[u.arg:u.arg + n])
  return x.src[0] if x.op is Ops.BROADCAST else x.src[u.arg]

@rule(UPat(Ops.BROADCAST, src=(c,), name="u"))
def broadcast_constant(u: UOp, c: UOp) -> UOp: return UOp(Ops.CONST, u.dtype, (), c.arg)

@rule(UPat(Ops.VECTORIZE, name="u"))
def vectorize_lanes(u: UOp) -> UOp | None:
  """The lanes of one vector in their order are that vector. Equal constants are a constant."""
  first = u.src[0]
  if first.op is Ops.CONST: return UOp(Ops.CONST, u.dtype, (), first.arg) if all(s is first for s in u.src) else None
  if first.op is not Ops.GEP or first.src[0].dtype is not u.dtype: return None
  whole = first.src[0]
  return whole if all(s.op is Ops.GEP and s.src[0] is whole and s.arg == lane for lane, s in enumerate(u.src)) else None

@rule(UPat(Ops.LOAD, src=(x, c, y), name="u"))
def constant_gate(u: UOp, x: UOp, c: UOp, y: UOp) -> UOp:
  """A load with a true gate needs no gate. A load with a false gate is its alternative."""
  return UOp(Ops.LOAD, u.dtype, (x,), u.arg, u.tag) if c.arg else y

SIMPLE = (
  fold_constants, fold_cast, fold_bitcast, constant_right, add_zero, subtract_zero, times_one, times_zero, negate_twice,
  divide_by_power_of_two, divide_by_itself, remainder_by_itself, idempotent, xor_itself, less_than_itself,
  equal_to_itself,
  bits_with_constant, merge_constants, merge_maximum, bool_arithmetic, bool_comparison, negate_equality,
  excluded_middle, absorb,
  where_same, where_constant, where_is_condition, where_not, where_in_where, where_both, into_where,
  greater_or_maximum, minimum, cast_to_same, cast_twice,
  bitcast_twice, compare_cast_bool, lane_of, broadcast_constant, vectorize_lanes, constant_gate,
)
symbolic_simple = PatternMatcher(SIMPLE)

# ***** the algebra of integers *****

@rule(UPat(tuple(GroupOp.ALU | {Ops.CAST}), WHOLE, name="u"))
def decided_by_bounds(u: UOp) -> UOp | None:
  """An integer or bool with one possible value is that value."""
  low, high = limits(u)
  return u.const_like(low) if low == high else None

@rule(UPat(Ops.CAST, FLOATS, (UPat.var("x", WHOLE),), name="u"))
def cast_of_decided(u: UOp, x: UOp) -> UOp | None:
  low, high = limits(x)
  return u.const_like(cast(x.dtype.scalar(), u.dtype.scalar())(low)) if low == high else None

@rule(UPat((Ops.SUB, Ops.NEG, Ops.SHL, Ops.SHR), weakint, name="u"))
def only_sums_and_products(u: UOp) -> UOp | None:
  """Rewrite index arithmetic to sums, products and quotients: x - y is x + y*-1, x << 3 is x * 8, x >> 3 is x // 8."""
  x: UOp = u.src[0]
  y: UOp = u.src[-1]
  if u.op is Ops.NEG: return x * -1
  if u.op is Ops.SUB: return x + y * -1
  if y.op is not Ops.CONST or not 0 <= y.arg < 64: return None
  factor: int = 1 << y.arg
  return x * factor if u.op is Ops.SHL else x // factor

@rule(UPat(Ops.AND, weakint, (x, c)))
def mask_is_remainder(x: UOp, c: UOp) -> UOp | None:
  """x & 7 -> x % 8."""
  return x % (c.arg + 1) if c.arg > 0 and c.arg & (c.arg + 1) == 0 else None

def _is_ordered(u: UOp) -> bool:
  """Whether a sum of canonical operands is canonical already. The right one must be a single term that follows all of
  the left in order, without a like term there."""
  left, right = u.src
  if left.op is Ops.CONST or right.op is Ops.ADD: return False
  if left.op is Ops.ADD and left.src[1].op is Ops.CONST: return False
  if right.op is Ops.CONST: return bool(right.arg)
  term, k = (right.src[0], right.src[1].arg) if right.op is Ops.MUL and right.src[1].op is Ops.CONST else (right, 1)
  if term.op in _DIGITS or limits(term)[0] == limits(term)[1]: return False
  last = left.src[1] if left.op is Ops.ADD else left
  at, n = (last.src[0], last.src[1].arg) if last.op is Ops.MUL and last.src[1].op is Ops.CONST else (last, 1)
  if term_order(at, n) > term_order(term, k): return False
  node: UOp | None = left
  while node is not None:  # like terms, or digits that a later call of `recombine` may join
    part, node = (node.src[1], node.src[0]) if node.op is Ops.ADD else (node, None)
    if part.op is Ops.MUL and part.src[1].op is Ops.CONST: part = part.src[0]
    if part is term or part.op in _DIGITS or part.op is Ops.RANGE and limits(part)[1] == 0: return False
  return True

_DIGITS = frozenset({Ops.MOD, Ops.IDIV})

@rule(UPat(Ops.ADD, INTEGERS, name="u"))
def canonical_sum(u: UOp) -> UOp | None:
  """x*2 + (y + x*3) -> x*5 + y: like terms merged, terms in order, the constant last. Digits of one number are
  recombined."""
  if _is_ordered(u): return None
  form = linear(u)
  if form is None: return None
  terms, constant = form
  if sum(1 for t in terms if t.op in _DIGITS):
    terms = dict(terms)
    while (more := recombine(terms)) is not None: constant += more
  result = build(terms, constant, u.dtype)
  return None if result is u else result

@rule(UPat(Ops.MUL, INTEGERS, name="u"))
def canonical_product(u: UOp) -> UOp | None:
  """(x*3)*y -> x*y*3. An index (x + 2)*3 -> x*3 + 6."""
  left, right = u.src
  if right.op is Ops.CONST:
    if left.op is Ops.ADD and u.dtype is weakint:
      form = linear(u)
      return None if form is None else build(form[0], form[1], u.dtype)
    if left.op is Ops.IDIV and left.src[0].op in VARIABLES and (form := linear(u)) is not None:
      result = build(form[0], form[1], u.dtype)   # (n // 4) * 4 is n, if n is a multiple of 4
      return None if result is u else result
    if left.op is not Ops.MUL: return None
  result = product(*factors(u), u.dtype)
  return None if result is u else result

@rule(UPat(Ops.MAX, INTEGERS, (x, y), name="u"))
def maximum_by_bounds(u: UOp, x: UOp, y: UOp) -> UOp | None:
  """The operand that is never smaller, else the operands in order, a constant last."""
  left, right = exact(x), exact(y)
  if left is not None and right is not None:
    terms = dict(left[0])
    low, high = span(terms, left[1] + plus(terms, right, -1))
    if low >= 0 or high <= 0: return x if low >= 0 else y
  if y.op is Ops.CONST or (x.op is not Ops.CONST and order(x) <= order(y)): return None
  return UOp(Ops.MAX, u.dtype, (y, x))

@rule(UPat((Ops.AND, Ops.OR, Ops.XOR), WHOLE, (x, y), name="u"))
def operands_in_order(u: UOp, x: UOp, y: UOp) -> UOp | None:
  """Sort the operands, so that equal expressions become one node."""
  return None if y.op is Ops.CONST or x.op is u.op or order(x) <= order(y) else UOp(u.op, u.dtype, (y, x))

@rule(UPat(Ops.CAST, weakint, (UPat(tuple(GroupOp.Binary - GroupOp.Comparison), INTEGERS, name="x"),)))
def index_from_exact(x: UOp) -> UOp | None:
  """An int32 (or other) sum that does not wrap is the same sum of indices: int32(i*4) + 1 as an index is i*4 + 1."""
  form = exact(x) if x.op in (Ops.ADD, Ops.MUL) else None
  return None if form is None else build({t.cast(weakint): k for t, k in form[0].items()}, form[1], weakint)

@rule(UPat(Ops.CAST, weakint, (UPat(Ops.CAST, INTEGERS, (UPat.var("y", weakint),), name="x"),)))
def index_through_type(x: UOp, y: UOp) -> UOp | None:
  """Drop the conversion of an index to a type that holds it and back."""
  low, high = limits(y)
  return y if x.dtype.min <= low and high <= x.dtype.max else None

ALGEBRA = (decided_by_bounds, cast_of_decided, only_sums_and_products, mask_is_remainder) + DIVMOD + COMPARE + (
  canonical_sum, canonical_product, maximum_by_bounds, operands_in_order, index_from_exact, index_through_type)
symbolic = PatternMatcher(SIMPLE + ALGEBRA)

# ***** simplify *****

def simplify(u: UOp) -> UOp:
  """Return the simplest form of u that the rules find.

  Each node stores its own, so the cost of an expression that grew is that of its new nodes.
  """
  known: Any = u._simple_
  if known is not None: return u if known is True else known
  functions = symbolic.functions if trace.recorder is None else symbolic.current()
  stack: list[Any] = [u]
  chain = 0
  while stack:
    node = stack.pop()
    if node.__class__ is tuple:  # (nodes, their replacement)
      result = node[-1]._simple_
      if result is True: result = node[-1]
      for n in node[:-1]: n._simple_ = result
      chain -= 1
      continue
    if node._simple_ is not None: continue
    missing = [s for s in node.src if s._simple_ is None]
    if missing:
      stack.append(node)
      stack += missing
      continue
    rebuilt = node
    if node.src and any([s._simple_ is not True for s in node.src]):
      rebuilt = UOp(node.op, node.dtype, tuple([s if s._simple_ is True else s._simple_ for s in node.src]), node.arg,
                    node.tag)
      if rebuilt._simple_ is not None:
        node._simple_ = rebuilt if rebuilt._simple_ is True else rebuilt._simple_
        continue
    function = functions[rebuilt.op]
    result = None if function is None else function(rebuilt, None)
    if result is None:
      rebuilt._simple_ = True
      if node is not rebuilt: node._simple_ = rebuilt
    else:
      chain += 1
      if chain > LONGEST_CHAIN:
        raise PatternError(f"endless simplification by {symbolic.which(rebuilt)} on {rebuilt}; a rule must not undo "
                           f"another")
      stack.append((node, rebuilt, result) if node is not rebuilt else (node, result))
      stack.append(result)
  known = u._simple_
  return u if known is True else known
