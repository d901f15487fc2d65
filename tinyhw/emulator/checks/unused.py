"""Results that nothing reads: EMULATE_STRICT=2 looks for instructions whose results no path reads before they are
overwritten or the wave ends.

Hardware minds nothing of it, and a compiler makes none: such an instruction stands for a mistake, mostly that another
register was meant, here or where it should be read; or for time that is lost. It is a look at the code before it runs,
so that data do not matter: from each result along all branches. A register is overwritten only by what has the lanes of
the first writer at least. Families make the nodes.
"""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.emulator.errors import UnusedResult
from tinyhw.named_tuple import NamedTuple

Register = tuple[str, int]  # bank and index
SHOWN = 4

class Node(NamedTuple):
  """An instruction of the code. next: offsets of those that may follow. parts: behind it other lanes may be active.
  results: what it should be there for, a set for each operation that it is; one of a set is enough."""
  text: str
  reads: frozenset[Register]
  writes: frozenset[Register]
  results: tuple[frozenset[Register], ...]
  parts: bool
  next: tuple[int, ...]

def unused(nodes: dict[int, Node], scalar: frozenset[str]) -> tuple[tuple[int, str], ...]:
  """(offset, text) of the instructions whose results nothing reads. scalar: banks of registers that have no lanes."""
  def needless(at: int, results: frozenset[Register]) -> bool:
    return bool(results) and not any(is_read(nodes, at, r, scalar) for r in results)
  return tuple((at, made.text) for at, made in nodes.items() if any(needless(at, results) for results in made.results))

def is_read(nodes: dict[int, Node], start: int, register: Register, scalar: frozenset[str]) -> bool:
  """Whether a path leads from the write of a register to a read of it."""
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
  """Raise UnusedResult if there are such instructions. kernel: which one it is."""
  if not lines: return
  raise UnusedResult("no instruction that can come later reads what these write; is another register meant, or is the "
                     "instruction needless?"
                     + "".join(f"\n  kernel + {at:#x}: {text}" for at, text in lines[:SHOWN])
                     + (f"\n  and {len(lines) - SHOWN} more" if len(lines) > SHOWN else "") + f"\n  {kernel}")
