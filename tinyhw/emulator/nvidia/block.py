"""Execution of a block: its warps, in a seeded random order, from exact bytes, with the checks of strict.py.

Where the host can, hot runs of instructions go as translated code (translate.py), and turns end at the ends of runs.
With EMULATE_TRANSLATE=0 all instructions go step by step.
"""
from __future__ import annotations
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tinyhw import config
from tinyhw.autogen.nvidia import bank
from tinyhw.emulator.errors import EmulatorError, Hang, Misplaced, PageFault, StrictError
from tinyhw.emulator.memory.lds import LocalMemory
from tinyhw.emulator.memory.memory import INSTRUCTION, WindowedMemory
from tinyhw.emulator.nvidia.checks import unused
from tinyhw.emulator.nvidia.checks.strict import PipelineState, check_registers
from tinyhw.emulator.nvidia.checks.reachable import is_asynchronous
from tinyhw.emulator.nvidia.convergence import Convergence
from tinyhw.emulator.nvidia.execute.decoded import DecodedInstruction, DecodedCode
from tinyhw.emulator.nvidia.execute.warpgroup import group_warps
from tinyhw.emulator.nvidia.memory.copies import AsynchronousCopies
from tinyhw.emulator.nvidia.memory.shared import WORDS, SharedMemory
from tinyhw.emulator.nvidia.native.translate import Translation, translation
from tinyhw.emulator.nvidia.warp.launch import LaunchParameters
from tinyhw.emulator.nvidia.warp.state import LANES, Warp, named
from tinyhw.isa.sass.asm.encode import BYTES

if TYPE_CHECKING:
  from tinyhw.emulator.nvidia.card.grid import Grid
  from tinyhw.emulator.nvidia.card.port import Port

# most instructions of one warp in a row: one of these is drawn for each turn, and then the number
TURNS = (2, 24, 400, 8192)

class ThreadBlock:
  """One block of a grid. seed: of the order of warps, and of the initial registers and memory. decoder: one of the same
  launch, if it exists already.

  watch: called before each instruction. With it all instructions go step by step.
  """

  def __init__(self, launch: LaunchParameters, number: int, memory: WindowedMemory, seed: int = 0,
               decoder: DecodedCode | None = None,
               watch: Callable[[Warp, DecodedInstruction], None] | None = None):
    self.launch, self.number, self.memory, self.watch = launch, number, memory, watch
    self.random = random.Random(seed)
    self.decoder = decoder or DecodedCode(launch.arch, lambda address, size: memory.load(address, size, INSTRUCTION))
    count = -(-launch.threads // LANES)
    asynchronous = is_asynchronous(launch, self.decoder)
    self.shared = SharedMemory(launch.shared_bytes, self.random,
                               count) if asynchronous else LocalMemory(launch.shared_bytes, self.random, WORDS)
    self.warps = [Warp(launch, k, number, memory, self.shared, PipelineState(), AsynchronousCopies(),
                       Convergence(self.random),
                       self.random) for k in range(count)]
    if isinstance(self.shared, SharedMemory): group_warps(self.warps, self.shared)
    self.alive = list(self.warps)
    self.translation: Translation | None = None
    if watch is None and config.EMULATE_TRANSLATE:
      self.translation = self.decoder.shared(lambda: translation(launch, self.decoder))
    self.executed = 0

  def run(self) -> int:
    """Execute to the end. Return the number of instructions."""
    while not self.step(1 << 20): pass
    return self.executed

  def step(self, budget: int) -> bool:
    """Execute `budget` instructions, of warps in a random order, and on to the end of a run. Return whether all have
    ended.

    Raises EmulatorError naming instruction and kernel, or PageFault.
    """
    until = self.executed + budget
    while self.alive and self.executed < until:
      for warp in self.alive: warp.wake()
      ready = [warp for warp in self.alive if not warp.waiting]
      if not ready: self.release()
      else:
        count = until - self.executed
        if len(ready) > 1: count = min(count, self.random.randint(1, self.random.choice(TURNS)))
        self.turn(self.random.choice(ready), count)
    return not self.alive

  def release(self) -> None:
    """Release the barrier: all warps that still run have come to it. Earlier accesses to shared memory are done, except
    copies in flight.

    If a warp waits for something else, let a copy arrive that may be it. Raises Hang if there is none.
    """
    lost = next((warp for warp in self.alive if warp.until is not None), None)
    if lost is not None:
      try:
        if isinstance(self.shared, SharedMemory) and self.shared.deliver(): return
        raise Hang(f"it waits {lost.goal}, and all other warps wait too, or have ended")
      except EmulatorError as e: raise self.located(e, lost) from e
    self.shared.barrier((warp.number, access) for warp in self.warps for access in warp.copies.unfinished())
    for warp in self.alive: warp.waiting = False

  def turn(self, warp: Warp, count: int) -> None:
    """Execute some instructions of a warp: fewer if it waits or ends, or on to the end of a run."""
    done = 0
    try:
      while done < count and not warp.waiting and not warp.ended:
        found = None if warp.convergence.barriers else self.translation
        block = None if found is None else found.block(warp.pc, warp.mode, self.decoder)
        if found is not None and block is not None:
          done += found.run(warp, block, count - done, self.decoder)
          if warp.numbered: continue
        done += self.steps(warp, count - done)
      if warp.ended and self.alive == [warp] and isinstance(self.shared, SharedMemory): self.shared.check_end()
    except (EmulatorError, PageFault) as e: raise self.located(e, warp) from e
    self.executed += done
    if warp.ended: self.alive.remove(warp)

  def steps(self, warp: Warp, count: int) -> int:
    """Execute step by step: `count` instructions or, where runs are translated, to the end of one."""
    done, decoder = 0, self.decoder
    if self.translation is not None:
      self.translation.leave(warp)
      count = 1 << 30
    while done < count and not warp.waiting and not warp.ended:
      warp.at = warp.pc
      decoded = decoder.steps.get(warp.pc) or decoder.at(warp.pc)
      if self.watch is not None: self.watch(warp, decoded)
      lanes = warp.guarded(decoded.guard, decoded.inverted)
      check_registers(warp, decoded.uses, warp.active, lanes)
      warp.schedule.issue(decoded.inst, decoded.uses, decoded.control)
      warp.pc += BYTES
      if warp.convergence.barriers and warp.convergence.parted: check_together(decoded)
      if lanes: decoded.run(warp, lanes)
      done += 1
      if decoded.ends and self.translation is not None: break
    return done

  def located(self, error: EmulatorError | PageFault, warp: Warp) -> EmulatorError | PageFault:
    """Return the error with the place where it happened."""
    where = f"{warp.at:#x} (kernel + {warp.at - self.launch.code:#x})"
    try: where += f": {self.decoder.at(warp.at).text}"
    except (StrictError, PageFault): pass  # the error is about an instruction that could not be decoded
    lane = "" if not isinstance(error, Misplaced) or error.lane is None else f"lane {error.lane} of "
    return error.located(f"\n  at {where}\n  {lane}warp {warp.number} of block {self.number}, kernel "
                         f"{self.launch.name}")

def check_together(decoded: DecodedInstruction) -> None:
  """Check an instruction while lanes have diverged: they share their uniform registers.

  Raises EmulatorError for a write to one of them.
  """
  written = [unit for unit in decoded.uses.writes if unit[0] in ("UR", "UP")]
  if written:
    raise EmulatorError(f"{named(written[0])} is written while lanes have diverged, and all of them have it")

def block_of_grid(grid: Grid, number: int, port: Port, seed: int,
                  watch: Callable[[Warp, DecodedInstruction], None] | None = None) -> ThreadBlock:
  """Make a block of a grid that a QMD started."""
  get = grid.fields.get
  launch = LaunchParameters(grid.name, grid.chip.name, get("program_address", 0),
                            grid.registers - bank.HIDDEN_REGISTERS,
                            bytes(grid.bank), grid.lanes,
                            grid.blocks, grid.shared_bytes, grid.private_bytes, get("barrier_count", 0))
  block = ThreadBlock(launch, number, port, seed, grid.decoder, watch)
  if grid.decoder is None and grid.processor.computer.strict > 1: unused.check(launch, block.decoder)
  grid.decoder = block.decoder
  return block
