"""Semantics of integer, logic, selection and predicate instructions: functions from the operands of an instruction to
its effect on a warp.

Source: PTX ISA, whose instructions compile to them. Truth tables have source a in bits 0xf0, b in 0xcc, c in 0xaa.
"""
from __future__ import annotations
import operator
from collections.abc import Callable
from typing import Any

from tinyhw.emulator.nvidia.execute.operands import Operands, Source
from tinyhw.emulator.nvidia.execute.state import ALL, Warp
from tinyhw.emulator.nvidia.semantics.numbers import LONG, WORD, signed

Step = Callable[[Warp, int], None]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
  "LT": operator.lt, "EQ": operator.eq, "LE": operator.le, "GT": operator.gt, "NE": operator.ne, "GE": operator.ge,
  "F": lambda a, b: False, "T": lambda a, b: True}
COMBINE: dict[str, Callable[[int, int], int]] = {"AND": operator.and_, "OR": operator.or_, "XOR": operator.xor}

def mask_of(truths: list[bool]) -> int:
  """Return booleans of lanes as a mask."""
  return sum(1 << lane for lane, truth in enumerate(truths) if truth)

def elementwise(o: Operands, function: Callable[..., Any], *names: str, kind: str = "u", result: str = "") -> Step:
  """Return d = function of sources, lane by lane."""
  sources, put = [o.source(name, kind) for name in names], o.sink("d", result or kind)
  if len(sources) == 1:
    only = sources[0]
    return lambda warp, mask: put(warp, [function(x) for x in only(warp)], mask)
  return lambda warp, mask: put(warp, list(map(function, *[read(warp) for read in sources])), mask)

# ***** sums and products *****

def addend(o: Operands, name: str) -> Source:
  """Return a term of a sum. For carries, minus x is ~x + 1, where 0 has a carry."""
  negative = o.flag(f"{name}_neg")
  read = o.raw(name, "u")
  return (lambda warp: [(x ^ WORD) + 1 for x in read(warp)]) if negative else read

def iadd3(o: Operands) -> Step:
  exact = o.has("pp")  # IADD3.X: of a longer sum, all but the lowest words
  sources = [o.source(name, "u", inverse=True) if exact else addend(o, name) for name in "abc"]
  carries = [o.predicate(name) for name in ("pp", "pq")] if exact else []
  put, first, second = o.sink("d"), o.sink("pu", "p"), o.sink("pv", "p")
  def run(warp: Warp, mask: int) -> None:
    totals = list(map(sum, zip(*[read(warp) for read in sources])))
    for read in carries:
      carry = read(warp)
      totals = [total + (carry >> lane & 1) for lane, total in enumerate(totals)]
    put(warp, totals, mask)
    first(warp, mask_of([total >> 32 >= 1 for total in totals]), mask)
    second(warp, mask_of([total >> 32 >= 2 for total in totals]), mask)
  return run

def imad(o: Operands) -> Step:
  o.word("u32")
  return elementwise(o, lambda a, b, c: a * b + c, "a", "b", "c")

def imad_wide(o: Operands) -> Step:
  kind = "u" if o.word("u32") else "s"
  negative = o.flag("c_neg")
  sources, addition, put, carry = [o.source(name, kind)
                                   for name in "ab"], o.raw("c", "q"), o.sink("d", "q"), o.sink("pu", "p")
  def run(warp: Warp, mask: int) -> None:
    c = [(x ^ LONG) + 1 for x in addition(warp)] if negative else addition(warp)
    totals = [(a * b & LONG) + c for a, b, c in zip(sources[0](warp), sources[1](warp), c)]
    put(warp, totals, mask)
    carry(warp, mask_of([total > LONG for total in totals]), mask)
  return run

# ***** logic and shifts *****

def from_table(lut: int, a: int, b: int, c: int, ones: int) -> int:
  """Apply a truth table bitwise."""
  found = 0
  for k in range(8):
    if lut >> k & 1: found |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
  return found & ones

def lop3(o: Operands) -> Step:
  lut = o.number("lut")
  sources, put, truth, other = [o.source(name) for name in "abc"], o.sink("d"), o.sink("pu", "p"), o.predicate("pp")
  def run(warp: Warp, mask: int) -> None:
    found = [from_table(lut, a, b, c, WORD) for a, b, c in zip(*[read(warp) for read in sources])]
    put(warp, found, mask)
    truth(warp, mask_of([bool(x) for x in found]) | other(warp), mask)
  return run

def plop3(o: Operands) -> Step:
  luts, sinks = (o.number("lut"), o.number("lut2")), (o.sink("pu", "p"), o.sink("pv", "p"))
  sources = [o.predicate(name) for name in ("pp", "pq", "pr")]
  def run(warp: Warp, mask: int) -> None:
    a, b, c = (read(warp) for read in sources)
    for put, lut in zip(sinks, luts): put(warp, from_table(lut, a, b, c, ALL), mask)
  return run

def shift_of(o: Operands) -> Callable[[int, int, int], int]:
  """Return a shift of the 64 bits c:a. Amounts are clamped to the width of the type, unless they wrap."""
  left, kind, high = o.word("dir") == "L", o.word("shf"), o.word("hi") == "HI"
  width, wraps = int(kind[1:]), o.word("wrap") == "W"
  def shift(a: int, n: int, c: int) -> int:
    n = n & width - 1 if wraps else min(n, width)
    whole = c << 32 | a
    if left: return (whole << n) >> 32 if high else a << n
    if kind[0] == "S": whole = signed(whole, 64)
    return whole >> n >> 32 if high else whole >> n
  return shift

def prmt(o: Operands) -> Step:
  """PRMT: select bytes of b:a (the text has the selector between them) by four digits. A digit of 8 and more copies the
  sign.
  """
  assert o.word("prmt") == "", "only the mode without a name is known"
  def choose(a: int, selector: int, c: int) -> int:
    source, found = c << 32 | a, 0
    for k in range(4):
      digit = selector >> 4 * k & 15
      byte = source >> 8 * (digit & 7) & 255
      found |= ((255 if byte & 128 else 0) if digit & 8 else byte) << 8 * k
    return found
  return elementwise(o, choose, "a", "b", "c")

def sgxt(o: Operands) -> Step:
  unsigned = o.word("sgxt") == "U32"
  def extend(a: int, n: int) -> int:
    n = min(n, 32)
    x = a & (1 << n) - 1
    return x if unsigned or not n else signed(x, n)
  return elementwise(o, extend, "a", "b")

# ***** selections *****

def sel(o: Operands) -> Step:
  first, second, choice, put = o.source("a"), o.source("b"), o.predicate("pp"), o.sink("d")
  def run(warp: Warp, mask: int) -> None:
    chosen = choice(warp)
    put(warp, [a if chosen >> lane & 1 else b for lane, (a, b) in enumerate(zip(first(warp), second(warp)))], mask)
  return run

def minimum_or_maximum(o: Operands) -> Step:
  kind = "u" if o.word("u32") else "s"
  first, second, least, put = o.source("a", kind), o.source("b", kind), o.predicate("pp"), o.sink("d")
  def run(warp: Warp, mask: int) -> None:
    lowest = least(warp)
    put(warp, [(min if lowest >> lane & 1 else max)(a, b)
               for lane, (a, b) in enumerate(zip(first(warp), second(warp)))], mask)
  return run

def compared(o: Operands, test: Callable[[Warp], int]) -> Step:
  """Write the results of a comparison: pu = result op pp, pv = not result op pp."""
  combine, other, first, second = COMBINE[o.word("bool")], o.predicate("pp"), o.sink("pu", "p"), o.sink("pv", "p")
  def run(warp: Warp, mask: int) -> None:
    truth, with_this = test(warp), other(warp)
    first(warp, combine(truth, with_this), mask)
    second(warp, combine(~truth & ALL, with_this), mask)
  return run

def isetp(o: Operands) -> Step:
  kind, compare = "u" if o.word("u32") else "s", COMPARE[o.word("icmp")]
  first, second = o.source("a", kind), o.source("b", kind)
  if not o.has("pr"): return compared(o, lambda warp: mask_of(list(map(compare, first(warp), second(warp)))))
  lower = o.predicate("pr")
  def test(warp: Warp) -> int:
    below, a, b = lower(warp), first(warp), second(warp)
    return mask_of([bool(below >> lane & 1) if x == y else compare(x, y) for lane, (x, y) in enumerate(zip(a, b))])
  return compared(o, test)

SEMANTICS: dict[str, Callable[[Operands], Step]] = {
  "IADD3": iadd3, "IADD3.X": iadd3, "IMAD": imad, "IMAD.WIDE": imad_wide, "LOP3.LUT": lop3, "PLOP3.LUT": plop3,
  "PRMT": prmt,
  "SHF": lambda o: elementwise(o, shift_of(o), "a", "b", "c"),
  "SGXT": sgxt,
  "SEL": sel, "IMNMX": minimum_or_maximum, "VIMNMX": minimum_or_maximum, "ISETP": isetp, "ISETP.EX": isetp,
  "MOV": lambda o: elementwise(o, lambda b: b, "b"),
}
