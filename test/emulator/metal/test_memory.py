"""Memory that program and GPU share: what one of them sees of the other, and when."""
import random

import pytest

from tinyhw.emulator.errors import DataRace
from tinyhw.emulator.metal.memory import BLOCK, SharedMemory

def made(size: int = 100) -> SharedMemory: return SharedMemory("buffer 1", size, random.Random(0))

def test_bytes_of_the_program_reach_the_gpu_by_comparison() -> None:
  memory = made()
  assert memory.address % BLOCK == 0 and not any(memory.written) and bytes(memory.host) == memory.gpu
  memory.host[40] = 1
  memory.take_writes()
  assert memory.gpu[40] == 1 and memory.written == bytes(32) + b"\1" * 16 + bytes(52)
  memory.host[:] = bytes(100)
  memory.take_writes()
  assert memory.gpu == bytes(100) and all(memory.written)

def test_the_program_sees_results_when_they_are_shown() -> None:
  memory = made()
  memory.gpu[:4] = b"abcd"
  assert bytes(memory.host[:4]) != b"abcd"
  memory.show()
  assert bytes(memory.host[:4]) == b"abcd" and memory.seen == memory.gpu

def test_writes_of_the_program_while_the_gpu_uses_it() -> None:
  memory = made()
  memory.users.append("command buffer 3")
  memory.take_writes()
  memory.host[0] = 0
  with pytest.raises(DataRace, match="wrote to buffer 1, which command buffer 3 uses; ask for its status"):
    memory.take_writes()
  with pytest.raises(DataRace, match="while the GPU used it; wait until its work is done"): memory.show()

def test_ended_memory_is_garbage() -> None:
  memory = made()
  memory.close()
  assert set(memory.host) == {0x5A}
