"""Parse a line of the table of AMD instructions for one generation. The notation is explained in table.py."""
from __future__ import annotations
import re

from tinyhw.isa.amd.table.form import GROUPS, Generation
from tinyhw.machine.ir.inst import Access
from tinyhw.named_tuple import NamedTuple

# The operands of a format, in the order of the text.
SLOTS = {
  "sop1": "sdst ssrc0", "sop2": "sdst ssrc0 ssrc1", "sopc": "ssrc0 ssrc1", "sopk": "sdst simm16", "sopp": "simm16",
  "vop1": "vdst src0", "vop2": "vdst src0 src1", "vopc": "sdst src0 src1", "vop3": "vdst src0 src1 src2",
  "vop3_bitop": "vdst src0 src1 src2", "vop3p": "vdst src0 src1 src2",
  "vop3sd": "vdst sdst src0 src1 src2", "mfma": "vdst src0 src1 src2", "mfma_scale": "vdst src0 src1 src2 scale_src0 "
  "scale_src1",
  "vopd": "vdst src0 vsrc1", "smem": "sdata sbase soffset", "ds": "vdst addr data0 data1",
  "ds2": "vdst addr data0 data1", "flat": "vdst vaddr vdata",
  "global": "vdst vaddr vdata saddr", "scratch": "vdst vaddr vdata saddr", "mubuf": "vdata vaddr srsrc soffset",
  "mtbuf": "vdata vaddr srsrc soffset",
}

# Formats in which RDNA can name the halves of a register for operands of 16 bits.
WITH_HALVES = ("vop1", "vop2", "vopc", "vop3")

class TableLine:
  """A line of the table for one generation. name: in all generations; mnemonic: in this one."""
  __slots__ = ("name", "mnemonic", "format", "op", "operands", "pipe", "words", "text")

  def __init__(self, text: str, section: str, generation: Generation):
    names, cells, operands, extra = (*(c.strip() for c in text.split("  ") if c and not c.isspace()), "", "")[:4]
    self.text = text
    form, pipe, *words = section.split()
    self.name, *others = names.split()
    spelled = [other.partition("@") for other in others]
    self.mnemonic = next((name for name, _, group in spelled if group and generation.name in GROUPS[group]), self.name)
    self.format, self.op = cell(cells, generation.column, form)
    chosen = [w for w in (limited(word, generation) for word in (*words, *extra.split())) if w]
    self.words = frozenset(w for w in chosen if w[:5] != "pipe:")
    self.pipe = next((w[5:] for w in reversed(chosen) if w[:5] == "pipe:"), pipe)
    self.operands: list[Token] = []
    slots = SLOTS.get(self.format, "").split()
    for word in operands.split():
      word = limited(word, generation)
      if word in ("", "-"): continue
      found = TOKEN.match(word)
      assert found is not None, f"{self.name}: {word} is no operand"
      name = found["name"] or slots[0]
      if name in slots: slots = slots[slots.index(name) + 1:]
      elif name == "sdst" and slots[:1] == ["vdst"]: slots = slots[1:]  # a scalar result in its place
      access = {"=": Access.WRITE, "+": Access.BOTH, "": Access.READ}[found["access"]]
      self.operands.append(Token(name, access, found["kinds"] or "", found["type"], bool(found["optional"])))
    if not generation.cdna and self.has_halves(): self.words |= {"op_sel", "halves"}

  def has_halves(self) -> bool:
    """Whether an operand is half of a vector register, and the text shows it: v1.h."""
    if self.format not in WITH_HALVES or any(word.partition("=")[0] == "op_sel" for word in self.words): return False
    scalar = any(token.name == "sdst" and token.type != "mask" for token in self.operands)
    return not scalar and any(HALF.match(token.type) for token in self.operands)

TOKEN = re.compile(r"(?:(?P<name>\w+):)?(?P<type>[\w/]+)(?:\[(?P<kinds>\w+)\])?(?P<optional>\??)(?P<access>[=+]?)$")

HALF = re.compile(r"[a-z]+16$")

class Token(NamedTuple):
  """An operand of a line."""
  name: str
  access: Access
  kinds: str
  type: str
  optional: bool

def cell(cells: str, column: int, form: str) -> tuple[str, int]:
  """The format and opcode of a column; opcode -1 if there is none."""
  words = cells.split()
  while words[column] == ".": column -= 1
  if words[column] == "-": return form, -1
  other, _, op = words[column].rpartition(":")
  return other or form, int(op, 16)

def limited(word: str, generation: Generation) -> str:
  """The word without "@group", or "" if the generation is not of the group."""
  word, _, group = word.partition("@")
  return word if not group or generation.name in GROUPS[group] else ""
