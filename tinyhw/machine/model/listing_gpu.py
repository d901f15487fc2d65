"""The listing of a GPU's kernel with its model, from an ISA's data about its instructions and a typical card
(`GpuGeneration`).

It combines listing.py (the lines), listing_notes.py (notes on instructions), traffic.py (memory) and listing_waves.py
(bounds).
"""
from __future__ import annotations
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tinyhw.data_class import dataclass
from tinyhw.machine.ir.inst import Function, MInst
from tinyhw.machine.ir.target import Target
from tinyhw.machine.model.hardware import Hardware
from tinyhw.machine.model.listing import EncodedInst, InstructionInfo, listing, accessed
from tinyhw.machine.model.listing_notes import Noted, Notes
from tinyhw.machine.model.listing_waves import Bounds, CardModel, bounds_of, wave_lines
from tinyhw.machine.model.occupancy import KernelResources
from tinyhw.machine.model.traffic import Traffic, goal_of, patterns, shares_of_memory
from tinyhw.machine.model.waves import Model
if TYPE_CHECKING:
  from tinyhw.uop.program import Program

@dataclass(frozen=True)
class GpuGeneration:
  """An ISA's data about a generation.

  - wave: lanes of a wave.
  - cache_bytes: of the card's last cache.
  - source: of the numbers.
  - show: the text of an instruction.
  - operations: those of a wave's instruction.
  - element: the type of its elements: "f16" of a matrix product, with a "v" before it on the vector unit, "" for other
    instructions.
  - model: the costs of instructions, given the Traffic of accesses.
  - extra: an additional column of the listing.
  """
  hardware: Hardware
  wave: int
  cache_bytes: int
  source: str
  show: Callable[[MInst], str]
  operations: Callable[[MInst], int]
  element: Callable[[MInst], str]
  noted: Noted
  model: Callable[[Traffic], Model]
  extra: tuple[str, Callable[[MInst], str]] | None = None

  def peak(self, insts: Sequence[MInst]) -> tuple[float, str]:
    """The highest operations a cycle and SIMD with the best of these instructions, and its name."""
    best, kind = max([(self.hardware.flops.get(kind, 0.0), kind) for kind in sorted(set(map(self.element, insts)))],
                     default=(0.0, ""))
    return best, f"{kind[1:]}, vector unit" if kind[:1] == "v" else f"{kind}, matrix unit" if kind else ""

class LaunchModel:
  """A kernel on a card: the costs of its accesses, the needs of the launch, and the bounds. function: laid out."""

  def __init__(self, vendor: GpuGeneration, kernel: KernelResources, function: Function, program: Program):
    self.vendor, self.kernel, self.function, self.program = vendor, kernel, function, program
    hardware, touched = vendor.hardware, vendor.noted.touched
    pattern, goal = (patterns(hardware, vendor.wave, kernel, program.uops, place) for place in (accessed, goal_of))
    busy = hardware.units if kernel.grid is None else max(1, min(hardware.units, kernel.grid))
    once = shares_of_memory(kernel, function, vendor.wave, touched, pattern, vendor.cache_bytes)
    self.traffic = Traffic(hardware, vendor.wave, pattern, busy, once, goal)
    title = (f"{hardware.title} ({hardware.units} {hardware.unit.name}s, {hardware.clock_ghz} GHz, "
             f"{hardware.memory_gbs:g} GB/s)")
    self.card = CardModel(title, vendor.source, vendor.model(self.traffic), hardware.units, hardware.clock_ghz,
                          hardware.memory_rate,
                          vendor.operations, touched, vendor.peak)

  def bounds(self) -> Bounds:
    """The bounds of the kernel."""
    return bounds_of(self.function, self.kernel, self.card)

  def listing(self, lines: Sequence[EncodedInst], target: Target) -> str:
    """The annotated code. lines: the encoded instructions, in order."""
    def notes(function: Function, offsets: Mapping[int, int]) -> Mapping[int, str]:
      return Notes(vendor.noted, self.card.model, self.traffic, function, offsets).found
    vendor, waves = self.vendor, -(-self.program.lanes // self.vendor.wave)
    last_lines = functools.partial(wave_lines, self.kernel, self.card)
    reader = InstructionInfo(vendor.show, vendor.noted.touched, vendor.operations, last_lines, vendor.noted.local,
                             notes, waves, vendor.extra, vendor.hardware.unit.words.local)
    return listing(self.function, lines, target.banks, reader, self.kernel.grid, target.allocatable, self.program.uops)
