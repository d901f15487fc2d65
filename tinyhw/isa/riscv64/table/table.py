"""The RISC-V instruction table: rows in the assembler's own notation, made at first use.

    sh2add  0010000mmmmmnnnnn100ddddd0110011  Xd=, Xn, Xm

machine/assembler/table.py explains lines, machine/assembler/template.py numbers, words and optional parts.

**Fields.** d is the result, n and m the first and second source (rs1 and rs2, in vector instructions vs1 and vs2), a
the third. Other letters are parts of numbers.

**Operands.** Text stands for itself, except for:

    Xd Fd Vd          an integer, float or vector register, by the field of its number
    Vd*4/4            four contiguous registers, the first a multiple of 4; Fmn: the same number in two fields
    = + !             written; read and written; written before all sources are read
    [Xn]              (a0), the base of an address; <offset:i> its offset, <no:z> an offset that can only be 0
    v0.t v0           the mask
    <name:i>          a word of words.py, or a number of template.py

**Variants.** s, d, h: the format of floats. `$` in the mnemonic is its letter, FF in the word its code.

Properties of RISC-V: masked, apart, apart1 (check.py).
"""
from __future__ import annotations
from collections.abc import Iterator

from tinyhw.isa.riscv64.rows import floats, integer, vector
from tinyhw.isa.riscv64.table.check import CHECKED, reserved
from tinyhw.isa.riscv64.table.template import NOTATION
from tinyhw.machine.assembler.table import RowLine, Table, make_row, run_replaced
from tinyhw.machine.ir.inst import Inst

FORMATS = {"s": "00", "d": "01", "h": "10"}
FEATURES = {"s": "f", "d": "d", "h": "zfh"}

def rows_of(line: RowLine) -> Iterator[Inst]:
  """The rows of a line, one for each variant."""
  check = reserved if CHECKED & set(line.words) else None
  for name in line.variants or ("",):
    word = run_replaced(line.word, "F", FORMATS[name]) if name else line.word
    yield make_row(line, word, line.operands, NOTATION, FEATURES[name] if name else "", check)

def spelled(texts: tuple[str, ...]) -> Iterator[str]:
  """The texts, with a line for each format in place of a line whose mnemonic has `$`."""
  for text in texts: yield "\n".join(made for line in text.split("\n") for made in formats_of(line))

def formats_of(line: str) -> Iterator[str]:
  """The lines of one line: one for each of its formats."""
  mnemonic = line.split(" ", 1)[0]
  if "$" not in mnemonic:
    yield line
    return
  columns = [column.strip() for column in line.split("  ") if column.strip()]
  for name in columns[3].split():
    yield "  ".join((mnemonic.replace("$", name), *columns[1:3], name, *columns[4:]))

TEXTS = (integer.TEXT, floats.TEXT, vector.TEXT)
TABLE = Table(spelled(TEXTS), rows_of)
