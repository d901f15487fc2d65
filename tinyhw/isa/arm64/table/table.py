"""The AArch64 instruction table: rows in the assembler's own notation, made at first use.

A line has an instruction word as the manual draws it, and the operands as the assembler writes them:

    add   F0010001 0hiiiiii iiiiiinn nnnddddd   Rd|sp=, Rn|sp, #<shifted12:hi>    w x

machine/assembler/table.py explains lines, machine/assembler/template.py numbers, words and optional parts.

**Word.** Capitals depend on the variant:

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
    <name:i>          a word of words.py, or a number of template.py
    .T .U .P .C .E    the variant's arrangement (4h); twice as wide in 128 bits (4s); half as many of twice the size
                      (2s); a quarter as many of four times the size; the size (h)
    .H .N .O          half as many lanes of the same size; elements of half the size, of a quarter of it
    % $ ~             bits of the variant's element, its bytes, and their logarithm
    #<T*3>            3 times the bytes of the variant's arrangement, #<E*3> of its element

**Variants.** w x, or b h s d q, or arrangements (8b 16b 4h ...): a row for each. Without them the line is one row.

Properties of AArch64: back (writes the base), pair (two results), status (a store with a result); check.py.
"""
from __future__ import annotations
import re
from collections.abc import Iterator

from tinyhw.isa.arm64.rows import (
  branch, crypto, float_vector, integer, integer_vector, memory, memory_vector, scalar, sve2, sve_float, sve_integer,
  sve_memory, sve_predicate)
from tinyhw.isa.arm64.table.check import CHECKED, unpredictable
from tinyhw.isa.arm64.table.template import NOTATION
from tinyhw.machine.assembler.table import RowLine, Table, make_row, run_replaced
from tinyhw.machine.ir.inst import Inst

BITS = {"w": 32, "x": 64, "b": 8, "h": 16, "s": 32, "d": 64, "q": 128}
SIZES = "bhsdq"
SIZED = {"b": "00", "h": "01", "s": "10", "d": "11", "q": "00"}
FLOATS = {"b": "00", "s": "00", "d": "01", "h": "11", "q": "00"}
SHIFTS = {"b": "0001iii", "h": "001iiii", "s": "01iiiii", "d": "1iiiiii", "q": "1iiiiii"}

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
    if capital not in out: continue
    bits = values[v.element]
    if capital == "I" and out.count(capital) == 6: bits = bits[1:]  # the narrowing of SVE2 has no 64-bit results
    out = run_replaced(out, capital, bits)
  count = out.count("J")
  if count:
    tail = "1" + "0" * SIZES.index(v.element)
    out = run_replaced(out, "J", "j" * (count - len(tail)) + tail)
  return out

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
    yield make_row(line, word_of(line.word, variant), operands_of(line.operands, variant), NOTATION,
                   "fullfp16" if half else "", unpredictable if CHECKED & set(line.words) else None)

TEXTS = (integer.TEXT, branch.TEXT, memory.TEXT, scalar.TEXT, integer_vector.TEXT, float_vector.TEXT,
         memory_vector.TEXT, crypto.TEXT,
         sve_predicate.TEXT, sve_integer.TEXT, sve_float.TEXT, sve2.TEXT, sve_memory.TEXT)
TABLE = Table(TEXTS, rows_of)
