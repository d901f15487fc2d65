"""Warps at their start: the lanes that run. Everything else is garbage and marked as unwritten."""
from nvidia.warps import ORIGIN, block_of
from tinyhw.emulator.nvidia.warp.state import ALL, lanes_of

def test_lanes_of_the_last_warp() -> None:
  warps = block_of(b"", threads=70).warps
  assert [warp.active for warp in warps] == [ALL, ALL, 0x3f] and [warp.number for warp in warps] == [0, 1, 2]
  assert lanes_of(0b1010_0001) == [0, 5, 7]

def test_garbage() -> None:
  first, other = block_of(b"", local=64).warps[0], block_of(b"", local=64, seed=1).warps[0]
  assert first.registers[0] != other.registers[0] and first.local[0] != other.local[0]
  assert ("R", 0) not in first.known and not any(first.local_known[0]) and first.pc == ORIGIN
  assert first.registers[255] == [0] * 32 and first.predicates[7] == ALL
