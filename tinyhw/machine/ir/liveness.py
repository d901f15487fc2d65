"""Liveness: the control flow graph with its loops, and the live values per block and per instruction.

Input: a function over virtual registers. A value may be written in several places (spill reloads it) if it is the same
value in all. A write ends liveness upwards. Values passed to a block's parameters are read at the end of the jumping
block. Sets of values are ints with bit `Reg.id`.

The backward scan that finds last uses also adds up register pressure, because most functions need nothing else.

Cost: O(instructions x operands), plus one word operation per 30 values, block and round of the data flow (2 or 3
rounds).
"""
from __future__ import annotations
from collections.abc import Collection, Iterator, Mapping

from tinyhw.machine.ir.constraints import pressure_of
from tinyhw.machine.ir.inst import Block, Effect, Function, MInst, Reg
from tinyhw.machine.ir.registers import FIELD, TargetRegisters

def bits(number: int) -> list[int]:
  """Positions of the set bits, lowest first."""
  found = []
  while number:
    low = number & -number
    found.append(low.bit_length() - 1)
    number ^= low
  return found

class Edge:
  """An edge from block `source` to `target`, both positions in Flow.blocks. `jump` takes it as its block operand number
  `operand`."""
  __slots__ = ("source", "target", "jump", "operand", "arguments")

  def __init__(self, source: int, target: int, jump: MInst, operand: int, arguments: list[Reg]):
    self.source, self.target, self.jump, self.operand, self.arguments = source, target, jump, operand, arguments

class Flow:
  """The control flow graph of the reachable blocks, in reverse postorder. All passes use positions in `blocks`.

  loop[b]: position of the header of the innermost loop that contains b, or -1. A header belongs to its own loop.
  parent: the next outer header.
  """
  def __init__(self, function: Function):
    successors: dict[Block, list[tuple[MInst, int, Block, list[Reg]]]] = {}
    order, entry = [], function.blocks[0]
    stack: list[tuple[Block, int]] = [(entry, 0)]
    successors[entry] = jumps_of(entry)
    while stack:
      block, i = stack.pop()
      following = successors[block]
      if i == len(following):
        order.append(block)
        continue
      stack.append((block, i + 1))
      # the last successor first, so that the first one follows its block in the order
      child = following[len(following) - 1 - i][2]
      if child not in successors:
        successors[child] = jumps_of(child)
        stack.append((child, 0))
    order.reverse()
    self.blocks: list[Block] = order
    self.position = {block: i for i, block in enumerate(order)}
    position = self.position
    self.out: list[list[Edge]] = [[Edge(i, position[s], jump, k, a) for jump, k, s, a in successors[block]]
                                  for i, block in enumerate(order)]
    self.into: list[list[Edge]] = [[] for _ in order]
    for edges in self.out:
      for edge in edges: self.into[edge.target].append(edge)
    self._find_loops()

  def _find_loops(self) -> None:
    """Find loops from the last header to the first, so that inner loops precede outer ones."""
    count = len(self.blocks)
    self.loop, self.parent = [-1] * count, [-1] * count
    for header in range(count - 1, -1, -1):
      stack = [edge.source for edge in self.into[header] if edge.source >= header]
      if not stack: continue
      self.loop[header] = header if self.loop[header] < 0 else self.loop[header]
      seen = {header}
      while stack:
        block = stack.pop()
        if block in seen or block < header: continue
        seen.add(block)
        if self.loop[block] < 0: self.loop[block] = header
        else:
          outermost = self.loop[block]
          while self.parent[outermost] >= 0: outermost = self.parent[outermost]
          if outermost != header: self.parent[outermost] = header
        stack += [edge.source for edge in self.into[block]]
    self.depth = [0] * count
    for block in range(count):
      loop = self.loop[block]
      while loop >= 0:
        self.depth[block] += 1
        loop = self.parent[loop]

  def loops_of(self, block: int) -> Iterator[int]:
    """Headers of the loops that contain a block, innermost first."""
    loop = self.loop[block]
    while loop >= 0:
      yield loop
      loop = self.parent[loop]

  def inside(self, block: int, header: int) -> bool: return header in self.loops_of(block)

def jumps_of(block: Block) -> list[tuple[MInst, int, Block, list[Reg]]]:
  """The edges out of a block: (jump, number of its block operand, successor, arguments)."""
  found: list[tuple[MInst, int, Block, list[Reg]]] = []
  first = first_jump(block)
  for inst in block.insts[first:]:
    targets = [o for o in inst.operands if isinstance(o, Block)]
    found += [(inst, k, o, inst.arguments[k] if inst.arguments else []) for k, o in enumerate(targets)]
  return found

def first_jump(block: Block) -> int:
  """Index of the first jump at a block's end, or the number of instructions if there is none."""
  insts, i = block.insts, len(block.insts)
  while i and insts[i - 1].row.effects & Effect.JUMP: i -= 1
  return i

class Line:
  """An instruction and the ids of its virtual registers.

  `ends`: values read here for the last time. `dead`: values written and never read. Liveness sets both.
  """
  __slots__ = ("inst", "reads", "writes", "ends", "dead")

  def __init__(self, inst: MInst, reads: list[int], writes: list[int]):
    self.inst, self.reads, self.writes = inst, reads, writes
    self.ends: list[int] = []
    self.dead: list[int] = []

class Liveness:
  """Liveness of a function.

  - live_in, live_out: sets by block position. live_out includes the arguments of the block's jumps.
  - code: the lines of each block.
  - starts: values live at a block's start, including parameters that are used.
  - leaves: values live at its end, as live_out.
  - over: for each block, the banks (as guard bits) whose limit is exceeded somewhere in it.
  """
  def __init__(self, function: Function, file: TargetRegisters,
               arriving: Mapping[Block, Collection[int]] | None = None):
    """arriving: for a block, the values that are defined at its start because they are in memory (spill.py)."""
    self.flow, self.file = Flow(function), file
    weights = file.weights
    self.weight = [weights[r.cls] for r in function.registers]
    self.code = [_lines(block) for block in self.flow.blocks]
    self.params = [[r.id for r in block.params] for block in self.flow.blocks]
    self.arriving = arriving or {}
    self.starts: list[set[int]] = [set() for _ in self.code]
    self._solve()
    self.leaves = [set(bits(out)) for out in self.live_out]
    self.over = [self._scan(b) for b in range(len(self.code))]

  def _solve(self) -> None:
    """Solve the data flow.

    An argument counts only if the parameter that gets it is used, so that a loop may carry a dead value.
    """
    flow, count = self.flow, len(self.flow.blocks)
    needed, kept = [0] * count, [0] * count
    for b, lines in enumerate(self.code):
      defined: set[int] = set()
      exposed: set[int] = set()
      for line in lines:
        for r in line.reads:
          if r not in defined: exposed.add(r)
        defined.update(line.writes)
      for r in exposed: needed[b] |= 1 << r
      gone = 0
      for r in defined: gone |= 1 << r
      kept[b] = ~gone
    own = [~sum([1 << p for p in {*params, *self.arriving.get(block, ())}])
           for params, block in zip(self.params, flow.blocks)]
    passed = [[(e.target, [(1 << p, 1 << a.id) for p, a in zip(self.params[e.target], e.arguments) if a.index is None])
               for e in edges]
              for edges in flow.out]
    start = list(needed)
    self.live_in, self.live_out = [s & o for s, o in zip(start, own)], [0] * count
    live_in, live_out, changed = self.live_in, self.live_out, True
    while changed:
      changed = False
      for b in range(count - 1, -1, -1):
        out = 0
        for s, pairs in passed[b]:
          out |= live_in[s]
          for p, a in pairs:
            if start[s] & p: out |= a
        live_out[b] = out
        new = needed[b] | out & kept[b]
        if new != start[b]: start[b], live_in[b], changed = new, new & own[b], True

  def reorder(self, b: int, lines: list[Line]) -> None:
    """Set the lines of block b in another order, in which values are still written before they are read. Only data
    inside of the block changes."""
    self.code[b] = lines
    for line in lines: line.dead = []
    self.over[b] = self._scan(b)

  def _scan(self, b: int) -> int:
    """Fill in the last uses of block b, and return the banks whose limit its pressure exceeds."""
    weight, file = self.weight, self.file
    roof, guard, over = file.roof, file.guard, 0
    live = set(self.leaves[b])
    pressure = sum([weight[v] for v in live])
    for line in reversed(self.code[b]):
      row = line.inst.row
      after = pressure
      for v in line.writes:
        if v in live:
          live.remove(v)
          pressure -= weight[v]
        else:
          line.dead.append(v)
          after += weight[v]
      over |= (roof - after) & guard ^ guard
      ends = line.ends = []
      across = pressure
      for v in line.reads:
        if v not in live:
          live.add(v)
          ends.append(v)
          pressure += weight[v]
      shape = file.shapes.get(row) or file.shape(row)
      if shape.plain: over |= (roof - pressure) & guard ^ guard
      else:
        more, written = pressure_of(shape, line.inst, ends, weight)
        over |= (roof - pressure - more) & guard ^ guard | (roof - across - written) & guard ^ guard
    self.starts[b] = live
    return over | file.over(pressure)

  def peak(self, bank: int) -> int:
    """The highest number of units of a bank that values occupy at once. bank: its position."""
    weight, most = self.weight, 0
    for lines, start in zip(self.code, self.starts):
      pressure = sum([weight[v] for v in start])
      for line in lines:
        for v in line.ends: pressure -= weight[v]
        for v in line.writes: pressure += weight[v]
        most = max(most, pressure >> FIELD * bank & (1 << FIELD - 1) - 1)
        for v in line.dead: pressure -= weight[v]
    return most

def _lines(block: Block) -> list[Line]:
  """The lines of a block. Loops take a third less time than comprehensions, of which each is a call before Python
  3.12."""
  lines = []
  for inst in block.insts:
    row, operands = inst.row, inst.operands
    reads, writes = [], []
    for i in row.only_reads:
      r = operands[i]
      if r is not None and r.index is None: reads.append(r.id)
    for r in inst.ties:
      if r.index is None: reads.append(r.id)
    for i in row.writes:
      r = operands[i]
      if r is not None and r.index is None: writes.append(r.id)
    lines.append(Line(inst, reads, writes))
  return lines
