"""Carry a matrix from the layout of a product's result to that of a product's first operand, in registers.

The weights of an attention are the result of one product and the first operand of the next. Both layouts
(uop/matrix.py) distribute the same rows. `moves` finds for each element of an operand which element of which result the
same lane has, or the lane at some distance. NVIDIA's layouts, and those of RDNA4 and CDNA, need no exchange.
"""
from __future__ import annotations
import functools

from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.matrix import Layout, Matrix

class Move(NamedTuple):
  """The source of an element of an operand: `element` of result `tile`, which the lane has itself. If distance is not
  0, lanes whose bit `distance` is not `own` take that of the lane at this distance.
  """
  tile: int
  element: int
  distance: int = 0
  own: int = 0

def distances(layout: Layout, axis: str) -> list[int]:
  """Return the distances of lanes that share the other positions: all lanes of a group differ along an axis."""
  found, span = [], 1
  for name, radix, _ in layout.lanes:
    step = span
    while name == axis and step < span * radix:
      found.append(step)
      step *= 2
    span *= radix
  return found

def groups(layout: Layout) -> list[int]:
  """Return, for each element, the number of its row among the rows of a lane."""
  rows = [layout.coordinate("row", 0, element) for element in range(layout.count)]
  order = sorted(set(rows))
  return [order.index(row) for row in rows]

@functools.lru_cache(maxsize=64)
def moves(matrix: Matrix) -> tuple[Move, ...] | None:
  """Return the source of each element of operand a; None if lanes at several distances have them."""
  assert matrix.a is not None and matrix.c is not None
  holders: dict[tuple[int, int], dict[int, int]] = {}    # row and column of a result -> lane -> element
  for lane in range(matrix.lanes):
    for element in range(matrix.c.count):
      place = matrix.c.coordinate("row", lane, element), matrix.c.coordinate("column", lane, element)
      holders.setdefault(place, {})[lane] = element
  found: list[Move] = []
  for element in range(matrix.a.count):
    move = _move(matrix, matrix.a, element, holders)
    if move is None: return None
    found.append(move)
  return tuple(found)

def _move(matrix: Matrix, a: Layout, element: int, holders: dict[tuple[int, int], dict[int, int]]) -> Move | None:
  places = [(a.coordinate("row", lane, element), *divmod(a.coordinate("step", lane, element), matrix.n))
            for lane in range(matrix.lanes)]
  tiles = {tile for _, tile, _ in places}
  if len(tiles) != 1: return None
  having = [holders[row, column] for row, _, column in places]
  (tile,) = tiles
  for distance in (0, *[1 << k for k in range((matrix.lanes - 1).bit_length())]):
    for own in (0, 1) if distance else (0,):
      sources = [lane if not distance or lane // distance % 2 == own else lane ^ distance
                 for lane in range(matrix.lanes)]
      elements = {held.get(source) for held, source in zip(having, sources)}
      if len(elements) == 1 and (only := elements.pop()) is not None: return Move(tile, only, distance, own)
  return None
