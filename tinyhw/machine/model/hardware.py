"""Sizes and rates of a typical GPU of an architecture, for the model of listings. They are published by vendors.

traffic.py has the memory accesses of a kernel, waves.py the resources of a unit that its waves take. Nothing here was
measured.
"""
from __future__ import annotations
from collections.abc import Mapping

from tinyhw.machine.model.occupancy import ComputeUnit
from tinyhw.named_tuple import NamedTuple

class Hardware(NamedTuple):
  """A card. Rates are in bytes a cycle, unless they are in GB/s.

  - unit, units: a compute unit, and their number.
  - local_rate: of shared memory, for the waves of a unit.
  - first_rate: of the caches next to a unit, for its waves.
  - second_rate: of the card's second-level caches, for all units.
  - memory_gbs: GB/s of memory.
  - last_gbs: GB/s of another cache before memory; 0: there is none.
  - flops: type of element -> operations a cycle and SIMD. The key is that of matrix products ("f16"), or has a "v"
    before it for the vector unit.
  - dies: the number of second-level caches.
  - sector: bytes of a request to second-level caches.
  - banks: banks of 4 bytes that shared memory reads in a cycle.
  - latency, local_latency: cycles until a wave has what it loads from memory, and from shared memory.
  - guard_latency: cycles from a comparison to an access that it is the condition of.
  - vector_cycles: of a SIMD's vector unit, for an instruction of a wave.
  - shares_vector: a matrix product holds the vector unit of its SIMD, too.
  """
  title: str
  unit: ComputeUnit
  units: int
  clock_ghz: float
  local_rate: float
  first_rate: float
  second_rate: float
  memory_gbs: float
  last_gbs: float
  flops: Mapping[str, float]
  dies: int = 1
  sector: int = 64
  banks: int = 32
  latency: float = 500
  local_latency: float = 50
  guard_latency: float = 5
  vector_cycles: float = 1
  shares_vector: bool = False

  def __hash__(self) -> int: return hash((self.title, self.units))   # a mapping has no hash

  @property
  def memory_rate(self) -> float:
    """Bytes of memory a cycle, for the card."""
    return self.memory_gbs / self.clock_ghz

  @property
  def last_rate(self) -> float:
    """Bytes of the last-level cache a cycle, for the card."""
    return self.last_gbs / self.clock_ghz
