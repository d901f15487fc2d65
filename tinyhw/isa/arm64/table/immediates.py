"""Numbers of AArch64 whose bits are a function of the value: masks, small floats, shifted numbers, bit fields, names of
system registers.

Source: DDI 0487, pseudocode DecodeBitMasks (masks), VFPExpandImm (floats), and the aliases of each instruction.
"""
from __future__ import annotations
import struct
from collections.abc import Sequence
from typing import Any

from tinyhw.errors import EncodeError
from tinyhw.isa.arm64.table import words
from tinyhw.machine.assembler.holes import Hole
from tinyhw.machine.assembler.reader import TextReader

# ---- masks

def mask_bits(value: int, width: int) -> int | None:
  """N:immr:imms of a mask of `width` bits: a run of ones, rotated, in elements of 2 to 64 bits that repeat.

  None if the value is none: all zeros, all ones, or another pattern.
  """
  element = width
  while element > 2 and value >> element // 2 & (1 << element // 2) - 1 == value & (1 << element // 2) - 1:
    element //= 2
  ones = (1 << element) - 1
  one = value & ones
  if one in (0, ones) or any(value >> k & ones != one for k in range(0, width, element)): return None
  for rotation in range(element):  # until the ones are at the bottom
    rotated = (one >> rotation | one << element - rotation) & ones
    if not rotated & rotated + 1: break
  else: return None
  count = rotated.bit_length()
  imms = count - 1 if element == 64 else count - 1 | -2 * element & 63
  return int(element == 64) << 12 | (element - rotation) % element << 6 | imms

def mask_of(code: int) -> tuple[int, int] | None:
  """The size of the element of N:immr:imms, and the element. None if these bits are reserved."""
  imms, immr = code & 63, code >> 6 & 63
  length = (code >> 12 << 6 | ~imms & 63).bit_length() - 1
  if length < 1: return None
  element = 1 << length
  count, rotation = (imms & element - 1) + 1, immr & element - 1
  if count == element or element < 64 and code >> 12: return None
  ones = (1 << count) - 1
  return element, (ones >> rotation | ones << element - rotation) & (1 << element) - 1

class Mask(Hole):
  """A mask of `bits` bits. exact: the row is that of this element size (SVE): smaller elements belong to other rows."""

  def __init__(self, letters: str, width: int, bits: int, exact: bool = False):
    super().__init__(letters, width)
    self.bits, self.exact = bits, exact

  def read(self, reader: TextReader) -> list[Any]:
    start, value = reader.at, reader.number()
    if not isinstance(value, int): raise reader.refuse(self.wants(), start=start)
    if value < 0: value &= (1 << self.bits) - 1
    if value >> self.bits or self.found(value) is None: raise reader.refuse(self.wants(), True, start)
    return [value]

  def found(self, value: int) -> int | None:
    code = mask_bits(value, self.bits)
    if code is None and self.exact and self.bits < 64: return mask_bits(self.repeated(value), 64)
    return code

  def repeated(self, value: int) -> int: return sum(value << k for k in range(0, 64, self.bits))

  def show(self, values: Sequence[Any]) -> str:
    value = values[0]
    if not isinstance(value, int): return str(value)
    if not self.exact: return hex(value)
    signed = value - (1 << self.bits) if value >> self.bits - 1 else value
    return str(signed) if -1 << 15 <= signed < 1 << 15 else (str(value) if value < 1 << 16 else hex(value))

  def code(self, values: Sequence[Any]) -> int:
    value = values[0]
    code = self.found(value) if isinstance(value, int) and 0 <= value < 1 << self.bits else None
    if code is None: raise EncodeError(f"wants {self.wants()}, got {value:#x}; load it into a register first"
                                       if isinstance(value, int) else f"wants {self.wants()}, got {value}")
    return code if self.width == 13 else code & 0xfff

  def operands(self, code: int) -> list[Any] | None:
    found = mask_of(code)
    if found is None or found[0] > self.bits: return None
    if self.exact and found[0] != self.bits and (self.bits > 8 or found[0] > 8): return None
    return [sum(found[1] << k for k in range(0, self.bits, found[0]))]

  def wants(self) -> str:
    return (f"a mask of {self.bits} bits: contiguous ones, rotated, in elements of 2, 4, 8, ... bits that repeat; not "
            f"0 and not all ones")

class DupMask(Mask):
  """A mask that dupm puts into all elements, as the text of mov has it: not one that dup can make."""

  def operands(self, code: int) -> list[Any] | None:
    found = super().operands(code)
    return None if found is None or self.is_short(found[0]) else found

  def is_short(self, value: int) -> bool:
    """Whether 8 bits with a sign, or those times 256, are the mask's 16, 32 or 64 bits."""
    for bits in (8, 16, 32, 64):
      if bits > self.bits: break
      low = value & (1 << bits) - 1
      if sum(low << k for k in range(0, self.bits, bits)) != value: continue
      signed = low - (1 << bits) if low >> bits - 1 else low
      if -128 <= signed <= 127 or bits > 8 and signed % 256 == 0 and -128 <= signed >> 8 <= 127: return True
    return False

# ---- moved numbers

def by_movz(value: int, bits: int) -> int | None:
  """hw:imm16 of a number with at most 16 bits that are not 0, at a multiple of 16."""
  return next((k << 16 | value >> 16 * k for k in range(bits // 16) if not value & ~(0xffff << 16 * k)), None)

class Moved(Hole):
  """The number that movz, movn or orr put into a register, as the text of mov has it. how: "z", "n" or "mask"."""

  def __init__(self, letters: str, width: int, bits: int, how: str):
    super().__init__(letters, width)
    self.bits, self.how, self.ones = bits, how, (1 << bits) - 1

  def read(self, reader: TextReader) -> list[Any]:
    start, value = reader.at, reader.number()
    if not isinstance(value, int): raise reader.refuse(self.wants(), start=start)
    if not -1 << self.bits - 1 <= value <= self.ones: raise reader.refuse(self.wants(), True, start)
    if self.found(value & self.ones) is None: raise reader.refuse(self.wants(), True, start)
    return [value & self.ones]

  def found(self, value: int) -> int | None:
    code = by_movz(value, self.bits)
    if self.how == "z" or code is not None: return code if self.how == "z" else None
    code = by_movz(value ^ self.ones, self.bits)
    if self.how == "n" or code is not None: return code if self.how == "n" else None
    code = mask_bits(value, self.bits)
    return code if code is None or self.width == 13 else code & 0xfff

  def show(self, values: Sequence[Any]) -> str:
    value = values[0]
    return str(value - (1 << self.bits) if isinstance(value, int) and value >> self.bits - 1 else value)

  def code(self, values: Sequence[Any]) -> int:
    value = values[0]
    code = self.found(value & self.ones) if isinstance(value, int) else None
    if code is None: raise EncodeError(f"wants {self.wants()}, got {value}")
    return code

  def operands(self, code: int) -> list[Any] | None:
    if self.how == "mask":
      found = mask_of(code)
      if found is None or found[0] > self.bits: return None
      value = sum(found[1] << k for k in range(0, self.bits, found[0]))
    else:
      value = (code & 0xffff) << 16 * (code >> 16)
      if self.how == "n": value ^= self.ones
    return [value] if value <= self.ones and self.found(value) == code else None

  def wants(self) -> str:
    return (f"a number of {self.bits} bits that one instruction makes: 16 bits at a multiple of 16 in zeros or in "
            f"ones, or a mask; use movz and movk for others")

class Shifted(Hole):
  """A number of 12 or 8 bits, or that shifted left by as many: its operands are the number and the shift."""

  def __init__(self, letters: str, width: int, shift: int, signed: bool = False):
    super().__init__(letters, width)
    self.names = (letters, "shift")
    self.shift, self.signed, self.bits = shift, signed, width - 1
    self.low, self.high = (-128, 127) if signed else (0, (1 << self.bits) - 1)

  def read(self, reader: TextReader) -> list[Any]:
    start, value = reader.at, reader.number()
    if not isinstance(value, int): raise reader.refuse(self.wants(), start=start)
    shift = self.read_shift(reader)
    if not shift and not self.low <= value <= self.high and value % (1 << self.shift) == 0:
      value, shift = value >> self.shift, self.shift
    if not self.low <= value <= self.high: raise reader.refuse(self.wants(), True, start)
    return [value, shift]

  def read_shift(self, reader: TextReader) -> int:
    if reader.peek() != ",": return 0
    start = reader.at
    reader.take()
    if not reader.skip("lsl"):
      if start + 1 < len(reader.tokens) and reader.peek()[:1].isalpha():
        raise reader.refuse(f"lsl #0 or lsl #{self.shift}")
      reader.at = start
      return 0
    shift = reader.number()
    if shift not in (0, self.shift): raise reader.refuse(f"lsl #0 or lsl #{self.shift}", True, start + 1)
    return int(shift)

  def show(self, values: Sequence[Any]) -> str:
    value, shift = values
    if self.shift == 8 and shift and value: return str(value << 8)
    return f"{value}, lsl #{shift}" if shift else str(value)

  def code(self, values: Sequence[Any]) -> int:
    value, shift = values
    if not isinstance(value, int) or not self.low <= value <= self.high or shift not in (0, self.shift):
      raise EncodeError(f"wants {self.wants()}, got {value}" + (f", lsl #{shift}" if shift else ""))
    return int(shift > 0) << self.bits | value & (1 << self.bits) - 1

  def operands(self, code: int) -> list[Any] | None:
    value = code & (1 << self.bits) - 1
    if self.signed and value >> 7: value -= 256
    return [value, self.shift if code >> self.bits else 0]

  def wants(self) -> str:
    return (f"an integer in {self.low}..{self.high}, or a multiple of {1 << self.shift} in {self.low << self.shift}.."
            f"{self.high << self.shift}")

# ---- floats

def float_of(code: int) -> float:
  """The value of an 8-bit float: +-(16 to 31) / 16 * 2**(-3 to 4)."""
  exponent = (code >> 4 & 7 ^ 4) - 3
  return (-1.0 if code >> 7 else 1.0) * (16 + (code & 15)) / 16 * 2.0 ** exponent

FLOATS = {float_of(code): code for code in range(256)}

class Float(Hole):
  """A float of 8 bits. Its operand is the value."""

  def read(self, reader: TextReader) -> list[Any]:
    start, value = reader.at, reader.number()
    if value is None: raise reader.refuse(self.wants(), start=start)
    if float(value) not in FLOATS: raise reader.refuse(self.wants(), True, start)
    return [float(value)]

  def show(self, values: Sequence[Any]) -> str:
    return f"{values[0]:.8f}" if isinstance(values[0], float) else str(values[0])

  def code(self, values: Sequence[Any]) -> int:
    code = FLOATS.get(values[0]) if isinstance(values[0], (int, float)) else None
    if code is None: raise EncodeError(f"wants {self.wants()}, got {values[0]}")
    return code

  def operands(self, code: int) -> list[Any] | None: return [float_of(code)]

  def wants(self) -> str:
    return "a float +-n/16 * 2**e with n in 16..31 and e in -3..4; 0.0 comes from movi or the zero register"

class TwoFloats(Hole):
  """One of two floats."""

  def __init__(self, letters: str, width: int, low: str, high: str):
    super().__init__(letters, width)
    self.texts = (low, high)

  def read(self, reader: TextReader) -> list[Any]:
    start, value = reader.at, reader.number()
    if value is None: raise reader.refuse(self.wants(), start=start)
    for code, text in enumerate(self.texts):
      if value == float(text): return [code]
    raise reader.refuse(self.wants(), True, start)

  def show(self, values: Sequence[Any]) -> str: return self.texts[values[0]]

  def code(self, values: Sequence[Any]) -> int:
    if values[0] not in (0, 1):
      raise EncodeError(f"wants 0 for {self.texts[0]} or 1 for {self.texts[1]}, got {values[0]}")
    return int(values[0])

  def operands(self, code: int) -> list[Any] | None: return [code]
  def wants(self) -> str: return f"{self.texts[0]} or {self.texts[1]}"

class ByteMask(Hole):
  """64 bits, each byte of which is 0 or 0xff: a bit of the code for each byte."""

  def read(self, reader: TextReader) -> list[Any]:
    start, value = reader.at, reader.number()
    if not isinstance(value, int): raise reader.refuse(self.wants(), start=start)
    value &= (1 << 64) - 1
    if any(byte not in (0, 255) for byte in struct.pack("<Q", value)): raise reader.refuse(self.wants(), True, start)
    return [value]

  def show(self, values: Sequence[Any]) -> str: return f"0x{values[0]:014x}" if values[0] else "0000000000000000"

  def code(self, values: Sequence[Any]) -> int:
    data = struct.pack("<Q", values[0])
    if any(byte not in (0, 255) for byte in data): raise EncodeError(f"wants {self.wants()}, got {values[0]:#x}")
    return sum(bool(byte) << k for k, byte in enumerate(data))

  def operands(self, code: int) -> list[Any] | None: return [sum(0xff << 8 * k for k in range(8) if code >> k & 1)]
  def wants(self) -> str: return "64 bits, each byte of which is 0 or 0xff"

# ---- bit fields

class BitField(Hole):
  """The numbers of an alias of bfm, sbfm and ubfm. how: left (lsl #n), right (lsr #n, asr #n), insert (bfi, ubfiz: from
  bit 0 to bit l, n bits) or extract (bfxil, ubfx: n bits from bit l)."""

  def __init__(self, letters: str, width: int, how: str):
    super().__init__(letters, width)
    self.how, self.half = how, width // 2
    self.bits = 1 << self.half
    self.names = ("lsb", "count") if how in ("insert", "extract") else ("count",)

  def read(self, reader: TextReader) -> list[Any]:
    start, values = reader.at, [self.one(reader)]
    if len(self.names) == 2:
      if not reader.skip(","): raise reader.refuse("a comma and the number of bits")
      values.append(self.one(reader))
    if not self.fits(values): raise reader.refuse(self.wants(), True, start)
    return values

  def one(self, reader: TextReader) -> int:
    start, value = reader.at, reader.number()
    if not isinstance(value, int): raise reader.refuse(self.wants(), start=start)
    return value

  def fits(self, values: Sequence[Any]) -> bool:
    if not 0 <= values[0] < self.bits: return False
    return len(values) == 1 or 1 <= values[1] <= self.bits - values[0]

  def show(self, values: Sequence[Any]) -> str: return ", #".join(map(str, values))

  def code(self, values: Sequence[Any]) -> int:
    if not all(isinstance(v, int) for v in values) or not self.fits(values):
      raise EncodeError(f"wants {self.wants()}, got {self.show(values)}")
    first, count = int(values[0]), int(values[-1])
    if self.how == "left": r, s = -first % self.bits, self.bits - 1 - first
    elif self.how == "right": r, s = first, self.bits - 1
    elif self.how == "insert": r, s = -first % self.bits, count - 1
    else: r, s = first, first + count - 1
    return r << self.half | s

  def operands(self, code: int) -> list[Any] | None:
    r, s, last = code >> self.half, code & self.bits - 1, self.bits - 1
    if self.how == "left": return [last - s] if s != last and s + 1 == r else None
    if self.how == "right": return [r] if s == last else None
    if self.how == "insert": return [self.bits - r, s + 1] if s < r else None
    return [r, s - r + 1] if s >= r else None

  def wants(self) -> str:
    if len(self.names) == 1: return f"an integer in 0..{self.bits - 1}"
    return f"the lowest bit in 0..{self.bits - 1} and the number of bits, together at most {self.bits}"

# ---- system registers

REGISTERS = {name: (n[0] & 1) << 14 | n[1] << 11 | n[2] << 7 | n[3] << 3 | n[4]
             for name, n in words.numbers(words.SYSTEM).items()}
NAMES = {code: name for name, code in REGISTERS.items()}

class SystemRegister(Hole):
  """A system register by name, or as S<op0>_<op1>_C<n>_C<m>_<op2>. Its operand is the code."""

  def read(self, reader: TextReader) -> list[Any]:
    text = reader.peek().upper()
    code = REGISTERS.get(text)
    parts = text[1:].replace("C", "").split("_")
    if code is None and text[:1] == "S" and len(parts) == 5 and all(p.isdigit() for p in parts):
      limits = (4, 8, 16, 16, 8)
      op0, *rest = (int(p) for p in parts)
      if op0 in (2, 3) and all(n < limit for n, limit in zip(rest, limits[1:])):
        code = (op0 & 1) << 14 | rest[0] << 11 | rest[1] << 7 | rest[2] << 3 | rest[3]
    if code is None: raise reader.refuse(self.wants(), text[:1].isalpha())
    reader.take()
    return [code]

  def show(self, values: Sequence[Any]) -> str:
    code = values[0]
    return NAMES.get(code) or f"S{2 + (code >> 14)}_{code >> 11 & 7}_C{code >> 7 & 15}_C{code >> 3 & 15}_{code & 7}"

  def code(self, values: Sequence[Any]) -> int:
    if not isinstance(values[0], int) or not 0 <= values[0] < 1 << 15:
      raise EncodeError(f"wants {self.wants()}, got {values[0]}")
    return int(values[0])

  def operands(self, code: int) -> list[Any] | None: return [code]
  def wants(self) -> str: return "a system register such as FPCR or CTR_EL0, or S3_<op1>_C<n>_C<m>_<op2>"
