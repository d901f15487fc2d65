"""Unused results: EMULATE_STRICT=2 reports instructions whose results no path reads before they are overwritten or the
wave ends.

Hardware accepts such an instruction, and compilers do not emit one. So it points to a mistake: usually another register
was meant, here or in a later read. Otherwise it wastes time. The check analyses the code before it runs, so data do not
matter. It follows each result along all branches. Only a write with at least the lanes of the first writer overwrites a
register. The families make the nodes.
"""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.emulator.errors import UnusedResult
from tinyhw.named_tuple import NamedTuple

Register = tuple[str, int]  # bank and index
SHOWN = 4

class InstructionNode(NamedTuple):
  """An instruction of the code. next: offsets of its possible successors. parts: after it, other lanes may be active.
  results: a set of registers for each operation of the instruction. A read of one register of a set makes it used."""
  text: str
  reads: frozenset[Register]
  writes: frozenset[Register]
  results: tuple[frozenset[Register], ...]
  parts: bool
  next: tuple[int, ...]

def unused(nodes: dict[int, InstructionNode], scalar: frozenset[str]) -> tuple[tuple[int, str], ...]:
  """Return (offset, text) of the instructions with unused results. scalar: register banks that have no lanes."""
  def needless(at: int, results: frozenset[Register]) -> bool:
    return bool(results) and not any(is_read(nodes, at, r, scalar) for r in results)
  return tuple((at, made.text) for at, made in nodes.items() if any(needless(at, results) for results in made.results))

def is_read(nodes: dict[int, InstructionNode], start: int, register: Register, scalar: frozenset[str]) -> bool:
  """Return whether a path leads from the write of a register to a read of it."""
  seen: set[tuple[int, bool]] = set()
  work = [(at, False) for at in nodes[start].next]
  while work:
    at, fewer = place = work.pop()
    if place in seen: continue
    seen.add(place)
    node = nodes[at]
    if register in node.reads: return True
    if register in node.writes and (register[0] in scalar or not fewer): continue
    work += [(following, fewer or node.parts) for following in node.next]
  return False

def refuse(lines: Sequence[tuple[int, str]], kernel: str) -> None:
  """Raise UnusedResult if there are lines. kernel: its name."""
  if not lines: return
  raise UnusedResult("no instruction that can come later reads what these write; is another register meant, or is the "
                     "instruction needless?"
                     + "".join(f"\n  kernel + {at:#x}: {text}" for at, text in lines[:SHOWN])
                     + (f"\n  and {len(lines) - SHOWN} more" if len(lines) > SHOWN else "") + f"\n  {kernel}")
