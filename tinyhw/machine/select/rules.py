"""Rules of selection: rows of assembly for an operation of a type.

    ADD     int     b:add    add R%d, R%a, #{b}
    MULACC  float            fmadd F%d, F%a, F%b, F%c

Columns are separated by two spaces: operation, types, conditions, lines separated by ";". The first rule whose
conditions hold is taken. `%a` `%b` `%c` are the sources, `%d` is the result, other names are temporary registers.
`%d:c` is a register that is read as c and written as d. The ISA defines other capitals, and its conditions. A condition
`b:name` is that the second source is a constant of a certain kind, {b} in the lines. Two letters s or u are the signs
of the factors' bytes.
"""
from __future__ import annotations
import re

from tinyhw.dtype import DType, dtypes
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops

SINTS, UINTS = tuple(dtypes.sints), tuple(dtypes.uints)
FLOATS = (dtypes.float32, dtypes.float64)
def _small(types: tuple[DType, ...]) -> tuple[DType, ...]: return tuple(t for t in types if t.itemsize < 8)
def _wide(types: tuple[DType, ...]) -> tuple[DType, ...]: return tuple(t for t in types if t.itemsize >= 4)

TYPES: dict[str, tuple[DType, ...]] = {
  "int": SINTS + UINTS, "sint": SINTS, "uint": UINTS, "float": FLOATS, "bool": (dtypes.bool,),
  "word": (dtypes.int32,), "single": (dtypes.float32,),
  "small": _small(SINTS + UINTS), "ssmall": _small(SINTS), "usmall": _small(UINTS),
  "wide": _wide(SINTS + UINTS), "swide": _wide(SINTS), "uwide": _wide(UINTS)}

class SelectionRule(NamedTuple):
  """A row: the condition on a constant, element or conversion, the signs of the bytes, and the lines."""
  condition: str
  signs: str
  lines: tuple[str, ...]

Rules = dict[tuple[Ops, DType], list[SelectionRule]]

def parse(text: str) -> Rules:
  """The rules of a table, by operation and type, best first."""
  rules: Rules = {}
  for row in filter(None, text.split("\n")):
    name, types, *rest = re.split(r"  +", row)
    words, code = rest if len(rest) == 2 else ("", rest[0])
    condition = next((word for word in words.split() if word.startswith("b:") or word == "halves"), "")
    signs = next((word for word in words.split() if word in SIGNS), "")
    rule = SelectionRule(condition, signs, tuple(line.strip() for line in code.split(";")))
    for dtype in TYPES[types]: rules.setdefault((Ops[name], dtype), []).append(rule)
  return rules

SIGNS = ("ss", "uu", "us", "su")

def family(dtype: DType) -> str:
  """The kind of comparison for a type: "float", "sint" or "uint"."""
  if dtype.scalar() in FLOATS: return "float"
  return "sint" if dtype.scalar() in dtypes.sints else "uint"

def right_shift(value: int, bits: int) -> int | None: return value if 0 < value <= bits else None
def left_shift(value: int, bits: int) -> int | None: return value if 0 <= value < bits else None

def power_of_two(value: int, bits: int) -> int | None:
  """The exponent of a power of two."""
  return value.bit_length() - 1 if value > 0 and not value & value - 1 else None
