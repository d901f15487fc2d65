"""Lines of a table: choices in mnemonics, headers, words of 32 bits."""
from __future__ import annotations

import pytest

from tinyhw.isa.arm64.table.table import Variant, rows_of, word_of
from tinyhw.machine.assembler.table import RowLine, Table, spelled_out
from tinyhw.machine.ir.inst import Effect

@pytest.mark.parametrize("line,made", [
  ("add  0011  Xd=, Xn  w x", ["add  0011  Xd=, Xn  w x"]),
  ("mov  0011  Vd.E+[<j>], Wn", ["mov  0011  Vd.E+[<j>], Wn"]),
  ("[su]max  0M1  Vd.T=", ["smax  001  Vd.T=", "umax  011  Vd.T="]),
  ("cnt[bhwd]  M1M  Xd=", ["cntb  010  Xd=", "cnth  011  Xd=", "cntw  110  Xd=", "cntd  111  Xd="]),
  ("[su]abdl[bt]  MN", ["sabdlb  00", "sabdlt  01", "uabdlb  10", "uabdlt  11"])])
def test_choices_of_a_mnemonic(line: str, made: list[str]) -> None: assert list(spelled_out(line)) == made

def test_headers_set_pipe_feature_and_effects() -> None:
  table = Table(("@ load base load\nldx  1111111111111111111111nnnnnddddd  Xd=, [Xn|sp]\n@ flags lse\nset  " + "1" * 32
                 + "  -  -  wf @x\n",), rows_of)
  row, other = (table.rows(name)[0] for name in ("ldx", "set"))
  assert (row.effects, row.pipe, row.feature) == (Effect.LOAD, "load", "base")
  assert (other.effects, other.feature) == (Effect.WRITE_FLAGS, "x") and table.rows("none") == [] and "set" in table

def test_a_word_has_32_bits() -> None:
  with pytest.raises(AssertionError, match="the word has 4 bits"): RowLine("nop  0101  -", "", "", ())
  with pytest.raises(AssertionError, match="J has 1 places for 10"): word_of("J" + "0" * 31, Variant("h"))
