"""The AArch64 instruction table: rows in the assembler's own notation, made at first use.

A line has an instruction word as the manual draws it, and the operands as the assembler writes them:

    add   F0010001 0hiiiiii iiiiiinn nnnddddd   Rd|sp=, Rn|sp, #<shifted12:hi>    w x

Columns are separated by two spaces: mnemonic, word, operands ("-" for none), variants, properties. `@` sets pipe,
feature and properties of the lines that follow. `[su]max` is two mnemonics, smax and umax. M of the word is the number
of the letter, in two bits where there are four. A second choice has N.

**Word.** 0 and 1 are fixed. A lower case letter is a field; blanks are for the eye. Capitals depend on the variant:

    F        1 for x                    Q    1 for 128 bits
    A B K L  r s k i for x, else 0      ZZ   size: b 00, h 01, s 10, d 11
    YY       float: s 00, d 01, h 11    S    0 for s, 1 for d (or half: 0 for h)
    IIIIIII  a shift: b 0001iii, h 001iiii, s 01iiiii, d 1iiiiii
    JJJJJ    an element: b jjjj1, h jjj10, s jj100, d j1000, q 10000 (of any length)

**Operands.** Text stands for itself, except for:

    Xd Wd Bd Hd Sd Dd Qd Vd.4s Zd.s Pd.b   a register, by its name and the field of its number
    Rd Fd Gd          W or X, by the variant; B H S or D by the variant; that of double width
    Xn|sp Xm|30       31 is sp; there is no 31; otherwise it is xzr
    Vd+1              the register after Vd; Xd*2: even numbers; Xnm: the same number in two fields
    { Vd.4s*3 }       a list of 3 registers
    = +               after a register: written; read and written. A letter that occurs twice is one register
    <i> <s:i>         a number without and with a sign; <x:i> is written in hexadecimal; <i*8>, <i+1>, <64-i>
    <name:i>          a word of words.py, or a number of NUMBERS below; <a:hi> has h above i
    ( ... )           may be left out if all of it is 0, or has its usual value
    .T .U .P .C .E    the variant's arrangement (4h); twice as wide in 128 bits (4s); half as many of twice the size
                      (2s); a quarter as many of four times the size; the size (h)
    .H .N .O          half as many lanes of the same size; elements of half the size, of a quarter of it
    % $ ~             bits of the variant's element, its bytes, and their logarithm
    #<T*3>            3 times the bytes of the variant's arrangement, #<E*3> of its element

**Variants.** w x, or b h s d q, or arrangements (8b 16b 4h ...): a row for each. Without them the line is one row.

Properties: load, store, jump, end, call, barrier, rf, wf (flags read, written); back, pair, status (form.py); alias:
the other spelling is preferred; unseen: the decoder takes another spelling. Of several rows that a word fits, the
decoder takes the one with the most fixed bits, then the first.
"""
from __future__ import annotations
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tinyhw.isa.arm64.rows import (
  branch, crypto, float_vector, integer, integer_vector, memory, memory_vector, scalar, sve2, sve_float, sve_integer,
  sve_memory, sve_predicate)
from tinyhw.isa.arm64.table.form import Form
from tinyhw.isa.arm64.table.template import template_of
from tinyhw.machine.ir.inst import Access, Effect, Inst, Operand
from tinyhw.threads import once

EFFECTS = {"load": Effect.LOAD, "store": Effect.STORE, "jump": Effect.JUMP, "end": Effect.END, "call": Effect.CALL,
           "barrier": Effect.BARRIER, "rf": Effect.READ_FLAGS, "wf": Effect.WRITE_FLAGS}
BITS = {"w": 32, "x": 64, "b": 8, "h": 16, "s": 32, "d": 64, "q": 128}
SIZES = "bhsdq"
SIZED = {"b": "00", "h": "01", "s": "10", "d": "11", "q": "00"}
FLOATS = {"b": "00", "s": "00", "d": "01", "h": "11", "q": "00"}
SHIFTS = {"b": "0001iii", "h": "001iiii", "s": "01iiiii", "d": "1iiiiii", "q": "1iiiiii"}

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

class Variant:
  """A variant of a line: its name, element and lanes (0 for a scalar)."""

  def __init__(self, name: str):
    self.name = name
    self.element = name[-1] if name else ""
    self.lanes = int(name[:-1]) if name[:-1].isdigit() else 0
    self.bits = BITS.get(self.element, 0)

  @property
  def bytes(self) -> int: return self.lanes * self.bits // 8

  def arrangement(self, grow: int, lanes: int | None = None) -> str:
    """The arrangement with elements of 2**grow times the size, and as many lanes as fit, or `lanes`."""
    element = SIZES[SIZES.index(self.element) + grow]
    if not self.lanes: return element
    return f"{128 // BITS[element] if lanes is None else lanes}{element}"

def word_of(word: str, variant: Variant) -> str:
  """The word of a variant: capitals replaced by bits and fields."""
  v, out = variant, word
  wide = v.name == "x"
  for capital, letter in zip("ABKL", "rski"): out = out.replace(capital, letter if wide else "0")
  out = out.replace("F", "01"[wide]).replace("Q", "01"[v.bytes > 8])
  if "S" in out: out = out.replace("S", "01"[v.element in "dx"])
  for capital, values in (("Z", SIZED), ("Y", FLOATS), ("I", SHIFTS)):
    if capital in out: out = run_replaced(out, capital, values[v.element])
  count = out.count("J")
  if count:
    tail = "1" + "0" * SIZES.index(v.element)
    out = run_replaced(out, "J", "j" * (count - len(tail)) + tail)
  return out

def run_replaced(word: str, capital: str, bits: str) -> str:
  """The word with the places of a capital, in order, taken by these bits."""
  if capital == "I" and word.count(capital) == 6: bits = bits[1:]  # the narrowing of SVE2 has no 64-bit results
  assert word.count(capital) == len(bits), f"{word}: {capital} has {word.count(capital)} places for {bits}"
  rest = iter(bits)
  return "".join(next(rest) if c == capital else c for c in word)

MACRO = re.compile(r"\.([TUPCEHNO])\b|\b([RFG])(?=[a-z|])|<([TE])(?:\*(\d+))?>|[%$~]")

NUMBERS = {"%": lambda bits: bits, "$": lambda bits: bits // 8, "~": lambda bits: (bits // 8).bit_length() - 1}

def operands_of(text: str, variant: Variant) -> str:
  """The operands of a variant."""
  if not variant.name: return text
  v = variant
  def replaced(found: re.Match[str]) -> str:
    suffix, register, size, times = found.groups()
    if found[0] in NUMBERS: return str(NUMBERS[found[0]](v.bits))
    if size: return str((v.bytes if size == "T" else v.bits // 8) * int(times or 1))
    if register: return (v.name if register == "R" else SIZES[SIZES.index(v.element) + (register == "G")]).upper()
    if suffix == "T": return "." + v.name
    if suffix == "E": return "." + v.element
    if suffix in "NO": return "." + SIZES[SIZES.index(v.element) - " NO".index(suffix)]
    if suffix == "U": return "." + v.arrangement(1)
    if suffix == "H": return f".{v.lanes // 2}{v.element}"
    return "." + v.arrangement(1 + (suffix == "C"), v.lanes >> 1 + (suffix == "C"))
  return MACRO.sub(replaced, text)

def rows_of(line: RowLine) -> Iterator[Inst]:
  """The rows of a line, one for each variant."""
  for name in line.variants or ("",):
    variant = Variant(name)
    half = "Y" in line.word and variant.element == "h" and line.feature == "base"
    yield make_row(line, word_of(line.word, variant), operands_of(line.operands, variant), "fullfp16" if half else "")

def make_row(line: RowLine, word: str, text: str, feature: str) -> Inst:
  """A row from a word and operands without capitals."""
  fields: dict[str, list[int]] = {}
  for at, c in enumerate(word):
    if c not in "01": fields.setdefault(c, []).append(31 - at)
  form = Form(line.mnemonic, text, word, fields, template_of(text, {c: len(places) for c, places in fields.items()}),
              line.words)
  operands = []
  for hole in form.holes:
    for name in hole.names: operands.append(operand(name, hole.access, hole.cls))
  effects = 0
  for word_ in line.words: effects |= EFFECTS.get(word_, 0)
  row = Inst(line.mnemonic, word, tuple(operands), line.pipe, effects, feature or line.feature, form)
  form.row = row
  return row

@once
def operand(name: str, access: Access, cls: Any) -> Operand:
  """An Operand. Equal ones are one object."""
  return Operand(name, access, cls, "reg" if cls is not None else "imm")

class Table:
  """Rows by mnemonic. The text is split when the table is made, a row is made at first use."""

  def __init__(self, texts: Sequence[str]):
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
      found = self.made.setdefault(mnemonic, [row for line in self.lines.get(mnemonic, ()) for row in rows_of(line)])
    return found

  def __contains__(self, mnemonic: str) -> bool: return mnemonic in self.lines

  def __iter__(self) -> Iterator[Inst]:
    """Every row; makes them all."""
    for mnemonic in self.lines: yield from self.rows(mnemonic)

TEXTS = (integer.TEXT, branch.TEXT, memory.TEXT, scalar.TEXT, integer_vector.TEXT, float_vector.TEXT,
         memory_vector.TEXT, crypto.TEXT,
         sve_predicate.TEXT, sve_integer.TEXT, sve_float.TEXT, sve2.TEXT, sve_memory.TEXT)
TABLE = Table(TEXTS)
