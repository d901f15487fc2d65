"""Addresses that the processor and GPUs share. They are low, since command buffers and launches hold 40 bits.

The first opened GPU reserves one region of the process, without memory. GPUs map the parts that are taken from it. The
processor maps visible ones at the same addresses.
"""
from __future__ import annotations
import bisect

from tinyhw.drivers.linux.files import PROT_NONE, RESERVED, HostMapping, map_memory, refusal
from tinyhw.errors import DriverError

LIMIT = 1 << 40
SIZES = (1 << 39, 1 << 38, 1 << 37)     # of the region, if the system grants so many addresses
STEP = 1 << 37
FIRST = 1 << 37                         # programs that are loaded at fixed addresses are below
MAP_FIXED_NOREPLACE = 0x100000          # Linux 4.17; older kernels take it for a hint

class AddressAllocator:
  """The region, and its free parts: (start, size), sorted, never adjacent."""
  def __init__(self) -> None:
    self.region = _reserve()
    self.free_ranges: list[tuple[int, int]] = [(self.region.address, self.region.size)]

  def take(self, size: int, alignment: int) -> int:
    """Take the lowest range that fits, with a gap after it. Both are whole pages. Raises DriverError if there is
    none."""
    for i, (start, there) in enumerate(self.free_ranges):
      place = -(-start // alignment) * alignment
      if place + size > start + there: continue
      rest = [(start, place - start), (place + size, start + there - place - size)]
      self.free_ranges[i:i + 1] = [piece for piece in rest if piece[1]]
      return place
    raise DriverError(f"no {size:#x} addresses are left that command buffers can name; free tensors, or use several "
                      f"processes")

  def give(self, start: int, size: int) -> None:
    """Return addresses to the region."""
    i = bisect.bisect(self.free_ranges, (start, size))
    if i < len(self.free_ranges) and start + size == self.free_ranges[i][0]: size += self.free_ranges.pop(i)[1]
    if i and sum(self.free_ranges[i - 1]) == start:
      start, before = self.free_ranges.pop(i - 1)
      size, i = size + before, i - 1
    self.free_ranges.insert(i, (start, size))

  def close(self) -> None:
    """Release the region. Nothing may be taken any more."""
    self.region.close()

def _reserve() -> HostMapping:
  """Reserve addresses below LIMIT."""
  failure: OSError | None = None
  for size in SIZES:
    for start in range(FIRST, LIMIT - size + 1, STEP):
      try: found = map_memory(size, start, PROT_NONE, RESERVED | MAP_FIXED_NOREPLACE)
      except OSError as error:
        failure = error
        continue
      if found.address == start: return found
      found.close()
  raise refusal("reserving addresses below 2^40 (ulimit -v must not be set)", failure or OSError(12, "no place"))
