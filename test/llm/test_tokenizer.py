"""Texts to tokens and back: a slow way of merging, tinygrad's tokenizer, metadata of files, errors."""
import random

import pytest
from hypothesis import given, strategies
from formats.tinygrad_llm import tinygrad_llm
from formats.vocabularies import TEXT, learned, metadata

from tinyhw.errors import ArgumentError, FileFormatError, IndexRangeError
from tinyhw.llm.tokenizer import SimpleTokenizer, merged
from tinyhw.llm.words import PRESETS, split

TOKENS, MERGES = learned(TEXT, "llama3", 150)
SPECIAL = {"<|begin_of_text|>": 1000, "<|eot_id|>": 1001, "<|eot_id|>x": 1002}
TOK = SimpleTokenizer(TOKENS, SPECIAL, "llama3", 1000, 1001)

def slowly(word, rank):
  """Merge by the definition: of all pairs the one of lowest rank, the leftmost of equal ones."""
  pieces = [word[i:i + 1] for i in range(len(word))]
  while found := [(r, i) for i, pair in enumerate(zip(pieces, pieces[1:])) if (r := rank(*pair)) is not None]:
    i = min(found)[1]
    pieces[i:i + 2] = [pieces[i] + pieces[i + 1]]
  return pieces

@given(strategies.text("abc", max_size=40), strategies.dictionaries(strategies.text("abc", min_size=2, max_size=5),
                                                                    strategies.integers(0, 9)))
def test_merging_is_what_the_definition_says(word, table):
  def rank(a, b): return table.get((a + b).decode())
  raw = word.encode()
  assert merged([raw[i:i + 1] for i in range(len(raw))], rank) == slowly(raw, rank)

@given(strategies.text())
def test_what_is_encoded_is_decoded(text):
  assert TOK.decode(TOK.encode(text)) == text == TOK.decode(TOK.encode(text, special=False))

def test_with_merges_and_without():
  """Where ranks and numbers agree, the tokens do too. Otherwise the ranks of merges count."""
  with_merges = SimpleTokenizer(TOKENS, {}, "gpt2", merges=MERGES)
  without = SimpleTokenizer(TOKENS, {}, "gpt2")
  assert with_merges.encode(TEXT) == without.encode(TEXT) and len(with_merges.encode(TEXT)) < len(TEXT.encode()) / 2
  tokens = {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4}
  assert SimpleTokenizer(tokens, {}, "gpt2").encode("abc") == [3, 2]
  assert SimpleTokenizer(tokens, {}, "gpt2", merges=[("b", "c"), ("a", "b")]).encode("abc") == [0, 4]

def test_words_that_are_tokens():
  """Without merges, and in models that say so, words that are tokens stay whole. In other models only merges make
  them."""
  tokens = {"a": 0, "b": 1, "c": 2, "abc": 3, "ab": 4}
  assert SimpleTokenizer(tokens, {}, "gpt2").encode("abc") == [3] == SimpleTokenizer(tokens, {}, "llama-bpe",
                                                                                     merges=[("a", "b")]).encode("abc")
  assert SimpleTokenizer(tokens, {}, "gpt2", merges=[("a", "b")]).encode("abc") == [4, 2]

def test_special_tokens_are_found_longest_first_if_they_may_be():
  assert TOK.encode("a<|eot_id|>x<|eot_id|>") == [TOKENS["a"], 1002, 1001]
  assert (1001 not in TOK.encode("<|eot_id|>", special=False) and TOK.is_special("<|eot_id|>")
          and not TOK.is_special("a"))
  assert TOK.is_end(1001) and not TOK.is_end(1000) and SimpleTokenizer(TOKENS, SPECIAL, "llama3", None, 1000,
                                                                       1001).is_end(1001)

@given(strategies.binary(max_size=40))
def test_a_stream_is_what_the_whole_is(raw):
  numbers = {bytes((b,)): n for n, b in ((n, TOK.token_bytes(n)[0]) for n in range(256))}
  tokens = [numbers[bytes((b,))] for b in raw]
  more = TOK.stream_decoder()
  parts = [more(token) for token in tokens] + [more()]
  assert "".join(parts) == TOK.decode(tokens) == raw.decode("utf-8", "replace")
  assert not any("\ufffd" in part for part in parts) or "\ufffd" in raw.decode("utf-8", "replace")

@pytest.mark.parametrize("preset", ["llama3", "llama-bpe", "glm4", "qwen2"])
def test_tokens_are_those_of_tinygrad(preset):
  theirs = tinygrad_llm("cli").SimpleTokenizer
  # "qwen2" learns no tokens of several digits, so the way in which digits are cut does not matter.
  tokens, _ = learned(TEXT, preset, 200)
  special = {"<s>": 900, "</s>": 901}
  ours, other = SimpleTokenizer(tokens, special, preset, 900, 901), theirs(tokens, special, preset, 900, 901)
  rng = random.Random(5)
  alphabet = TEXT + "  \n\n\r\t'\"!?" + "éß漢字ひらがな한글😀\u0301\u200d\u00a0½Ⅷ"
  for _ in range(300):
    text = "".join(rng.choice(["<s>", "</s>", " the", "'s", *rng.choices(alphabet, k=12)])
                   for _ in range(rng.randrange(30)))
    tokens_of = ours.encode(text)
    assert tokens_of == other.encode(text) and ours.decode(tokens_of) == text == other.decode(tokens_of)

def test_long_words_do_not_take_long():
  assert len(TOK.encode("x" * 30000)) > 1000

# ***** metadata *****

KV = metadata(TOKENS, MERGES, ["<s>", "<|im_end|>", "</s>"], "qwen2", "</s>")

def test_metadata():
  tok = SimpleTokenizer.from_gguf_kv(KV)
  n = len(TOKENS)
  assert (tok.preset, tok.bos_id, tok.eos_id, tok.eot_id) == ("qwen2", None, n + 2, n + 1)
  assert (tok.encode(TEXT) == SimpleTokenizer(TOKENS, {}, "qwen2", merges=MERGES).encode(TEXT)
          and tok.encode("<|im_end|>") == [n + 1])
  assert SimpleTokenizer.from_gguf_kv({**KV, "tokenizer.ggml.bos_token_id": n}).bos_id == n
  assert SimpleTokenizer.from_gguf_kv({**KV, "tokenizer.ggml.bos_token_id": n,
                                       "tokenizer.ggml.add_bos_token": False}).bos_id is None
  assert SimpleTokenizer.from_gguf_kv({**KV, "tokenizer.ggml.eot_token_id": 7}).is_end(7)
  bare = {k: v for k, v in KV.items() if k.endswith(("tokens", "eos_token_id"))}
  assert SimpleTokenizer.from_gguf_kv(bare).preset == "default"

@pytest.mark.parametrize("change, why", [
  ({"model": "t5"}, "'t5' are not known"), ({"tokens": None}, "no tokenizer.ggml.tokens"),
  ({"tokens": [1]}, "no tokenizer.ggml.tokens"),
  ({"token_type": [1]}, "one type for each"), ({"pre": "new"}, "called 'new'"), ({"pre": 3}, "called 3"),
  ({"merges": ["ab"]}, "pairs of texts"),
  ({"merges": 7}, "pairs of texts"), ({"eos_token_id": 10 ** 6}, "eos_token_id is 1000000"),
  ({"bos_token_id": "x"}, "bos_token_id is 'x'"),
  ({"eos_token_id": None, "tokens": ["a"], "token_type": [1], "merges": []}, "neither"),
])
def test_metadata_that_do_not_fit_are_refused(change, why):
  with pytest.raises(FileFormatError, match=why):
    SimpleTokenizer.from_gguf_kv({**KV, **{f"tokenizer.ggml.{k}": v for k, v in change.items()}})

def test_what_is_refused():
  with pytest.raises(ArgumentError, match="normal_tokens are numbers"): SimpleTokenizer(["a"], {})
  with pytest.raises(ArgumentError, match="special_tokens are numbers"): SimpleTokenizer({"a": 0}, {"b": "c"})
  with pytest.raises(ArgumentError, match="is called 'x'"): SimpleTokenizer({"a": 0}, {}, "x")
  with pytest.raises(ArgumentError, match="a text is a str"): TOK.encode(b"a")
  with pytest.raises(ArgumentError, match="half of a surrogate pair"): TOK.encode("a\ud800")
  with pytest.raises(ArgumentError, match="no token for the byte b'b'"): SimpleTokenizer({"a": 0}, {}).encode("ab")
  for number in (5000, -1, None):
    with pytest.raises(IndexRangeError, match="no token has the number"): TOK.decode([number])

def test_all_presets_make_tokenizers():
  for preset in PRESETS:
    tok = SimpleTokenizer(TOKENS, {}, preset)
    assert tok.decode(tok.encode(TEXT)) == TEXT == "".join(split(TEXT, preset))

# ***** SentencePiece *****

PIECES = {"\u2581": -3.0, "a": -4.0, "b": -4.5, "ab": -1.5, "\u2581a": -2.0, "\u2581ab": -1.0, "ba": -1.2, "é": -5.0,
          "\u2581\u2581": -0.5}
SCORED_KV = {"tokenizer.ggml.model": "llama",
             "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *PIECES],
             "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, *[1] * len(PIECES)],
             "tokenizer.ggml.scores": [0.0] * 259 + list(PIECES.values()), "tokenizer.ggml.bos_token_id": 1,
             "tokenizer.ggml.eos_token_id": 2,
             "tokenizer.ggml.unknown_token_id": 0}
SCORED = SimpleTokenizer.from_gguf_kv(SCORED_KV)

def pieces_of(tok, text):
  return [SCORED_KV["tokenizer.ggml.tokens"][token].replace("\u2581", "_") for token in tok.encode(text)]

def test_scores():
  """The pair of highest score is merged first. A character without a token becomes bytes. Each text begins with a
  space."""
  assert (pieces_of(SCORED, "ab") == ["_ab"] and pieces_of(SCORED, "aba") == ["_a", "ba"]
          and pieces_of(SCORED, "  a") == ["__", "_a"])
  assert pieces_of(SCORED, "é\n") == ["_", "é", "<0x0A>"] and pieces_of(SCORED,
                                                                        "\u20ac") == ["_", "<0xE2>", "<0x82>", "<0xAC>"]
  assert (pieces_of(SCORED, "a</s>b") == ["_a", "</s>", "_", "b"] and SCORED.is_end(2) and SCORED.bos_id == 1
          and SCORED.encode("") == [])
  without = SimpleTokenizer.from_gguf_kv({**SCORED_KV, "tokenizer.ggml.add_space_prefix": False})
  assert pieces_of(without, "ab") == ["ab"] and without.decode(without.encode(" a")) == " a"

@given(strategies.text(strategies.sampled_from("ab \u00e9\u20ac"), max_size=30))
def test_merging_by_scores_is_what_the_definition_says(text):
  scores = {piece.replace("\u2581", " "): -score for piece, score in PIECES.items()}
  pieces = list(" " + text) if text else []
  while found := [(scores[a + b], i) for i, (a, b) in enumerate(zip(pieces, pieces[1:])) if a + b in scores]:
    i = min(found)[1]
    pieces[i:i + 2] = [pieces[i] + pieces[i + 1]]
  want = [p for piece in pieces
          for p in ([piece.replace(" ", "_")] if piece in scores else [f"<0x{b:02X}>" for b in piece.encode()])]
  assert pieces_of(SCORED, text) == want

@given(strategies.text())
def test_scored_texts_are_decoded(text):
  for changed in (text, f" {text}</s> {text}<s>"): assert SCORED.decode(SCORED.encode(changed)) == changed
  more = SCORED.stream_decoder()
  assert "".join([*map(more, SCORED.encode(text)), more()]) == (" " + text if text else "")

def test_scored_metadata_that_do_not_fit():
  for change, why in (({"scores": [0.0]}, "one number for each"), ({"scores": None}, "one number for each"),
                      ({"scores": ["a"] * 268}, "one number"),
                      ({"token_type": [6] * 268}, "said to be a byte")):
    with pytest.raises(FileFormatError, match=why):
      SimpleTokenizer.from_gguf_kv(SCORED_KV | {f"tokenizer.ggml.{k}": v for k, v in change.items()})
  few = {"tokens": ["a"], "token_type": [1], "scores": [0.0], "bos_token_id": None, "eos_token_id": 0,
         "unknown_token_id": None}
  tok = SimpleTokenizer.from_gguf_kv({"tokenizer.ggml.model": "llama",
                                      **{f"tokenizer.ggml.{k}": v for k, v in few.items()}})
  with pytest.raises(ArgumentError, match="no token for ' ', nor for its bytes"): tok.encode("a")
  with pytest.raises(ArgumentError, match="half of a surrogate pair"): SCORED.encode("\ud800")
  few["unknown_token_id"] = 0
  assert SimpleTokenizer.from_gguf_kv({"tokenizer.ggml.model": "llama",
                                       **{f"tokenizer.ggml.{k}": v for k, v in few.items()}}).encode("b") == [0, 0]
