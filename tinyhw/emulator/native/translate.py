"""Kernels as threaded code (native/threaded.py): translation of blocks of steps that are executed often, and execution
of translated blocks by a wave.

A `TranslatedBlock` is a straight run of steps up to a branch. It is translated after HOT executions: a family writes
records for its steps. The state of strict checks depends only on the path. So it is computed in advance, once for each
state with which a block is entered. Such states are numbered, and the entry of the block lets known states pass.

If the checks find a mistake, the wave goes back to the start of the block, or of the stretch since the last check of
written registers. It then executes step by step. So only the family's strict.py raises errors.

A `Translation` has the blocks of one kernel's code at its address. Launches share it as long as the bytes are the same.
"""
from __future__ import annotations
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tinyhw.data_class import dataclass
from tinyhw.emulator.errors import EmulatorError, PageFault
from tinyhw.emulator.memory.memory import AccessKind, WindowedMemory
from tinyhw.emulator.native.records import PAIRS, WORD, Records, ScalarAccess, VectorAccess
from tinyhw.emulator.native.threaded import AT, Engine, Exit, engine
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from typing import Protocol
  class WaveLike(Protocol):
    """A wave or warp. numbered: its context holds the number of its state of strict checks."""
    context: memoryview
    memory: WindowedMemory
    pc: int
    waiting: bool
    numbered: bool
    @property
    def address(self) -> int:
      """Return the address of the context."""
    @property
    def ended(self) -> bool:
      """Return whether it has nothing more to execute."""
    @property
    def mode(self) -> int:
      """Return the part of its state that changes the semantics of instructions."""

HOT = 8          # executions of a block before it is translated
MOST = 512       # translations that are kept
TRIES = 4        # windows that are opened for one execution of an instruction
RECORD, BUDGET, KNOWN, ENTERED, ENTRY, FAILED = (AT[name] for name in ("RECORD", "BUDGET", "KNOWN", "ENTERED", "ENTRY",
                                                                       "FAILED"))
VECTOR_WINDOWS, SCALAR_WINDOWS = AT["VECTOR_WINDOWS"], AT["SCALAR_WINDOWS"]

Wave = TypeVar("Wave", bound="WaveLike")
Code = TypeVar("Code")                  # decoder of a launch's code
Step = TypeVar("Step")
State = TypeVar("State", bound=Hashable)

class MemoryAccess(NamedTuple):
  """Access of an instruction to memory."""
  kind: AccessKind
  write: bool

class Transfer(NamedTuple):
  """A load or store that translated code does itself. function: of native/access.py, with its operands; access: to
  memory, None for the LDS."""
  function: str
  operands: VectorAccess | ScalarAccess
  access: MemoryAccess | None

@dataclass
class Stop:
  """The data that Python needs about a record where the loop may stop.

  - step: index of the step that it executes.
  - access: to memory, if a function has tried it and a window may be opened for it.
  - make: compiles the missing function for some lanes and returns its address.
  - first: index of the first step of the stretch whose check may fail.
  - following: address of the next code.
  """
  step: int = -1
  access: MemoryAccess | None = None
  make: Callable[[], int] | None = None
  first: int = -1
  following: int = -1

class TranslatedBlock(Generic[Step]):
  """A run of steps from an address, for waves in one mode.

  - steps: (address, step); code: their bytes.
  - stops: by a record's place in words.
  - transitions: number of the state before -> number of the state after, None where there is an error.
  - pairs: how many of these pairs of states were given to the entry.
  """
  def __init__(self, pc: int, mode: int, steps: list[tuple[int, Step]], code: bytes, records: Records):
    self.pc, self.mode, self.steps, self.code, self.records = pc, mode, steps, code, records
    self.stops: dict[int, Stop] = {}
    self.transitions: dict[int, int | None] = {}
    self.pairs = 0

  def pass_through(self, before: int, after: int) -> None:
    """Let a state pass the entry from now on."""
    self.records.admit(self.pairs % PAIRS, before, after)
    self.pairs += 1

  # ***** records with stops *****

  def link(self, pc: int) -> int:
    """Append a record that goes to the block at an address. Return its place."""
    at = self.records.link()
    self.stops[at] = Stop(following=pc)
    return at

  def python(self, step: int) -> None:
    """Append a step that Python executes."""
    self.stops[self.records.python()] = Stop(step=step)

  def transfer(self, step: int, found: Transfer) -> None:
    """Append a load or store."""
    self.stops[self.records.steer(found.function, *found.operands)] = Stop(step=step, access=found.access)

  def compute(self, function: int, operands: Sequence[int], make: Callable[[], int] | None) -> None:
    """Append a call of a compiled function. make: compiles it for some lanes; None where it does not depend on active
    lanes."""
    at = self.records.add(function, function if make is None else self.records.functions["make"], operands)
    if make is not None: self.stops[at] = Stop(make=make)

  def check(self, at: int, first: int) -> None:
    """Add the stop of a check at a place. It checks a stretch that begins with step `first`."""
    self.stops[at] = Stop(first=first)

class Translation(Generic[Wave, Code, Step, State]):
  """The blocks of a kernel, by address and mode of the wave, and the numbered states of strict checks."""
  def __init__(self, engine: Engine):
    self.engine = engine
    self.blocks: dict[tuple[int, int], TranslatedBlock[Step] | None] = {}
    self.by_entry: dict[int, TranslatedBlock[Step]] = {}
    self.counts: Counter[tuple[int, int]] = Counter()
    self.states: list[State] = []
    self.numbers: dict[State, int] = {}
    self.opening = 0      # address of the record for which windows were opened last, and their number
    self.opened = 0

  # ***** defined by a family *****

  def steps_from(self, pc: int, mode: int, decoder: Code) -> list[tuple[int, Step]]:
    """Return the steps of the block at an address; none if it must be executed step by step."""
    raise NotImplementedError

  def size(self, step: Step) -> int:
    """Return the size of a step in bytes."""
    raise NotImplementedError

  def read(self, decoder: Code, address: int, size: int) -> bytes:
    """Return bytes of the code."""
    raise NotImplementedError

  def write(self, block: TranslatedBlock[Step], decoder: Code) -> None:
    """Write the records of a block. Raises KeyError for a register that the kernel does not have."""
    raise NotImplementedError

  def known(self, wave: Wave) -> State:
    """Return the state of the strict checks of a wave."""
    raise NotImplementedError

  def tell(self, wave: Wave, what: State) -> None:
    """Set the state of the strict checks of a wave."""
    raise NotImplementedError

  def foresee(self, wave: Wave, before: State, steps: Sequence[tuple[int, Step]]) -> State | None:
    """Return the state after the steps; None if one of them is an error."""
    raise NotImplementedError

  def execute(self, wave: Wave, pc: int, step: Step) -> bool:
    """Execute a step in Python, without the checks that are done in advance. Return whether translated code goes on
    after it.
    """
    raise NotImplementedError

  def prepare(self, wave: Wave) -> None:
    """Prepare a wave before translated code goes on."""

  # ***** blocks *****

  def is_of(self, decoder: Code) -> bool:
    """Return whether the code is still the translated one."""
    try: return all(self.read(decoder, b.pc, len(b.code)) == b.code for b in self.blocks.values() if b is not None)
    except (EmulatorError, PageFault): return False

  def number(self, what: State) -> int:
    """Return the number of a state."""
    found = self.numbers.get(what)
    if found is None:
      found = self.numbers[what] = len(self.states)
      self.states.append(what)
    return found

  def block(self, pc: int, mode: int, decoder: Code) -> TranslatedBlock[Step] | None:
    """Return the translated block at an address; None while it is not hot, or if it must be executed step by step."""
    key = pc, mode
    if key in self.blocks: return self.blocks[key]
    self.counts[key] += 1
    if self.counts[key] < HOT: return None
    made = self.blocks[key] = self.translate(pc, mode, decoder)
    if made is not None: self.by_entry[made.records.address] = made
    return made

  def translate(self, pc: int, mode: int, decoder: Code) -> TranslatedBlock[Step] | None:
    """Translate a block."""
    steps = self.steps_from(pc, mode, decoder)
    if not steps: return None
    last, step = steps[-1]
    block = TranslatedBlock(pc, mode, steps, self.read(decoder, pc, last + self.size(step) - pc),
                            Records(self.engine.functions))
    block.records.entry(len(steps))
    try: self.write(block, decoder)
    except KeyError: return None  # a register that does not exist: strict.py reports it
    block.records.done()
    return block

  # ***** states of strict checks *****

  def transition(self, block: TranslatedBlock[Step], before: int, wave: Wave) -> int | None:
    """Return the number of the state after a block, given the number at its entry; None if there is an error."""
    if before in block.transitions: return block.transitions[before]
    found = self.foresee(wave, self.states[before], block.steps)
    after = block.transitions[before] = None if found is None else self.number(found)
    return after

  def enter(self, wave: Wave) -> None:
    """Replace the wave's state by its number."""
    if wave.numbered: return
    wave.context[KNOWN], wave.numbered = self.number(self.known(wave)), True

  def leave(self, wave: Wave) -> None:
    """Check the wave step by step from here on."""
    if not wave.numbered: return
    self.tell(wave, self.states[wave.context[KNOWN]])
    wave.numbered = False

  # ***** execution *****

  def run(self, wave: Wave, block: TranslatedBlock[Step], budget: int, decoder: Code) -> int:
    """Execute blocks, beginning with this one, until the budget is spent, the wave waits or ends, or a step must be
    executed alone. Return the number of instructions. `wave.pc` is the next one."""
    self.enter(wave)
    context, address = wave.context, wave.address
    self.prepare(wave)
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
        wave.pc = block.stops[place].following
        following = self.block(wave.pc, wave.mode, decoder)
        if following is None: break
        block.records.join(place, following.records.address)
        context[RECORD] = following.records.address
      elif reason == Exit.UNKNOWN:
        block = self.by_entry[context[RECORD]]
        after = self.transition(block, context[KNOWN], wave)
        if after is None:
          wave.pc = block.pc
          self.leave(wave)
          break
        block.pass_through(context[KNOWN], after)
      elif reason == Exit.MAKE:
        block, place = self.here(wave)
        make = block.stops[place].make
        assert make is not None, "a record without a function for some lanes has what makes one"
        block.records.complete(place, make())
      elif reason == Exit.BUDGET:
        wave.pc = self.by_entry[context[RECORD]].pc
        break
      else:
        self.retreat(wave)
        break
    return budget - int(context[BUDGET])

  def here(self, wave: Wave) -> tuple[TranslatedBlock[Step], int]:
    """Return the block, and the place in words, where the loop has stopped."""
    entry = wave.context[ENTRY]
    return self.by_entry[entry], (wave.context[RECORD] - entry) // WORD

  def python(self, wave: Wave) -> bool:
    """Execute a step in Python, or open a window for it and try again. Return whether the loop goes on."""
    block, place = self.here(wave)
    stop = block.stops[place]
    if stop.access is not None and self.has_opened(wave, stop.access): return True
    goes_on = self.execute(wave, *block.steps[stop.step])
    self.prepare(wave)
    wave.context[RECORD] += block.records.size(place)
    return goes_on

  def has_opened(self, wave: Wave, access: MemoryAccess) -> bool:
    """Return whether there is a new window for an access that has failed.

    The number of windows for one instruction is limited, since a table has few.
    """
    address, wave.context[FAILED] = wave.context[FAILED], 0
    if wave.context[RECORD] != self.opening: self.opening, self.opened = wave.context[RECORD], 0
    if not address or self.opened >= TRIES or not wave.memory.open_window(address, access.kind, access.write):
      self.opening = 0
      return False
    self.opened += 1
    return True

  def retreat(self, wave: Wave) -> None:
    """Go back to the first step of the stretch whose check has failed. The wave executes it step by step."""
    block, place = self.here(wave)
    first = block.stops[place].first
    found = self.foresee(wave, self.states[wave.context[ENTERED]], block.steps[:first])
    assert found is not None, "a part of a block without errors has none"
    wave.context[KNOWN], wave.pc = self.number(found), block.steps[first][0]
    self.leave(wave)

_kept: dict[tuple[object, ...], Any] = {}
Made = TypeVar("Made", bound=Translation[Any, Any, Any, Any])

def kept(key: tuple[object, ...], decoder: object, make: Callable[[Engine], Made]) -> Made | None:
  """Return the translation of a kernel, kept under a key as long as its code is the same; None on a host without the
  loop.
  """
  loop = engine()
  if loop is None: return None
  found: Made | None = _kept.pop(key, None)
  if found is None or not found.is_of(decoder): found = make(loop)
  _kept[key] = found
  if len(_kept) > MOST: del _kept[next(iter(_kept))]
  return found
