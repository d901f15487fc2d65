"""Semantics of float instructions and of conversions.

Rounding is to nearest, and denormals are kept. Other modifiers are refused (operands.py).
"""
from __future__ import annotations
import math
from collections.abc import Callable
from typing import Any

from tinyhw.arithmetic import (
  CODED, decode_float16, encode_bfloat16, encode_float16, fused_float32, fused_float64, int_to_float32, truncate_float)
from tinyhw.dtype import FLOAT_FORMATS, decode_float, dtypes
from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.execute.operands import Operands
from tinyhw.emulator.nvidia.execute.state import Warp
from tinyhw.emulator.nvidia.semantics.approximate import FUNCTIONS
from tinyhw.emulator.nvidia.semantics.integer import COMPARE, Step, compared, elementwise, mask_of
from tinyhw.emulator.nvidia.semantics.numbers import float_of, to_integer
from tinyhw.isa.sass.table import regs

FP8 = dict(zip(("E4M3", "E5M2"), dtypes.fp8_ocp))

def float_compare(word: str) -> Callable[[float, float], bool]:
  """Return a comparison by its name. With a NaN it is true with U, else false."""
  if word in ("NUM", "NAN"): return lambda a, b: (a == a and b == b) is (word == "NUM")
  if word in ("F", "T", "MIN", "MAX"): raise UnknownInstruction(f"comparison {word} has no meaning here yet")
  unordered, compare = word[-1] == "U", COMPARE[word.removesuffix("U")]
  if unordered: return lambda a, b: a != a or b != b or compare(a, b)
  return lambda a, b: a == a and b == b and compare(a, b)

def setp(kind: str, modifier: str) -> Callable[[Operands], Step]:
  def semantics(o: Operands) -> Step:
    compare, first = float_compare(o.word(modifier)), o.source("a", kind)
    second = o.source("b", kind)
    return compared(o, lambda warp: mask_of(list(map(compare, first(warp), second(warp)))))
  return semantics

def product(a: float, b: float) -> float: return a * b

def fadd(o: Operands) -> Step: return elementwise(o, lambda a, b: a + b, "a", "b", kind="f")
def fmul(o: Operands) -> Step: return elementwise(o, product, "a", "b", kind="f")
def ffma(o: Operands) -> Step: return elementwise(o, fused_float32, "a", "b", "c", kind="f")
def dadd(o: Operands) -> Step: return elementwise(o, lambda a, b: a + b, "a", "c", kind="d")
def dmul(o: Operands) -> Step: return elementwise(o, product, "a", "b", kind="d")
def dfma(o: Operands) -> Step: return elementwise(o, fused_float64, "a", "b", "c", kind="d")

def larger_or_smaller(a: float, b: float, smaller: bool, keeps: bool) -> float:
  """Return the larger or smaller of two numbers. -0 is less than 0. keeps: with one NaN the result is the NaN, else the
  number.
  """
  if (a != a or b != b) and keeps or a != a and b != b: return math.nan
  if a != a or b != b: return b if a != a else a
  return a if ((a, math.copysign(1, a)) < (b, math.copysign(1, b))) is smaller else b

def fmnmx(o: Operands) -> Step:
  """Return the smaller number where pp is true, else the larger. With NAN a NaN is the result, without it the number
  is.
  """
  keeps, first, second = o.word("nan") == "NAN", o.source("a", "f"), o.source("b", "f")
  least, put = o.predicate("pp"), o.sink("d", "f")
  def run(warp: Warp, mask: int) -> None:
    lowest = least(warp)
    put(warp, [larger_or_smaller(a, b, bool(lowest >> lane & 1), keeps)
               for lane, (a, b) in enumerate(zip(first(warp), second(warp)))], mask)
  return run

# ***** conversions *****

def mufu(o: Operands) -> Step:
  name = o.word("mufu") or o.word("mufu64")
  if name not in FUNCTIONS: raise UnknownInstruction(f"MUFU.{name} has no meaning here yet")
  return elementwise(o, FUNCTIONS[name], "b")

INTEGERS = {"": (32, True), "U32": (32, False), "S64": (64, True), "U64": (64, False),
            **{f"{letter}{bits}": (bits, letter == "S")
             for letter in "US" for bits in (8, 16)}}

def limits(word: str) -> tuple[int, int]:
  bits, is_signed = INTEGERS[word]
  return (-1 << bits - 1, (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)

def float_to_integer(modifier: str, kind: str, result: str) -> Callable[[Operands], Step]:
  """F2I: truncated, saturated, NaN gives 0. kind: of the source, "" if a modifier gives it."""
  def semantics(o: Operands) -> Step:
    source = kind or {"": "f", "F64": "d"}.get(o.word("ffrom") or o.word("ffrom88"), "")
    if not source: raise UnknownInstruction("F2I from this type has no meaning here yet")
    low, high = limits(o.word(modifier))
    if o.word("toward") != "TRUNC": raise UnknownInstruction("F2I without TRUNC has no meaning here yet")
    o.word("ntz")
    return elementwise(o, lambda x: to_integer(x, low, high), "b", kind=source, result=result)
  return semantics

def integer_to_float(modifier: str, result: str) -> Callable[[Operands], Step]:
  """I2F, rounded once."""
  def semantics(o: Operands) -> Step:
    bits, is_signed = INTEGERS[o.word(modifier)]
    if bits < 32: raise UnknownInstruction("I2F of narrow integers has no meaning here yet")
    kind = {(32, True): "s", (32, False): "u", (64, True): "sq", (64, False): "q"}[bits, is_signed]
    return elementwise(o, int_to_float32 if result == "f" else float, "b", kind=kind, result=result)
  return semantics

def widen(o: Operands) -> Step:
  if (o.word("f2f8") or o.word("f2f32")) != "F32":
    raise UnknownInstruction("F2F.F64 of other types than F32 has no meaning here yet")
  return elementwise(o, lambda x: x, "b", kind="f", result="d")

def narrow(o: Operands) -> Step:
  for name in ("f2f", "f2f88"):
    if o.has(name) and o.word(name) != "F32":
      raise UnknownInstruction("F2F to other types than F32 has no meaning here yet")
  return elementwise(o, lambda x: x, "b", kind="d", result="f")

def truncated(kind: str) -> Callable[[Operands], Step]:
  def semantics(o: Operands) -> Step:
    if o.word("toward") != "TRUNC": raise UnknownInstruction("FRND without TRUNC has no meaning here yet")
    return elementwise(o, truncate_float, "b", kind=kind)
  return semantics

def pack_halves(o: Operands) -> Step:
  """F2FP: b in the low half, a in the high half."""
  narrow_type = o.word("f2to") or o.word("f2bf")
  encode = encode_bfloat16 if narrow_type == "BF16" else encode_float16
  return elementwise(o, lambda a, b: encode(float_of(a)) << 16 | encode(float_of(b)), "a", "b")

def unpack_bytes(o: Operands) -> Step:
  """F2FP.UNPACK_B: two 8-bit floats as halves, which hold all of their values. A NaN is 0x7fff."""
  decode, high = CODED[FP8[o.word("fp8")]][0], o.word("h1hi") == "H1"
  if o.word("f2relu") or o.word("f2to") != "F16":
    raise UnknownInstruction("F2FP.UNPACK_B has a meaning for F16 without RELU only")
  halves = [0x7fff if number != number else encode_float16(number) for number in map(decode, range(256))]
  return elementwise(o, lambda x: halves[x >> 24 if high else x >> 8 & 0xff] << 16
                     | halves[x >> 16 & 0xff if high else x & 0xff], "b")

def pack_bytes(o: Operands) -> Step:
  """F2FP.PACK_AB_MERGE_C: b in the lowest byte, a in the next one.

  Too large a number becomes the largest number. A NaN is 0x7f.
  """
  dtype = FP8[o.word("fp8to")]
  if o.word("satfinite") != "SATFINITE" or o.values["c"] is not regs.RZ:
    raise UnknownInstruction("F2FP.PACK_AB_MERGE_C without SATFINITE or with a third source has no meaning here yet")
  largest = decode_float(FLOAT_FORMATS[dtype].largest_code, dtype)
  def code(word: int) -> int:
    x = float_of(word)
    return 0x7f if x != x else CODED[dtype][1](min(max(x, -largest), largest))
  return elementwise(o, lambda a, b: code(a) << 8 | code(b), "a", "b")

def half_to_float(o: Operands) -> Step:
  """HADD2.F32: add a half of each operand, as float32."""
  def term(name: str) -> Any:
    high = o.word(f"half_{name}") == "H1_H1"
    negative, absolute, read = o.flag(f"{name}_neg"), o.flag(f"{name}_abs"), o.raw(name, "u")
    def numbers(warp: Any) -> list[float]:
      found = [decode_float16(x >> 16 if high else x & 0xffff) for x in read(warp)]
      if absolute: found = [abs(x) for x in found]
      return [-x for x in found] if negative else found
    return numbers
  first, second, put = term("a"), term("b"), o.sink("d", "f")
  return lambda warp, mask: put(warp, [a + b for a, b in zip(first(warp), second(warp))], mask)

SEMANTICS: dict[str, Callable[[Operands], Step]] = {
  "FADD": fadd, "FMUL": fmul, "FFMA": ffma, "FMNMX": fmnmx, "DADD": dadd, "DMUL": dmul, "DFMA": dfma,
  "FSETP": setp("f", "fcmp"), "DSETP": setp("d", "dcmp"),
  "MUFU": mufu, "MUFU.64H": mufu, "FRND": truncated("f"), "FRND.F64": truncated("d"),
  "F2I": float_to_integer("f2i", "f", "u"), "F2I.F64": float_to_integer("f2i", "d", "u"),
  "F2I.S64": float_to_integer("f2i64", "", "q"),
  "I2F": integer_to_float("ifrom", "f"), "I2F.F64": integer_to_float("ifrom", "d"),
  "I2F.S64": integer_to_float("ifrom64", "f"),
  "I2F.F64.S64": integer_to_float("ifrom64", "d"),
  "F2F.F64": widen, "F2F": narrow, "F2FP": pack_halves, "F2FP.UNPACK": unpack_bytes, "F2FP.PACK8": pack_bytes,
  "HADD2.F32": half_to_float,
}
