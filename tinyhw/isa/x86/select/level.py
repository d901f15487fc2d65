"""Differences between feature levels in selection. select/mask.py (AVX2) and select/evex.py (AVX-512) define the
methods of `Level`. `LevelTable` is the instruction table under the names that a level has for instructions.

All other parts call these methods by name, and do not know the level.
"""
from __future__ import annotations
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.x86.select.part import Part
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.inst import Inst, Reg, RegClass
if TYPE_CHECKING: from tinyhw.uop.ops import UOp

PACKED_CASTS = {  # from, to -> instruction
  (dtypes.float16, dtypes.float32): "vcvtph2ps", (dtypes.float32, dtypes.float16): "vcvtps2ph",
  (dtypes.float32, dtypes.float64): "vcvtps2pd", (dtypes.float64, dtypes.float32): "vcvtpd2ps",
  (dtypes.int32, dtypes.float32): "vcvtdq2ps", (dtypes.int32, dtypes.float64): "vcvtdq2pd",
  (dtypes.float32, dtypes.int32): "vcvttps2dq", (dtypes.float64, dtypes.int32): "vcvttpd2dq",
}
# casts of 64-bit integers: AVX-512DQ. The uint64 of a negative float differs from that of arithmetic.py.
CASTS_OF_64_BITS = {
  (dtypes.int64, dtypes.float32): "vcvtqq2ps", (dtypes.int64, dtypes.float64): "vcvtqq2pd",
  (dtypes.uint64, dtypes.float32): "vcvtuqq2ps", (dtypes.uint64, dtypes.float64): "vcvtuqq2pd",
  (dtypes.float32, dtypes.int64): "vcvttps2qq", (dtypes.float64, dtypes.int64): "vcvttpd2qq",
}

SelectionRule = Callable[[Any, "UOp"], Reg]   # a method of a part that returns the value of a node

def rule_of(name: str) -> SelectionRule:
  """The method with this name of another part, or of the level."""
  def rule(selector: Any, u: UOp) -> Reg:
    result: Reg = getattr(selector, name)(u)
    return result
  return rule

class LevelTable(dict[str, Inst]):
  """Rows by key.

  names: mnemonic -> the level's own mnemonic, with the same operands and the same semantics. lacks: prefix of features
  that the level does not have; a row that needs one raises CompileError.
  """

  def __init__(self, names: Mapping[str, str], lacks: str = ""):
    super().__init__()
    self.names, self.lacks = names, lacks

  def __missing__(self, key: str) -> Inst:
    mnemonic, separator, operands = key.partition("_")
    row = TABLE[self.names.get(mnemonic, mnemonic) + separator + operands]
    if self.lacks and row.feature.startswith(self.lacks):
      raise CompileError(f"{row.name} needs {row.feature}, which this level of x86-64 does not have; look at its "
                         f"capabilities before")
    return self.setdefault(key, row)

class Level(Part):
  """The methods of Selector that depend on the feature level.

  A gate, and a vector of bool, is a mask. Only the level knows its representation.
  """
  spreads = False       # whether an instruction can broadcast one element of memory to all lanes
  has_ternary = False   # whether there are rotations of lanes, and logic of three operands
  packed_casts: Mapping[tuple[DType, DType], str] = PACKED_CASTS

  # masks from constants; from a 0 or 1 in a general register; of a vector of bool for lanes of `size` bytes; as the
  # value of a variable
  def mask_constant(self, value: bool) -> Reg: raise NotImplementedError
  def mask_of_flag(self, flag: Reg, cls: RegClass) -> Reg: raise NotImplementedError
  def mask(self, u: UOp, size: int) -> Reg: raise NotImplementedError
  def start_of_mask(self, u: UOp, start: UOp) -> Reg: raise NotImplementedError
  def assigned_mask(self, variable: UOp, value: UOp) -> Reg: raise NotImplementedError

  # operations that return masks
  def float_mask(self, u: UOp) -> Reg: raise NotImplementedError
  def integer_mask(self, u: UOp) -> Reg: raise NotImplementedError
  def mask_logic(self, u: UOp) -> Reg: raise NotImplementedError
  def mask_not(self, u: UOp) -> Reg: raise NotImplementedError
  def mask_where(self, u: UOp) -> Reg: raise NotImplementedError
  def broadcast_flag(self, u: UOp) -> Reg: raise NotImplementedError
  def vectorize_bools(self, u: UOp) -> Reg: raise NotImplementedError
  def load_bools(self, u: UOp, value: Reg) -> Reg: raise NotImplementedError
  def to_mask(self, u: UOp, source: DType, value: Reg) -> Reg: raise NotImplementedError

  # operations that use them
  def mask_lane(self, source: UOp, k: int) -> Reg: raise NotImplementedError
  def blend(self, dtype: DType, mask: Reg, yes: Reg, no: Reg) -> Reg: raise NotImplementedError
  def kept(self, u: UOp, mask: Reg) -> Reg: raise NotImplementedError        # u where the mask is true, else all bits 0
  def value_bytes(self, u: UOp) -> Reg: raise NotImplementedError
  def from_mask(self, u: UOp, target: DType) -> Reg: raise NotImplementedError
  def load_masked(self, u: UOp) -> Reg: raise NotImplementedError
  def store_masked(self, u: UOp) -> None: raise NotImplementedError
  def gather(self, u: UOp) -> Reg: raise NotImplementedError

  # a scalar comparison of floats; its mask as 0 or 1; an integer in all lanes; integer lanes of fewer bytes; whether a
  # VECTORIZE is one move of lanes
  def scalar_mask(self, suffix: str, a: Reg, b: Reg, predicate: int) -> Reg: raise NotImplementedError
  def flag_of_mask(self, mask: Reg) -> Reg: raise NotImplementedError
  def broadcast_general(self, size: int, v: str, value: Reg) -> Reg: raise NotImplementedError
  def truncate_lanes(self, a: DType, b: DType, count: int, value: Reg) -> Reg: raise NotImplementedError
  def is_shuffle(self, u: UOp) -> bool: raise NotImplementedError
  has_two_tables = False       # whether one instruction picks lanes of two vectors
  has_byte_products = False    # whether one instruction adds four products of an unsigned and a signed byte
