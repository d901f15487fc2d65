"""The formats: whole dwords, and no two that match the same bits."""
from __future__ import annotations

import pytest

from tinyhw.isa.amd.table.formats import FAMILIES, formats

@pytest.mark.parametrize("family", FAMILIES)
def test_formats_are_whole_dwords_with_an_opcode(family: str) -> None:
  for name, form in formats(family).items(): assert form.width in (32, 64, 96, 128) and "op" in form.fields, name

def test_fields_are_where_the_guides_have_them() -> None:
  assert formats("rdna3")["vop2"].pack(op=3, vdst=5, vsrc1=2, src0=256) == 0x060a0500
  assert {p.shift for p in formats("cdna")["vop2_sdwa"].fields["src0"].pieces} == {32, 55}
  assert {p.shift for p in formats("cdna")["mfma"].fields["vdst"].pieces} == {0, 15}
