"""Kernels as threaded code: which records the instructions of a block become, and the turns of a wave that executes them.

A `Block` is a straight run of steps up to a branch. It is translated when it has been executed HOT times: an instruction that computes becomes a
record whose function is machine code (native.py), one that only steers the watch none at all, any other one a record that Python executes. Before
each stretch in which EXEC stays what it is stands a check of the registers that the stretch reads. What strict.py knows depends only on the way
taken, so it is foreseen once for each state with which a block is entered (foresight.py). Where the checks find anything, the wave goes back to the
start of the block, or of the stretch, and executes step by step: errors are those of strict.py, and nothing else raises them.

A `Translation` has the blocks of one kernel's code as it stands at its address. Dispatches share it as long as the bytes are the same.
"""
from __future__ import annotations
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tinyhw.emulator.amd import arithmetic, control, lanes
from tinyhw.emulator.amd.arithmetic import Computation, Uses
from tinyhw.emulator.amd.foresight import Known, StandIn, foresee, known, tell
from tinyhw.emulator.amd.native import Native, Operand, native
from tinyhw.emulator.amd.decoded import is_computation
from tinyhw.emulator.amd.native_transfer import transfer_of
from tinyhw.emulator.amd.python_lanes import Shape
from tinyhw.emulator.amd.state import AGPR, DROPPED, SCALARS_AT, SCC, VECTORS_AT
from tinyhw.emulator.errors import EmulatorError, PageFault
from tinyhw.emulator.memory import Kind
from tinyhw.emulator.threaded import AT, HEAD, PAIRS, WORD, Engine, Exit, Records, engine
from tinyhw.isa.amd import regs

if TYPE_CHECKING:
  from tinyhw.emulator.amd.decoded import Decoder, Step
  from tinyhw.emulator.amd.registers import DispatchRegisters
  from tinyhw.emulator.amd.state import Wave

HOT = 8          # executions of a block after which it is translated
LONGEST = 256    # instructions of a block
MOST = 512       # translations that are kept
RECORD, BUDGET, KNOWN, ENTERED, ENTRY = (AT[name] for name in ("RECORD", "BUDGET", "KNOWN", "ENTERED", "ENTRY"))
VECTOR_WINDOWS, SCALAR_WINDOWS = AT["VECTOR_WINDOWS"], AT["SCALAR_WINDOWS"]

class Block:
  """A run of steps from an address, for waves in one mode. code: its bytes. By a record's place in words: python, the index of the step that Python
  executes; transfers, how it accesses memory, where translated code had tried; shapes, the shape whose function for some lanes is not made yet;
  spots, the index of a checked stretch's first step; links, the address of the code that comes next. ways: number of what is known before ->
  behind, None where there is an error."""
  def __init__(self, pc: int, mode: int, steps: list[tuple[int, Step]], code: bytes, records: Records):
    self.pc, self.mode, self.steps, self.code, self.records = pc, mode, steps, code, records
    self.python: dict[int, int] = {}
    self.shapes: dict[int, Shape] = {}
    self.spots: dict[int, int] = {}
    self.transfers: dict[int, Kind] = {}
    self.links: dict[int, int] = {}
    self.ways: dict[int, int | None] = {}
    self.pairs = 0

  def pass_through(self, before: int, behind: int) -> None:
    """From now on the entry lets this state in."""
    at = HEAD + 1 + 2 * (self.pairs % PAIRS)
    self.records.words[at:at + 2] = self.records.words.__class__("q", (before, behind))
    self.pairs += 1

class Writer:
  """The records of one block."""
  def __init__(self, block: Block, decoder: Decoder, row_word: dict[int, int], lanes_of_wave: int):
    self.block, self.mode, self.row_word, self.lanes = block, decoder.mode(block.mode), row_word, lanes_of_wave
    self.records = block.records

  def write(self) -> None:
    """Raises KeyError for a register that the kernel has not."""
    self.records.entry(len(self.block.steps))
    for first, last in stretches([step for _, step in self.block.steps]):
      self.check(first, last)
      for i in range(first, last): self.step(i)
    pc, step = self.block.steps[-1]
    if not step.ends: self.link(pc + step.size)

  def check(self, first: int, last: int) -> None:
    """The check of vector registers of a stretch of steps."""
    reads: dict[int, None] = {}
    writes: dict[int, None] = {}
    for _, step in self.block.steps[first:last]:
      reads.update(dict.fromkeys(r for r in step.vector_reads if r not in writes))
      writes.update(dict.fromkeys(step.vector_writes))
    for row in (*reads, *writes): self.row_word[row]
    if not reads and not writes: return
    name = "written_all" if self.block.steps[first][1].all_lanes else "written"
    self.block.spots[self.records.steer(name, len(reads), len(writes), *reads, *writes)] = first

  def step(self, index: int) -> None:
    """The records of a step."""
    pc, step = self.block.steps[index]
    uses = Uses(step.inst)
    if step.steers or step.run is control.nothing: return
    if uses.name == "s_branch" or uses.name in CONDITIONS: return self.branch(uses, pc + step.size)
    made = self.natives(uses) if is_computation(uses.name) else None
    transfer = transfer_of(uses, self.mode, self.row_word)
    if transfer is not None:
      at = self.records.steer(transfer.function, *transfer.operands)
      self.block.python[at] = index
      if transfer.kind is not None: self.block.transfers[at] = transfer.kind
    elif made is None: self.block.python[self.records.steer("python")] = index
    else:
      for computation, function in made: self.compute(computation, function)
      if step.activates: self.records.steer("activate", 4 * regs.EXEC)

  def natives(self, uses: Uses) -> list[tuple[Computation, Native]] | None:
    """The functions of an instruction, or None if one of them stays Python."""
    found = []
    for computation in arithmetic.computations(uses, self.mode):
      function = native(computation.shape, False, self.lanes)
      if function is None or computation.active not in (None, regs.EXEC): return None
      found.append((computation, function))
    return found

  def compute(self, computation: Computation, function: Native) -> None:
    shape = computation.shape
    some = self.records.engine.functions["make"] if shape.lanes else function.address
    at = self.records.add((function.address, some), [self.word(operand, computation) for operand in function.operands])
    if shape.lanes: self.block.shapes[at] = shape

  def word(self, operand: Operand, computation: Computation) -> int:
    """An operand's word of a record."""
    value = computation.arguments[operand.name]
    if operand.kind == "row": return self.row_word[value + operand.part]
    if operand.kind == "constant": return int(value) >> 32 * operand.part & 0xffffffff
    return DROPPED if value == regs.NULL and operand.name == "CARRY" else value + operand.part

  def branch(self, uses: Uses, behind: int) -> None:
    """The end of a block: the ways that it may go on."""
    target = behind + 4 * control.signed16(uses["simm16"])
    if uses.name == "s_branch":
      self.link(target)
      return
    jump, register = CONDITIONS[uses.name]
    mask = (1 << 32) - 1 if register == SCC or self.lanes == 32 else -1
    at = self.records.steer(jump, 0, 0, 4 * register, mask)
    for i, pc in enumerate((target, behind)): self.records.addresses.append((at + HEAD + i, self.link(pc)))

  def link(self, pc: int) -> int:
    """A record that goes to the block at an address."""
    at = self.records.steer("link", 0)
    self.block.links[at] = pc
    return at

CONDITIONS = {"s_cbranch_scc0": ("jump_zero", SCC), "s_cbranch_scc1": ("jump_set", SCC),
              "s_cbranch_vccz": ("jump_zero", regs.VCC), "s_cbranch_vccnz": ("jump_set", regs.VCC),
              "s_cbranch_execz": ("jump_zero", regs.EXEC), "s_cbranch_execnz": ("jump_set", regs.EXEC)}

def stretches(steps: list[Step]) -> Iterator[tuple[int, int]]:
  """Parts of a run, (first, behind the last), in which one check of vector registers is enough: EXEC is written at the end at most."""
  first = 0
  for i, step in enumerate(steps):
    apart = step.inst.row.name in lanes.ONE_LANE or step.all_lanes
    if apart and first < i:
      yield first, i
      first = i
    if apart or step.activates:
      yield first, i + 1
      first = i + 1
  if first < len(steps): yield first, len(steps)

class Translation:
  """The blocks of a kernel, by address and mode of the wave, and the states that strict checks have come to, by number."""
  def __init__(self, registers: DispatchRegisters, engine: Engine):
    self.engine, self.lanes = engine, registers.wave_size
    arch = registers.accumulator if registers.accumulator is not None else registers.vgprs
    first = (VECTORS_AT - SCALARS_AT) // 4
    self.row_word = {row: first + row * self.lanes for row in range(arch)}
    self.row_word |= {AGPR + i: first + (arch + i) * self.lanes for i in range(registers.vgprs - arch)}
    self.blocks: dict[tuple[int, int], Block | None] = {}
    self.by_entry: dict[int, Block] = {}
    self.counts: Counter[tuple[int, int]] = Counter()
    self.states: list[Known] = []
    self.numbers: dict[Known, int] = {}
    self.stand_in: StandIn | None = None

  def is_of(self, decoder: Decoder) -> bool:
    """Whether the code still is what was translated."""
    try: return all(decoder.read(b.pc, len(b.code)) == b.code for b in self.blocks.values() if b is not None)
    except (EmulatorError, PageFault): return False

  def number(self, what: Known) -> int:
    """The number of a state."""
    found = self.numbers.get(what)
    if found is None:
      found = self.numbers[what] = len(self.states)
      self.states.append(what)
    return found

  # ***** blocks *****

  def block(self, pc: int, mode: int, decoder: Decoder) -> Block | None:
    """The translated block at an address; None while it is not hot, or if it must be executed step by step."""
    key = pc, mode
    if key in self.blocks: return self.blocks[key]
    self.counts[key] += 1
    if self.counts[key] < HOT: return None
    made = self.blocks[key] = self.translate(pc, mode, decoder)
    if made is not None: self.by_entry[made.records.address] = made
    return made

  def translate(self, pc: int, mode: int, decoder: Decoder) -> Block | None:
    steps: list[tuple[int, Step]] = []
    at = pc
    while len(steps) < LONGEST:
      try: step = decoder.steps(mode).get(at) or decoder.decode(at, mode)
      except EmulatorError: break  # it is an error only if a wave gets there
      if step.inst.row.name in control.ALONE: break
      steps.append((at, step))
      at += step.size
      if step.ends: break
    if not steps: return None
    block = Block(pc, mode, steps, decoder.read(pc, at - pc), Records(self.engine))
    try: Writer(block, decoder, self.row_word, self.lanes).write()
    except KeyError: return None  # a register that there is not: strict.py says so
    block.records.done()
    return block

  # ***** what is known *****

  def way(self, block: Block, before: int, wave: Wave) -> int | None:
    """The state behind a block that is entered with one."""
    if before in block.ways: return block.ways[before]
    if self.stand_in is None: self.stand_in = StandIn(wave)
    found = foresee(self.stand_in, self.states[before], block.steps)
    behind = block.ways[before] = None if found is None else self.number(found)
    return behind

  def enter(self, wave: Wave) -> None:
    """The wave's state becomes a number."""
    if wave.known: return
    wave.context[KNOWN], wave.known = self.number(known(wave.strict)), True

  def leave(self, wave: Wave) -> None:
    """The wave is watched step by step from here on."""
    if not wave.known: return
    what = self.states[wave.context[KNOWN]]
    wave.note_local(max((event.age for event in what.events), default=0))
    tell(wave.strict, what)
    wave.known = False

  # ***** execution *****

  def run(self, wave: Wave, block: Block, budget: int, decoder: Decoder) -> int:
    """Let a wave execute blocks, beginning with one, until the budget is spent, it waits or ends, or comes to what goes step by step. How many
    instructions there were; `wave.pc` is where it goes on."""
    self.enter(wave)
    context, address = wave.context, wave.file.address
    wave.reach_local()
    context[VECTOR_WINDOWS], context[SCALAR_WINDOWS] = wave.memory.windows()
    context[RECORD], context[BUDGET] = block.records.address, budget
    while True:
      reason = self.engine.run(address)
      if reason == Exit.PYTHON:
        if self.python(wave): continue
        following = None if wave.waiting or wave.ended else self.block(wave.pc, wave.mode, decoder)
        if following is None: break
        context[RECORD] = following.records.address
      elif reason == Exit.LINK:
        block, place = self.here(wave)
        wave.pc = block.links[place]
        following = self.block(wave.pc, wave.mode, decoder)
        if following is None: break
        block.records.jump(place, following.records.address)
        context[RECORD] = following.records.address
      elif reason == Exit.UNKNOWN:
        block = self.by_entry[context[RECORD]]
        behind = self.way(block, context[KNOWN], wave)
        if behind is None:
          wave.pc = block.pc
          self.leave(wave)
          break
        block.pass_through(context[KNOWN], behind)
      elif reason == Exit.MAKE:
        block, place = self.here(wave)
        made = native(block.shapes[place], True, self.lanes)
        assert made is not None, "what can be translated for all lanes can be for some"
        block.records.words[place + 1] = made.address
      elif reason == Exit.BUDGET:
        wave.pc = self.by_entry[context[RECORD]].pc
        break
      else:
        self.retreat(wave)
        break
    return budget - int(context[BUDGET])

  def here(self, wave: Wave) -> tuple[Block, int]:
    """The block and the place in words where the loop has stopped."""
    entry = wave.context[ENTRY]
    return self.by_entry[entry], (wave.context[RECORD] - entry) // WORD

  def python(self, wave: Wave) -> bool:
    """Execute a step in Python. Whether the loop goes on behind it."""
    block, place = self.here(wave)
    index = block.python[place]
    pc, step = block.steps[index]
    wave.at, wave.pc = pc, pc + step.size
    if step.local: wave.note_local()
    step.run(wave)
    if step.local: wave.strict.local.end()
    if place in block.transfers: wave.memory.open_window(block.transfers[place])
    if wave.lds.size: wave.reach_local()
    wave.context[RECORD] += block.records.words[place + 2]
    return not step.ends

  def retreat(self, wave: Wave) -> None:
    """Back to the first step of the stretch whose check has failed, to be executed step by step."""
    block, place = self.here(wave)
    first = block.spots[place]
    assert self.stand_in is not None, "the block was entered"
    found = foresee(self.stand_in, self.states[wave.context[ENTERED]], block.steps[:first])
    assert found is not None, "a part of a block without errors has none"
    wave.context[KNOWN], wave.pc = self.number(found), block.steps[first][0]
    self.leave(wave)

_kept: dict[tuple[object, ...], Translation] = {}

def translation(registers: DispatchRegisters, decoder: Decoder) -> Translation | None:
  """The translation of a dispatch's kernel; None on a host without the loop."""
  loop = engine()
  if loop is None: return None
  key = registers.arch, registers.wave_size, registers.code, registers.vgprs, registers.accumulator, registers.sgprs
  found = _kept.pop(key, None)
  if found is None or not found.is_of(decoder): found = Translation(registers, loop)
  _kept[key] = found
  if len(_kept) > MOST: del _kept[next(iter(_kept))]
  return found
