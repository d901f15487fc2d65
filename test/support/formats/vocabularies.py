"""Tokenizers for tests: vocabularies made by merging what is frequent, as real ones are, and metadata of files."""
from __future__ import annotations
from collections import Counter
from typing import Any

from tinyhw.llm.words import split

PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
SPELLING = {b: chr(b) for b in PRINTABLE} | {b: chr(256 + k)
                                             for k, b in enumerate(b for b in range(256) if b not in PRINTABLE)}
TEXT = ("The cat's 12345 hats don't fit.\n\n  It's HE'LL o'clock — naïve façade, Ünïcödé 日本語 テスト привет мир!\n"
        "def f(x):\n    return x ** 2  # 3.14159\r\n\t\tתודה 😀👍🏽 e\u0301 ½ ²³ ΑΒΓ camelCaseWord HTTPServer\n" * 3)

def spelled(raw: bytes) -> str: return "".join(SPELLING[b] for b in raw)

def learned(text: str, preset: str, count: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
  """Tokens and merges: all bytes, then the most frequent pair again and again."""
  words = [[bytes((b,)) for b in word.encode()] for word in split(text, preset)]
  tokens = {SPELLING[b]: b for b in range(256)}
  merges: list[tuple[str, str]] = []
  while len(merges) < count:
    pairs = Counter(pair for word in words for pair in zip(word, word[1:]))
    if not pairs: break
    a, b = max(pairs, key=lambda pair: (pairs[pair], pair))
    merges.append((spelled(a), spelled(b)))
    tokens.setdefault(spelled(a + b), len(tokens))
    for word in words:
      k = 0
      while k + 1 < len(word):
        if word[k] == a and word[k + 1] == b: word[k:k + 2] = [a + b]
        k += 1
  return tokens, merges

def metadata(tokens: dict[str, int], merges: list[tuple[str, str]] | None, special: list[str], preset: str,
             eos: str) -> dict[str, Any]:
  """A file's entries. Special tokens come behind the others."""
  texts = [*sorted(tokens, key=tokens.__getitem__), *special]
  found: dict[str, Any] = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": preset, "tokenizer.ggml.tokens": texts,
                           "tokenizer.ggml.token_type": [1] * len(tokens) + [3] * len(special),
                           "tokenizer.ggml.eos_token_id": texts.index(eos)}
  if merges is not None: found["tokenizer.ggml.merges"] = [" ".join(pair) for pair in merges]
  return found
