"""Values of several registers: vectors that are loaded, stored, and taken apart into elements.

Elements narrower than 32 bits are packed, the first one lowest; those of 64 bits have two registers. There is no arithmetic on vectors, but on
matrices (select_matrix.py).
"""
from __future__ import annotations

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.sass import regs
from tinyhw.isa.sass.select_cast import Casts
from tinyhw.machine.inst import Reg, RegClass
from tinyhw.machine.structure import origin_of
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

JOINED = {2: "pack64", 4: "words_4"}  # registers of a group -> the macro that makes it of single ones

class Groups(Casts):
  """The part of Selector that knows groups of registers."""

  def group_class(self, dtype: DType) -> RegClass:
    """The registers of a value."""
    return regs.R[max(dtype.itemsize // 4, 1)]

  def group(self, u: UOp) -> Reg:
    """A vector in a group of registers."""
    found = self.values.get(u)
    if found is None: found = self.values[u] = self.make_group(u)
    return found

  def make_group(self, u: UOp) -> Reg:
    if u.op is Ops.CONST: return self.joined([self.once(regs.R[1], "move", word) for word in self.constant_words(u)])
    if u.op is Ops.GEP: return self.part_of(u)
    if u.op not in (Ops.VECTORIZE, Ops.BROADCAST):
      raise CompileError(f"{self.function.name}: NVIDIA selection has no registers for {u.op.name} of {u.dtype}")
    return self.packed(u.dtype, list(u.src) * (u.dtype.count // len(u.src)))

  def constant_words(self, u: UOp) -> list[int]:
    """The same number in all elements, as words of 32 bits."""
    content = (to_bytes(u.arg, u.dtype.scalar()) * max(u.dtype.count, 4))[:max(u.dtype.itemsize, 4)]
    return [int.from_bytes(content[k:k + 4], "little") for k in range(0, len(content), 4)]

  def part_of(self, u: UOp) -> Reg:
    """Adjacent elements of a group."""
    (source, first), scalar, count = origin_of(u), u.dtype.scalar(), u.dtype.count
    if source.op is Ops.VECTORIZE: return self.packed(u.dtype, list(source.src[first:first + count]))
    if source.op is Ops.BROADCAST: return self.packed(u.dtype, list(source.src) * count)
    if source.op is Ops.CONST: return self.make_group(UOp(Ops.CONST, u.dtype, (), source.arg))
    at, units = divmod(first * scalar.itemsize, 4)[0], u.dtype.itemsize // 4
    if units: return self.piece(self.group(source), at, units)
    return self.packed(u.dtype, [UOp(Ops.GEP, scalar, (source,), first + k) for k in range(count)])

  def piece(self, group: Reg, at: int, units: int) -> Reg:
    """One or two registers of a group."""
    if group.cls.units == units: return group
    return self.op(regs.R[units], f"{'pick' if units == 1 else 'pair'}{at}", group)

  def packed(self, dtype: DType, elements: list[UOp]) -> Reg:
    """Elements that were computed or loaded one by one, or are parts of other vectors."""
    size = dtype.scalar().itemsize
    if size == 8: return self.op(regs.R[4], "pairs_2", *[self.scalar(e) for e in elements])
    each = max(4 // size, 1)
    return self.joined([self.word(elements[k:k + each]) for k in range(0, len(elements), each)])

  def joined(self, words: list[Reg]) -> Reg:
    return words[0] if len(words) == 1 else self.op(regs.R[len(words)], JOINED[len(words)], *words)

  def word(self, elements: list[UOp]) -> Reg:
    """One register of elements."""
    size = elements[0].dtype.itemsize
    if all(e.op is Ops.GEP and e not in self.values for e in elements):
      origins = [origin_of(e) for e in elements]
      (source, first), at = origins[0], origins[0][1] * size
      if source in self.values and at % 4 == 0 and origins == [(source, first + k) for k in range(len(elements))] and len(elements) * size == 4:
        return self.piece(self.values[source], at // 4, 1)
    values = [self.scalar(e) for e in elements]
    return values[0] if size == 4 else self.op(regs.R[1], f"{'halves' if size == 2 else 'bytes'}_{len(elements)}", *values)

  def scalar(self, u: UOp) -> Reg:
    """One element in its registers."""
    if u.op is Ops.GEP and u not in self.values:
      source, number = origin_of(u)
      if source.op not in (Ops.VECTORIZE, Ops.BROADCAST, Ops.CONST): self.values[u] = self.element(u.dtype, source, number)
      else: return self.scalar(element_of(source, number))
    return self.in_register(self.value(u), 2 if u.dtype.itemsize == 8 else 1)

  def element(self, dtype: DType, source: UOp, number: int) -> Reg:
    """One element of a group; narrow ones are extended to 32 bits."""
    group, size = self.group(source), dtype.itemsize
    at, low = divmod(number * size, 4)
    if size >= 4: return self.piece(group, at, size // 4)
    return self.op(regs.R[1], f"bytes_of{at}", group, selector(low, size, dtype in dtypes.sints))

def selector(first: int, size: int, signed: bool) -> int:
  """What PRMT extends one or two bytes of a register by: a digit for each byte, 4 is a zero, 8 and a byte's number its sign."""
  digits = [first + k for k in range(size)]
  digits += [digits[-1] | 8 if signed else 4] * (4 - size)
  return sum(digit << 4 * k for k, digit in enumerate(digits))

def element_of(vector: UOp, number: int) -> UOp:
  """An element of a vector that is made of scalars."""
  if vector.op is Ops.CONST: return UOp.const(vector.dtype.scalar(), vector.arg)
  return vector.src[number if vector.op is Ops.VECTORIZE else 0]
