"""Select conversions between types, and reinterpretations of bits."""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.sass.macros.macros import macros_of
from tinyhw.isa.sass.select.alu import Arithmetic, kind_of
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.uop.ops import UOp

CODES = {dtypes.bfloat16: "bf16", **dict(zip(dtypes.fp8_ocp, ("e4m3", "e5m2")))}

def code_of(dtype: DType) -> str:
  """Return the kind of numbers for conversions, which distinguish types of 8 and of 16 bits."""
  return CODES.get(dtype) or kind_of(dtype)

class Casts(Arithmetic):
  """The layer of Selector for conversions."""

  def cast(self, u: UOp) -> Reg:
    source, target = u.src[0].dtype, u.dtype
    value = self.value(u.src[0])
    if source is dtypes.bool: return self.from_bool(value, target)
    if dtypes.is_int(source) and dtypes.is_int(target): return self.resize(u)
    name = f"{code_of(source)}_to_{code_of(target)}"
    if name not in macros_of(self.generation.arch) or any(dtypes.is_int(x) and x.itemsize == 1
                                                          for x in (source, target)):
      raise CompileError(f"{self.function.name}: NVIDIA selection does not convert {source} to {target}")
    if source.itemsize == 2:
      word, high = self.half_of_word(u.src[0])
      return self.op(self.home(u), f"{name}_high" if high else name, word)
    return self.op(self.home(u), name, value)

  def half_of_word(self, u: UOp) -> tuple[Any, bool]:
    """Return the register of a 16-bit element, and whether it is the upper half."""
    raise NotImplementedError

  def from_bool(self, value: Any, target: DType) -> Reg:
    """Return 0 or 1."""
    one = {dtypes.float32: 0x3f800000, dtypes.float64: 0x3ff00000}.get(target, 1)
    word = self.op(regs.R[1], "flag", value, one)
    if target.itemsize < 8: return word
    return self.op(regs.R[2], "pack64", *((0, word) if dtypes.is_float(target) else (word, 0)))

  def moved(self, value: Any, u: UOp) -> Reg: return self.in_register(value, max(u.dtype.itemsize // 4, 1))

  def widen(self, value: Any, source: DType, u: UOp) -> Reg:
    low = self.in_register(value, 1)
    return self.op(regs.R[2], "sign64", low) if source in dtypes.sints else self.op(regs.R[2], "pack64", low, 0)

  def extend(self, value: Any, u: UOp) -> Reg:
    if u.dtype in dtypes.sints: return self.op(regs.R[1], "sign_extend", value, u.dtype.bitsize)
    return self.op(regs.R[1], "and32", self.in_register(value, 1), (1 << u.dtype.bitsize) - 1)
