"""Names of special cases."""
from __future__ import annotations

import pytest

from tinyhw.errors import ParseError
from tinyhw.isa.sass.asm.syntax import assemble, plain

@pytest.mark.parametrize("text,shown", [
  ("IMAD.U32 R24, RZ, RZ, R56", "IMAD.MOV.U32 R24, RZ, RZ, R56"),
  ("IMAD R0, R1, 0x1, R2", "IMAD.IADD R0, R1, 0x1, R2"),
  ("IMAD R41, R18, 0x1, RZ", "IMAD.MOV R41, R18, 0x1, RZ"),
  ("IMAD.U32 R3, R10, 0x10, RZ", "IMAD.SHL.U32 R3, R10, 0x10, RZ"),
  ("IMAD.U32 R3, R10, 0x10000, RZ", "IMAD.U32 R3, R10, 0x10000, RZ"),
  ("IMAD.U32 R13, RZ, RZ, UR7", "IMAD.U32 R13, RZ, RZ, UR7"),
  ("IMAD R0, R2, R2, R2", "IMAD R0, R2, R2, R2"),
])
def test_both_names_mean_the_same(text: str, shown: str) -> None:
  code = assemble(text, "sm_90")
  assert plain(code, "sm_90") == shown and assemble(shown, "sm_90") == code

def test_a_name_that_does_not_fit_is_refused() -> None:
  with pytest.raises(ParseError, match="IMAD.IADD is an IMAD where the second source is 0x1; without IADD it is any"):
    assemble("IMAD.IADD R0, R1, 0x5, R2", "sm_90")
