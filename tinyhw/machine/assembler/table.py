"""A table of instructions that are words of 32 bits: rows as lines of text, made at first use.

A line has an instruction word as the manual draws it, and the operands as the assembler writes them:

    sub   F1001011000mmmmm000000nnnnnddddd   Rd=, Rn, Rm    w x

Columns are separated by two spaces: mnemonic, word, operands ("-" for none), variants, properties. `@` sets pipe,
feature and properties of the lines that follow. `[su]max` is two mnemonics, smax and umax. M of the word is the number
of the letter, in two bits where there are four. A second choice has N. 0 and 1 of the word are fixed, a lower case
letter is a field, blanks are for the eye. template.py has the notation of operands. The ISA has the variants.

Properties: load, store, jump, end, call, barrier, rf, wf (flags read, written), alias and unseen (form.py), `@feature`,
`pipe:name`, and those of the ISA.
"""
from __future__ import annotations
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tinyhw.machine.assembler.form import Check, WordForm
from tinyhw.machine.assembler.template import Notation, template_of
from tinyhw.machine.ir.inst import Access, Effect, Inst, Operand
from tinyhw.threads import once

EFFECTS = {"load": Effect.LOAD, "store": Effect.STORE, "jump": Effect.JUMP, "end": Effect.END, "call": Effect.CALL,
           "barrier": Effect.BARRIER, "rf": Effect.READ_FLAGS, "wf": Effect.WRITE_FLAGS}

CHOICE = re.compile(r"\[([a-z]+)\]")

def spelled_out(line: str) -> Iterator[str]:
  """The lines that a line stands for: one for each letter of a choice in its mnemonic."""
  if line[0] != "[" and "[" not in line.split(" ", 1)[0]:
    yield line
    return
  mnemonic, word, rest = re.split(r"  +", line + "  ", maxsplit=2)
  choices = [found[1] for found in CHOICE.finditer(mnemonic)]
  for letters in itertools.product(*choices):
    name, bits = mnemonic, word
    for capital, letter, choice in zip("MN", letters, choices):
      number = format(choice.index(letter), f"0{bits.count(capital)}b")
      name, bits = CHOICE.sub(letter, name, count=1), run_replaced(bits, capital, number)
    yield f"{name}  {bits}  {rest}".rstrip()

class RowLine:
  """A line of the table."""
  __slots__ = ("mnemonic", "word", "operands", "variants", "words", "pipe", "feature")

  def __init__(self, text: str, pipe: str, feature: str, common: tuple[str, ...]):
    columns = [column.strip() for column in re.split(r"  +", text.strip())]
    columns += ["-"] * (4 - len(columns))
    self.mnemonic, self.word = columns[0], columns[1].replace(" ", "")
    self.operands = "" if columns[2] == "-" else columns[2]
    self.variants = () if columns[3] == "-" else tuple(columns[3].split())
    self.words = (*common, *(columns[4].split() if len(columns) > 4 else ()))
    self.pipe, self.feature = pipe, feature
    for word in self.words:
      if word[0] == "@": self.feature = word[1:]
      if word.startswith("pipe:"): self.pipe = word[5:]
    assert len(self.word) == 32, f"{text}: the word has {len(self.word)} bits"

def run_replaced(word: str, capital: str, bits: str) -> str:
  """The word with the places of a capital, in order, taken by these bits."""
  assert word.count(capital) == len(bits), f"{word}: {capital} has {word.count(capital)} places for {bits}"
  rest = iter(bits)
  return "".join(next(rest) if c == capital else c for c in word)

def make_row(line: RowLine, word: str, text: str, notation: Notation, feature: str = "",
             check: Check | None = None) -> Inst:
  """A row from a word and operands of a variant."""
  fields: dict[str, list[int]] = {}
  for at, c in enumerate(word):
    if c not in "01": fields.setdefault(c, []).append(31 - at)
  form = WordForm(line.mnemonic, text, word, fields, template_of(text, {c: len(places) for c, places in fields.items()},
                                                                  notation), line.words, check)
  operands = []
  for hole in form.holes:
    for name in hole.names: operands.append(operand(name, hole.access, hole.cls, hole.fixed, hole.early))
  effects = 0
  for word_ in line.words: effects |= EFFECTS.get(word_, 0)
  row = Inst(line.mnemonic, word, tuple(operands), line.pipe, effects, feature or line.feature, form)
  form.row = row
  return row

@once
def operand(name: str, access: Access, cls: Any, fixed: int | None, early: bool) -> Operand:
  """An Operand. Equal ones are one object."""
  return Operand(name, access, cls, "reg" if cls is not None else "imm", fixed=fixed, early=early)

class Table:
  """Rows by mnemonic. The text is split when the table is made, a row is made at first use.

  rows_of: the rows of a line, one for each variant.
  """

  def __init__(self, texts: Iterable[str], rows_of: Callable[[RowLine], Iterator[Inst]]):
    self.rows_of = rows_of
    self.lines: dict[str, list[RowLine]] = {}
    self.made: dict[str, list[Inst]] = {}
    pipe, feature, common = "", "", ()  # type: str, str, tuple[str, ...]
    for rows in texts:
      for line in rows.split("\n"):
        if not line or line.isspace(): continue
        if line[0] == "@":
          pipe, feature, *words = line[1:].split()
          common = tuple(words)
          continue
        for text in spelled_out(line):
          one = RowLine(text, pipe, feature, common)
          self.lines.setdefault(one.mnemonic, []).append(one)

  def rows(self, mnemonic: str) -> list[Inst]:
    """The rows of a mnemonic, in the order of the text; empty if there is none."""
    found = self.made.get(mnemonic)
    if found is None:
      rows = [row for line in self.lines.get(mnemonic, ()) for row in self.rows_of(line)]
      found = self.made.setdefault(mnemonic, rows)
    return found

  def __contains__(self, mnemonic: str) -> bool: return mnemonic in self.lines

  def __iter__(self) -> Iterator[Inst]:
    """Every row; makes them all."""
    for mnemonic in self.lines: yield from self.rows(mnemonic)
