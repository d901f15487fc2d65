"""Tables that are parsed entry by entry."""
from __future__ import annotations

import pytest

from tinyhw.machine.notation.lazy import Lazy, blocks_of

def test_an_entry_is_made_once_when_it_is_asked_for() -> None:
  made: list[str] = []
  def double(text: str) -> str:
    made.append(text)
    return text * 2
  table = Lazy({"a": "x", "b": "y"}, double)
  assert "a" in table and "c" not in table and list(table) == ["a", "b"] and len(table) == 2 and not made
  assert table["b"] == table["b"] == "yy" and made == ["y"]
  with pytest.raises(KeyError): table["c"]
  assert table.get("c") is None and dict(table) == {"a": "xx", "b": "yy"}

def test_blocks_have_names_and_lines() -> None:
  assert blocks_of("\none x=y\n  first\n  second\n\ntwo\n") == {"one": ["one x=y", "  first", "  second"],
                                                                "two": ["two"]}
  with pytest.raises(AssertionError, match="one stands twice"): blocks_of("one\n  a\none\n  b\n")
