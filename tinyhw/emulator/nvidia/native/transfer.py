"""Loads and stores that translated code does itself, by native/access.py: plain ones of global and shared memory.

Local memory, atomic operations, and constant addresses stay in Python.
"""
from __future__ import annotations

from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.memory.memory import VECTOR
from tinyhw.emulator.native.records import VectorAccess
from tinyhw.emulator.native.threaded import MOST_PLACES
from tinyhw.emulator.native.translate import MemoryAccess, Transfer
from tinyhw.emulator.nvidia.memory.transfer import SIZES, hints
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.emulator.nvidia.warp.state import ROW_BYTES, UR_AT, row_word
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import MInst, Reg
from tinyhw.named_tuple import NamedTuple

class MemoryOperation(NamedTuple):
  """A load or store. action: "load" or "store"; data: the name of the operand; outside: global memory, not shared
  memory; base: the uniform registers that are added to 32 bits of each lane, or ""."""
  action: str
  data: str
  outside: bool
  base: str = ""

_LOAD, _STORE = MemoryOperation("load", "d", True), MemoryOperation("store", "b", True)
INSTRUCTIONS = {"LDG": _LOAD, "LDG.plain": _LOAD, "STG": _STORE, "STG.plain": _STORE,
                "LDG.U": _LOAD._replace(base="ub"), "STG.U": _STORE._replace(base="uc"),
                "LDS": _LOAD._replace(outside=False), "STS": _STORE._replace(outside=False)}

def transfer_of(inst: MInst, registers: int) -> Transfer | None:
  """Return the record of an instruction, or None if it stays in Python. registers: of the launch."""
  if inst.row.name not in INSTRUCTIONS: return None
  action, data, outside, start = INSTRUCTIONS[inst.row.name]
  o = Operands(inst)
  base, value = o.values.get("a"), o.values.get(data)
  if not isinstance(base, Reg) or base.index is None or not isinstance(value, Reg) or value.index is None: return None
  if (outside and base.index == regs.ZERO or action == "load" and value.index == regs.ZERO or o.has("index")
      and o.word("index")):
    return None
  first = o.values[start].index if start else 0
  if first == regs.ZERO: return None
  hints(o)
  try:
    size, signed = SIZES[o.word("size")]
    offset = o.number("o")
    o.finish()
  except (KeyError, UnknownInstruction): return None
  count = max(size // 4, 1)
  if count * (ROW_BYTES // 4) > MOST_PLACES: return None
  function = f"{action}{min(size, 4)}" + "s" * (action == "load" and signed)
  operands = VectorAccess(addresses=4 * row_word(base.index, registers), high=ROW_BYTES * (outside and not start),
                          base=4 * (UR_AT + first) if start else -1, offset=offset,
                          data=4 * row_word(value.index, registers),
                          row=ROW_BYTES * (value.index != regs.ZERO), words=count, unaligned=size - 1)
  return (Transfer(function, operands, MemoryAccess(VECTOR, action == "store")) if outside
          else Transfer(f"local_{function}", operands, None))
