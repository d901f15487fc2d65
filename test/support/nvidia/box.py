"""NVIDIA devices on virtual computers, kernels that nothing executes, and a stand-in for what would."""
from __future__ import annotations
import dataclasses
from typing import Any

from tinyhw.drivers.nvidia.device import NVDevice
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.emulator.nvidia.card.grid import Grid
from tinyhw.emulator.nvidia.card.port import Port
from tinyhw.emulator.nvidia.chips import CHIPS, ChipParameters
from tinyhw.machine.ir.code import Code

KINDS = tuple(CHIPS)

def code(arch: str = "sm_90", arguments: tuple[str, ...] = ("buffer", "int64"), **fields: Any) -> Code:
  """A kernel of NOPs."""
  made = {"name": "example", "arch": arch, "text": bytes(256), "entry": 0, "arguments": arguments,
          "registers": (("r", 32),), "lanes": 64, **fields}
  return Code(**made)

class Note:
  """A record of executed code, in place of blocks.

  Each block reads the first instruction, and stores 4 bytes to its first argument when that is a buffer.
  """
  def __init__(self, computer: GpuHost, stores: bool = False):
    self.launches: list[Grid] = []
    self.stores = stores
    computer.engines.make_block = self.make

  def make(self, grid: Grid, number: int, port: Port, seed: int) -> Note.Block:
    if grid not in self.launches: self.launches.append(grid)
    return Note.Block(self, grid, number, port)

  class Block:
    def __init__(self, note: Note, grid: Grid, number: int, port: Port):
      self.note, self.grid, self.number, self.port = note, grid, number, port

    def step(self, budget: int) -> bool:
      if self.note.stores:
        self.port.store(argument(self.grid, 0) + 4 * self.number, (self.number + 1).to_bytes(4, "little"))
      return True

def argument(grid: Grid, index: int) -> int:
  """An argument of a launch, from its constant bank."""
  start = {8: 0x160, 9: 0x210, 10: 0x380}[grid.chip.generation] + 8 * index
  return int.from_bytes(grid.bank[start:start + 8], "little", signed=True)

def small(name: str, **fields: Any) -> ChipParameters:
  """A chip with something changed."""
  return dataclasses.replace(CHIPS[name], **fields)

Opened = tuple[GpuHost, NVDevice]
