"""Select conversions between types, and bitcasts."""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.amd.select.alu import Arithmetic
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.form import Generation
from tinyhw.machine.ir.inst import Function, Reg
from tinyhw.machine.select.selection import lowest_bits
from tinyhw.uop.ops import UOp

CONVERSIONS = {  # (from, to) -> instruction or recipe
  (dtypes.int32, dtypes.float32): "v_cvt_f32_i32", (dtypes.uint32, dtypes.float32): "v_cvt_f32_u32",
  (dtypes.int32, dtypes.float64): "v_cvt_f64_i32", (dtypes.uint32, dtypes.float64): "v_cvt_f64_u32",
  (dtypes.float32, dtypes.float64): "v_cvt_f64_f32", (dtypes.float64, dtypes.float32): "v_cvt_f32_f64",
  (dtypes.float16, dtypes.float32): "v_cvt_f32_f16", (dtypes.float32, dtypes.float16): "v_cvt_f16_f32",
  (dtypes.float32, dtypes.int32): "f32_to_i32", (dtypes.float64, dtypes.int32): "f64_to_i32",
  (dtypes.float64, dtypes.uint32): "f64_to_u32",
}

class Casts(Arithmetic):
  """The conversions of Selector. codes: registers whose low half is a float16, and whose high half is undefined."""

  def __init__(self, generation: Generation, function: Function):
    super().__init__(generation, function)
    self.codes: dict[UOp, Reg] = {}

  def lowest(self, u: UOp) -> Reg:
    """A register with a number of 32 bits or fewer in its lowest bits. Memory needs no others."""
    return self.codes.get(u) or self.vector(lowest_bits(u))

  def cast(self, u: UOp) -> Reg:
    source, target = u.src[0].dtype, u.dtype
    if source is dtypes.bool: return self.from_bool(u)
    if dtypes.is_int(source) and dtypes.is_int(target): return self.resize(u)
    cls, value = self.home(u), self.vector(u.src[0])
    if source is dtypes.float32 and target is dtypes.uint32:
      source, value = dtypes.float64, self.op(self.generation.vectors[2], "v_cvt_f64_f32", value)
    key = CONVERSIONS.get((source, target))
    if key is None: raise CompileError(f"{self.function.name}: AMD does not convert {source} to {target}")
    result = self.perform(cls, key, value)
    if target is not dtypes.float16: return result
    self.codes[u] = result
    return self.op(cls, "v_and_b32", 0xffff, result)

  def from_bool(self, u: UOp) -> Reg:
    """Convert a bool to 0 or 1."""
    cls, target = self.home(u), u.dtype
    if u not in self.varying:
      flag = self.in_scalar(self.value(u.src[0]), regs.S[1])
      return flag if cls.units == 1 else self.op(cls, "s_pack64", flag, 0)
    one = {dtypes.float32: 0x3f800000, dtypes.float64: 0x3ff00000}.get(target, 1)
    word = self.op(regs.V[1], "v_cndmask_b32", 0, one, self.in_scalar(self.mask(u.src[0]), self.mask_class))
    if cls.units == 1: return word
    return self.op(cls, "pack64", 0, word) if dtypes.is_float(target) else self.op(cls, "pack64", word, 0)

  def moved(self, value: Any, u: UOp) -> Reg:
    return (self.in_vector(value, u.dtype.itemsize) if u in self.varying
            else self.in_scalar(value, regs.S[max(1, u.dtype.itemsize // 4)]))

  def widen(self, value: Any, source: DType, u: UOp) -> Reg:
    if u in self.varying:
      low = self.in_vector(value, 4)
      cls = self.generation.vectors[2]
      return self.op(cls, "sign64", low) if source in dtypes.sints else self.op(cls, "pack64", low, 0)
    low = self.in_scalar(value, regs.S[1])
    return self.op(regs.S[2], "s_sign64", low) if source in dtypes.sints else self.op(regs.S[2], "s_pack64", low, 0)

  def extend(self, value: Any, u: UOp) -> Reg:
    bits, signed = u.dtype.bitsize, u.dtype in dtypes.sints
    if u in self.varying: return self.op(regs.V[1], "v_bfe_i32" if signed else "v_bfe_u32", value, 0, bits)
    value = self.in_scalar(value, regs.S[1])
    if signed: return self.op(regs.S[1], f"s_sext_i32_i{bits}", value)
    return self.op(regs.S[1], "s_and_b32", value, (1 << bits) - 1)
