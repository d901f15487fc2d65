"""Take out copies between vector registers, and make fused additions short.

Selection takes groups of registers apart and puts them together with copies, since allocation sees a group as one value. Now that registers are
known, a reader of a copy can read what was copied (as long as that is not overwritten), and what is copied in the end can be made there in the first
place (as long as nothing else is there). Then nobody reads most copies, and they go. A v_fma into its own sum is v_fmac, which is shorter and
can be one of two operations in an instruction.

Needs: physical code without macros; before waits and hazards. Only copies of single registers, inside of blocks; what is alive at their ends is found
by a data flow over sets of registers as bits of ints. Cost: linear in the instructions, and in the distances from copies to what makes their sources.
"""
from __future__ import annotations

from tinyhw.isa.amd import regs
from tinyhw.isa.amd.form import Form
from tinyhw.isa.amd.table import build, table
from tinyhw.machine.flow import goals_of
from tinyhw.machine.inst import Access, Block, Function, Inst, MInst, Reg
from tinyhw.machine.target import Target

FAR = 256   # instructions between a copy and what makes its source, at most

def drop_copies(function: Function, target: Target) -> Function:
  """The function without copies that nobody needs."""
  blocks = function.blocks
  for block in blocks: forward(block)
  leaving = live_out(blocks)
  for block in blocks:
    live = drop_unread(block, leaving[block])
    backward(block, live)
  rows = table(target.table.generation.arch)
  for block in blocks: block.insts = [accumulating(inst, rows["v_fmac_f32"]) for inst in block.insts]
  return function

# ***** what instructions touch *****

def vector(operand: object) -> bool: return isinstance(operand, Reg) and operand.cls.bank is regs.VGPR

def units(r: Reg) -> int:
  """The registers of a group, as bits."""
  assert r.index is not None, f"{r!r} has no register yet"
  return (1 << r.cls.units) - 1 << r.index

def touched(inst: MInst, access: int) -> int:
  """The vector registers that an instruction reads, or writes."""
  found = 0
  for spec, r in zip(inst.row.operands, inst.operands):
    if spec.access & access and vector(r): found |= units(r)
  return found

def copied(inst: MInst) -> tuple[int, int] | None:
  """The registers to and from which an instruction copies, if it does nothing else."""
  form: Form = inst.row.isa
  if form.key != "v_mov_b32" or not vector(inst.operands[1]) or not plain(inst): return None
  return inst.operands[0].index, inst.operands[1].index

def plain(inst: MInst) -> bool:
  """Whether an instruction has no modifiers."""
  form: Form = inst.row.isa
  return all(spec.show or value == spec.implied for spec, value in zip(form.specs, inst.operands))

# ***** the passes *****

def forward(block: Block) -> None:
  """Readers of copies read what was copied."""
  source: dict[int, int] = {}   # register -> the one that it is a copy of
  for inst in block.insts:
    for i, (spec, r) in enumerate(zip(inst.row.operands, inst.operands)):
      if spec.access is Access.READ and vector(r) and r.cls.units == 1 and r.index in source: inst.operands[i] = regs.reg(r.cls, source[r.index])
    written = touched(inst, Access.WRITE)
    if source and written: source = {d: s for d, s in source.items() if not written >> d & 1 and not written >> s & 1}
    copy = copied(inst)
    if copy is not None and copy[0] != copy[1]: source[copy[0]] = copy[1]

def live_out(blocks: list[Block]) -> dict[Block, int]:
  """The vector registers that are read behind each block."""
  following = dict(zip(blocks, blocks[1:]))
  goals = {block: list(goals_of(block, following.get(block))) for block in blocks}
  needed, kept = {}, {}
  for block in blocks:
    reads = writes = 0
    for inst in block.insts:
      reads |= touched(inst, Access.READ) & ~writes
      writes |= touched(inst, Access.WRITE)
    needed[block], kept[block] = reads, ~writes
  out, changed = dict.fromkeys(blocks, 0), True
  while changed:
    changed = False
    for block in reversed(blocks):
      new = 0
      for goal in goals[block]: new |= needed[goal] | out[goal] & kept[goal]
      if new != out[block]: out[block], changed = new, True
  return out

def drop_unread(block: Block, leaving: int) -> list[int]:
  """Drop copies that nobody reads, and those to where they come from. The registers that are alive behind each instruction that is left."""
  insts: list[MInst] = []
  live: list[int] = []
  for inst in reversed(block.insts):
    copy = copied(inst)
    if copy is not None and (copy[0] == copy[1] or not leaving >> copy[0] & 1): continue
    insts.append(inst)
    live.append(leaving)
    leaving = leaving & ~touched(inst, Access.WRITE) | touched(inst, Access.READ)
  block.insts = insts[::-1]
  return live[::-1]

def backward(block: Block, live: list[int]) -> None:
  """What is only made to be copied is made where the copy would be."""
  insts, gone = block.insts, set()
  for at in range(len(insts) - 1, -1, -1):
    copy = copied(insts[at])
    if copy is None or live[at] >> copy[1] & 1: continue
    dst, src = copy
    start = maker(insts, at, dst, src)
    if start is None: continue
    for k in range(start, at):
      for i, r in enumerate(insts[k].operands):
        if not vector(r) or r.index != src: continue
        if k > start or insts[k].row.operands[i].access & Access.WRITE: insts[k].operands[i] = regs.reg(r.cls, dst)
      live[k] = live[k] & ~(1 << src) | 1 << dst
    gone.add(at)
  block.insts = [inst for at, inst in enumerate(insts) if at not in gone]

def maker(insts: list[MInst], at: int, dst: int, src: int) -> int | None:
  """The place of the instruction before `at` that makes all of `src`, if `dst` could take its place from there on."""
  both = 1 << dst | 1 << src
  for k in range(at - 1, max(at - FAR, 0) - 1, -1):
    inst, made = insts[k], False
    for spec, r in zip(inst.row.operands, inst.operands):
      if not vector(r) or not units(r) & both: continue
      if r.cls.units > 1: return None
      made = made or r.index == src and spec.access is Access.WRITE
    if made: return k if not touched(inst, Access.WRITE) >> dst & 1 else None
    if (touched(inst, Access.READ) | touched(inst, Access.WRITE)) >> dst & 1: return None
  return None

def accumulating(inst: MInst, row: Inst) -> MInst:
  """v_fma whose sum stays in its register as v_fmac, if that has a short encoding; anything else as it is."""
  if inst.row.name != "v_fma_f32" or not plain(inst): return inst
  d, a, b, c = inst.operands[:4]
  if c != d: return inst
  if not vector(b): a, b = b, a
  if not vector(b): return inst
  short = build(row, d, a, b)
  short.origin, short.comment = inst.origin, inst.comment
  return short
