"""Sequence parallel copies into single instructions, and expand pseudo instructions to the target's.

`sequence` orders the copies of a `parallel` so that nothing is overwritten before it is read. Only cycles remain then.
Copies of several units that overlap a cycle are first split into units. A cycle of n registers costs n + 1 copies with
a free register, or n - 1 swaps without one.

`expand` is the last step. It asks the target for a move, a spill, a reload or a swap. Cost: linear in the copies,
except for quadratic searches among the few copies of one `parallel`.
"""
from __future__ import annotations

from tinyhw.errors import AllocationError
from tinyhw.machine.ir.inst import Function, MInst, Reg
from tinyhw.machine.ir.pseudo import PARALLEL, PSEUDO, copy_row, swap_row
from tinyhw.machine.ir.registers import registers_of
from tinyhw.machine.ir.target import Target

Pairs = list[tuple[Reg, Reg]]
Unit = tuple[str, int]

def units_of(reg: Reg) -> list[Unit]:
  """The single registers that a physical register consists of."""
  assert reg.index is not None
  return [(reg.cls.bank.name, reg.index + i) for i in range(reg.cls.units)]

def moves(function: Function, target: Target) -> Function:
  """Order the moves of each parallel copy. Afterwards it has copies and swaps."""
  for block in function.blocks:
    if not any(inst.row is PARALLEL for inst in block.insts): continue
    insts: list[MInst] = []
    for inst in block.insts:
      if inst.row is not PARALLEL: insts.append(inst)
      else:
        registers = inst.operands
        insts += sequence(list(zip(registers[::2], registers[1::2])), inst.arguments[0], target)
    block.insts = insts
  return function

def sequence(pairs: Pairs, scratch: list[Reg], target: Target) -> list[MInst]:
  """Single copies and swaps with the effect of all the pairs (dst, src) at once. scratch: free registers of one unit,
  of which at most one a bank is used."""
  pending = [(dst, src) for dst, src in pairs if units_of(dst) != units_of(src)]
  insts: list[MInst] = []
  cut = False
  while pending:
    readers: dict[Unit, int] = {}
    for _, src in pending:
      for unit in units_of(src): readers[unit] = readers.get(unit, 0) + 1
    ready = [pair for pair in pending if not any(unit in readers for unit in units_of(pair[0]))]
    if ready:
      insts += [MInst(copy_row(dst.cls), [dst, src]) for dst, src in ready]
      pending = [pair for pair in pending if pair not in ready]
    elif not cut:
      pending, cut = _cut(pending, target), True
    else:
      insts += _break_cycle(pending, scratch, target)
      cut = False
  return insts

def _cut(pairs: Pairs, target: Target) -> Pairs:
  """Split copies of wide registers into copies of their units."""
  file = registers_of(target)
  found: Pairs = []
  for dst, src in pairs:
    if dst.cls.units == 1:
      found.append((dst, src))
      continue
    view = file.views[dst.cls]
    cls = file.unit_class[view.bank]
    assert cls is not None and dst.index is not None and src.index is not None, (f"bank {dst.cls.bank.name} needs a "
                                                                                 f"class of one unit for copies")
    numbers = file.banks[view.bank].unit_of
    regs = file.views[cls].regs
    found += [(regs[numbers[dst.index + i]], regs[numbers[src.index + i]]) for i in range(dst.cls.units)]
  return [(dst, src) for dst, src in found if dst.index != src.index or dst.cls.bank is not src.cls.bank]

def _break_cycle(pending: Pairs, scratch: list[Reg], target: Target) -> list[MInst]:
  """Break a cycle, in which every register to be written is still read. Free one register, by a copy to a scratch
  register or by a swap. Changes `pending`."""
  dst, src = pending[0]
  file, bank = registers_of(target), dst.cls.bank
  unit_of = file.by_bank[bank].unit_of

  def widest(*registers: Reg) -> list[Reg]:
    """These registers, in the widest class of the values that are still read from them."""
    indices = [r.index for r in registers]
    cls = max((s.cls for _, s in pending if s.cls.bank is bank and s.index in indices), key=lambda c: c.bits)
    return [file.views[cls].regs[unit_of[index or 0]] for index in indices]

  free = next((r for r in scratch if r.cls.bank is bank), None)
  if free is not None and not any(free.index == s.index for _, s in pending if s.cls.bank is bank):
    held = widest(dst)[0]
    spare = file.views[held.cls].regs[unit_of[free.index or 0]]
    for i, (d, s) in enumerate(pending):
      if s.index == dst.index and s.cls.bank is bank: pending[i] = (d, file.views[s.cls].regs[unit_of[free.index or 0]])
    return [MInst(copy_row(held.cls), [spare, held])]
  if target.swap is None:
    raise AllocationError(f"{target.name}: copies form a cycle, no register is free, and the target has no swap")
  a, b = widest(dst, src)
  del pending[0]
  for i, (d, s) in enumerate(pending):  # now src holds the old value of dst, and dst that of src
    if s.cls.bank is not bank: continue
    if s.index == dst.index: pending[i] = (d, file.views[s.cls].regs[unit_of[src.index or 0]])
    elif s.index == src.index: pending[i] = (d, file.views[s.cls].regs[unit_of[dst.index or 0]])
  pending[:] = [(d, s) for d, s in pending if units_of(d) != units_of(s)]
  return [MInst(swap_row(a.cls), [a, b])]

def expand(function: Function, target: Target) -> Function:
  """Replace pseudo instructions by the target's own. Count used registers and added instructions."""
  used: dict[str, set[int]] = {bank.name: set() for bank in target.banks}
  for block in function.blocks:
    insts: list[MInst] = []
    for inst in block.insts:
      if inst.row.encoding is PSEUDO: insts += _real(function, inst, target)
      else: insts.append(inst)
    block.insts = insts
    for inst in insts:
      for i in inst.row.writes:
        r = inst.operands[i]
        if r is None: continue
        if r.cls.units == 1: used[r.cls.bank.name].add(r.index)
        else: used[r.cls.bank.name].update(range(r.index, r.index + r.cls.units))
      for bank, number in inst.row.clobbers: used[bank.name].add(number)
  function.used = used
  return function

def _several(made: MInst | list[MInst]) -> list[MInst]: return made if isinstance(made, list) else [made]

def _real(function: Function, inst: MInst, target: Target) -> list[MInst]:
  """The target's instructions for a copy, swap, spill or reload. Their comments tell their purpose."""
  name, operands = inst.row.name, inst.operands
  if name == "copy": found = _several(target.move(operands[0], operands[1])) if operands[0] != operands[1] else []
  elif name == "swap":
    assert target.swap is not None
    found = list(target.swap(operands[0], operands[1]))
  elif name == "spill": found = _several(target.spill(operands[0], operands[1]))
  elif name == "reload": found = _several(target.reload(operands[0], operands[1]))
  else: raise AllocationError(f"{function.name}: {inst!r} must be expanded before; run `moves` first")
  for made in found:
    made.origin, made.comment = inst.origin, made.comment or inst.comment or name
  return found
