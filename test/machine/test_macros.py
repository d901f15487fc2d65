"""The text of macros, and what takes their place after allocation."""
from __future__ import annotations

import pytest

from tinyhw.machine.inst import Access, Block, Function, Inst, MInst
from tinyhw.machine.macros import MACRO, expand, parse_macros

TEXT = """
add   d=v2 a:x2 b:v2 | c=m
  low d a
  high d b
swap  x+v1 y+v1
  exchange x y
"""

def test_the_notation() -> None:
  found = parse_macros(TEXT, str.split)
  assert list(found) == ["add", "swap"]
  assert found["add"].operands == (("d", Access.WRITE, "v2"), ("a", Access.READ, "x2"), ("b", Access.READ, "v2"), ("c", Access.WRITE, "m"))
  assert found["add"].shown == 3 and found["add"].lines == (["low", "d", "a"], ["high", "d", "b"])
  assert found["swap"].shown == 2 and found["swap"].operands[0] == ("x", Access.BOTH, "v1")

def test_a_name_stands_once() -> None:
  with pytest.raises(AssertionError, match="macro add stands twice"): parse_macros(TEXT + "add d=v1\n  low d\n", str.split)

def test_macros_are_replaced_in_their_places() -> None:
  plain, macro = Inst("plain", None, ()), Inst("several", MACRO, ())
  function = Function("k")
  function.blocks = [Block(0), Block(1)]
  first = MInst(plain, [])
  function.blocks[0].insts = [first, MInst(macro, [], "origin"), first]
  kept = function.blocks[1].insts = [first]
  expand(function, lambda inst: [MInst(plain, []), MInst(plain, [], comment="own")])
  made = function.blocks[0].insts
  assert [i is first for i in made] == [True, False, False, True] and function.blocks[1].insts is kept
  assert [(i.origin, i.comment) for i in made[1:3]] == [("origin", "several"), ("origin", "own")]
