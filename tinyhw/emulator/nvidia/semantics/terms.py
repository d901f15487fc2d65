"""Pieces of the notation that the semantics of several instructions share: operands with their signs, truth values,
comparisons.

A name of the notation is the row's name of the operand, in capitals. Uniform instructions have the same names: A is
their operand ua, and PP is qp (`Operands.named`).
"""
from __future__ import annotations

from tinyhw.emulator.errors import UnknownInstruction
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Reg

def is_nothing(o: Operands, name: str) -> bool:
  """Return whether an operand is absent, a discarded result, or a zero."""
  value = o.values.get(o.named(name))
  if not isinstance(value, Reg): return value is None
  return value.index == (regs.TRUE if value.cls.name in ("P", "UP") else regs.ZERO)

def term(o: Operands, name: str, kind: str = "u32", sign: str = "-") -> str:
  """Return an integer source with its sign. sign: "~" if it means that bits are inverted."""
  return f"({sign}{name}.{kind})" if o.flag(f"{o.named(name)}_neg") else f"{name}.{kind}"

# ***** truth values: "True", "False", or text *****

def truth(o: Operands, name: str) -> str:
  """Return a predicate operand."""
  inverted = o.flag(f"{o.named(name)}_not")
  if is_nothing(o, name): return "False" if inverted else "True"
  return f"(not {name}.bool)" if inverted else f"{name}.bool"

def either(a: str, b: str) -> str:
  """Return the disjunction of two truth values."""
  if "True" in (a, b): return "True"
  return b if a == "False" else a if b == "False" else f"({a} or {b})"

def both(a: str, b: str) -> str:
  """Return the conjunction of two truth values."""
  if "False" in (a, b): return "False"
  return b if a == "True" else a if b == "True" else f"({a} and {b})"

def different(a: str, b: str) -> str:
  """Return the exclusive disjunction of a text and a truth value."""
  return a if b == "False" else f"(not {a})" if b == "True" else f"({a} != {b})"

COMBINE = {"AND": both, "OR": either, "XOR": different}

def chosen(test: str, yes: str, no: str) -> str:
  """Return one of two values."""
  return yes if test == "True" else no if test == "False" else f"{yes} if {test} else {no}"

# ***** comparisons *****

SIGNS = {"LT": "<", "EQ": "==", "LE": "<=", "GT": ">", "NE": "!=", "GE": ">="}

def float_comparison(word: str, a: str, b: str) -> str:
  """Return a comparison of floats. With a NaN it is true with U, else false."""
  known = f"({a} == {a} and {b} == {b})"
  if word in ("NUM", "NAN"): return known if word == "NUM" else f"(not {known})"
  sign = SIGNS.get(word.removesuffix("U"))
  if sign is None: raise UnknownInstruction(f"comparison {word} is not supported yet")
  if word.endswith("U"): return f"(not {known} or {a} {sign} {b})"
  return f"({known} and {a} != {b})" if sign == "!=" else f"({a} {sign} {b})"

def compared(o: Operands, found: str) -> str:
  """Return the results of a comparison, each combined with another predicate: PU of it, and PV of its negation."""
  combine, other = COMBINE[o.word("bool")], truth(o, "PP")
  results = [f"{target}.bool = {combine(text, other)}" for target, text in (("PU", "t"), ("PV", "(not t)"))
             if not is_nothing(o, target)]
  return "; ".join([f"t = {found}", *results])
