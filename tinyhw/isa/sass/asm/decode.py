"""Decode bytes to instructions and control words, with the rows that the encoder uses.

The opcode selects candidate rows. The constant bits of a row decide between them. A row defines every bit, so decoded
bytes encode to themselves. Cost: 12 us (CPython 3.12).
"""
from __future__ import annotations
from typing import Any
from collections.abc import Iterator

from tinyhw.errors import DecodeError
from tinyhw.isa.sass.asm.encode import BYTES, units_of
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import SHIFT, Control, unpack
from tinyhw.isa.sass.table.form import ALLOWED, SCALE, Form, Spec, width_of
from tinyhw.isa.sass.table.table import table
from tinyhw.machine.ir.inst import Inst, MInst

def decode(code: bytes, offset: int = 0, arch: str = "sm_90") -> tuple[MInst, Control]:
  """Return the instruction at an offset and its control word.

  Raises DecodeError, which names the offset.
  """
  piece = code[offset:offset + BYTES]
  if len(piece) < BYTES:
    raise DecodeError(f"offset {offset}: an instruction has {BYTES} bytes, there are {len(piece)}: {piece.hex(' ')}")
  word, rows = int.from_bytes(piece, "little"), table(arch)
  control = unpack(word)
  if control is None:
    raise DecodeError(f"offset {offset}: the control word {word >> SHIFT:#x} has no meaning: {piece.hex(' ')}")
  for key in rows.opcodes.get(word & 0xfff, ()):
    row = rows[key]
    operands = operands_of(row, word & (1 << SHIFT) - 1)
    if operands is not None: return MInst(row, operands), control
  raise DecodeError(f"offset {offset}: {why_not(word, rows.opcodes.get(word & 0xfff, []), arch)}: {piece.hex(' ')}")

def decode_all(code: bytes, arch: str) -> Iterator[tuple[int, MInst, Control]]:
  """Yield (offset, instruction, control word) until the end."""
  for offset in range(0, len(code), BYTES): yield offset, *decode(code, offset, arch)

def why_not(word: int, keys: list[str], arch: str) -> str:
  """Explain why bytes are no instruction: name the bits that no row of the opcode allows."""
  if not keys: return f"{arch} has no instruction with opcode {word & 0xfff:#05x}"
  rows = table(arch)
  formats = [rows[key].isa.format for key in keys]
  best = min(((word & (1 << SHIFT) - 1 ^ form.constant) & form.mask for form in formats), key=int.bit_count)
  at, names = [str(bit) for bit in range(SHIFT) if best >> bit & 1], " or ".join(keys)
  return (f"{names} has no meaning with bits {', '.join(at)} so" if at else f"a modifier of {names} has a value "
          f"without a meaning")

def operands_of(row: Inst, word: int) -> list[Any] | None:
  """Return the operands of a word, or None if the word does not belong to this row."""
  form: Form = row.isa
  fields = form.format.unpack(word)
  if fields is None: return None
  values: list[Any] = [fields[spec.name] * SCALE.get(spec.kind, 1) for spec in form.specs]
  for spec, value in zip(form.specs, values):
    if value not in ALLOWED.get(spec.kind, (value,)): return None
    if spec.enumeration is not None and (value >= len(spec.enumeration.words) or spec.enumeration.words[value] == "?"):
      return None
  for i, spec in enumerate(form.specs):
    if spec.register:
      found = register_of(form, spec, values[i], values)
      if found is None: return None
      values[i] = found
  return values

def register_of(form: Form, spec: Spec, code: int, values: list[Any]) -> object | None:
  """Return the register that a field encodes, or None."""
  group = {cls.units: cls for cls in spec.classes}
  units = units_of(form, spec, values)
  cls = regs.KINDS[spec.kind][units] if units not in group else group[units]
  if cls.bank in (regs.VECTOR, regs.UNIFORM):
    most = (1 << width_of(spec.at)) - 1
    if code == most: return regs.reg(regs.KINDS[spec.kind][1], regs.ZERO)
    if code % cls.align or code + units > most: return None
  return regs.reg(cls, regs.TRUE - code if spec.inverse else code)
