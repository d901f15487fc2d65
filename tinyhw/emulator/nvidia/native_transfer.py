"""Loads and stores that translated code does itself, as records of windows.py: plain global ones, and those of shared memory.

Local memory, atomic operations, and addresses that are constants stay Python.
"""
from __future__ import annotations
from typing import NamedTuple

from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.operands import Operands
from tinyhw.emulator.nvidia.state import ROW_BYTES, row_word
from tinyhw.emulator.nvidia.transfer import SIZES, hints
from tinyhw.emulator.threaded import MOST_PLACES
from tinyhw.isa.sass import regs
from tinyhw.machine.inst import MInst, Reg

class Transfer(NamedTuple):
  """A function of windows.py, its operands, and whether it accesses global memory."""
  function: str
  operands: tuple[int, ...]
  outside: bool

NAMES = {"LDG": ("load", "d", True), "LDG.plain": ("load", "d", True), "STG": ("store", "b", True), "STG.plain": ("store", "b", True),
         "LDS": ("load", "d", False), "STS": ("store", "b", False)}   # action, operand, whether it accesses global memory

def transfer_of(inst: MInst, registers: int) -> Transfer | None:
  """The record of an instruction, or None if it stays Python. registers: of the launch."""
  if inst.row.name not in NAMES: return None
  action, data, outside = NAMES[inst.row.name]
  o = Operands(inst)
  base, value = o.values.get("a"), o.values.get(data)
  if not isinstance(base, Reg) or base.index is None or not isinstance(value, Reg) or value.index is None: return None
  if outside and base.index == regs.ZERO or action == "load" and value.index == regs.ZERO or o.has("index") and o.word("index"): return None
  hints(o)
  try:
    size, signed = SIZES[o.word("size")]
    offset = o.number("o")
    o.finish()
  except (KeyError, UnknownInstruction): return None
  count = max(size // 4, 1)
  if count * (ROW_BYTES // 4) > MOST_PLACES: return None
  function = f"{action}{min(size, 4)}" + "s" * (action == "load" and signed)
  rows = 4 * row_word(base.index, registers), ROW_BYTES * outside, 4 * row_word(value.index, registers), ROW_BYTES * (value.index != regs.ZERO)
  operands = (rows[0], rows[1], -1, offset, rows[2], rows[3], count, size - 1)
  return Transfer(function if outside else f"local_{function}", operands, outside)
