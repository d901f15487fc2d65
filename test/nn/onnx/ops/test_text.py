"""Operators on text, against Python's own."""
from typing import Any

import numpy as np
import pytest

from formats.onnx_writer import run
from tinyhw.errors import TinyError

def test_concatenation_broadcasts() -> None:
  a, b = np.array([["a"], ["b"]]), np.array(["x", "y", ""])
  assert run("StringConcat", a, b).tolist() == [["ax", "ay", "a"], ["bx", "by", "b"]]
  with pytest.raises(TinyError, match="do not broadcast"): run("StringConcat", b, b[:2])

@pytest.mark.parametrize("options, parts, counts", [
  ({}, [["a,b", "c", ""], ["d", "", ""], ["", "", ""], ["e", "f", "g"]], [2, 1, 0, 3]),
  ({"delimiter": ","}, [["a", "b c"], [" d", ""], ["", ""], ["e  f g", ""]], [2, 1, 1, 1]),
  ({"maxsplit": 1}, [["a,b", "c"], ["d", ""], ["", ""], ["e", "f g"]], [2, 1, 0, 2])])
def test_split(options: dict[str, Any], parts: list[list[str]], counts: list[int]) -> None:
  found, number = run("StringSplit", np.array(["a,b c", " d", "", "e  f g"]), outputs=2, **options)
  assert found.tolist() == parts and number.tolist() == counts

def test_normalization() -> None:
  x = np.array(["Monday", "tuesday", "MONDAY"])
  assert run("StringNormalizer", x, stopwords=["monday"], case_change_action="UPPER").tolist() == ["TUESDAY"]
  assert run("StringNormalizer", x[None], stopwords=["Monday"], is_case_sensitive=1,
             case_change_action="LOWER").tolist() == [["tuesday", "monday"]]
  assert run("StringNormalizer", x[None, :1], stopwords=["monday"]).tolist() == [[""]]
  with pytest.raises(TinyError, match="case_change_action is"): run("StringNormalizer", x, case_change_action="TITLE")
  with pytest.raises(TinyError, match="wants a shape"): run("StringNormalizer", x.reshape(3, 1))

def test_patterns() -> None:
  x = np.array(["ab1", "ab", "", "äb1"])
  assert run("RegexFullMatch", x, pattern=r"\w+\d").tolist() == [True, False, False, False]
  assert run("RegexFullMatch", x, pattern=r"(a|\\)?.*").tolist() == [True] * 4
  for pattern in (r"(a)\1", r"(?=a)b", r"(?<!a)b", "(?P=name)", "a++"):
    with pytest.raises(TinyError, match="RE2 does not have"): run("RegexFullMatch", x, pattern=pattern)
  with pytest.raises(TinyError, match="none of RE2"): run("RegexFullMatch", x, pattern="(a")

GRAMS: Any = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 2],
              "ngram_indexes": [0, 2, 1, 3]}

@pytest.mark.parametrize("mode, factors", [("TF", [2, 1, 2, 1]), ("IDF", [0.5, 2, 1, 1]), ("TFIDF", [1, 2, 2, 1])])
def test_n_grams(mode: str, factors: list[float]) -> None:
  """a b a b: two a, two b, the pairs (a b) twice, (a a) once with a skip."""
  weights = [0.5, 1.0, 2.0, 1.0]
  for x, pool in ((np.array(["a", "b", "a", "b"]), {"pool_strings": ["a", "b", "b", "a", "a", "a"]}),
                  (np.array([1, 2, 1, 2]), {"pool_int64s": [1, 2, 2, 1, 1, 1]})):
    found = run("TfIdfVectorizer", x, mode=mode, **GRAMS, **pool, **({} if mode == "TF" else {"weights": weights}))
    assert found.tolist() == factors and found.dtype == np.float32
    assert run("TfIdfVectorizer", np.stack([x, x]), mode="TF", **GRAMS, **pool).shape == (2, 4)

def test_bad_n_grams() -> None:
  x, pool = np.array([1, 2]), {"pool_int64s": [1, 2, 2, 1, 1, 1]}
  for options, why in (({**pool, "mode": "X"}, "mode is"), ({"mode": "TF"}, "has one of"),
                       ({**pool, "mode": "TF", "ngram_counts": [0, 3]}, "does not split"),
                       ({**pool, "mode": "TF", "ngram_indexes": [0, 1]}, "ngram_indexes"),
                       ({"pool_strings": ["a"] * 6, "mode": "TF"}, "another type")):
    with pytest.raises(TinyError, match=why): run("TfIdfVectorizer", x, **{**GRAMS, **options})

def test_numbers_as_text_and_back() -> None:
  x = np.array([0.1, -2.5, 1e-5, 3e38, 0.33333334, np.inf, np.nan], np.float32)
  found = run("Cast", x, to=8)
  assert found.tolist() == [str(float(str(v))) for v in x]
  np.testing.assert_array_equal(run("Cast", found.astype("U"), to=1), x)
  assert run("Cast", np.array([1, -2]), to=8).tolist() == ["1", "-2"]
  assert run("Cast", np.array(["7", "100.5", "1e3"]), to=7).tolist() == [7, 100, 1000]
  assert run("Cast", np.array(["True", "0"]), to=9).tolist() == [True, False]
  assert run("Cast", np.array(["5", "-1"]), to=22).tolist() == [5, -1]
  assert run("CastLike", np.array([3]), np.array(["x"])).tolist() == ["3"]
  assert run("CastLike", np.array(["3"]), np.array([1.5])).tolist() == [3.0]
  with pytest.raises(TinyError, match="'pear' is no number"): run("Cast", np.array(["pear"]), to=1)

def test_constants_of_text() -> None:
  assert run("Constant", value_strings=["a", "b"]).tolist() == ["a", "b"]
  assert run("Constant", value_string="a").tolist() == "a"
  assert run("Constant", value=np.array(["a"])).tolist() == ["a"]
