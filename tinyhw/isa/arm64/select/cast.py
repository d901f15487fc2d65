"""Select conversions for AArch64: CAST and BITCAST of scalars and vectors.

fcvtzs saturates, and gives 0 for NaN. The definition (docs/numerics.md) has the least integer for NaN and for all that
does not fit. The least one is what saturation gives below; a comparison x < 2**31, false for NaN, finds the others.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.select.mask import Masks
from tinyhw.isa.arm64.select.part import arrangement, home_of, scalar, width
from tinyhw.isa.arm64.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.select.rules import FLOATS
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Casts(Masks):
  """The conversions of Selector."""

  def cast(self, u: UOp) -> Reg:
    source, target = u.src[0].dtype, u.dtype
    if u.op is Ops.BITCAST: return self.bits(source, target, self.value(u.src[0]))
    if target.count > 1: return self.cast_vector(u, source, target)
    return self.cast_scalar(u, source, target, self.value(u.src[0]))

  def bits(self, source: DType, target: DType, value: Reg) -> Reg:
    """The same bits as another type."""
    if source.count > 1: return value
    if home_of(source) is home_of(target): return value if source in FLOATS else self.normal(target, value)
    f, r = ("s", "w") if source.itemsize == 4 else ("d", "x")
    return self.code(f"fmov {r}%d, {f}%a" if home_of(target) is regs.X else f"fmov {f}%d, {r}%a", a=value)

  # ***** scalars *****

  def cast_scalar(self, u: UOp, source: DType, target: DType, value: Reg) -> Reg:
    if source is target: return value
    if source is dtypes.float16:
      loaded = u.src[0] in self.in_vector
      single = self.code("fcvt s%d, h%a" if loaded else "fmov s%t, w%a; fcvt s%d, h%t", a=value)
      return single if target is dtypes.float32 else self.cast_scalar(u, dtypes.float32, target, single)
    if target is dtypes.float16:
      if source is dtypes.float64: raise self.refuse(source, target)  # a detour through float32 would round twice
      single = value if source is dtypes.float32 else self.cast_scalar(u, source, dtypes.float32, value)
      return self.code("fcvt h%t, s%a; fmov w%d, s%t", a=single)
    if source in FLOATS: return self.from_float(source, target, value)
    if target in FLOATS:
      if not (dtypes.is_int(source) or source is dtypes.bool): raise self.refuse(source, target)
      kind = "s" if source in dtypes.sints else "u"
      return self.code(f"{kind}cvtf {scalar(target)}%d, {width(source)}%a", a=value)
    if target is dtypes.bool: return self.code(f"cmp {width(source)}%a, #0; cset w%d, ne", a=value)
    if not (dtypes.is_int(target) and (dtypes.is_int(source) or source is dtypes.bool)):
      raise self.refuse(source, target)
    return self.resized_scalar(source, target, value)

  def resized_scalar(self, source: DType, target: DType, value: Reg) -> Reg:
    """An integer or bool as another integer. Those below 64 bits are held extended to 32, with zeros above."""
    if target.itemsize == 8:
      return self.code("sxtw x%d, w%a", a=value) if source in dtypes.sints and source.itemsize < 8 else value
    if source.itemsize == 8: value, source = self.code("mov w%d, w%a", a=value), dtypes.uint32
    fits = target.itemsize == 4 or source is dtypes.bool or source.itemsize < target.itemsize and not (
      source in dtypes.sints and target not in dtypes.sints)
    return value if fits else self.normal(target, value)

  def from_float(self, source: DType, target: DType, value: Reg) -> Reg:
    f = scalar(source)
    if target in FLOATS: return self.code(f"fcvt {scalar(target)}%d, {f}%a", a=value)
    if target is dtypes.bool: return self.code(f"fcmp {f}%a, #0.0; cset w%d, ne", a=value)
    if not dtypes.is_int(target): raise self.refuse(source, target)
    if target is dtypes.uint64: return self.to_uint64(source, value)
    if target.itemsize == 8: return self.truncated(source, value, "x")
    if target is dtypes.uint32: return self.code("mov w%d, w%a", a=self.truncated(source, value, "x"))
    return self.normal(target, self.truncated(source, value, "w"))

  def truncated(self, source: DType, value: Reg, r: str) -> Reg:
    """A float as a signed integer in w or x."""
    f, bits = scalar(source), 64 if r == "x" else 32
    least = self.constant(dtypes.int64 if r == "x" else dtypes.int32, -1 << bits - 1)
    return self.code(f"fcvtzs {r}%t, {f}%a; fcmp {f}%a, {f}%l; csel {r}%d, {r}%t, {r}%m, mi", a=value, m=least,
                     l=self.constant(source, 2.0 ** (bits - 1)))

  def to_uint64(self, source: DType, value: Reg) -> Reg:
    """Below 2**63 the signed conversion; above, that of the value minus 2**63, with the top bit set."""
    f, half = scalar(source), self.constant(source, 2.0 ** 63)
    rest = self.truncated(source, self.code(f"fsub {f}%d, {f}%a, {f}%b", a=value, b=half), "x")
    return self.code(f"orr x%h, x%r, #{1 << 63}; fcvtzs x%t, {f}%a; fcmp {f}%a, {f}%l; csel x%d, x%t, x%h, mi", a=value,
                     r=rest, l=half)

  # ***** vectors *****

  def cast_vector(self, u: UOp, source: DType, target: DType) -> Reg:
    a, b, count = source.scalar(), target.scalar(), target.count
    if (a if b is dtypes.bool else b) in dtypes.narrow_floats and dtypes.bool in (a, b):
      raise self.refuse(source, target)
    if a is dtypes.bool: return self.numbers_of(u.src[0], target)
    value = self.value(u.src[0])
    if b is dtypes.bool: return self.mask_of(u, source, value)
    return self.cast_lanes(a, b, count, value)

  def cast_lanes(self, a: DType, b: DType, count: int, value: Reg) -> Reg:
    if a is b: return value
    if dtypes.is_int(a) and dtypes.is_int(b): return self.resize_lanes(a, b, count, value)
    if a is dtypes.float16 and b is dtypes.float32: return self.code("fcvtl v%d.4s, v%a.4h", a=value)
    if a is dtypes.float32 and b is dtypes.float16: return self.code("fcvtn v%d.4h, v%a.4s", a=value)
    if a in FLOATS and b in FLOATS:
      return self.code("fcvtl v%d.2d, v%a.2s" if b is dtypes.float64 else "fcvtn v%d.2s, v%a.2d", a=value)
    if dtypes.is_int(a) and b in FLOATS: return self.to_floats(a, b, count, value)
    if a in FLOATS and dtypes.is_int(b) and b.itemsize <= 4 and b is not dtypes.uint32:
      return self.resize_lanes(dtypes.int32, b, count, self.to_integers(a, count, value))
    raise self.refuse(a.vec(count), b.vec(count))

  def to_floats(self, a: DType, b: DType, count: int, value: Reg) -> Reg:
    if a.itemsize == 8 or a is dtypes.uint32 and b is dtypes.float32: raise self.refuse(a.vec(count), b.vec(count))
    wide = dtypes.int64 if b is dtypes.float64 else dtypes.int32
    value = self.resize_lanes(a, wide, count, value)
    lanes = arrangement(b.itemsize, b.itemsize * count)
    return self.code(f"scvtf v%d.{lanes}, v%a.{lanes}", a=value)

  def to_integers(self, a: DType, count: int, value: Reg) -> Reg:
    """Floats as int32."""
    lanes, short = arrangement(a.itemsize, a.itemsize * count), arrangement(4, 4 * count)
    limit, least = self.constant(a.vec(count), 2.0 ** 31), self.constant(dtypes.int32.vec(count), -1 << 31)
    fits = self.code(f"fcmgt v%d.{lanes}, v%b.{lanes}, v%a.{lanes}", a=value, b=limit)
    found = self.code(f"fcvtzs v%d.{lanes}, v%a.{lanes}", a=value)
    if a is dtypes.float64:
      fits, found = self.code("xtn v%d.2s, v%a.2d", a=fits), self.code("sqxtn v%d.2s, v%a.2d", a=found)
    return self.blended(fits, found, least) if short else found

  def resize_lanes(self, a: DType, b: DType, count: int, value: Reg) -> Reg:
    """Integer lanes of another size."""
    size, kind = a.itemsize, "s" if a in dtypes.sints else "u"
    while size < b.itemsize:
      value = self.code(f"{kind}shll v%d.{arrangement(2 * size, 16)}, v%a.{arrangement(size, 8)}, #0", a=value)
      size *= 2
    while size > b.itemsize:
      value = self.code(f"xtn v%d.{arrangement(size // 2, 8)}, v%a.{arrangement(size, 16)}", a=value)
      size //= 2
    return value
