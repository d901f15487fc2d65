"""Which values that a schedule has put into buffers does the program still hold?

A value without a Tensor or an expression over it dies with the run, and its buffer goes back to the arena. A value that
is held keeps its buffer as its node's `realized`, so a later schedule reads it and does not compute it again. Examples
are the hidden state of a model whose caches are written layer by layer, and what a loss and its gradients share.

Python itself counts the references to a node. The sources of nodes of the schedule's graph account for some of them.
Any more are a Tensor's, or those of an expression outside of the graph. An interpreter that does not count
(`sys.getrefcount` is CPython's) keeps nothing: values are computed again, with the same results.

Cost: one look at each source in the graph, if the schedule has inner buffers at all.
"""
from __future__ import annotations
import sys
from collections.abc import Collection, Iterable, Mapping

from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

def references(graph: Iterable[UOp], nodes: Collection[UOp]) -> list[int]:
  """Return the number of references to each node, without those of sources in the graph. Nodes differ."""
  count = getattr(sys, "getrefcount", None)
  if count is None: return [0] * len(nodes)
  inside = _uses(graph, nodes)
  return [count(u) - inside[u] for u in nodes]

def _uses(graph: Iterable[UOp], nodes: Iterable[UOp]) -> dict[UOp, int]:
  """Return how often each node is a source in the graph."""
  found = dict.fromkeys(nodes, 0)
  for u in graph:
    for s in u.src:
      if s in found: found[s] += 1
  return found

def _of_nobody() -> int:
  """Return what `references` finds for a node that only the two arguments hold."""
  node = UOp(Ops.SINK, tag=object())
  graph = dict.fromkeys((node, UOp(Ops.SINK, src=(node,))))
  nodes = {node: None}
  del node
  return references(graph, nodes)[0]

_NOBODY = _of_nobody()

def held_outside(graph: Mapping[UOp, object], nodes: Mapping[UOp, object]) -> list[UOp]:
  """Return the nodes that something holds apart from the graph and the arguments."""
  return [u for u, n in zip(nodes, references(graph, nodes)) if n > _NOBODY]
