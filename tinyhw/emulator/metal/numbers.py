"""Arithmetic of a virtual Apple GPU, as the Python that translate.py makes calls it.

float32 is rounded after each operation, and its subnormal numbers go in and come out as zeros of their sign, as on
Apple's GPUs; loads, stores, choices and as_type keep the bits. Results that C++ leaves undefined are errors: overflow
of signed integers, division by zero, shifts by the width or more, conversions out of range.
"""
from __future__ import annotations
import math
import operator
import struct
from collections.abc import Callable
from typing import Any

from tinyhw.arithmetic import divide, fused_float32, int_to_float32, round_float16, square_root, truncate_float
from tinyhw.emulator.errors import StrictError

SIZES = {"bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8,
         "half": 2, "float": 4}
CODES = {"bool": "B", "char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I", "long": "q",
         "ulong": "Q", "half": "e", "float": "f"}
SIGNED, UNSIGNED = ("char", "short", "int", "long"), ("uchar", "ushort", "uint", "ulong")
INTEGERS = ("bool", *SIGNED, *UNSIGNED)
TINY = 2.0 ** -126     # the smallest normal number of float32

class UndefinedResult(StrictError):
  """A result that C++ leaves undefined."""

def bits_of(name: str) -> int: return 1 if name == "bool" else 8 * SIZES[name]

def range_of(name: str) -> tuple[int, int]:
  """Return the smallest and the largest number of an integer type."""
  bits = bits_of(name)
  return (-1 << bits - 1, (1 << bits - 1) - 1) if name in SIGNED else (0, (1 << bits) - 1)

_float = memoryview(bytearray(4)).cast("f")

def flushed(x: float) -> float:
  """Return a float32 as arithmetic reads it."""
  return x * 0.0 if -TINY < x < TINY else x

def rounded(x: float) -> float:
  """Return a result as a float32."""
  _float[0] = x
  y = _float[0]
  return y * 0.0 if -TINY < y < TINY else y

def wrapped(x: int, bits: int) -> int:
  """Return an integer in the range of a signed type."""
  half = 1 << bits - 1
  return (x + half & (half << 1) - 1) - half

def signed(x: int, bits: int) -> int:
  """Return the result of signed arithmetic."""
  if not -1 << bits - 1 <= x < 1 << bits - 1:
    raise UndefinedResult(f"signed overflow: the result {x} needs more than {bits} bits; compute in an unsigned type")
  return x

def quotient(a: int, b: int, bits: int) -> int:
  """Return a / b, toward zero."""
  if b == 0: raise UndefinedResult(f"division of {a} by zero; test the divisor first")
  return signed(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), bits)

def remainder(a: int, b: int, bits: int) -> int:
  """Return a % b, with the sign of a."""
  return a - b * quotient(a, b, bits)

def shifted(a: int, by: int, bits: int, to_left: bool, is_signed: bool) -> int:
  """Return a << by or a >> by."""
  if not 0 <= by < bits: raise UndefinedResult(f"shift of {bits} bits by {by}; test the amount first")
  if not to_left: return a >> by
  return signed(a << by, bits) if is_signed else a << by & (1 << bits) - 1

def to_integer(x: float, low: int, high: int) -> int:
  """Return a float32 as an integer, toward zero."""
  x = flushed(x)
  if not math.isfinite(x) or not low <= int(x) <= high:
    raise UndefinedResult(f"conversion of {x} to an integer from {low} to {high}; compare first")
  return int(x)

def fma(a: float, b: float, c: float) -> float: return flushed(fused_float32(flushed(a), flushed(b), flushed(c)))
def root(x: float) -> float: return rounded(square_root(flushed(x)))
def truncated(x: float) -> float: return truncate_float(flushed(x))
def quotient_of_floats(a: float, b: float) -> float: return divide(a, b)
def from_long(x: int) -> float: return int_to_float32(x)
def to_half(x: float) -> float: return round_float16(flushed(x))

def same_bits(source: str, count: int, target: str, other: int) -> Callable[[Any], Any]:
  """Return as_type between types of equal size. count, other: lanes of source and target."""
  before, after = struct.Struct(f"<{count}{CODES[source]}"), struct.Struct(f"<{other}{CODES[target]}")
  def convert(x: Any) -> Any:
    found = after.unpack(before.pack(*x) if count > 1 else before.pack(x))
    return found if other > 1 else found[0]
  return convert

_INFIX: dict[str, Callable[[Any, Any], Any]] = {
  "+": operator.add, "-": operator.sub, "*": operator.mul, "/": quotient_of_floats, "&": operator.and_,
  "|": operator.or_, "^": operator.xor}

def of_vectors(sign: str, name: str) -> Callable[[Any, Any], tuple[Any, ...]]:
  """Return an operation on vectors of a type. Integers wrap where they are unsigned, and must not overflow else."""
  f, bits = _INFIX[sign], bits_of(name)
  def of_lane(a: Any, b: Any) -> Any:
    if name == "float": return rounded(f(flushed(a), flushed(b)))
    return f(a, b) & (1 << bits) - 1 if name in UNSIGNED else signed(f(a, b), bits)
  return lambda a, b: tuple(map(of_lane, a, b))
