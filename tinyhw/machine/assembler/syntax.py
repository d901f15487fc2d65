"""The assembler of an ISA whose instructions are words of 32 bits: text to instructions to bytes, and back.

`show` prints one form. `parse` accepts the other spellings of the rows, and those that the ISA adds. A jump's target is
a distance in bytes; in the text of a function it may be a label, `.name`.
"""
from __future__ import annotations
from collections.abc import Callable, Mapping
from typing import Any

from tinyhw.errors import ParseError
from tinyhw.machine.assembler import decode, encode
from tinyhw.machine.assembler.form import WordForm
from tinyhw.machine.assembler.reader import TextReader, TextMismatch, tokens
from tinyhw.machine.assembler.table import Table
from tinyhw.machine.ir.assembly import function_of, whole_text
from tinyhw.machine.ir.inst import Function, Inst, MInst
from tinyhw.machine.notation.text import ascii_only, one_of, statements

class WordAssembler:
  """The assembler of a table.

  - spellings: other names of mnemonics.
  - other: an instruction for a mnemonic and operands that no row takes, or None.
  - hashes: "#" begins an immediate, not a comment.
  """

  def __init__(self, table: Table, spellings: Mapping[str, str] | None = None,
               other: Callable[[str, str], MInst | None] | None = None, hashes: bool = False):
    self.table, self.spellings, self.other, self.hashes = table, spellings or {}, other, hashes

  # ---- bytes

  def decode(self, code: bytes, offset: int = 0) -> tuple[MInst, int]:
    """The instruction at an offset, and its size, which is 4. Raises DecodeError."""
    return decode.decode(self.table, code, offset)

  def assemble(self, text: str) -> bytes:
    """The bytes of one instruction."""
    return encode.encode(self.parse(text))

  def disassemble(self, code: bytes) -> str:
    """The text of the one instruction that makes up all of the bytes."""
    return whole_text(code, self.decode, show)

  # ---- functions

  def assemble_function(self, text: str) -> bytes:
    """The bytes of lines that are instructions, labels (`.name:`), or empty."""
    return encode.encode_function(self.parse_function(text))[0]

  def parse_function(self, text: str, name: str = "text") -> Function:
    """Parse lines of assembly text to a function over physical registers. A label starts a block. Errors have the
    number of the line."""
    lines = text.splitlines()
    if self.hashes: lines = [line.replace("#", "") for line in lines]
    return function_of(statements(lines), self.parse, name)

  # ---- lines

  def parse(self, text: str) -> MInst:
    """Parse one line of text to an instruction. A block operand may be a name (`.name`), which is left unchanged.

    Raises ParseError with the operand and what fits there.
    """
    mnemonic, _, rest = ascii_only(text).strip().lower().partition(" ")
    if not mnemonic: raise ParseError("an instruction is expected")
    mnemonic = self.spellings.get(mnemonic, mnemonic)
    if mnemonic not in self.table: raise ParseError(f"no instruction is called {mnemonic}{self.suggestion(mnemonic)}")
    try: return self.chosen(mnemonic, rest)
    except TextMismatch as error:
      found = self.other(mnemonic, rest) if self.other is not None else None
      if found is not None: return found
      raise ParseError(f"{mnemonic}: {error.message}") from None

  def chosen(self, mnemonic: str, rest: str) -> MInst:
    """The instruction of the first row that takes the text.

    Raises the TextMismatch of the row that took the most of it.
    """
    found = tokens(rest)
    best: TextMismatch | None = None
    for row in self.table.rows(mnemonic):
      try: return filled(row, TextReader(found))
      except TextMismatch as error:
        if best is None or (error.at, error.close) > (best.at, best.close): best = error
        elif (error.at, error.close) == (best.at, best.close): best = merged(best, error)
    assert best is not None, f"{mnemonic} has no row"
    raise best

  def suggestion(self, mnemonic: str) -> str:
    """Mnemonics that begin alike."""
    close = [m for m in self.table.lines if m[:4] == mnemonic[:4] and abs(len(m) - len(mnemonic)) < 2][:4]
    return f"; did you mean {one_of(close)}?" if close else ""

def show(inst: MInst) -> str:
  """The text of an instruction. Virtual registers and blocks have the same text as elsewhere."""
  form: WordForm = inst.row.isa
  text = form.template.show([form.values(inst.operands, k) for k in range(len(form.holes))])
  return f"{form.mnemonic} {text}" if text else form.mnemonic

def filled(row: Inst, reader: TextReader) -> MInst:
  """The instruction of a row from a text. Raises TextMismatch."""
  form: WordForm = row.isa
  operands: list[Any] = [value for values in form.template.read(reader) for value in values]
  reason = form.clash(operands)
  if reason: raise TextMismatch(reason, len(reader.tokens), True)
  return MInst(row, operands)

def merged(first: TextMismatch, second: TextMismatch) -> TextMismatch:
  """The error of two rows that took equally much: what either of them wants."""
  head, _, wanted = first.message.partition(" wants ")
  other = second.message.partition(" wants ")[2]
  if not wanted or not other: return first
  one, _, got = wanted.rpartition(", got ")
  two = other.rpartition(", got ")[0]
  if not one or f" or {two} or " in f" or {one} or " or len(one) > 120: return first
  return TextMismatch(f"{head} wants {one} or {two}, got {got}", first.at, first.close)
