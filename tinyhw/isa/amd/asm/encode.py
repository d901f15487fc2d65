"""MInst to bytes: each encoding of a row becomes a function, over what its fields can say, at first use.

An encoding fits if every operand is one that its field can say, and every operand without a field has the value that
the encoding implies (no modifiers, vcc as the mask). Encodings are tried in the order of the table, shorter ones
first. Cost: 1 to 2 us for a vector instruction (CPython 3.12).
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
from tinyhw.once import once

Codes = dict[RegClass, tuple[int, ...]]  # class -> code of each first register of it, -1 where there is none
Encode = Callable[[list[Any]], "bytes | None"]

def encode(inst: MInst) -> bytes:
  """The bytes of an instruction over physical registers.

  Raises EncodeError saying which operand does not fit, and what would.
  """
  form: Form = inst.row.isa
  try:
    for encoding in form.encodings:
      code = (encoding.encode or compiled(form, encoding))(inst.operands)
      if code is not None: return code
  except (AttributeError, TypeError): pass  # an operand is of another kind: None, an integer or virtual where a
                                            # register belongs
  raise EncodeError(f"{form.mnemonic}: {explain(form, inst.operands)}")

def chosen(inst: MInst) -> Encoding:
  """The encoding that `encode` takes."""
  form: Form = inst.row.isa
  code = encode(inst)
  if len(form.encodings) == 1: return form.encodings[0]
  return next(encoding for encoding in form.encodings if (encoding.encode or compiled(form, encoding))(inst.operands)
              == code)

# ---- how a field says a register

# Fields with the number of a scalar register divided by this.
GRANULE = {"sbase": 2, "srsrc": 4}
# Fields where a flag above the number says what it is: an accumulation register, a scalar register, that there is a
# register at all. Registers that cannot stand in a field.
RESULTS = {"nom0": (regs.M0,), "noexec": (regs.EXEC, regs.EXEC + 1)}  # by a word of the line
NOT_SAID = {**RESULTS, "saddr": (regs.EXEC, regs.EXEC + 1), "sdata": (regs.EXEC, regs.EXEC + 1, regs.M0)}
NONE = {"saddr": {"cdna": 127, "rdna3": 124, "rdna4": 124}, "soffset": {"cdna": -1, "rdna3": 124, "rdna4": 124}}

@once
def codes_of(generation: Generation, cls: RegClass, kind: str, width: int, half: bool, source: bool,
             none: int) -> tuple[int, ...]:
  """The codes of the registers of a class in a field.

  kind: as kind_of has it. half: only half of the vector registers. source: it can be a constant, too. none: the code
  that says that there is none.
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
  """The code of a scalar register, or of the first of a group, in a field; -1 if it cannot be said."""
  code = generation.codes[index]
  if code < 0 or not whole(generation, cls.units, index, source): return -1
  if kind == "sdwa": return code + 256
  if kind == "sdwa_mask": return 0 if index == regs.VCC else code + 128
  granule = GRANULE.get(kind, 1) if kind != "srsrc" or generation.family != "rdna4" else 1
  return code // granule if code % granule == 0 else -1

def whole(generation: Generation, units: int, index: int, source: bool) -> bool:
  """Whether a group of scalar registers lies in one kind of them.

  What can only be read is no group, but a source of 64 bits reads it, too.
  """
  if index < regs.SGPRS: return index + units <= generation.sgprs
  if regs.TTMP <= index < regs.TTMP + 16: return index + units <= regs.TTMP + 16
  if index >= min(regs.READ_ONLY.values()): return source and units <= 2
  return units == 1 or units == 2 and index != regs.M0

def kind_of(encoding: Encoding, name: str, bits: Field) -> str:
  """How a field says registers; see codes_of."""
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
  """Whether only v0 to v127 can be said: RDNA3 and later use the topmost bit of a 16-bit operand of a short encoding
  for the half of the register."""
  short = encoding.format_name[:4] in ("vop1", "vop2", "vopc")
  return (short and not form.generation.cdna and spec.type is not None and spec.type.bits * spec.type.elements == 16
          and "s" not in spec.kinds[:1])

def none_code(form: Form, name: str) -> int:
  """What a field has where there is no register; -1 if it cannot say that."""
  return NONE[name][form.generation.family] if name in NONE else 0

# ---- an encoding as a function

class Integer(NamedTuple):
  """A piece of an integer operand.

  Bits of it beside `free` must be those of `implied`; its piece is shifted down by `low`, then up by `shift`.
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
  """A piece of an operand that is a register, a constant of some kind, or (code none) may be left out. counts: it is
  one of a vector's sources."""
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
  """The function of an encoding: operands -> bytes, or None if it does not fit.

  It walks lists of pieces. Text compiled with exec would encode in half the time, but takes 0.3 ms to make, that of 300
  instructions.
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
    """Numbers, registers and constants into their places; then what concerns several operands.

    A loop for each kind, since all of them are hot.
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
  """How many sources may be no vector registers without a look at the check of the format; -1: it always matters."""
  if check is None or not check.scalars: return -1
  needed = any(isinstance(need, Reg) and form.specs[i].access & Access.READ for i, need in encoding.needs.items())
  return 0 if needed or "vcc" in form.reads or "literal" in encoding.places else 1

Step = Callable[[list[Any]], "int | None"]  # operands -> bits of the code, None where they do not fit

def accumulation_bit(form: Form, encoding: Encoding) -> Step | None:
  """The bit that says that all data is in accumulation registers; None where there is no such bit."""
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
  """What op_sel says of halves, which only vector registers have; short encodings have it in the fields of the
  registers."""
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
  """A value in the places of its field."""
  return sum((value >> p.low & (1 << p.width) - 1) << p.shift for p in bits.pieces)
