"""Values of several registers: what a lane has of a matrix, and products on the matrix unit.

Elements narrower than 32 bits are packed, the first one lowest. Elements that stand beside each other in local memory are loaded in as few pieces as
the hardware has; others are packed by the vector unit.
"""
from __future__ import annotations
from dataclasses import replace
from typing import Any

from tinyhw.dtype import DType
from tinyhw.errors import CompileError
from tinyhw.isa.amd import macros, regs
from tinyhw.isa.amd.matrix import units
from tinyhw.isa.amd.select_cast import Casts
from tinyhw.machine.inst import MInst, Reg, RegClass
from tinyhw.machine.structure import adjacent
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Matrices(Casts):
  """The part of Selector that knows groups of registers."""
  program_offsets: dict[UOp, int]   # where local arrays begin

  def scaled(self, i: UOp, size: int) -> Reg: raise NotImplementedError

  def group_class(self, dtype: DType) -> RegClass:
    """The registers of a vector."""
    return self.generation.vectors[max(dtype.itemsize // 4, 1)]

  def group(self, u: UOp) -> Reg:
    """A vector in a group of registers."""
    found = self.values.get(u)
    if found is None: found = self.values[u] = self.make_group(u)
    return found

  def make_group(self, u: UOp) -> Reg:
    if u.op is Ops.CONST: return self.filled(u)
    if u.op is not Ops.VECTORIZE: raise CompileError(f"{self.function.name}: AMD selection has no registers for {u.op.name} of {u.dtype}")
    start = adjacent(u)
    return self.loaded(u, start) if start is not None else self.packed(u)

  def filled(self, u: UOp) -> Reg:
    """The same constant in all elements of 32 bits."""
    row = macros.group_row("fill", self.generation, self.group_class(u.dtype), ())
    dst = self.new(self.group_class(u.dtype))
    self.block.insts.append(MInst(row, [dst, self.value(UOp.const(u.dtype.scalar(), u.arg))], self.origin))
    return dst

  def loaded(self, u: UOp, start: UOp) -> Reg:
    """Adjacent elements of a local array."""
    buffer, i = start.src
    size = buffer.dtype.itemsize
    more, rest = (i.src[1].arg, i.src[0]) if i.op is Ops.ADD and i.src[1].op is Ops.CONST else (0, i)
    cls = self.group_class(u.dtype)
    dst = self.new(cls)
    row = macros.group_row("load", self.generation, cls, (regs.V[1],))
    self.block.insts.append(MInst(row, [dst, self.scaled(rest, size), self.program_offsets[buffer] + more * size], self.origin))
    return dst

  def packed(self, u: UOp) -> Reg:
    """Elements that were computed or loaded one by one."""
    bits, cls = u.dtype.scalar().bitsize, self.group_class(u.dtype)
    sources = [self.in_vector(self.value(s), 4) for s in u.src]
    row = macros.group_row(f"pack{bits}", self.generation, cls, (regs.V[1],) * len(sources))
    dst = self.new(cls)
    spare = [self.new(regs.V[1])] if bits == 8 else []
    self.block.insts.append(MInst(row, [dst, *spare, *sources], self.origin))
    return dst

  def element(self, u: UOp) -> Reg:
    """GEP of a group of 32-bit elements."""
    whole = self.values[u.src[0]]
    row = macros.group_row("pick", self.generation, regs.V[1], (whole.cls,))
    dst = self.new(regs.V[1])
    self.block.insts.append(MInst(row, [dst, whole, u.arg], self.origin))
    return dst

  def multiply(self, u: UOp) -> Reg:
    """MMA. The sum stays in the registers that it is added to; of a constant it starts by itself."""
    unit = next((x for x in units(self.generation.family, self.generation.wave) if x.matrix == u.arg), None)
    if unit is None: raise CompileError(f"{self.function.name}: {self.generation.arch} has no matrix unit for {u.arg}")
    a, b = self.group(u.src[0]), self.group(u.src[1])
    c: Any = self.value(UOp.const(u.dtype.scalar(), u.src[2].arg)) if u.src[2].op is Ops.CONST else self.group(u.src[2])
    cls = self.group_class(u.dtype)
    dst = self.new(cls)
    modifiers: dict[str, Any] = {"neg_lo": unit.neg_lo} if unit.neg_lo else {}
    inst = self.instruction(unit.key, dst, a, b, c, **modifiers)
    sums = next(i for i, o in enumerate(inst.row.operands) if o.name == "src2")
    written = replace(inst.row.operands[0], tie=sums) if isinstance(c, Reg) else replace(inst.row.operands[0], early=True)
    inst.row = replace(inst.row, operands=(written, *inst.row.operands[1:]))
    inst.origin = self.origin
    self.block.insts.append(inst)
    return dst
