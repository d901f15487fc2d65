"""Base of the parts of RISC-V's Selector: lines, constants, extension of integers, choices."""
from __future__ import annotations
import struct
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.riscv64.abi import LP64D
from tinyhw.isa.riscv64.select.line import line
from tinyhw.isa.riscv64.select.rules import EXTENSIONS, IMMEDIATES, SHORT_EXTENSIONS, scalar_rules, vector_rules
from tinyhw.isa.riscv64.table import regs
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.select.cpu import CpuSelection, integer_bits
from tinyhw.machine.select.lines import CodeLine
from tinyhw.machine.select.rules import FLOATS
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

def letter(dtype: DType) -> str:
  """The letter of a float's format in a mnemonic."""
  return "d" if dtype is dtypes.float64 else "s"

def mover(dtype: DType) -> str:
  """The letter of a float's bits in the mnemonics that move them: fmv.x.w."""
  return "d" if dtype.itemsize == 8 else "w"

def lower_12(value: int) -> int:
  """The lowest 12 bits, with a sign."""
  return (value + 2048) % 4096 - 2048

class Part(CpuSelection):
  """The state of one selection. rules, lanes: of the level, for scalars and vectors; short: it has Zba, Zbb and
  Zfhmin."""
  isa, general, parameters = "riscv64", regs.X, LP64D.arguments

  def __init__(self, program: Program, target: Target):
    self.rules = scalar_rules(target.name)
    self.lanes = vector_rules(target.name)
    self.short = target.name != "riscv64:g"
    super().__init__(program, target)

  def line(self, text: str) -> CodeLine: return line(text)
  def immediate(self, condition: str, value: int, bits: int) -> int | None: return IMMEDIATES[condition](value, bits)

  def spelled(self, text: str, dtype: DType, numbers: dict[str, int]) -> str:
    words: dict[str, Any] = {**numbers, "w": "" if dtype.itemsize == 8 else "w", "f": letter(dtype)}
    return text.format_map(words)

  # ***** constants *****

  def fresh_constant(self, dtype: DType, value: Any) -> Reg:
    if dtype.count > 1: return self.vector_constant(dtype, value)
    if dtype in FLOATS: return self.float_constant(dtype, float(value))
    bits = integer_bits(dtype, value)
    return self.integer(bits - (1 << 32) if dtype is dtypes.uint32 and bits >> 31 else bits)

  def integer(self, value: int) -> Reg:
    """A number in an integer register, by one to eight instructions. 64 bits without a sign count as those with one."""
    if value >> 63 == 1: value -= 1 << 64
    if -2048 <= value < 2048: return self.repeatable(f"li x%d, {value}")
    low = lower_12(value)
    if -1 << 31 <= value < 1 << 31:
      upper = self.repeatable(f"lui x%d, {value - low >> 12 & 0xfffff}")
      # lui extends bit 31; addiw wraps to 32 bits
      return self.code(f"addiw x%d, x%a, {low}", a=upper) if low else upper
    rest = value - low
    shift = (rest & -rest).bit_length() - 1
    high = self.code(f"slli x%d, x%a, {shift}", a=self.integer(rest >> shift))
    return self.code(f"addi x%d, x%a, {low}", a=high) if low else high

  def float_constant(self, dtype: DType, value: float) -> Reg:
    bits = int.from_bytes(struct.pack("<d" if dtype.itemsize == 8 else "<f", value), "little", signed=True)
    if not bits: return self.repeatable(f"fmv.{mover(dtype)}.x f%d, zero")
    return self.code(f"fmv.{mover(dtype)}.x f%d, x%a", a=self.integer(bits))

  # ***** integers *****

  def normal(self, dtype: DType, value: Reg) -> Reg:
    """The lowest bits of a type with fewer than 32 bits, extended. Wider ones come out of instructions extended."""
    if dtype.itemsize >= 4 or dtype is dtypes.bool: return value
    return self.extended(dtype, value)

  def extended(self, dtype: DType, value: Reg) -> Reg:
    """The lowest bits, as many as the type has, extended to 64 bits; those of uint32 with zeros."""
    kind = f"{'s' if dtype in dtypes.sints else 'u'}{dtype.bitsize}"
    return self.code((SHORT_EXTENSIONS if self.short else EXTENSIONS)[kind], a=value)

  def either(self, condition: Reg, yes: Reg, no: Reg) -> Reg:
    """One of two integers by 0 or 1: no ^ ((yes ^ no) & -condition)."""
    return self.code("neg x%n, x%c; xor x%x, x%a, x%b; and x%y, x%x, x%n; xor x%d, x%b, x%y", c=condition, a=yes, b=no)

  def chosen(self, dtype: DType, condition: Reg, yes: Reg, no: Reg) -> Reg:
    """One of two scalars by 0 or 1."""
    if dtype not in FLOATS: return self.either(condition, yes, no)
    m = mover(dtype)
    both = [self.code(f"fmv.x.{m} x%d, f%a", a=value) for value in (yes, no)]
    return self.code(f"fmv.{m}.x f%d, x%a", a=self.either(condition, *both))

  # ***** other parts *****
  def cast(self, u: UOp) -> Reg: raise NotImplementedError
  def vector_constant(self, dtype: DType, value: Any) -> Reg: raise NotImplementedError
