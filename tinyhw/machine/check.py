"""Prove that allocated code computes what the unallocated function does, by running it on symbols.

`snapshot` keeps the virtual operands of each instruction before spilling; `check` follows the physical code after allocation (parallel copies,
or the copies and swaps made of them) along all paths. Abstract state: for each physical unit and each stack slot, the set of virtual values it
surely holds; where paths join, only what holds on both. Writing a value makes all older copies of it stale; a jump's arguments give their value
to the parameters. Then every operand that is read must hold the value that the snapshot says, registers must be those that the row allows, and no
instruction may be missing, added or out of order. What `order` did is not checked here.

Sets of values are ints: value v has bits for each of its units. Cost: O(instructions x locations), some rounds for loops. On with CHECK=1.
"""
from __future__ import annotations
from typing import Any, NoReturn

from tinyhw.errors import AllocationError
from tinyhw.machine.inst import Block, Effect, Function, MInst, Reg
from tinyhw.machine.liveness import Flow
from tinyhw.machine.moves import Unit, units_of
from tinyhw.machine.pseudo import PARALLEL, PSEUDO
from tinyhw.machine.registers import registers_of
from tinyhw.machine.target import Target

class Reference:
  """A function before spilling: what each instruction read and wrote, as virtual registers."""
  def __init__(self, function: Function):
    self.blocks = list(function.blocks)
    self.params = {block: list(block.params) for block in function.blocks}
    self.code = {block: [(inst, list(inst.operands), inst.ties, tuple(list(a) for a in inst.arguments)) for inst in block.insts]
                 for block in function.blocks}
    self.first, count = {}, 0   # bit of a value's first unit
    for reg in function.registers:
      self.first[reg.id] = count
      count += reg.cls.units

def snapshot(function: Function) -> Reference:
  """Remember a function before `spill` and `allocate` change its instructions in place."""
  return Reference(function)

State = dict[Unit, int]

class Checker:
  def __init__(self, function: Function, target: Target, reference: Reference):
    self.function, self.target, self.reference = function, target, reference
    self.file = registers_of(target)
    self.flow = Flow(function)
    self.virtual = {inst: (operands, ties, arguments) for code in reference.code.values() for inst, operands, ties, arguments in
                    ((id(i), o, t, a) for i, o, t, a in code)}
    self.constants: dict[Any, int] = {}  # (row, operands but the result) of what may be repeated -> values it computes
    for code in reference.code.values():
      for inst, operands, _, _ in code:
        if inst.row.rematerialize: self.constants[self._repeat_key(inst, operands)] = self.constants.get(self._repeat_key(inst, operands), 0) | \
          self._bits_of(operands[inst.row.writes[0]])
    self.errors = True
    self.block: Block = function.blocks[0]

  def _fail(self, inst: MInst | None, reason: str) -> NoReturn:
    where = f"{self.function.name}, block {self.block}" + (f", instruction `{inst!r}`" if inst is not None else "")
    raise AllocationError(f"{where}: {reason}")

  def _repeat_key(self, inst: MInst, operands: list[Any]) -> Any:
    return inst.row.name, tuple(o for i, o in enumerate(operands) if i not in inst.row.writes)

  def _bits_of(self, value: Reg) -> int:
    return ((1 << value.cls.units) - 1) << self.reference.first[value.id]

  # the walk

  def run(self) -> None:
    """To a fixed point first, without complaints; then once more with them."""
    flow = self.flow
    self._structure()
    states: list[State | None] = [None] * len(flow.blocks)
    states[0] = self._incoming()
    work = [0]
    while work:
      b = work.pop()
      state = self._through(b, dict(states[b] or {}), False)
      for k in range(len(flow.out[b])):
        s = flow.out[b][k].target
        after = self._along(b, k, state)
        old = states[s]
        new = after if old is None else {unit: both for unit, values in old.items() if (both := values & after.get(unit, 0))}
        if new != old:
          states[s] = new
          if s not in work: work.append(s)
    for b in range(len(flow.blocks)): self._through(b, dict(states[b] or {}), True)

  def _incoming(self) -> State:
    entry = self.function.blocks[0]
    state: State = {}
    for i, (virtual, physical) in enumerate(zip(self.reference.params[entry], entry.params)):
      fixed = self.function.fixed_params.get(i)
      self.block = entry
      if fixed is not None and physical.index != fixed: self._fail(None, f"parameter {virtual!r} is in {physical!r}, not where the caller puts it")
      self._set(state, units_of(physical), virtual)
    return state

  def _structure(self) -> None:
    """Each block still has its instructions, in order; what was added is pseudo or repeats a constant; jumps lead to where they did."""
    for block in self.flow.blocks:
      self.block = block
      code = self.reference.code.get(block)
      mine = [inst for inst in block.insts if id(inst) in self.virtual]
      added = [inst for inst in block.insts if id(inst) not in self.virtual]
      for inst in added:
        jumps = code is None and inst.row.effects & Effect.JUMP
        if not jumps and inst.row.encoding is not PSEUDO and self._repeat_key(inst, inst.operands) not in self.constants:
          self._fail(inst, "is not in the unallocated function")
      wanted = [] if code is None else [inst for inst, _, _, _ in code]
      i = 0
      for inst in wanted:
        if i < len(mine) and mine[i] is inst: i += 1
        elif not inst.row.rematerialize: self._fail(inst, "is missing, or not in its order")
      if i < len(mine): self._fail(mine[i], "is not in its order")
      for inst in wanted:
        for o, p in zip(self.virtual[id(inst)][0], inst.operands):
          if isinstance(o, Block) and self._destination(p) is not o: self._fail(inst, f"jumps to {p!r} instead of {o!r}")

  def _destination(self, block: Any) -> Any:
    """The block of the reference that one leads to, through the blocks put on edges."""
    while isinstance(block, Block) and block not in self.reference.code: block = block.successors()[0]
    return block

  def _along(self, b: int, k: int, state: State) -> State:
    """The state at the start of a successor: its parameters have the values of the arguments."""
    edge = self.flow.out[b][k]
    if self.flow.blocks[edge.target] not in self.reference.code: return dict(state)
    while self.flow.blocks[edge.source] not in self.reference.code: edge = self.flow.into[edge.source][0]  # a block that was put on an edge
    found = self.virtual[id(edge.jump)]
    targets = [o for o in found[0] if isinstance(o, Block)]
    arguments = found[2][edge.operand] if found[2] else []
    pairs = list(zip(self.reference.params[targets[edge.operand]], arguments))
    stale = 0
    for param, _ in pairs: stale |= self._bits_of(param)
    after = {}
    for unit, values in state.items():
      new = values & ~stale
      for param, argument in pairs:
        if argument.index is not None: continue
        both = values >> self.reference.first[argument.id] & (1 << argument.cls.units) - 1
        new |= (both & (1 << param.cls.units) - 1) << self.reference.first[param.id]
      if new: after[unit] = new
    return after

  def _through(self, b: int, state: State, complain: bool) -> State:
    self.errors, self.block = complain, self.flow.blocks[b]
    for inst in self.block.insts:
      found = self.virtual.get(id(inst))
      if found is not None: self._instruction(inst, state, found[0], found[1])
      elif inst.row.encoding is PSEUDO: self._pseudo(inst, state)
      elif not inst.row.effects & Effect.JUMP:
        for i in inst.row.writes:
          for j, unit in enumerate(units_of(inst.operands[i])):
            state[unit] = self._every(self.constants[self._repeat_key(inst, inst.operands)], j, inst.operands[i].cls.units)
    return state

  def _every(self, values: int, j: int, units: int) -> int:
    """Of the units of several values, the j-th of each."""
    found = 0
    for reg in self.function.registers:
      bit = self.reference.first.get(reg.id)
      if bit is not None and reg.cls.units == units and values >> bit & 1: found |= 1 << bit + j
    return found

  def _pseudo(self, inst: MInst, state: State) -> None:
    name, operands = inst.row.name, inst.operands
    if inst.row is PARALLEL: pairs = [(units_of(d), units_of(s)) for d, s in zip(operands[::2], operands[1::2])]
    elif name == "copy": pairs = [(units_of(operands[0]), units_of(operands[1]))]
    elif name == "swap": pairs = [(units_of(operands[0]), units_of(operands[1])), (units_of(operands[1]), units_of(operands[0]))]
    else:
      slot = [("stack", operands[1] * 64 + j) for j in range(operands[0].cls.units)]
      pairs = [(slot, units_of(operands[0]))] if name == "spill" else [(units_of(operands[0]), slot)]
    held = [[state.get(unit, 0) for unit in src] for _, src in pairs]
    written: set[Unit] = set()
    for (dst, _), values in zip(pairs, held):
      for unit, value in zip(dst, values):
        if unit in written and self.errors: self._fail(inst, f"writes {unit} twice")
        written.add(unit)
        state[unit] = value

  def _set(self, state: State, units: list[Unit], virtual: Reg) -> None:
    """A new value of `virtual` is in these units, and nowhere else."""
    stale = ~self._bits_of(virtual)
    for unit in state: state[unit] &= stale
    for j, unit in enumerate(units): state[unit] = 1 << self.reference.first[virtual.id] + j

  # one instruction

  def _instruction(self, inst: MInst, state: State, virtual: list[Any], ties: tuple[Reg, ...]) -> None:
    row = inst.row
    if self.errors: self._operands(inst, virtual, ties, state)
    for bank, number in row.clobbers: state.pop((bank.name, number), None)
    written: set[Unit] = set()
    for i in row.writes:
      value, physical = virtual[i], inst.operands[i]
      if value is None or value.index is not None: continue
      if self.errors and written & set(units_of(physical)): self._fail(inst, f"two results are written to {physical!r}")
      written |= set(units_of(physical))
      self._set(state, units_of(physical), value)
    if row.encoding is PSEUDO and row.name == "copy":  # a selector's copy: both registers hold both values
      source, result = virtual[1], virtual[0]
      if source.index is None and result.index is None:
        for j, (d, s) in enumerate(zip(units_of(inst.operands[0]), units_of(inst.operands[1]))):
          state[d] |= 1 << self.reference.first[source.id] + j
          if s in state: state[s] |= 1 << self.reference.first[result.id] + j

  def _operands(self, inst: MInst, virtual: list[Any], ties: tuple[Reg, ...], state: State) -> None:
    row = inst.row
    reads = [(i, virtual[i]) for i in row.only_reads] + list(zip(row.both, ties or [virtual[i] for i in row.both]))
    if row.commutes and not all(self._holds(state, inst.operands[i], value) for i, value in reads if i in row.commutes):
      a, b = row.commutes
      values = dict(reads)
      values[a], values[b] = values[b], values[a]
      reads = [(i, values[i]) for i, _ in reads]
    for i, value in reads:
      if value is None or value.index is not None:
        if inst.operands[i] != value and i not in row.both: self._fail(inst, f"operand {row.operands[i].name} was {value!r}")
      elif not self._holds(state, inst.operands[i], value):
        self._fail(inst, f"reads {value!r} from {inst.operands[i]!r}, which holds {self._names(state, inst.operands[i])}")
    for i, operand in enumerate(row.operands):
      value, physical = virtual[i], inst.operands[i]
      if operand.cls is None:
        if value != physical and not isinstance(value, Block): self._fail(inst, f"operand {operand.name} was {value!r}")
        continue
      if value is None or value.index is not None: continue
      if operand.fixed is not None and physical.index != operand.fixed:
        self._fail(inst, f"operand {operand.name} is {physical!r}, not register {operand.fixed}")
      if physical.cls is not operand.cls: self._fail(inst, f"operand {operand.name} is {physical!r}, not a {operand.cls.name}")
      bank = self.file.by_bank[operand.cls.bank]
      unit = bank.unit_of.get(physical.index, -1)
      if physical.index % operand.cls.align: self._fail(inst, f"operand {operand.name} is {physical!r}, which is not aligned")
      mask = (1 << operand.cls.units) - 1 << unit
      if i in row.writes and operand.fixed is None and bank.free & mask != mask: self._fail(inst, f"writes {physical!r}, which may not be used")
      if operand.tie is not None and inst.operands[operand.tie].index != physical.index:
        self._fail(inst, f"operand {operand.name} is {physical!r}, but is tied to {inst.operands[operand.tie]!r}")
      if operand.early:
        for j in row.only_reads:
          other = inst.operands[j]
          if other is not None and j != operand.tie and set(units_of(other)) & set(units_of(physical)):
            self._fail(inst, f"operand {operand.name} is written early, but {other!r} is read")

  def _holds(self, state: State, physical: Reg, value: Reg | None) -> bool:
    if value is None or value.index is not None: return physical == value
    first = self.reference.first[value.id]
    return all(state.get(unit, 0) >> first + j & 1 for j, unit in enumerate(units_of(physical)))

  def _names(self, state: State, physical: Reg) -> str:
    held = state.get(units_of(physical)[0], 0)
    names = [repr(r) for r in self.function.registers if r.id in self.reference.first and held >> self.reference.first[r.id] & 1]
    return " and ".join(names) or "nothing known"

def check(function: Function, target: Target, reference: Reference) -> Function:
  """Raise AllocationError, naming block, instruction and reason, unless the allocated function computes what the reference does."""
  Checker(function, target, reference).run()
  return function
