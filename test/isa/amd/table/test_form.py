"""Types and generations."""
from __future__ import annotations

import pytest

from tinyhw.errors import EncodeError
from tinyhw.isa.amd.table.form import Generation, type_of

@pytest.mark.parametrize("text,wave,expected", [
  ("f32", 32, ("f", 32, 1, 1)), ("u8", 32, ("u", 8, 1, 1)), ("f16x2", 32, ("f", 16, 2, 1)),
  ("b96", 32, ("b", 96, 1, 3)),
  ("f32x8/4", 32, ("f", 32, 8, 8)), ("f32x8/4", 64, ("f", 32, 4, 4)), ("mask", 32, ("b", 32, 1, 1)),
  ("mask", 64, ("b", 64, 1, 2)),
])
def test_types(text: str, wave: int, expected: tuple[str, int, int, int]) -> None:
  found = type_of(text, wave)
  assert (found.kind, found.bits, found.elements, found.units) == expected

def test_generations() -> None:
  assert [Generation(a).wave for a in ("gfx942", "gfx1100", "gfx1100:wave64", "gfx1201")] == [64, 32, 64, 32]
  assert Generation("gfx1201").name == "gfx1200"

@pytest.mark.parametrize("arch", ["gfx906", "gfx942:", "gfx942:wave32", "gfx1100:wave16"])
def test_an_unknown_architecture(arch: str) -> None:
  with pytest.raises(EncodeError, match=f"no AMD architecture is called {arch}; there is gfx942, gfx950, gfx1100, "
                     f"gfx1200, gfx1201"):
    Generation(arch)
