"""Select vectors of bool for AArch64. A mask is a vector whose lanes are all ones or all zeros, as wide as the compared
values. It is converted for a user with lanes of another width. In memory a bool is a byte, 0 or 1."""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.select.part import ELEMENTS, Part, arrangement
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.select.cpu import is_mask
from tinyhw.machine.select.rules import FLOATS
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

LOGIC = {Ops.AND: "and", Ops.MUL: "and", Ops.OR: "orr", Ops.ADD: "orr", Ops.MAX: "orr", Ops.XOR: "eor",
         Ops.CMPNE: "eor"}
VARIABLE_BYTES = 1  # the lanes of a variable that holds a mask

class Masks(Part):
  """Masks, and their conversion to and from other vectors. mask_bytes: the width of a mask's lanes."""

  def mask(self, u: UOp, size: int) -> Reg:
    """A mask with lanes of `size` bytes."""
    if u.op is Ops.CONST: return self.constant(u.dtype, u.arg)
    if u.op is Ops.BROADCAST and u.src[0].op is not Ops.ACC: return self.mask_of_flag(u.src[0])
    value = self.value(u)
    return self.resized(value, self.mask_bytes[u], size, u.dtype.count)

  def resized(self, value: Reg, old: int, size: int, count: int) -> Reg:
    """A mask with lanes of another width."""
    while old < size:
      value = self.code(f"sshll v%d.{arrangement(2 * old, 16)}, v%a.{arrangement(old, 8)}, #0", a=value)
      old *= 2
    while old > size:
      value = self.code(f"xtn v%d.{arrangement(old // 2, 8)}, v%a.{arrangement(old, 16)}", a=value)
      old //= 2
    return value

  def width_for(self, u: UOp) -> int:
    """The width of lanes for an operation of masks: that of a source that has one."""
    return next((self.mask_bytes[s] for s in u.src if s in self.mask_bytes), 1)

  def logic(self, u: UOp) -> Reg:
    """Logic, comparisons and choices of masks. XOR is !=, its inverse ==, and < is "not a, and b"."""
    size = self.width_for(u)
    self.mask_bytes[u] = size
    if u.op is Ops.WHERE:
      condition = self.mask(u.src[0], size) if u.src[0].dtype.count > 1 else self.mask_of_flag(u.src[0])
      return self.blended(condition, self.mask(u.src[1], size), self.mask(u.src[2], size))
    a = self.mask(u.src[0], size)
    if u.op is Ops.NEG: return self.code("mvn v%d.16b, v%a.16b", a=a)
    b = self.mask(u.src[1], size)
    if u.op is Ops.CMPLT: return self.code("bic v%d.16b, v%b.16b, v%a.16b", a=a, b=b)
    if u.op is Ops.CMPEQ: return self.code("eor v%t.16b, v%a.16b, v%b.16b; mvn v%d.16b, v%t.16b", a=a, b=b)
    if u.op not in LOGIC: raise self.missing(u, u.dtype)
    return self.code(f"{LOGIC[u.op]} v%d.16b, v%a.16b, v%b.16b", a=a, b=b)

  def mask_of(self, u: UOp, dtype: DType, value: Reg) -> Reg:
    """The mask of the lanes that are not 0."""
    size = dtype.scalar().itemsize
    lanes, self.mask_bytes[u] = arrangement(size, dtype.itemsize), size
    if dtype.scalar() in FLOATS: return self.code(f"fcmeq v%t.{lanes}, v%a.{lanes}, #0.0; mvn v%d.16b, v%t.16b",
                                                  a=value)
    return self.code(f"cmtst v%d.{lanes}, v%a.{lanes}, v%a.{lanes}", a=value)

  def numbers_of(self, u: UOp, dtype: DType) -> Reg:
    """1 where a mask is true, else 0, as a vector of a type."""
    size = dtype.scalar().itemsize
    mask = self.mask(u, size)
    if dtype.scalar() in FLOATS: return self.code("and v%d.16b, v%a.16b, v%b.16b", a=mask, b=self.constant(dtype, 1.0))
    lanes = arrangement(size, dtype.itemsize)
    return self.code(f"ushr v%d.{lanes}, v%a.{lanes}, #{8 * size - 1}", a=mask)

  def mask_lane(self, source: UOp, number: int) -> Reg:
    """A lane of a mask as a scalar bool."""
    value, size = self.value(source), self.mask_bytes[source]
    if size == 8: return self.code(f"umov x%t, v%a.d[{number}]; and w%d, w%t, #1", a=value)
    return self.code(f"umov w%t, v%a.{ELEMENTS[size]}[{number}]; and w%d, w%t, #1", a=value)

  def joined_mask(self, u: UOp) -> Reg:
    """A VECTORIZE of scalar bools."""
    self.mask_bytes[u] = 1
    value = self.constant(dtypes.uint8.vec(16), 0)
    for k, s in enumerate(u.src): value = self.code(f"mov v%d:o.b[{k}], w%a", o=value, a=self.value(s))
    return self.code("cmtst v%d.16b, v%a.16b, v%a.16b", a=value)

  def stored_mask(self, u: UOp) -> Reg:
    """The bytes of a mask in memory."""
    return self.code("ushr v%d.16b, v%a.16b, #7", a=self.mask(u, 1))

  def variable_value(self, variable: UOp, u: UOp) -> Reg:
    """u as the value of a variable (ACC), in a register that the allocator owns."""
    if not is_mask(variable): return self.value(u)
    self.mask_bytes[variable] = VARIABLE_BYTES
    return self.mask(u, VARIABLE_BYTES)
