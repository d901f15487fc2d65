"""MInst to the 16 bytes of an instruction: the fields of its row, and its control word. Cost: 16 us (CPython 3.12)."""
from __future__ import annotations
from typing import Any

from tinyhw.errors import EncodeError
from tinyhw.isa.sass import regs
from tinyhw.isa.sass.control import USUAL, Control
from tinyhw.isa.sass.form import ALLOWED, SCALE, Form, Spec, width_of
from tinyhw.machine.inst import MInst, Reg
from tinyhw.machine.text import one_of

BYTES = 16  # of each instruction

def encode(inst: MInst, control: Control = USUAL) -> bytes:
  """The bytes of an instruction over physical registers. Raises EncodeError saying which operand does not fit, and what would."""
  form: Form = inst.row.isa
  fields = {}
  for spec, value in zip(form.specs, inst.operands):
    try: fields[spec.name] = code_of(form, spec, value, inst.operands)
    except EncodeError as error: raise EncodeError(f"{form.key}: {error.message}") from None
  return (form.format.pack(**fields) | control.pack()).to_bytes(BYTES, "little")

def code_of(form: Form, spec: Spec, value: Any, operands: list[Any]) -> int:
  """What the field of an operand has."""
  if spec.register: return register_code(form, spec, value, units_of(form, spec, operands))
  if not isinstance(value, int): raise EncodeError(f"operand {spec.name} is an integer, got {value}")
  width = width_of(spec.at)
  if spec.enumeration is not None:
    words = spec.enumeration.words
    if not 0 <= value < min(len(words), 1 << width) or words[value] == "?":
      raise EncodeError(f"modifier {spec.name} is one of {', '.join(f'{i} {w}'.strip() for i, w in enumerate(words) if w != '?')}, got {value}")
    return value
  if value not in ALLOWED.get(spec.kind, (value,)): raise EncodeError(f"operand {spec.name} is one of {ALLOWED[spec.kind]}, got {value}")
  scale = SCALE.get(spec.kind, 1)
  low, high = (-1 << width - 1, (1 << width - 1) - 1) if spec.signed else (0, (1 << width) - 1)
  if value % scale: raise EncodeError(f"operand {spec.name} must be a multiple of {scale}, got {value:#x}")
  if not low <= value // scale <= high: raise EncodeError(f"operand {spec.name} must be in {low * scale}..{high * scale}, got {value}")
  return value // scale

def units_of(form: Form, spec: Spec, operands: list[Any]) -> int:
  """How many registers an operand has; 1 if its modifier has no meaning."""
  if isinstance(spec.units, int): return spec.units
  at = form.index[spec.units]
  enumeration, value = form.specs[at].enumeration, operands[at]
  assert enumeration is not None, f"{form.key}: {spec.units} is no modifier"
  return enumeration.units[value] if isinstance(value, int) and 0 <= value < len(enumeration.units) else 1

def register_code(form: Form, spec: Spec, value: Any, units: int) -> int:
  """The number of a register in a field; that of six bits says URZ as 63."""
  names = one_of([f"{kind} register" if n == 1 else f"group of {n} {kind} registers" for kind, n in ((spec.kind, units),)])
  if not isinstance(value, Reg): raise EncodeError(f"operand {spec.name} wants a {names}, got {value}")
  if value.index is None: raise EncodeError(f"operand {spec.name} is virtual: {value!r}")
  none = value.cls.bank in (regs.VECTOR, regs.UNIFORM) and value.index == regs.ZERO
  if value.cls.bank is not spec.classes[0].bank or value.cls.units != units and not none:
    raise EncodeError(f"operand {spec.name} wants a {names}, got {value} of class {value.cls.name}")
  most = (1 << width_of(spec.at)) - 1
  if none: return most
  if value.index % value.cls.align: raise EncodeError(f"operand {spec.name}: a {names} starts at a multiple of {value.cls.align}, got {value}")
  if value.index + units > most + (value.cls.bank not in (regs.VECTOR, regs.UNIFORM)):
    raise EncodeError(f"operand {spec.name}: {form.generation.arch} has no {value} of {units} registers here")
  return most - value.index if spec.inverse else value.index
