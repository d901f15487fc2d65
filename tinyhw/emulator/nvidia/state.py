"""A warp: its lanes' registers, predicates, uniform registers, local memory, and where it is.

A register is a list of 32 integers, one for each lane; a predicate is an int with a bit for each lane. What nothing has written is garbage, and known
as such: `known` has the lanes in which a register holds something.
"""
from __future__ import annotations
import random
from typing import TYPE_CHECKING

from tinyhw.emulator.nvidia.launch import Launch
from tinyhw.isa.sass.uses import Unit
if TYPE_CHECKING:
  from tinyhw.emulator.lds import LocalMemory
  from tinyhw.emulator.memory import Memory
  from tinyhw.emulator.nvidia.strict import Schedule

LANES = 32
ALL = (1 << LANES) - 1
ZEROS = [0] * LANES
REGISTERS, UNIFORM, PREDICATES = 255, 63, 7

class Warp:
  """number: within its block. active: lanes that have not ended. waiting: at a barrier of the block."""
  __slots__ = ("launch", "number", "block", "registers", "predicates", "uniform", "uniform_predicates", "known", "active", "pc", "waiting", "memory",
               "shared", "local", "local_known", "schedule")

  def __init__(self, launch: Launch, number: int, block: int, memory: Memory, shared: LocalMemory, schedule: Schedule, source: random.Random):
    self.launch, self.number, self.block, self.memory, self.shared, self.schedule = launch, number, block, memory, shared, schedule
    garbage = source.getrandbits(32)
    self.registers = [[garbage] * LANES for _ in range(REGISTERS)] + [ZEROS]
    self.predicates = [source.getrandbits(LANES) for _ in range(PREDICATES)] + [ALL]
    self.uniform = [source.getrandbits(32) for _ in range(UNIFORM)]
    self.uniform_predicates = [ALL * source.getrandbits(1) for _ in range(PREDICATES)] + [ALL]
    self.known: dict[Unit, int] = {}
    self.active = (1 << max(0, min(launch.threads - LANES * number, LANES))) - 1
    self.pc, self.waiting = launch.code, False
    self.local = [bytearray(source.randbytes(launch.local_bytes)) for _ in range(LANES)]
    self.local_known = [bytearray(launch.local_bytes) for _ in range(LANES)]

def lanes_of(mask: int) -> list[int]:
  """The lanes of a mask, lowest first."""
  return [lane for lane in range(LANES) if mask >> lane & 1]
