"""Select instructions that do two operations: sums with a product or a third term, comparisons combined with another
bool.

The inner operation was selected before. If this is its only user, its result is unused and unused.py removes it
(machine/select/unused.py). A variable may have changed since then, so operations on variables are not fused.
"""
from __future__ import annotations
import operator
from collections import Counter
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.sass.select.part import FULL, Part
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Access, Reg
from tinyhw.machine.select.macros import Macro
from tinyhw.threads import once
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

# types that a register holds as 32 bits, by the extension to 64 bits
EXTENDED = {"u": (dtypes.uint32, dtypes.uint16, dtypes.uint8),
            "s": (dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint16, dtypes.uint8)}
TRUTH = {Ops.AND: operator.and_, Ops.OR: operator.or_, Ops.XOR: operator.xor}
BITS = (0xf0, 0xcc, 0xaa)                  # the sources of LOP3 in its truth table
PLACES = ((0, 2, 1), (0, 1, 2), (1, 0, 2))  # for a constant that is the last, the second or the first of three
LIMITS = {"u": (0, FULL), "s": (-1 << 31, (1 << 31) - 1)}

class Fused(Part):
  """The layer of Selector that looks into operands. uses: of nodes by others."""
  uses: Counter[UOp] = Counter()

  def inner(self, u: UOp, *ops: Ops) -> bool:
    """Return whether u is one of these operations and can be fused into its user."""
    return u.op in ops and self.uses[u] == 1 and not any(s.op is Ops.ACC for s in u.src)

  # ***** sums *****

  def total(self, u: UOp) -> Reg | None:
    """Select a sum or difference of integers, with a product or a sum in it, as one instruction. Return None if u is
    none."""
    if u.op is Ops.SUB: return self.difference(u)
    if u.op is not Ops.ADD or any(s.op is Ops.CONST for s in u.src): return None
    first, second = u.src
    for product, other in ((second, first), (first, second)):
      if self.inner(product, Ops.MUL): return self.product_and(product, other)
    for terms, other in ((first, second), (second, first)):
      if u.dtype.itemsize == 4 and self.inner(terms, Ops.ADD) and not any(self.inner(s, Ops.MUL) for s in terms.src):
        return self.op(regs.R[1], "sum32", *[self.value(s) for s in (*terms.src, other)])
    return None

  def product_and(self, product: UOp, other: UOp) -> Reg | None:
    """Select product + other."""
    if product.dtype.itemsize == 4:
      return self.op(regs.R[1], "mad32", *self.register_first([self.value(s) for s in product.src]), self.value(other))
    found = self.narrow_factors(product)
    if found is None: return None
    return self.op(regs.R[2], f"mad_wide_{found[0]}", *found[1], self.in_register(self.value(other), 2))

  def difference(self, u: UOp) -> Reg | None:
    """Select x - y * constant."""
    first, product = u.src
    if u.dtype.itemsize != 4 or first.op is Ops.CONST or not self.inner(product,
                                                                        Ops.MUL) or product.src[1].op is not Ops.CONST:
      return None
    return self.op(regs.R[1], "mad32", self.value(product.src[0]), -product.src[1].arg & FULL, self.value(first))

  def register_first(self, values: list[Any]) -> list[Any]: return sorted(values, key=lambda x: not isinstance(x, Reg))

  # ***** bits *****

  def bitwise(self, u: UOp) -> Reg | None:
    """Select nested logic of 32 bits, or a rotation, as one instruction. Return None if u is neither."""
    if u.op not in TRUTH or u.dtype.itemsize != 4: return None
    rotated = self.rotation(u)
    if rotated is not None: return self.op(regs.R[1], "rotate32", self.value(rotated[0]), rotated[1])
    for inside, other in (u.src, u.src[::-1]):
      if not self.inner(inside, *TRUTH) or self.rotation(inside) is not None: continue
      sources = (*inside.src, other)
      if sum(s.op is Ops.CONST for s in sources) > 1: continue
      places = next((p for p in PLACES if sources[p.index(1)].op is Ops.CONST), PLACES[0])
      values = [self.value(s) for s in sources]
      return self.op(regs.R[1], three_bits(inside.op, u.op, places), *[values[places.index(k)] for k in range(3)])
    return None

  def rotation(self, u: UOp) -> tuple[UOp, int] | None:
    """Return x and n of the unsigned x << n | x >> 32 - n."""
    for left, right in (u.src, u.src[::-1]):
      if u.dtype is not dtypes.uint32 or not (self.inner(left, Ops.SHL) and self.inner(right, Ops.SHR)): continue
      (x, n), (same, m) = left.src, right.src
      if x is same and n.op is Ops.CONST and m.op is Ops.CONST and n.arg + m.arg == 32 and 0 < n.arg < 32:
        return x, n.arg
    return None

  # ***** products of 64 bits *****

  def narrow_factors(self, u: UOp) -> tuple[str, list[Any]] | None:
    """Return the factors of a 64-bit product as 32 bits each, and their extension. Return None if they are not
    extended."""
    for letter in EXTENDED:
      found = [self.narrow(s, letter) for s in u.src]
      if None not in found: return letter, self.register_first(found)
    return None

  def narrow(self, u: UOp, letter: str) -> Any:
    """Return the 32 bits that a 64-bit integer extends. Return None if it is not known to be an extension."""
    low, high = LIMITS[letter]
    if u.op is Ops.CONST: return int(u.arg) & FULL if low <= u.arg <= high else None
    if u.op is Ops.CAST and u.src[0].dtype in EXTENDED[letter] and u.src[0].op is not Ops.ACC:
      return self.value(u.src[0])
    return None

  # ***** bools *****

  def compared_and(self, u: UOp) -> Reg | None:
    """Select logic with a comparison in it: the comparison combines its result with the other bool."""
    for test, other in (u.src, u.src[::-1]):
      if not self.inner(test, *GroupOp.Comparison) or other.op is Ops.CONST or narrow_type(test.src[0].dtype): continue
      name, a, b = self.test(test)
      return self.op(regs.P, combined(self.macro(name), u.op.name), a, b, self.value(other))
    return None

  def test(self, u: UOp) -> tuple[str, Any, Any]:
    """Return the macro of a comparison of numbers, and its sources."""
    raise NotImplementedError

@once
def three_bits(inside: Ops, outside: Ops, places: tuple[int, int, int]) -> Macro:
  """Return a macro of (x inside y) outside z, bit by bit.

  places: the source of LOP3 for each of the three. Only the second source may be a constant.
  """
  x, y, z = (BITS[place] for place in places)
  table = TRUTH[outside](TRUTH[inside](x, y), z)
  operands = (("d", Access.WRITE, "v1"), ("a", Access.READ, "v1"), ("b", Access.READ, "x1"), ("c", Access.READ, "v1"))
  return Macro("three_bits", operands, len(operands), (f"LOP3.LUT d, a, b, c, {table:#x}, !PT",))

def narrow_type(dtype: DType) -> bool:
  """Return whether no single instruction compares this type."""
  return dtype is dtypes.bool or dtype.itemsize != 4

@once
def combined(macro: Macro, word: str) -> Macro:
  """Return the macro of a comparison that combines its result with another bool: AND, OR, XOR."""
  (line,) = macro.lines
  assert ".AND d, PT, " in line and line.endswith(", PT"), f"macro {macro.name} is no comparison"
  return macro._replace(operands=(*macro.operands, ("p", Access.READ, "p")), shown=macro.shown + 1,
                        lines=(line.replace(".AND d, PT, ", f".{word} d, PT, ").removesuffix("PT") + "p",))
