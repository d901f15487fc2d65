"""The data of a row for encoder, decoder and text (`Inst.isa`), of an ISA whose instructions are words of 32 bits."""
from __future__ import annotations
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.machine.assembler.holes import Hole
from tinyhw.machine.assembler.template import Template
from tinyhw.machine.ir.inst import Inst

Check = Callable[["WordForm", Sequence[Any]], str]

class WordForm:
  """An ISA's data of a row.

  - mnemonic, text: the line's, with the operands of its variant.
  - value, mask: the fixed bits of the word.
  - holes: the operands of the text, in order; starts: for each the index of its first operand in the MInst.
  - pieces: for each hole the bits of its field, as (shift in the field, mask, shift in the word).
  - words: the properties of the line. unseen: the decoder prefers another spelling; alias: it prefers this one. Others
    belong to the ISA.
  - check: the reason why operands do not go together, or "". None: all do.
  - state: what the processor must be set to for the instruction, as its ISA writes it; "" if it does not matter.
  - block: the index of the operand that is a block, or -1.
  """
  row: Inst | None = None
  state = ""

  def __init__(self, mnemonic: str, text: str, word: str, fields: dict[str, list[int]], template: Template,
               words: tuple[str, ...], check: Check | None = None):
    self.mnemonic, self.text, self.template, self.words = mnemonic, text, template, words
    self.check = check
    self.value = int("".join(c if c in "01" else "0" for c in word), 2)
    self.mask = int("".join("1" if c in "01" else "0" for c in word), 2)
    self.holes: tuple[Hole, ...] = template.holes
    self.pieces = tuple(pieces_of([place for c in hole.letters for place in fields.get(c, ())]) for hole in self.holes)
    starts, at = [], 0
    for hole in self.holes:
      starts.append(at)
      at += len(hole.names)
    self.starts, self.count = tuple(starts), at
    used = {c for hole in self.holes for c in hole.letters}
    assert used >= set(fields), f"{mnemonic} {text}: no operand has the fields {''.join(sorted(set(fields) - used))}"
    self.block = next((at for at, hole in zip(self.starts, self.holes) if hole.names == ("block",)), -1)

  def clash(self, operands: Sequence[Any]) -> str:
    """The reason why the operands do not go together, or ""."""
    return self.check(self, operands) if self.check is not None else ""

  def values(self, operands: list[Any], hole: int) -> list[Any]:
    """The operands of a hole."""
    start = self.starts[hole]
    return operands[start:start + len(self.holes[hole].names)]

def pieces_of(places: list[int]) -> tuple[tuple[int, int, int], ...]:
  """Runs of bits that are contiguous in the word. places: of a field in the word, its most significant bit first."""
  runs: list[list[int]] = []
  for place in places:
    if runs and runs[-1][-1] == place + 1: runs[-1].append(place)
    else: runs.append([place])
  out, left = [], len(places)
  for run in runs:
    left -= len(run)
    out.append((left, (1 << len(run)) - 1, run[-1]))
  return tuple(out)
