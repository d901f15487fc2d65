"""Select fused multiply-adds for x86-64: the choice of the form that overwrites a value without other users.

    231   addend = a * b + addend   sums: the addend is a variable
    213   a = b * a + addend        polynomials: the addend is a constant, which stays; it may be in memory
    132   a = a * b + addend        the same with b in memory

`is_last_use` decides whether the register of a factor may be overwritten.
"""
from __future__ import annotations

from tinyhw.isa.x86.select.level import Level
from tinyhw.isa.x86.select.scalar import suffix
from tinyhw.isa.x86.select.vector import LETTER_CLASS, letter, packed
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Reg, RegClass
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Fused(Level):
  """The multiply-adds of Selector."""

  def scalar_fma(self, u: UOp) -> Reg: return self.fma(u, regs.XMM, suffix(u.dtype), "x")

  def packed_fma(self, u: UOp) -> Reg:
    v = letter(u.dtype.itemsize)
    return self.fma(u, LETTER_CLASS[v], packed(u.dtype), v)

  def fma(self, u: UOp, cls: RegClass, name: str, v: str) -> Reg:
    a, b, addend = u.src
    if self.in_memory(a) and not self.in_memory(b): a, b = b, a
    spare = next((x for x in (a, b) if self.is_last_use(x) and not self.in_memory(x)), None)
    if addend.op is Ops.ACC or spare is None or self.is_last_use(addend) and not self.in_memory(addend):
      form, old, first, last = "231", addend, a, b
    else:
      other = b if spare is a else a
      form, old, first, last = ("132", spare, addend, other) if self.in_memory(other) else ("213", spare, other, addend)
    kind, place = self.last_operand(last)
    return self.tied(cls, f"vfmadd{form}{name}_{v}_{v}_{kind or v}", self.value(old), self.value(first), *place)

  def is_last_use(self, u: UOp) -> bool:
    """Whether u has only this user, in the loop that computes u. Then its register is free."""
    if u.op in (Ops.CONST, Ops.ACC) or len(self.users.get(u, ())) != 1: return False
    return not self.loops or self.position[u] > self.position[self.loops[-1].range]
