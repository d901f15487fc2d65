"""Blocks of AMD's waves as records of threaded code, and their strict checks in advance.

An instruction that computes becomes a record whose function is machine code (native.py). One that only changes the
state of strict checks gets no record. Any other one becomes a record that Python executes. Before each stretch with
constant EXEC there is a check of the registers that the stretch reads.
"""
from __future__ import annotations
from collections.abc import Iterator, Sequence

from tinyhw.emulator.amd.checks.foresight import CheckState, StandIn, foresee, known, tell
from tinyhw.emulator.amd.execute import arithmetic, control, lanes
from tinyhw.emulator.amd.execute.arithmetic import Computation, NamedOperands
from tinyhw.emulator.amd.execute.decoded import DecodedCode, DecodedInstruction, is_computation
from tinyhw.emulator.amd.execute.state import AGPR, DROPPED, SCALARS_AT, SCC, VECTORS_AT, Wave
from tinyhw.emulator.amd.native.native import native
from tinyhw.emulator.amd.native.transfer import transfer_of
from tinyhw.emulator.amd.python.shapes import InstructionShape
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.errors import EmulatorError
from tinyhw.emulator.native import translate
from tinyhw.emulator.native.native import Native, RecordWord
from tinyhw.emulator.native.threaded import Engine
from tinyhw.emulator.native.translate import kept
from tinyhw.isa.amd.table import regs

Block = translate.TranslatedBlock[DecodedInstruction]
LONGEST = 256    # instructions of a block

class Writer:
  """Writer of the records of one block."""
  def __init__(self, block: Block, decoder: DecodedCode, row_word: dict[int, int], lanes_of_wave: int):
    self.block, self.mode, self.row_word, self.lanes = block, decoder.mode(block.mode), row_word, lanes_of_wave
    self.records = block.records

  def write(self) -> None:
    """Write the records. Raises KeyError for a register that the kernel does not have."""
    for first, last in stretches([step for _, step in self.block.steps]):
      self.check(first, last)
      for i in range(first, last): self.step(i)
    pc, step = self.block.steps[-1]
    if not step.ends: self.block.link(pc + step.size)

  def check(self, first: int, last: int) -> None:
    """Write the check of vector registers of a stretch of steps."""
    reads: dict[int, None] = {}
    writes: dict[int, None] = {}
    for _, step in self.block.steps[first:last]:
      reads.update(dict.fromkeys(r for r in step.vector_reads if r not in writes))
      writes.update(dict.fromkeys(step.vector_writes))
    for row in (*reads, *writes): self.row_word[row]
    if not reads and not writes: return
    self.block.check(self.records.written([*reads], [*writes], self.block.steps[first][1].all_lanes), first)

  def step(self, index: int) -> None:
    """Write the records of a step."""
    pc, step = self.block.steps[index]
    uses = NamedOperands(step.inst)
    if step.steers or step.run is control.nothing: return
    if uses.name == "s_branch" or uses.name in CONDITIONS: return self.branch(uses, pc + step.size)
    made = self.natives(uses) if is_computation(uses.name) else None
    transfer = transfer_of(uses, self.mode, self.row_word)
    if transfer is not None: self.block.transfer(index, transfer)
    elif made is None: self.block.python(index)
    else:
      for computation, function in made: self.compute(computation, function)
      if step.activates: self.records.activate(4 * regs.EXEC)

  def natives(self, uses: NamedOperands) -> list[tuple[Computation, Native]] | None:
    """Return the functions of an instruction, or None if one of them stays in Python."""
    found = []
    for computation in arithmetic.computations(uses, self.mode):
      function = native(computation.shape, False, self.lanes)
      if function is None or computation.active not in (None, regs.EXEC): return None
      found.append((computation, function))
    return found

  def compute(self, computation: Computation, function: Native) -> None:
    """Write the record of a computation."""
    shape, words = computation.shape, [self.word(operand, computation) for operand in function.operands]
    self.block.compute(function.address, words, (lambda: self.for_some(shape)) if shape.lanes else None)

  def for_some(self, shape: InstructionShape) -> int:
    """Return the function of a shape for waves in which not all lanes are active."""
    made = native(shape, True, self.lanes)
    assert made is not None, "what can be translated for all lanes can be for some"
    return made.address

  def word(self, operand: RecordWord, computation: Computation) -> int:
    """Return an operand's word of a record."""
    value = computation.arguments[operand.name]
    if operand.kind == "row": return self.row_word[value + operand.part]
    if operand.kind == "constant": return int(value) >> 32 * operand.part & 0xffffffff
    return DROPPED if value == regs.NULL and operand.name == "CARRY" else value + operand.part

  def branch(self, uses: NamedOperands, following: int) -> None:
    """Write the end of a block: its possible successors. following: address after it."""
    target = following + 4 * control.signed16(uses["simm16"])
    if uses.name == "s_branch":
      self.block.link(target)
      return
    jump, register = CONDITIONS[uses.name]
    mask = (1 << 32) - 1 if register == SCC or self.lanes == 32 else -1
    at = self.records.jump(jump, 4 * register, mask)
    self.records.choose(at, yes=self.block.link(target), no=self.block.link(following))

# Branches that depend on a word of the state: the kind of jump, and the register
CONDITIONS = {"s_cbranch_scc0": ("jump_zero", SCC), "s_cbranch_scc1": ("jump_set", SCC),
              "s_cbranch_vccz": ("jump_zero", regs.VCC), "s_cbranch_vccnz": ("jump_set", regs.VCC),
              "s_cbranch_execz": ("jump_zero", regs.EXEC), "s_cbranch_execnz": ("jump_set", regs.EXEC)}

def stretches(steps: list[DecodedInstruction]) -> Iterator[tuple[int, int]]:
  """Yield parts of a run, (first, end), in which one check of vector registers is enough: EXEC is written at the end at
  most."""
  first = 0
  for i, step in enumerate(steps):
    alone = step.inst.row.name in lanes.ONE_LANE or step.all_lanes
    if alone and first < i:
      yield first, i
      first = i
    if alone or step.activates:
      yield first, i + 1
      first = i + 1
  if first < len(steps): yield first, len(steps)

class Translation(translate.Translation[Wave, DecodedCode, DecodedInstruction, CheckState]):
  """The blocks of a kernel."""
  def __init__(self, registers: DispatchRegisters, engine: Engine):
    super().__init__(engine)
    self.lanes = registers.wave_size
    arch = registers.accumulator if registers.accumulator is not None else registers.vgprs
    first = (VECTORS_AT - SCALARS_AT) // 4
    self.row_word = {row: first + row * self.lanes for row in range(arch)}
    self.row_word |= {AGPR + i: first + (arch + i) * self.lanes for i in range(registers.vgprs - arch)}
    self.stand_in: StandIn | None = None

  def steps_from(self, pc: int, mode: int, decoder: DecodedCode) -> list[tuple[int, DecodedInstruction]]:
    steps: list[tuple[int, DecodedInstruction]] = []
    while len(steps) < LONGEST:
      try: step = decoder.steps(mode).get(pc) or decoder.decode(pc, mode)
      except EmulatorError: break  # it is an error only if a wave gets there
      if step.inst.row.name in control.ALONE: break
      steps.append((pc, step))
      pc += step.size
      if step.ends: break
    return steps

  def size(self, step: DecodedInstruction) -> int: return step.size
  def read(self, decoder: DecodedCode, address: int, size: int) -> bytes: return decoder.read(address, size)
  def write(self, block: Block, decoder: DecodedCode) -> None: Writer(block, decoder, self.row_word, self.lanes).write()

  def known(self, wave: Wave) -> CheckState: return known(wave.strict)

  def tell(self, wave: Wave, what: CheckState) -> None:
    wave.note_local(max((event.age for event in what.events), default=0))
    tell(wave.strict, what)

  def foresee(self, wave: Wave, before: CheckState,
              steps: Sequence[tuple[int, DecodedInstruction]]) -> CheckState | None:
    if self.stand_in is None: self.stand_in = StandIn(wave)
    return foresee(self.stand_in, before, steps)

  def execute(self, wave: Wave, pc: int, step: DecodedInstruction) -> bool:
    wave.at, wave.pc = pc, pc + step.size
    if step.local: wave.note_local()
    step.run(wave)
    if step.local: wave.strict.local.end()
    return not step.ends

  def prepare(self, wave: Wave) -> None: wave.reach_local()

def translation(registers: DispatchRegisters, decoder: DecodedCode) -> Translation | None:
  """Return the translation of a dispatch's kernel; None on a host without the loop."""
  key = registers.arch, registers.wave_size, registers.code, registers.vgprs, registers.accumulator, registers.sgprs
  return kept(key, decoder, lambda loop: Translation(registers, loop))
