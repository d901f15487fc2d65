"""The text of macros, and their expansion after allocation."""
from __future__ import annotations

import pytest

from tinyhw.machine.ir.inst import Access, Block, Function, Inst, MInst
from tinyhw.machine.select.macros import AFTER, MACRO, expand, parse_macros

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
  assert found["add"].operands == (("d", Access.WRITE, "v2"), ("a", Access.READ, "x2"), ("b", Access.READ, "v2"),
                                   ("c", Access.WRITE, "m"))
  assert found["add"].shown == 3 and found["add"].lines == (["low", "d", "a"], ["high", "d", "b"])
  assert found["swap"].shown == 2 and found["swap"].operands[0] == ("x", Access.BOTH, "v1")

def test_a_name_stands_once() -> None:
  with pytest.raises(AssertionError, match="add stands twice"): parse_macros(TEXT + "add d=v1\n  low d\n", str.split)

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

def test_what_stands_behind_a_jump_behind_the_macro_is_a_block() -> None:
  """Twice in one block: each rare block goes on where its macro ended."""
  plain, macro, unless, jump = Inst("plain", None, ()), Inst("several", MACRO,
                                                             ()), Inst("unless", None, ()), Inst("jump", None, ())
  function = Function("k")
  start = function.new_block(depth=1)
  start.insts = [MInst(plain, []), MInst(macro, []), MInst(plain, []), MInst(macro, []), MInst(plain, [])]
  expand(function, lambda inst: [MInst(unless, [AFTER]), MInst(plain, [], comment="rare")],
         lambda block: MInst(jump, [block]))
  first, rare, second, also_rare, last = function.blocks
  assert [[i.row.name for i in block.insts] for block in function.blocks] == [
    ["plain", "unless", "jump"], ["plain", "jump"], ["plain", "unless", "jump"], ["plain", "jump"], ["plain"]]
  assert [i.operands for i in first.insts[1:]] == [[second], [rare]] and rare.insts[1].operands == [second]
  assert [i.operands for i in second.insts[1:]] == [[last], [also_rare]] and also_rare.insts[1].operands == [last]
  assert {block.depth for block in function.blocks} == {1}
