"""Semantics of packed float16 and bfloat16 instructions: each half of a word by itself. Each result is rounded once, to
nearest, and denormals are kept. Other modifiers are refused (operands.py)."""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.arithmetic import decode_bfloat16, decode_float16, encode_bfloat16, encode_float16, fused_to_odd
from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.execute.operands import Operands
from tinyhw.emulator.nvidia.execute.state import ALL, Warp
from tinyhw.emulator.nvidia.semantics.floats import float_compare, larger_or_smaller, product
from tinyhw.emulator.nvidia.semantics.integer import COMBINE, Step, mask_of
from tinyhw.isa.sass.table import regs
from tinyhw.named_tuple import NamedTuple

ONES = 0xffff

class HalfType(NamedTuple):
  """A 16-bit type: its codes as numbers, numbers as the nearest code, and the code of 1."""
  decode: Callable[[int], float]
  encode: Callable[[float], int]
  one: int

FLOAT16, BFLOAT16 = HalfType(decode_float16, encode_float16, 0x3c00), HalfType(decode_bfloat16, encode_bfloat16, 0x3f80)
Pairs = Callable[[Warp], "tuple[list[float], list[float]]"]   # values of all lanes in the low, and in the high half
PLACES = {"": (0, 16), "H0_H0": (0, 0), "H1_H1": (16, 16)}    # bit positions of the low and the high half of an operand

def type_of(o: Operands) -> HalfType: return BFLOAT16 if "BF16_V2" in (o.word("bf16"), o.word("bf16c")) else FLOAT16

def operand(o: Operands, name: str, kind: HalfType, half: str = "") -> Pairs:
  """Return a source with its signs. An immediate has a code for each half. half: the letter of the modifier that
  selects halves."""
  if o.has(f"{name}_low"):
    low, high = (kind.decode(o.number(f"{name}_{which}") & ONES) for which in ("low", "high"))
    return lambda warp: ([low] * len(warp.registers[0]), [high] * len(warp.registers[0]))
  places = PLACES[o.word(f"half_{half or name}")]
  negative, absolute, read = o.flag(f"{name}_neg"), o.flag(f"{name}_abs"), o.raw(name, "u")
  def signed(x: float) -> float:
    if absolute: x = abs(x)
    return -x if negative else x
  def numbers(warp: Warp) -> tuple[list[float], list[float]]:
    words = read(warp)
    low, high = ([signed(kind.decode(x >> place & ONES)) for x in words] for place in places)
    return low, high
  return numbers

def packed(o: Operands, function: Callable[..., float], kind: HalfType, *sources: Pairs) -> Step:
  """Return the rounded results of a function for both halves."""
  put = o.sink("d")
  def run(warp: Warp, mask: int) -> None:
    low, high = zip(*(read(warp) for read in sources))
    put(warp, [kind.encode(a) | kind.encode(b) << 16 for a, b in zip(map(function, *low), map(function, *high))], mask)
  return run

def arithmetic(function: Callable[..., float], *names: str) -> Callable[[Operands], Step]:
  """Make an arithmetic instruction. Doubles hold sums and products of both types, or values that round alike. names: of
  sources, and of the letter that selects their halves."""
  def semantics(o: Operands) -> Step:
    kind = type_of(o)
    return packed(o, function, kind, *[operand(o, name[0], kind, name[-1]) for name in names])
  return semantics

def extreme(o: Operands) -> Step:
  """HMNMX2: the smaller numbers where pp is true, else the larger ones."""
  kind, keeps, least, put = type_of(o), o.word("nan") == "NAN", o.predicate("pp"), o.sink("d")
  first, second = operand(o, "a", kind), operand(o, "b", kind)
  def run(warp: Warp, mask: int) -> None:
    smaller, found = least(warp), []
    for a, b in zip(first(warp), second(warp)):
      found.append([kind.encode(larger_or_smaller(x, y, bool(smaller >> lane & 1), keeps))
                    for lane, (x, y) in enumerate(zip(a, b))])
    put(warp, [low | high << 16 for low, high in zip(*found)], mask)
  return run

def mask_or_one(o: Operands) -> Step:
  """HSET2: all bits of a half whose comparison, combined with pp, is true; with BF the number 1."""
  kind, compare, put = type_of(o), float_compare(o.word("fcmp")), o.sink("d")
  yes = kind.one if o.word("bf") == "BF" else ONES
  combine, other = COMBINE[o.word("bool")], o.predicate("pp")
  first, second = operand(o, "a", kind), operand(o, "b", kind)
  def run(warp: Warp, mask: int) -> None:
    with_this, result = other(warp), [0] * len(warp.registers[0])
    for place, a, b in zip((0, 16), first(warp), second(warp)):
      for lane, (x, y) in enumerate(zip(a, b)):
        if combine(int(compare(x, y)), with_this >> lane & 1) & 1: result[lane] |= yes << place
    put(warp, result, mask)
  return run

def truths(o: Operands) -> Step:
  """HSETP2: the comparison of the low halves, and that of the high ones, each combined with pp. With H_AND the results
  are the conjunction of both, and its negation. Raises UnknownInstruction where pp is combined with the second of
  these: no source says how."""
  kind, compare, whole = type_of(o), float_compare(o.word("fcmp")), o.word("hand") == "H_AND"
  combine, other, first, second = COMBINE[o.word("bool")], o.predicate("pp"), o.sink("pu", "p"), o.sink("pv", "p")
  if whole and o.values["pv"] is not regs.PT and (o.word("bool"), o.values["pp"],
                                                  o.flag("pp_not")) != ("AND", regs.PT, False):
    raise UnknownInstruction("HSETP2.H_AND with a second result and another predicate has no meaning here yet")
  sources = operand(o, "a", kind), operand(o, "b", kind)
  def run(warp: Warp, mask: int) -> None:
    low, high = (mask_of(list(map(compare, a, b))) for a, b in zip(*(read(warp) for read in sources)))
    if whole: low, high = low & high, ~(low & high) & ALL
    with_this = other(warp)
    first(warp, combine(low, with_this), mask)
    second(warp, combine(high, with_this), mask)
  return run

def exact_sum(a: float, b: float) -> float:
  """Return a sum. If a double cannot hold it (of bfloat16 numbers far apart), it is rounded to odd, so that the final
  rounding is correct."""
  return fused_to_odd(a, 1.0, b)

SEMANTICS: dict[str, Callable[[Operands], Step]] = {
  "HADD2": arithmetic(exact_sum, "a", "b"), "HMUL2": arithmetic(product, "a", "b"),
  "HFMA2": arithmetic(fused_to_odd, "a", "b", "hc"),
  "HMNMX2": extreme, "HSET2": mask_or_one, "HSETP2": truths,
}
