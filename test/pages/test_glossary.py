"""Words have one meaning: docs/glossary.md, and the names of public classes across the layers."""
from __future__ import annotations
import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs/glossary.md"
MOST_HOMONYMS = 20

class Term(NamedTuple):
  names: list[str]
  meaning: str
  where: str
  retired: list[str]

def tables() -> Iterator[list[Term]]:
  """The terms of each table of the page."""
  rows: list[Term] = []
  for line in [*GLOSSARY.read_text(encoding="utf-8").splitlines(), ""]:
    if not line.startswith("|"):
      if rows: yield rows
      rows = []
      continue
    names, meaning, where, retired = [cell.strip() for cell in line.strip("|").split("|")]
    if names == "term" or not set(names) - set("-"): continue
    rows.append(Term(names.split(", "), meaning, where.strip("`"), [word for word in retired.split(", ") if word]))

TERMS = [term for table in tables() for term in table]

def text_below(path: Path) -> str:
  files = [path] if path.is_file() else sorted(path.rglob("*.py"))
  return "\n".join(file.read_text(encoding="utf-8") for file in files)

def test_terms_are_unique_and_sorted() -> None:
  names = [name for term in TERMS for name in term.names]
  assert len(names) == len(set(names)) and len(TERMS) >= 60
  for table in tables(): assert [term.names for term in table] == sorted(term.names for term in table)

@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.names[0])
def test_a_term_is_used_where_the_glossary_says(term: Term) -> None:
  text = text_below(ROOT / term.where)
  for name in term.names:
    stem = re.escape(name.lower().rstrip("ey")).replace(r"\ ", r"[\s_]+").replace(r"\-", r"[-_\s]?")
    assert re.search(rf"(?<![a-z]){stem}", text.lower()), f"{name!r} does not occur below {term.where}"

def test_a_retired_word_is_no_term() -> None:
  names = {name for term in TERMS for name in term.names}
  assert not names & {word for term in TERMS for word in term.retired}

# Identifiers and files of earlier days, whose field names are in the glossary.
RETIRED = ("surroundings", "woven", "columns_and_sums", "lanes_of_row", "own_place", "FETCH", "PANEL", "PanelArray",
           "boxes_of", "is_box", "wide_place", "alive_inside", "COPIES")

def sources() -> Iterator[Path]:
  for top in ("tinyhw", "drivers", "autogen"): yield from sorted((ROOT / top).rglob("*.py"))

@pytest.mark.parametrize("word", RETIRED)
def test_retired_identifiers_are_gone(word: str) -> None:
  found = [str(path.relative_to(ROOT)) for path in sources()
           if path.stem == word or re.search(rf"\b{word}\b", path.read_text(encoding="utf-8"))]
  assert not found

# Words of plain English that were names once. They are not those of modules, functions, parameters or variables.
RETIRED_NAMES = frozenset({"turned", "woven", "tall", "broad", "deep", "panel", "surroundings", "sides_of", "box_copy",
                           "meeting", "extreme"})

def names_in(path: Path) -> Iterator[str]:
  """What a file names: itself, its functions, classes, parameters, variables and attributes."""
  yield path.stem
  for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)): yield node.name
    elif isinstance(node, ast.arg): yield node.arg
    elif isinstance(node, ast.Name): yield node.id
    elif isinstance(node, ast.Attribute): yield node.attr

def test_retired_words_name_nothing() -> None:
  found = {str(path.relative_to(ROOT)): sorted(RETIRED_NAMES & set(names_in(path))) for path in sources()}
  assert not {path: words for path, words in found.items() if words}

# What a folder or file of tinyhw/ belongs to. A class name that occurs in two of these stands for two things.
LAYERS = {"methods": "tensor", "gradient": "tensor", "function": "tensor"}
OWN = {"uop", "machine", "isa", "codegen", "engine", "emulator", "tensor", "nn", "capture", "llm", "viz", "selftest"}

# Public class names that stand for two things, each with its reason.
HOMONYMS: dict[str, str] = {
  "Constraint": "the field's word: of a random number's values, and of an index in the algebra",
  "Distribution": "the field's word: of random numbers, and of a graph over devices",
  "Engines": "NVIDIA's word: those of a card, and the classes of their methods",
  "Expression": "a value of a capture, and one of a C header",
  "Field": "bits of a word, in encodings, registers and a QMD: one notion, each layer has its own notation",
  "Layout": "offsets of members: of a matrix in registers, of a structure, of a QMD",
  "Macro": "of selection, and the preprocessor's in a C header",
  "Member": "of an archive, and of a structure in C",
  "Queue": "ours, and the structure that HSA gives this name",
  "Table": "rows that are made at first use: of instructions, of registers and packets",
}

def layer(path: Path) -> str:
  top, *rest = path.relative_to(ROOT).with_suffix("").parts
  if top != "tinyhw": return top
  if rest[:3] == ["compat", "torch", "modules"]: return "nn"   # PyTorch's names of the same layers
  name = LAYERS.get(rest[0], rest[0])
  return name if name in OWN else "base"

def homonyms() -> dict[str, list[str]]:
  """Public class names that occur in several layers, and where."""
  found: dict[str, list[tuple[str, str]]] = defaultdict(list)
  for path in sources():
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
      if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
        found[node.name].append((layer(path), f"{path.relative_to(ROOT)}:{node.lineno}"))
  return {name: [place for _, place in places] for name, places in found.items()
          if len({of for of, _ in places}) > 1}

def test_a_public_class_name_stands_for_one_thing() -> None:
  assert len(HOMONYMS) <= MOST_HOMONYMS and all(HOMONYMS.values())
  found = homonyms()
  assert set(found) == set(HOMONYMS), {name: found.get(name, "is one thing now: take it from the list")
                                       for name in set(found) ^ set(HOMONYMS)}
