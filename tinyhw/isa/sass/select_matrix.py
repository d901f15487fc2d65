"""Products on the matrix unit, of groups of registers (select_group.py)."""
from __future__ import annotations

from tinyhw.errors import CompileError
from tinyhw.isa.sass import regs
from tinyhw.isa.sass.matrix import VECTOR, units
from tinyhw.isa.sass.select_group import Groups
from tinyhw.machine.inst import Reg
from tinyhw.machine.structure import element_of
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Matrices(Groups):
  """The part of Selector that knows the matrix unit."""

  def multiply(self, u: UOp) -> Reg:
    """MMA. What begins at zero adds to the register that is zero."""
    unit = next((x for x in units() if x.matrix == u.arg), None)
    if unit is None: raise CompileError(f"{self.function.name}: {self.generation.arch} has no matrix unit for {u.arg}")
    a, cls = self.group(u.src[0]), self.group_class(u.dtype)
    if unit is VECTOR: return self.multiply_lanes(u, a)
    half = half_of(u.src[1])
    if half is not None:
      c, result = self.group(u.src[2]), self.new(cls)
      self.emit(f"{unit.key}_{half[1]}", result, a, self.group(half[0]), ties=(c,))
      return result
    start = regs.RZ if u.src[2].op is Ops.CONST and u.src[2].arg == 0 else self.group(u.src[2])
    return self.op(cls, unit.key, a, self.group(u.src[1]), start)

  def multiply_lanes(self, u: UOp, a: Reg) -> Reg:
    """Products on the FMA pipe: each lane's own. The second factor is 16 elements, columns one after the other."""
    elements = [element_of(u.src[1], k) if u.src[1].op is Ops.VECTORIZE else UOp(Ops.GEP, u.dtype.scalar(), (u.src[1],), k) for k in range(16)]
    groups = {"columns": [elements[4 * k:4 * k + 4] for k in range(4)], "steps": [elements[k::4] for k in range(4)]}
    order = "steps" if all(whole_of(group).op is not Ops.VECTORIZE for group in groups["steps"]) else "columns"
    factors = [self.group(whole_of(group)) for group in groups[order]]
    c, result = self.group(u.src[2]), self.new(self.group_class(u.dtype))
    self.emit(f"product_f32_{order}", result, a, *factors, ties=(c,))
    return result

  def fragment(self, u: UOp) -> Reg:
    """FRAGMENT: LDSM, whose addresses are those of rows."""
    address, offset = self.shared_place(u.src[0])
    return self.op(self.group_class(u.dtype), f"{'columns' if u.arg else 'rows'}_b{8 * u.dtype.itemsize}", address, offset)

  def shared_place(self, index: UOp) -> tuple[Reg, int]:
    """An address in the block's memory, and bytes to add to it."""
    raise NotImplementedError

def whole_of(elements: list[UOp]) -> UOp:
  """The vector that these are all elements of, in order, or one that is made of them."""
  source = elements[0].src[0] if elements[0].op is Ops.GEP else elements[0]
  fine = source.dtype.count == len(elements) and all(e.op is Ops.GEP and e.src[0] is source and e.arg == k for k, e in enumerate(elements))
  return source if fine else UOp(Ops.VECTORIZE, elements[0].dtype.vec(len(elements)), tuple(elements))

def half_of(u: UOp) -> tuple[UOp, int] | None:
  """The FRAGMENT of which a factor is the first (0) or second (1) half: the instruction takes half of the registers."""
  if u.op is not Ops.GEP or u.src[0].op is not Ops.FRAGMENT or u.src[0].dtype.count != 2 * u.dtype.count: return None
  return u.src[0], u.arg // u.dtype.count
