"""Maxima of floats on targets whose instructions ignore NaN, as most do: `b if a < b else a` is a, whether b is NaN or
not.

MAX(a, b) gives NaN where either operand is NaN (arithmetic.py). For one pair that costs a comparison of b with itself
(decompose.py). Folding many operands has a cheaper way, which is here. The instruction that ignores NaN finds the
largest number. In parallel the sum of 1 and all squares is computed. It is NaN exactly where an operand is, since no
other NaN can arise: there is no difference of infinities and no product of 0 and infinity. So each operand costs two
independent instructions, and the end costs one comparison and choice. A sum that begins at 1 is never subnormal, which
some processors are slow at.

Some targets have an instruction that keeps NaN, but takes any of two zeros (`Capabilities.maxima`). That is not MAX,
which takes the first zero. But the order in which many operands are folded is not specified, so a fold may use it. It
is a MAX with the tag FOLD, which decompose.py does not change.
"""
from __future__ import annotations
import math

from tinyhw.dtype import DType, dtypes
from tinyhw.machine.ir.target import Capabilities
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import ROUGH, Ops
from tinyhw.uop.ops import UOp

FOLD = "fold"

class Folded(NamedTuple):
  """Operands folded so far: the largest number, and 1 plus all squares, which is NaN if an operand is.

  squares is None where the target's instruction keeps NaN, so that the largest itself is NaN.
  """
  largest: UOp
  squares: UOp | None

def ignores_nan(capabilities: Capabilities, dtype: DType) -> bool:
  """Is this a type of floats for which the target has no MAX that gives NaN?"""
  return dtypes.is_float(dtype) and not capabilities.supports(Ops.MAX, dtype.scalar())

def propagates_nan(capabilities: Capabilities, dtype: DType) -> bool:
  """Does the target have an instruction for folds of this type that gives NaN?"""
  return widened(dtype).scalar() in capabilities.maxima

def never_nan(u: UOp) -> bool:
  """Can the value certainly not be NaN?"""
  if u.op is Ops.CONST: return not math.isnan(u.arg)
  if u.op is Ops.CAST: return not dtypes.is_float(u.src[0].dtype)
  return u.op in (Ops.BROADCAST, Ops.VECTORIZE) and all(never_nan(s) for s in u.src)

def larger(a: UOp, b: UOp) -> UOp:
  """Return b where it is greater, else a: one instruction."""
  return UOp(Ops.WHERE, a.dtype, (UOp(Ops.CMPLT, dtypes.bool.vec(a.dtype.count), (a, b)), b, a))

def lanes_of(x: UOp, u: UOp) -> UOp:
  """Return the lanes of x that the GEP u takes."""
  return UOp(Ops.GEP, x.dtype.scalar().vec(u.dtype.count), (x,), u.arg)

def widened(dtype: DType) -> DType:
  """Return the type in which elements are compared and squared."""
  return dtypes.float32.vec(dtype.count) if dtype.scalar() in dtypes.narrow_floats else dtype

class Maxima:
  """The folds of the nodes of a kernel that are maxima of floats, by the original node."""
  def __init__(self, capabilities: Capabilities):
    self.capabilities = capabilities
    self.folded: dict[UOp, Folded] = {}

  def wants(self, u: UOp) -> bool:
    """Does `rebuild` handle this node, an elementwise MAX or lanes of a fold?"""
    if u.op is Ops.GEP: return u.src[0] in self.folded
    return u.op is Ops.MAX and u.arg != ROUGH and ignores_nan(self.capabilities, u.dtype)

  def rebuild(self, u: UOp, src: tuple[UOp, ...]) -> UOp:
    """Rebuild u over new sources. A MAX of two operands stays; one of more operands is made from their fold."""
    if u.op is Ops.GEP:
      whole = self.folded[u.src[0]]
      self.folded[u] = Folded(lanes_of(whole.largest, u), None if whole.squares is None else lanes_of(whole.squares, u))
      return UOp(u.op, u.dtype, src, u.arg, u.tag)
    many = u.src[0] in self.folded or u.src[1] in self.folded
    if never_nan(src[1]) and not many: return UOp(Ops.MAX, u.dtype, src)
    self.folded[u] = folded = self._both(self._of(u.src[0], src[0]), u.src[1], src[1])
    return self.value(folded, u.dtype) if many else UOp(Ops.MAX, u.dtype, src)

  def _of(self, old: UOp, new: UOp) -> Folded:
    if old in self.folded: return self.folded[old]
    x = self._wide(new)
    if propagates_nan(self.capabilities, x.dtype): return Folded(x, None)
    return Folded(x, self._square(x, UOp(Ops.CONST, x.dtype, (), 1.0)))

  def _both(self, left: Folded, old: UOp, new: UOp) -> Folded:
    """Return a fold with one more operand, which may itself be folded."""
    right = self.folded.get(old)
    if left.squares is None:
      other = self._wide(new) if right is None else right.largest
      return Folded(UOp(Ops.MAX, other.dtype, (left.largest, other), None, FOLD), None)
    if right is not None and right.squares is not None:
      return Folded(larger(left.largest, right.largest),
                    UOp(Ops.ADD, left.squares.dtype, (left.squares, right.squares)))
    x = self._wide(new)
    return Folded(larger(left.largest, x), left.squares if never_nan(x) else self._square(x, left.squares))

  def _wide(self, x: UOp) -> UOp:
    dtype = widened(x.dtype)
    return x if x.dtype is dtype else UOp(Ops.CAST, dtype, (x,))

  def _square(self, x: UOp, total: UOp) -> UOp: return UOp(Ops.MULACC, x.dtype, (x, x, total))

  def update(self, variables: Folded, old: UOp, new: UOp) -> Folded:
    """Return a reduction's two variables after one more term."""
    return self._both(variables, old, new)

  def value(self, folded: Folded, dtype: DType) -> UOp:
    """Return the maximum: NaN if an operand is NaN."""
    largest, squares = folded
    result = largest
    if squares is not None:
      result = UOp(Ops.WHERE, largest.dtype, (UOp(Ops.CMPNE, dtypes.bool.vec(squares.dtype.count), (squares, squares)),
                                              squares, largest))
    return result if largest.dtype is dtype else UOp(Ops.CAST, dtype, (result,))
