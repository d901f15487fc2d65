"""Recipes: their text, and their execution."""
from __future__ import annotations
from typing import Any

from tinyhw.machine.select.recipes import RecipeLine, followed, parse

TEXT = """
half_f32 x y
  a = v_mul_f32 0.5 -x
      v_fma_f32 |a| 3 -y
wide x
  v_mul_f64 x 2.0
"""

def test_text() -> None:
  recipe = parse(TEXT)["half_f32"]
  assert recipe.operands == ("x", "y")
  first, last = recipe.steps
  assert tuple(first) == ("a", "v_mul_f32", (0x3f000000, "x"), {"neg": 2})
  assert tuple(last) == ("", "v_fma_f32", ("a", 3, "y"), {"neg": 4, "abs": 1})
  assert parse(TEXT)["wide"].steps[0].sources[1] == 0x4000000000000000

def test_lines_get_what_their_sources_are() -> None:
  seen: list[Any] = []
  def perform(line: RecipeLine, sources: list[Any]) -> str:
    seen.append((line.key, sources))
    return f"result of {line.key}"
  assert followed(parse(TEXT)["half_f32"], ["X", 7], perform) == "result of v_fma_f32"
  assert seen == [("v_mul_f32", [0x3f000000, "X"]), ("v_fma_f32", ["result of v_mul_f32", 3, 7])]
