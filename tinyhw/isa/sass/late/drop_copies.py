"""Remove copies between registers of a lane (machine/order/copies.py)."""
from __future__ import annotations

from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.branch import BRANCH
from tinyhw.isa.sass.table.form import Form
from tinyhw.machine.ir.inst import Function, MInst, Reg
from tinyhw.machine.ir.target import Target
from tinyhw.machine.order import copies

def copied(inst: MInst) -> tuple[int, int] | None:
  """Return the source and destination registers of an instruction that only copies, in all lanes."""
  if inst.row.encoding is BRANCH or inst.row.name != "MOV": return None
  form: Form = inst.row.isa
  to, source = (inst.operands[form.index[name]] for name in ("d", "b"))
  if (inst.operands[form.index["guard"]] != regs.PT or inst.operands[form.index["guard_not"]]
      or not isinstance(source, Reg)):
    return None
  if source.cls is not regs.R[1] or regs.ZERO in (to.index, source.index): return None
  assert to.index is not None and source.index is not None, f"{inst!r} has no registers yet"
  return to.index, source.index

VECTOR_COPIES = copies.Copies(regs.VECTOR, copied, regs.reg, frozenset({regs.PT}))

def drop_copies(function: Function, target: Target) -> Function:
  """Return the function without redundant copies and unused results."""
  return copies.drop_copies(function, VECTOR_COPIES)
