"""Constants inside of instructions, as the disassembler writes them.

Integers are in hex. Floats are in decimal with all significant digits. A float64 has only its upper 32 bits. NaNs other
than the usual quiet ones are written as their bits, so that the text gives the same bytes again.
"""
from __future__ import annotations
import re
import struct

from tinyhw.errors import ParseError
from tinyhw.machine.notation.text import parse_integer

BITS = {"f32": 32, "f64": 32, "f16": 16, "bf16": 16}  # of the field
FLOAT = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
INFINITY = {"f32": 0x7f800000, "f64": 0x7ff00000, "f16": 0x7c00, "bf16": 0x7f80}
QUIET = {"f32": 0x7fc00000, "f64": 0x7ff80000, "f16": 0x7e00, "bf16": 0x7fc0}
LARGE = 1e9  # from here on floats are written with an exponent and all digits

def to_float(bits: int, kind: str) -> float:
  """Return the value of the bits of a field."""
  if kind == "f64": return float(struct.unpack("<d", (bits << 32).to_bytes(8, "little"))[0])
  if kind == "f16": return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])
  return float(struct.unpack("<f", (bits << (16 if kind == "bf16" else 0)).to_bytes(4, "little"))[0])

def to_bits(value: float, kind: str) -> int:
  """Return the bits of the nearest value of a field.

  Raises ParseError if the value does not fit the field or is too large.
  """
  try:
    if kind == "f64": return int.from_bytes(struct.pack("<d", value), "little") >> 32
    if kind == "f16": return int.from_bytes(struct.pack("<e", value), "little")
    word = int.from_bytes(struct.pack("<f", value), "little")
  except (OverflowError, struct.error): raise ParseError(f"{value} does not fit {kind}") from None
  return word >> 16 if kind == "bf16" else word

def show_float(bits: int, kind: str) -> str:
  """Return text such as -1.5, +INF, -QNAN or 1.469367938527859385e-39."""
  sign = 1 << BITS[kind] - 1
  letter, size = "-" if bits & sign else "+", bits & ~sign
  if size == INFINITY[kind]: return f"{letter}INF "
  if size == QUIET[kind]: return f"{letter}QNAN "
  if size > INFINITY[kind]: return hex(bits)
  value = to_float(bits, kind)
  return f"{value:.20e}" if abs(value) >= LARGE else f"{value:.20g}"

def parse_float(text: str, kind: str) -> int:
  """Return the bits of a float. An integer in hex is the bits themselves."""
  text = text.strip()
  for name, table in (("INF", INFINITY), ("QNAN", QUIET)):
    if text[1:] == name and text[0] in "+-": return table[kind] | (text[0] == "-") << BITS[kind] - 1
  if re.match(FLOAT, text): return to_bits(float(text), kind)
  return parse_unsigned(text, BITS[kind])

def parse_unsigned(text: str, width: int) -> int:
  """Return an integer of `width` bits. A negative one becomes its complement."""
  value = parse_integer(text)
  if value is None: raise ParseError(f"an integer is expected, got {text}")
  if not -1 << width - 1 <= value < 1 << width: raise ParseError(f"{text} does not fit {width} bits")
  return value & (1 << width) - 1

def parse_signed(text: str, width: int) -> int:
  """Return a signed integer. An integer in hex that fits the unsigned field is the bits of the result."""
  value = parse_unsigned(text, width)
  return value - (1 << width) if value >> width - 1 else value

def show_signed(value: int) -> str:
  """Return text such as -0x10."""
  return f"-{-value:#x}" if value < 0 else f"{value:#x}"
