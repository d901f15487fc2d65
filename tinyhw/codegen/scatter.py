"""Make one STORE of each piece of a lane's share of a matrix.

A lane has up to 128 elements of what a matrix unit computes, in pieces that lie at known distances from each other in memory. Until here they are one
STORE (`uop/matrix.Scattered`), so that no other pass has to go through 64 of them that differ in a constant.

Cost: linear in the pieces.
"""
from __future__ import annotations

from tinyhw import trace
from tinyhw.codegen.legalize import Legalizer, offset
from tinyhw.machine.target import Capabilities
from tinyhw.uop.enums import Ops
from tinyhw.uop.matrix import Scattered
from tinyhw.uop.ops import UOp

def scatter(sink: UOp, capabilities: Capabilities) -> UOp:
  """sink with the pieces of its STOREs as STOREs of their own, as wide as the target casts and stores them."""
  if not any([isinstance(u.arg, Scattered) for u in sink.src]): return sink
  legal = Legalizer(capabilities)
  stores: list[UOp] = []
  for u in sink.src:
    made = pieces_of(u, legal) if isinstance(u.arg, Scattered) else [u]
    if trace.follows():
      for one in made: trace.inherit(one, u)
    stores += made
  return sink.replace(src=tuple(stores))

def pieces_of(store: UOp, legal: Legalizer) -> list[UOp]:
  """A STORE for each piece."""
  (buffer, at), value, rest = store.src[0].src, store.src[1], store.src[2:]
  memory, element = store.src[0].dtype, value.dtype.scalar()
  wide = legal.widest(Ops.LOAD, memory.vec(store.arg.length))
  if memory is not element: wide = min(wide, legal.widest(Ops.CAST, memory.vec(store.arg.length)))
  made = []
  for first, behind in store.arg.places:
    for k in range(0, store.arg.length, wide):
      piece = UOp(Ops.GEP, element.vec(wide), (value,), first + k)
      if memory is not element: piece = UOp(Ops.CAST, memory.vec(wide), (piece,))
      made.append(UOp(Ops.STORE, store.dtype, (UOp(Ops.INDEX, memory, (buffer, offset(at, behind + k))), piece, *rest)))
  return made
