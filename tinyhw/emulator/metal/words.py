"""Words of Metal's language: the preprocessor's lines of kernels, and tokens with their lines.

Kernels have one include, one using, the pragma against contraction, and helpers between #ifndef, #define and #endif.
Other lines of the preprocessor are refused. A source without the pragma is refused: Apple's compiler contracts then.
"""
from __future__ import annotations
import re

from tinyhw.errors import CompileError
from tinyhw.named_tuple import NamedTuple

PRAGMA = "#pragma METAL fp contract(off)"
INCLUDES = ("#include <metal_stdlib>", "#include <metal_simdgroup_matrix>")
TOKEN = re.compile(r"""
  (?P<space>[ \t]+ | //[^\n]*)
| (?P<number>(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)f?|\d+(?:ul|u|l)?)
| (?P<name>[A-Za-z_]\w*)
| (?P<sign>\+\+|::|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>=?:;,.(){}\[\]])
""", re.VERBOSE)

class MslToken(NamedTuple):
  """A word of the source. kind: number, name, sign or end. line: counted from 1."""
  kind: str
  text: str
  line: int

class SourceError(CompileError):
  """A mistake in a source, in the form of Apple's compiler."""
  def __init__(self, line: int, words: str):
    super().__init__(f"program_source:{line}: error: {words}")

def kept_lines(source: str) -> list[tuple[int, str]]:
  """Return the lines after the preprocessor, with their numbers."""
  found: list[tuple[int, str]] = []
  defined: set[str] = set()
  skipped: list[bool] = []     # of each #ifndef that is open
  is_uncontracted = False
  for number, line in enumerate(source.splitlines(), 1):
    words = line.split()
    if words[:1] == ["#ifndef"] and len(words) == 2: skipped.append(words[1] in defined or any(skipped))
    elif words[:1] == ["#endif"]:
      if not skipped: raise SourceError(number, "#endif without #ifndef")
      skipped.pop()
    elif any(skipped): continue
    elif words[:1] == ["#define"] and len(words) == 2: defined.add(words[1])
    elif line.strip() == PRAGMA: is_uncontracted = True
    elif line.strip() in INCLUDES: continue
    elif line.lstrip().startswith("#"): raise SourceError(number, f"{line.strip()!r} is not in the subset of kernels")
    else: found.append((number, line))
  if skipped: raise SourceError(len(source.splitlines()), "#ifndef without #endif")
  if not is_uncontracted:
    raise SourceError(1, f"the source has no line {PRAGMA!r}; products and sums would be contracted")
  return found

def tokens(source: str) -> list[MslToken]:
  """Return the tokens of a source; the last one is an end. Raises SourceError."""
  found: list[MslToken] = []
  lines = kept_lines(source)
  for number, line in lines:
    at = 0
    while at < len(line):
      match = TOKEN.match(line, at)
      if match is None: raise SourceError(number, f"{line[at]!r} begins no word")
      if match.lastgroup != "space": found.append(MslToken(match.lastgroup or "", match[0], number))
      at = match.end()
      if found and found[-1].kind == "number" and at < len(line) and (line[at].isalnum() or line[at] in "_."):
        raise SourceError(number, f"{line[match.start():at + 1]!r} is no number of C++14")
  return [*found, MslToken("end", "end of the source", lines[-1][0] if lines else 1)]
