"""Blocks of warps' instructions as records of threaded code, and their strict checks in advance.

An instruction that computes becomes a record whose function is machine code (native.py). A plain load or store becomes
one that uses windows.py. Any other one becomes a record that Python executes. The active lanes are those in which the
guard holds. A change of the guard is a record that sets them. Before each stretch with one guard there is a check of
the registers that it reads.
"""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.emulator.errors import EmulatorError, PageFault
from tinyhw.emulator.native import translate
from tinyhw.emulator.native.records import Lanes
from tinyhw.emulator.native.threaded import Engine
from tinyhw.emulator.native.translate import Stop, kept
from tinyhw.emulator.nvidia.checks.foresight import CheckState, foresee, known, tell
from tinyhw.emulator.nvidia.execute.decoded import DecodedInstruction, DecodedCode
from tinyhw.emulator.nvidia.native.native import Computation, computation, native, words_of
from tinyhw.emulator.nvidia.native.transfer import transfer_of
from tinyhw.emulator.nvidia.warp.launch import LaunchParameters
from tinyhw.emulator.nvidia.warp.state import GUARDED, P_AT, RUNNING, UNITS, Warp, row_word
from tinyhw.isa.sass.asm.encode import BYTES
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.uses import Unit

Block = translate.TranslatedBlock[DecodedInstruction]
LONGEST = 256    # instructions of a block
UNIFORM = ("UR", "UP")
ONES = (1 << 32) - 1

class Writer:
  """Writer of the records of one block."""
  def __init__(self, block: Block, launch: LaunchParameters):
    self.block, self.records, self.launch = block, block.records, launch
    self.guard = regs.TRUE, False     # guard of the lanes that are active at this point

  def write(self) -> None:
    """Write the records. Raises KeyError for a register that the launch does not give."""
    steps = [step for _, step in self.block.steps]
    for step in steps:
      for bank, index in (*(unit for unit, _ in step.uses.reads), *step.uses.writes):
        if bank == "R": row_word(index, self.launch.registers)
    first = 0
    while first < len(steps):
      last = first + stretch(steps[first:])
      if not self.branch(first):
        self.set_guard((steps[first].guard, steps[first].inverted), first)
        self.check(first, last)
        for i in range(first, last): self.step(i)
      first = last
    if not steps[-1].ends:
      self.set_guard((regs.TRUE, False), len(steps) - 1)
      self.block.link(self.block.steps[-1][0] + BYTES)

  def set_guard(self, guard: tuple[int, bool], index: int) -> None:
    """Activate the lanes of a guard from here on. index: of the first step with it."""
    if guard == self.guard: return
    self.guard = guard
    self.block.check(self.records.guard(lanes_of(*guard), 4 * GUARDED), index)

  def check(self, first: int, last: int) -> None:
    """Write the check of the registers that a stretch reads. The registers that it writes count as written from here
    on.
    """
    reads: dict[Unit, None] = {}
    writes: dict[Unit, None] = {}
    for _, step in self.block.steps[first:last]:
      reads.update((unit, None) for unit, _ in step.uses.reads if unit not in writes and unit != ("P", step.guard))
      writes.update(dict.fromkeys(step.uses.writes))
    uniform, lanes = ([UNITS[unit] for unit in writes if (unit[0] in UNIFORM) is whole] for whole in (True, False))
    if reads or lanes: self.block.check(self.records.written([UNITS[unit] for unit in reads], lanes), first)
    if uniform: self.records.written((), uniform, all_lanes=True)

  def step(self, index: int) -> None:
    """Write the record of a step."""
    _, step = self.block.steps[index]
    if step.inst.row.name == "NOP": return
    found = computation(step.inst, self.launch.registers, len(self.launch.constants))
    if found is not None and self.compute(found): return
    transfer = None if found is not None else transfer_of(step.inst, self.launch.registers)
    if transfer is None: self.block.python(index)
    else: self.block.transfer(index, transfer)

  def compute(self, found: Computation) -> bool:
    """Write the record of a computation. Return whether it is machine code."""
    function = native(found.shape, False)
    if function is None: return False
    words = words_of(function, found, self.launch.registers)
    self.block.compute(function.address, words, (lambda: for_some(found)) if found.shape.lanes else None)
    return True

  def branch(self, index: int) -> bool:
    """Write the records of a branch that depends only on its guard, at the end of the block. Return whether it is one.
    """
    pc, step = self.block.steps[index]
    if step.inst.row.name != "BRA" or len(step.uses.reads) > (step.guard != regs.TRUE): return False
    values = dict(zip(step.inst.row.isa.index, step.inst.operands))
    if values["pp"].index != regs.TRUE or values["pp_not"]: return False
    self.set_guard((regs.TRUE, False), index)
    target, following = pc + BYTES + values["t"], pc + BYTES
    if step.guard == regs.TRUE:
      if step.inverted: return False
      self.block.link(target)
      return True
    at = self.records.branch(lanes_of(step.guard, step.inverted))
    self.block.stops[at] = Stop(step=index, first=index)
    self.records.choose(at, yes=self.block.link(target), no=self.block.link(following))
    return True

def lanes_of(guard: int, inverted: bool) -> Lanes:
  """Return the lanes of a guard."""
  return Lanes(4 * (P_AT + guard), ONES * inverted, 4 * RUNNING, UNITS["P", guard])

def for_some(found: Computation) -> int:
  """Return the function of a computation for warps in which not all lanes are active."""
  made = native(found.shape, True)
  assert made is not None, "what can be translated for all lanes can be for some"
  return made.address

def stretch(steps: list[DecodedInstruction]) -> int:
  """Return the number of leading steps with the same unchanged guard. Steps that end a block are alone."""
  first, count = steps[0], 0
  if first.ends: return 1
  for step in steps:
    if (step.guard, step.inverted) != (first.guard, first.inverted) or step.ends: break
    count += 1
    if ("P", first.guard) in step.uses.writes: break
  return count

class Translation(translate.Translation[Warp, DecodedCode, DecodedInstruction, CheckState]):
  """The blocks of a kernel."""
  def __init__(self, launch: LaunchParameters, engine: Engine):
    super().__init__(engine)
    self.launch = launch

  def steps_from(self, pc: int, mode: int, decoder: DecodedCode) -> list[tuple[int, DecodedInstruction]]:
    steps: list[tuple[int, DecodedInstruction]] = []
    while len(steps) < LONGEST:
      try: step = decoder.at(pc)
      except (EmulatorError, PageFault): break  # it is an error only if a warp gets there
      if is_alone(step): break
      steps.append((pc, step))
      pc += BYTES
      if step.ends: break
    return steps

  def size(self, step: DecodedInstruction) -> int: return BYTES
  def read(self, decoder: DecodedCode, address: int, size: int) -> bytes: return decoder.read(address, size)
  def write(self, block: Block, decoder: DecodedCode) -> None: Writer(block, self.launch).write()
  def known(self, wave: Warp) -> CheckState: return known(wave.schedule)
  def tell(self, wave: Warp, what: CheckState) -> None: tell(wave.schedule, what)

  def foresee(self, wave: Warp, before: CheckState,
              steps: Sequence[tuple[int, DecodedInstruction]]) -> CheckState | None:
    return foresee(before, (step for _, step in steps))

  def enter(self, wave: Warp) -> None:
    super().enter(wave)
    wave.active = wave.active   # no guard is left from a stretch

  def execute(self, wave: Warp, pc: int, step: DecodedInstruction) -> bool:
    wave.at, wave.pc = pc, pc + BYTES
    lanes = wave.guarded(step.guard, step.inverted)
    if lanes: step.run(wave, lanes)
    if step.ends: wave.active = wave.active
    assert step.ends or wave.pc == pc + BYTES and not wave.waiting, f"{step.text} ends a block, and nobody knew"
    return not step.ends

def is_alone(step: DecodedInstruction) -> bool:
  """Return whether a step must be executed alone. These are convergence barriers, whose lanes go step by step until
  they have met. With a guard it is also a write to uniform registers, or a read of other predicates in all lanes that
  run."""
  if step.inst.row.name in ("BSSY", "BSYNC"): return True
  if step.guard == regs.TRUE or step.ends: return False
  return any(bank in UNIFORM for bank, _ in step.uses.writes) or \
    any(guard and unit[0] == "P" and unit != ("P", step.guard) for unit, guard in step.uses.reads)

def translation(launch: LaunchParameters, decoder: DecodedCode) -> Translation | None:
  """Return the translation of a launch's kernel; None on a host without the loop."""
  return kept((launch.arch, launch.code, launch.registers, len(launch.constants)), decoder,
              lambda loop: Translation(launch, loop))
