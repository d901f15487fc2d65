"""Conversions for x86-64: CAST and BITCAST of scalars and vectors. Pairs that are missing here are decomposed before selection."""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.x86 import regs
from tinyhw.isa.x86.select_scalar import FLOATS, general, suffix
from tinyhw.isa.x86.select_vector import ELEMENT, packed
from tinyhw.machine.inst import Reg
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING: from tinyhw.isa.x86.select import Selector

def is_signed(dtype: DType) -> bool: return dtypes.is_int(dtype) and not dtypes.is_unsigned(dtype)

class Casts:
  """The part of Selector that converts."""

  def cast(self: Selector, u: UOp) -> Reg:
    source, target = u.src[0].dtype, u.dtype
    if u.op is Ops.BITCAST: return self.bitcast(source, target, self.value(u.src[0]))
    if target.count > 1: return self.cast_vector(u, source, target)
    return self.cast_scalar(u, source, target, self.value(u.src[0]))

  def _refuse(self: Selector, source: DType, target: DType) -> CompileError:
    return CompileError(f"{self.program.name}: x86-64 does not convert {source} to {target}; decompose it before selection")

  def bitcast(self: Selector, source: DType, target: DType, value: Reg) -> Reg:
    if source.count > 1: return value
    if source in FLOATS and target not in FLOATS: return self.op(general(target), "vmovd_r32_x" if source.itemsize == 4 else "vmovq_r64_x", value)
    if target in FLOATS and source not in FLOATS: return self.op(regs.XMM, "vmovd_x_r32" if source.itemsize == 4 else "vmovq_x_r64", value)
    return value if source in FLOATS else self.normal(target, value)

  # ***** scalars *****

  def cast_scalar(self: Selector, u: UOp, source: DType, target: DType, value: Reg) -> Reg:
    if source is dtypes.float16:
      single = self.op(regs.XMM, "vcvtph2ps_x_x", self.op(regs.XMM, "vmovd_x_r32", value))
      return single if target is dtypes.float32 else self.cast_scalar(u, dtypes.float32, target, single)
    if target is dtypes.float16:
      single = value if source is dtypes.float32 else self.cast_scalar(u, source, dtypes.float32, value)
      return self.normal(target, self.op(regs.R32, "vmovd_r32_x", self.op(regs.XMM, "vcvtps2ph_x_x_i8", single, 0)))
    if source in FLOATS: return self.from_float(source, target, value)
    if target in FLOATS: return self.to_float(source, target, value)
    if target is dtypes.bool: return self.is_nonzero(source, value)
    if not (dtypes.is_int(target) and (dtypes.is_int(source) or source is dtypes.bool)): raise self._refuse(source, target)
    if target.itemsize == 8:
      return self.op(regs.R64, "movsxd_r64_r32", value) if is_signed(source) and source.itemsize < 8 else value
    if source.itemsize == 8: value = self.op(regs.R32, "mov_r32_r32", value)
    fits = target.itemsize == 4 or (source.itemsize < target.itemsize and not (is_signed(source) and not is_signed(target))) or source is dtypes.bool
    return value if fits else self.normal(target, value)

  def is_nonzero(self: Selector, dtype: DType, value: Reg) -> Reg:
    bits = 64 if dtype.itemsize == 8 else 32
    self.emit(f"test_r{bits}_r{bits}", value, value)
    return self.op(regs.R32, "movzx_r32_r8", self.op(regs.R8, "setne_r8"))

  def from_float(self: Selector, source: DType, target: DType, value: Reg) -> Reg:
    s = suffix(source)
    if target in FLOATS: return value if source is target else self.op(regs.XMM, f"vcvt{s}2{suffix(target)}_x_x_x", value, value)
    if target is dtypes.bool:
      differs = self.op(regs.XMM, f"vcmp{s}_x_x_x_i8", value, self.constant(source, 0.0), 4)
      return self.tied(regs.R32, "and_r32_i32", self.op(regs.R32, "vmovd_r32_x", differs), 1)
    if target is dtypes.uint64: return self.float_to_uint64(source, value)
    if target.itemsize == 8: return self.op(regs.R64, f"vcvtt{s}2si_r64_x", value)
    if target is dtypes.uint32: return self.op(regs.R32, "mov_r32_r32", self.op(regs.R64, f"vcvtt{s}2si_r64_x", value))
    return self.normal(target, self.op(regs.R32, f"vcvtt{s}2si_r32_x", value))

  def float_to_uint64(self: Selector, source: DType, value: Reg) -> Reg:
    """Below 2**63 the signed conversion is right; above, that of the value less 2**63 is, with the top bit set."""
    s, half = suffix(source), self.constant(source, 2.0 ** 63)
    low = self.op(regs.R64, f"vcvtt{s}2si_r64_x", value)
    rest = self.op(regs.R64, f"vcvtt{s}2si_r64_x", self.op(regs.XMM, f"vsub{s}_x_x_x", value, half))
    high = self.tied(regs.R64, "xor_r64_r64", rest, self.constant(dtypes.uint64, 1 << 63))
    self.emit(f"vucomi{s}_x_x", value, half)
    return self.tied(regs.R64, "cmovae_r64_r64", low, high)

  def to_float(self: Selector, source: DType, target: DType, value: Reg) -> Reg:
    s, zero = suffix(target), self.constant(target, 0.0)
    if source is not dtypes.uint64:
      bits = 64 if source.itemsize == 8 or source is dtypes.uint32 else 32
      return self.op(regs.XMM, f"vcvtsi2{s}_x_x_r{bits}", zero, value)
    # above 2**63: half of it, its last bit kept so that rounding is right, then doubled
    half = self.tied(regs.R64, "or_r64_r64", self.tied(regs.R64, "shr_r64_i8", value, 1), self.tied(regs.R64, "and_r64_i32", value, 1))
    small = self.op(regs.XMM, f"vcvtsi2{s}_x_x_r64", zero, value)
    large = self.op(regs.XMM, f"vcvtsi2{s}_x_x_r64", zero, half)
    large = self.op(regs.XMM, f"vadd{s}_x_x_x", large, large)
    top = self.op(regs.R32, "mov_r32_r32", self.tied(regs.R64, "shr_r64_i8", value, 63))
    return self.blend(target, self.mask_of_flag(top, regs.XMM), large, small)

  # ***** vectors *****

  def cast_vector(self: Selector, u: UOp, source: DType, target: DType) -> Reg:
    a, b, count = source.scalar(), target.scalar(), target.count
    if a is dtypes.bool: return self.from_mask(u, target)
    value = self.value(u.src[0])
    if b is dtypes.bool: return self.to_mask(u, source, value)
    if a is dtypes.float16 and b is dtypes.float32: return self.vop(4 * count, "vcvtph2ps_{v}_x", value)
    if a is dtypes.float32 and b is dtypes.float16:
      return self.op(regs.XMM, f"vcvtps2ph_x_{'y' if count == 8 else 'x'}_i8", value, 0)
    if dtypes.is_int(a) and dtypes.is_int(b): return self.resize(a, b, count, value)
    if dtypes.is_int(a) and b in FLOATS:
      if a is dtypes.uint32 or a.itemsize == 8: raise self._refuse(source, target)
      whole = self.resize(a, dtypes.int32, count, value)
      return self.vop(4 * count, "vcvtdq2ps_{v}_{v}", whole) if b is dtypes.float32 else self.vop(8 * count, "vcvtdq2pd_{v}_x", whole)
    if a in FLOATS and dtypes.is_int(b):
      if b is dtypes.uint32 or b.itemsize == 8: raise self._refuse(source, target)
      if a is dtypes.float32: whole = self.vop(4 * count, "vcvttps2dq_{v}_{v}", value)
      else: whole = self.op(regs.XMM, f"vcvttpd2dq_x_{'y' if count == 4 else 'x'}", value)
      return self.resize(dtypes.int32, b, count, whole)
    if a is dtypes.float32 and b is dtypes.float64: return self.vop(8 * count, "vcvtps2pd_{v}_x", value)
    if a is dtypes.float64 and b is dtypes.float32: return self.op(regs.XMM, f"vcvtpd2ps_x_{'y' if count == 4 else 'x'}", value)
    if a is b: return value
    raise self._refuse(source, target)

  def resize(self: Selector, a: DType, b: DType, count: int, value: Reg) -> Reg:
    """Integer lanes of another width."""
    if a.itemsize == b.itemsize: return value
    if a.itemsize < b.itemsize:
      return self.vop(b.itemsize * count, f"vpmov{'s' if is_signed(a) else 'z'}x{ELEMENT[a.itemsize]}{ELEMENT[b.itemsize]}_{{v}}_x", value)
    size, wide = a.itemsize, a.itemsize * count > 16
    if size == 8:
      if wide: value = self.permuted((0, 2, 4, 6, 1, 3, 5, 7), value)
      else: value = self.op(regs.XMM, "vpshufd_x_x_i8", value, 0x08)
      return self.resize(dtypes.int32, b, count, value)
    # gather the low bytes of each lane at the start of its 128 bits, then join the two
    each = 16 // size
    picks = bytes(k * size + j for k in range(each) for j in range(b.itemsize)).ljust(16, b"\x80")
    value = self.vop(size * count, "vpshufb_{v}_{v}_{v}", value, self.vector_of_constants(picks * (2 if wide else 1)))
    if not wide: return value
    if each * b.itemsize == 8: return self.op(regs.YMM, "vpermq_y_y_i8", value, 0x08)
    return self.permuted((0, 4, 1, 5, 2, 6, 3, 7), value)

  def permuted(self: Selector, order: tuple[int, ...], value: Reg) -> Reg:
    """The eight lanes of four bytes in another order."""
    return self.op(regs.YMM, "vpermd_y_y_y", self.vector_of_constants(b"".join(k.to_bytes(4, "little") for k in order)), value)

  def from_mask(self: Selector, u: UOp, target: DType) -> Reg:
    """0 and 1 of some type: the mask, and the bits of 1."""
    mask = self.mask(u.src[0], target.scalar().itemsize)
    return self.vop(target.itemsize, "vpand_{v}_{v}_{v}", mask, self.constant(target, 1))

  def to_mask(self: Selector, u: UOp, source: DType, value: Reg) -> Reg:
    """True where not zero; NaN is true."""
    size, zero = source.scalar().itemsize, self.constant(source, 0)
    if source.scalar() in FLOATS:
      return self.mask_result(u, self.vop(source.itemsize, f"vcmp{packed(source)}_{{v}}_{{v}}_{{v}}_i8", value, zero, 4), size)
    same = self.vop(source.itemsize, f"vpcmpeq{ELEMENT[size]}_{{v}}_{{v}}_{{v}}", value, zero)
    return self.mask_result(u, self.invert(same, source.itemsize), size)
