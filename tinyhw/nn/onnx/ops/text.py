"""Operators of ONNX on text, on the host. Source: ONNX operator schemas (ai.onnx)."""
from __future__ import annotations
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.dtype import dtypes, truncate
from tinyhw.errors import ArgumentError, ShapeError
from tinyhw.helpers import prod
from tinyhw.nn.onnx.operator import Floats, Ints, Known, Strings, Value, as_numbers, of_numbers, operator
from tinyhw.nn.onnx.ops.shape import check_count
from tinyhw.nn.onnx.texts import TextTensor

@operator("StringConcat", 20)
def string_concat(a: TextTensor, b: TextTensor) -> TextTensor:
  """Join texts pairwise. Shapes broadcast."""
  n = max(a.ndim, b.ndim)
  left, right = (1,) * (n - a.ndim) + a.shape, (1,) * (n - b.ndim) + b.shape
  if any(d != e and 1 not in (d, e) for d, e in zip(left, right)):
    raise ShapeError(f"cannot join texts of {a.shape} and {b.shape}: the shapes do not broadcast")
  shape = [e if d == 1 else d for d, e in zip(left, right)]
  check_count(prod(shape), "StringConcat")
  pairs = zip(_spread(a.values, left, shape), _spread(b.values, right, shape))
  return TextTensor([x + y for x, y in pairs], shape)

def _spread(values: Sequence[str], own: tuple[int, ...], shape: list[int]) -> list[str]:
  """Return the elements of a shape that broadcasts, as those of the larger shape."""
  places = [0]
  for axis, (d, n) in enumerate(zip(own, shape)):
    step = prod(own[axis + 1:]) if d != 1 else 0
    places = [p + i * step for p in places for i in range(n)]
  return [values[p] for p in places]

@operator("StringSplit", 20)
def string_split(x: TextTensor, *, delimiter: str = "", maxsplit: int | None = None) -> Any:
  """Split texts. Return the parts, with an axis more and filled with empty texts, and the number of parts of each."""
  most = -1 if maxsplit is None else maxsplit
  rows = [text.split(delimiter or None, most) for text in x.values]
  if not delimiter and maxsplit is not None: rows = [[*row[:-1], row[-1].rstrip()] if row else row for row in rows]
  width = max(map(len, rows), default=0)
  check_count(width * len(rows), "StringSplit")
  parts = [part for row in rows for part in (*row, *[""] * (width - len(row)))]
  return TextTensor(parts, (*x.shape, width)), of_numbers(list(map(len, rows)), dtypes.int64, x.shape)

_CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}

@operator("StringNormalizer", 10)
def string_normalizer(x: TextTensor, *, case_change_action: str = "NONE", is_case_sensitive: int = 0,
                      locale: str = "en_US", stopwords: Strings | None = None) -> TextTensor:
  """Remove words, and change the case of the others. Unicode's rules hold in each locale."""
  if case_change_action not in _CASES:
    raise ArgumentError(f"case_change_action is {', '.join(_CASES)}, not {case_change_action!r}")
  if x.ndim not in (1, 2) or x.ndim == 2 and x.shape[0] != 1:
    raise ShapeError(f"StringNormalizer wants a shape (C,) or (1, C), not {x.shape}")
  alike = _CASES["NONE" if is_case_sensitive else "LOWER"]
  stops = {alike(word) for word in stopwords or ()}
  kept = [_CASES[case_change_action](text) for text in x.values if alike(text) not in stops] or [""]
  return TextTensor(kept, (*x.shape[:-1], len(kept)))

# Constructs of Python's patterns that RE2 lacks: references to groups, looking ahead and behind, conditions.
_NOT_OF_RE2 = re.compile(r"\(\?(=|!|<=|<!|P=|\(|>)|\\[1-9]|[*+?}]\+")

@operator("RegexFullMatch", 20)
def regex_full_match(x: TextTensor, *, pattern: str) -> Known:
  """Does each whole text match a pattern? Python's patterns are used where they mean what RE2's mean."""
  if _NOT_OF_RE2.search(pattern.replace("\\\\", "")):
    raise ArgumentError(f"the pattern {pattern!r:.200} has a construct that RE2 does not have; write it without")
  try: compiled = re.compile(pattern, re.ASCII)
  except re.error as error: raise ArgumentError(f"the pattern {pattern!r:.200} is none of RE2: {error}") from None
  return Known([compiled.fullmatch(text) is not None for text in x.values], x.shape, dtypes.bool)

@operator("TfIdfVectorizer", 9)
def tf_idf_vectorizer(x: Value, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
                      ngram_counts: Ints, ngram_indexes: Ints, pool_int64s: Ints | None = None,
                      pool_strings: Strings | None = None, weights: Floats | None = None) -> Known:
  """Count the n-grams of a pool in sequences. x: (C,) or (N, C)  ->  (indices,) or (N, indices). The values are read.

  An n-gram with k skips has elements k + 1 apart, for each k up to max_skip_count.
  """
  if mode not in ("TF", "IDF", "TFIDF"): raise ArgumentError(f"mode is TF, IDF or TFIDF, not {mode!r}")
  if x.ndim not in (1, 2): raise ShapeError(f"TfIdfVectorizer wants a shape (C,) or (N, C), not {x.shape}")
  if (pool_strings is None) != (pool_int64s is not None):
    raise ArgumentError("TfIdfVectorizer has one of pool_strings and pool_int64s")
  if isinstance(x, TextTensor) != (pool_strings is not None):
    raise ArgumentError("the pool of TfIdfVectorizer has another type than its input")
  if not ngram_indexes or min(ngram_indexes) < 0: raise ArgumentError(f"ngram_indexes={ngram_indexes!r:.60}")
  pool = _pool(pool_strings or pool_int64s or [], ngram_counts, len(ngram_indexes))
  values = list(x.values) if isinstance(x, TextTensor) else as_numbers(x)
  count, length = (1, x.shape[0]) if x.ndim == 1 else x.shape
  width = max(ngram_indexes) + 1
  check_count(int(count) * width, "TfIdfVectorizer")
  found = []
  for row in range(int(count)):
    total = [0.0] * width
    for gram in _grams(values[row * int(length):(row + 1) * int(length)], min_gram_length, max_gram_length,
                       max_skip_count):
      if gram in pool: total[ngram_indexes[pool[gram]]] += 1
    factors = [1.0] * width
    if mode != "TF":
      for place, weight in zip(ngram_indexes, weights or itertools.repeat(1.0)): factors[place] = weight
    found += [(min(n, 1.0) if mode == "IDF" else n) * f for n, f in zip(total, factors)]
  return of_numbers(found, dtypes.float32, (width,) if x.ndim == 1 else (int(count), width))

def _pool(items: Sequence[Any], starts: list[int], count: int) -> dict[tuple[Any, ...], int]:
  """Return the number of each n-gram. starts: where the 1-grams begin, the 2-grams, ..."""
  found: dict[tuple[Any, ...], int] = {}
  for n, (begin, end) in enumerate(zip(starts, [*starts[1:], len(items)]), 1):
    if not 0 <= begin <= end <= len(items) or (end - begin) % n:
      raise ArgumentError(f"ngram_counts={starts} does not split a pool of {len(items)} into {n}-grams")
    for i in range(begin, end, n): found[tuple(items[i:i + n])] = len(found)
  if len(found) != count: raise ArgumentError(f"a pool of {len(found)} n-grams has {count} ngram_indexes")
  return found

def _grams(row: list[Any], least: int, most: int, skips: int) -> Any:
  for n in range(max(1, least), min(most, len(row)) + 1):
    for step in range(1, 2 if n == 1 else skips + 2):
      if (n - 1) * step >= len(row): break
      for i in range(len(row) - (n - 1) * step): yield tuple(row[i:i + (n - 1) * step + 1:step])

# ***** conversion *****

def as_text(x: Value) -> TextTensor:
  """Return numbers as text. Floats have the fewest digits from which the number can be read back."""
  numbers, kind = as_numbers(x), x.dtype
  if kind is dtypes.float32: return TextTensor(map(_shortest, numbers), [int(d) for d in x.shape])
  return TextTensor(map(str, numbers), [int(d) for d in x.shape])

def _shortest(x: float) -> str:
  """Return the shortest text that rounds to a float32."""
  for digits in range(1, 9):
    text = f"{x:.{digits}g}"
    if truncate[dtypes.float32](float(text)) == x: return str(float(text))
  return str(float(f"{x:.9g}"))

def from_text(x: TextTensor, dtype: Any) -> Known:
  """Return text as numbers. Raises ArgumentError for text that is none."""
  def number(text: str) -> Any:
    try:
      if dtype is dtypes.bool: return bool(float({"true": "1", "false": "0"}.get(text.strip().lower(), text)))
      if dtypes.is_float(dtype): return float(text)
      try: return int(text)
      except ValueError: return int(float(text))
    except (ValueError, OverflowError):
      raise ArgumentError(f"the text {text!r:.60} is no number of {dtype}") from None
  return Known([number(text) for text in x.values], x.shape, dtype)
