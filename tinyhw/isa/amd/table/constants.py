"""Constant operands of instructions: the bits of inline constants, and the values of literals.

A constant operand is an int, the bits that the instruction reads: 0x3f800000 for 1.0 as f32, 0x3c00 as f16, 0xffffffff
for -1. The encoder uses an inline constant if there is one, and a literal otherwise. A literal has 32 bits. It is the
upper half of an f64; it is sign-extended to an i64 and zero-extended to a b64 or u64. Source: RDNA3 and MI300 ISA
guides, "scalar source operands" and "literal constants".
"""
from __future__ import annotations
import struct

# The last one is 1 / (2 pi); 64-bit operands have it with more digits.
FLOAT_NAMES = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494")
FIRST_FLOAT, LITERAL = 240, 255
INVERSE_TWO_PI = {"e": 0x3118, "f": 0x3e22f983, "d": 0x3fc45f306dc9c882}

def float_bits(value: float, letter: str) -> int:
  """The bits of a float in a format of `struct`: e (f16), f (f32) or d (f64), rounded to nearest even.

  Raises OverflowError.
  """
  return int.from_bytes(struct.pack("<" + letter, value), "little")

def _floats(letter: str) -> list[int]:
  return [float_bits(float(text), letter) for text in FLOAT_NAMES[:-1]] + [INVERSE_TWO_PI[letter]]

class Constants:
  """The constants of operands of one kind of type.

  - bits: the size of the operand.
  - codes: bits -> code; values: code -> bits.
  - names: bits of inline floats -> text.
  - letter: the format of its floats in `struct`, or "" for integers.
  - shift: position of a literal within the operand.
  - signed: the literal is sign-extended.
  - twice: an inline float is in both halves.
  """

  def __init__(self, bits: int, floats: list[int], letter: str = "", shift: int = 0, signed: bool = False,
               twice: bool = False):
    self.bits, self.letter, self.shift, self.signed, self.twice = bits, letter, shift, signed, twice
    self.mask = (1 << bits) - 1
    if twice: floats = [value * 0x10001 for value in floats]
    self.names = (dict(zip(floats, (*FLOAT_NAMES[:-1], "0.15915494309189532" if bits == 64 else FLOAT_NAMES[-1])))
                  if not twice else {})
    self.codes = {value: FIRST_FLOAT + i for i, value in enumerate(floats)}
    self.codes.update({value & self.mask: 128 + value if value >= 0 else 192 - value for value in range(-16, 65)})
    self.values = {code: value for value, code in self.codes.items()}

  def code(self, value: int) -> int | None:
    """The code of the inline constant with these bits, or of a negative number; None if there is none."""
    found = self.codes.get(value)
    return self.codes.get(value & self.mask) if found is None and -1 << self.bits - 1 <= value < 0 else found

  def fits(self, value: int) -> bool:
    """Whether the operand can have these bits, or be this negative number."""
    return -1 << self.bits - 1 <= value <= self.mask

  def literal(self, value: int) -> int | None:
    """The dword of a literal with these bits, or None if there is none."""
    if self.bits <= 32: return value
    if self.shift: return value >> 32 if not value & 0xffffffff else None
    if self.signed: return value & 0xffffffff if value < 1 << 31 or value >= (1 << 64) - (1 << 31) else None
    return value if value < 1 << 32 else None

  def value(self, dword: int) -> int:
    """The bits that an operand reads from a literal."""
    if self.shift: return dword << 32
    if self.bits == 64 and self.signed and dword >> 31: return dword | 0xffffffff << 32
    return dword & self.mask

F16, F32, F64 = _floats("e"), _floats("f"), _floats("d")
BF16 = [value >> 16 for value in F32]
# By the kind of a type; see form.Type.constants.
KINDS = {
  "f16": Constants(16, F16, "e"), "bf16": Constants(16, BF16), "i16": Constants(16, []),
  "f16x2": Constants(32, F16, "e"), "bf16x2": Constants(32, BF16), "f16x2 twice": Constants(32, F16, "e", twice=True),
  "f32": Constants(32, F32, "f"), "i32": Constants(32, F32),
  "f64": Constants(64, F64, "d", shift=32), "i64": Constants(64, F64, signed=True), "b64": Constants(64, F64),
}
