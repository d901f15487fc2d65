"""Conversion of texts to tokens and back, as GGUF files describe it: byte pair encoding ("gpt2"), and SentencePiece's
with scores ("llama").

A text is cut at special tokens, then into words (words.py). A word's bytes are merged pair by pair: always the pair of
lowest rank, the leftmost of equal ones. Ranks are the order of `merges`, or, without those, the number of the token
that a pair makes. Source: Sennrich et al. 2016. The spelling of bytes as characters is that of GPT-2. Cost: O(n log n)
for a word of n bytes.

SentencePiece merges characters of the whole text in the same way. It first merges the pair that makes the token of
highest score (Kudo and Richardson 2018).
"""
from __future__ import annotations
import codecs
import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tinyhw.errors import ArgumentError, FileFormatError, IndexRangeError
from tinyhw.llm.words import check_preset, split
from tinyhw.threads import once

NORMAL, UNUSED, BYTE = 1, 5, 6   # types of tokens in GGUF files; source: enum llama_token_type
MOST_WORDS = 1 << 16                                 # words that are remembered with their tokens
# Presets of models in which a word that is a token is not merged ("ignore_merges")
_TAKES_WHOLE_WORDS = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
                      "tekken")
# Tokens that end a turn if the file does not name one, most telling first; source: the chat templates of the models
_ENDS_OF_TURNS = ("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>", "<|return|>",
                  "<|endoftext|>")

@once
def _bytes_of_characters() -> dict[str, int]:
  """Return the character for each byte: the byte itself where it is printable in Latin-1, else a character from U+0100
  on.

  Source: GPT-2's encoder.
  """
  printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
  others = [b for b in range(256) if b not in printable]
  return {**{chr(b): b for b in printable}, **{chr(256 + k): b for k, b in enumerate(others)}}

def _spelled(text: str) -> bytes:
  """Return the bytes for which a token's text stands. Characters that stand for no byte are kept."""
  table = _bytes_of_characters()
  return b"".join(bytes((table[c],)) if c in table else c.encode("utf-8", "surrogateescape") for c in text)

class SimpleTokenizer:
  """A converter of texts to tokens and back. normal_tokens: numbers by the spelling of GPT-2 (a space is "Ġ").
  special_tokens: numbers by text.

  preset: the rule that cuts texts into words, by the name that files have in tokenizer.ggml.pre. merges: pairs in order
  of rank; None: a pair's rank is the number of the token that it makes. Raises ArgumentError for malformed tables.

  >>> tok = SimpleTokenizer({"a": 0, "b": 1, "ab": 2}, {"<end>": 3}, "llama3", eos_id=3)
  >>> tok.encode("abba<end>"), tok.decode([2, 0])
  ([2, 1, 0, 3], 'aba')
  """
  def __init__(self, normal_tokens: Mapping[str, int], special_tokens: Mapping[str, int], preset: str = "llama3",
               bos_id: int | None = None,
               eos_id: int = 0, eot_id: int | None = None, *, merges: Iterable[tuple[str, str]] | None = None):
    for name, table in (("normal_tokens", normal_tokens), ("special_tokens", special_tokens)):
      if isinstance(table, Mapping) and all(isinstance(k, str) and isinstance(v, int) and v >= 0
                                            for k, v in table.items()):
        continue
      raise ArgumentError(f"{name} are numbers from 0 on by text, a dict like {{'a': 0}}, not {table!r:.60}")
    check_preset(preset)
    self._take({_spelled(text): number for text, number in normal_tokens.items()}, special_tokens, preset, bos_id,
               eos_id, eot_id)
    self._ranks: dict[tuple[bytes, bytes], int] | None = None
    if merges is not None: self._ranks = {(_spelled(a), _spelled(b)): rank for rank, (a, b) in enumerate(merges)}
    self._whole = merges is None or preset in _TAKES_WHOLE_WORDS
    self._words: dict[str, tuple[int, ...]] = {}

  def _take(self, tokens: dict[bytes, int], special: Mapping[str, int], preset: str, bos_id: int | None, eos_id: int,
            eot_id: int | None) -> None:
    """Set the attributes that all kinds of tokenizers have."""
    self.preset, self.bos_id, self.eos_id, self.eot_id = preset, bos_id, eos_id, eot_id
    self._tokens, self._special = tokens, dict(special)
    self._bytes = {number: raw for raw, number in tokens.items()}
    self._bytes.update((number, text.encode("utf-8", "surrogateescape")) for text, number in self._special.items())
    self.longest = max(4, *map(len, self._bytes.values()))   # bytes, and so characters, of one token at most
    lengths: dict[str, set[int]] = {}
    for text in self._special:
      if text: lengths.setdefault(text[0], set()).add(len(text))
    # special tokens, by their first character
    self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
    self._first = re.compile(f"[{''.join(map(re.escape, lengths))}]" if lengths else r"(?!)")

  @staticmethod
  def from_gguf_kv(kv: Mapping[str, Any]) -> SimpleTokenizer:
    """Return the tokenizer that a GGUF file's metadata describe.

    Raises FileFormatError where they lack something, or are inconsistent.
    """
    tokens, types = _tokens_of(kv)
    scored = _model_of(kv) == "llama"
    normal: dict[str, int] = {}
    special: dict[str, int] = {}
    byte_tokens: dict[int, int] = {}
    for number, (text, kind) in enumerate(zip(tokens, types)):
      if kind == NORMAL: normal.setdefault(text, number)
      elif kind == BYTE and scored: byte_tokens[_byte_of(text)] = number
      elif kind != UNUSED: special.setdefault(text, number)
    bos, eos, eot = (_number(kv, f"tokenizer.ggml.{name}_token_id", len(tokens)) for name in ("bos", "eos", "eot"))
    if not kv.get("tokenizer.ggml.add_bos_token", bos is not None): bos = None
    if eot is None: eot = next((special[text] for text in _ENDS_OF_TURNS if text in special), None)
    if eos is None: eos = eot
    if eos is None:
      raise FileFormatError("the metadata have neither tokenizer.ggml.eos_token_id nor a token known to end a text")
    if not scored: return SimpleTokenizer(normal, special, _preset_of(kv), bos, eos, eot, merges=_merges_of(kv))
    scores = kv.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(tokens) or not all(type(score) is float for score in scores):
      raise FileFormatError("tokenizer.ggml.scores has not one number for each token")
    unknown = _number(kv, "tokenizer.ggml.unknown_token_id", len(tokens))
    return ScoredTokenizer(normal, scores, byte_tokens, special, bos, eos, eot, unknown,
                           kv.get("tokenizer.ggml.add_space_prefix", True) is True)

  # ***** encoding *****

  def encode(self, text: str, special: bool = True) -> list[int]:
    """Return the tokens of a text. special: recognise special tokens in it; False for texts that are not trusted.
    Raises ArgumentError for text without a token.

    >>> SimpleTokenizer({"<": 0, "e": 1, ">": 2}, {"<e>": 3}).encode("<e>", special=False)
    [0, 1, 2]
    """
    if not isinstance(text, str): raise ArgumentError(f"a text is a str, not {text!r:.60}")
    if not special: return self._plain(text)
    found: list[int] = []
    end = 0
    for start, after in self._specials(text):
      found += self._plain(text[end:start])
      found.append(self._special[text[start:after]])
      end = after
    return found + self._plain(text[end:])

  def _specials(self, text: str) -> Iterator[tuple[int, int]]:
    """Return the start and end of special tokens in a text: the longest of those that begin at one place. A regular
    expression of all of them would take 200 bytes for each of their characters."""
    at = 0
    while (match := self._first.search(text, at)) is not None:
      start = match.start()
      length = next((n for n in self._lengths[text[start]] if start + n <= len(text)
                     and text[start:start + n] in self._special), 0)
      if length: yield start, start + length
      at = start + max(length, 1)

  def _plain(self, text: str) -> list[int]:
    """Return the tokens of a text without special ones."""
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
    except UnicodeEncodeError:
      raise ArgumentError(f"the text has half of a surrogate pair in {word!r:.60}, which is no character") from None
    if self._whole and raw in self._tokens: return [self._tokens[raw]]
    pieces = merged([raw[i:i + 1] for i in range(len(raw))], self._rank)
    try: return [self._tokens[piece] for piece in pieces]
    except KeyError as missing:
      raise ArgumentError(f"the tokenizer has no token for the byte {missing.args[0]!r} in {word!r:.60}") from None

  def _rank(self, a: bytes, b: bytes) -> int | None:
    """Return the rank of a pair: lower is merged first. None: never."""
    number = self._tokens.get(a + b)
    return number if self._ranks is None or number is None else self._ranks.get((a, b))

  # ***** decoding *****

  def token_bytes(self, token: int) -> bytes:
    """Return the bytes of one token. Raises IndexRangeError for a number that no token has."""
    raw = self._bytes.get(token)
    if raw is None:
      raise IndexRangeError(f"no token has the number {token!r}; there are {len(self._bytes)}, up to "
                            f"{max(self._bytes, default=-1)}")
    return raw

  def decode(self, ids: Sequence[int]) -> str:
    """Return the text of tokens.

    Bytes that are not UTF-8 become U+FFFD. Raises IndexRangeError for a number that no token has.
    """
    return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

  def stream_decoder(self) -> Callable[..., str]:
    """Return a function of one token that returns the text that is complete with it. Without a token, it returns the
    rest at the end.

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

class ScoredTokenizer(SimpleTokenizer):
  """SentencePiece's tokenizer. scores: of each token, by number. byte_tokens: numbers of tokens of one byte, for
  characters that no token has.

  space_prefix: a space is put before each text, and removed again. Spaces are U+2581 in tokens.
  """
  def __init__(self, tokens: Mapping[str, int], scores: Sequence[float], byte_tokens: Mapping[int, int],
               special_tokens: Mapping[str, int],
               bos_id: int | None, eos_id: int, eot_id: int | None, unknown_id: int | None, space_prefix: bool):
    spelled = {text.replace("\u2581", " ").encode("utf-8", "surrogateescape"): number
               for text, number in tokens.items()}
    self._take(spelled, special_tokens, "sentencepiece", bos_id, eos_id, eot_id)
    self._scores, self._byte_tokens, self._unknown, self._prefix = scores, dict(byte_tokens), unknown_id, space_prefix
    self._bytes.update((number, bytes((b,))) for b, number in byte_tokens.items())
    self._between = frozenset(self._special.values())

  def _plain(self, text: str) -> list[int]:
    if not text: return []
    try: pieces = [c.encode("utf-8") for c in (" " + text if self._prefix else text)]
    except UnicodeEncodeError:
      raise ArgumentError(f"the text has half of a surrogate pair in {text!r:.60}, which is no character") from None
    found: list[int] = []
    for piece in merged(pieces, self._rank): found += self._tokens_of(piece)
    return found

  def _rank(self, a: bytes, b: bytes) -> float | None:  # type: ignore[override]   # scores are no whole numbers
    number = self._tokens.get(a + b)
    return None if number is None else -self._scores[number]

  def _tokens_of(self, piece: bytes) -> list[int]:
    """Return the token of a piece, or those of its bytes, or the token for unknown text."""
    if piece in self._tokens: return [self._tokens[piece]]
    if all(b in self._byte_tokens for b in piece): return [self._byte_tokens[b] for b in piece]
    if self._unknown is None:
      raise ArgumentError(f"the tokenizer has no token for {piece.decode()!r}, nor for its bytes")
    return [self._unknown]

  def decode(self, ids: Sequence[int]) -> str:
    """Decode as SimpleTokenizer does, without the spaces that encode puts before texts.

    A stream keeps them, since it continues a text.
    """
    found: list[bytes] = []
    begins = self._prefix   # does a text begin here?
    for token in ids:
      raw = self.token_bytes(token)
      found.append(raw[1:] if begins and token not in self._between and raw.startswith(b" ") else raw)
      begins = self._prefix and token in self._between
    return b"".join(found).decode("utf-8", "replace")

def merged(pieces: list[bytes], rank: Callable[[bytes, bytes], float | None]) -> list[bytes]:
  """Merge neighbours, those of lowest rank first, until no pair has a rank.

  >>> merged([b"a", b"b", b"a", b"b"], lambda a, b: {b"ab": 0, b"aba": 1}.get(a + b))
  [b'ab', b'ab']
  """
  after, before = list(range(1, len(pieces) + 1)), list(range(-1, len(pieces) - 1))   # the neighbours that are left
  heap: list[tuple[float, int, bytes, bytes]] = []
  def offer(left: int, right: int) -> None:
    if left < 0 or right >= len(pieces): return
    found = rank(pieces[left], pieces[right])
    if found is not None: heapq.heappush(heap, (found, left, pieces[left], pieces[right]))
  for left in range(len(pieces) - 1): offer(left, left + 1)
  while heap:
    _, left, a, b = heapq.heappop(heap)
    right = after[left]
    # one of them has been merged since
    if pieces[left] != a or right >= len(pieces) or pieces[right] != b: continue
    pieces[left], pieces[right] = a + b, b""
    after[left] = after[right]
    if after[left] < len(pieces): before[after[left]] = left
    offer(before[left], left)
    offer(left, after[left])
  return [piece for piece in pieces if piece]

# ***** metadata *****

def _model_of(kv: Mapping[str, Any]) -> str:
  model = kv.get("tokenizer.ggml.model", "gpt2")
  if model not in ("gpt2", "llama"):
    raise FileFormatError(f"tokenizers of the kind {model!r} are not known; known are 'gpt2' (byte pairs) and 'llama' "
                          f"(SentencePiece)")
  return str(model)

def _tokens_of(kv: Mapping[str, Any]) -> tuple[list[str], list[int]]:
  """Return tokens and their types."""
  tokens = kv.get("tokenizer.ggml.tokens")
  if not isinstance(tokens, list) or not tokens or not all(isinstance(text, str) for text in tokens):
    raise FileFormatError("the metadata have no tokenizer.ggml.tokens; is it a model of language?")
  types = kv.get("tokenizer.ggml.token_type", [NORMAL] * len(tokens))
  if not isinstance(types, list) or len(types) != len(tokens):
    raise FileFormatError("tokenizer.ggml.token_type has not one type for each token")
  return tokens, types

def _preset_of(kv: Mapping[str, Any]) -> str:
  preset = kv.get("tokenizer.ggml.pre", "default")
  try: check_preset(preset)
  except ArgumentError as error: raise FileFormatError(f"tokenizer.ggml.pre: {error.message}") from None
  return str(preset)

def _merges_of(kv: Mapping[str, Any]) -> list[tuple[str, str]] | None:
  merges = kv.get("tokenizer.ggml.merges")
  if merges is None: return None
  pairs: list[tuple[str, str]] = []
  for merge in merges if isinstance(merges, list) else [merges]:
    a, space, b = merge.partition(" ") if isinstance(merge, str) else ("", "", "")
    if not a or not b or " " in b:
      raise FileFormatError(f"tokenizer.ggml.merges are pairs of texts with a space between them, and not "
                            f"{merge!r:.60}")
    pairs.append((a, b))
  return pairs

def _byte_of(text: str) -> int:
  """Return the byte of a token "<0x0A>"."""
  if not re.fullmatch("<0x[0-9A-Fa-f]{2}>", text):
    raise FileFormatError(f"the token {text!r:.60} is said to be a byte, and is not like <0x0A>")
  return int(text[3:5], 16)

def _number(kv: Mapping[str, Any], key: str, count: int) -> int | None:
  """Return the token that a key names, if it does."""
  number = kv.get(key)
  if number is not None and (type(number) is not int or not 0 <= number < count):
    raise FileFormatError(f"{key} is {number!r}, and there are {count} tokens")
  return number
