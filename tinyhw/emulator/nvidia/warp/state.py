"""A warp: its lanes' registers, predicates, uniform registers, local memory, and its address.

All registers are in one piece of memory, which translated code uses:

- a context;
- words of the warp (predicates as masks of lanes, uniform registers, the lanes that run);
- for each register a mask of the lanes in which it was written;
- the registers, 32 words each, and one of zeros;
- constant bank 0.

Unwritten registers hold garbage.
"""
from __future__ import annotations
import random
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from tinyhw.drivers.cpu.memory import address_of
from tinyhw.emulator.memory.windows import NOWHERE
from tinyhw.emulator.native.threaded import AT, CONTEXT_BYTES
from tinyhw.emulator.nvidia.warp.launch import LaunchParameters
from tinyhw.isa.sass.table import regs
from tinyhw.isa.sass.table.uses import Unit
if TYPE_CHECKING:
  from tinyhw.emulator.memory.lds import LocalMemory
  from tinyhw.emulator.memory.memory import WindowedMemory
  from tinyhw.emulator.nvidia.checks.strict import PipelineState
  from tinyhw.emulator.nvidia.convergence import Convergence
  from tinyhw.emulator.nvidia.execute.warpgroup import Warpgroup
  from tinyhw.emulator.nvidia.memory.copies import AsynchronousCopies

LANES = 32
ALL = (1 << LANES) - 1
ZEROS = [0] * LANES
REGISTERS, UNIFORM, PREDICATES = 255, 63, 7
# words of a warp. RUNNING: lanes that have not ended; GUARDED: those in which the guard of translated code holds;
# FIRST: the number of its first lane in its block, BLOCK: that of the block
P_AT, UP_AT, UR_AT, RUNNING, GUARDED, FIRST, BLOCK = 0, 8, 16, 80, 81, 82, 83
STATE_AT = CONTEXT_BYTES
WRITTEN_AT = STATE_AT + 384
# registers by number, for the masks of written lanes
BANKS = (("R", 0, 256), ("P", 256, 8), ("UP", 264, 8), ("UR", 272, 64), ("B", 336, 16))
UNITS: dict[Unit, int] = {(bank, i): first + i for bank, first, count in BANKS for i in range(count)}
PT: Unit = ("P", regs.TRUE)
def named(unit: Unit) -> str: return f"{unit[0]}{unit[1]}"

ROWS_AT = (WRITTEN_AT + 8 * len(UNITS) + 63) // 64 * 64
ROW_BYTES = 4 * LANES
_ROW = struct.Struct(f"<{LANES}I")
_ACTIVE, _PARTIAL, _ALL, _LOCAL = (AT[name] for name in ("ACTIVE", "PARTIAL", "ALL", "LOCAL"))

def row_word(index: int, registers: int) -> int:
  """Return where the row of a register begins, in words of the state. registers: number of them in the launch.

  Raises KeyError if there is none.
  """
  if index != regs.ZERO and index >= registers: raise KeyError(index)
  return (ROWS_AT - STATE_AT + ROW_BYTES * min(index, registers)) // 4

def constants_word(registers: int) -> int:
  """Return where constant bank 0 begins, in words of the state."""
  return row_word(regs.ZERO, registers) + LANES

class RegisterRows:
  """The registers, each a list of 32 words. RZ is zeros, and discards writes."""
  __slots__ = ("memory",)

  def __init__(self, memory: bytearray): self.memory = memory
  def __getitem__(self, index: int) -> list[int]:
    return ZEROS if index == regs.ZERO else list(_ROW.unpack_from(self.memory, ROWS_AT + ROW_BYTES * index))
  def __setitem__(self, index: int, words: list[int]) -> None:
    _ROW.pack_into(self.memory, ROWS_AT + ROW_BYTES * index, *words)

class Written:
  """For each register the lanes in which it was written."""
  __slots__ = ("masks",)

  def __init__(self, masks: memoryview): self.masks = masks
  def __getitem__(self, unit: Unit) -> int: return self.masks[UNITS[unit]]
  def __setitem__(self, unit: Unit, lanes: int) -> None: self.masks[UNITS[unit]] = lanes
  def __contains__(self, unit: Unit) -> bool: return self[unit] != 0
  def get(self, unit: Unit, default: int) -> int:
    """Return the lanes. There is never a default."""
    return self.masks[UNITS[unit]]

class Warp:
  """The state of a warp.

  - number: within its block. pc: of the next instruction, at: of the current one.
  - waiting: at a barrier of the block. numbered: its context has the number of the state of strict checks.
  - reach: shared memory for translated code. group: the warpgroup. convergence: lanes that have diverged.
  - until: condition that ends a wait other than at a barrier; goal: the same as text.
  """
  __slots__ = ("launch", "number", "block", "file", "address", "context", "words", "registers", "predicates", "uniform",
               "uniform_predicates",
               "known", "pc", "waiting", "at", "memory", "shared", "local", "local_known", "schedule", "copies",
               "reach", "numbered", "group",
               "until", "goal", "convergence")
  mode = 0   # no state changes the semantics of instructions

  def __init__(self, launch: LaunchParameters, number: int, block: int, memory: WindowedMemory, shared: LocalMemory,
               schedule: PipelineState, copies: AsynchronousCopies,
               convergence: Convergence, source: random.Random):
    self.launch, self.number, self.block, self.memory, self.shared = launch, number, block, memory, shared
    self.schedule, self.copies, self.convergence = schedule, copies, convergence
    garbage = source.randbytes(4) * (LANES * launch.registers)
    self.file = bytearray(ROWS_AT) + garbage + bytes(ROW_BYTES) + launch.constants + bytes(-len(launch.constants) % 8)
    self.file[STATE_AT:STATE_AT + 4 * RUNNING] = source.randbytes(4 * RUNNING)
    self.address, view = address_of(self.file), memoryview(self.file)
    self.context, self.words = view[:CONTEXT_BYTES].cast("q"), view[STATE_AT:WRITTEN_AT].cast("I")
    self.known = Written(view[WRITTEN_AT:WRITTEN_AT + 8 * len(UNITS)].cast("Q"))
    self.context[AT["STATE"]], self.context[AT["WRITTEN"]] = self.address + STATE_AT, self.address + WRITTEN_AT
    self.registers = RegisterRows(self.file)
    self.predicates, self.uniform_predicates = self.words[P_AT:P_AT + 8], self.words[UP_AT:UP_AT + 8]
    self.uniform = self.words[UR_AT:UR_AT + UNIFORM + 1]
    self.predicates[regs.TRUE], self.uniform_predicates[regs.TRUE], self.uniform[UNIFORM] = ALL, ALL, 0
    for i in range(PREDICATES): self.uniform_predicates[i] = ALL * (self.uniform_predicates[i] & 1)
    self.words[FIRST], self.words[BLOCK] = LANES * number, block
    self.known[PT] = ALL
    self.context[_ALL] = ALL
    self.active = (1 << max(0, min(launch.threads - LANES * number, LANES))) - 1
    self.reach = shared.reach(number) if shared.size else NOWHERE
    self.context[_LOCAL] = self.reach.address
    self.pc = self.at = launch.code
    self.waiting = self.numbered = False
    self.group: Warpgroup | None = None
    self.until: Callable[[], bool] | None = None
    self.goal = ""
    lanes = LANES if launch.local_bytes else 0
    self.local = [bytearray(source.randbytes(launch.local_bytes)) for _ in range(lanes)]
    self.local_known = [bytearray(launch.local_bytes) for _ in range(lanes)]

  @property
  def active(self) -> int:
    """Return the lanes that have not ended, and are on this path."""
    return self.words[RUNNING]
  @active.setter
  def active(self, lanes: int) -> None:
    self.words[RUNNING] = self.words[GUARDED] = lanes
    self.context[_ACTIVE], self.context[_PARTIAL] = lanes, 0 if lanes == ALL else 8

  @property
  def ended(self) -> bool:
    """Return whether all of its lanes have ended."""
    return not self.words[RUNNING]

  def wait_until(self, until: Callable[[], bool], goal: str) -> None:
    """Wait for an event other than a barrier of the block. goal: its text, for an error if it never comes."""
    self.waiting, self.until, self.goal = True, until, goal

  def wake(self) -> None:
    """Go on if the event that it waits for, no barrier, has come."""
    if self.until is not None and self.until(): self.waiting, self.until = False, None

  def guarded(self, guard: int, inverted: bool) -> int:
    """Return the running lanes in which a predicate is true, or (inverted) false."""
    mask: int = self.predicates[guard]
    return self.active & (~mask if inverted else mask)

def mask_of(truths: list[bool]) -> int:
  """Return booleans of lanes as a mask."""
  return sum(1 << lane for lane, truth in enumerate(truths) if truth)

def lanes_of(mask: int) -> list[int]:
  """Return the lanes of a mask, lowest first."""
  return [lane for lane in range(LANES) if mask >> lane & 1]
