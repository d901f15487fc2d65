"""The notation of the table: variants, capitals, accesses; and what holds for all rows."""
from __future__ import annotations

import pytest

from tinyhw.isa.arm64.table import regs
from tinyhw.isa.arm64.table.table import TABLE, Variant, operands_of, rows_of, word_of
from tinyhw.machine.assembler.table import RowLine
from tinyhw.machine.ir.inst import Access

@pytest.mark.parametrize("word,name,made", [
  ("F00100100Krrrrrrssssssnnnnnddddd", "w", "000100100" + "0rrrrrrssssssnnnnnddddd"),
  ("F00100100Krrrrrrssssssnnnnnddddd", "x", "100100100" + "krrrrrrssssssnnnnnddddd"),
  ("0Q001110ZZ1mmmmm100001nnnnnddddd", "8h", "01001110011mmmmm100001nnnnnddddd"),
  ("00011110YY1mmmmm001010nnnnnddddd", "h", "00011110111mmmmm001010nnnnnddddd"),
  ("0Q0011101S1mmmmm110101nnnnnddddd", "2d", "01001110111mmmmm110101nnnnnddddd"),
  ("0Q0011110IIIIIII000001nnnnnddddd", "4s", "01001111001iiiii000001nnnnnddddd"),
  ("0Q001110000JJJJJ000001nnnnnddddd", "2s", "00001110000jj100000001nnnnnddddd")])
def test_words(word: str, name: str, made: str) -> None:
  assert word_of(word, Variant(name)) == made

@pytest.mark.parametrize("text,name,made", [
  ("Rd=, Rn|sp, #<mask%:krs>", "w", "Wd=, Wn|sp, #<mask32:krs>"), ("Vd.U=, Vn.T, Vm.T", "8b", "Vd.8h=, Vn.8b, Vm.8b"),
  ("Vd.P=, Vn.T", "4s", "Vd.2d=, Vn.4s"), ("Vd.C+, Vn.T", "16b", "Vd.4s+, Vn.16b"), ("Fd=, Gn", "h", "Hd=, Sn"),
  ("Vd.T, Vn.E[<j>]", "4h", "Vd.4h, Vn.h[<j>]"), ("Zd.T, Zn.N", "s", "Zd.s, Zn.h"), ("Zd.T, Zn.O", "d", "Zd.d, Zn.h"),
  ("{ Vd.T*3= }, [Xn|sp+], #<T*3>", "4h", "{ Vd.4h*3= }, [Xn|sp+], #24"), ("[Xn|sp], #<E*2>", "4s", "[Xn|sp], #8"),
  ("[Xn|sp, #<i*$>], lsl #~", "x", "[Xn|sp, #<i*8>], lsl #3"), ("Vn.H", "8h", "Vn.4h")])
def test_operands(text: str, name: str, made: str) -> None:
  assert operands_of(text, Variant(name)) == made

def test_a_line() -> None:
  rows = list(rows_of(RowLine("fmul  00011110YY1mmmmm000010nnnnnddddd  Fd=, Fn, Fm  h s d", "fp_mul", "base", ())))
  assert [(row.isa.text, row.feature, row.pipe) for row in rows] == [
    ("Hd=, Hn, Hm", "fullfp16", "fp_mul"), ("Sd=, Sn, Sm", "base", "fp_mul"), ("Dd=, Dn, Dm", "base", "fp_mul")]
  assert [(o.access, o.cls) for o in rows[0].operands] == [(Access.WRITE, regs.V), (Access.READ, regs.V), (Access.READ,
                                                                                                           regs.V)]

def test_all_rows() -> None:
  rows = list(TABLE)
  assert len(rows) > 5500
  for row in rows:
    form = row.isa
    assert form.value & ~form.mask == 0 and row.pipe and row.feature, form.text
    writes = [o for o in row.operands if o.access & Access.WRITE]
    assert writes or row.effects or row.pipe in ("nop", "system", "prefetch", "pred", "int_mov", "int_alu_extended",
                                                 "trap"), (
      f"{form.mnemonic} {form.text} has no result and no effect")

def test_each_row_can_be_reached_by_its_word() -> None:
  """Two rows with the same fixed bits are spellings of each other, or differ in what their operands allow."""
  seen: dict[tuple[int, int], list[str]] = {}
  for row in TABLE: seen.setdefault((row.isa.mask, row.isa.value), []).append(f"{row.name} {row.isa.text}")
  twice = [texts for texts in seen.values() if len(set(texts)) != len(texts)]
  assert not twice, twice[:3]
