"""Base of the parts of a Selector: its state, emission of instructions, and methods that one part calls of another.

A Selector is composed of parts (scalars, vectors, conversions, masks of a feature level). Each derives from `Part`, so
it may call the methods that are declared here. A comment names the part that defines them.
"""
from __future__ import annotations
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import DType
from tinyhw.machine.ir.inst import Block, Function, Inst, MInst, Reg, RegClass
from tinyhw.machine.ir.pseudo import copy
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.machine.ir.target import Target
  from tinyhw.uop.program import Program

Address = tuple[Reg | None, Reg | None, int, int]  # base, index, scale, displacement

class Position:
  """A place in a block where instructions may be added later."""
  __slots__ = ("index",)

  def __init__(self, index: int): self.index = index

class Part:
  """The state of one selection.

  `values`: the register of a node; `mask_bytes`: at the AVX2 level, bytes of a mask's lane.
  """
  rows: Mapping[str, Inst]
  program: Program
  target: Target
  function: Function
  block: Block
  origin: UOp | None
  values: dict[UOp, Reg]
  mask_bytes: dict[UOp, int]
  swallowed: set[UOp]
  spread: set[UOp]
  rotated: dict[UOp, tuple[UOp, int]]
  inner: dict[UOp, UOp]
  loops: list[Any]
  users: dict[UOp, list[UOp]]
  position: dict[UOp, int]
  extrema: dict[UOp, tuple[str, UOp, UOp]]
  flags: set[UOp]
  lone: set[UOp]
  local_offset: dict[UOp, int]
  constants: dict[tuple[Any, ...], Reg]

  # ***** emitting *****

  def new(self, cls: RegClass) -> Reg: return self.function.new_reg(cls)

  def emit(self, key: str, *operands: Any, ties: tuple[Reg, ...] = (), arguments: tuple[list[Reg], ...] = ()) -> None:
    self.block.insts.append(MInst(self.rows[key], list(operands), self.origin, arguments, "", ties))

  def op(self, cls: RegClass, key: str, *sources: Any) -> Reg:
    """Emit a row that writes its first operand. Returns the new register."""
    dst = self.new(cls)
    self.block.insts.append(MInst(self.rows[key], [dst, *sources], self.origin))
    return dst

  def tied(self, cls: RegClass, key: str, old: Reg, *sources: Any) -> Reg:
    """Emit a row that reads and writes its first operand. Returns the new register; `old` keeps its value."""
    dst = self.new(cls)
    self.block.insts.append(MInst(self.rows[key], [dst, *sources], self.origin, (), "", (old,)))
    return dst

  def copied(self, value: Reg) -> Reg:
    dst = self.new(value.cls)
    self.block.insts.append(copy(dst, value))
    return dst

  def distinct(self, value: Reg, *others: Reg) -> Reg:
    """A copy of the value if it is also one of the others: the registers of a gather must differ."""
    return self.copied(value) if value in others else value

  # ***** Selector: values and addresses *****
  def value(self, u: UOp) -> Reg: raise NotImplementedError
  def memory(self, u: UOp) -> Address | None: raise NotImplementedError
  def in_memory(self, u: UOp) -> bool: raise NotImplementedError
  def last_operand(self, u: UOp) -> tuple[str, tuple[Any, ...]]: raise NotImplementedError
  def address(self, index: UOp) -> Address: raise NotImplementedError
  def element(self, buffer: UOp, i: UOp, more: int) -> Address: raise NotImplementedError
  def address_under(self, flag: Reg, index: UOp) -> Address: raise NotImplementedError
  def in_reach(self, base: Reg, index: Reg | None, scale: int, displacement: int) -> Address: raise NotImplementedError
  def constants_place(self) -> tuple[Block, Position]: raise NotImplementedError

  # ***** Scalars *****
  def constant(self, dtype: DType, value: Any) -> Reg: raise NotImplementedError
  def once(self, key: tuple[Any, ...], make: Callable[[], Reg]) -> Reg: raise NotImplementedError
  def normal(self, dtype: DType, value: Reg) -> Reg: raise NotImplementedError
  def compare_flags(self, u: UOp) -> str: raise NotImplementedError

  # ***** Choices *****
  def choose(self, dtype: DType, condition: UOp, yes: Reg, no: Reg) -> Reg: raise NotImplementedError

  # ***** Fused, Logic *****
  def is_last_use(self, u: UOp) -> bool: raise NotImplementedError
  def rotate(self, dtype: DType, value: Reg, count: int) -> Reg: raise NotImplementedError
  def ternary(self, u: UOp) -> Reg: raise NotImplementedError

  # ***** Casts *****
  def resize(self, a: DType, b: DType, count: int, value: Reg) -> Reg: raise NotImplementedError

  # ***** Vectors *****
  def second(self, u: UOp, key: str, *first: Any) -> Reg: raise NotImplementedError
  def vop(self, size: int, key: str, *sources: Any) -> Reg: raise NotImplementedError
  def vectorize(self, u: UOp) -> Reg: raise NotImplementedError
  def joined(self, parts: list[Reg], kind: str) -> Reg: raise NotImplementedError
  def pack(self, scalar: DType, sources: tuple[UOp, ...]) -> Reg: raise NotImplementedError
  def vector_constant(self, dtype: DType, value: Any) -> Reg: raise NotImplementedError
  def vector_of_constants(self, data: bytes) -> Reg: raise NotImplementedError
  def read_constant(self, key: str, cls: RegClass, data: bytes) -> Reg: raise NotImplementedError
  def chunk(self, dtype: DType, value: Reg, k: int) -> Reg: raise NotImplementedError
  def load_vector(self, dtype: DType, address: Address) -> Reg: raise NotImplementedError
