"""AArch64 assembly text, in the syntax of LLVM and GNU as.

Example: `fmla v0.4s, v1.4s, v2.s[1]`. `show` prints one form. `parse` accepts more: "#" may be left out, numbers may be
hexadecimal, and the aliases of the manual are known. A jump's target is a distance in bytes, `#8`; in the text of a
function it may be a label, `.name`.
"""
from __future__ import annotations

from tinyhw.errors import EncodeError
from tinyhw.isa.arm64.table.table import TABLE
from tinyhw.machine.assembler.reader import TextMismatch
from tinyhw.machine.assembler.syntax import WordAssembler, show
from tinyhw.machine.ir.inst import MInst

# other spellings of mnemonics; an immediate of the opposite sign belongs to the other operation
SPELLINGS = {"b.cs": "b.hs", "b.cc": "b.lo", "bc.cs": "bc.hs", "bc.cc": "bc.lo"}
OPPOSITES = {"add": "sub", "sub": "add", "adds": "subs", "subs": "adds", "cmp": "cmn", "cmn": "cmp"}
INVERTED = {"bic": "and", "bics": "ands", "orn": "orr", "eon": "eor"}

def opposite(mnemonic: str, rest: str) -> MInst | None:
  """add with a negative number is sub, bic with a mask is and with the inverted one; None for others."""
  head, comma, last = rest.rpartition(",")
  if mnemonic in OPPOSITES and "lsl" in last:
    head, comma, before = head.rpartition(",")
    last = f"{before},{last}"
  sign = last.strip().lstrip("#")
  if not comma: return None
  try:
    if mnemonic in OPPOSITES and sign.startswith("-"):
      return ASSEMBLER.chosen(OPPOSITES[mnemonic], f"{head}, #{sign[1:]}")
    if mnemonic in INVERTED and sign[:1].isdigit() or sign.startswith("-"):
      inverted = ~int(sign, 0) & (1 << (32 if head.strip()[:1] == "w" else 64)) - 1
      return ASSEMBLER.chosen(INVERTED[mnemonic], f"{head}, #{inverted:#x}") if mnemonic in INVERTED else None
  except (TextMismatch, EncodeError, ValueError): return None
  return None

ASSEMBLER = WordAssembler(TABLE, SPELLINGS, opposite, hashes=True)
parse, parse_function = ASSEMBLER.parse, ASSEMBLER.parse_function
assemble_function, decode = ASSEMBLER.assemble_function, ASSEMBLER.decode

def assemble(text: str, arch: str = "arm64") -> bytes:
  """The bytes of one instruction. They do not depend on the processor's level of AArch64."""
  return ASSEMBLER.assemble(text)

def disassemble(code: bytes, arch: str = "arm64") -> str:
  """The text of the one instruction that makes up all of the bytes."""
  return ASSEMBLER.disassemble(code)

__all__ = ["assemble", "assemble_function", "decode", "disassemble", "parse", "parse_function", "show"]
