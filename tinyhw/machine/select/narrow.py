"""What may be computed in a float type of 16 bits, for two neighbours at once: float32 operations on its numbers, whose
results are rounded to it.

Codegen computes narrow floats in float32 and rounds what is stored. Two elements of a vector that are the same
operation of elements may be done by one packed instruction, if that gives the same bits:

- A sum of two narrow numbers is rounded as if it had not been rounded to float32 before, since 24 bits are more than
  twice 11 and two more (Figueroa 1995, When is double rounding innocuous?), and what is too small for that is exact. So
  is a product of float16, which float32 holds. A product of bfloat16 may be so small that float32 rounds it, and then
  it is rounded twice.
- A fused product and sum is none of these: rounded once it differs in rare cases. But where the product is exact,
  float32 may fuse it (`parts_of`).
- A choice among narrow numbers by comparisons of narrow numbers is exact. So is one by a constant bound that is made of
  rounded numbers, not of the sums themselves, as rounding keeps order; where the bound is 0, of sums only, which never
  become 0 by rounding.

Found here is what is computed (`Finder`); which elements stand beside each other in registers, and what instructions
there are, an ISA knows.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.arithmetic import round_to
from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

Parts = tuple[UOp, "UOp | None", "UOp | None"]   # a, b and c of a * b + c; without b a sum, without c a product

# ***** one value *****

def is_number_of(dtype: DType, value: float) -> bool:
  """Whether a number is one of a type (a NaN is not)."""
  return bool(round_to(dtype)(value) == value)

def is_rounded(u: UOp, dtype: DType = dtypes.float16) -> bool:
  """Whether a value is a float32 rounded to this type."""
  return u.op is Ops.CAST and u.dtype is dtype and u.src[0].dtype is dtypes.float32

def is_widened(u: UOp, dtype: DType = dtypes.float16) -> bool:
  """Whether a float32 is a number of this type that can be read instead.

  A variable may have changed since it was converted.
  """
  return u.op is Ops.CAST and u.dtype is dtypes.float32 and u.src[0].dtype is dtype and u.src[0].op is not Ops.ACC

def unsigned(u: UOp) -> tuple[UOp, bool]:
  """A value without the operation that changes its sign, and whether there is one."""
  return (u.src[0], True) if u.op is Ops.NEG and u.src[0].op is not Ops.ACC else (u, False)

def opposite(u: UOp) -> UOp: return UOp(Ops.NEG, u.dtype, (u,))

def is_exact_product(u: UOp) -> bool:
  """Whether u is a product that float32 holds whatever the factors are: two of float16 have 22 bits, and exponents in
  the middle."""
  if u.op is not Ops.MUL: return False
  factors = [unsigned(s)[0] for s in u.src]
  return all(is_widened(f) or f.op is Ops.CONST and is_number_of(dtypes.float16, f.arg) for f in factors)

def parts_of(u: UOp) -> Parts:
  """a, b and c of a fused operation a * b + c that is u: without b it is a + c."""
  if u.op is Ops.MULACC: return u.src[0], u.src[1], u.src[2]
  if u.op is Ops.MUL: return u.src[0], u.src[1], None
  if u.op not in (Ops.ADD, Ops.SUB): return u, None, None
  p, q = u.src
  minus = u.op is Ops.SUB
  if is_exact_product(p): return p.src[0], p.src[1], opposite(q) if minus else q
  if is_exact_product(q): return opposite(q.src[0]) if minus else q.src[0], q.src[1], p
  return p, None, opposite(q) if minus else q

# ***** two values at once *****

class Neighbours(NamedTuple):
  """Two numbers of the narrow type as they stand, or constants, and whether each of them is negated; as the condition
  of a WHERE two truths."""
  low: UOp
  high: UOp
  signs: tuple[bool, bool] = (False, False)

class Both:
  """The same operation for two neighbours: ADD, MUL, NEG, WHERE; comparisons, and logic of their results.

  One object for what is used twice.
  """
  def __init__(self, op: Ops, sources: tuple[Both | Neighbours, ...]): self.op, self.sources = op, sources

Found = Both | Neighbours
LEVELS = 24  # of operations in each other; deeper ones are left alone
Beside = Callable[[UOp, UOp], bool]  # whether two narrow numbers stand in one register, so that an instruction can take
                                     # both

class Finder:
  """Finds pairs. dtype: the narrow type; ops: what an ISA has for pairs of it. known: what has been looked at; level:
  how deep this is."""

  def __init__(self, dtype: DType, ops: frozenset[Ops], beside: Beside):
    self.known: dict[tuple[UOp, UOp], Found | None] = {}
    self.level = 0
    self.dtype, self.ops, self.beside = dtype, ops - {Ops.MUL} if dtype is not dtypes.float16 else ops, beside

  def rounded(self, low: UOp, high: UOp) -> Found | None:
    """Two float32 that are rounded to the type; None if these instructions are not enough."""
    if low.op in (Ops.ADD, Ops.SUB, Ops.MUL): return self.arithmetic(low, high)
    return self.bounded(low, high) or self.exact(low, high)

  def arithmetic(self, low: UOp, high: UOp) -> Both | None:
    """A sum or product of exact numbers."""
    (op, *left), (other, *right) = operation(low), operation(high)
    if op is not other or op not in self.ops: return None
    return self.ordered(op, (left, right), (left, right[::-1]))

  def ordered(self, op: Ops, *orders: tuple[list[UOp], list[UOp]]) -> Both | None:
    """An operation of exact numbers, whose operands are in the order in which most of them stand beside each other;
    the first one of equal ones."""
    best, most = None, -1
    for left, right in orders:
      found = [self.exact(a, b) for a, b in zip(left, right)]
      near = sum(isinstance(s, Neighbours) and self.beside(s.low, s.high) for s in found)
      if None not in found and near > most: best, most = Both(op, tuple(s for s in found if s is not None)), near
    return best

  def bounded(self, low: UOp, high: UOp) -> Found | None:
    """A choice of the larger or smaller one of a constant and what is rounded."""
    first, second = bounds_of(low), bounds_of(high)
    if first is None or second is None or Ops.WHERE not in self.ops or Ops.CMPLT not in self.ops: return None
    (x, bound), (y, same) = first, second
    if bound is not same or not is_number_of(self.dtype,
                                             bound.arg) or low.src[0].src.index(x) != high.src[0].src.index(y):
      return None
    if low.src.index(x) != high.src.index(y) or not bound.arg and operation(x)[0] is not Ops.ADD: return None
    value, limit = self.rounded(x, y), Neighbours(bound, bound)
    if value is None: return None
    def placed(u: UOp) -> tuple[Found, ...]:
      return tuple(value if s is x else limit for s in u.src if s is x or s is bound)
    return Both(Ops.WHERE, (Both(Ops.CMPLT, placed(low.src[0])), *placed(low)))

  def exact(self, low: UOp, high: UOp) -> Found | None:
    """Two float32 that are numbers of the type."""
    return self.once(low, high, self.numbers)

  def once(self, low: UOp, high: UOp, find: Callable[[UOp, UOp], Found | None]) -> Found | None:
    """Each two are looked at once, unless they are too deep inside of others."""
    key = low, high
    if key not in self.known and self.level < LEVELS:
      self.level += 1
      self.known[key] = find(low, high)
      self.level -= 1
    return self.known.get(key)

  def numbers(self, low: UOp, high: UOp) -> Found | None:
    (a, minus), (b, other) = unsigned(low), unsigned(high)
    if self.stands(a) and self.stands(b): return Neighbours(self.element(a), self.element(b), (minus, other))
    if low.op is not high.op: return None
    if low.op is Ops.NEG: return self.same(low, high, self.exact)
    if low.op is Ops.WHERE: return self.choice(low, high)
    return self.arithmetic(low, high) if is_zero_and_number(low) and is_zero_and_number(high) else None

  def choice(self, low: UOp, high: UOp) -> Both | None:
    """By what both have in common, or by two truths of any kind. Variables may have changed since."""
    if Ops.WHERE not in self.ops: return None
    values = [self.exact(a, b) for a, b in zip(low.src[1:], high.src[1:])]
    if None in values: return None
    first, second = low.src[0], high.src[0]
    condition = self.truth(first, second)
    if condition is None and Ops.ACC in (first.op, second.op): return None
    return Both(Ops.WHERE, (condition or Neighbours(first, second), *(v for v in values if v is not None)))

  def truth(self, low: UOp, high: UOp) -> Found | None:
    """Two conditions: a comparison of exact numbers, or logic of such."""
    return self.once(low, high, self.common_truth)

  def common_truth(self, low: UOp, high: UOp) -> Both | None:
    if low.op is not high.op or low.op not in self.ops: return None
    if low.op in GroupOp.Comparison:
      return self.same(low, high, self.exact) if low.src[0].dtype is dtypes.float32 else None
    return self.same(low, high, self.truth) if low.dtype is dtypes.bool else None

  def same(self, low: UOp, high: UOp, find: Callable[[UOp, UOp], Found | None]) -> Both | None:
    sources = [find(a, b) for a, b in zip(low.src, high.src)] if low.op in self.ops else [None]
    return None if None in sources else Both(low.op, tuple(s for s in sources if s is not None))

  def stands(self, u: UOp) -> bool:
    """Whether a float32 is a number of the type already, or a constant of it."""
    return is_widened(u, self.dtype) or u.op is Ops.CONST and is_number_of(self.dtype, u.arg)

  def element(self, u: UOp) -> UOp: return u if u.op is Ops.CONST else u.src[0]

def operation(u: UOp) -> tuple[Ops, UOp, UOp] | tuple[Ops]:
  """A sum or product with its operands, where a difference is a sum; other operations by themselves."""
  if u.op is Ops.SUB: return Ops.ADD, u.src[0], opposite(u.src[1])
  return (u.op, u.src[0], u.src[1]) if u.op in (Ops.ADD, Ops.MUL) else (u.op,)

def bounds_of(u: UOp) -> tuple[UOp, UOp] | None:
  """x and a constant bound, if u is the larger or smaller one of them: a choice of one by a comparison of both."""
  if u.op is not Ops.WHERE or u.src[0].op is not Ops.CMPLT: return None
  x, bound = u.src[0].src
  if x.op is Ops.CONST: x, bound = bound, x
  return (x, bound) if bound.op is Ops.CONST and x is not bound and set(u.src[1:]) == {x, bound} else None

def is_zero_and_number(u: UOp) -> bool:
  """Whether u is a sum or difference with zero, which is exact."""
  return u.op in (Ops.ADD, Ops.SUB) and any(s.op is Ops.CONST and s.arg == 0 for s in u.src)
