"""Select vectors, which are groups of registers: loads, stores, and access to elements.

Elements of less than 32 bits are packed, the first one lowest. Elements of 64 bits have two registers. A uniform vector
may be in scalar registers. Vectors have no arithmetic, except products of matrices (select/matrix.py).
"""
from __future__ import annotations
from typing import Any

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.amd.macros import macros
from tinyhw.isa.amd.select.cast import Casts
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.machine.ir.inst import Function, MInst, Reg, RegClass
from tinyhw.machine.ir.structure import LOOSE, origin_of
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Vectors(Casts):
  """The groups of registers of Selector. halves: 16-bit element -> its group, and its number there."""

  def __init__(self, generation: Generation, function: Function):
    super().__init__(generation, function)
    self.halves: dict[UOp, tuple[Reg, int]] = {}

  def group_class(self, dtype: DType) -> RegClass:
    """The register class of a vector."""
    return self.generation.vectors[max(dtype.itemsize // 4, 1)]

  def group(self, u: UOp) -> Reg:
    """A vector in a group of vector registers; one in scalar registers is copied."""
    found = super().group(u)
    return found if found.cls.bank is regs.VGPR else self.put_group("spread", self.group_class(u.dtype), [found])

  def put_group(self, name: str, cls: RegClass, sources: list[Reg], number: int | None = None) -> Reg:
    """Emit a row of macros.GROUPS that makes a group or an element from sources. number: its last operand."""
    dst = self.new(cls)
    row = macros.group_row(name, self.generation, cls, tuple(s.cls for s in sources))
    spare = [self.new(regs.V[1])] if name in macros.SPARE else []
    self.block.insts.append(MInst(row, [dst, *spare, *sources, *([] if number is None else [number])], self.origin))
    return dst

  def joined(self, u: UOp) -> Reg:
    if u.op is Ops.VECTORIZE and u.dtype.scalar().itemsize == 2:
      return self.permuted(u.dtype, [self.halves.get(s) or (self.lowest(s), 0) for s in u.src])
    return self.packed(u.dtype, [self.value(s) for s in u.src] * (u.dtype.count // len(u.src)))

  def permuted(self, dtype: DType, halves: list[tuple[Reg, int]]) -> Reg:
    """Interleave 16-bit elements of groups, or the lowest bits of registers, two by two. Transposition on the way to
    shared memory uses it too."""
    groups = list(dict.fromkeys(group for group, _ in halves))
    numbers = [(groups.index(group), number) for group, number in halves]
    selectors = [macros.selector_of(low, high) for (_, low), (_, high) in zip(numbers[::2], numbers[1::2])]
    constants = {selector: self.constant(selector, 1) for selector in selectors}
    pattern = tuple((*low, *high, list(constants).index(selector))
                    for low, high, selector in zip(numbers[::2], numbers[1::2], selectors))
    cls = self.group_class(dtype)
    dst = self.new(cls)
    row = macros.permuted_row(self.generation, cls, tuple(group.cls for group in groups), len(constants), pattern)
    self.block.insts.append(MInst(row, [dst, *groups, *constants.values()], self.origin))
    return dst

  def part_of(self, u: UOp) -> Reg:
    (source, first), scalar, count = origin_of(u), u.dtype.scalar(), u.dtype.count
    if source.op in LOOSE:
      own = (source.src[first:first + count] if source.op is Ops.VECTORIZE else source.src
             or (UOp.const(scalar, source.arg),))
      return self.packed(u.dtype, [self.value(s) for s in own] * (count // len(own)))
    if u.dtype.itemsize % 4:
      return self.packed(u.dtype, [self.element(scalar, source, first + k) for k in range(count)])
    return self.put_group("pick", self.group_class(u.dtype), [self.group(source)], first // count)

  def filled(self, dtype: DType, number: Any) -> Reg:
    scalar = dtype.scalar()
    if scalar.itemsize == 8: return self.packed(dtype, [self.value(UOp.const(scalar, number))] * dtype.count)
    word = int.from_bytes((to_bytes(number, scalar) * 4)[:4], "little")
    return self.put_group("fill", self.group_class(dtype), [], word)

  def packed(self, dtype: DType, elements: list[Any]) -> Reg:
    """Pack elements that were computed or loaded one by one."""
    scalar = dtype.scalar()
    sources = [self.in_vector(value, max(scalar.itemsize, 4)) for value in elements]
    if scalar is dtypes.int16: sources[::2] = [self.op(regs.V[1], "v_and_b32", 0xffff, low) for low in sources[::2]]
    return self.put_group(f"pack{scalar.bitsize}", self.group_class(dtype), sources)

  def element(self, dtype: DType, source: UOp, number: int) -> Reg:
    """One element of a group."""
    whole = self.values[source]
    if dtype.itemsize < 4:
      return self.put_group(f"{'i' if dtype in dtypes.sints else 'u'}{dtype.bitsize}", regs.V[1], [whole], number)
    units = dtype.itemsize // 4
    return self.put_group("pick", regs.S[units] if whole.cls.bank is regs.SGPR else self.generation.vectors[units],
                          [whole], number)

  def loaded(self, u: UOp, address: Reg, offset: int) -> Reg:
    """A vector of shared memory that one instruction cannot load."""
    return self.put_group("load", self.group_class(u.dtype), [address], offset)

  def constant_group(self, u: UOp) -> Any:
    """A constant vector with equal elements as an instruction takes it, as one number; other vectors in their
    registers."""
    return self.value(UOp.const(u.dtype.scalar(), u.arg)) if u.op is Ops.CONST else self.group(u)
