"""Select choices for x86-64: WHERE, and the comparisons that their users compute.

A WHERE that selects the lesser or the greater of the compared values is one vmin or vmax. Some integer comparisons have
only one user: a WHERE of integers, an IF, or the gate of a store. Such a comparison leaves its result in the flags,
next to the user. A comparison of floats whose users are only WHEREs of floats is a mask. It is never 0 or 1 in a
general register: moving it there and back would take longer than all the rest.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.select.level import Level
from tinyhw.isa.x86.select.scalar import FLOATS, code_of, general, suffix, width
from tinyhw.isa.x86.select.vector import ELEMENT, packed
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

OPPOSITE = {"e": "ne", "ne": "e", "l": "ge", "b": "ae"}   # opposites of the conditions that compare_flags returns

def extremum(u: UOp) -> tuple[str, UOp, UOp] | None:
  """Match a WHERE that chooses one of the two values that it compares by <.

  Returns "min" or "max", and the operands in the instruction's order. vmin is `first if first < second else second`,
  vmax `first if first > second else second`. So both return the second operand if one is NaN or both are zeros, like a
  WHERE. For integers the order makes no difference.
  """
  condition, yes, no = u.src
  if condition.op is not Ops.CMPLT or condition.dtype.count != u.dtype.count: return None
  a, b = condition.src
  if yes is a and no is b: return "min", a, b
  return ("max", b, a) if yes is b and no is a else None

def is_zero(u: UOp) -> bool:
  """Whether all bits of all lanes are 0."""
  return u.op is Ops.CONST and u.dtype.scalar() is not dtypes.bool and code_of(u.dtype.scalar(),
                                                                               u.arg) == 0 and str(u.arg)[0] != "-"

class Choices(Level):
  """The choices of Selector.

  - extrema: the WHEREs that are one vmin or vmax.
  - flags: comparisons that their users compute.
  - lone: comparisons of scalars whose value is a mask.
  """

  def take_condition(self, u: UOp, fence: int) -> None:
    """Before selection: mark the condition of u as not emitted, if u compares by itself. fence: the last store or end
    before u."""
    if u.op is Ops.STORE and len(u.src) < 3: return
    condition = u.src[2] if u.op is Ops.STORE else u.src[0]
    found = extremum(u) if u.op is Ops.WHERE else None
    scalar_integers = u.dtype.count == 1 and u.dtype not in FLOATS
    if found is not None and not scalar_integers and (u.dtype.scalar() in FLOATS
                                                      or self.target.capabilities.supports(Ops.MAX, u.dtype)):
      self.extrema[u] = found
      self.users[condition].remove(u)
      if not self.users[condition]:
        for s in condition.src: self.users[s].remove(condition)
    elif (scalar_integers and condition.op in GroupOp.Comparison and condition.dtype.count == 1
          and condition.src[0].dtype not in FLOATS):
      if self.users[condition] == [u] and self.position[condition] > fence:
        self.flags.add(condition)
        self.users[condition] = []

  # ***** WHERE *****

  def where(self, u: UOp) -> Reg:
    """Select a WHERE of scalars."""
    condition, yes, no = u.src
    if u in self.extrema:
      name, a, b = self.extrema[u]
      address = self.memory(b)
      if address is not None: return self.op(regs.XMM, f"v{name}{suffix(u.dtype)}_x_x_m", self.value(a), *address)
      return self.op(regs.XMM, f"v{name}{suffix(u.dtype)}_x_x_x", self.value(a), self.value(b))
    if condition not in self.flags: return self.choose(u.dtype, condition, self.value(yes), self.value(no))
    old, new, bits = self.value(no), self.value(yes), width(u.dtype)
    return self.tied(general(u.dtype), f"cmov{self.compare_flags(condition)}_r{bits}_r{bits}", old, new)

  def vector_where(self, u: UOp) -> Reg:
    condition, yes, no = u.src
    if u in self.extrema: return self.packed_extremum(u)
    if condition.dtype.count == 1: return self.choose(u.dtype, condition, self.value(yes), self.value(no))
    mask = self.mask(condition, u.dtype.scalar().itemsize)
    if is_zero(no): return self.kept(yes, mask)
    return self.blend(u.dtype, mask, self.value(yes), self.value(no))

  def packed_extremum(self, u: UOp) -> Reg:
    name, a, b = self.extrema[u]
    scalar = u.dtype.scalar()
    if scalar in FLOATS: return self.second(b, f"v{name}{packed(u.dtype)}", self.value(a))
    if self.in_memory(a) and not self.in_memory(b): a, b = b, a
    return self.second(b, f"vp{name}{'u' if dtypes.is_unsigned(scalar) else 's'}{ELEMENT[scalar.itemsize]}",
                       self.value(a))

  def choose(self, dtype: DType, condition: UOp, yes: Reg, no: Reg) -> Reg:
    """yes if the scalar condition is true, else no. Both are scalars, or vectors under one condition."""
    gate = self.value(condition)
    if condition in self.lone: return self.blend(dtype, gate, yes, no)
    if dtype.count == 1 and dtype not in FLOATS:
      bits = width(dtype)
      self.emit("test_r32_r32", gate, gate)
      return self.tied(general(dtype), f"cmovne_r{bits}_r{bits}", no, yes)
    return self.blend(dtype, self.mask_of_flag(gate, yes.cls), yes, no)

  # ***** branches *****

  def unless(self, condition: UOp) -> str:
    """Set the flags, and return the condition of a jump that is taken if `condition` is false."""
    if condition in self.flags: return OPPOSITE[self.compare_flags(condition)]
    gate = self.value(condition)
    self.emit("test_r32_r32", gate, gate)
    return "e"
