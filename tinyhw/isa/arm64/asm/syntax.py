"""AArch64 assembly text, in the syntax of LLVM and GNU as.

Example: `fmla v0.4s, v1.4s, v2.s[1]`. `show` prints one form. `parse` accepts more: "#" may be left out, numbers may be
hexadecimal, and the aliases of the manual are known. A jump's target is a distance in bytes, `#8`; in the text of a
function it may be a label, `.name`.
"""
from __future__ import annotations
from typing import Any

from tinyhw.errors import EncodeError, ParseError
from tinyhw.isa.arm64.asm.check import unpredictable
from tinyhw.isa.arm64.asm.decode import decode
from tinyhw.isa.arm64.asm.encode import BYTES, encode, encode_function
from tinyhw.isa.arm64.table.form import Form
from tinyhw.isa.arm64.table.reader import TextReader, Unfit, tokens
from tinyhw.isa.arm64.table.table import TABLE
from tinyhw.machine.ir.assembly import function_of, whole_text
from tinyhw.machine.ir.inst import Function, Inst, MInst
from tinyhw.machine.notation.text import ascii_only, one_of, statements

# other spellings of mnemonics; an immediate of the opposite sign belongs to the other operation
SPELLINGS = {"b.cs": "b.hs", "b.cc": "b.lo", "bc.cs": "bc.hs", "bc.cc": "bc.lo"}
OPPOSITES = {"add": "sub", "sub": "add", "adds": "subs", "subs": "adds", "cmp": "cmn", "cmn": "cmp"}
INVERTED = {"bic": "and", "bics": "ands", "orn": "orr", "eon": "eor"}

def assemble(text: str, arch: str = "arm64") -> bytes:
  """The bytes of one instruction. They do not depend on the processor's level of AArch64."""
  return encode(parse(text))

def disassemble(code: bytes, arch: str = "arm64") -> str:
  """The text of the one instruction that makes up all of the bytes."""
  return whole_text(code, decode, show)

def assemble_function(text: str) -> bytes:
  """The bytes of lines that are instructions, labels (`.name:`), or empty."""
  return encode_function(parse_function(text))[0]

def parse_function(text: str, name: str = "text") -> Function:
  """Parse lines of assembly text to a function over physical registers. A label starts a block. Errors have the number
  of the line."""
  # "#" begins an immediate here, not a comment
  return function_of(statements(line.replace("#", "") for line in text.splitlines()), parse, name)

def show(inst: MInst) -> str:
  """The text of an instruction. Virtual registers and blocks have the same text as elsewhere."""
  form: Form = inst.row.isa
  text = form.template.show([form.values(inst.operands, k) for k in range(len(form.holes))])
  return f"{form.mnemonic} {text}" if text else form.mnemonic

def parse(text: str) -> MInst:
  """Parse one line of text to an instruction. A block operand may be a name (`.name`), which is left unchanged.

  Raises ParseError with the operand and what fits there.
  """
  mnemonic, _, rest = ascii_only(text).strip().lower().partition(" ")
  if not mnemonic: raise ParseError("an instruction is expected")
  mnemonic = SPELLINGS.get(mnemonic, mnemonic)
  if mnemonic not in TABLE: raise ParseError(f"no instruction is called {mnemonic}{suggestion(mnemonic)}")
  try: return chosen(mnemonic, rest)
  except Unfit as error:
    other = opposite(mnemonic, rest)
    if other is not None: return other
    raise ParseError(f"{mnemonic}: {error.message}") from None

def chosen(mnemonic: str, rest: str) -> MInst:
  """The instruction of the first row that takes the text. Raises the Unfit of the row that took the most of it."""
  found = tokens(rest)
  best: Unfit | None = None
  for row in TABLE.rows(mnemonic):
    try: return filled(row, TextReader(found))
    except Unfit as error:
      if best is None or (error.at, error.close) > (best.at, best.close): best = error
      elif (error.at, error.close) == (best.at, best.close): best = merged(best, error)
  assert best is not None, f"{mnemonic} has no row"
  raise best

def filled(row: Inst, reader: TextReader) -> MInst:
  """The instruction of a row from a text. Raises Unfit."""
  form: Form = row.isa
  operands: list[Any] = [value for values in form.template.read(reader) for value in values]
  reason = unpredictable(form, operands)
  if reason: raise Unfit(reason, len(reader.tokens), True)
  return MInst(row, operands)

def merged(first: Unfit, second: Unfit) -> Unfit:
  """The error of two rows that took equally much: what either of them wants."""
  head, _, wanted = first.message.partition(" wants ")
  other = second.message.partition(" wants ")[2]
  if not wanted or not other: return first
  one, _, got = wanted.rpartition(", got ")
  two = other.rpartition(", got ")[0]
  if not one or f" or {two} or " in f" or {one} or " or len(one) > 120: return first
  return Unfit(f"{head} wants {one} or {two}, got {got}", first.at, first.close)

def opposite(mnemonic: str, rest: str) -> MInst | None:
  """add with a negative number is sub, bic with a mask is and with the inverted one; None for others."""
  head, comma, last = rest.rpartition(",")
  if mnemonic in OPPOSITES and "lsl" in last:
    head, comma, before = head.rpartition(",")
    last = f"{before},{last}"
  sign = last.strip().lstrip("#")
  if not comma: return None
  try:
    if mnemonic in OPPOSITES and sign.startswith("-"): return chosen(OPPOSITES[mnemonic], f"{head}, #{sign[1:]}")
    if mnemonic in INVERTED and sign[:1].isdigit() or sign.startswith("-"):
      inverted = ~int(sign, 0) & (1 << (32 if head.strip()[:1] == "w" else 64)) - 1
      return chosen(INVERTED[mnemonic], f"{head}, #{inverted:#x}") if mnemonic in INVERTED else None
  except (Unfit, EncodeError, ValueError): return None
  return None

def suggestion(mnemonic: str) -> str:
  """Mnemonics that begin alike."""
  close = [m for m in TABLE.lines if m[:4] == mnemonic[:4] and abs(len(m) - len(mnemonic)) < 2][:4]
  return f"; did you mean {one_of(close)}?" if close else ""

__all__ = ["BYTES", "assemble", "assemble_function", "disassemble", "parse", "parse_function", "show"]
