"""Results that no path reads, in a graph of nodes."""
from __future__ import annotations

import pytest

from tinyhw.emulator.checks.unused import SHOWN, InstructionNode, refuse, unused
from tinyhw.emulator.errors import UnusedResult

A, B, S = ("v", 0), ("v", 1), ("s", 0)

def node(text: str, *following: int, parts: bool = False) -> InstructionNode:
  """ "A B = S": writes A and B, reads S."""
  names = {"A": A, "B": B, "S": S}
  writes, _, reads = text.partition("=")
  written = frozenset(names[name] for name in writes.split())
  return InstructionNode(text, frozenset(names[name] for name in reads.split()), written, (written,), parts, following)

def found(*nodes: InstructionNode) -> list[str]:
  return [text for _, text in unused(dict(enumerate(nodes)), frozenset({"s"}))]

def test_what_is_read_on_a_way_is_used() -> None:
  assert found(node("A =", 1), node("B = A", 2), node("= B")) == []
  assert found(node("A =", 1), node("= ", 2, 3), node("A =", 4), node("= A", 4), node("= A")) == []
  assert found(node("A =", 1), node("A = A", 1, 2), node("=")) == [], "a loop reads what it wrote"

def test_what_is_overwritten_or_left_is_not() -> None:
  assert found(node("A =", 1), node("A =", 2), node("= A")) == ["A ="]
  assert found(node("A B =", 1), node("= B")) == [], "one of its results is enough"
  assert found(node("A =", 1), node("= B")) == ["A ="]

def test_each_of_two_operations_wants_a_reader() -> None:
  two = InstructionNode("A, B", frozenset(), frozenset((A, B)), (frozenset((A,)), frozenset((B,))), False, (1,))
  assert found(two, node("= A B")) == [] and found(two, node("= B")) == found(two, node("= A")) == ["A, B"]

def test_lanes_that_part_keep_the_old_value() -> None:
  assert found(node("A =", 1), node("=", 2, parts=True), node("A =", 3), node("= A")) == []
  assert found(node("S =", 1), node("=", 2, parts=True), node("S =", 3),
               node("= S")) == ["S ="], "scalars have no lanes"

def test_what_is_said() -> None:
  refuse([], "kernel k")
  with pytest.raises(UnusedResult, match=r"(?s)no instruction that can come later reads.*kernel \+ 0x10: one.*and 2 "
                     r"more\n  kernel k"):
    refuse([(16, "one")] + [(32 + i, "x") for i in range(SHOWN + 1)], "kernel k")
