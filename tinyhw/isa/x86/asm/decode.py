"""Decode bytes to instructions, from the same rows as the encoder.

Opcodes lead to the mnemonics that use them, and these to the rows. Both indexes are filled on demand. Several encodings
may decode to the same instruction, so encoding it again may give fewer bytes. Bytes that are no instruction of the
table raise DecodeError.
"""
from __future__ import annotations
from typing import Any
from collections.abc import Iterator

from tinyhw.errors import DecodeError
from tinyhw.isa.x86.table import regs
from tinyhw.isa.x86.table.form import Encoding, Form, TableLine
from tinyhw.isa.x86.table.table import TABLE
from tinyhw.machine.ir.inst import Inst, MInst, Reg
from tinyhw.threads import once

class Fields:
  """The fields of the prefixes. r, x, b, v: high bits of register numbers, in place. pp: 0, 66, F3, F2 of a vector
  prefix; F3 or F2 of a legacy one."""
  __slots__ = ("space", "map", "opcode", "pp", "w", "l", "r", "x", "b", "v", "vvvv", "mask", "zeroing", "broadcast",
               "operand16", "lock", "rex")

  def __init__(self) -> None:
    self.space, self.map, self.opcode = "legacy", 0, 0
    self.pp = self.w = self.l = self.r = self.x = self.b = self.v = self.vvvv = self.mask = 0
    self.zeroing = self.broadcast = self.operand16 = self.lock = self.rex = False

def decode(code: bytes, offset: int = 0) -> tuple[MInst, int]:
  """Return the instruction at an offset, and its size in bytes. Raises DecodeError with the offset."""
  try:
    fields, at = read_prefixes(code, offset)
    for row, encoding in candidates(fields.space, fields.map, fields.opcode):
      found = match(row, encoding, fields, code, at)
      if found is None: continue
      inst, end = found
      # distances count from the start of the instruction
      if encoding.rel >= 0: inst.operands[encoding.rel] += end - offset
      return inst, end - offset
  except IndexError:
    raise DecodeError(
      f"offset {offset}: the code ends within an instruction: {code[offset:offset + 16].hex(' ')}") from None
  raise DecodeError(f"offset {offset}: no instruction of the table starts with {code[offset:offset + 16].hex(' ')}")

def decode_all(code: bytes) -> Iterator[tuple[int, MInst]]:
  """Yield (offset, instruction) until the end of the code."""
  offset = 0
  while offset < len(code):
    inst, size = decode(code, offset)
    yield offset, inst
    offset += size

def read_prefixes(code: bytes, at: int) -> tuple[Fields, int]:
  """Read everything up to the opcode. Returns the fields, and the offset of the rest."""
  f = Fields()
  first = at
  while code[at] in (0x66, 0xF0, 0xF2, 0xF3):
    prefix = code[at]
    if prefix == 0x66: f.operand16 = True
    elif prefix == 0xF0: f.lock = True
    else: f.pp = 2 if prefix == 0xF3 else 3
    at += 1
  if at == first and code[at] in (0xC4, 0xC5, 0x62): return read_vector_prefix(f, code, at)
  if code[at] & 0xF0 == 0x40:
    rex = code[at]
    f.rex, f.w, f.r, f.x, f.b = True, rex >> 3 & 1, (rex & 4) << 1, (rex & 2) << 2, (rex & 1) << 3
    at += 1
  if code[at] == 0x0F:
    f.map = 1
    at += 1
    if code[at] in (0x38, 0x3A):
      f.map = 2 if code[at] == 0x38 else 3
      at += 1
  f.opcode = code[at]
  return f, at + 1

def read_vector_prefix(f: Fields, code: bytes, at: int) -> tuple[Fields, int]:
  """Read a prefix that begins with C5, C4 or 62."""
  first = code[at]
  if first == 0xC5:
    p1 = code[at + 1]
    f.space, f.map, f.r = "vex", 1, (~p1 & 0x80) >> 4
    at += 2
  else:
    p0, p1 = code[at + 1], code[at + 2]
    f.r, f.x, f.b, f.w = (~p0 & 0x80) >> 4, (~p0 & 0x40) >> 3, (~p0 & 0x20) >> 2, p1 >> 7
    f.space, f.map = ("vex", p0 & 31) if first == 0xC4 else ("evex", p0 & 3)
    at += 3
  f.vvvv, f.l, f.pp = ~p1 >> 3 & 15, p1 >> 2 & 1, p1 & 3
  if first == 0x62:
    p2 = code[at]
    if p0 & 0x0C or not p1 & 4: f.map = 9  # reserved bits: no such instruction
    f.r |= ~p0 & 16
    f.v = (~p2 & 8) << 1
    f.l, f.zeroing, f.broadcast, f.mask = p2 >> 5 & 3, p2 > 127, bool(p2 & 16), p2 & 7
    at += 1
  f.opcode = code[at]
  return f, at + 1

CANDIDATES: dict[tuple[str, int, int], list[tuple[Inst, Encoding]]] = {}

def candidates(space: str, map: int, opcode: int) -> list[tuple[Inst, Encoding]]:
  """The encodings that begin with this opcode, in the order of the table."""
  key = (space, map, opcode)
  found = CANDIDATES.get(key)
  if found is None:
    rows = [row for mnemonic in mnemonics().get(key, ()) for row in TABLE.rows(mnemonic)]
    found = CANDIDATES.setdefault(key, [(row, e) for row in rows for e in row.isa.encodings
                                        if (e.space, e.map) == (space, map)
                                        and e.opcode == (opcode & ~7 if e.plus else opcode)])
  return found

@once
def mnemonics() -> dict[tuple[str, int, int], list[str]]:
  """The mnemonics that use each opcode. Cost: 20 ms, once."""
  found: dict[tuple[str, int, int], list[str]] = {}
  for mnemonic in TABLE.mnemonics():
    for text in TABLE.lines[mnemonic]:
      for spec in TableLine(text).specs:
        for opcode in range(spec.opcode, spec.opcode + (8 if spec.plus else 1)):
          users = found.setdefault((spec.space, spec.map, opcode), [])
          if mnemonic not in users: users.append(mnemonic)
  return found

def match(row: Inst, e: Encoding, f: Fields, code: bytes, at: int) -> tuple[MInst, int] | None:
  """The instruction and its end offset, if the bytes match this encoding."""
  form: Form = row.isa
  if e.pp != f.pp or e.w is not None and e.w != f.w: return None
  if e.space == "legacy":
    if e.operand16 != f.operand16 or e.lock != f.lock: return None
  elif e.l is not None and e.l != f.l: return None
  if e.space == "evex" and (form.zeroing != f.zeroing or (form.mask >= 0) != (f.mask > 0)
                            or (form.broadcast > 0) != f.broadcast):
    return None
  if e.suffix:
    if code[at:at + len(e.suffix)] != e.suffix: return None
    at += len(e.suffix)
  operands: list[Any] = [None if o.cls is None or o.fixed is None else regs.reg(o.cls, o.fixed) for o in row.operands]
  numbers: list[tuple[int, int]] = []
  if e.plus: numbers.append((e.opreg, f.opcode & 7 | f.b))
  elif e.digit > -2:
    after = read_modrm(form, e, f, code, at, operands, numbers)
    if after < 0: return None
    at = after
  if e.vvvv >= 0: numbers.append((e.vvvv, f.vvvv | f.v))
  elif f.vvvv or f.v and not (e.rm == form.memory and operands[e.rm + 1] is not None): return None
  if form.mask >= 0: numbers.append((form.mask, f.mask))
  if e.is4 >= 0:
    if code[at] & 15: return None
    numbers.append((e.is4, code[at] >> 4))
    at += 1
  if not put_registers(row, e, f, operands, numbers): return None
  return read_immediates(row, e, code, at, operands)

def read_modrm(form: Form, e: Encoding, f: Fields, code: bytes, at: int, operands: list[Any],
               numbers: list[tuple[int, int]]) -> int:
  """Read ModRM, SIB and displacement. Returns their end, or -1 if they do not fit."""
  modrm = code[at]
  mod, reg, rm = modrm >> 6, modrm >> 3 & 7, modrm & 7
  if e.digit >= 0 and reg != e.digit or (mod != 3) != (form.memory >= 0): return -1
  if e.reg >= 0: numbers.append((e.reg, reg | f.r))
  if e.rm < 0: return at + 1 if rm == 0 and mod == 3 else -1
  if mod == 3:
    numbers.append((e.rm, rm | f.b | (f.x << 1 if e.space == "evex" and operand_is_vector(form, e.rm) else 0)))
    return at + 1
  return read_memory(form, e, f, code, at + 1, operands, mod, rm)

def operand_is_vector(form: Form, at: int) -> bool:
  cls = form.row.operands[at].cls
  return cls is not None and cls.bank is regs.VEC

def read_memory(form: Form, e: Encoding, f: Fields, code: bytes, at: int, operands: list[Any], mod: int,
                rm: int) -> int:
  """Read a memory operand. Returns its end, or -1."""
  index_class = form.row.operands[e.rm + 1].cls
  gather = index_class.bank is regs.VEC
  base: Reg | None = None
  index: Reg | None = None
  scale, size = 1, (0, 1, 4)[mod]
  needed = not form.row.operands[e.rm + 1].optional
  if rm == 4:
    sib = code[at]
    at += 1
    number = sib >> 3 & 7 | f.x
    if gather: index, scale = regs.reg(index_class, number | f.v), 1 << (sib >> 6)
    elif number != 4: index, scale = regs.reg(regs.R64, number), 1 << (sib >> 6)
    if sib & 7 == 5 and mod == 0: size = 4
    else: base = regs.reg(regs.R64, sib & 7 | f.b)
  elif needed: return -1
  elif rm == 5 and mod == 0: base, size = regs.RIP, 4
  else: base = regs.reg(regs.R64, rm | f.b)
  if needed and index is None: return -1
  if len(code) < at + size: raise IndexError
  disp = int.from_bytes(code[at:at + size], "little", signed=True)
  if size == 1 and e.space == "evex": disp *= form.unit
  operands[e.rm:e.rm + 4] = [base, index, scale, disp]
  return at + size

def put_registers(row: Inst, e: Encoding, f: Fields, operands: list[Any], numbers: list[tuple[int, int]]) -> bool:
  """Replace numbers by registers. False if the class has no such register."""
  for at, number in numbers:
    cls = row.operands[at].cls
    assert cls is not None
    if number >= cls.bank.count: return False
    if at in e.bytes8 and not f.rex and 4 <= number < 8: return False  # ah, ch, dh, bh
    operands[at] = regs.reg(cls, number)
  if e.accumulator >= 0:
    if e.opreg >= 0 and operands[e.opreg].index == 0: return False  # 90 is nop
    cls = row.operands[e.accumulator].cls
    assert cls is not None
    operands[e.accumulator] = regs.reg(cls, 0)
  return True

def read_immediates(row: Inst, e: Encoding, code: bytes, at: int, operands: list[Any]) -> tuple[MInst, int] | None:
  """Read the immediates after the other operands."""
  size = e.imm_bytes or e.rel_bytes
  if len(code) < at + size: raise IndexError
  value = int.from_bytes(code[at:at + size], "little", signed=True)
  if e.imm_bytes:
    if e.imm < 0: return None
    operands[e.imm] = value if e.imm_signed else value & (1 << e.imm_bits) - 1
  if e.rel_bytes: operands[e.rel] = value
  if e.one >= 0: operands[e.one] = 1
  return MInst(row, operands), at + size
