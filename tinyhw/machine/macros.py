"""Macros: several instructions that selection, spilling and allocation treat as one row, and the text in which ISAs write them.

After allocation `expand` puts a macro's own instructions in its place. So its parts stay together, nothing is half written, and what comes between a
writer of flags and their reader is known.

The text. A macro begins in the first column: its name, then its operands: `name class`, "=" writes, ":" reads, "+" reads and writes. Results and
temporary registers (after "|") share no register with the sources. Classes are the ISA's letters. The lines below it are the ISA's, too.
"""
from __future__ import annotations
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tinyhw.machine.inst import Access, Function, MInst

MACRO = "macro"  # the `encoding` of these rows
ACCESS = {"=": Access.WRITE, ":": Access.READ, "+": Access.BOTH}

class Macro(NamedTuple):
  """operands: (name, access, class) in order; the first `shown` of them are what selection gives, the rest temporary registers."""
  name: str
  operands: tuple[tuple[str, Access, str], ...]
  shown: int
  lines: tuple[Any, ...]

def parse_macros(text: str, parse_line: Callable[[str], Any]) -> dict[str, Macro]:
  """The macros of a text, by name."""
  found: dict[str, Macro] = {}
  for block in re.split(r"\n(?=\w)", text.strip()):
    head, *lines = block.split("\n")
    name, *words = head.split()
    assert name not in found, f"macro {name} stands twice in the text"
    shown = words.index("|") if "|" in words else len(words)
    operands = []
    for word in words[:shown] + words[shown + 1:]:
      mark = next(c for c in word if c in ACCESS)
      operand, _, cls = word.partition(mark)
      operands.append((operand, ACCESS[mark], cls))
    found[name] = Macro(name, tuple(operands), shown, tuple(parse_line(line) for line in lines if line.strip()))
  return found

def expand(function: Function, instructions: Callable[[MInst], Iterable[MInst]]) -> Function:
  """Every macro replaced by its instructions, over the registers that it was given."""
  for block in function.blocks:
    if not any(inst.row.encoding is MACRO for inst in block.insts): continue
    insts: list[MInst] = []
    for inst in block.insts:
      if inst.row.encoding is not MACRO:
        insts.append(inst)
        continue
      for made in instructions(inst):
        made.origin, made.comment = inst.origin, made.comment or inst.row.name
        insts.append(made)
    block.insts = insts
  return function
