"""Base of the parts of AArch64's Selector: its lines, constants, and declarations of methods that one part calls of
another."""
from __future__ import annotations
import struct
from typing import TYPE_CHECKING, Any

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.select.line import line
from tinyhw.isa.arm64.select.rules import vector_rules
from tinyhw.isa.arm64.table import regs
from tinyhw.isa.arm64.table.immediates import FLOATS as SHORT_FLOATS
from tinyhw.isa.arm64.table.immediates import Moved
from tinyhw.machine.ir.inst import Inst, MInst, Reg, RegClass
from tinyhw.machine.select.cpu import CpuSelection, integer_bits, repeated_row
from tinyhw.machine.select.lines import CodeLine
from tinyhw.machine.select.rules import FLOATS
from tinyhw.threads import once
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

MASK64 = (1 << 64) - 1
ELEMENTS = {1: "b", 2: "h", 4: "s", 8: "d"}

def arrangement(size: int, total: int) -> str:
  """The arrangement of lanes of `size` bytes in `total` bytes: 64 bits if they are enough, but for lanes of 64 bits."""
  return f"{(8 if total <= 8 and size < 8 else 16) // size}{ELEMENTS[size]}"

def width(dtype: DType) -> str:
  """The letter of a general register for a type."""
  return "x" if dtype.itemsize == 8 else "w"

def scalar(dtype: DType) -> str:
  """The letter of a vector register for a float."""
  return "d" if dtype is dtypes.float64 else "s"

def home_of(dtype: DType) -> RegClass:
  """The class of the registers that hold a value: vectors, float32 and float64 in vector registers."""
  return regs.V if dtype.count > 1 or dtype in FLOATS else regs.X

@once
def constant_row(text: str) -> Inst:
  """A row that reads a constant after the code: cheaper to repeat than to spill."""
  return repeated_row(line(text).row)

class Part(CpuSelection):
  """The state of one selection.

  rules: of the level, for vectors; in_vector: scalar words in vector registers; mask_bytes: of mask.py; owed: of
  dot.py.
  """
  isa, general, parameters, most_end = "arm64", regs.X, (0, 1, 2, 3), 4096

  def __init__(self, program: Program, target: Target):
    self.in_vector: set[UOp] = set()
    self.mask_bytes: dict[UOp, int] = {}
    self.owed: dict[UOp, tuple[UOp, ...]] = {}
    self.rules = vector_rules(target.name)
    super().__init__(program, target)

  def line(self, text: str) -> CodeLine: return line(text)

  # ***** constants *****

  def fresh_constant(self, dtype: DType, value: Any) -> Reg:
    if dtype.count > 1: return self.vector_constant(dtype, value)
    if dtype in FLOATS: return self.float_constant(dtype, float(value))
    return self.integer(integer_bits(dtype, value) & (MASK64 if dtype.itemsize == 8 else MASK64 >> 32), width(dtype))

  def integer(self, value: int, letter: str) -> Reg:
    """A number in a general register, by one to four instructions."""
    bits = 64 if letter == "x" else 32
    if any(Moved("khi" if how != "mask" else "krs", 18 if how != "mask" else 12 + bits // 64, bits,
                 how).found(value) is not None
           for how in ("z", "n", "mask")):
      return self.repeatable(f"mov {letter}%d, #{value}")
    pieces = [(k, value >> 16 * k & 0xffff) for k in range(bits // 16) if value >> 16 * k & 0xffff]
    made = self.code(f"movz {letter}%d, #{pieces[0][1]}, lsl #{16 * pieces[0][0]}")
    for k, piece in pieces[1:]: made = self.code(f"movk {letter}%d:o, #{piece}, lsl #{16 * k}", o=made)
    return made

  def float_constant(self, dtype: DType, value: float) -> Reg:
    if value in SHORT_FLOATS: return self.repeatable(f"fmov {scalar(dtype)}%d, #{value}")
    data = struct.pack("<f" if dtype is dtypes.float32 else "<d", value)
    return self.repeatable("movi d%d, #0") if not any(data) else self.literal(scalar(dtype), data)

  def literal(self, letter: str, data: bytes) -> Reg:
    """Load a constant from after the code. letter: of the register (s, d, q)."""
    made = self.new(regs.V)
    self.block.insts.append(MInst(constant_row(f"ldr {letter}%d, #8"), [made, data], self.origin))
    return made

  def vector_constant(self, dtype: DType, value: Any) -> Reg:
    """The same value in all lanes. A bool is a mask that serves for lanes of any size."""
    if dtype.scalar() is dtypes.bool: return self.repeatable(f"movi v%d.2d, #{MASK64 if value else 0:#x}")
    if dtype.scalar() in FLOATS and value in SHORT_FLOATS:
      return self.repeatable(f"fmov v%d.{arrangement(dtype.scalar().itemsize, 16)}, #{float(value)}")
    return self.vector_of_bytes(to_bytes(value, dtype.scalar()) * dtype.count)

  def vector_of_bytes(self, data: bytes) -> Reg:
    """A vector with these bytes."""
    if len(set(data)) == 1: return self.repeatable(f"movi v%d.16b, #{data[0]}")
    if all(byte in (0, 255) for byte in data) and data == data[:8] * (len(data) // 8):
      return self.repeatable(f"movi v%d.2d, #{int.from_bytes(data[:8], 'little'):#x}")
    return self.literal("q", data.ljust(16, b"\0"))

  # ***** other parts *****
  def lanes(self, u: UOp) -> Reg: raise NotImplementedError
  def mask(self, u: UOp, size: int) -> Reg: raise NotImplementedError
  def mask_of_flag(self, condition: UOp) -> Reg: raise NotImplementedError
  def blended(self, mask: Reg, yes: Reg, no: Reg) -> Reg: raise NotImplementedError
  def resize_lanes(self, a: DType, b: DType, count: int, value: Reg) -> Reg: raise NotImplementedError

  def normal(self, dtype: DType, value: Reg) -> Reg:
    """Extend a 32-bit result of a type with fewer bits, with its sign if it has one."""
    if dtype.itemsize >= 4 or dtype is dtypes.bool: return value
    kind, size = "s" if dtype in dtypes.sints else "u", "b" if dtype.itemsize == 1 else "h"
    return self.code(f"{kind}xt{size} w%d, w%a", a=value)
