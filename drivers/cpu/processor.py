"""What the CPU driver asks of a processor. Each kind has a module here with the name of its folder in tinyhw/isa
(x86.py, arm64.py), chosen by `tinyhw.device.PROCESSORS`.
"""
from __future__ import annotations
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tinyhw.drivers.cpu.loop import MachineLoop
from tinyhw.machine.ir.code import Code

Runtime = Callable[[str], Code]   # the driver's own machine code, by name

class Processor:
  """The identity, caches and features of a processor. Subclasses add its levels and caches.

  signature: a number that identifies the core, 0 if unknown.
  """
  vendor: str
  brand: str
  signature: int
  features: frozenset[str]

  @property
  def levels(self) -> Mapping[str, tuple[str, ...]]:
    """Arch strings and the features that each needs, best first."""
    raise NotImplementedError

  @property
  def cache_bytes(self) -> tuple[int, int, int]:
    """The bytes of data caches L1, L2 and L3; 0 for a missing cache."""
    raise NotImplementedError

  @property
  def arch(self) -> str | None:
    """The best arch string whose features are all present, or None."""
    return next((name for name, needed in self.levels.items() if self.features.issuperset(needed)), None)

  def missing(self, arch: str) -> list[str]:
    """Return the features that an arch string needs and this processor lacks."""
    return [feature for feature in self.levels[arch] if feature not in self.features]

  def vector_rate(self, arch: str) -> int:
    """Return the operations on full vectors of floats that start in a cycle."""
    return 2

  def second_level_rate(self, arch: str) -> float:
    """Return the bytes that the second-level cache gives to a tile in a cycle; 0 if that is not known."""
    return 0.0

  @property
  def local_bytes(self) -> int:
    """The bytes of a worker's own data: half of L2; 0 if its size is unknown."""
    return self.cache_bytes[1] // 2

class Visibility(Protocol):
  """The function that makes placed code visible to instruction fetch, with what it holds."""

  def __call__(self, address: int, size: int) -> None: ...

  def close(self) -> None: ...

class ProcessorModule(Protocol):
  """A module for a kind of processor."""

  def find(self, runtime: Runtime) -> Processor:
    """Detect this machine's processor."""

  def visibility(self, runtime: Runtime) -> Visibility | None:
    """Return what makes placed code visible, where the processor does not do so itself."""

  def worker_loop(self, runtime: Runtime, found: Processor, visible: Visibility | None) -> MachineLoop:
    """Return the worker loop as machine code of this processor."""

  def sample(self, runtime: Runtime) -> tuple[Code, Callable[[int], Sequence[int]]]:
    """Return code for a test of code pages, and a function that calls it at an address. Its numbers are not all 0."""
