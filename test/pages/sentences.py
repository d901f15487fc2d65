"""The sentences of docs and docstrings, counted: words of each, and long ones.
test_sentences.py holds the bars.

  python3 test/pages/sentences.py                 # means by file, longest first
  python3 test/pages/sentences.py docs tinyhw/uop   # each sentence in these that breaks a bar, with its line

Counted are paragraphs, items of lists, cells of tables and comments of two lines or more. Blocks of code and headings
are not. A name in backticks is a word. A sentence ends at a full stop, a question mark or an exclamation mark before a
space and a capital, a digit, a backtick or a bracket.
"""
from __future__ import annotations
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("README.md", "SECURITY.md", "docs", "tinyhw", "drivers", "autogen", "test", "examples")
MADE = ("docs/reference",)   # by test/pages/reference.py, from docstrings
MOST_WORDS, MEAN_WORDS = 40, 20

class Sentence(NamedTuple):
  file: str
  line: int
  text: str
  is_cell: bool = False   # of a table

  @property
  def words(self) -> int: return len(self.text.split())

def _plain(text: str) -> str:
  """Inline code and links as one word each."""
  text = re.sub(r"`+[^`]+`+", "`code`", text)
  return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)

_END = re.compile(r"(?<=[.!?])[)\"”*]*\s+(?=[\"“(*]*[A-Z0-9`]|[a-z_][\w, ]{0,24}: )")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|no|al|approx)\.$")

def split(text: str) -> Iterator[str]:
  """The sentences of a paragraph."""
  start = 0
  for end in _END.finditer(text):
    piece = text[start:end.start()]
    if _ABBREVIATIONS.search(piece): continue
    yield piece.strip()
    start = end.end()
  if text[start:].strip(): yield text[start:].strip()

def blocks(text: str) -> Iterator[tuple[int, str, bool]]:
  """(line, text, is it a cell) of paragraphs, items and cells."""
  kept: list[str] = []
  begin, fenced = 1, False
  for number, line in enumerate([*text.split("\n"), ""], 1):
    bare = line.strip()
    if bare.startswith(("```", "~~~")): fenced = not fenced
    code = fenced or bare.startswith(("```", "~~~", ">>>", "$ ")) or line.startswith("    ") and not kept
    new = (not bare or code or bare.startswith(("#", "|", "- ", "* ")) or re.match(r"\d+\. ", bare)
           or re.match(r"\S+(?: \S+)*\s{2,}\S", bare))   # a row of a table in columns
    if new and kept:
      yield begin, " ".join(kept), False
      kept = []
    if not bare or code or bare.startswith("#"): continue
    if bare.startswith("|"):
      if not set(bare) <= set("|-: "):
        for cell in re.split(r"(?<!\\)\|", bare.strip("|")): yield number, cell.strip(), True
      continue
    if not kept: begin = number
    kept.append(re.sub(r"^(?:[-*]|\d+\.) ", "", bare))

def of_text(file: str, text: str, first: int = 1) -> Iterator[Sentence]:
  for line, block, is_cell in blocks(text):
    for sentence in split(_plain(block)): yield Sentence(file, first + line - 1, sentence, is_cell)

def of_python(file: str, text: str) -> Iterator[Sentence]:
  """Yield the sentences of docstrings."""
  for node in ast.walk(ast.parse(text)):
    if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)): continue
    found = ast.get_docstring(node, clean=True)
    if found: yield from of_text(file, found, node.body[0].lineno)

def sentences(names: tuple[str, ...] = FOLDERS) -> Iterator[Sentence]:
  for name in names:
    path = ROOT / name
    for file in [path] if path.is_file() else sorted([*path.rglob("*.md"), *path.rglob("*.py")]):
      short = str(file.relative_to(ROOT))
      if short.startswith(MADE) or "golden" in file.parts: continue
      text = file.read_text(encoding="utf-8")
      yield from of_text(short, text) if file.suffix == ".md" else of_python(short, text)

def main(names: list[str]) -> None:
  found: dict[str, list[int]] = {}
  for s in sentences(tuple(names) or FOLDERS):
    found.setdefault(s.file, []).append(s.words)
    if names and s.words > MOST_WORDS: sys.stdout.write(f"{s.file}:{s.line}: {s.words} words: {s.text}\n")
  for mean, file, n, long in sorted((sum(w) / len(w), f, len(w), sum(x > MOST_WORDS for x in w))
                                    for f, w in found.items()):
    if names or mean > MEAN_WORDS or long:
      sys.stdout.write(f"{file}: {n} sentences, {mean:.1f} words, {long} above {MOST_WORDS}\n")
  every = [x for w in found.values() for x in w]
  sys.stdout.write(f"all: {len(every)} sentences, {sum(every) / len(every):.1f} words, "
                   f"{sum(x > MOST_WORDS for x in every)} above {MOST_WORDS}\n")

if __name__ == "__main__": main(sys.argv[1:])
