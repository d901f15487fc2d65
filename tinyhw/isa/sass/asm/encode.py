"""Encode an MInst to the 16 bytes of an instruction: the fields of its row, and its control word.

Tables hold the bits of each allowed operand. Fields of one kind share a table. An operand that is not in the table is
refused, and only then does the encoder look for the reason.
Cost: 4 us (CPython 3.11).
"""
from __future__ import annotations
from typing import Any
from collections.abc import Mapping, Sequence

from tinyhw.errors import EncodeError
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.control import USUAL, Control
from tinyhw.isa.sass.table.form import ALLOWED, SCALE, Form, Ranges, Spec, placed, width_of
from tinyhw.machine.ir.inst import MInst, Reg, RegClass
from tinyhw.machine.notation.text import one_of
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

BYTES = 16  # of each instruction

# The bits of the registers of each class that a field takes, by index; None where the field cannot encode one.
Registers = Mapping[RegClass, Sequence["int | None"]]

class OperandBits(NamedTuple):
  """The bits of an operand.

  registers: the bits of each register.
  sizes: the bits of each register, for each value of the modifier that gives the size of a group. The modifier is
  operand number `size`.
  numbers: the bits of each integer, where some integers are invalid.
  If all three are None, the operand is any integer that fits the field.
  """
  spec: Spec
  registers: Registers | None = None
  numbers: Mapping[int, int] | None = None
  sizes: Sequence[Registers] | None = None
  size: int = -1

def encode(inst: MInst, control: Control = USUAL) -> bytes:
  """Return the bytes of an instruction over physical registers.

  Raises EncodeError, which names the operand that does not fit and the allowed ones.
  """
  form: Form = inst.row.isa
  word, operands = form.constant | control.pack(), inst.operands
  fields: Sequence[OperandBits] = form.fields or fields_of(form)
  try:
    for (spec, registers, numbers, sizes, size), value in zip(fields, operands):
      if registers is not None: word |= registers[value.cls][value.index]
      elif numbers is not None: word |= numbers[value]
      elif sizes is not None: word |= sizes[operands[size]][value.cls][value.index]
      else: word |= number(spec, value)
  except (AttributeError, LookupError, TypeError): raise EncodeError(f"{form.key}: {refusal(form, operands)}") from None
  return word.to_bytes(BYTES, "little")

# ---- the values of fields

def fields_of(form: Form) -> tuple[OperandBits, ...]:
  """Return the fields of a row, and store them in the row."""
  form.fields = tuple(field_of(form, spec) for spec in form.specs)
  return form.fields

def field_of(form: Form, spec: Spec) -> OperandBits:
  """Return the bits of an operand."""
  if isinstance(spec.units, str):
    size = form.index[spec.units]
    enumeration = form.specs[size].enumeration
    assert enumeration is not None, f"{form.key}: {spec.units} is no modifier"
    sizes = [registers_of(spec.kind, units, spec.at, spec.inverse) for units in enumeration.units]
    return OperandBits(spec, sizes=sizes, size=size)
  if spec.register: return OperandBits(spec, registers_of(spec.kind, spec.units, spec.at, spec.inverse))
  if spec.enumeration is not None: return OperandBits(spec, numbers=words_of(spec.enumeration.words, spec.at))
  if spec.kind == "flag": return OperandBits(spec, numbers=words_of(("", ""), spec.at))
  return OperandBits(spec, numbers=numbers_of(ALLOWED[spec.kind], spec.at) if spec.kind in ALLOWED else None)

@once
def registers_of(kind: str, units: int, at: Ranges, inverse: bool) -> Registers:
  """Return the bits of groups of `units` registers.

  RZ and URZ may stand for a group. A field of six bits encodes URZ as 63.
  """
  ((low, _),), cls, zero, most = at, regs.KINDS[kind][units], kind in ("R", "UR"), (1 << width_of(at)) - 1
  codes: list[int | None] = [None] * cls.bank.count
  indices = range(0, min(most + 1 - zero, cls.bank.count) - units + 1, cls.align)
  codes[:len(indices) * cls.align:cls.align] = [(most - index if inverse else index) << low for index in indices]
  if not zero: return {cls: codes}
  nothing: list[int | None] = [None] * regs.ZERO + [most << low]
  if units > 1: return {cls: codes, regs.KINDS[kind][1]: nothing}
  codes[regs.ZERO] = nothing[regs.ZERO]
  return {cls: codes}

@once
def words_of(words: tuple[str, ...], at: Ranges) -> Mapping[int, int]:
  """Return the bits of the valid values of a modifier."""
  return numbers_of([value for value, word in enumerate(words[:1 << width_of(at)]) if word != "?"], at)

def numbers_of(values: Sequence[int], at: Ranges) -> Mapping[int, int]:
  return {value: placed(at, value) for value in values}

def number(spec: Spec, value: int) -> int:
  """Return the bits of an integer. Raises TypeError if the field has no room for it."""
  scale, (low, high) = SCALE.get(spec.kind, 1), limits(spec)
  if value % scale or not low <= value // scale <= high: raise TypeError(value)
  return placed(spec.at, value // scale)

def limits(spec: Spec) -> tuple[int, int]:
  """Return the least and the greatest number of a field."""
  width = width_of(spec.at)
  return (-1 << width - 1, (1 << width - 1) - 1) if spec.signed else (0, (1 << width) - 1)

# ---- the reason of a refusal

def refusal(form: Form, operands: list[Any]) -> str:
  """Name the operand that does not fit, and the allowed ones."""
  for spec, value in zip(form.specs, operands):
    why = (register_refusal(form, spec, value, units_of(form, spec, operands)) if spec.register
           else number_refusal(spec, value))
    if why: return why
  raise AssertionError(f"{form.key}: {operands} fit, but have no bits")

def number_refusal(spec: Spec, value: Any) -> str:
  """Return why an operand is no integer of a field, or ""."""
  if not isinstance(value, int): return f"operand {spec.name} is an integer, got {value}"
  if spec.enumeration is not None:
    words = spec.enumeration.words
    if value in words_of(words, spec.at): return ""
    return (f"modifier {spec.name} is one of "
            f"{', '.join(f'{i} {w}'.strip() for i, w in enumerate(words) if w != '?')}, got {value}")
  if value not in ALLOWED.get(spec.kind, (value,)):
    return f"operand {spec.name} is one of {ALLOWED[spec.kind]}, got {value}"
  scale, (low, high) = SCALE.get(spec.kind, 1), limits(spec)
  if value % scale: return f"operand {spec.name} must be a multiple of {scale}, got {value:#x}"
  return ("" if low <= value // scale <= high else f"operand {spec.name} must be in {low * scale}..{high * scale}, "
          f"got {value}")

def units_of(form: Form, spec: Spec, operands: list[Any]) -> int:
  """Return the count of registers of an operand; 1 if the value of its modifier is invalid."""
  if isinstance(spec.units, int): return spec.units
  at = form.index[spec.units]
  enumeration, value = form.specs[at].enumeration, operands[at]
  assert enumeration is not None, f"{form.key}: {spec.units} is no modifier"
  return enumeration.units[value] if isinstance(value, int) and 0 <= value < len(enumeration.units) else 1

def register_refusal(form: Form, spec: Spec, value: Any, units: int) -> str:
  """Return why an operand is no register of a field, or ""."""
  names = one_of([f"{kind} register" if n == 1 else f"group of {n} {kind} registers"
                  for kind, n in ((spec.kind, units),)])
  if not isinstance(value, Reg): return f"operand {spec.name} wants a {names}, got {value}"
  if value.index is None: return f"operand {spec.name} is virtual: {value!r}"
  codes = registers_of(spec.kind, units, spec.at, spec.inverse).get(value.cls)
  if codes is None or value.cls.units != units and codes[value.index] is None:
    return f"operand {spec.name} wants a {names}, got {value} of class {value.cls.name}"
  if value.index < len(codes) and codes[value.index] is not None: return ""
  if value.index % value.cls.align:
    return f"operand {spec.name}: a {names} starts at a multiple of {value.cls.align}, got {value}"
  return f"operand {spec.name}: {form.generation.arch} has no {value} of {units} registers here"
