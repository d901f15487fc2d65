"""Sentences of docs and docstrings are short (test/pages/sentences.py counts them), and the counting is right."""
from __future__ import annotations
from collections import defaultdict

from test.pages import sentences

LEAST = 8   # sentences from which a mean says something

ALL = list(sentences.sentences())

def test_no_sentence_is_long() -> None:
  long = [f"{s.file}:{s.line}: {s.words} words: {s.text[:100]}" for s in ALL if s.words > sentences.MOST_WORDS]
  assert not long, "\n".join(long)

def test_means_are_low() -> None:
  found: dict[str, list[int]] = defaultdict(list)
  for s in ALL:
    if not s.is_cell: found[s.file].append(s.words)
  means = {file: round(sum(words) / len(words), 1) for file, words in found.items() if len(words) >= LEAST}
  assert not (high := {file: mean for file, mean in means.items() if mean > sentences.MEAN_WORDS}), high

def test_sentences_are_taken_apart() -> None:
  text = "# Head\n\nOne two. Three `a.b c` four!\nFive\nsix: (seven).\n\n- Item one. Two\n- Item e.g. three\n"
  found = list(sentences.of_text("x", text))
  assert [s.text for s in found] == ["One two.", "Three `code` four!", "Five six: (seven).", "Item one.", "Two",
                                     "Item e.g. three"]
  assert [s.line for s in found] == [3, 3, 3, 7, 7, 8] and found[1].words == 3

def test_code_and_tables() -> None:
  text = "```\nno sentence here\n```\n\n| a b | c |\n|---|---|\n| one two | [three](x.md) |\n"
  found = list(sentences.of_text("x", text))
  assert [s.text for s in found] == ["a b", "c", "one two", "three"] and all(s.is_cell for s in found)

def test_notes_of_parameters_and_rows_in_columns() -> None:
  text = "Do it. seconds: the deadline. a, b: numbers.\n\n  one   is first\n        of all\n  two   is second\n"
  assert [s.text for s in sentences.of_text("x", text)] == [
    "Do it.", "seconds: the deadline.", "a, b: numbers.", "one   is first of all", "two   is second"]

def test_docstrings() -> None:
  text = 'def f():\n  """Do this. Then that.\n\n      code that is no sentence\n\n  More.\n  """\n'
  assert [(s.line, s.text) for s in sentences.of_python("x", text)] == [(2, "Do this."), (2, "Then that."),
                                                                        (6, "More.")]
