"""Encode rows as bytes. At first use, a row becomes a function: everything that the table decides is computed once, and
only the operands remain.

`encode` is for one instruction. `encode_function` is for a laid out function: it chooses short or long jumps, and
places constants. Operands must be physical. Errors are only searched for after the function of a row failed (check.py),
so that correct code does not pay for checks.

Cost: 0.4 to 0.9 us an instruction over registers, 1 to 1.8 us with a memory operand (CPython 3.11, Zen 3).
"""
from __future__ import annotations
from typing import Any
from collections.abc import Callable

from tinyhw.errors import EncodeError
from tinyhw.isa.x86.asm.check import complain
from tinyhw.isa.x86.table.form import Encoding, Form
from tinyhw.isa.x86.table.regs import RIP_CLASS
from tinyhw.machine.ir.inst import Block, Function, MInst

Encoder = Callable[[list[Any]], "bytes | None"]  # None: this encoding cannot express these operands

def encode(inst: MInst) -> bytes:
  """The bytes of an instruction over physical registers.

  A block operand must be an int: its distance from the start of the instruction. Raises EncodeError with the wrong
  operand and the expected one.
  """
  form: Form = inst.row.isa
  try:
    code = (form.encode or compile_form(form))(inst.operands)
  except (TypeError, AttributeError, ValueError, OverflowError, LookupError): code = None
  if code is None: raise EncodeError(complain(inst))
  return code

def compile_form(form: Form) -> Encoder:
  """Make the function of a row, and store it in the form."""
  plain = [make_encoder(form, e) for e in useful(form.encodings) if e.space != "evex"]
  wide = [make_encoder(form, e) for e in form.encodings if e.space == "evex"][:1]
  if len(plain) + len(wide) == 1: encoder = (plain + wide)[0]
  elif form.encodings[0].space == "vex": encoder = shortest(plain, wide)
  else: encoder = first_of(plain)
  form.encode = encoder  # type: ignore[assignment]  # in place of the method that called this
  return encoder

def first_of(candidates: list[Encoder]) -> Encoder:
  """An encoder that uses the first candidate that fits."""
  def encoder(operands: list[Any]) -> bytes | None:
    for candidate in candidates:
      code = candidate(operands)
      if code is not None: return code
    return None
  return encoder

def shortest(plain: list[Encoder], wide: list[Encoder]) -> Encoder:
  """An encoder that uses the shortest VEX encoding, or the EVEX one."""
  if len(plain) == len(wide) == 1:
    first, second = plain[0], wide[0]
    return lambda operands: first(operands) or second(operands)
  def encoder(operands: list[Any]) -> bytes | None:
    codes = [code for candidate in plain if (code := candidate(operands)) is not None]
    if codes: return min(codes, key=len)
    return wide[0](operands) if wide else None
  return encoder

def useful(encodings: list[Encoding]) -> list[Encoding]:
  """Omit encodings that only the decoder needs: they are never shorter than an earlier one, and express nothing
  more."""
  found: list[Encoding] = []
  for e in encodings:
    sizes = (e.space, e.imm_bytes, e.rel_bytes)
    general = [f for f in found if f.accumulator < 0 and f.one < 0 and (f.space, f.imm_bytes, f.rel_bytes) == sizes]
    if not general or e.space == "vex" or e.plus or e.accumulator >= 0 or e.one >= 0: found.append(e)
  return found

def address(reg: int, base: Any, index: Any, scale: int, disp: int, unit: int) -> tuple[int, bytes]:
  """ModRM, SIB and displacement; and the high bits of index (2) and base (1).

  `reg` is the low 3 bits of the other operand.
  """
  reg <<= 3
  if index is None:
    if base is None: return 0, bytes((reg | 4, 0x25)) + disp.to_bytes(4, "little", signed=True)
    if base.cls is RIP_CLASS: return 0, bytes((reg | 5,)) + disp.to_bytes(4, "little", signed=True)
    number = base.index
    low, high = number & 7, number >> 3
    if low == 4:
      reg |= 4
      sib = b"\x24"
    else:
      reg |= low
      sib = b""
  else:
    x = index.index
    bits = SCALES[scale] | (x & 7) << 3
    if x == 4 and index.cls.bits == 64: raise ValueError("rsp")
    if base is None: return x >> 2 & 2, bytes((reg | 4, bits | 5)) + disp.to_bytes(4, "little", signed=True)
    number = base.index
    low, high = number & 7, number >> 3 | x >> 2 & 2
    reg |= 4
    sib = bytes((bits | low,))
  if disp == 0 and low != 5: return high, bytes((reg,)) + sib
  if unit == 1: short = disp
  elif disp % unit: short = 128
  else: short = disp // unit
  if -128 <= short < 128: return high, bytes((reg | 0x40,)) + sib + bytes((short & 255,))
  return high, bytes((reg | 0x80,)) + sib + disp.to_bytes(4, "little", signed=True)

SCALES = {1: 0, 2: 0x40, 4: 0x80, 8: 0xC0}

def make_encoder(form: Form, e: Encoding) -> Encoder:
  """Make the function of one encoding: operands to bytes, or None if it cannot express them."""
  core = {"legacy": legacy, "vex": vex, "evex": evex}[e.space](form, e)
  if e.accumulator >= 0: core = with_accumulator(core, e.accumulator, e.opreg)
  if form.memory >= 0 and not form.row.operands[form.memory + 1].optional: core = with_index(core, form.memory + 1)
  if e.rel >= 0: return with_distance(head_of(e), e.rel, e.rel_bytes)
  if e.one >= 0: return with_one(core, e.one)
  if e.imm >= 0: return with_immediate(core, e)
  return core

def with_accumulator(core: Encoder, position: int, other: int) -> Encoder:
  """Encode only if that operand is rax or a part of it. xchg of it with itself has a ModRM byte, since 90 is nop."""
  def encoder(operands: list[Any]) -> bytes | None:
    if operands[position].index != 0 or other >= 0 and operands[other].index == 0: return None
    return core(operands)
  return encoder

def with_index(core: Encoder, position: int) -> Encoder:
  """Encode only an address that has an index."""
  return lambda operands: None if operands[position] is None else core(operands)

def with_one(core: Encoder, position: int) -> Encoder:
  def encoder(operands: list[Any]) -> bytes | None: return core(operands) if operands[position] == 1 else None
  return encoder

def with_distance(head: bytes, position: int, size: int) -> Encoder:
  """A jump by a number of bytes from its start."""
  limit, length = 1 << size * 8 - 1, len(head) + size
  def encoder(operands: list[Any]) -> bytes | None:
    distance = operands[position] - length
    if not -limit <= distance < limit: return None
    return head + int.to_bytes(distance, size, "little", signed=True)
  return encoder

def with_immediate(core: Encoder, e: Encoding) -> Encoder:
  """Append the immediate. An immediate that is too large for the encoding is refused unless sign extension restores
  it."""
  position, size, bits = e.imm, e.imm_bytes, e.imm_bits
  mask, limit = (1 << size * 8) - 1, 1 << size * 8 - 1
  low, high = -(1 << bits - 1), 1 << bits
  wrap = size * 8 < bits
  if e.imm_extends: high >>= 1
  if size == 1 and not wrap:
    def encoder(operands: list[Any]) -> bytes | None:
      value = operands[position]
      if not low <= value < high: return None
      head = core(operands)
      return head and head + BYTES[value & 255]
    return encoder
  def wide_encoder(operands: list[Any]) -> bytes | None:
    value: int = operands[position]
    if not low <= value < high: return None
    if wrap:
      if value >= high >> 1 and high > -low: value -= high
      if not -limit <= value < limit: return None
    head = core(operands)
    return head and head + (value & mask).to_bytes(size, "little")
  return wide_encoder

BYTES = [bytes((i,)) for i in range(256)]
ESCAPES = (b"", b"\x0f", b"\x0f\x38", b"\x0f\x3a")

def legacy(form: Form, e: Encoding) -> Encoder:
  """Encode prefixes, REX, opcode, ModRM."""
  prefix = (b"\x66" if e.operand16 else b"") + (b"\xf0" if e.lock else b"") + (b"", b"", b"\xf3", b"\xf2")[e.pp]
  escape, w = ESCAPES[e.map], 8 if e.w else 0
  tail = escape + bytes((e.opcode,)) + e.suffix
  # indexed by REX bits R, X, B: `heads` omits the prefix if possible, `forced` has it for spl, bpl, sil, dil
  heads = [prefix + (bytes((0x40 | w | i,)) if w or i else b"") + tail for i in range(8)]
  forced = [prefix + bytes((0x40 | w | i,)) + tail for i in range(8)]
  reg, rm, memory, digit, low_bytes = e.reg, e.rm, form.memory, max(e.digit, 0), e.bytes8
  if e.plus:
    opreg, opcode = e.opreg, e.opcode
    def plus_encoder(operands: list[Any]) -> bytes | None:
      number: int = operands[opreg].index
      head = (forced if low_bytes and 4 <= number < 8 else heads)[number >> 3]
      return head[:-1] + BYTES[opcode | number & 7]
    return plus_encoder
  if rm < 0: return lambda operands: heads[0]
  if rm == memory:
    def memory_encoder(operands: list[Any]) -> bytes | None:
      number: int = operands[reg].index if reg >= 0 else digit
      high, rest = address(number & 7, operands[rm], operands[rm + 1], operands[rm + 2], operands[rm + 3], 1)
      if low_bytes and 4 <= number < 8 and reg in low_bytes: return forced[high] + rest
      return heads[number >> 1 & 4 | high] + rest
    return memory_encoder
  def register_encoder(operands: list[Any]) -> bytes | None:
    b: int = operands[rm].index
    number: int = operands[reg].index if reg >= 0 else digit
    head = heads[number >> 1 & 4 | b >> 3]
    if low_bytes:
      for i in low_bytes:
        if 4 <= operands[i].index < 8: head = forced[number >> 1 & 4 | b >> 3]
    return head + BYTES[0xC0 | (number & 7) << 3 | b & 7]
  return register_encoder

def vex(form: Form, e: Encoding) -> Encoder:
  """Encode a C5 or C4 prefix, opcode, ModRM. None if a register is above 15."""
  opcode, w, lpp = e.opcode, 0x80 if e.w else 0, (4 if e.l == 1 else 0) | e.pp
  short = e.map == 1 and not w
  reg, rm, vvvv, is4, memory, digit = e.reg, e.rm, e.vvvv, e.is4, form.memory, max(e.digit, 0)
  if e.suffix or reg >= 0 > rm:    # no operand, or one register that has the place of the other's number, too
    head, last = bytes((0xC4, 0xE0 | e.map, w | 0x78 | lpp, opcode)), e.suffix
    return lambda operands: head + (last or BYTES[0xC0 | operands[reg].index << 3])
  if rm < 0: return lambda operands: bytes((0xC5, 0xF8 | lpp, opcode))
  def encoder(operands: list[Any]) -> bytes | None:
    r = operands[reg].index if reg >= 0 else digit
    v = operands[vvvv].index if vvvv >= 0 else 0
    if rm == memory:
      index = operands[rm + 1]
      if (r | v | (0 if index is None else index.index)) & 16: return None
      high, rest = address(r & 7, operands[rm], index, operands[rm + 2], operands[rm + 3], 1)
    else:
      b = operands[rm].index
      if (r | v | b) & 16: return None
      high, rest = b >> 3, BYTES[0xC0 | (r & 7) << 3 | b & 7]
    if is4 >= 0:
      last = operands[is4].index
      if last & 16: return None
      rest += BYTES[last << 4]
    if high == 0 and short: return bytes((0xC5, (0x80, 0)[r >> 3] | (15 - v) << 3 | lpp, opcode)) + rest
    return bytes((0xC4, (0xE0 ^ (r & 8) << 4 ^ high << 5) | e.map, w | (15 - v) << 3 | lpp, opcode)) + rest
  return encoder

def evex(form: Form, e: Encoding) -> Encoder:
  """Encode a 62 prefix, opcode, ModRM with a scaled displacement."""
  opcode, map = e.opcode, e.map
  p1 = (0x80 if e.w else 0) | 4 | e.pp
  p2 = (e.l or 0) << 5 | (0x80 if form.zeroing else 0) | (0x10 if form.broadcast else 0)
  reg, rm, vvvv, mask, memory, unit, digit = e.reg, e.rm, e.vvvv, form.mask, form.memory, form.unit, max(e.digit, 0)
  def encoder(operands: list[Any]) -> bytes | None:
    r = operands[reg].index if reg >= 0 else digit
    v = operands[vvvv].index if vvvv >= 0 else 0
    last = p2
    if mask >= 0:
      k = operands[mask].index
      if not k: return None
      last |= k
    top = v
    if rm == memory:
      index = operands[rm + 1]
      high, rest = address(r & 7, operands[rm], index, operands[rm + 2], operands[rm + 3], unit)
      if index is not None and vvvv < 0: top = index.index
    else:
      b = operands[rm].index
      high, rest = b >> 3, BYTES[0xC0 | (r & 7) << 3 | b & 7]  # bit 4 goes to X
    p0 = (0xF0 ^ (r & 8) << 4 ^ (r & 16) ^ (high & 3) << 5) | map
    return bytes((0x62, p0, p1 | (15 - (v & 15)) << 3, last | (0 if top & 16 else 8), opcode)) + rest
  return encoder

class Jump:
  """A jump to a block in code that is being laid out. short, long: its opcode bytes; far: whether it is long."""
  __slots__ = ("inst", "target", "short", "long", "far")

  def __init__(self, inst: MInst, target: Block):
    form: Form = inst.row.isa
    self.inst, self.target = inst, target
    encoders = {e.rel_bytes: e for e in form.encodings}
    self.long = head_of(encoders[4])
    self.short = head_of(encoders[1]) if 1 in encoders else b""
    self.far = 1 not in encoders

  def size(self) -> int:
    return len(self.long) + 4 if self.far else len(self.short) + 1

def head_of(e: Encoding) -> bytes:
  return ESCAPES[e.map] + bytes((e.opcode,))

def encode_function(function: Function) -> tuple[bytes, list[tuple[int, MInst]]]:
  """The code of a function over physical registers, and the offset of each instruction.

  Jumps are as short as possible. A jump to the next block is omitted (and so is its entry). A displacement that is
  `bytes`, with base RIP, is a constant. Constants are placed after the code, once each, aligned to their length, and
  the displacement refers to them.
  """
  blocks = function.blocks
  pieces: list[list[bytes | Jump]] = []
  constants: dict[bytes, int] = {}
  uses: list[tuple[int, int, MInst]] = []  # block, piece, instruction
  kept: list[list[MInst]] = []
  for n, block in enumerate(blocks):
    following = blocks[n + 1] if n + 1 < len(blocks) else None
    row: list[bytes | Jump] = []
    insts: list[MInst] = []
    for inst in block.insts:
      form: Form = inst.row.isa
      if form.block >= 0 and isinstance(inst.operands[form.block], Block):
        target = inst.operands[form.block]
        if target is following and inst.row.name == "jmp" and inst is block.insts[-1]: continue
        row.append(Jump(inst, target))
      elif form.memory >= 0 and isinstance(inst.operands[form.memory + 3], bytes):
        uses.append((n, len(row), inst))
        constants.setdefault(inst.operands[form.memory + 3], 0)
        operands = list(inst.operands)
        operands[form.memory + 3] = 0
        row.append(encode(MInst(inst.row, operands)))
      else: row.append(encode(inst))
      insts.append(inst)
    pieces.append(row)
    kept.append(insts)
  starts = relax(blocks, pieces)
  return emit(pieces, kept, starts, constants, uses)

def relax(blocks: list[Block], pieces: list[list[bytes | Jump]]) -> dict[int, int]:
  """Lengthen jumps until all reach their targets. Returns the offset of each block, by its identity.

  Jumps only ever grow, so this ends.
  """
  changed = True
  while changed:
    starts, offset = {}, 0
    ends: list[tuple[int, Jump]] = []
    for block, row in zip(blocks, pieces):
      starts[id(block)] = offset
      for piece in row:
        if isinstance(piece, bytes): offset += len(piece)
        else:
          offset += piece.size()
          ends.append((offset, piece))
    changed = False
    for end, jump in ends:
      if id(jump.target) not in starts:
        raise EncodeError(f"{jump.inst.row.name}: block {jump.target} is not in the function")
      if not jump.far and not -128 <= starts[id(jump.target)] - end < 128: jump.far = changed = True
  return starts

def emit(pieces: list[list[bytes | Jump]], kept: list[list[MInst]], starts: dict[int, int], constants: dict[bytes, int],
         uses: list[tuple[int, int, MInst]]) -> tuple[bytes, list[tuple[int, MInst]]]:
  """Join the pieces, now that every offset is known."""
  code, places, where = bytearray(), [], {}
  for n, row in enumerate(pieces):
    for i, (piece, inst) in enumerate(zip(row, kept[n])):
      places.append((len(code), inst))
      where[n, i] = len(code)
      if isinstance(piece, bytes): code += piece
      else:
        distance = starts[id(piece.target)] - len(code) - piece.size()
        code += (piece.long + distance.to_bytes(4, "little", signed=True) if piece.far
                 else piece.short + distance.to_bytes(1, "little", signed=True))
  for constant in sorted(constants, key=len, reverse=True):
    code += b"\xcc" * (-len(code) % len(constant))
    constants[constant] = len(code)
    code += constant
  for n, i, inst in uses:
    position, piece = inst.row.isa.memory + 3, pieces[n][i]
    assert isinstance(piece, bytes)
    other = encode(MInst(inst.row, inst.operands[:position] + [-1] + inst.operands[position + 1:]))
    end = where[n, i] + len(piece)
    field = where[n, i] + next(at for at in range(len(piece)) if piece[at] != other[at])
    code[field:field + 4] = (constants[inst.operands[position]] - end).to_bytes(4, "little", signed=True)
  return bytes(code), places
