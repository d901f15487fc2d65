"""A block that executes: its warps, in a seeded random order, from exact bytes, under the checks of strict.py."""
from __future__ import annotations
import random
from typing import TYPE_CHECKING, NamedTuple

from tinyhw.emulator.lds import LocalMemory
from tinyhw.emulator.errors import OutOfBounds, StrictError, UnknownInstruction
from tinyhw.emulator.memory import INSTRUCTION, WindowedMemory
from tinyhw.emulator.nvidia import control, fragments, matrix, semantics_float, semantics_integer, transfer
from tinyhw.emulator.nvidia.launch import Launch
from tinyhw.emulator.nvidia.operands import Operands
from tinyhw.emulator.nvidia.semantics_integer import Step
from tinyhw.emulator.nvidia.state import ALL, LANES, Warp
from tinyhw.emulator.nvidia.strict import Schedule, check_registers
from tinyhw.errors import DecodeError
from tinyhw.isa.sass.control import Control
from tinyhw.isa.sass.decode import decode
from tinyhw.isa.sass.encode import BYTES
from tinyhw.isa.sass.syntax import show
from tinyhw.isa.sass.uses import Uses, uses_of
from tinyhw.machine.inst import MInst

if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.grid import Grid
  from tinyhw.emulator.nvidia.port import Port

MEANINGS = {**semantics_integer.MEANINGS, **semantics_float.MEANINGS, **transfer.MEANINGS, **control.MEANINGS, **matrix.MEANINGS,
            **fragments.MEANINGS}
SLICE = 24  # most instructions of one warp in a row; the number is drawn for each turn

class Decoded(NamedTuple):
  """An instruction made ready. guard, inverted: the index of its predicate, and whether it is executed where that is false."""
  inst: MInst
  control: Control
  uses: Uses
  guard: int
  inverted: bool
  run: Step
  text: str

def made_ready(code: bytes, arch: str, address: int) -> Decoded:
  """Raises UnknownInstruction."""
  try: inst, control_word = decode(code, 0, arch)
  except DecodeError as e: raise UnknownInstruction(str(e)) from None
  o = Operands(inst)
  meaning = MEANINGS.get(inst.row.name)
  if meaning is None: raise UnknownInstruction(f"{o.form.key} has no meaning here yet")
  if control_word.reuse: raise UnknownInstruction("the reuse cache has no meaning here yet")
  run = meaning(o)
  o.finish()
  guard = o.values["guard"]
  text = f"{control_word} {show(inst, control_word, address)}"
  return Decoded(inst, control_word, uses_of(inst), guard.index, bool(o.values["guard_not"]), run, text)

class Block:
  """One block of a grid. seed: of the order in which warps run, and of what is in registers and memory at the start."""

  def __init__(self, launch: Launch, number: int, memory: WindowedMemory, seed: int = 0, known: dict[int, Decoded] | None = None):
    self.launch, self.number, self.memory = launch, number, memory
    self.random = random.Random(seed)
    self.shared = LocalMemory(launch.shared_bytes, self.random)
    self.warps = [Warp(launch, k, number, memory, self.shared, Schedule(), self.random) for k in range(-(-launch.threads // LANES))]
    self.alive = list(self.warps)
    self.decoded = {} if known is None else known   # by address; blocks of a grid share it
    self.executed = 0

  def run(self) -> int:
    """Execute to the end; the number of instructions."""
    while not self.step(1 << 20): pass
    return self.executed

  def step(self, budget: int) -> bool:
    """Execute so many instructions, of warps in a random order; True when all have ended. Raises StrictError naming instruction and kernel, or
    PageFault."""
    until = self.executed + budget
    while self.alive and self.executed < until:
      ready = [warp for warp in self.alive if not warp.waiting]
      if ready: self.turn(self.random.choice(ready), min(self.random.randint(1, SLICE), until - self.executed))
      else: self.release()
    return not self.alive

  def release(self) -> None:
    """All warps that still run have come to the barrier. Accesses to shared memory before it are done in order, before it."""
    self.shared.barrier(())
    for warp in self.alive: warp.waiting = False

  def turn(self, warp: Warp, count: int) -> None:
    """Let a warp execute some instructions, or fewer if it waits or ends."""
    for _ in range(count):
      at = warp.pc
      try: self.issue(warp)
      except StrictError as e: raise self.located(e, warp, at) from e
      self.executed += 1
      if not warp.active: self.alive.remove(warp)
      if not warp.active or warp.waiting: return

  def issue(self, warp: Warp) -> None:
    decoded = self.decoded.get(warp.pc)
    if decoded is None: decoded = self.decoded[warp.pc] = self.fetch(warp.pc)
    mask = warp.predicates[decoded.guard]
    lanes = warp.active & (~mask & ALL if decoded.inverted else mask)
    check_registers(warp, decoded.uses, warp.active, lanes)
    warp.schedule.issue(decoded.inst, decoded.uses, decoded.control)
    warp.pc += BYTES
    if lanes: decoded.run(warp, lanes)

  def fetch(self, address: int) -> Decoded:
    if address % BYTES: raise OutOfBounds(f"code at {address:#x}: instructions are at multiples of {BYTES}")
    return made_ready(self.memory.load(address, BYTES, INSTRUCTION), self.launch.arch, address)

  def located(self, error: StrictError, warp: Warp, at: int) -> StrictError:
    """The error with where it happened."""
    found = self.decoded.get(at)
    where = f"{at:#x} (kernel + {at - self.launch.code:#x})" + (f": {found.text}" if found else "")
    return type(error)(f"{error.message}\n  at {where}\n  warp {warp.number} of block {self.number}, kernel {self.launch.name}")

def block_of_grid(grid: Grid, number: int, port: Port, seed: int) -> Block:
  """A block of a grid that a QMD started."""
  get = grid.fields.get
  launch = Launch(grid.name, grid.chip.name, get("program_address", 0), grid.registers, bytes(grid.bank), grid.lanes, grid.blocks, grid.shared_bytes,
                  grid.private_bytes, get("barrier_count", 0))
  return Block(launch, number, port, seed, grid.decoded)
