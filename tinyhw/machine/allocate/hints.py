"""Register preferences of values: the register that saves a move.

Values that are connected by a parameter, a tie or a copy form a web. The first member that gets a register sets the
wish of the others. Webs are merged only if cheap tests show that members cannot be live together: a tied value must end
at the tie, and no web has two parameters of one block. So twelve accumulators that start from one zero are twelve webs.
A wish is never a promise. Cost: near linear.
"""
from __future__ import annotations

from tinyhw.machine.ir.constraints import sources_of
from tinyhw.machine.ir.inst import Function
from tinyhw.machine.ir.liveness import Liveness
from tinyhw.machine.ir.pseudo import PSEUDO

class Hints:
  """web[v] is the number of v's web. unit[web] is the unit that it wants, or -1. avoid: per bank, the units that some
  instruction requires."""
  def __init__(self, function: Function, liveness: Liveness):
    count = len(function.registers)
    self.parent = list(range(count))
    self.blocks = [0] * count  # per web: the blocks that have a parameter in it
    self.views = [liveness.file.views[r.cls] for r in function.registers]
    self.avoid = [0] * len(liveness.file.banks)
    self._join_parameters(liveness)
    wishes = self._join_ties(liveness)
    find = self._find
    self.web = [v if up == v else find(v) for v, up in enumerate(self.parent)]
    self.unit = [-1] * count
    for v, unit in wishes:
      if self.unit[self.web[v]] < 0: self.unit[self.web[v]] = unit

  def _find(self, v: int) -> int:
    parent = self.parent
    while parent[v] != v:
      parent[v] = parent[parent[v]]
      v = parent[v]
    return v

  def _join(self, a: int, b: int) -> None:
    a, b = self._find(a), self._find(b)
    if (a == b or self.blocks[a] & self.blocks[b] or self.views[a] is not self.views[b]
        and self.views[a].weight != self.views[b].weight):
      return
    self.parent[b] = a
    self.blocks[a] |= self.blocks[b]

  def _join_parameters(self, liveness: Liveness) -> None:
    """Merge webs through parameters. Back-edges are first, because a move saved in a loop is worth more than one on the
    way in."""
    flow = liveness.flow
    for b, params in enumerate(liveness.params):
      for p in params: self.blocks[p] = 1 << b
    edges = [e for out in flow.out for e in out if e.arguments]
    edges.sort(key=lambda e: (e.target > e.source, -flow.depth[e.source]))
    for edge in edges:
      live = liveness.live_in[edge.target]
      for p, a in zip(liveness.params[edge.target], edge.arguments):
        if a.index is None and not live >> a.id & 1: self._join(p, a.id)

  def _join_ties(self, liveness: Liveness) -> list[tuple[int, int]]:
    """Merge webs through ties and copies. Return (value, unit) for fixed operands."""
    shapes, wishes = liveness.file.shapes, []
    for lines in liveness.code:
      for line in lines:
        row = line.inst.row
        shape = shapes[row]
        if shape.plain:
          if row.encoding is PSEUDO and row.name == "copy" and line.ends and line.writes:
            self._join(line.ends[0], line.writes[0])
          continue
        values, operands = sources_of(line.inst), line.inst.operands
        for tie in shape.ties:
          value, written = values[tie.source], operands[tie.write]
          if value is not None and value.index is None and written.index is None and value.id in line.ends:
            self._join(value.id, written.id)
        if shape.rigid:
          self.avoid = [a | t for a, t in zip(self.avoid, shape.touched)]
          wishes += [(v.id, unit) for source, unit in shape.fixed_reads.items() if (v := values[source]) is not None
                     and v.index is None]
          wishes += [(operands[i].id, unit) for i, unit in shape.fixed_writes.items() if operands[i] is not None
                     and operands[i].index is None]
    return wishes
