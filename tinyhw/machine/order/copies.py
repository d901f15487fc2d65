"""Remove copies between registers of one bank after allocation, and instructions that only write registers that nobody
reads.

Selection splits groups of registers and joins them with copies, because allocation treats a group as one value. After
allocation, two rewrites make most copies unread, so that they can be removed. A reader of a copy reads the source
instead, if the source is not overwritten. A value that is only made to be copied is made in the destination, if the
destination is free from there on.

Needs: physical code without macros. An operand whose old content may stay, as under a predicate, has Access.BOTH. Only
copies of single registers inside of blocks are handled. A data flow over sets of registers, as bits of ints, finds the
live registers at the ends of blocks. Cost: linear in the instructions, and in the distances from copies to the
instructions that make their sources.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.machine.ir.flow import goals_of
from tinyhw.machine.ir.inst import Access, Bank, Block, Effect, Function, MInst, Reg, RegClass
from tinyhw.machine.order.early import overwritten
from tinyhw.named_tuple import NamedTuple

FAR = 256   # most instructions between a copy and the instruction that makes its source

class Copies(NamedTuple):
  """An ISA's data.

  - bank: the bank whose copies are removed.
  - copied: the destination and source index of an instruction that does nothing but copy, else None.
  - reg: make a physical register.
  - sinks: registers of other banks that discard a result.
  """
  bank: Bank
  copied: Callable[[MInst], tuple[int, int] | None]
  reg: Callable[[RegClass, int], Reg]
  sinks: frozenset[Reg] = frozenset()

def drop_copies(function: Function, copies: Copies) -> Function:
  """Drop the copies and results that nobody needs."""
  uses = {block: forward(block, copies) for block in function.blocks}
  while True:
    entering, leaving = liveness(uses)
    left = {block: drop_unread(block, uses, leaving[block], copies) for block in uses}
    # otherwise the last reader of another block's result was removed
    if all([left[block].entering == entering[block] for block in uses]): break
  for block in uses: backward(block, left[block], copies)
  return function

# ***** reads and writes *****

def within(operand: object, bank: Bank) -> bool: return isinstance(operand, Reg) and operand.cls.bank is bank

def units(r: Reg) -> int:
  """The registers of a group, as bits."""
  assert r.index is not None, f"{r!r} has no register yet"
  return (1 << r.cls.units) - 1 << r.index

class Touched(NamedTuple):
  """The registers of a bank that an instruction reads and writes, as bits. copy: its destination and source, if it is a
  copy."""
  reads: int
  writes: int
  copy: tuple[int, int] | None = None

def touched(inst: MInst, bank: Bank) -> tuple[int, int]:
  """The registers that an instruction reads and writes, as bits."""
  row, operands, reads, writes = inst.row, inst.operands, 0, 0
  for i in row.reads:
    r = operands[i]
    # all registers are physical
    if r.__class__ is Reg and r.cls.bank is bank: reads |= (1 << r.cls.units) - 1 << r.index  # type: ignore[operator]
  for i in row.writes:
    r = operands[i]
    if r.__class__ is Reg and r.cls.bank is bank: writes |= (1 << r.cls.units) - 1 << r.index  # type: ignore[operator]
  return reads, writes

# ***** the passes *****

def forward(block: Block, copies: Copies) -> list[Touched]:
  """Let readers of copies read the sources instead. Return the reads and writes of each instruction after that."""
  bank, uses = copies.bank, []
  source: dict[int, int] = {}   # register -> the source that it is a copy of
  involved = 0                  # all of these, and some earlier ones
  for inst in block.insts:
    for i in inst.row.only_reads if source else ():
      r = inst.operands[i]
      if r.__class__ is not Reg or r.index not in source or r.cls.bank is not bank or r.cls.units > 1: continue
      copied = copies.reg(r.cls, source[r.index])
      if not inst.row.early or overwritten(inst, copied) is None: inst.operands[i] = copied
    read, written = touched(inst, bank)
    copy = copies.copied(inst)
    uses.append(Touched(read, written, copy))
    if written & involved: source = {d: s for d, s in source.items() if not written >> d & 1 and not written >> s & 1}
    if copy is None or copy[0] == copy[1]: continue
    source[copy[0]] = copy[1]
    involved |= 1 << copy[0] | 1 << copy[1]
  return uses

def liveness(uses: dict[Block, list[Touched]]) -> tuple[dict[Block, int], dict[Block, int]]:
  """The live registers at the start and at the end of each block, from the reads and writes of its instructions."""
  blocks = list(uses)
  following = dict(zip(blocks, blocks[1:]))
  goals = {block: list(goals_of(block, following.get(block))) for block in blocks}
  needed, kept = {}, {}
  for block in blocks:
    reads = writes = 0
    for read, written, _ in uses[block]:
      reads |= read & ~writes
      writes |= written
    needed[block], kept[block] = reads, ~writes
  out, changed = dict.fromkeys(blocks, 0), True
  while changed:
    changed = False
    for block in reversed(blocks):
      new = 0
      for goal in goals[block]: new |= needed[goal] | out[goal] & kept[goal]
      if new != out[block]: out[block], changed = new, True
  return {block: needed[block] | out[block] & kept[block] for block in blocks}, out

class Left(NamedTuple):
  """The rest of a block.

  - live: the live registers after each instruction.
  - copied: positions of copies, the last one first.
  - entering: the live registers at the start of the block.
  """
  live: list[int]
  copied: list[int]
  entering: int

def drop_unread(block: Block, uses: dict[Block, list[Touched]], leaving: int, copies: Copies) -> Left:
  """Drop instructions that only write registers that nobody reads, and copies of registers to themselves. Drop them
  from a block and from `uses`."""
  insts: list[MInst] = []
  touches: list[Touched] = []
  live: list[int] = []
  copied: list[int] = []
  for inst, use in zip(reversed(block.insts), reversed(uses[block])):
    reads, writes, copy = use
    if copy is not None and copy[0] == copy[1] or writes and not writes & leaving and only_makes(inst, copies): continue
    if copy is not None: copied.append(len(insts))
    insts.append(inst)
    touches.append(use)
    live.append(leaving)
    leaving = leaving & ~writes | reads
  block.insts, uses[block] = insts[::-1], touches[::-1]
  return Left(live[::-1], [len(insts) - 1 - at for at in copied], leaving)

def only_makes(inst: MInst, copies: Copies) -> bool:
  """Whether an instruction does nothing but write registers of the bank. It may read memory."""
  if inst.row.effects & ~Effect.LOAD: return False
  return all([within(r, copies.bank) or r in copies.sinks for i in inst.row.writes
              if (r := inst.operands[i]) is not None])

def backward(block: Block, left: Left, copies: Copies) -> None:
  """Make values that are only made to be copied directly in the destination of the copy."""
  bank, insts, live, gone = copies.bank, block.insts, left.live, set()
  for at in left.copied:
    copy = copies.copied(insts[at])
    if copy is None or live[at] >> copy[1] & 1: continue
    dst, src = copy
    start = maker(insts, at, dst, src, bank)
    if start is None: continue
    for k in range(start, at):
      for i, r in enumerate(insts[k].operands):
        if not within(r, bank) or r.index != src: continue
        if k > start or insts[k].row.operands[i].access & Access.WRITE: insts[k].operands[i] = copies.reg(r.cls, dst)
      live[k] = live[k] & ~(1 << src) | 1 << dst
    gone.add(at)
  block.insts = [inst for at, inst in enumerate(insts) if at not in gone]

def maker(insts: list[MInst], at: int, dst: int, src: int, bank: Bank) -> int | None:
  """The position of the instruction before `at` that makes all of `src`, if `dst` can replace `src` from there on."""
  both = 1 << dst | 1 << src
  for k in range(at - 1, max(at - FAR, 0) - 1, -1):
    inst, made = insts[k], False
    for spec, r in zip(inst.row.operands, inst.operands):
      if not within(r, bank) or not units(r) & both: continue
      if r.cls.units > 1: return None
      made = made or r.index == src and spec.access is Access.WRITE
    reads, writes = touched(inst, bank)
    # an early result may not share a register with a source
    if made: return k if not (writes | reads * bool(inst.row.early)) >> dst & 1 else None
    if (reads | writes) >> dst & 1: return None
  return None
