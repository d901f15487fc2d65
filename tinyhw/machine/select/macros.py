"""Macros: several instructions that selection, spilling and allocation treat as one row, and the text in which ISAs
write them.

After allocation `expand` replaces a macro by its instructions. So its instructions stay contiguous, no result is half
written, and no other instruction comes between a writer of flags and their reader.

The text. A macro begins in the first column: its name, then its operands: `name class`, "=" writes, ":" reads, "+"
reads and writes. Results and temporary registers (after "|") share no register with the sources. The ISA defines the
letters of classes, and the lines below.

A macro may jump to its own end (AFTER). The instructions after the jump are then a block of their own, for rare cases.
"""
from __future__ import annotations
from collections.abc import Callable, Iterable
from typing import Any

from tinyhw.machine.ir.inst import Access, Block, Function, MInst
from tinyhw.machine.notation.lazy import Lazy, blocks_of
from tinyhw.named_tuple import NamedTuple

MACRO = "macro"  # the `encoding` of these rows
ACCESS = {"=": Access.WRITE, ":": Access.READ, "+": Access.BOTH}
AFTER = Block(-1, name="after")  # placeholder in a macro's jump for the block after the macro

class Macro(NamedTuple):
  """operands: (name, access, class) in order. Selection gives the first `shown` of them. The rest are temporary
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
  """Replace every macro by its instructions, over its allocated registers. jump: makes an unconditional jump, for
  macros with AFTER."""
  for block in list(function.blocks):
    if any(inst.row.encoding is MACRO for inst in block.insts): expand_block(function, block, instructions, jump)
  return function

def expand_block(function: Function, block: Block, instructions: Callable[[MInst], Iterable[MInst]],
                 jump: Callable[[Block], MInst] | None) -> None:
  """Expand the macros of a block. If one of them jumps to its own end, the block ends early, and the rest is in new
  blocks."""
  old, block.insts = block.insts, []
  for inst in old:
    if inst.row.encoding is not MACRO:
      block.insts.append(inst)
      continue
    after: Block | None = None
    for made in instructions(inst):
      made.origin, made.comment = inst.origin, made.comment or inst.row.name
      block.insts.append(made)
      if not any([o is AFTER for o in made.operands]): continue
      assert after is None and jump is not None, f"macro {inst.row.name} jumps to its end twice, or nobody can"
      inside = function.new_block(block.depth, "rarely", rare=True)
      after = function.new_block(block.depth, "after", block.rare)
      made.operands = [after if o is AFTER else o for o in made.operands]
      block.insts.append(jump(inside))
      block = inside
    if after is None: continue
    assert jump is not None
    block.insts.append(jump(after))
    block = after
