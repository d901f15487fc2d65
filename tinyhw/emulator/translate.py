"""Kernels as threaded code (threaded.py): blocks of steps that have been executed often, and the turns of a wave that executes them.

A `Block` is a straight run of steps up to a branch. It is translated when it has been executed HOT times: a family writes records for its steps. What
strict checks know depends only on the way taken, so it is foreseen once for each state with which a block is entered: such states are numbered, and
the block's entry lets those in that it has seen. Where the checks find anything, the wave goes back to the start of the block, or of a stretch
between checks of what has been written, and executes step by step: errors are those of the family's strict.py, and nothing else raises them.

A `Translation` has the blocks of one kernel's code as it stands at its address. Launches share it as long as the bytes are the same.
"""
from __future__ import annotations
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tinyhw.emulator.errors import EmulatorError, PageFault
from tinyhw.emulator.memory import Kind, WindowedMemory
from tinyhw.emulator.threaded import AT, HEAD, PAIRS, WORD, Engine, Exit, Records, engine

if TYPE_CHECKING:
  from typing import Protocol
  class WaveLike(Protocol):
    """What executes. numbered: what strict checks know of it is the number in its context."""
    context: memoryview
    memory: WindowedMemory
    pc: int
    waiting: bool
    numbered: bool
    @property
    def address(self) -> int:
      """Of the context."""
    @property
    def ended(self) -> bool:
      """It has nothing more to execute."""
    @property
    def mode(self) -> int:
      """What of its state changes what instructions do."""

HOT = 8          # executions of a block after which it is translated
MOST = 512       # translations that are kept
TRIES = 4        # windows that are opened for one execution of an instruction
RECORD, BUDGET, KNOWN, ENTERED, ENTRY, FAILED = (AT[name] for name in ("RECORD", "BUDGET", "KNOWN", "ENTERED", "ENTRY", "FAILED"))
VECTOR_WINDOWS, SCALAR_WINDOWS = AT["VECTOR_WINDOWS"], AT["SCALAR_WINDOWS"]

Wave = TypeVar("Wave", bound="WaveLike")
Code = TypeVar("Code")                  # what decodes a launch's code
Step = TypeVar("Step")
State = TypeVar("State", bound=Hashable)

class Block(Generic[Step]):
  """A run of steps from an address, for waves in one mode. code: its bytes. By a record's place in words: python, the index of the step that Python
  executes; transfers, how it accesses memory, and whether it writes, where translated code had tried; makers, what compiles the function for some
  lanes, which is not made yet; spots, the index of a checked stretch's first step; links, the address of the code that comes next. ways: number of
  what is known before -> behind, None where there is an error."""
  def __init__(self, pc: int, mode: int, steps: list[tuple[int, Step]], code: bytes, records: Records):
    self.pc, self.mode, self.steps, self.code, self.records = pc, mode, steps, code, records
    self.python: dict[int, int] = {}
    self.makers: dict[int, Callable[[], int]] = {}
    self.spots: dict[int, int] = {}
    self.transfers: dict[int, tuple[Kind, bool]] = {}
    self.links: dict[int, int] = {}
    self.ways: dict[int, int | None] = {}
    self.pairs = 0

  def pass_through(self, before: int, behind: int) -> None:
    """From now on the entry lets this state in."""
    at = HEAD + 1 + 2 * (self.pairs % PAIRS)
    self.records.words[at:at + 2] = array("q", (before, behind))
    self.pairs += 1

  def link(self, pc: int) -> int:
    """Append a record that goes to the block at an address; its place."""
    at = self.records.steer("link", 0)
    self.links[at] = pc
    return at

class Translation(Generic[Wave, Code, Step, State]):
  """The blocks of a kernel, by address and mode of the wave, and the states that strict checks have come to, by number."""
  def __init__(self, engine: Engine):
    self.engine = engine
    self.blocks: dict[tuple[int, int], Block[Step] | None] = {}
    self.by_entry: dict[int, Block[Step]] = {}
    self.counts: Counter[tuple[int, int]] = Counter()
    self.states: list[State] = []
    self.numbers: dict[State, int] = {}
    self.tried = 0, 0     # the record for which windows are opened, and how many

  # ***** what a family says *****

  def steps_from(self, pc: int, mode: int, decoder: Code) -> list[tuple[int, Step]]:
    """The steps of the block at an address; none if it must be executed step by step."""
    raise NotImplementedError

  def size(self, step: Step) -> int:
    """The bytes of a step."""
    raise NotImplementedError

  def read(self, decoder: Code, address: int, size: int) -> bytes:
    """Bytes of the code."""
    raise NotImplementedError

  def write(self, block: Block[Step], decoder: Code) -> None:
    """Make the records of a block. Raises KeyError for a register that the kernel has not."""
    raise NotImplementedError

  def known(self, wave: Wave) -> State:
    """What strict checks know of a wave."""
    raise NotImplementedError

  def tell(self, wave: Wave, what: State) -> None:
    """Let a wave be watched with this knowledge."""
    raise NotImplementedError

  def foresee(self, wave: Wave, before: State, steps: Sequence[tuple[int, Step]]) -> State | None:
    """What will be known behind steps; None if one of them is an error."""
    raise NotImplementedError

  def execute(self, wave: Wave, pc: int, step: Step) -> bool:
    """Execute a step in Python, but for what is foreseen. Whether translated code goes on behind it."""
    raise NotImplementedError

  def prepare(self, wave: Wave) -> None:
    """Translated code is about to go on."""

  # ***** blocks *****

  def is_of(self, decoder: Code) -> bool:
    """Whether the code still is what was translated."""
    try: return all(self.read(decoder, b.pc, len(b.code)) == b.code for b in self.blocks.values() if b is not None)
    except (EmulatorError, PageFault): return False

  def number(self, what: State) -> int:
    """The number of a state."""
    found = self.numbers.get(what)
    if found is None:
      found = self.numbers[what] = len(self.states)
      self.states.append(what)
    return found

  def block(self, pc: int, mode: int, decoder: Code) -> Block[Step] | None:
    """The translated block at an address; None while it is not hot, or if it must be executed step by step."""
    key = pc, mode
    if key in self.blocks: return self.blocks[key]
    self.counts[key] += 1
    if self.counts[key] < HOT: return None
    made = self.blocks[key] = self.translate(pc, mode, decoder)
    if made is not None: self.by_entry[made.records.address] = made
    return made

  def translate(self, pc: int, mode: int, decoder: Code) -> Block[Step] | None:
    """Make a block."""
    steps = self.steps_from(pc, mode, decoder)
    if not steps: return None
    last, step = steps[-1]
    block = Block(pc, mode, steps, self.read(decoder, pc, last + self.size(step) - pc), Records(self.engine))
    block.records.entry(len(steps))
    try: self.write(block, decoder)
    except KeyError: return None  # a register that there is not: strict.py says so
    block.records.done()
    return block

  # ***** what is known *****

  def way(self, block: Block[Step], before: int, wave: Wave) -> int | None:
    """The state behind a block that is entered with one."""
    if before in block.ways: return block.ways[before]
    found = self.foresee(wave, self.states[before], block.steps)
    behind = block.ways[before] = None if found is None else self.number(found)
    return behind

  def enter(self, wave: Wave) -> None:
    """The wave's state becomes a number."""
    if wave.numbered: return
    wave.context[KNOWN], wave.numbered = self.number(self.known(wave)), True

  def leave(self, wave: Wave) -> None:
    """The wave is watched step by step from here on."""
    if not wave.numbered: return
    self.tell(wave, self.states[wave.context[KNOWN]])
    wave.numbered = False

  # ***** execution *****

  def run(self, wave: Wave, block: Block[Step], budget: int, decoder: Code) -> int:
    """Let a wave execute blocks, beginning with one, until the budget is spent, it waits or ends, or comes to what goes step by step. How many
    instructions there were; `wave.pc` is where it goes on."""
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
        block.records.words[place + 1] = block.makers[place]()
      elif reason == Exit.BUDGET:
        wave.pc = self.by_entry[context[RECORD]].pc
        break
      else:
        self.retreat(wave)
        break
    return budget - int(context[BUDGET])

  def here(self, wave: Wave) -> tuple[Block[Step], int]:
    """The block and the place in words where the loop has stopped."""
    entry = wave.context[ENTRY]
    return self.by_entry[entry], (wave.context[RECORD] - entry) // WORD

  def python(self, wave: Wave) -> bool:
    """Execute a step in Python, or have a window for it and try again. Whether the loop goes on."""
    block, place = self.here(wave)
    if place in block.transfers and self.opened(wave, *block.transfers[place]): return True
    pc, step = block.steps[block.python[place]]
    goes_on = self.execute(wave, pc, step)
    self.prepare(wave)
    wave.context[RECORD] += block.records.words[place + 2]
    return goes_on

  def opened(self, wave: Wave, kind: Kind, write: bool) -> bool:
    """Whether there is a new window onto the place that an instruction could not access. Only so many for one instruction: they are few."""
    address, wave.context[FAILED] = wave.context[FAILED], 0
    again = wave.context[RECORD] == self.tried[0]
    if not address or again and self.tried[1] >= TRIES or not wave.memory.open_window(address, kind, write):
      self.tried = 0, 0
      return False
    self.tried = wave.context[RECORD], self.tried[1] + 1 if again else 1
    return True

  def retreat(self, wave: Wave) -> None:
    """Back to the first step of the stretch whose check has failed, to be executed step by step."""
    block, place = self.here(wave)
    first = block.spots[place]
    found = self.foresee(wave, self.states[wave.context[ENTERED]], block.steps[:first])
    assert found is not None, "a part of a block without errors has none"
    wave.context[KNOWN], wave.pc = self.number(found), block.steps[first][0]
    self.leave(wave)

_kept: dict[tuple[object, ...], Any] = {}
Made = TypeVar("Made", bound=Translation[Any, Any, Any, Any])

def kept(key: tuple[object, ...], decoder: object, make: Callable[[Engine], Made]) -> Made | None:
  """The translation of a kernel that is called so, as long as its code is the same; None on a host without the loop."""
  loop = engine()
  if loop is None: return None
  found: Made | None = _kept.pop(key, None)
  if found is None or not found.is_of(decoder): found = make(loop)
  _kept[key] = found
  if len(_kept) > MOST: del _kept[next(iter(_kept))]
  return found
