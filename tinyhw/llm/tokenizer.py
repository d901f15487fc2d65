"""Byte pair encoding: texts to the numbers of tokens and back, as GGUF files describe it.

A text is cut at special tokens, then into words (words.py). A word's bytes are merged pair by pair: always the pair of lowest rank, the leftmost of
equal ones. Ranks are the order of `merges`, or, without those, the number of the token that a pair makes. Source: Sennrich et al. 2016; the spelling
of bytes as characters is that of GPT-2. Cost: O(n log n) for a word of n bytes.
"""
from __future__ import annotations
import codecs
import functools
import heapq
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tinyhw.errors import ArgumentError, FileFormatError, IndexRangeError
from tinyhw.llm.words import check_preset, split

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5   # types of tokens in GGUF files; source: enum llama_token_type
MOST_WORDS = 1 << 16                                 # remembered with their tokens
# Presets of models whose words that are tokens are not made by merging ("ignore_merges")
_TAKES_WHOLE_WORDS = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "tekken")
# What ends a turn where a file does not say it, most telling first; source: the chat templates of the models
_ENDS_OF_TURNS = ("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>", "<|return|>", "<|endoftext|>")

@functools.lru_cache(maxsize=None)
def _bytes_of_characters() -> dict[str, int]:
  """The character that stands for each byte: itself where it is printable in Latin-1, else one from U+0100 on. Source: GPT-2's encoder."""
  printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
  others = [b for b in range(256) if b not in printable]
  return {**{chr(b): b for b in printable}, **{chr(256 + k): b for k, b in enumerate(others)}}

def _spelled(text: str) -> bytes:
  """The bytes that a token's text stands for; characters that stand for none are themselves."""
  table = _bytes_of_characters()
  return b"".join(bytes((table[c],)) if c in table else c.encode("utf-8", "surrogateescape") for c in text)

class SimpleTokenizer:
  """Texts to tokens and back. normal_tokens: numbers by the spelling of GPT-2 (a space is "Ġ"); special_tokens: numbers by text.

  preset: how texts are cut into words, by the name that files have in tokenizer.ggml.pre. merges: pairs in order of rank; None: a pair's rank is the
  number of the token that it makes. Raises ArgumentError for what is no such table.

  >>> tok = SimpleTokenizer({"a": 0, "b": 1, "ab": 2}, {"<end>": 3}, "llama3", eos_id=3)
  >>> tok.encode("abba<end>"), tok.decode([2, 0])
  ([2, 1, 0, 3], 'aba')
  """
  def __init__(self, normal_tokens: Mapping[str, int], special_tokens: Mapping[str, int], preset: str = "llama3", bos_id: int | None = None,
               eos_id: int = 0, eot_id: int | None = None, *, merges: Iterable[tuple[str, str]] | None = None):
    for name, table in (("normal_tokens", normal_tokens), ("special_tokens", special_tokens)):
      if isinstance(table, Mapping) and all(isinstance(k, str) and isinstance(v, int) and v >= 0 for k, v in table.items()): continue
      raise ArgumentError(f"{name} are numbers from 0 on by text, a dict like {{'a': 0}}, not {table!r:.60}")
    self.preset, self.bos_id, self.eos_id, self.eot_id = preset, bos_id, eos_id, eot_id
    check_preset(preset)
    self._tokens = {_spelled(text): number for text, number in normal_tokens.items()}
    self._special = dict(special_tokens)
    self._bytes = {number: raw for raw, number in self._tokens.items()}
    self._bytes.update((number, text.encode("utf-8", "surrogateescape")) for text, number in self._special.items())
    self._ranks: dict[tuple[bytes, bytes], int] | None = None
    if merges is not None: self._ranks = {(_spelled(a), _spelled(b)): rank for rank, (a, b) in enumerate(merges)}
    self._whole = merges is None or preset in _TAKES_WHOLE_WORDS
    texts = sorted((text for text in self._special if text), key=len, reverse=True)
    self._cut = re.compile("|".join(map(re.escape, texts)) or r"(?!)")
    self._words: dict[str, tuple[int, ...]] = {}

  @staticmethod
  def from_gguf_kv(kv: Mapping[str, Any]) -> SimpleTokenizer:
    """The tokenizer that a GGUF file's metadata describe. Raises FileFormatError where they lack something, or do not fit together."""
    tokens, types, preset, merges = _lists_of(kv)
    normal: dict[str, int] = {}
    special: dict[str, int] = {}
    for number, (text, kind) in enumerate(zip(tokens, types)):
      if kind == NORMAL: normal.setdefault(text, number)
      elif kind != UNUSED: special.setdefault(text, number)
    bos, eos, eot = (_number(kv, f"tokenizer.ggml.{name}_token_id", len(tokens)) for name in ("bos", "eos", "eot"))
    if not kv.get("tokenizer.ggml.add_bos_token", bos is not None): bos = None
    if eot is None: eot = next((special[text] for text in _ENDS_OF_TURNS if text in special), None)
    if eos is None: eos = eot
    if eos is None: raise FileFormatError("the metadata have neither tokenizer.ggml.eos_token_id nor a token known to end a text")
    return SimpleTokenizer(normal, special, preset, bos, eos, eot, merges=merges)

  # ***** encoding *****

  def encode(self, text: str, special: bool = True) -> list[int]:
    """The tokens of a text. special: special tokens are seen in it; False for texts that are not trusted. Raises ArgumentError for what has no token.

    >>> SimpleTokenizer({"<": 0, "e": 1, ">": 2}, {"<e>": 3}).encode("<e>", special=False)
    [0, 1, 2]
    """
    if not isinstance(text, str): raise ArgumentError(f"a text is a str, not {text!r:.60}")
    if not special: return self._plain(text)
    found: list[int] = []
    end = 0
    for match in self._cut.finditer(text):
      found += self._plain(text[end:match.start()])
      found.append(self._special[match[0]])
      end = match.end()
    return found + self._plain(text[end:])

  def _plain(self, text: str) -> list[int]:
    """The tokens of a text without special ones."""
    if not text: return []
    found: list[int] = []
    for word in split(text, self.preset):
      tokens = self._words.get(word)
      if tokens is None:
        tokens = tuple(self._word(word))
        if len(self._words) >= MOST_WORDS: self._words.clear()
        if len(word) < 64: self._words[word] = tokens
      found += tokens
    return found

  def _word(self, word: str) -> list[int]:
    try: raw = word.encode("utf-8")
    except UnicodeEncodeError: raise ArgumentError(f"the text has half of a surrogate pair in {word!r:.60}, which is no character") from None
    if self._whole and raw in self._tokens: return [self._tokens[raw]]
    pieces = merged([raw[i:i + 1] for i in range(len(raw))], self._rank)
    try: return [self._tokens[piece] for piece in pieces]
    except KeyError as missing: raise ArgumentError(f"the tokenizer has no token for the byte {missing.args[0]!r} in {word!r:.60}") from None

  def _rank(self, a: bytes, b: bytes) -> int | None:
    """When a pair is merged, lower first; None: never."""
    number = self._tokens.get(a + b)
    return number if self._ranks is None or number is None else self._ranks.get((a, b))

  # ***** decoding *****

  def token_bytes(self, token: int) -> bytes:
    """The bytes of one token. Raises IndexRangeError for a number that no token has."""
    raw = self._bytes.get(token)
    if raw is None: raise IndexRangeError(f"no token has the number {token!r}; there are {len(self._bytes)}, up to {max(self._bytes, default=-1)}")
    return raw

  def decode(self, ids: Sequence[int]) -> str:
    """The text of tokens. Bytes that are no UTF-8 become U+FFFD. Raises IndexRangeError for a number that no token has."""
    return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

  def stream_decoder(self) -> Callable[..., str]:
    """A function of one token that gives the text that is complete with it, and without a token what is left of it at the end.

    >>> more = SimpleTokenizer({"â": 0, "Ĥ": 1, "¬": 2}, {}).stream_decoder()
    >>> more(0), more(1), more(2), more()
    ('', '', '€', '')
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    def more(token: int | None = None) -> str:
      return decoder.decode(b"" if token is None else self.token_bytes(token), final=token is None)
    return more

  def is_special(self, text: str) -> bool:
    """Is this the text of a special token?"""
    return text in self._special

  def is_end(self, token_id: int) -> bool:
    """Does this token end a text or a turn?"""
    return token_id == self.eos_id or (self.eot_id is not None and token_id == self.eot_id)

def merged(pieces: list[bytes], rank: Callable[[bytes, bytes], float | None]) -> list[bytes]:
  """Neighbours made one, those of lowest rank first, until no pair has a rank.

  >>> merged([b"a", b"b", b"a", b"b"], lambda a, b: {b"ab": 0, b"aba": 1}.get(a + b))
  [b'ab', b'ab']
  """
  after, before = list(range(1, len(pieces) + 1)), list(range(-1, len(pieces) - 1))   # neighbours that are left
  heap: list[tuple[float, int, bytes, bytes]] = []
  def offer(left: int, right: int) -> None:
    if left < 0 or right >= len(pieces): return
    found = rank(pieces[left], pieces[right])
    if found is not None: heapq.heappush(heap, (found, left, pieces[left], pieces[right]))
  for left in range(len(pieces) - 1): offer(left, left + 1)
  while heap:
    _, left, a, b = heapq.heappop(heap)
    right = after[left]
    if pieces[left] != a or right >= len(pieces) or pieces[right] != b: continue   # one of them has become part of another meanwhile
    pieces[left], pieces[right] = a + b, b""
    after[left] = after[right]
    if after[left] < len(pieces): before[after[left]] = left
    offer(before[left], left)
    offer(left, after[left])
  return [piece for piece in pieces if piece]

# ***** metadata *****

def _lists_of(kv: Mapping[str, Any]) -> tuple[list[str], list[int], str, list[tuple[str, str]] | None]:
  """Tokens, their types, the preset and the merges."""
  model = kv.get("tokenizer.ggml.model", "gpt2")
  if model != "gpt2": raise FileFormatError(f"tokenizers of the kind {model!r} are not known; known is 'gpt2' (byte pairs)")
  tokens = kv.get("tokenizer.ggml.tokens")
  if not isinstance(tokens, list) or not tokens or not all(isinstance(text, str) for text in tokens):
    raise FileFormatError("the metadata have no tokenizer.ggml.tokens; is it a model of language?")
  types = kv.get("tokenizer.ggml.token_type", [NORMAL] * len(tokens))
  if not isinstance(types, list) or len(types) != len(tokens): raise FileFormatError("tokenizer.ggml.token_type has not one type for each token")
  preset = kv.get("tokenizer.ggml.pre", "default")
  try: check_preset(preset)
  except ArgumentError as error: raise FileFormatError(f"tokenizer.ggml.pre: {error.message}") from None
  merges = kv.get("tokenizer.ggml.merges")
  if merges is None: return tokens, types, preset, None
  pairs = [tuple(merge.split(" ")) if isinstance(merge, str) else () for merge in merges] if isinstance(merges, list) else [()]
  if any(len(pair) != 2 for pair in pairs): raise FileFormatError("tokenizer.ggml.merges are not pairs of texts with a space between them")
  return tokens, types, preset, pairs  # type: ignore[return-value]

def _number(kv: Mapping[str, Any], key: str, count: int) -> int | None:
  """The token that a key names, if it does."""
  number = kv.get(key)
  if number is not None and (type(number) is not int or not 0 <= number < count):
    raise FileFormatError(f"{key} is {number!r}, and there are {count} tokens")
  return number
