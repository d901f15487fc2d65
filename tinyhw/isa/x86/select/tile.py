"""Select products of matrices (MMA) for x86-64 with AMX: tiles of 16 rows of 64 bytes.

A tile is loaded by TILELOADD, whose index register has the bytes from a row to the next one, and stored by TILESTORED
as 16 adjacent rows. There is no other access to it, so codegen stores results to scratch memory (lower/tiles.py of
codegen). frame.py configures the tiles of a function that has any.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.x86.select.part import Address
from tinyhw.isa.x86.select.select import VnniSelector
from tinyhw.isa.x86.table import regs
from tinyhw.uop.enums import Ops
if TYPE_CHECKING:
  from tinyhw.machine.ir.inst import Reg
  from tinyhw.uop.ops import UOp

# the element types of both operands -> mnemonic
PRODUCTS = {(dtypes.bfloat16, dtypes.bfloat16): "tdpbf16ps", (dtypes.int8, dtypes.int8): "tdpbssd",
            (dtypes.int8, dtypes.uint8): "tdpbsud", (dtypes.uint8, dtypes.int8): "tdpbusd",
            (dtypes.uint8, dtypes.uint8): "tdpbuud"}

def is_tile(dtype: DType) -> bool: return dtype.itemsize == regs.TILE_BYTES

class TileSelector(VnniSelector):
  """Selection for AVX-512 with tiles."""
  def vector(self, u: UOp) -> Reg:
    if u.op is not Ops.MMA: return super().vector(u)
    a, b, total = u.src
    return self.tied(regs.TMM, f"{PRODUCTS[u.arg.words]}_t_t_t", self.value(total), self.value(a), self.value(b))

  def constant(self, dtype: DType, value: Any) -> Reg:
    return self.zero_tile(value) if is_tile(dtype) else super().constant(dtype, value)

  def start_value(self, u: UOp) -> Reg:
    return self.zero_tile(u.arg) if u.op is Ops.CONST and is_tile(u.dtype) else super().start_value(u)

  def zero_tile(self, value: Any) -> Reg:
    """A tile of zeros. Each sum begins with one of its own, since tiles cannot be copied from register to register."""
    if value: raise CompileError(f"{self.program.name}: a tile of {value}; only zeros are made without memory")
    return self.op(regs.TMM, "tilezero_t")

  def _load(self, u: UOp, index: UOp, dtype: DType) -> Reg:
    if u.arg is None: return super()._load(u, index, dtype)
    step = u.arg.stride * index.dtype.itemsize
    if u.arg.prefetched:
      base, offset, scale, displacement = self.address(u.src[1])
      for k in range(u.arg.prefetched): self.emit("prefetcht1_m8", base, offset, scale, displacement + k * step)
    return self.op(regs.TMM, "tileloadd_t_m", *self.rows_at(index, step))

  def _store(self, index: UOp, value: UOp, non_temporal: bool = False) -> None:
    if not is_tile(value.dtype): return super()._store(index, value, non_temporal)
    self.emit("tilestored_m_t", *self.rows_at(index, regs.ROW_BYTES), self.value(value))

  def rows_at(self, index: UOp, step: int) -> Address:
    """The address of a tile, whose rows are `step` bytes apart."""
    base, offset, scale, displacement = self.address(index)
    if offset is not None: base = self.op(regs.R64, "lea_r64_m", base, offset, scale, 0)
    return base, self.constant(dtypes.int64, step), 1, displacement
