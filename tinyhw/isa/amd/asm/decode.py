"""Decode bytes to instructions, from the same rows as the encoder.

The topmost bits of the first dword lead to the formats that it may be in. The opcode of a format leads to its
encodings. Both indexes are filled on demand.

The encoder would encode some instructions in another way. Such an instruction gets a row that is fixed to its encoding
(`v_add_f32_e64`), so that `encode(decode(code))` returns the code. Only redundant bits may differ: unused bits, and a
literal where an inline constant would do.

Cost: 3 us for a vector instruction (CPython 3.12). Bytes that are no instruction of the table raise DecodeError.
"""
from __future__ import annotations
from typing import Any
from collections.abc import Iterator

from tinyhw.errors import DecodeError, EncodeError
from tinyhw.isa.amd.asm.check import CHECKS, address_units
from tinyhw.isa.amd.asm.encode import chosen, field_codes, none_code
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.constants import LITERAL
from tinyhw.isa.amd.table.form import MX_UNITS, SIGNED, Encoding, Form
from tinyhw.isa.amd.table.make import PROMOTED
from tinyhw.isa.amd.table.table import Table, table
from tinyhw.machine.ir.inst import Inst, MInst, Reg
from tinyhw.machine.notation.bits import Format
from tinyhw.threads import once

Reader = dict[int, Any]  # code of a field -> register, bits of a constant or None

def decode(code: bytes, offset: int = 0, arch: str = "gfx1100") -> tuple[MInst, int]:
  """Return the instruction at an offset, and its size in bytes. Raises DecodeError with the offset."""
  return decoder(arch)(code, offset)

def decode_all(code: bytes, arch: str) -> Iterator[tuple[int, MInst]]:
  """Yield (offset, instruction) until the end of the code."""
  one, offset = decoder(arch), 0
  while offset < len(code):
    inst, size = one(code, offset)
    yield offset, inst
    offset += size

@once
def decoder(arch: str) -> Decoder:
  """The decoder of an architecture; see table.table."""
  return Decoder(table(arch))

HALF = 128  # flag in a register's field of a short encoding: the upper half of the register

class Decoder:
  """Decoder for one table. `self(code, offset)` is `decode` for it."""

  def __init__(self, rows: Table):
    self.table = rows
    # topmost 9 bits -> formats with their sizes in bytes
    self.starts: dict[int, list[tuple[str, Format, int]]] = {}
    self.encodings: dict[tuple[str, int], list[tuple[Inst, Encoding]]] = {}
    self.readers: dict[tuple[int, int], list[tuple[str, int, Reader | None]]] = {}

  def __call__(self, code: bytes, offset: int = 0) -> tuple[MInst, int]:
    first = int.from_bytes(code[offset:offset + 4], "little")
    for name, form, size in self.formats(first >> 23):
      piece = code[offset:offset + size]
      fields = form.unpack(int.from_bytes(piece, "little")) if len(piece) == size else None
      if fields is None: continue
      for row, encoding in self.candidates(name, fields["op"]):
        found = self.match(row, encoding, fields, code, offset + size)
        if found is None: continue
        try: return self.held(found[0], encoding), found[1] - offset
        except EncodeError as error:
          raise DecodeError(f"offset {offset}: {error.message}: {code[offset:found[1]].hex(' ')}") from None
    rest = code[offset:offset + 16]
    why = ("the code ends within an instruction" if len(rest) < 4 else f"{self.table.generation.arch} has no "
           f"instruction that starts here")
    raise DecodeError(f"offset {offset}: {why}: {rest.hex(' ')}")

  def formats(self, top: int) -> list[tuple[str, Format, int]]:
    """The formats whose first dword may begin with these 9 bits."""
    known = self.starts.get(top)
    if known is not None: return known
    found = [(name, form, form.width // 8) for name, form in self.table.generation.formats.items()
             if (top << 23 ^ form.constant) & form.mask & 0xff800000 == 0]
    # formats with more constant bits come first: a constant in place of src0 excludes a source
    found.sort(key=lambda f: -bin(f[1].mask).count("1"))
    return self.starts.setdefault(top, found)

  def candidates(self, name: str, op: int) -> list[tuple[Inst, Encoding]]:
    """The encodings of a format with this opcode."""
    found = self.encodings.get((name, op))
    if found is None: found = self.encodings.setdefault((name, op), list(self.search(name, op)))
    return found

  def search(self, name: str, op: int) -> Iterator[tuple[Inst, Encoding]]:
    """Search the table for the encodings of a format with this opcode.

    A dual opcode combines the opcodes of two operations. VOP3 also contains the opcodes of short formats, with a number
    added.
    """
    base = name.split("_")[0] if name not in self.table.index.sections else name
    family = self.table.generation.family
    if base == "vopd":
      for first in self.table.index.by_opcode.get((base, op >> 5), ()):
        for second in self.table.index.by_opcode.get((base, op & 31), ()):
          row = self.table.get(f"{first}::{second}")
          if row is not None and row.isa.encodings[0].format_name == name: yield row, row.isa.encodings[0]
      return
    bases = [(base, op)]
    if base in ("vop3", "vop3sd"):
      bases = [("vop3", op), ("vop3sd", op)] + [(short, op - first[family]) for short, first in PROMOTED.items()]
    for key in bases:
      for instruction in self.table.index.by_opcode.get(key, ()):
        for row in self.table.rows_of(instruction):
          for encoding in row.isa.encodings:
            if encoding.format_name == name and encoding.values["op"] == op: yield row, encoding

  def match(self, row: Inst, encoding: Encoding, fields: dict[str, int], code: bytes,
            end: int) -> tuple[MInst, int] | None:
    """The instruction and its end offset, if the fields match this encoding of the row."""
    for name, value in encoding.values.items():
      if fields[name] != value: return None
    form: Form = row.isa
    operands: list[Any] = [None] * len(form.specs)
    for i, value in encoding.needs.items(): operands[i] = value
    halves, short = 0, bool(encoding.halves) and "op_sel" not in fields
    for name, i, reader in self.reader(form, encoding, fields.get("acc", 0)):
      value = fields[name]
      if short and name in encoding.halves and value & HALF and (value >> 8 or encoding.format.fields[name].width == 8):
        halves, value = halves | 1 << encoding.halves[name], value & ~HALF
      if reader is None: operands[i] = value if form.specs[i].integer not in SIGNED else (value ^ 0x8000) - 0x8000
      elif value in reader: operands[i] = reader[value]
      elif value == LITERAL and encoding.literal and name in encoding.sources and "l" in form.specs[i].kinds:
        if "literal" in fields: dword = fields["literal"]
        else:
          if len(code) < end + 4: return None
          dword = int.from_bytes(code[end:end + 4], "little")
        kind = form.specs[i].type
        assert kind is not None, f"{form.key}: a literal has no type"
        operands[i] = kind.constants.value(dword)
      else: return None
    if short: operands[form.index["op_sel"]] = halves
    if "literal" not in fields and any(fields[name] == LITERAL for name in encoding.sources): end += 4
    if "vaddr" in form.index: operands[form.index["vaddr"]] = self.address(form, operands, fields["vaddr"])
    if form.first_operands:
      at = form.index["vdsty"]
      # the instruction has only the upper bits of the second result's number
      operands[at] = regs.v(operands[at].index & ~1 | ~operands[0].index & 1)
      if "literaly" in form.index: operands[form.index["literaly"]] = fields["literal"]
    if "mx" in form.words and not self.sized(form, operands): return None
    if "src2" in form.index and isinstance(operands[0], Reg) and operands[0].cls.bank is regs.AGPR:
      self.accumulate(form, operands, form.index["src2"])
    check = CHECKS.get(encoding.format_name.partition("_")[0])
    if check is not None and not check.scalars and check.reason(form, encoding, operands): return None
    return MInst(row, operands), end

  def accumulate(self, form: Form, operands: list[Any], at: int) -> None:
    """Move the third source of an MFMA into the register file of the result."""
    value = operands[at]
    if isinstance(value, Reg) and "a" in form.specs[at].kinds:
      operands[at] = regs.reg(regs.AE[value.cls.units], value.index or 0)

  def sized(self, form: Form, operands: list[Any]) -> bool:
    """Give the sources of a product with formats the number of registers that the formats imply. False if a format does
    not exist."""
    for name, source in (("cbsz", "src0"), ("blgp", "src1")):
      code, at = operands[form.index[name]], form.index[source]
      if code >= len(MX_UNITS): return False
      classes = regs.AE if operands[at].cls.bank is regs.AGPR else regs.VE
      operands[at] = regs.reg(classes[MX_UNITS[code]], operands[at].index)
    return True

  def address(self, form: Form, operands: list[Any], code: int) -> Reg | None:
    """The vector address. It has zero, one or two registers, depending on the other operands."""
    units = address_units(form, operands)
    if not units or form.encodings[0].format_name == "scratch" and not code >> 8: return None
    return regs.reg(self.table.generation.vectors[units], code & 255)

  def reader(self, form: Form, encoding: Encoding, acc: int) -> list[tuple[str, int, Reader | None]]:
    """For each field: its name, its operand, and a map from its codes to values. The map of an integer is None. Cached
    by encoding."""
    key = id(encoding), acc
    found = self.readers.get(key)
    if found is None:
      found = [(name, i, None if form.specs[i].kinds == "i" else self.codes(form, encoding, name, i, acc))
               for name, i in encoding.places.items()]
      self.readers[key] = found
    return found

  def codes(self, form: Form, encoding: Encoding, name: str, i: int, acc: int) -> Reader:
    """Map the codes of a field to the values of an operand."""
    spec = form.specs[i]
    meaning: Reader = {}
    if "c" in spec.kinds and name in encoding.sources and spec.type is not None:
      meaning.update(spec.type.constants.values)
    split = "acc" in encoding.format.fields
    for cls, codes in field_codes(form, encoding, name, spec).items():
      if split and cls.bank is not regs.SGPR and "a" in spec.kinds and (cls.bank is regs.AGPR) != bool(acc): continue
      for index, value in enumerate(codes):
        if value >= 0: meaning.setdefault(value, regs.reg(cls, index))
    if spec.optional and none_code(form, name) >= 0: meaning[none_code(form, name)] = None
    return meaning

  def held(self, inst: MInst, encoding: Encoding) -> MInst:
    """Replace the row, if necessary, so that the encoder encodes the instruction in the same way.

    Raises EncodeError if the instruction breaks a rule that no field expresses.
    """
    form: Form = inst.row.isa
    if chosen(inst).name != encoding.name:
      row = self.table.get(form.key.removesuffix("_dpp").removesuffix("_dpp8") + encoding.name)
      if row is not None: return MInst(row, inst.operands)
    return inst
