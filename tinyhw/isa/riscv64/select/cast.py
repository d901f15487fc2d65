"""Select conversions for RISC-V: CAST and BITCAST of scalars.

fcvt saturates, and gives the greatest integer for NaN. The definition (docs/numerics.md) has the least one for NaN and
for all that does not fit. x < 2**31 is false for NaN and for what is too large; adding 1 to the greatest integer then
gives the least.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.riscv64.select.part import Part, letter, mover
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.select.rules import FLOATS
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Casts(Part):
  """The conversions of Selector."""

  def cast(self, u: UOp) -> Reg:
    source, target, value = u.src[0].dtype, u.dtype, self.value(u.src[0])
    return self.bits(source, target, value) if u.op is Ops.BITCAST else self.converted(source, target, value)

  def bits(self, source: DType, target: DType, value: Reg) -> Reg:
    """The same bits as another type."""
    if source in FLOATS and target in FLOATS: return value
    if source not in FLOATS and target not in FLOATS: return self.normal(as_code(target), value)
    m = mover(source)
    return self.code(f"fmv.{m}.x f%d, x%a" if target in FLOATS else f"fmv.x.{m} x%d, f%a", a=value)

  def converted(self, source: DType, target: DType, value: Reg) -> Reg:
    if source is target: return value
    if source is dtypes.float16:
      single = self.code("fmv.h.x f%t, x%a; fcvt.s.h f%d, f%t", a=value)
      return single if target is dtypes.float32 else self.converted(dtypes.float32, target, single)
    if target is dtypes.float16:
      if source is dtypes.float64: raise self.refuse(source, target)  # a detour through float32 would round twice
      single = value if source is dtypes.float32 else self.converted(source, dtypes.float32, value)
      return self.extended(dtypes.uint16, self.code("fcvt.h.s f%t, f%a; fmv.x.h x%d, f%t", a=single))
    if source in FLOATS: return self.from_float(source, target, value)
    if not (dtypes.is_int(source) or source is dtypes.bool): raise self.refuse(source, target)
    if target in FLOATS: return self.code(f"fcvt.{letter(target)}.{integer_letters(source)} f%d, x%a", a=value)
    if target is dtypes.bool: return self.code("snez x%d, x%a", a=value)
    if not dtypes.is_int(target): raise self.refuse(source, target)
    return self.resized(source, target, value)

  def resized(self, source: DType, target: DType, value: Reg) -> Reg:
    """An integer or bool as another integer."""
    if source is dtypes.uint32 and target.itemsize == 8: return self.extended(source, value)
    if target.itemsize == 8 or source is dtypes.bool: return value
    if target.itemsize == 4: return self.code("sext.w x%d, x%a", a=value) if source.itemsize == 8 else value
    fits = source.itemsize < target.itemsize and (source not in dtypes.sints or target in dtypes.sints)
    return value if fits else self.normal(target, value)

  def from_float(self, source: DType, target: DType, value: Reg) -> Reg:
    f = letter(source)
    if target in FLOATS: return self.code(f"fcvt.{letter(target)}.{f} f%d, f%a", a=value)
    if target is dtypes.bool:
      return self.code(f"feq.{f} x%t, f%a, f%z; xori x%d, x%t, 1", a=value, z=self.constant(source, 0.0))
    if not dtypes.is_int(target): raise self.refuse(source, target)
    if target is dtypes.uint64: return self.to_uint64(source, value)
    if target.itemsize == 8: return self.truncated(source, value, "l")
    if target is dtypes.uint32: return self.code("sext.w x%d, x%a", a=self.truncated(source, value, "l"))
    return self.normal(target, self.truncated(source, value, "w"))

  def truncated(self, source: DType, value: Reg, size: str) -> Reg:
    """A float as a signed integer of 32 (w) or 64 (l) bits."""
    f, w = letter(source), "w" if size == "w" else ""
    limit = self.constant(source, 2.0 ** (31 if w else 63))
    return self.code(f"fcvt.{size}.{f} x%x, f%a, rtz; flt.{f} x%t, f%a, f%l; xori x%n, x%t, 1; add{w} x%d, x%x, x%n",
                     a=value, l=limit)

  def to_uint64(self, source: DType, value: Reg) -> Reg:
    """Below 2**63 the signed conversion; above, that of the value minus 2**63, with the top bit set."""
    f, half = letter(source), self.constant(source, 2.0 ** 63)
    rest = self.truncated(source, self.code(f"fsub.{f} f%d, f%a, f%b", a=value, b=half), "l")
    high = self.code("or x%d, x%a, x%b", a=rest, b=self.constant(dtypes.int64, -1 << 63))
    low = self.code(f"fcvt.l.{f} x%d, f%a, rtz", a=value)
    return self.either(self.code(f"flt.{f} x%d, f%a, f%b", a=value, b=half), low, high)

def as_code(dtype: DType) -> DType:
  """The integer type as which the bits of a narrow float are held."""
  if dtypes.is_int(dtype) or dtype is dtypes.bool: return dtype
  return dtypes.uint8 if dtype.itemsize == 1 else dtypes.uint16

def integer_letters(dtype: DType) -> str:
  """The letters of an integer type in a conversion. Types below 32 bits are int32, since they are extended."""
  if dtype.itemsize < 4: return "w"
  return ("w" if dtype.itemsize == 4 else "l") + "u" * (dtype not in dtypes.sints)
