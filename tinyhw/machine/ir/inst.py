"""Instructions as data: register classes, operands, table rows, machine instructions, blocks and functions.

A row (`Inst`) is one line of an ISA's table. It holds everything about the instruction. The encoder, the decoder, the
allocator and the tests read the row. An `MInst` is a use of a row with actual operands.

Operands are flat: registers, integers, blocks. A memory operand is not an object. Its base, index, scale and
displacement are operands of the row. So shared code sees only integers and registers with roles.

Nothing here knows an ISA. Values are in SSA form until `allocate`: a virtual register has one definition, blocks have
parameters, and a jump passes arguments to them.
"""
from __future__ import annotations
from enum import IntEnum
from typing import Any
from collections.abc import Callable, Iterator

from tinyhw.data_class import dataclass, field, replace
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

class Access(IntEnum):
  """The use of an operand by an instruction. BOTH reads the old value and writes the new one in the same register."""
  READ = 1
  WRITE = 2
  BOTH = 3

class Effect:
  """Side effects of an instruction, as bits of an int. They are the reason why it may not be moved, merged or dropped.

  They are plain ints, because every pass tests every instruction. `&` of an IntFlag costs 0.6 µs, 5% of the time from
  selection to code.
  """
  NONE = 0
  LOAD = 1          # reads memory
  STORE = 2         # writes memory
  READ_FLAGS = 4    # must follow the instruction that wrote the flags
  WRITE_FLAGS = 8
  JUMP = 16         # has block operands; control may leave the block
  END = 32          # the last instruction of a block
  BARRIER = 64      # nothing crosses it
  CALL = 128

@dataclass(frozen=True, eq=False)
class Bank:
  """A file of physical registers. `allocatable` lists the indices that the allocator may use, best first."""
  name: str
  count: int
  allocatable: tuple[int, ...]

@dataclass(frozen=True, eq=False)
class RegClass:
  """A view of a bank that an operand accepts: `units` consecutive registers whose first index is a multiple of `align`.

  Two classes with one bank share physical registers (x86: xmm3, ymm3 and zmm3 are index 3 of one bank). `bits` is the
  width of the value. `name_of(index)` is the register's name in the manual: one of `names`, or the result of `naming`
  if an ISA has too many of them to list.
  """
  name: str
  bank: Bank
  bits: int
  units: int = 1
  align: int = 1
  names: tuple[str, ...] = ()
  naming: Callable[[int], str] | None = None

  def name_of(self, index: int) -> str:
    return self.names[index] if self.naming is None else self.naming(index)

class Reg:
  """A register. It is virtual (`index` is None, `id` numbers it within its function) or physical (`index` is its first
  index in the bank)."""
  __slots__ = ("cls", "id", "index")

  def __init__(self, cls: RegClass, id: int = -1, index: int | None = None):
    self.cls, self.id, self.index = cls, id, index

  def __eq__(self, other: object) -> bool:
    if self is other: return True
    if not isinstance(other, Reg) or self.index is None: return False
    return self.cls is other.cls and self.index == other.index

  def __hash__(self) -> int:
    return id(self) if self.index is None else hash((self.cls.name, self.index))

  def __repr__(self) -> str:
    return f"%{self.id}:{self.cls.name}" if self.index is None else self.cls.name_of(self.index)

class Operand(NamedTuple):
  """One operand of a row. A register operand has a `cls`. Others are integers of a `kind` ("imm8", "disp32", "scale")
  or a "block". An ISA may also accept an integer for a register operand: a constant in place of a source.

  - tie: on a written operand, the index of the read operand that must be the same register (a destructive first source
    that the row spells out).
  - fixed: the index within the bank that the hardware requires (x86: cl as shift count).
  - optional: None is allowed (no index register).
  - early: written before all operands are read, so it may share a register with none of them.
  - shared: on a source: an early result may have exactly its registers.
  """
  name: str
  access: Access
  cls: RegClass | None = None
  kind: str = "reg"
  tie: int | None = None
  fixed: int | None = None
  optional: bool = False
  early: bool = False
  shared: bool = False

_READ, _WRITE, _BOTH = map(int, (Access.READ, Access.WRITE, Access.BOTH))

@dataclass(eq=False)
class Inst:
  """A row of an ISA's table. `encoding` is in the manual's notation. `pipe` names a row of the latency table. `isa`
  holds further data of the ISA.

  - clobbers: physical registers, as (bank, index), that lose their value although they are no operand.
  - commutes: two positions of operands whose values may be exchanged: both are read, or one is BOTH and one is read.
  - rematerialize: repeating the instruction is cheaper than a reload. It reads no register and no memory that changes,
    and has no effect.
  """
  name: str
  encoding: Any
  operands: tuple[Operand, ...]
  pipe: str = ""
  effects: int = Effect.NONE  # bits of Effect
  feature: str = ""
  isa: Any = None
  clobbers: tuple[tuple[Bank, int], ...] = ()
  commutes: tuple[int, int] | None = None
  rematerialize: bool = False
  # derived once: the operand positions of registers, by access
  reads: tuple[int, ...] = field(init=False)
  writes: tuple[int, ...] = field(init=False)
  both: tuple[int, ...] = field(init=False)       # positions in reads and in writes
  only_reads: tuple[int, ...] = field(init=False)
  early: tuple[int, ...] = field(init=False)      # positions in writes that may share a register with no source

  def __post_init__(self) -> None:
    access = {i: int(o.access) for i, o in enumerate(self.operands) if o.cls is not None}
    self.reads = tuple([i for i, a in access.items() if a & _READ])
    self.writes = tuple([i for i, a in access.items() if a & _WRITE])
    self.both = tuple([i for i, a in access.items() if a == _BOTH])
    self.only_reads = tuple([i for i, a in access.items() if a == _READ])
    self.early = tuple([i for i in self.writes if self.operands[i].early])

  def __repr__(self) -> str: return f"<{self.name} {' '.join(o.name for o in self.operands)}>"

@once
def concrete(row: Inst, classes: tuple[RegClass | None, ...]) -> Inst:
  """The row with the classes of actual operands, for allocation, if an operand may have several classes. None in
  `classes`: a constant, or no operand."""
  operands = tuple(o if o.cls is cls else o._replace(cls=cls, kind="reg" if cls is not None else "imm")
                   for o, cls in zip(row.operands, classes))
  return row if operands == row.operands else replace(row, operands=operands)

class MInst:
  """A machine instruction: a row and its operands (Reg, int, Block or None). `origin` is the UOp that it came from, for
  listings.

  - arguments: of a jump. For each block operand, the values passed to that block's parameters, in operand order.
  - ties: in SSA form an operand with Access.BOTH is two values. `operands` has the written value. `ties` has the read
    value, for each of row.both in order. Allocation gives both one register, and empties `ties`. Physical operands
    never need it.
  """
  __slots__ = ("row", "operands", "origin", "arguments", "comment", "ties")

  def __init__(self, row: Inst, operands: list[Any], origin: Any = None, arguments: tuple[list[Reg], ...] = (),
               comment: str = "",
               ties: tuple[Reg, ...] = ()):
    self.row, self.operands, self.origin, self.arguments, self.comment, self.ties = (row, operands, origin, arguments,
                                                                                     comment, ties)

  def reads(self) -> Iterator[Reg]:
    """Yield the registers read as operands, in operand order (then `ties`), then those passed to blocks. Operands that
    are no register (None, a constant) are left out."""
    for i in self.row.only_reads if self.ties else self.row.reads:
      if self.operands[i].__class__ is Reg: yield self.operands[i]
    yield from self.ties
    for values in self.arguments: yield from values

  def writes(self) -> Iterator[Reg]:
    for i in self.row.writes:
      if self.operands[i] is not None: yield self.operands[i]

  def __eq__(self, other: object) -> bool:
    return (isinstance(other, MInst) and self.row is other.row and self.operands == other.operands
            and self.arguments == other.arguments
            and self.ties == other.ties)

  __hash__ = None  # type: ignore[assignment]  # marks the class as unhashable

  def __repr__(self) -> str: return f"{self.row.name} {', '.join(map(str, self.operands))}"

class Block:
  """A basic block: a straight run of instructions. The last one has Effect.END. Jumps to this block give `params` their
  values. `depth` counts loops.

  rare: it is not expected to run, and is laid out after the others.
  """
  __slots__ = ("id", "params", "insts", "depth", "name", "rare")

  def __init__(self, id: int, depth: int = 0, name: str = "", rare: bool = False):
    self.id, self.depth, self.name, self.rare = id, depth, name, rare
    self.params: list[Reg] = []
    self.insts: list[MInst] = []

  def successors(self) -> list["Block"]:
    return [o for i in self.insts if i.row.effects & Effect.JUMP for o in i.operands if isinstance(o, Block)]

  def __repr__(self) -> str: return f".{self.name or 'b'}{self.id}"

class Function:
  """Blocks in layout order. The first is the entry. Its params are the incoming arguments. `fixed_params` pins them to
  the ABI's registers."""

  def __init__(self, name: str):
    self.name = name
    self.blocks: list[Block] = []
    self.registers: list[Reg] = []            # every virtual register, by id
    self.fixed_params: dict[int, int] = {}    # position in the entry's params -> physical index in its class's bank
    self.stack_bytes = 0                      # spill slots and shared arrays; set by spill
    self.local_bytes = 0                      # local (scratch, LDS) memory that the kernel asks for
    self.used: dict[str, set[int]] = {}       # bank name -> physical indices that the code writes; set by allocate
    self.spills = self.reloads = 0            # instructions added by spill
    # machine.ir.liveness.Liveness, cached from pass to pass; a pass that changes the code sets it to None
    self.liveness: Any = None
    self.controls: dict[Block, list[Any]] = {}  # a control word for each instruction, where the hardware has them
    self.reference: Any = None                # machine.verify.allocation.Reference with CHECK=1

  def new_reg(self, cls: RegClass) -> Reg:
    reg = Reg(cls, len(self.registers))
    self.registers.append(reg)
    return reg

  def new_block(self, depth: int = 0, name: str = "", rare: bool = False) -> Block:
    block = Block(len(self.blocks), depth, name, rare)
    self.blocks.append(block)
    return block
