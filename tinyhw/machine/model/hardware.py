"""A typical GPU of an architecture as the model of listings sees it: sizes and rates, from what vendors publish.

What a kernel asks of memory is in traffic.py, what its waves take of a unit in waves.py. Nothing here was measured.
"""
from __future__ import annotations
from collections.abc import Mapping

from tinyhw.machine.model.occupancy import Unit
from tinyhw.named_tuple import NamedTuple

class Hardware(NamedTuple):
  """A card. units: of the kind that `unit` tells of. flops: type of element -> operations a cycle and SIMD, of products
  of matrices ("f16"), and, with a "v" before it, of the vector unit.

  local_rate, first_rate: bytes a cycle that local memory, and the caches next to a unit, give its waves. second_rate:
  those that the second-level caches of the card give to all units; there are `dies` of them. memory_gbs, last_gbs: GB/s
  of memory, and of another cache before it (0: there is none). sector: bytes that second-level caches are asked for.
  banks: of 4 bytes, of the local memory that is read in a cycle.
  """
  title: str
  unit: Unit
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

  @property
  def memory_rate(self) -> float:
    """Bytes of memory a cycle, for the card."""
    return self.memory_gbs / self.clock_ghz

  @property
  def last_rate(self) -> float:
    """Bytes of the last-level cache a cycle, for the card."""
    return self.last_gbs / self.clock_ghz
