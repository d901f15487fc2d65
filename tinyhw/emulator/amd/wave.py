"""A workgroup that executes: its waves, in a seeded random order, from exact bytes. The registers of a wave are in state.py.

`Workgroup.step` lets one wave after the other run for some instructions until a budget is spent. Everything strict is checked where it happens: see
strict.py for what. Nothing here knows an instruction: decoded.py makes functions of them.
"""
from __future__ import annotations
import random
from collections.abc import Callable
from enum import IntEnum

from tinyhw.emulator.amd.decoded import Decoder, Step
from tinyhw.emulator.amd.lds import LocalMemory
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.amd.state import Wave, start
from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.memory import Memory

class Status(IntEnum):
  """What a step ended with."""
  RUNNING = 0  # the budget is spent
  BARRIER = 1  # all waves came to a barrier and passed it
  DONE = 2     # all waves have ended

SLICE = 24  # most instructions of one wave in a row; the number is drawn for each turn

class Workgroup:
  """One workgroup of a dispatch.

  code_reader(address, size) gives code bytes, or raises PageFault. group_id: of x, y, z. seed: of the order in which waves run and of what is in
  registers and LDS at the start. number: how many dispatch-wide wave numbers precede, for scratch. watch: called before each instruction.
  """
  def __init__(self, arch: str, code_reader: Callable[[int, int], bytes], registers: DispatchRegisters, group_id: tuple[int, int, int],
               memory: Memory, lds_bytes: int, seed: int, watch: Callable[[Wave, Step], None] | None = None, wave_base: int = 0):
    self.registers, self.group_id, self.watch = registers, group_id, watch
    self.random = random.Random(seed)
    self.lds = LocalMemory(lds_bytes, self.random)
    self.decoder = Decoder(arch, registers, code_reader)
    self.waves = start(registers, group_id, memory, self.lds, self.random, wave_base)
    self.alive = list(self.waves)
    self.executed = 0

  def step(self, budget: int) -> Status:
    """Execute up to `budget` instructions, of waves in a random order. Raises StrictError naming instruction and kernel, or PageFault."""
    while budget > 0:
      ready = [wave for wave in self.alive if not wave.waiting]
      if not ready:
        if not self.alive: return Status.DONE
        self.release()
        return Status.BARRIER
      budget -= self.turn(self.random.choice(ready), min(budget, self.random.randint(1, SLICE)))
    return Status.RUNNING if self.alive else Status.DONE

  def run(self) -> int:
    """Execute to the end; the number of instructions."""
    while self.step(1 << 20) is not Status.DONE: pass
    return self.executed

  def release(self) -> None:
    """All waves that still run have come to the barrier."""
    self.lds.barrier([(wave.number, access) for wave in self.alive for access in (*wave.strict.unfinished_local(), *wave.between)])
    for wave in self.alive:
      wave.waiting = False
      wave.between.clear()

  def turn(self, wave: Wave, count: int) -> int:
    """Let a wave execute `count` instructions, or fewer if it waits or ends."""
    done = 0
    watch, decoder, pc, mode = self.watch, self.decoder, wave.pc, wave.mode
    steps, issue = decoder.steps(mode), wave.strict.issue
    try:
      while done < count:
        pc = wave.pc
        step = steps.get(pc) or decoder.decode(pc, mode)
        if watch is not None: watch(wave, step)
        wave.pc = pc + step.size
        issue(wave, step)
        done += 1
        if step.breaks:
          if wave.waiting or wave.ended: break
          mode = wave.mode
          steps = decoder.steps(mode)
    except StrictError as e: raise self.located(e, wave, pc) from e
    self.executed += done
    if wave.ended: self.alive.remove(wave)
    return max(done, 1)

  def located(self, error: StrictError, wave: Wave, pc: int) -> StrictError:
    """The error with where it happened."""
    step = self.decoder.steps(wave.mode).get(pc)
    where = f"{pc:#x} (kernel + {pc - self.registers.code:#x})" + (f": {step.text}" if step else "")
    return type(error)(f"{error.message}\n  at {where}\n  wave {wave.number} of workgroup {self.group_id}, {self.registers.describe()}")
