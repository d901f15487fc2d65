"""Select conversions for x86-64: CAST and BITCAST of scalars and vectors.

Pairs of types that are missing here are decomposed before selection.
"""
from __future__ import annotations

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.x86.select.level import Level
from tinyhw.isa.x86.select.scalar import FLOATS, general, suffix
from tinyhw.isa.x86.select.vector import ELEMENT, LETTER_CLASS, letter
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def is_signed(dtype: DType) -> bool: return dtypes.is_int(dtype) and not dtypes.is_unsigned(dtype)

class Casts(Level):
  """The conversions of Selector."""

  def cast(self, u: UOp) -> Reg:
    source, target = u.src[0].dtype, u.dtype
    if u.op is Ops.BITCAST: return self.bitcast(source, target, self.value(u.src[0]))
    if target.count > 1: return self.cast_vector(u, source, target)
    return self.cast_scalar(u, source, target, self.value(u.src[0]))

  def _refuse(self, source: DType, target: DType) -> CompileError:
    return CompileError(f"{self.program.name}: x86-64 does not convert {source} to {target}; decompose it before "
                        f"selection")

  def bitcast(self, source: DType, target: DType, value: Reg) -> Reg:
    if source.count > 1: return value
    if source in FLOATS and target not in FLOATS:
      return self.op(general(target), "vmovd_r32_x" if source.itemsize == 4 else "vmovq_r64_x", value)
    if target in FLOATS and source not in FLOATS:
      return self.op(regs.XMM, "vmovd_x_r32" if source.itemsize == 4 else "vmovq_x_r64", value)
    return value if source in FLOATS else self.normal(target, value)

  # ***** scalars *****

  def cast_scalar(self, u: UOp, source: DType, target: DType, value: Reg) -> Reg:
    if source is dtypes.float16:
      single = self.op(regs.XMM, "vcvtph2ps_x_x", self.op(regs.XMM, "vmovd_x_r32", value))
      return single if target is dtypes.float32 else self.cast_scalar(u, dtypes.float32, target, single)
    if target is dtypes.float16:
      if source is dtypes.float64: raise self._refuse(source, target)  # a detour through float32 would round twice
      single = value if source is dtypes.float32 else self.cast_scalar(u, source, dtypes.float32, value)
      return self.normal(target, self.op(regs.R32, "vmovd_r32_x", self.op(regs.XMM, "vcvtps2ph_x_x_i8", single, 0)))
    if source in FLOATS: return self.from_float(source, target, value)
    if target in FLOATS: return self.to_float(source, target, value)
    if target is dtypes.bool: return self.is_nonzero(source, value)
    if not (dtypes.is_int(target) and (dtypes.is_int(source) or source is dtypes.bool)):
      raise self._refuse(source, target)
    if target.itemsize == 8:
      return self.op(regs.R64, "movsxd_r64_r32", value) if is_signed(source) and source.itemsize < 8 else value
    if source.itemsize == 8: value = self.op(regs.R32, "mov_r32_r32", value)
    fits = target.itemsize == 4 or (source.itemsize < target.itemsize
                                    and not (is_signed(source) and not is_signed(target))) or source is dtypes.bool
    return value if fits else self.normal(target, value)

  def is_nonzero(self, dtype: DType, value: Reg) -> Reg:
    bits = 64 if dtype.itemsize == 8 else 32
    self.emit(f"test_r{bits}_r{bits}", value, value)
    return self.op(regs.R32, "movzx_r32_r8", self.op(regs.R8, "setne_r8"))

  def from_float(self, source: DType, target: DType, value: Reg) -> Reg:
    s = suffix(source)
    if target in FLOATS:
      return value if source is target else self.op(regs.XMM, f"vcvt{s}2{suffix(target)}_x_x_x", value, value)
    if target is dtypes.bool:
      return self.flag_of_mask(self.scalar_mask(s, value, self.constant(source, 0.0), 4))
    if target is dtypes.uint64: return self.float_to_uint64(source, value)
    if target.itemsize == 8: return self.op(regs.R64, f"vcvtt{s}2si_r64_x", value)
    if target is dtypes.uint32: return self.op(regs.R32, "mov_r32_r32", self.op(regs.R64, f"vcvtt{s}2si_r64_x", value))
    return self.normal(target, self.op(regs.R32, f"vcvtt{s}2si_r32_x", value))

  def float_to_uint64(self, source: DType, value: Reg) -> Reg:
    """Convert to uint64 by signed conversions.

    Below 2**63 the signed conversion is right. Above, the value minus 2**63 is converted, and the top bit is set. From
    2**64 on, the result is the top bit alone.
    """
    s, half = suffix(source), self.constant(source, 2.0 ** 63)
    low = self.op(regs.R64, f"vcvtt{s}2si_r64_x", value)
    rest = self.op(regs.R64, f"vcvtt{s}2si_r64_x", self.op(regs.XMM, f"vsub{s}_x_x_x", value, half))
    high = self.tied(regs.R64, "or_r64_r64", rest, self.constant(dtypes.uint64, 1 << 63))
    self.emit(f"vucomi{s}_x_x", value, half)
    return self.tied(regs.R64, "cmovae_r64_r64", low, high)

  def to_float(self, source: DType, target: DType, value: Reg) -> Reg:
    s, zero = suffix(target), self.constant(target, 0.0)
    if source is not dtypes.uint64:
      bits = 64 if source.itemsize == 8 or source is dtypes.uint32 else 32
      return self.op(regs.XMM, f"vcvtsi2{s}_x_x_r{bits}", zero, value)
    # above 2**63: convert half of it and double the result; the last bit is kept, so that rounding is right
    half = self.tied(regs.R64, "or_r64_r64", self.tied(regs.R64, "shr_r64_i8", value, 1),
                     self.tied(regs.R64, "and_r64_i32", value, 1))
    small = self.op(regs.XMM, f"vcvtsi2{s}_x_x_r64", zero, value)
    large = self.op(regs.XMM, f"vcvtsi2{s}_x_x_r64", zero, half)
    large = self.op(regs.XMM, f"vadd{s}_x_x_x", large, large)
    top = self.op(regs.R32, "mov_r32_r32", self.tied(regs.R64, "shr_r64_i8", value, 63))
    return self.blend(target, self.mask_of_flag(top, regs.XMM), large, small)

  # ***** vectors *****

  def cast_vector(self, u: UOp, source: DType, target: DType) -> Reg:
    a, b, count = source.scalar(), target.scalar(), target.count
    if a is dtypes.bool: return self.from_mask(u, target)
    value = self.value(u.src[0])
    if b is dtypes.bool: return self.to_mask(u, source, value)
    if dtypes.is_int(a) and dtypes.is_int(b): return self.resize(a, b, count, value)
    if dtypes.is_int(a) and b in FLOATS and a.itemsize < 4:
      a, value = dtypes.int32, self.resize(a, dtypes.int32, count, value)
    middle = dtypes.int32 if a in FLOATS and dtypes.is_int(b) and b.itemsize < 4 else b
    if a is b: return value
    name = self.packed_casts.get((a, middle))
    if name is None: raise self._refuse(source, target)
    key = f"{name}_{letter(middle.itemsize * count)}_{letter(a.itemsize * count)}"
    cls = LETTER_CLASS[letter(middle.itemsize * count)]
    whole = self.op(cls, key + "_i8", value, 0) if middle is dtypes.float16 else self.op(cls, key, value)
    return whole if middle is b else self.resize(middle, b, count, whole)

  def resize(self, a: DType, b: DType, count: int, value: Reg) -> Reg:
    """Convert integer lanes to another size."""
    if a.itemsize == b.itemsize: return value
    if a.itemsize < b.itemsize:
      name = f"vpmov{'s' if is_signed(a) else 'z'}x{ELEMENT[a.itemsize]}{ELEMENT[b.itemsize]}"
      return self.vop(b.itemsize * count, f"{name}_{{v}}_{letter(a.itemsize * count)}", value)
    return self.truncate_lanes(a, b, count, value)
