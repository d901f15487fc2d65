"""Addresses that processor and GPUs share: taken, returned, never given twice."""
import random

import pytest

from tinyhw.drivers.nvidia.addresses import LIMIT, AddressAllocator
from tinyhw.errors import DriverError

@pytest.fixture
def space():
  made = AddressAllocator()
  yield made
  made.close()

def test_they_are_low(space: AddressAllocator) -> None:
  assert 0 < space.region.address and space.region.address + space.region.size <= LIMIT

def test_what_is_taken_does_not_overlap_and_comes_back(space: AddressAllocator) -> None:
  whole, rng, held = list(space.free_ranges), random.Random(3), list[tuple[int, int]]()
  for _ in range(2000):
    if held and rng.random() < 0.5: space.give(*held.pop(rng.randrange(len(held))))
    else:
      size, alignment = rng.randrange(1, 100) * 4096, rng.choice((4096, 2 << 20))
      start = space.take(size, alignment)
      assert start % alignment == 0 and all(start + size <= other or other + more <= start for other, more in held)
      held.append((start, size))
  for piece in held: space.give(*piece)
  assert space.free_ranges == whole

def test_none_are_left(space: AddressAllocator) -> None:
  with pytest.raises(DriverError, match="addresses are left"): space.take(LIMIT, 4096)
