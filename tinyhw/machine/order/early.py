"""Results that are written before all operands are read (`Operand.early`), in physical code.

Allocation gives such a result registers that no source has (constraints.py). Later changes of registers must preserve
this. copies.py tests it here, and `check_early` checks the code that is encoded. A source that is tied to the result
must be the same register, and so is the old value of a result that is read, too.
"""
from __future__ import annotations

from tinyhw.errors import AllocationError
from tinyhw.machine.ir.inst import Function, MInst, Reg
from tinyhw.machine.ir.target import Target

def meets(a: Reg, b: Reg) -> bool:
  """Whether two physical registers have a unit in common."""
  if a.cls.bank is not b.cls.bank: return False
  assert a.index is not None and b.index is not None, f"{a!r} or {b!r} has no register yet"
  return a.index < b.index + b.cls.units and b.index < a.index + a.cls.units

def overwritten(inst: MInst, reads: Reg | None = None) -> tuple[Reg, Reg] | None:
  """An early result and a source in the same registers, or None. reads: a register that the instruction would read in
  addition to its operands."""
  row = inst.row
  for i in row.early:
    result = inst.operands[i]
    if not isinstance(result, Reg): continue
    sources = [inst.operands[k] for k in row.reads if k not in (i, row.operands[i].tie)
               and not (row.operands[k].shared and inst.operands[k] == result)]
    for source in sources if reads is None else (*sources, reads):
      if isinstance(source, Reg) and meets(result, source): return result, source
  return None

def check_early(function: Function, target: Target) -> Function:
  """Raise AllocationError, naming block and instruction, if an early result is in a register that its instruction
  reads."""
  for block in function.blocks:
    for inst in block.insts:
      found = overwritten(inst) if inst.row.early else None
      if found is None: continue
      raise AllocationError(f"{function.name}, block {block}, instruction `{inst!r}`: {found[0]!r} is written before "
                            f"{found[1]!r} is read; "
                            "give the result registers that no source has")
  return function
