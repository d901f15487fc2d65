"""Macros: several instructions that selection, spilling and allocation treat as one row, and the text in which ISAs
write them.

After allocation `expand` puts a macro's own instructions in its place. So its parts stay together, nothing is half
written, and what comes between a writer of flags and their reader is known.

The text. A macro begins in the first column: its name, then its operands: `name class`, "=" writes, ":" reads, "+"
reads and writes. Results and temporary registers (after "|") share no register with the sources. Classes are the ISA's
letters. The lines below it are the ISA's, too.

A macro may jump behind itself (BEHIND): what stands after the jump is then a block of its own, for what happens rarely.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable
from typing import Any

from tinyhw.machine.ir.inst import Access, Block, Function, MInst
from tinyhw.machine.notation.lazy import Lazy, blocks_of
from tinyhw.named_tuple import NamedTuple

MACRO = "macro"  # the `encoding` of these rows
ACCESS = {"=": Access.WRITE, ":": Access.READ, "+": Access.BOTH}
BEHIND = Block(-1, name="behind")  # stands in a jump of a macro for the block that goes on behind it

class Macro(NamedTuple):
  """operands: (name, access, class) in order; the first `shown` of them are what selection gives, the rest temporary
  registers."""
  name: str
  operands: tuple[tuple[str, Access, str], ...]
  shown: int
  lines: tuple[Any, ...]

def parse_macros(text: str, parse_line: Callable[[str], Any]) -> Lazy[Macro]:
  """The macros of a text, by name."""
  def parse(block: list[str]) -> Macro:
    name, *words = block[0].split()
    shown = words.index("|") if "|" in words else len(words)
    operands = []
    for word in words[:shown] + words[shown + 1:]:
      mark = next(c for c in word if c in ACCESS)
      operand, _, cls = word.partition(mark)
      operands.append((operand, ACCESS[mark], cls))
    return Macro(name, tuple(operands), shown, tuple(parse_line(line) for line in block[1:]))
  return Lazy(blocks_of(text), parse)

def expand(function: Function, instructions: Callable[[MInst], Iterable[MInst]],
           jump: Callable[[Block], MInst] | None = None) -> Function:
  """Every macro replaced by its instructions, over the registers that it was given. jump: an unconditional one, for
  macros that have BEHIND."""
  for block in list(function.blocks):
    if any(inst.row.encoding is MACRO for inst in block.insts): expand_block(function, block, instructions, jump)
  return function

def expand_block(function: Function, block: Block, instructions: Callable[[MInst], Iterable[MInst]],
                 jump: Callable[[Block], MInst] | None) -> None:
  """The macros of a block, which ends early where one of them jumps behind itself: the rest is in new blocks then."""
  old, block.insts = block.insts, []
  for inst in old:
    if inst.row.encoding is not MACRO:
      block.insts.append(inst)
      continue
    behind: Block | None = None
    for made in instructions(inst):
      made.origin, made.comment = inst.origin, made.comment or inst.row.name
      block.insts.append(made)
      if not any([o is BEHIND for o in made.operands]): continue
      assert behind is None and jump is not None, f"macro {inst.row.name} jumps behind itself twice, or nobody can"
      inside, behind = function.new_block(block.depth, "rarely",
                                          rare=True), function.new_block(block.depth, "after", block.rare)
      made.operands = [behind if o is BEHIND else o for o in made.operands]
      block.insts.append(jump(inside))
      block = inside
    if behind is None: continue
    assert jump is not None
    block.insts.append(jump(behind))
    block = behind
