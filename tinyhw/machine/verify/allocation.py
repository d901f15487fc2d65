"""Prove that allocated code computes the same as the unallocated function, by symbolic execution.

`snapshot` records the virtual operands of each instruction before spilling. `check` follows the physical code after
allocation along all paths. That code has parallel copies, or the copies and swaps made of them.

The abstract state is, for each physical unit and each stack slot, the set of virtual values that it surely holds. Where
paths join, only values that both hold remain. Writing a value makes all older copies of it stale. A jump's arguments
give their values to the parameters.

Every operand that is read must hold the value of the snapshot. Registers must be allowed by the row. No instruction may
be missing, added or out of order. The result of `order` is not checked here.

Sets of values are ints: value v has bits for each of its units. Cost: O(instructions x locations), with some rounds for
loops. It runs with CHECK=1.
"""
from __future__ import annotations
from typing import Any, NoReturn

from tinyhw.errors import AllocationError
from tinyhw.machine.ir.inst import Block, Effect, Function, MInst, Reg
from tinyhw.machine.ir.liveness import Flow
from tinyhw.machine.ir.moves import Unit, units_of
from tinyhw.machine.ir.pseudo import PARALLEL, PSEUDO
from tinyhw.machine.ir.registers import registers_of
from tinyhw.machine.ir.target import Target
from tinyhw.named_tuple import NamedTuple

class Original(NamedTuple):
  """An instruction before spilling, with its operands as virtual registers."""
  inst: MInst
  operands: list[Any]
  ties: tuple[Reg, ...]
  arguments: tuple[list[Reg], ...]

class Reference:
  """A function before spilling. first: the bit of a value's first unit."""
  def __init__(self, function: Function):
    self.params = {block: list(block.params) for block in function.blocks}
    self.code = {block: [Original(inst, list(inst.operands), inst.ties, tuple(map(list, inst.arguments)))
                         for inst in block.insts]
                 for block in function.blocks}
    self.first: dict[int, int] = {}
    count = 0
    for reg in function.registers:
      self.first[reg.id] = count
      count += reg.cls.units

def snapshot(function: Function) -> Reference:
  """Record a function before `spill` and `allocate` change its instructions in place."""
  return Reference(function)

State = dict[Unit, int]   # unit or slot -> the values that it surely holds

class Checker:
  """One check.

  - originals: by id of the instruction.
  - constants: (row, operands without the result) of instructions that may be repeated -> values that they compute.
  - errors: whether problems raise errors, which waits until the states are known.
  - block: the block that is walked.
  """
  def __init__(self, function: Function, target: Target, reference: Reference):
    self.function, self.target, self.reference = function, target, reference
    self.file = registers_of(target)
    self.flow = Flow(function)
    self.originals = {id(original.inst): original for code in reference.code.values() for original in code}
    self.constants: dict[Any, int] = {}
    for original in self.originals.values():
      row = original.inst.row
      if not row.rematerialize: continue
      key = self._repeat_key(original.inst, original.operands)
      self.constants[key] = self.constants.get(key, 0) | self._bits_of(original.operands[row.writes[0]])
    self.errors = True
    self.block: Block = function.blocks[0]

  def _fail(self, inst: MInst | None, reason: str) -> NoReturn:
    where = f"{self.function.name}, block {self.block}" + (f", instruction `{inst!r}`" if inst is not None else "")
    raise AllocationError(f"{where}: {reason}")

  def _repeat_key(self, inst: MInst, operands: list[Any]) -> Any:
    return inst.row.name, tuple(o for i, o in enumerate(operands) if i not in inst.row.writes)

  def _repeats_a_constant(self, inst: MInst) -> bool:
    return self._repeat_key(inst, inst.operands) in self.constants

  def _bits_of(self, value: Reg) -> int:
    return ((1 << value.cls.units) - 1) << self.reference.first[value.id]

  # ***** the walk *****

  def run(self) -> None:
    """Find a fixed point without raising errors, then walk once more and raise them."""
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
        new = after if old is None else {unit: both for unit, values in old.items()
                                         if (both := values & after.get(unit, 0))}
        if new != old:
          states[s] = new
          if s not in work: work.append(s)
    for b in range(len(flow.blocks)): self._through(b, dict(states[b] or {}), True)

  def _incoming(self) -> State:
    """The state at the start of the function: its parameters, in the registers of the calling convention."""
    entry = self.function.blocks[0]
    state: State = {}
    for i, (virtual, physical) in enumerate(zip(self.reference.params[entry], entry.params)):
      fixed = self.function.fixed_params.get(i)
      self.block = entry
      if fixed is not None and physical.index != fixed:
        self._fail(None, f"parameter {virtual!r} is in {physical!r}, not where the caller puts it")
      self._set(state, units_of(physical), virtual)
    return state

  def _structure(self) -> None:
    """Check that each block still has its instructions in order, that additions are pseudo instructions or repeat a
    constant, and that jumps have the same targets."""
    for block in self.flow.blocks:
      self.block = block
      code = self.reference.code.get(block)
      mine = [inst for inst in block.insts if id(inst) in self.originals]
      for inst in block.insts:
        if id(inst) in self.originals: continue
        jumps = code is None and inst.row.effects & Effect.JUMP
        if not jumps and inst.row.encoding is not PSEUDO and not self._repeats_a_constant(inst):
          self._fail(inst, "is not in the unallocated function")
      i = 0
      for original in code or ():
        if i < len(mine) and mine[i] is original.inst: i += 1
        elif not original.inst.row.rematerialize: self._fail(original.inst, "is missing, or not in its order")
      if i < len(mine): self._fail(mine[i], "is not in its order")
      for original in code or ():
        for was, now in zip(original.operands, original.inst.operands):
          if isinstance(was, Block) and self._destination(now) is not was:
            self._fail(original.inst, f"jumps to {now!r} instead of {was!r}")

  def _destination(self, block: Any) -> Any:
    """The block of the reference that a block leads to, through blocks that were put on edges."""
    while isinstance(block, Block) and block not in self.reference.code: block = block.successors()[0]
    return block

  def _along(self, b: int, k: int, state: State) -> State:
    """The state at the start of a successor: its parameters have the values of the arguments."""
    edge = self.flow.out[b][k]
    if self.flow.blocks[edge.target] not in self.reference.code: return dict(state)
    # a block that was put on an edge
    while self.flow.blocks[edge.source] not in self.reference.code: edge = self.flow.into[edge.source][0]
    jump = self.originals[id(edge.jump)]
    targets = [o for o in jump.operands if isinstance(o, Block)]
    arguments = jump.arguments[edge.operand] if jump.arguments else []
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
    """The state at the end of a block, from that at its start, which changes."""
    self.errors, self.block = complain, self.flow.blocks[b]
    for inst in self.block.insts:
      original = self.originals.get(id(inst))
      if original is not None: self._instruction(original, state)
      elif inst.row.encoding is PSEUDO: self._pseudo(inst, state)
      elif not inst.row.effects & Effect.JUMP:
        for i in inst.row.writes:
          for j, unit in enumerate(units_of(inst.operands[i])):
            state[unit] = self._every(self.constants[self._repeat_key(inst, inst.operands)], j,
                                      inst.operands[i].cls.units)
    return state

  def _every(self, values: int, j: int, units: int) -> int:
    """The j-th unit of each of several values."""
    found = 0
    for reg in self.function.registers:
      bit = self.reference.first.get(reg.id)
      if bit is not None and reg.cls.units == units and values >> bit & 1: found |= 1 << bit + j
    return found

  def _pseudo(self, inst: MInst, state: State) -> None:
    """Follow an instruction that spill, allocate or moves has added. Values move between units and slots, all at
    once."""
    name, operands = inst.row.name, inst.operands
    if inst.row is PARALLEL: pairs = [(units_of(d), units_of(s)) for d, s in zip(operands[::2], operands[1::2])]
    elif name == "copy": pairs = [(units_of(operands[0]), units_of(operands[1]))]
    elif name == "swap":
      pairs = [(units_of(operands[0]), units_of(operands[1])), (units_of(operands[1]), units_of(operands[0]))]
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
    """Set these units to a new value of `virtual`, which is nowhere else."""
    stale = ~self._bits_of(virtual)
    for unit in state: state[unit] &= stale
    for j, unit in enumerate(units): state[unit] = 1 << self.reference.first[virtual.id] + j

  # ***** one instruction *****

  def _instruction(self, original: Original, state: State) -> None:
    """Follow an instruction of the reference. It must read the right values, and its results replace the values of
    their registers."""
    inst, row, virtual = original.inst, original.inst.row, original.operands
    if self.errors:
      self._check_reads(original, state)
      for i in range(len(row.operands)): self._check_register(inst, i, virtual[i])
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

  def _check_reads(self, original: Original, state: State) -> None:
    """Check that each operand that is read holds its value. Operands that commute may be exchanged."""
    inst, row, virtual = original.inst, original.inst.row, original.operands
    reads = [(i, virtual[i]) for i in row.only_reads] + list(zip(row.both,
                                                                 original.ties or [virtual[i] for i in row.both]))
    if row.commutes and not all(self._holds(state, inst.operands[i], value) for i, value in reads if i in row.commutes):
      a, b = row.commutes
      values = dict(reads)
      values[a], values[b] = values[b], values[a]
      reads = [(i, values[i]) for i, _ in reads]
    for i, value in reads:
      if value is None or value.index is not None:
        if inst.operands[i] != value and i not in row.both:
          self._fail(inst, f"operand {row.operands[i].name} was {value!r}")
      elif not self._holds(state, inst.operands[i], value):
        self._fail(inst, f"reads {value!r} from {inst.operands[i]!r}, which holds "
                   f"{self._names(state, inst.operands[i])}")

  def _check_register(self, inst: MInst, i: int, value: Any) -> None:
    """Check that the register of an operand is allowed by its row. value: the operand before allocation."""
    row, operand, physical = inst.row, inst.row.operands[i], inst.operands[i]
    if operand.cls is None:
      if value != physical and not isinstance(value, Block): self._fail(inst, f"operand {operand.name} was {value!r}")
      return
    if value is None or value.index is not None: return
    bank = self.file.by_bank[operand.cls.bank]
    if physical.index not in bank.unit_of:
      self._fail(None, f"operand {operand.name} of {row.name} is register {physical.index}, which there is not")
    is_this = f"operand {operand.name} is {physical!r}"
    if operand.fixed is not None and physical.index != operand.fixed:
      self._fail(inst, f"{is_this}, not register {operand.fixed}")
    if physical.cls is not operand.cls: self._fail(inst, f"{is_this}, not a {operand.cls.name}")
    if physical.index % operand.cls.align: self._fail(inst, f"{is_this}, which is not aligned")
    mask = (1 << operand.cls.units) - 1 << bank.unit_of[physical.index]
    if i in row.writes and operand.fixed is None and bank.free & mask != mask:
      self._fail(inst, f"writes {physical!r}, which may not be used")
    if operand.tie is not None and inst.operands[operand.tie].index != physical.index:
      self._fail(inst, f"{is_this}, but is tied to {inst.operands[operand.tie]!r}")
    if not operand.early: return
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
    names = [repr(r) for r in self.function.registers if r.id in self.reference.first
             and held >> self.reference.first[r.id] & 1]
    return " and ".join(names) or "nothing known"

def check(function: Function, target: Target, reference: Reference) -> Function:
  """Raise AllocationError unless the allocated function computes the same as the reference. The error names block,
  instruction and reason."""
  Checker(function, target, reference).run()
  return function
