"""The open ranges of a node, which are the loops that its value depends on; the form of nodes that close ranges."""
from __future__ import annotations
from typing import TYPE_CHECKING

from tinyhw.uop.enums import Ops
if TYPE_CHECKING: from tinyhw.uop.ops import UOp

_CLOSES = frozenset({Ops.REDUCE, Ops.STORE, Ops.STAGE, Ops.END})

def has_position(stage: UOp) -> bool:
  """Does a STAGE say the position of its value in the array?"""
  return len(stage.src) > 1 and stage.src[1].op is not Ops.RANGE

def open_ranges(u: UOp) -> tuple[UOp, ...]:
  """The RANGEs that u depends on and that no operation closes, sorted by id. Those of its sources are known."""
  src = u.src
  if len(src) == 1 and u.op not in _CLOSES and u.op is not Ops.RANGE:
    return src[0]._ranges_  # type: ignore[no-any-return]  # slots are Any
  found: dict[UOp, None] = {}
  for s in src: found.update(dict.fromkeys(s._ranges_))
  if u.op is Ops.RANGE: found[u] = None
  if u.op in _CLOSES:
    for r in src[2 if u.op is Ops.STORE else 1:]:  # a range may be the value that is stored
      if r.op is Ops.RANGE: found.pop(r, None)
  return tuple(sorted(found, key=lambda r: r.arg))
