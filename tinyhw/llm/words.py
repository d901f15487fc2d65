"""Rules that cut a text into words before their bytes are merged. Each preset is a sequence of regular expressions,
applied one after the other.

They are those that the models' authors publish in their tokenizer.json, and are written as there. \\p{L} is a class of
Unicode's, \\s is its White_Space. `re` knows neither, so both are written out as ranges, from `unicodedata`, when a
preset is first used.
"""
from __future__ import annotations
import re
import sys
import unicodedata

from tinyhw.errors import ArgumentError
from tinyhw.threads import once

# White_Space; re's \s also has U+001C to U+001F
_SPACES = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

def _common(digits: str, letters: str = r"\p{L}") -> str:
  """Return an expression of GPT-4's kind. It matches endings, a word with at most one other sign before it, digits,
  signs, line ends, spaces."""
  return rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[{letters}]+|{digits}| ?[^\s{letters}\p{{N}}]+[\r\n]*|{_TAIL}"

def _cased(digits: str, endings: str = "") -> str:
  """Return an expression in which a word ends where a capital letter follows a small one."""
  return (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{endings}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{endings}|{digits}"
          rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_TAIL}")

# Name of expressions: (expressions, the names that files have in tokenizer.ggml.pre). Source: the tokenizer.json of the
# models, and llama.cpp's names
_KINDS: dict[str, tuple[tuple[str, ...], str]] = {
  "llama3": ((_common(r"\p{N}{1,3}"),), "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 dbrx "
             "smaug-bpe glm4 chatglm-bpe"),
  "qwen2": ((_common(r"\p{N}"),), "qwen2 qwen3 deepseek-r1-qwen megrez stablelm2 hunyuan-dense"),
  "qwen35": ((_common(r"\p{N}", r"\p{L}\p{M}"),), "qwen35"),
  "gpt2": ((_GPT2,), "gpt2 gpt-2 mpt olmo jais phi-2 roberta-bpe exaone4 trillion"),
  "falcon": ((r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]"), "falcon"),
  "default": ((r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"), "default"),
  "starcoder": ((r"\p{N}", _GPT2), "starcoder refact command-r smollm codeshell exaone minerva-7b granite-docling"),
  "tekken": ((_cased(r"\p{N}"),), "tekken"),
  "gpt-4o": ((_cased(r"\p{N}{1,3}", _ENDINGS + "?"),), "gpt-4o llama4 kanana2"),
  "kimi-k2": (
  (r"[\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufa6d\ufa70-\ufad9\U00020000-\U000323af]+",
   _cased(r"\p{N}{1,3}", _ENDINGS + "?")), "kimi-k2"),
  "deepseek-v3": ((r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                   r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                   r"| ?[\p{P}\p{S}]+[\r\n]*|" + _TAIL), "deepseek-v3"),
}
PRESETS: dict[str, str] = {name: kind for kind, (_, names) in _KINDS.items() for name in names.split()}

@once
def _ranges() -> dict[str, str]:
  """Return the characters of each of Unicode's classes (L, Lu, ...), in the form between brackets of an expression."""
  runs: dict[str, list[list[int]]] = {}
  for code in range(sys.maxunicode + 1):
    kind = unicodedata.category(chr(code))
    for name in (kind, kind[0]):
      found = runs.setdefault(name, [])
      if found and found[-1][1] == code - 1: found[-1][1] = code
      else: found.append([code, code])
  return {name: "".join(f"\\U{first:08x}" + (f"-\\U{last:08x}" if last > first else "") for first, last in found)
          for name, found in runs.items()}

_CLASS = re.compile(r"\\p\{(\w+)\}|\\s|\\S|\\.|[\[\]]", re.S)

def translate(expression: str) -> str:
  r"""Translate an expression with \p{...}, \s and \S to one that `re` understands.

  >>> translate(r"[a\p{Zl}]\p{Zp}")
  '[a\\U00002028][\\U00002029]'
  """
  inside = False
  def one(found: re.Match[str]) -> str:
    nonlocal inside
    text = found[0]
    if text in "[]": inside = text == "["
    if text == r"\S": return f"[^{_SPACES}]"
    characters = _SPACES if text == r"\s" else _ranges()[found[1]] if found[1] else None
    if characters is None: return text
    return characters if inside else f"[{characters}]"
  return _CLASS.sub(one, expression)

@once
def _compiled(kind: str) -> tuple[re.Pattern[str], ...]:
  return tuple(re.compile(translate(expression)) for expression in _KINDS[kind][0])

def check_preset(preset: str) -> str:
  """Return the name of a preset's expressions. Raises ArgumentError for an unknown preset."""
  kind = PRESETS.get(preset) if isinstance(preset, str) else None
  if kind is None:
    raise ArgumentError(f"no way to cut texts into words is called {preset!r}; known are {', '.join(sorted(PRESETS))}")
  return kind

def split(text: str, preset: str) -> list[str]:
  """Return the words of a text. Joined, they are the text. Raises ArgumentError for an unknown preset.

  >>> split("It's 12345!", "llama3")
  ['It', "'s", ' ', '123', '45', '!']
  """
  pieces = [text]
  for pattern in _compiled(check_preset(preset)):
    found: list[str] = []
    for piece in pieces:
      end = 0
      for match in pattern.finditer(piece):
        if match.start() > end: found.append(piece[end:match.start()])
        if match.end() > match.start(): found.append(match[0])
        end = match.end()
      if end < len(piece): found.append(piece[end:])
    pieces = found
  return pieces
