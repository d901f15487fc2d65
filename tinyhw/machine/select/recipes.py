"""Recipes: operations that need several instructions, and the text in which ISAs write them.

Unlike the instructions of a macro (macros.py), those of a recipe are separate from selection on. Constants are shared,
temporary values are allocated like others, and independent instructions may be scheduled between. The ISA defines keys,
their sources and modifiers.

The text. A recipe begins in the first column: its name, then its operands. Its lines follow: `name = key sources`. The
last line has no name. It is the result. A source is a name, an integer (decimal or hexadecimal), or a float with a
point. The end of the key gives the type of floats. "-" before a name or a float is the modifier for negation. "|"
around a name is the modifier for the absolute value.
"""
from __future__ import annotations
import re
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import dtypes
from tinyhw.machine.notation.lazy import Lazy, blocks_of
from tinyhw.named_tuple import NamedTuple

class RecipeLine(NamedTuple):
  """A line.

  - name: of its result, "" for the last line.
  - sources: names, or the bits of constants.
  - modifiers: neg and abs, a bit for each source.
  """
  name: str
  key: str
  sources: tuple[str | int, ...]
  modifiers: dict[str, int]

class Recipe(NamedTuple):
  operands: tuple[str, ...]
  steps: tuple[RecipeLine, ...]

SIGNS = {"-": "neg", "|": "abs"}
FLOAT, INTEGER = r"\d+\.\d*(?:e-?\d+)?$", r"-?(?:0x[0-9a-f]+|\d+)$"

def source(word: str, key: str) -> tuple[str | int, str]:
  """A source of a line of `key`, and its modifier."""
  if re.match(INTEGER, word): return int(word, 0), ""
  modifier = SIGNS.get(word[0], "")
  bare = word.strip(word[0]) if modifier else word
  if not re.match(FLOAT, bare): return bare, modifier
  return int.from_bytes(to_bytes(float(bare), dtypes.float64 if key.endswith("f64") else dtypes.float32),
                        "little"), modifier

def step(words: list[str]) -> RecipeLine:
  """Parse the words of a line."""
  name, (key, *sources) = (words[0], words[2:]) if "=" in words else ("", words)
  found = [source(word, key) for word in sources]
  bits = {name: sum(1 << k for k, (_, modifier) in enumerate(found) if modifier == name) for name in SIGNS.values()}
  return RecipeLine(name, key, tuple(value for value, _ in found),
                    {modifier: value for modifier, value in bits.items() if value})

def parse(text: str) -> Lazy[Recipe]:
  """The recipes of a text."""
  return Lazy(blocks_of(text), recipe)

def recipe(block: list[str]) -> Recipe:
  """Parse the lines of a recipe."""
  return Recipe(tuple(block[0].split()[1:]), tuple(step(line.split()) for line in block[1:]))

def followed(recipe: Recipe, sources: Sequence[Any], perform: Callable[[RecipeLine, list[Any]], Any]) -> Any:
  """The result of a recipe. perform(line, its sources) makes the value of each line."""
  values: dict[str | int, Any] = dict(zip(recipe.operands, sources))
  for one in recipe.steps: values[one.name] = perform(one, [values.get(s, s) for s in one.sources])
  return values[""]
