"""Graphs as rows for JSON: each node once, with a number, sources before their users.

Nodes are interned, so a node that a pass does not change keeps its number. The new nodes of a pass are the numbers that
were not below its roots before.
"""
from __future__ import annotations
from collections.abc import Iterable
from typing import Any

from tinyhw import trace
from tinyhw.uop.ops import UOp
from tinyhw.uop.text import argument, type_name

MOST_CHARACTERS = 300  # characters of an argument
MOST_ROWS = 200_000    # rows of one table

# operation, dtype, sources, argument and tag, number of its source line or -1, shape
Row = tuple[str, str, list[int], str, int, str]

class NodeTable:
  """The rows so far.

  shapes: nodes are of the tensor graph and have shapes, except nodes that are added as `inner`.
  """
  def __init__(self, shapes: bool = False):
    self.shapes = shapes
    self.numbers: dict[UOp, int] = {}
    self.rows: list[Row] = []
    self.lines: dict[trace.Location, int] = {}

  def add(self, root: UOp, inner: bool = False) -> int:
    """Add a node and all nodes below it, and return its number; -1 if there are too many.

    inner: the node belongs to an index or a kernel.
    """
    found = self.numbers.get(root)
    if found is not None: return found
    for u in root.toposort(lambda n: n not in self.numbers):
      if u in self.numbers: continue
      if len(self.rows) >= MOST_ROWS: return -1
      self.numbers[u] = len(self.rows)
      self.rows.append(self._row(u, self.shapes and not inner))
    return self.numbers[root]

  def add_all(self, roots: Iterable[UOp]) -> list[int]: return [n for n in map(self.add, roots) if n >= 0]

  def _row(self, u: UOp, shaped: bool = False) -> Row:
    text = "" if u.arg is None else argument(u.arg)
    if u.tag is not None: text += f" tag={argument(u.tag)}"
    if len(text) > MOST_CHARACTERS: text = text[:MOST_CHARACTERS] + "…"
    return (u.op.name, type_name(u.dtype), [self.numbers[s] for s in u.src], text, self._line(u),
            shape_text(u) if shaped else "")

  def _line(self, u: UOp) -> int:
    location = trace.origin(u)
    return -1 if location is None else self.lines.setdefault(location, len(self.lines))

  def json(self) -> dict[str, Any]:
    return {"rows": self.rows, "lines": [list(line) for line in self.lines], "full": len(self.rows) >= MOST_ROWS}

def shape_text(u: UOp) -> str:
  """Format the shape of a node of the tensor graph."""
  return f"({', '.join(d.render() if isinstance(d, UOp) else str(d) for d in u.shape)})"
