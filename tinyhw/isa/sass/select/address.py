"""Select addresses of elements of buffers and of the block's memory.

The beginning of a buffer is the same for all lanes. Two uniform registers hold it from the start of the kernel on. Each
lane adds 32 unsigned bits, and the instruction adds a constant ([R2.U32+UR4+0x10]). So one index in bytes, in one
register, serves all buffers with elements of that size. If 32 bits may be too few, or no uniform registers are left, a
lane has an address of 64 bits.

Uniform registers are not allocated. Products of four warps and bulk tensor copies have fixed numbers (DESCRIPTORS,
BULK_COPIES, MAPS). Bases of buffers get the others.
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.config import NV_BASES
from tinyhw.data_class import replace
from tinyhw.isa.sass.abi import Abi
from tinyhw.isa.sass.select.packed import Packed
from tinyhw.isa.sass.select.part import FULL
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Access, Effect, Inst, MInst, Reg
from tinyhw.machine.select.macros import Macro
from tinyhw.machine.select.selection import constant_part, short_buffer, short_index
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
if TYPE_CHECKING:
  from tinyhw.uop.program import Program

FARTHEST = 1 << 23         # bytes that an instruction can add to an address, or subtract
DESCRIPTORS = range(4, 20) # uniform registers of products of four warps (select/matrix.py)
BULK_COPIES = range(20, 40)      # uniform registers of bulk tensor copies (select/async_copies.py)
MAPS = range(40, 62, 2)    # pairs for the addresses of tensor maps
PAIRS = range(0, 62, 2)    # all pairs

class AccessAddress(NamedTuple):
  """An address.

  prefix: of names of macros. register: of each lane. offset: bytes to add. base: the first of two uniform registers
  with the beginning of a buffer, to which the register's 32 bits are added. Without a base, the register is the
  address.
  """
  prefix: str
  register: Reg
  offset: int
  base: int | None = None

class Addresses(Packed):
  """The layer of Selector for addresses.

  slots: of arguments in constant memory. offsets: of the block's arrays. bases: of buffers, the first of two uniform
  registers. pairs: the free ones.
  """
  abi: Abi
  slots: dict[UOp, int]
  offsets: dict[UOp, int]
  bases: dict[UOp, int]
  pairs: list[int]

  def address(self, index: UOp, reach: int = FARTHEST) -> AccessAddress:
    """Return the address of an element. reach: bytes that the instruction can add, or subtract."""
    buffer, i = index.src
    if buffer.op is Ops.DEFINE_LOCAL: return AccessAddress("shared_", *self.shared_place(index))
    size = buffer.dtype.itemsize
    more, rest = constant_part(i)
    bias = 0 if rest is None or not more and short_buffer(buffer) else max(-int(rest.vmin), 0)
    near = -reach <= (more - bias) * size < reach
    enough = (not near or not more) and short_buffer(buffer) or near and short_index(rest, size, bias)
    base = self.base_of(buffer) if enough else None
    if base is None: return self.wide_address(index, reach)
    if rest is None:
      if near: return AccessAddress("", regs.RZ, more * size, base)
      return AccessAddress("", self.in_register(more * size, 1), 0, base)
    if near: return AccessAddress("", self.scaled(rest, size, bias), (more - bias) * size, base)
    return AccessAddress("", self.once(regs.R[1], "add32", self.scaled(rest, size), more * size), 0, base)

  def wide_address(self, index: UOp, reach: int) -> AccessAddress:
    """Return an address of 64 bits in each lane."""
    buffer, i = index.src
    size, address = buffer.dtype.itemsize, self.address_of(buffer)
    more, rest = constant_part(i)
    if not -FARTHEST <= more * size < FARTHEST: more, rest = 0, i
    if rest is not None:
      wide = rest.dtype.itemsize == 8
      address = self.once(regs.R[2], "address64" if wide else "address",
                          self.in_register(self.value(rest), 2 if wide else 1), size, address)
    if -reach <= more * size < reach: return AccessAddress("", address, more * size)
    return AccessAddress("", self.once(regs.R[2], "add64", address, more * size), 0)

  def base_of(self, buffer: UOp) -> int | None:
    """Return the first of two uniform registers that hold the beginning of a buffer. Return None if no pair is left."""
    if buffer not in self.bases and self.pairs: self.bases[buffer] = self.pairs.pop(0)
    return self.bases.get(buffer)

  def address_of(self, buffer: UOp) -> Reg:
    """Return the beginning of a buffer in registers of a lane."""
    if buffer not in self.values: self.values[buffer] = self.new(regs.R[2])
    return self.values[buffer]

  def begin(self) -> None:
    """Insert the loads of the beginnings of buffers at the start of the kernel.

    They keep their position, because the other passes do not see the readers of uniform registers.
    """
    first = [self.argument(self.values[buffer], buffer) for buffer in self.slots if buffer.op is Ops.PARAM
             and buffer in self.values]
    if self.bases:
      inst = self.instruction(beginnings(tuple(self.bases.values())), *[self.slots[buffer] for buffer in self.bases])
      inst.row = first_of_all(inst.row)
      first.insert(0, inst)
    self.order[0].insts[:0] = first

  def argument(self, result: Reg, buffer: UOp) -> MInst:
    """Return the load of a buffer's beginning."""
    inst = self.instruction("argument_b64", result, self.slots[buffer])
    inst.origin = buffer
    return inst

  def shared_place(self, index: UOp) -> tuple[Reg, int]:
    """Return an address in the block's memory, and bytes to add to it."""
    buffer, i = index.src
    size, start = buffer.dtype.itemsize, self.abi.shared + self.offsets[buffer]
    more, rest = constant_part(i)
    return regs.RZ if rest is None else self.scaled(rest, size), start + more * size

  def scaled(self, i: UOp, size: int, bias: int = 0) -> Reg:
    """Return an index in bytes that fits 32 bits. bias: elements to add, so that none is negative.

    The loop-invariant part is scaled before the loop. An iteration adds the rest.
    """
    if self.loops and i.op is Ops.ADD and self.is_steady(i.src[0]) != self.is_steady(i.src[1]):
      steady, other = i.src if self.is_steady(i.src[0]) else i.src[::-1]
      start = self.scaled(steady, size, bias)
      if other.op is not Ops.MUL or other.src[1].op is not Ops.CONST:
        return self.once(regs.R[1], "add32", start, self.scaled(other, size))
      return self.once(regs.R[1], "mad32", self.lowest(other.src[0]), other.src[1].arg * size & FULL, start)
    value = self.lowest(i)
    if not isinstance(value, Reg): return self.in_register((value + bias) * size, 1)
    if size == 1 and not bias: return value
    loop = self.steady(value.group if isinstance(value, regs.Element) else value)
    def made() -> Reg:
      if bias: return self.once(regs.R[1], "mad32", value, size, bias * size)
      return self.once(regs.R[1], "shl32", value, size.bit_length() - 1)
    return made() if loop is None else self.before(loop, made)

  def lowest(self, i: UOp) -> Any:
    """Return the lowest 32 bits of an index."""
    return self.half(self.value(i), "low") if i.dtype.itemsize == 8 else self.value(i)

  def is_steady(self, i: UOp) -> bool:
    """Return whether an index is invariant in the innermost loop."""
    value = self.value(i)
    return not isinstance(value, Reg) or (value.group if isinstance(value, regs.Element)
                                          else value).id < self.loops[-1].counter.id

  def access(self, place: AccessAddress, name: str) -> str:
    """Return the macro of a load, a store or a copy. name: its name for an address of 64 bits in each lane."""
    return place.prefix + name if place.base is None else f"{name}+UR{place.base}"

@once
def beginnings(pairs: tuple[int, ...]) -> Macro:
  """Return a macro that loads the beginnings of buffers from constant memory.

  pairs: the first of two uniform registers of each buffer. Operands: the slots of the buffers.
  """
  names = [f"o{k}" for k in range(len(pairs))]
  return Macro("addresses of buffers", tuple((name, Access.READ, "i") for name in names), len(names),
               tuple(f"ULDC.64 UR{first}, c[0x0][{name}]" for first, name in zip(pairs, names)))

@once
def first_of_all(row: Inst) -> Inst:
  """Return the row of an instruction that others must not cross."""
  return replace(row, effects=row.effects | Effect.BARRIER)

def free_pairs(program: Program) -> list[int]:
  """Return the first registers of the pairs of uniform registers that are free in a kernel; none if NV_BASES is 0."""
  if not NV_BASES: return []
  taken: set[int] = set()
  if any(u.op is Ops.MMA and u.arg.shared_operands for u in program.uops): taken.update(DESCRIPTORS)
  if any(u.op is Ops.TENSOR_BOX for u in program.uops): taken.update(BULK_COPIES, MAPS)
  return [first for first in PAIRS if first not in taken]
