"""Bring register pressure under the limit of every bank at every instruction.

Input: a function in SSA form. If no bank is above its limit, nothing happens. That is the usual case and costs only
Liveness. Otherwise blocks are walked in reverse postorder with the set of values that are in registers. The spilled
value is the one with the furthest next use (Belady). Distances are those of Braun and Hack, "Register Spilling and
Live-Range Splitting for SSA-Form Programs", 2009. At a loop's start, the values that are cheapest in memory are left
out (residents.py).

Values are never renamed. A reload writes the same virtual register again, and liveness and allocation accept several
writes of one value. So no SSA form has to be repaired.

A value is stored once. It is stored after its definition if that is in no deeper loop than the spill, else at the
spill. Values that are cheap to compute are rematerialized instead of reloaded. demote.py handles parameters that find
no register. On edges, values are stored and reloaded as the blocks at both ends expect. Cost: O(instructions x
registers) where spilling. Each value has a slot of its own, so frames are not minimal.
"""
from __future__ import annotations

from tinyhw.errors import AllocationError
from tinyhw.machine.allocate.demote import demote
from tinyhw.machine.allocate.distance import FAR, Distances
from tinyhw.machine.allocate.edges import split
from tinyhw.machine.allocate.residents import Residents
from tinyhw.machine.ir.constraints import pressure_of
from tinyhw.machine.ir.inst import Block, Function, MInst, Reg
from tinyhw.machine.ir.liveness import Edge, Line, Liveness, first_jump
from tinyhw.machine.ir.pseudo import PSEUDO, reload_row, spill_row
from tinyhw.machine.ir.registers import registers_of
from tinyhw.machine.ir.target import Target

class Slots:
  """Slots in the stack frame. alias[v]: the value whose slot v shares."""
  def __init__(self, function: Function, target: Target):
    self.function, self.target = function, target
    self.offsets: dict[int, int] = {}
    self.alias: dict[int, int] = {}

  def of(self, value: Reg) -> int:
    """Byte offset of a value's slot, allocated at first use. Slots are aligned to their size."""
    v = self.alias.get(value.id, value.id)
    if v not in self.offsets:
      size = 8
      while size * 8 < value.cls.bits: size *= 2
      self.offsets[v] = -(-self.function.stack_bytes // size) * size
      self.function.stack_bytes = self.offsets[v] + size
    return self.offsets[v]

class Spiller:
  """One walk over a function.

  `inside`: values in registers. `stored`: values whose slot is valid. Both are known at the entry and exit of blocks.
  """
  def __init__(self, function: Function, liveness: Liveness, slots: Slots, demoted: dict[Block, list[int]]):
    self.function, self.liveness, self.slots, self.file = function, liveness, slots, liveness.file
    self.flow, self.weight, self.registers = liveness.flow, liveness.weight, function.registers
    count = len(liveness.code)
    self.entry_inside: list[set[int]] = [set() for _ in range(count)]
    self.entry_stored: list[set[int]] = [set() for _ in range(count)]
    self.exit_inside: list[set[int] | None] = [None] * count
    self.exit_stored: list[set[int]] = [set() for _ in range(count)]
    self.demoted = {liveness.flow.position[block]: set(params) for block, params in demoted.items()}
    self.at_definition: set[int] = set()                              # values stored after their definition
    self.before: list[dict[int, list[MInst]]] = [{} for _ in range(count)]
    self.definitions: dict[int, tuple[int, int]] = {}                 # value -> block and line, or -1 for a parameter
    self.repeats: dict[int, MInst] = {}
    for b, lines in enumerate(liveness.code):
      for p in liveness.params[b]: self.definitions[p] = (b, -1)
      for i, line in enumerate(lines):
        for v in line.writes: self.definitions[v] = (b, i)
        if line.inst.row.rematerialize and len(line.writes) == 1: self.repeats[line.writes[0]] = line.inst
    for b, params in self.demoted.items():
      for p in params: self.definitions[p] = (b, -1)
    self.distances = Distances(liveness)
    self.residents = Residents(function, liveness, self.distances, self.repeats)

  # one block

  def block(self, b: int) -> None:
    """Insert spills and reloads in one block, line by line. Its jumps count as one line that reads the values of all of
    them.

    Record the values that are in registers at its end.
    """
    self._enter(b)
    self.inside, self.stored = set(self.entry_inside[b]), set(self.entry_stored[b])
    self.pressure = sum(self.weight[v] for v in self.inside)
    self.b, lines = b, self.liveness.code[b]
    uses = self.uses = {v: list(lines) for v, lines in self.distances.uses[b].items()}
    jumps = first_jump(self.flow.blocks[b])
    for i, line in enumerate(lines):
      if i > jumps: break
      here = lines[i:] if i == jumps else [line]
      reads = {v for other in here for v in other.reads}
      for v in reads:
        while uses[v] and uses[v][-1] <= (i if i < jumps else len(lines)): uses[v].pop()
      self._line(i, line, reads, {v for other in here for v in other.ends})
    self.exit_inside[b], self.exit_stored[b] = self.inside, self.stored

  def _enter(self, b: int) -> None:
    """Choose the values that are in registers at the start of block b."""
    memory = self.demoted.get(b, set())
    starts = self.liveness.starts[b]
    params = {p for p in self.liveness.params[b] if p in starts}
    visited = [e.source for e in self.flow.into[b] if self.exit_inside[e.source] is not None]
    inside, pressure = set(params), sum(self.weight[p] for p in params)
    for v in self.residents.order(b, starts - memory - params, [self.exit_inside[s] or set() for s in visited]):
      if not self.file.over(pressure + self.weight[v]):
        inside.add(v)
        pressure += self.weight[v]
    self.entry_inside[b] = inside
    stored = set.intersection(*[self.exit_stored[s] for s in visited]) if visited else set()
    self.entry_stored[b] = (stored - params | starts - inside) | memory

  def _line(self, i: int, line: Line, reads: set[int], ends: set[int]) -> None:
    """Load the values that an instruction (or all jumps at the end) reads into registers. Make room for them and for
    its results."""
    weight, inst = self.weight, line.inst
    missing = sorted(v for v in reads if v not in self.inside)
    for v in missing:
      self.inside.add(v)
      self.pressure += weight[v]
    shape = self.file.shape(inst.row)
    more, written = (0, 0) if shape.plain else pressure_of(shape, inst, line.ends, weight)
    self._evict(i, more, reads, inst)
    if missing: self.before[self.b].setdefault(i, []).extend(self.load(v, inst) for v in missing)
    for v in ends:
      self.inside.discard(v)
      self.pressure -= weight[v]
    if shape.plain: written = sum(weight[v] for v in line.writes)
    self._evict(i, written, set(), inst)
    for v in line.writes:
      if v not in line.dead:
        self.inside.add(v)
        self.pressure += weight[v]
    if inst.row.encoding is PSEUDO and inst.row.name == "spill" and line.reads and line.reads[0] in self.slots.alias:
      self.stored.add(line.reads[0])

  def _evict(self, i: int, extra: int, needed: set[int], inst: MInst) -> None:
    """Take values out of registers until `extra` more fits."""
    file, exit, size = self.file, self.distances.exit[self.b], len(self.liveness.code[self.b])
    guards = file.over(self.pressure + extra)
    while guards:
      best, victim = (-1, False), -1
      for v in self.inside:
        if v in needed or not self.residents.bank_in(v, guards): continue
        uses = self.uses.get(v)
        far = uses[-1] if uses else size + exit.get(v, FAR)
        key = (far, v in self.stored or v in self.repeats or v in self.at_definition)
        if key > best or key == best and v < victim: best, victim = key, v
      if victim < 0:
        raise AllocationError(f"{self.function.name}: `{inst!r}` needs more registers at once than the target may use: "
                              f"{', '.join(f'{b.bank.name} {b.limit}' for b in file.banks)}")
      self.inside.remove(victim)
      self.pressure -= self.weight[victim]
      self.store(victim, self.flow.depth[self.b], self.before[self.b].setdefault(i, []), self.stored, inst)
      guards = file.over(self.pressure + extra)

  def store(self, v: int, depth: int, code: list[MInst], stored: set[int], inst: MInst) -> None:
    """Make sure that v can be restored: store it in `code`, which is executed at this loop depth, or after its
    definition."""
    if v in stored or v in self.repeats or v in self.at_definition: return
    if self.flow.depth[self.definitions[v][0]] <= depth and v not in self.slots.alias: self.at_definition.add(v)
    else:
      if v in self.slots.alias: del self.slots.alias[v]  # it is stored before its parameter's slot is free
      code.append(self._spill(v, inst))
      stored.add(v)

  def _spill(self, v: int, cause: MInst | None) -> MInst:
    reg = self.registers[v]
    return MInst(spill_row(reg.cls), [reg, self.slots.of(reg)], cause.origin if cause else None,
                 comment=f"spill {reg!r}")

  def load(self, v: int, cause: MInst | None) -> MInst:
    """An instruction that restores v."""
    reg, made = self.registers[v], self.repeats.get(v)
    origin = cause.origin if cause else None
    if made is not None: return MInst(made.row, list(made.operands), origin, comment=f"repeat {reg!r}")
    return MInst(reload_row(reg.cls), [reg, self.slots.of(reg)], origin, comment=f"reload {reg!r}")

  # ***** edges *****

  def edge(self, edge: Edge) -> tuple[list[MInst], bool]:
    """Return code that converts the state at the end of an edge's source to the state that its target expects, and
    whether it must precede the jump."""
    b, s = edge.source, edge.target
    live, stored = self.exit_inside[b] or set(), self.exit_stored[b]
    depth = min(self.flow.depth[b], self.flow.depth[s])
    params = {p for p in self.liveness.params[s] if p in self.liveness.starts[s]}
    code: list[MInst] = []
    for v in sorted(self.entry_stored[s] - self.demoted.get(s, set()) - params):
      if v in live and v not in stored and self.liveness.live_in[s] >> v & 1:
        self.store(v, depth, code, stored=set(), inst=edge.jump)
    wanted = {v for v in self.entry_inside[s] if v not in params}
    arguments = {a.id for p, a in zip(self.liveness.params[s], edge.arguments) if p in params and a.index is None}
    loads = sorted((wanted | arguments) - live)
    # a parameter may share its argument's register only before the jump
    early = bool(code and params) or any(v in arguments for v in loads)
    return code + [self.load(v, edge.jump) for v in loads], early

  def finish(self) -> None:
    """Insert all the code in its place."""
    flow, edges = self.flow, [edge for out in self.flow.out for edge in out]
    made = [(edge, *self.edge(edge)) for edge in edges]
    spills: list[dict[int, list[MInst]]] = [{} for _ in flow.blocks]
    for v in sorted(self.at_definition):
      b, i = self.definitions[v]
      spills[b].setdefault(i, []).append(self._spill(v, None))
    stored = self.at_definition
    for b, block in enumerate(flow.blocks):
      before, after = self.before[b], spills[b]
      if not before and not after: continue
      insts = list(after.get(-1, ()))
      for i, inst in enumerate(block.insts):
        insts += [made_here for made_here in before.get(i, ()) if not _is_spill_of(made_here, stored)]
        insts.append(inst)
        insts += after.get(i, ())
      block.insts = insts
    for edge, code, early in made:
      code = [inst for inst in code if not _is_spill_of(inst, stored)]
      if code: self._put(edge, code, early)

  def _put(self, edge: Edge, code: list[MInst], early: bool) -> None:
    flow = self.flow
    block, successor = flow.blocks[edge.source], flow.blocks[edge.target]
    if len(flow.out[edge.source]) == 1: at = first_jump(block)
    elif len(flow.into[edge.target]) == 1 and not early: block, at = successor, 0
    else:
      block, at = split(self.function, self.slots.target, edge, block, successor, min(block.depth, successor.depth)), 0
    block.insts[at:at] = code

def _is_spill_of(inst: MInst, values: set[int]) -> bool:
  return (inst.row.encoding is PSEUDO and inst.row.name == "spill" and inst.comment.startswith("spill")
          and inst.operands[0].id in values)

def _tidy(function: Function, liveness: Liveness) -> bool:
  """Drop reloads and constants that nothing reads, and stores that nothing reloads. Return whether there were any."""
  dead = {id(line.inst) for lines in liveness.code for line in lines if line.dead and len(line.dead) == len(line.writes)
          and
          (line.inst.row.rematerialize or line.inst.row.encoding is PSEUDO and line.inst.row.name == "reload")}
  read = {inst.operands[1] for block in function.blocks for inst in block.insts
          if inst.row.encoding is PSEUDO and inst.row.name == "reload" and id(inst) not in dead}
  changed = False
  for block in function.blocks:
    kept = [inst for inst in block.insts if id(inst) not in dead and
            not (inst.row.encoding is PSEUDO and inst.row.name == "spill" and inst.operands[1] not in read)]
    if len(kept) != len(block.insts): block.insts, changed = kept, True
  return changed

def spill(function: Function, target: Target) -> Function:
  """Add stores and reloads until every bank's pressure is within its limit. Count them, and set stack_bytes."""
  file = registers_of(target)
  liveness = function.liveness or Liveness(function, file)
  function.liveness = liveness
  if not any(liveness.over): return function
  slots = Slots(function, target)
  demoted: dict[Block, list[int]] = {}
  first = Spiller(function, liveness, slots, {})
  for b, block in enumerate(first.flow.blocks):
    too_many = first.residents.too_many(b)
    if too_many:
      demoted[block] = sorted(too_many)
      demote(liveness, b, too_many, slots)
  spiller = Spiller(function, Liveness(function, file, demoted), slots, demoted) if demoted else first
  for b in range(len(spiller.flow.blocks)): spiller.block(b)
  spiller.finish()
  liveness = Liveness(function, file)
  while _tidy(function, liveness): liveness = Liveness(function, file)
  function.liveness = liveness
  if any(liveness.over):
    worst = liveness.flow.blocks[next(b for b, over in enumerate(liveness.over) if over)]
    raise AllocationError(f"{function.name}, block {worst}: spilling left the pressure above the limit; an error in "
                          f"spill.py")
  insts = [inst.row.name for block in function.blocks for inst in block.insts if inst.row.encoding is PSEUDO]
  function.spills, function.reloads = insts.count("spill"), insts.count("reload")
  return function
