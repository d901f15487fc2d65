"""Encode instructions (MInst) as bytes. At first use, each encoding of a row becomes a function of the operands.

An encoding fits if its fields can express every operand that has a field. Every operand without a field must have the
value that the encoding implies (no modifiers, vcc as the mask). Encodings are tried in the order of the table, shorter
ones first. Cost: 1 to 2 us for a vector instruction (CPython 3.12).
"""
from __future__ import annotations
from typing import Any
from collections.abc import Callable

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.asm.check import CHECKS, Check, explain
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.constants import LITERAL, Constants
from tinyhw.isa.amd.table.form import SIGNED, Encoding, Form, Generation, Spec
from tinyhw.machine.ir.inst import Access, MInst, Reg, RegClass
from tinyhw.machine.notation.bits import Field
from tinyhw.named_tuple import NamedTuple
from tinyhw.threads import once

Codes = dict[RegClass, tuple[int, ...]]  # class -> code of each first register, -1 if there is none
Encode = Callable[[list[Any]], "bytes | None"]

def encode(inst: MInst) -> bytes:
  """The bytes of an instruction over physical registers.

  Raises EncodeError with the operand that does not fit, and the operands that would.
  """
  form: Form = inst.row.isa
  try:
    for encoding in form.encodings:
      code = (encoding.encode or compiled(form, encoding))(inst.operands)
      if code is not None: return code
  # an operand of another kind: None, an integer or a virtual register where a register belongs
  except (AttributeError, TypeError): pass
  raise EncodeError(f"{form.mnemonic}: {explain(form, inst.operands)}")

def chosen(inst: MInst) -> Encoding:
  """The encoding that `encode` chooses."""
  form: Form = inst.row.isa
  code = encode(inst)
  if len(form.encodings) == 1: return form.encodings[0]
  return next(encoding for encoding in form.encodings if (encoding.encode or compiled(form, encoding))(inst.operands)
              == code)

# ---- codes of registers in fields

# Fields that contain the number of a scalar register divided by this.
GRANULE = {"sbase": 2, "srsrc": 4}
# Registers that a field cannot express.
RESULTS = {"nom0": (regs.M0,), "noexec": (regs.EXEC, regs.EXEC + 1)}  # by a word of the line
NOT_SAID = {**RESULTS, "saddr": (regs.EXEC, regs.EXEC + 1), "sdata": (regs.EXEC, regs.EXEC + 1, regs.M0)}
NONE = {"saddr": {"cdna": 127, "rdna3": 124, "rdna4": 124}, "soffset": {"cdna": -1, "rdna3": 124, "rdna4": 124}}

@once
def codes_of(generation: Generation, cls: RegClass, kind: str, width: int, half: bool, source: bool,
             none: int) -> tuple[int, ...]:
  """The codes of the registers of a class in a field.

  Some fields have a flag above the number: it tells accumulation registers or vector registers from others, or that
  there is a register at all.

  kind: see kind_of. half: only the first 128 vector registers have codes. source: the field can hold constants too.
  none: the code for "no register".
  """
  codes = [-1] * cls.bank.count
  for i in range(0, cls.bank.count - cls.units + 1, cls.align):
    if cls.bank is regs.SGPR:
      code = scalar_code(generation, cls, i, kind, source)
      codes[i] = -1 if code == none or i in NOT_SAID.get(kind, ()) else code
    elif not half or i < 128:
      flag = 256 if kind in ("source", "scratch") else 0
      if cls.bank is regs.AGPR: flag += 512 if width == 10 else 256 if kind == "matrix" else 0
      codes[i] = (i >> 1 if kind == "vdsty" else i) + flag
  return tuple(codes)

def scalar_code(generation: Generation, cls: RegClass, index: int, kind: str, source: bool) -> int:
  """The code of a scalar register, or of the first of a group, in a field; -1 if the field cannot express it."""
  code = generation.codes[index]
  if code < 0 or not whole(generation, cls.units, index, source): return -1
  if kind == "sdwa": return code + 256
  if kind == "sdwa_mask": return 0 if index == regs.VCC else code + 128
  granule = GRANULE.get(kind, 1) if kind != "srsrc" or generation.family != "rdna4" else 1
  return code // granule if code % granule == 0 else -1

def whole(generation: Generation, units: int, index: int, source: bool) -> bool:
  """Whether all registers of a scalar group are of the same kind.

  Read-only registers form no groups, but a 64-bit source can read one.
  """
  if index < regs.SGPRS: return index + units <= generation.sgprs
  if regs.TTMP <= index < regs.TTMP + 16: return index + units <= regs.TTMP + 16
  if index >= min(regs.READ_ONLY.values()): return source and units <= 2
  return units == 1 or units == 2 and index != regs.M0

def kind_of(encoding: Encoding, name: str, bits: Field) -> str:
  """The way in which a field encodes registers; see codes_of."""
  if name in GRANULE or name in NOT_SAID: return name
  if name == "vdsty": return "vdsty"
  if "sdwa" in encoding.format_name and name in ("src0", "src1"): return "sdwa"
  if "sdwa" in encoding.format_name and name == "sdst": return "sdwa_mask"
  if name == "vaddr" and bits.width == 9: return "scratch"
  if bits.width >= 9 and name != "vdst": return "source"
  return "matrix" if bits.width == 9 else "number"

def field_codes(form: Form, encoding: Encoding, name: str, spec: Spec) -> Codes:
  """For each class that the operand takes, the codes of its registers in a field."""
  bits = encoding.format.fields[name]
  half = short_half(form, encoding, spec)
  kind = next((word for word in RESULTS if word in form.words and spec.access is Access.WRITE),
              kind_of(encoding, name, bits))
  none = none_code(form, name) if spec.optional else -1
  if "m" in spec.kinds:
    m0 = tuple(form.generation.codes[i] if i == regs.M0 else -1 for i in range(regs.SCALARS))
    return {cls: m0 for cls in spec.classes}
  return {cls: codes_of(form.generation, cls, kind, bits.width, half, name in encoding.sources,
                        none if cls.bank is regs.SGPR else -1)
          for cls in spec.classes if cls.bank is regs.VGPR or name != "vsrc1"}

def short_half(form: Form, encoding: Encoding, spec: Spec) -> bool:
  """Whether a field can express only v0 to v127.

  RDNA3 and later use the topmost bit of a 16-bit operand in a short encoding to select the half of the register.
  """
  short = encoding.format_name[:4] in ("vop1", "vop2", "vopc")
  return (short and not form.generation.cdna and spec.type is not None and spec.type.bits * spec.type.elements == 16
          and "s" not in spec.kinds[:1])

def none_code(form: Form, name: str) -> int:
  """The code of a field for "no register"; -1 if it has no such code."""
  return NONE[name][form.generation.family] if name in NONE else 0

# ---- an encoding as a function

class Integer(NamedTuple):
  """A piece of an integer operand.

  Bits outside of `free` must equal those of `implied`. The piece is shifted down by `low`, then up by `shift`.
  """
  operand: int
  least: int
  most: int
  implied: int
  free: int
  low: int
  mask: int
  shift: int

class Value(NamedTuple):
  """A piece of an operand that is a register or a constant, or that may be absent (code none).

  kind: the constants that it may be. counts: it counts as a source of a vector instruction.
  """
  operand: int
  codes: Codes
  none: int
  kind: Constants | None
  literal: bool
  counts: bool
  low: int
  mask: int
  shift: int

def integers(i: int, spec: Spec, bits: Field) -> list[Integer]:
  """The pieces of an integer operand."""
  least, most = (-1 << bits.width - 1, (1 << bits.width - 1) - 1) if spec.integer in SIGNED else bits.range
  return [Integer(i, least, most, spec.implied if spec.mask >= 0 else 0, spec.mask, p.low, (1 << p.width) - 1, p.shift)
          for p in bits.pieces]

def values(form: Form, encoding: Encoding, i: int, name: str) -> list[Value]:
  """The pieces of an operand that is a register or constant."""
  spec, bits = form.specs[i], encoding.format.fields[name]
  codes = field_codes(form, encoding, name, spec)
  kind = spec.type.constants if name in encoding.sources and spec.type is not None else None
  none = none_code(form, name) if spec.optional else -1
  counts = bits.width >= 9 and name[:3] == "src"
  return [Value(i, codes, none, kind, encoding.literal and "l" in spec.kinds, counts and not k, p.low,
                (1 << p.width) - 1, p.shift)
          for k, p in enumerate(bits.pieces)]

def compiled(form: Form, encoding: Encoding) -> Encode:
  """Make the function of an encoding: operands -> bytes, or None if they do not fit.

  The function walks lists of pieces. Text compiled with exec would encode in half the time. Making it takes 0.3 ms,
  though, as long as encoding 300 instructions.
  """
  fields, literal_at = encoding.format.fields, encoding.places.get("literal", -1)
  needs, size = tuple(encoding.needs.items()), encoding.format.width // 8
  constant = encoding.format.constant
  for name, value in encoding.values.items(): constant |= place(fields[name], value)
  numbers = [piece for name, i in encoding.places.items() if form.specs[i].kinds == "i"
             for piece in integers(i, form.specs[i], fields[name])]
  others = [piece for name, i in encoding.places.items() if form.specs[i].kinds != "i"
            for piece in values(form, encoding, i, name)]
  special = "sdwa" in encoding.format_name  # scalar registers have codes above those of vector registers there
  check = CHECKS.get(encoding.format_name.partition("_")[0])
  most_scalars = scalars_unchecked(form, encoding, check) if any(piece.counts for piece in others) else -1
  more = [step for step in (accumulation_bit(form, encoding), half_bits(form, encoding)) if step is not None]

  def encode_operands(o: list[Any]) -> bytes | None:
    """Encode numbers, registers and constants; then check rules about several operands.

    Each kind has its own loop, since all of them are hot.
    """
    for i, need in needs:
      if o[i] != need: return None
    code, scalars, literal = constant, 0, None if literal_at < 0 else o[literal_at]
    for i, least, most, implied, free, low, mask, shift in numbers:
      x = o[i]
      if not least <= x <= most or (x ^ implied) & ~free: return None
      code |= (x >> low & mask) << shift
    for i, codes, none, kind, literals, counts, low, mask, shift in others:
      v = o[i]
      if v.__class__ is Reg:
        table = codes.get(v.cls)
        if table is None: return None
        x = table[v.index]  # type: ignore[index]  # a virtual register has none, which `encode` explains
      elif v is None: x = none
      elif kind is None or v.__class__ is not int: return None
      else:
        found = kind.code(v)
        if found is None:
          dword = kind.literal(v & kind.mask) if literals and kind.fits(v) else None
          if dword is None or literal is not None and literal != dword: return None
          literal, found = dword, LITERAL
        x = found
      if x < 0: return None
      if counts and (x < 256) is not special: scalars += 1
      code |= (x >> low & mask) << shift
    for step in more:
      bits = step(o)
      if bits is None: return None
      code |= bits
    if check is not None and scalars > most_scalars and check.reason(form, encoding, o): return None
    head = code.to_bytes(size, "little")
    return head if literal is None or literal_at >= 0 else head + literal.to_bytes(4, "little")

  encoding.encode = encode_operands
  return encode_operands

def scalars_unchecked(form: Form, encoding: Encoding, check: Check | None) -> int:
  """The number of sources other than vector registers that need no check of the format's rule; -1 if it must always be
  checked."""
  if check is None or not check.scalars: return -1
  needed = any(isinstance(need, Reg) and form.specs[i].access & Access.READ for i, need in encoding.needs.items())
  return 0 if needed or "vcc" in form.reads or "literal" in encoding.places else 1

Step = Callable[[list[Any]], "int | None"]  # operands -> bits of the code, None if they do not fit

def accumulation_bit(form: Form, encoding: Encoding) -> Step | None:
  """Make the step for the bit that tells that all data is in accumulation registers; None if the encoding has no such
  bit."""
  bits = encoding.format.fields.get("acc")
  data = [i for i, spec in enumerate(form.specs) if spec.name in ("vdst", "vdata", "data0", "data1")
          and "a" in spec.kinds]
  if bits is None or not data: return None
  bit = place(bits, 1)
  def accumulation(o: list[Any]) -> int | None:
    banks = {o[i].cls.bank is regs.AGPR for i in data}
    return None if len(banks) > 1 else bit if True in banks else 0
  return accumulation

def half_bits(form: Form, encoding: Encoding) -> Step | None:
  """Make the step that encodes op_sel, which selects register halves; only vector registers have them.

  Short encodings have these bits in the fields of the registers.
  """
  if not encoding.halves: return None
  at = form.index["op_sel"]
  short, fixed = "op_sel" not in encoding.places, ~form.specs[at].mask
  fields = [(1 << bit, encoding.places[name], encoding.format.fields[name].width == 9,
             place(encoding.format.fields[name], 128))
            for name, bit in encoding.halves.items()]
  def halves(o: list[Any]) -> int | None:
    h, code = o[at], 0
    if short and h & fixed: return None
    for bit, i, source, upper in fields:
      if not h & bit: continue
      if source and not (o[i].__class__ is Reg and o[i].cls.bank is regs.VGPR): return None
      if short: code |= upper
    return code
  return halves

def place(bits: Field, value: int) -> int:
  """A value, shifted to the bits of its field."""
  return sum((value >> p.low & (1 << p.width) - 1) << p.shift for p in bits.pieces)
