"""Special registers."""
from __future__ import annotations

import pytest

from tinyhw.errors import ParseError
from tinyhw.isa.sass.asm.special import parse_special, show_special
from tinyhw.isa.sass.table.form import GENERATIONS, Generation

@pytest.mark.parametrize("arch", GENERATIONS)
def test_names_and_numbers(arch: str) -> None:
  generation = Generation(arch)
  assert all(parse_special(show_special(i, generation), generation) == i for i in range(256))
  assert show_special(0x21, generation) == "SR_TID.X" and show_special(255, generation) == "SRZ"

def test_generations_differ() -> None:
  assert show_special(0x88, Generation("sm_80")) == "SR136" and show_special(0x88, Generation("sm_90")) == "SR_CgaCtaId"

def test_an_unknown_name() -> None:
  with pytest.raises(ParseError, match="sm_80 has no special register SR_CgaCtaId"):
    parse_special("SR_CgaCtaId", Generation("sm_80"))
