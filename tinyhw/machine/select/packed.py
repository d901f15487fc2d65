"""Pairs of float32 operations that packed 16-bit instructions may compute. Their operands are numbers of the 16-bit
type, and their results are rounded to it.

Codegen computes 16-bit floats in float32 and rounds values that are stored. If two elements of a vector are the same
operation of elements, one packed instruction may compute both, if that gives the same bits:

- A sum of two 16-bit floats is rounded as if it had not been rounded to float32 before, because 24 bits are more than
  twice 11 and two more (Figueroa 1995, When is double rounding innocuous?). Sums that are too small for that are exact.
- A product of float16 is rounded in the same way, because float32 can hold it. A product of bfloat16 may be so small
  that float32 rounds it. Then it is rounded twice.
- A fused multiply-add is none of these: rounded once it differs in rare cases. But if the product is exact, float32 may
  fuse it (`parts_of`).
- A choice among 16-bit floats by comparisons of 16-bit floats is exact.
- A choice by a constant bound may use rounded numbers instead of the sums, because rounding keeps order. If the bound
  is 0, only sums are allowed, because they never become 0 by rounding.

`PairFinder` finds the operations. An ISA decides which elements are adjacent in registers, and which instructions
exist.
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
  """Whether a float32 is a converted number of this type that can be read instead.

  Not for a variable, which may have changed since the conversion.
  """
  return u.op is Ops.CAST and u.dtype is dtypes.float32 and u.src[0].dtype is dtype and u.src[0].op is not Ops.ACC

def unsigned(u: UOp) -> tuple[UOp, bool]:
  """A value without its negation, and whether there is one."""
  return (u.src[0], True) if u.op is Ops.NEG and u.src[0].op is not Ops.ACC else (u, False)

def opposite(u: UOp) -> UOp: return UOp(Ops.NEG, u.dtype, (u,))

def is_exact_product(u: UOp) -> bool:
  """Whether u is a product that float32 holds for all values of the factors. Products of two float16 have 22 bits, and
  exponents in the middle of the range."""
  if u.op is not Ops.MUL: return False
  factors = [unsigned(s)[0] for s in u.src]
  return all(is_widened(f) or f.op is Ops.CONST and is_number_of(dtypes.float16, f.arg) for f in factors)

def parts_of(u: UOp) -> Parts:
  """a, b and c of a fused operation a * b + c that equals u. Without b it is a + c."""
  if u.op is Ops.MULACC: return u.src[0], u.src[1], u.src[2]
  if u.op is Ops.MUL: return u.src[0], u.src[1], None
  if u.op not in (Ops.ADD, Ops.SUB): return u, None, None
  p, q = u.src
  minus = u.op is Ops.SUB
  if is_exact_product(p): return p.src[0], p.src[1], opposite(q) if minus else q
  if is_exact_product(q): return opposite(q.src[0]) if minus else q.src[0], q.src[1], p
  return p, None, opposite(q) if minus else q

# ***** two values at once *****

class ElementPair(NamedTuple):
  """Two adjacent numbers of the 16-bit type, or constants, and whether each of them is negated. As the condition of a
  WHERE they are two bools."""
  low: UOp
  high: UOp
  signs: tuple[bool, bool] = (False, False)

class PackedOperation:
  """The same operation for two neighbors: ADD, MUL, NEG, WHERE, comparisons, and logic of their results.

  A value with several users is one object.
  """
  def __init__(self, op: Ops, sources: tuple[PackedOperation | ElementPair, ...]): self.op, self.sources = op, sources

Found = PackedOperation | ElementPair
LEVELS = 24  # of nested operations; deeper ones are not searched
# whether two 16-bit numbers are in one register, so that an instruction can read both
Adjacent = Callable[[UOp, UOp], bool]

class PairFinder:
  """Finder of pairs.

  - dtype: the 16-bit type.
  - ops: the ISA's packed operations of this type.
  - known: results so far.
  - level: the depth of nesting.
  """

  def __init__(self, dtype: DType, ops: frozenset[Ops], adjacent: Adjacent):
    self.known: dict[tuple[UOp, UOp], Found | None] = {}
    self.level = 0
    self.dtype, self.ops, self.adjacent = dtype, ops - {Ops.MUL} if dtype is not dtypes.float16 else ops, adjacent

  def rounded(self, low: UOp, high: UOp) -> Found | None:
    """A pair of float32 values that are rounded to the type, or None if the packed operations are not enough."""
    if low.op in (Ops.ADD, Ops.SUB, Ops.MUL): return self.arithmetic(low, high)
    return self.bounded(low, high) or self.exact(low, high)

  def arithmetic(self, low: UOp, high: UOp) -> PackedOperation | None:
    """A sum or product of exact numbers."""
    (op, *left), (other, *right) = operation(low), operation(high)
    if op is not other or op not in self.ops: return None
    return self.ordered(op, (left, right), (left, right[::-1]))

  def ordered(self, op: Ops, *orders: tuple[list[UOp], list[UOp]]) -> PackedOperation | None:
    """An operation of exact numbers. Its operands are in the order in which most of them are adjacent in registers.
    Among equal orders it is the first."""
    best, most = None, -1
    for left, right in orders:
      found = [self.exact(a, b) for a, b in zip(left, right)]
      near = sum(isinstance(s, ElementPair) and self.adjacent(s.low, s.high) for s in found)
      if None in found or near <= most: continue
      best, most = PackedOperation(op, tuple(s for s in found if s is not None)), near
    return best

  def bounded(self, low: UOp, high: UOp) -> Found | None:
    """The maximum or minimum of a constant and a value that is rounded."""
    first, second = bounds_of(low), bounds_of(high)
    if first is None or second is None or Ops.WHERE not in self.ops or Ops.CMPLT not in self.ops: return None
    (x, bound), (y, same) = first, second
    if bound is not same or not is_number_of(self.dtype,
                                             bound.arg) or low.src[0].src.index(x) != high.src[0].src.index(y):
      return None
    if low.src.index(x) != high.src.index(y) or not bound.arg and operation(x)[0] is not Ops.ADD: return None
    value, limit = self.rounded(x, y), ElementPair(bound, bound)
    if value is None: return None
    def placed(u: UOp) -> tuple[Found, ...]:
      return tuple(value if s is x else limit for s in u.src if s is x or s is bound)
    return PackedOperation(Ops.WHERE, (PackedOperation(Ops.CMPLT, placed(low.src[0])), *placed(low)))

  def exact(self, low: UOp, high: UOp) -> Found | None:
    """A pair of float32 values that are numbers of the type."""
    return self.once(low, high, self.numbers)

  def once(self, low: UOp, high: UOp, find: Callable[[UOp, UOp], Found | None]) -> Found | None:
    """Search each pair once, unless it is nested too deeply."""
    key = low, high
    if key not in self.known and self.level < LEVELS:
      self.level += 1
      self.known[key] = find(low, high)
      self.level -= 1
    return self.known.get(key)

  def numbers(self, low: UOp, high: UOp) -> Found | None:
    (a, minus), (b, other) = unsigned(low), unsigned(high)
    if self.stands(a) and self.stands(b): return ElementPair(self.element(a), self.element(b), (minus, other))
    if low.op is not high.op: return None
    if low.op is Ops.NEG: return self.same(low, high, self.exact)
    if low.op is Ops.WHERE: return self.choice(low, high)
    return self.arithmetic(low, high) if is_zero_and_number(low) and is_zero_and_number(high) else None

  def choice(self, low: UOp, high: UOp) -> PackedOperation | None:
    """A choice by a common condition, or by two bools of any kind. Not by variables, which may have changed since."""
    if Ops.WHERE not in self.ops: return None
    values = [self.exact(a, b) for a, b in zip(low.src[1:], high.src[1:])]
    if None in values: return None
    first, second = low.src[0], high.src[0]
    condition = self.truth(first, second)
    if condition is None and Ops.ACC in (first.op, second.op): return None
    return PackedOperation(Ops.WHERE, (condition or ElementPair(first, second), *(v for v in values if v is not None)))

  def truth(self, low: UOp, high: UOp) -> Found | None:
    """A pair of conditions: comparisons of exact numbers, or logic of such comparisons."""
    return self.once(low, high, self.common_truth)

  def common_truth(self, low: UOp, high: UOp) -> PackedOperation | None:
    if low.op is not high.op or low.op not in self.ops: return None
    if low.op in GroupOp.Comparison:
      return self.same(low, high, self.exact) if low.src[0].dtype is dtypes.float32 else None
    return self.same(low, high, self.truth) if low.dtype is dtypes.bool else None

  def same(self, low: UOp, high: UOp, find: Callable[[UOp, UOp], Found | None]) -> PackedOperation | None:
    sources = [find(a, b) for a, b in zip(low.src, high.src)] if low.op in self.ops else [None]
    return None if None in sources else PackedOperation(low.op, tuple(s for s in sources if s is not None))

  def stands(self, u: UOp) -> bool:
    """Whether a float32 is a converted number of the type, or a constant of it."""
    return is_widened(u, self.dtype) or u.op is Ops.CONST and is_number_of(self.dtype, u.arg)

  def element(self, u: UOp) -> UOp: return u if u.op is Ops.CONST else u.src[0]

def operation(u: UOp) -> tuple[Ops, UOp, UOp] | tuple[Ops]:
  """A sum or product with its operands. A difference becomes a sum. Other operations are returned alone."""
  if u.op is Ops.SUB: return Ops.ADD, u.src[0], opposite(u.src[1])
  return (u.op, u.src[0], u.src[1]) if u.op in (Ops.ADD, Ops.MUL) else (u.op,)

def bounds_of(u: UOp) -> tuple[UOp, UOp] | None:
  """x and a constant bound, if u is the maximum or minimum of them: a choice of one by a comparison of both."""
  if u.op is not Ops.WHERE or u.src[0].op is not Ops.CMPLT: return None
  x, bound = u.src[0].src
  if x.op is Ops.CONST: x, bound = bound, x
  return (x, bound) if bound.op is Ops.CONST and x is not bound and set(u.src[1:]) == {x, bound} else None

def is_zero_and_number(u: UOp) -> bool:
  """Whether u is a sum or difference with zero, which is exact."""
  return u.op in (Ops.ADD, Ops.SUB) and any(s.op is Ops.CONST and s.arg == 0 for s in u.src)
