"""Shared memory: bounds, uninitialised bytes, races between waves."""
from __future__ import annotations
import random

import pytest

from tinyhw.emulator.errors import DataRace, OutOfBounds, UninitialisedRead
from tinyhw.emulator.memory.lds import ATOMIC, READ, WRITE, LocalMemory

def memory(size: int = 64) -> LocalMemory: return LocalMemory(size, random.Random(1))

def test_what_is_written_is_read() -> None:
  m = memory()
  m.store(0, 4, b"abcd")
  assert m.load(0, 5, 2) == b"bc"

def test_bounds_and_garbage() -> None:
  m = memory()
  with pytest.raises(OutOfBounds, match="write of 8 bytes at 0x3c.*64 bytes"): m.store(0, 60, bytes(8))
  with pytest.raises(OutOfBounds): m.load(0, -4, 4)
  m.store(0, 0, b"ab")
  with pytest.raises(UninitialisedRead, match="no wave has written all"): m.load(0, 0, 4)
  with pytest.raises(UninitialisedRead): m.atomic(0, 8, 4)

@pytest.mark.parametrize("first,second,race", [
  (WRITE, WRITE, True), (WRITE, READ, True), (READ, WRITE, True), (READ, READ, False), (ATOMIC, ATOMIC, False),
  (ATOMIC, READ, True),
  (ATOMIC, WRITE, True), (WRITE, ATOMIC, True), (READ, ATOMIC, True)])
def test_races(first: int, second: int, race: bool) -> None:
  m = memory()
  m.touch(0, 8, 4, first)
  m.touch(0, 8, 4, second)     # a wave does not race with itself
  m = memory()
  m.touch(0, 8, 4, first)
  m.touch(1, 12, 4, second)    # nor adjacent to another wave's bytes
  if race:
    with pytest.raises(DataRace, match=r"0xa.*wave 1.*wave 0 does.*barrier"): m.touch(1, 10, 1, second)
  else: m.touch(1, 10, 1, second)
  m.barrier([])
  m.touch(1, 8, 4, second)

def test_several_readers_are_remembered() -> None:
  m = memory()
  for wave in range(3): m.touch(wave, 0, 4, READ)
  with pytest.raises(DataRace, match="several waves do read"): m.touch(0, 0, 4, WRITE)

def test_what_is_unfinished_at_a_barrier_counts_after_it() -> None:
  m = memory()
  m.store(0, 0, bytes(4))
  m.barrier([(0, (0, 4, WRITE))])
  with pytest.raises(DataRace): m.load(1, 0, 4)

def test_waves_that_write_the_same_do_not_race() -> None:
  m = memory()
  m.store(0, 8, b"tile")
  m.store(1, 8, b"tile")
  with pytest.raises(DataRace, match="several waves do write there"): m.load(2, 8, 4)
  with pytest.raises(DataRace, match="0x8.*write by wave 2"): m.store(2, 8, b"time")
  m.barrier([])
  m.load(0, 8, 4)
  with pytest.raises(DataRace, match="wave 0 does read there"): m.store(1, 8, b"tile")
