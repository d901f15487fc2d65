"""Words of texts: hand-made examples of each kind of expressions, and classes of characters."""
import re
import unicodedata

import pytest
from hypothesis import given, strategies

from tinyhw.errors import ArgumentError
from tinyhw.llm import words

TEXT = "It's HE'LL 12345 a1.\n\n x"
EXAMPLES = {   # the words of TEXT, separated by |, and the name of a preset for each
  "llama3": "It|'s| HE|'LL| |123|45| a|1|.\n\n| x", "qwen2": "It|'s| HE|'LL| |1|2|3|4|5| a|1|.\n\n| x",
  "qwen35": "It|'s| HE|'LL| |1|2|3|4|5| a|1|.\n\n| x", "gpt2": "It|'s| HE|'|LL| 12345| a|1|.|\n\n| x",
  "starcoder": "It|'s| HE|'|LL| |1|2|3|4|5| a|1|.|\n\n| x", "tekken": "It|'s| HE|'LL| |1|2|3|4|5| a|1|.\n\n| x",
  "gpt-4o": "It's| HE'LL| |123|45| a|1|.\n\n| x", "kimi-k2": "It's| HE'LL| |123|45| a|1|.\n\n| x",
  "deepseek-v3": "It|'s| HE|'LL| |123|45| a|1|.\n\n| x", "falcon": "It|'|s| HE|'|LL| |123|45| a|1|.|\n\n| x",
  "default": "It|'|s| HE|'|LL| |123|45| a|1|.|\n\n| x",
}

@pytest.mark.parametrize("preset", EXAMPLES)
def test_words(preset):
  assert words.split(TEXT, preset) == EXAMPLES[preset].split("|")

def test_every_kind_has_an_example(): assert set(EXAMPLES) == set(words.PRESETS.values())

@pytest.mark.parametrize("preset, text, found", [
  ("llama3", "a  b   \n c", ["a", " ", " b", "   \n", " c"]), ("llama3", "x!?\r\n\ty", ["x", "!?\r\n", "\ty"]),
  ("llama3", "½²³٣", ["½²³", "٣"]),
  ("llama3", "日本語。テスト", ["日本語", "。テスト"]), ("llama3", "e\u0301x", ["e", "\u0301x"]),
  ("qwen35", "e\u0301x", ["e\u0301x"]),
  ("llama3", "a\u3000\u3000b", ["a", "\u3000", "\u3000b"]), ("llama3", "a\x1c\x1db", ["a", "\x1c\x1d", "b"]),
  ("llama3", "don'ſ", ["don", "'ſ"]),
  ("tekken", "camelCaseWORDs a/\n/b", ["camel", "Case", "WORDs", " a", "/\n/", "b"]),
  ("gpt-4o", "you'reX", ["you're", "X"]),
  ("kimi-k2", "漢字かな", ["漢字", "かな"]), ("deepseek-v3", "漢字かな,foo", ["漢字かな", ",foo"]),
  ("gpt2", "a  b \n", ["a", " ", " b", " \n"]),
])
def test_corners(preset, text, found): assert words.split(text, preset) == found

@given(strategies.text(), strategies.sampled_from(sorted(EXAMPLES)))
def test_words_are_the_text(text, preset):
  found = words.split(text, preset)
  assert "".join(found) == text and "" not in found

def test_classes_are_those_of_unicode():
  letter, number = (re.compile(words.translate(rf"\p{{{name}}}")) for name in "LN")
  for code in range(0, 0x110000, 7):
    category = unicodedata.category(chr(code))
    assert (bool(letter.fullmatch(chr(code))) == category.startswith("L") and bool(number.fullmatch(chr(code)))
            == category.startswith("N"))

def test_long_runs_take_linear_time():
  for preset in EXAMPLES:
    for c in " a\nA.1é": assert words.split(c * 20000, preset)

def test_an_unknown_preset_is_refused():
  for preset in ("llama9", None, ["llama3"]):
    with pytest.raises(ArgumentError, match="no way to cut texts into words is called"): words.split("a", preset)
