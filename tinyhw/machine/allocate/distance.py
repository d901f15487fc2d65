"""Distance to the next use of a value, across blocks. It decides which value is spilled.

Distances count instructions. Leaving a loop adds FAR for each level left. So a value that a loop does not use is always
further away than one that it uses. At the end of a block an argument is as far away as the first use of the parameter
that gets it. Cost: O(blocks x live values) a round.
"""
from __future__ import annotations

from tinyhw.machine.ir.liveness import Liveness

FAR = 100_000
NEVER = 1 << 40
# Distances only shrink. This is a bound for unusual graphs, where later rounds would change far distances by little.
ROUNDS = 20

class Distances:
  """Distances of a function. uses[b][v]: lines of block b that read v, last first. entry[b][v], exit[b][v]: distance at
  the start and the end of the block."""
  def __init__(self, liveness: Liveness):
    self.liveness = liveness
    count = len(liveness.code)
    self.uses: list[dict[int, list[int]]] = [{} for _ in range(count)]
    for b, lines in enumerate(liveness.code):
      uses = self.uses[b]
      for i in range(len(lines) - 1, -1, -1):
        for v in lines[i].reads:
          if v not in uses: uses[v] = [i]
          elif uses[v][-1] != i: uses[v].append(i)
    self.entry: list[dict[int, int]] = [{} for _ in range(count)]
    self.exit: list[dict[int, int]] = [{} for _ in range(count)]
    pending = [True] * count
    for _ in range(ROUNDS):
      if not any(pending): break
      for b in range(count - 1, -1, -1):
        if not pending[b]: continue
        pending[b] = False
        if self._block(b):
          for edge in liveness.flow.into[b]: pending[edge.source] = True
    for b, entry in enumerate(self.entry):
      for v in liveness.starts[b]: entry.setdefault(v, NEVER)

  def _block(self, b: int) -> bool:
    """Do one step of the data flow. Return whether the distances at the block's start changed."""
    liveness, flow = self.liveness, self.liveness.flow
    exit: dict[int, int] = {}
    for edge in flow.out[b]:
      s = edge.target
      length = FAR * max(0, flow.depth[b] - flow.depth[s])
      entry, memory = self.entry[s], liveness.arriving.get(flow.blocks[s])
      arriving = ({p: a.id if a.index is None else -1 for p, a in zip(liveness.params[s], edge.arguments)}
                  if edge.arguments else {})
      for v, distance in entry.items():
        if v in arriving:
          v = arriving[v]
          if v < 0: continue
        elif memory and v in memory: continue  # it is in memory there, which defines it
        distance += length
        if distance < exit.get(v, NEVER): exit[v] = distance
    size, uses = len(liveness.code[b]), self.uses[b]
    entry = {}
    for v in liveness.starts[b]:
      if v in uses: entry[v] = uses[v][-1]
      elif v in exit: entry[v] = size + exit[v]
    changed = entry != self.entry[b]
    self.entry[b], self.exit[b] = entry, exit
    return changed
