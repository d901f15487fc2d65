"""Semantics of packed float16 and bfloat16 instructions, in the notation: each half of a word by itself. Each result is
rounded once, to nearest, and denormals are kept. Other modifiers are refused (operands.py)."""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.semantics.terms import COMBINE, both, chosen, float_comparison, is_nothing, truth
from tinyhw.emulator.nvidia.warp.operands import Operands

# bits of the low and the high number of an operand
PLACES = {"": ("[15:0]", "[31:16]"), "H0_H0": ("[15:0]", "[15:0]"), "H1_H1": ("[31:16]", "[31:16]")}
ONE = {"f16": 0x3c00, "bf16": 0x3f80}

def type_of(o: Operands) -> str: return "bf16" if "BF16_V2" in (o.word("bf16"), o.word("bf16c")) else "f16"

def halves(o: Operands, name: str, kind: str, half: str = "") -> list[str]:
  """Return the low and the high number of a source, with its signs. half: the letter of the modifier that selects
  them, if it is not the operand's."""
  letter = name.lower()
  if o.has(f"{letter}_low"): words = [f"{name}_LOW.u32[15:0]", f"{name}_HIGH.u32[15:0]"]
  else: words = [f"{name}.u32{bits}" for bits in PLACES[o.word(f"half_{half or letter}")]]
  absolute, negative = (o.flag(f"{letter}_{sign}") for sign in ("abs", "neg"))
  if absolute: words = [f"({word} & 0x7fff)" for word in words]
  if negative: words = [f"({word} ^ 0x8000)" for word in words]
  return [f"as_{kind}(u16({word}))" for word in words]

def packed(low: str, high: str) -> str: return f"D.u32 = {low} | {high} << 16"

def arithmetic(result: str, *operands: str) -> Callable[[Operands], str]:
  """Make an arithmetic instruction. operands: names of sources, with the letter that selects their halves if it is
  another one."""
  def semantics(o: Operands) -> str:
    kind = type_of(o)
    sources = [halves(o, name[0], kind, name[1:]) for name in operands]
    return packed(*(f"raw_{kind}({result.format(*values)})" for values in zip(*sources)))
  return semantics

def min_or_max(o: Operands) -> str:
  """HMNMX2: the smaller numbers where PP is true, else the larger ones."""
  kind, least = type_of(o), truth(o, "PP")
  smaller, larger = ("minimum", "maximum") if o.word("nan") == "NAN" else ("min_num", "max_num")
  return packed(*(f"raw_{kind}({chosen(least, f'{smaller}({a}, {b})', f'{larger}({a}, {b})')})"
                  for a, b in zip(halves(o, "A", kind), halves(o, "B", kind))))

def comparisons(o: Operands) -> list[str]:
  """Return the comparisons of the low and of the high numbers."""
  kind, word = type_of(o), o.word("fcmp")
  return [float_comparison(word, a, b) for a, b in zip(halves(o, "A", kind), halves(o, "B", kind))]

def mask_or_one(o: Operands) -> str:
  """HSET2: all bits of a half whose comparison, combined with PP, is true; with BF the number 1."""
  yes = ONE[type_of(o)] if o.word("bf") == "BF" else 0xffff
  combine, other = COMBINE[o.word("bool")], truth(o, "PP")
  return packed(*(f"u32({chosen(combine(found, other), f'u32({yes})', 'u32(0)')})" for found in comparisons(o)))

def truths(o: Operands) -> str:
  """HSETP2: the comparison of the low halves, and that of the high ones, each combined with PP. With H_AND the results
  are the conjunction of both, and its negation. Raises UnknownInstruction where PP is combined with the second of
  these: no source says how."""
  combine, other, (low, high) = COMBINE[o.word("bool")], truth(o, "PP"), comparisons(o)
  text = f"tl = {low}; th = {high}"
  if o.word("hand") == "H_AND":
    if not is_nothing(o, "PV") and (o.word("bool"), other) != ("AND", "True"):
      raise UnknownInstruction("HSETP2.H_AND with a second result and another predicate is not supported yet")
    text = f"{text}; tb = {both('tl', 'th')}"
    low, high = "tb", "(not tb)"
  else: low, high = "tl", "th"
  results = [f"{target}.bool = {combine(found, other)}" for target, found in (("PU", low), ("PV", high))
             if not is_nothing(o, target)]
  return "; ".join([text, *results])

def sum_as_float(o: Operands) -> str:
  """HADD2.F32: add one half of each operand, as float32."""
  a, b = (halves(o, name, "f16")[0] for name in "AB")
  return f"D.f32 = f32({a}) + f32({b})"

SEMANTICS: dict[str, str | Callable[[Operands], str]] = {
  "HADD2": arithmetic("{} + {}", "A", "B"), "HMUL2": arithmetic("{} * {}", "A", "B"),
  "HFMA2": arithmetic("fma({}, {}, {})", "A", "B", "Hc"),
  "HMNMX2": min_or_max, "HSET2": mask_or_one, "HSETP2": truths, "HADD2.F32": sum_as_float,
}
