"""Execution of a workgroup: its waves, in a seeded random order, from exact bytes. The registers of a wave are in
execute/state.py.

`Workgroup.step` lets one wave after the other run for some instructions until a budget is spent. strict.py has the
checks, which are made as instructions execute. Nothing here knows an instruction: decoded.py makes functions of them.
Where the host can, hot blocks run as translated code (translate.py), and turns end at the ends of blocks. With `watch`,
or with EMULATE_TRANSLATE=0, all instructions go step by step.
"""
from __future__ import annotations
import random
from collections.abc import Callable
from enum import IntEnum

from tinyhw import config
from tinyhw.emulator.amd.execute.decoded import DecodedCode, DecodedInstruction
from tinyhw.emulator.amd.execute.state import Wave, start
from tinyhw.emulator.amd.native.translate import Translation, translation
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.errors import EmulatorError, Misplaced, PageFault, StrictError
from tinyhw.emulator.memory.lds import Access, LocalMemory
from tinyhw.emulator.memory.memory import WindowedMemory

class StepResult(IntEnum):
  """Result of a step."""
  RUNNING = 0  # the budget is spent
  BARRIER = 1  # all waves came to a barrier and passed it
  DONE = 2     # all waves have ended

# most instructions of one wave in a row: one of these is drawn for each turn, and then the number
TURNS = (2, 24, 400, 8192)

class Workgroup:
  """One workgroup of a dispatch.

  - code_reader(address, size) returns code bytes, or raises PageFault.
  - group_id: of x, y, z. seed: of the order of waves, and of the initial registers and LDS.
  - wave_base: number of dispatch-wide waves before it, for scratch.
  - watch: called before each instruction. decoder: one of the same dispatch, if it exists already.
  """
  def __init__(self, arch: str, code_reader: Callable[[int, int], bytes], registers: DispatchRegisters,
               group_id: tuple[int, int, int],
               memory: WindowedMemory, lds_bytes: int, seed: int,
               watch: Callable[[Wave, DecodedInstruction], None] | None = None,
               wave_base: int = 0,
               decoder: DecodedCode | None = None):
    self.registers, self.group_id, self.watch = registers, group_id, watch
    self.random = random.Random(seed)
    self.lds = LocalMemory(lds_bytes, self.random)
    self.decoder = decoder or DecodedCode(arch, registers, code_reader)
    self.translation: Translation | None = None
    if watch is None and config.EMULATE_TRANSLATE:
      self.translation = self.decoder.shared(lambda: translation(registers, self.decoder))
    self.waves = start(registers, group_id, memory, self.lds, self.random, wave_base)
    self.alive = list(self.waves)
    self.executed = 0

  def step(self, budget: int) -> StepResult:
    """Execute up to `budget` instructions, of waves in a random order.

    Raises EmulatorError naming instruction and kernel, or PageFault.
    """
    while budget > 0:
      ready = [wave for wave in self.alive if not wave.waiting]
      if not ready:
        if not self.alive: return StepResult.DONE
        self.release()
        return StepResult.BARRIER
      count = budget if len(ready) == 1 else min(budget, self.random.randint(1, self.random.choice(TURNS)))
      budget -= self.turn(self.random.choice(ready), count)
    return StepResult.RUNNING if self.alive else StepResult.DONE

  def run(self) -> int:
    """Execute to the end. Return the number of instructions."""
    while self.step(1 << 20) is not StepResult.DONE: pass
    return self.executed

  def release(self) -> None:
    """Release the barrier: all waves that still run have come to it."""
    self.lds.barrier([(wave.number, access) for wave in self.alive
                      for access in (*self.unfinished_local(wave), *wave.between)])
    for wave in self.alive:
      wave.waiting = False
      wave.between.clear()

  def unfinished_local(self, wave: Wave) -> list[Access]:
    """Return the accesses of the LDS that no wait of a wave covers."""
    if self.translation is not None: self.translation.leave(wave)
    return wave.strict.unfinished_local()

  def turn(self, wave: Wave, count: int) -> int:
    """Execute `count` instructions of a wave: fewer if it waits or ends, or up to a block more."""
    done = 0
    try:
      while done < count and not wave.waiting and not wave.ended:
        # after they were given back, strict.py checks each instruction
        found = self.translation if wave.strict.vectors.rows else None
        block = None if found is None else found.block(wave.pc, wave.mode, self.decoder)
        if found is not None and block is not None:
          done += found.run(wave, block, count - done, self.decoder)
          if wave.numbered: continue
        done += self.steps(wave, count - done)
    except (EmulatorError, PageFault) as e: raise self.located(e, wave, wave.at) from e
    self.executed += done
    if wave.ended: self.alive.remove(wave)
    return max(done, 1)

  def steps(self, wave: Wave, count: int) -> int:
    """Execute step by step: `count` instructions or, where blocks are translated, to the end of a block."""
    done = 0
    watch, decoder, mode = self.watch, self.decoder, wave.mode
    steps, issue = decoder.steps(mode), wave.strict.issue
    if self.translation is not None:
      self.translation.leave(wave)
      count = 1 << 30
    while done < count:
      pc = wave.at = wave.pc
      step = steps.get(pc) or decoder.decode(pc, mode)
      if watch is not None: watch(wave, step)
      wave.pc = pc + step.size
      issue(wave, step)
      done += 1
      if step.ends:
        if step.breaks or self.translation is not None: break
    return done

  def located(self, error: EmulatorError | PageFault, wave: Wave, pc: int) -> EmulatorError | PageFault:
    """Return the error with the place where it happened."""
    where = f"{pc:#x} (kernel + {pc - self.registers.code:#x})"
    try: where += f": {(self.decoder.steps(wave.mode).get(pc) or self.decoder.decode(pc, wave.mode)).text}"
    except StrictError: pass  # the error is about an instruction that could not be decoded
    lane = "" if not isinstance(error, Misplaced) or error.lane is None else f"lane {error.lane} of "
    return error.located(f"\n  at {where}\n  {lane}wave {wave.number} of workgroup {self.group_id}, "
                         f"{self.registers.describe()}")
