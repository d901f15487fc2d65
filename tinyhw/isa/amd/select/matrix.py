"""Select products on the matrix unit, whose operands are groups of registers (select/vector.py)."""
from __future__ import annotations
from typing import Any

from tinyhw.data_class import replace
from tinyhw.errors import CompileError
from tinyhw.isa.amd.select.mixed_precision import MixedPrecision
from tinyhw.isa.amd.select.products import products_row
from tinyhw.isa.amd.table.matrix import VECTOR, units
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.ir.structure import LOOSE, element_of, origin_of
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Matrices(MixedPrecision):
  """The matrix products of Selector."""

  def multiply(self, u: UOp) -> Reg:
    """Select MMA. The sum stays in the registers of its accumulator. A constant accumulator is an operand."""
    unit = next((x for x in units(self.generation) if x.matrix == u.arg), None)
    if unit is None: raise CompileError(f"{self.function.name}: {self.generation.arch} has no matrix unit for {u.arg}")
    if unit is VECTOR: return self.multiply_lanes(u)
    rows, columns = self.group(u.src[0]), self.group(u.src[1])
    c = self.constant_group(u.src[2])
    dst = self.new(self.group_class(u.dtype))
    modifiers: dict[str, Any] = {"neg_lo": unit.neg_lo} if unit.neg_lo else {}
    inst = self.instruction(unit.key, dst, columns, rows, c, **modifiers)  # products are transposed (table/matrix.py)
    sums = next(i for i, o in enumerate(inst.row.operands) if o.name == "src2")
    written = inst.row.operands[0]._replace(tie=sums) if isinstance(c,
                                                                    Reg) else inst.row.operands[0]._replace(early=True)
    inst.row = replace(inst.row, operands=(written, *inst.row.operands[1:]))
    inst.origin = self.origin
    self.block.insts.append(inst)
    return dst

  def multiply_lanes(self, u: UOp) -> Reg:
    """Products on the vector unit, each lane's own. Elements of factors are read from the registers where loads put
    them."""
    words = [self.word(element_of(factor, k) if factor.op in LOOSE else UOp(Ops.GEP, u.dtype.scalar(), (factor,), k))
             for factor in u.src[:2] for k in range(factor.dtype.count)]
    sources = list(dict.fromkeys(source for source, _ in words))
    c, result = self.group(u.src[2]), self.new(self.group_class(u.dtype))
    places = tuple((sources.index(source), number) for source, number in words)
    row = products_row(self.generation, result.cls, tuple(source.cls for source in sources), places)
    self.put(row, [result, *sources], (c,))
    return result

  def word(self, element: UOp) -> tuple[Reg, int]:
    """The location of a 32-bit element: a group, and the number of a register in it."""
    if element.op is Ops.GEP:
      source, number = origin_of(element)
      if source.op not in LOOSE: return self.group(source), number
    return self.vector(element), 0
