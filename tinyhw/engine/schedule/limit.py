"""Keep kernels within the number of buffers that a device gives to one kernel.

WebGPU's adapters bind 8 buffers or more to a kernel. A sum of more tensors than that is one kernel after fusion, as any
elementwise expression is. Here values inside of such a kernel get buffers, and so kernels of their own. They are the
operands with most buffers, of the first nodes, from the leaves on, that would need too many. So a sum of n tensors has
about n / most kernels.

Input: the fusion of a graph. Output: a fusion whose kernels read at most `most` - 1 buffers, since each has a result.
A kernel of one operation that alone has too many operands stays, and the driver refuses it by name. Cost: one walk over
the graph; for each kernel that is too large one over its nodes, and a fusion for each round.
"""
from __future__ import annotations

from tinyhw.engine.schedule.fuse import Fusion, fused, operands
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

MOST_ROUNDS = 8      # of fusions: each of them may compute a value in other kernels than the one before

def within_limit(fusion: Fusion, roots: list[UOp], most: int) -> Fusion:
  """Return the fusion, with more buffers if a kernel has more than `most`."""
  forced: frozenset[UOp] = frozenset()
  for _ in range(MOST_ROUNDS):
    more = frozenset(u for kernel in too_large(fusion, most) for u in cuts(fusion, kernel, most)) - forced
    if not more: return fusion
    forced |= more
    fusion = fused(roots, forced)
  return fusion

def is_stored(fusion: Fusion, u: UOp) -> bool: return u.op is Ops.BUFFER or u in fusion.realized

def too_large(fusion: Fusion, most: int) -> list[UOp]:
  """Return the kernels with more than `most` buffers."""
  if sum(is_stored(fusion, u) for u in fusion.nodes) < most: return []
  count = dict.fromkeys(fusion.realized, 1)
  for u in fusion.nodes:
    if not is_stored(fusion, u): continue
    for kernel in {kernel for kernel, _ in fusion.at.get(u, ())}: count[kernel] += 1
  return [kernel for kernel, n in count.items() if n > most]

def cuts(fusion: Fusion, kernel: UOp, most: int) -> list[UOp]:
  """Return values in a kernel that get buffers, so that no node in it needs more than `most` - 1 of them."""
  reads: dict[UOp, frozenset[UOp]] = {}      # the buffers from which a node of the kernel is computed
  found: list[UOp] = []
  for u in fusion.nodes:
    inside = any(k is kernel for k, _ in fusion.at.get(u, ()))
    if inside and is_stored(fusion, u): reads[u] = frozenset((u,))
    elif inside or u is kernel:
      sources = [s for s in (_computed(fusion, s) for s in operands(u)) if s in reads]
      needed = frozenset[UOp]().union(*[reads[s] for s in sources])
      while len(needed) >= most:
        largest = max(sources, key=lambda s: len(reads[s]))
        if len(reads[largest]) < 2: break      # a buffer would replace nothing
        found.append(largest)
        reads[largest] = frozenset((largest,))
        needed = frozenset[UOp]().union(*[reads[s] for s in sources])
      reads[u] = needed
  return found

def _computed(fusion: Fusion, u: UOp) -> UOp:
  """Return the node that computes a value, below movements."""
  while u.op in GroupOp.Movement and u not in fusion.realized: u = u.src[0]
  return u
