"""Loads and stores that translated code does itself, by native/access.py: plain global and LDS ones of vectors, and
loads into scalar registers.

Atomic operations, buffers, flat addresses and scratch stay in Python. So do accesses that bypass caches.
"""
from __future__ import annotations

from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
from tinyhw.emulator.amd.execute.control import cache_scope
from tinyhw.emulator.amd.execute.transfer import TransferElement, element_of, row_at
from tinyhw.emulator.memory.memory import SCALAR, VECTOR, Scope
from tinyhw.emulator.native.records import ScalarAccess, VectorAccess
from tinyhw.emulator.native.threaded import MOST_PLACES
from tinyhw.emulator.native.translate import MemoryAccess, Transfer
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.inst import Reg

def transfer_of(uses: NamedOperands, mode: Mode, row_word: dict[int, int]) -> Transfer | None:
  """Return the record of an instruction, or None if it stays in Python. row_word: where rows begin in the state, in
  words.
  """
  if uses.name.startswith("s_load_"): return _scalar(uses)
  if uses.name.startswith("ds_") and not uses.get("gds"): return _local(uses, mode, row_word)
  for action in ("load", "store"):
    start = f"global_{action}_"
    if uses.name.startswith(start) and cache_scope(uses, mode) == Scope.UNIT:
      return _vector(uses, mode, action, uses.name[len(start):], row_word)
  return None

def _vector(uses: NamedOperands, mode: Mode, action: str, what: str, row_word: dict[int, int]) -> Transfer | None:
  element = element_of(what)
  function = None if element is None else _function(action, element, mode)
  if function is None or element is None: return None
  base: Reg | None = uses.get("saddr", 0) or None
  scalar = -1 if base is None or base.index is None else 4 * base.index
  count, row_bytes = max(element.bytes // 4, 1), 4 * mode.lanes
  if count * mode.lanes > MOST_PLACES: return None
  data = row_at(uses, "vdst" if action == "load" else "vdata")
  operands = VectorAccess(addresses=4 * row_word[row_at(uses, "vaddr")], high=row_bytes if base is None else 0,
                          base=scalar,
                          offset=uses.get("offset"), data=4 * row_word[data], row=row_bytes, words=count, unaligned=0)
  return Transfer(function, operands, MemoryAccess(VECTOR, action == "store"))

def _local(uses: NamedOperands, mode: Mode, row_word: dict[int, int]) -> Transfer | None:
  action, _, what = uses.name[3:].partition("_")
  element = element_of(what) if action in ("load", "store") else None
  function = None if element is None else _function(action, element, mode)
  if function is None or element is None: return None
  count, row_bytes = max(element.bytes // 4, 1), 4 * mode.lanes
  data = row_at(uses, "vdst" if action == "load" else "data0")
  operands = VectorAccess(addresses=4 * row_word[row_at(uses, "addr")], high=0, base=-1, offset=uses.get("offset"),
                          data=4 * row_word[data],
                          row=row_bytes, words=count, unaligned=0)
  return Transfer(f"local_{function}", operands, None)

def _function(action: str, element: TransferElement, mode: Mode) -> str | None:
  """Return the function that moves an element."""
  if element.bytes >= 4: return f"{action}4"
  if element.half is None: return f"{action}{element.bytes}" + "s" * (action == "load" and element.signed)
  if element.bytes == 1 or action == "load" and mode.cdna: return None  # CDNA loses the other half
  if action == "load": return ("load2low", "load2high")[element.half]
  return ("store2", "store2high")[element.half]

def _scalar(uses: NamedOperands) -> Transfer | None:
  element = element_of(uses.name.removeprefix("s_load_"))
  if element is None or element.bytes < 4 or uses["sdata"].index >= regs.NULL: return None
  register = uses.get("soffset")
  moved = uses.get("offset") + (0 if isinstance(register, Reg) else int(register or 0))
  place = 4 * register.index if isinstance(register, Reg) and register.index is not None else -1
  operands = ScalarAccess(base=4 * uses["sbase"].index, register=place, offset=moved, data=4 * uses["sdata"].index,
                          words=element.bytes // 4)
  return Transfer("load_scalar", operands, MemoryAccess(SCALAR, False))
