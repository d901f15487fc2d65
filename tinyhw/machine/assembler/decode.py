"""Decode instructions that are words of 32 bits: bytes -> MInst.

Of several rows that fit, the one with the most fixed bits is taken, then an alias, then the first of the table. This is
the order in which LLVM prefers spellings.
"""
from __future__ import annotations
import struct
from typing import Any

from tinyhw.errors import DecodeError
from tinyhw.machine.assembler.encode import BYTES
from tinyhw.machine.assembler.form import WordForm
from tinyhw.machine.assembler.table import Table
from tinyhw.machine.ir.inst import Inst, MInst
from tinyhw.threads import once

@once
def index(table: Table) -> list[tuple[int, dict[int, list[Inst]]]]:
  """(mask, value -> rows) for each set of fixed bits, most bits first."""
  found: dict[int, dict[int, list[Inst]]] = {}
  for row in table:
    form: WordForm = row.isa
    if "unseen" not in form.words: found.setdefault(form.mask, {}).setdefault(form.value, []).append(row)
  for rows in found.values():
    for several in rows.values(): several.sort(key=lambda row: "alias" not in row.isa.words)
  return sorted(found.items(), key=lambda item: -bin(item[0]).count("1"))

def decode(table: Table, code: bytes, offset: int = 0) -> tuple[MInst, int]:
  """The instruction at an offset, and its size, which is 4. Raises DecodeError."""
  if len(code) < offset + BYTES: raise DecodeError(f"an instruction has {BYTES} bytes, {len(code) - offset} are left")
  word = struct.unpack_from("<I", code, offset)[0]
  for mask, rows in index(table):
    for row in rows.get(word & mask, ()):
      operands = operands_of(row.isa, word)
      if operands is not None and not row.isa.clash(operands): return MInst(row, operands), BYTES
  raise DecodeError(f"0x{word:08x} is no instruction of the table")

def operands_of(form: WordForm, word: int) -> list[Any] | None:
  """The operands of a word, or None if one of them is not in the row."""
  operands: list[Any] = []
  for hole, pieces in zip(form.holes, form.pieces):
    code = 0
    for low, mask, shift in pieces: code |= (word >> shift & mask) << low
    values = hole.operands(code)
    if values is None: return None
    operands += values
  return operands
