"""Base of the parts of AArch64's Selector: emission of lines of assembly, constants, and declarations of methods that
one part calls of another."""
from __future__ import annotations
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyhw.arithmetic import to_bytes
from tinyhw.data_class import replace
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.arm64.select.line import line
from tinyhw.isa.arm64.select.rules import FLOATS, vector_rules
from tinyhw.isa.arm64.table import regs
from tinyhw.isa.arm64.table.immediates import FLOATS as SHORT_FLOATS
from tinyhw.isa.arm64.table.immediates import Moved
from tinyhw.machine.ir.inst import Effect, Function, Inst, MInst, Reg, RegClass
from tinyhw.machine.select.selection import Selection
from tinyhw.threads import once
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

MASK64 = (1 << 64) - 1
FEW = 16  # constants that stay in registers through the grid's loop
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
  return replace(line(text).row, effects=Effect.NONE, rematerialize=True)

@once
def repeated_row(row: Inst) -> Inst: return replace(row, rematerialize=True)

class Part(Selection):
  """The state of one selection.

  program: the program; rules: of the level, for vectors; users: of each node; spread: broadcasts that their users read
  as an element; in_vector: scalar words in vector registers; flags: comparisons that their users compute; owed: of
  dot.py.
  """

  def __init__(self, program: Program, target: Target):
    super().__init__(Function(program.name))
    self.program, self.target = program, target
    self.users: dict[UOp, list[UOp]] = {}
    self.spread: set[UOp] = set()
    self.in_vector: set[UOp] = set()
    self.flags: set[UOp] = set()
    self.mask_bytes: dict[UOp, int] = {}
    self.owed: dict[UOp, tuple[UOp, ...]] = {}
    self.rules = vector_rules(target.name)
    self.nested = sum(u.op is Ops.RANGE for u in program.uops) > 1

  # ***** emitting *****

  def put(self, text: str, values: dict[str, Any], arguments: tuple[list[Reg], ...] = ()) -> None:
    """Emit a line. Registers that it only writes, and that have no value yet, are new."""
    parsed = line(text)
    for name, cls in parsed.classes.items():
      if name not in values: values[name] = self.new(cls)
    self.block.insts.append(parsed.made(values, self.origin, arguments))

  def code(self, text: str, **values: Any) -> Reg:
    """Emit lines separated by ";", and return their %d."""
    for one in text.split("; "): self.put(one, values)
    result: Reg = values["d"]
    return result

  def emit(self, text: str, **values: Any) -> None:
    for one in text.split("; "): self.put(one, values)

  # ***** constants *****

  def once(self, key: tuple[Any, ...], make: Callable[[], Reg]) -> Reg:
    """The register that `make` emits before the outermost loop inside of the grid's. If the grid's loop has none
    inside, before that, as long as constants leave half of the registers free. Else here, once in a block."""
    few = bool(self.loops) and not self.nested and len(self.loops[0].made) < FEW
    if len(self.loops) > 1 or few:
      loop = self.loops[0 if few else 1]
      found = loop.made.get(key)
      if found is None: found = loop.made[key] = self.before(loop, make)
      return found
    found = self.made.get(key)
    if found is None: found = self.made[key] = make()
    return found

  def constant(self, dtype: DType, value: Any) -> Reg:
    """A constant in a register; the same value in all lanes of a vector."""
    return self.once((dtype, value, str(value)), lambda: self.fresh_constant(dtype, value))

  def fresh_constant(self, dtype: DType, value: Any) -> Reg:
    if dtype.count > 1: return self.vector_constant(dtype, value)
    if dtype in FLOATS: return self.float_constant(dtype, float(value))
    bits = int(value) if dtype is dtypes.bool else int.from_bytes(to_bytes(value, dtype), "little",
                                                                  signed=dtype in dtypes.sints)
    return self.integer(bits & (MASK64 if dtype.itemsize == 8 else MASK64 >> 32), width(dtype))

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

  def repeatable(self, text: str) -> Reg:
    """Emit a line without sources, which may be repeated instead of spilled."""
    parsed = line(text)
    made = self.new(parsed.classes["d"])
    inst = parsed.made({"d": made}, self.origin)
    inst.row = repeated_row(inst.row)
    self.block.insts.append(inst)
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
  def value(self, u: UOp) -> Reg: raise NotImplementedError
  def lanes(self, u: UOp) -> Reg: raise NotImplementedError
  def spelled(self, text: str, dtype: DType, numbers: dict[str, int]) -> str: raise NotImplementedError
  def shared(self, key: tuple[Any, ...], make: Callable[[], Reg]) -> Reg: raise NotImplementedError
  def mask(self, u: UOp, size: int) -> Reg: raise NotImplementedError
  def mask_of_flag(self, condition: UOp) -> Reg: raise NotImplementedError
  def blended(self, mask: Reg, yes: Reg, no: Reg) -> Reg: raise NotImplementedError
  def vectorize(self, u: UOp) -> Reg: raise NotImplementedError
  def resize_lanes(self, a: DType, b: DType, count: int, value: Reg) -> Reg: raise NotImplementedError

  def missing(self, u: UOp, dtype: DType) -> CompileError:
    return CompileError(f"{self.program.name}: arm64 has no {u.op.name} of {dtype}; decompose it before selection")

  def normal(self, dtype: DType, value: Reg) -> Reg:
    """Extend a 32-bit result of a type with fewer bits, with its sign if it has one."""
    if dtype.itemsize >= 4 or dtype is dtypes.bool: return value
    kind, size = "s" if dtype in dtypes.sints else "u", "b" if dtype.itemsize == 1 else "h"
    return self.code(f"{kind}xt{size} w%d, w%a", a=value)

def is_mask(u: UOp) -> bool: return u.dtype.count > 1 and u.dtype.scalar() is dtypes.bool

def is_constant_vector(u: UOp) -> bool:
  return u.op is Ops.VECTORIZE and not is_mask(u) and all(s.op is Ops.CONST for s in u.src)
