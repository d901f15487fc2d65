"""The reachable instructions of a kernel, and kernels with asynchronous accesses to shared memory."""
from __future__ import annotations

import pytest

from nvidia.warps import ORIGIN, assembled, block_of
from tinyhw.emulator.nvidia.checks.reachable import is_asynchronous, reachable
from tinyhw.emulator.nvidia.memory.shared import SharedMemory

def found(lines: list[str]) -> tuple[list[int], bool]:
  block = block_of(assembled(lines))
  steps, whole = reachable(ORIGIN, block.decoder)
  return sorted((at - ORIGIN) // 16 for at in steps), whole

def test_both_ways_of_a_branch() -> None:
  assert found([f"@P0 BRA {ORIGIN + 48:#x}", "EXIT", "MOV R0, R1", "MOV R0, R2"]) == ([0, 1, 3, 4], True)
  assert found([f"BRA {ORIGIN + 32:#x}", "MOV R0, R1", "MOV R0, R2"]) == ([0, 2, 3], True)

def test_what_cannot_be_followed() -> None:
  assert found(["MOV R0, R1", "MATCH.ANY R0, R1"]) == ([0], False), "an instruction without a meaning"

def test_lanes_go_on_where_bssy_says() -> None:
  assert found([f"BSSY B0, {ORIGIN + 48:#x}", "BSYNC B0", "MOV R0, R1", "MOV R0, R2"]) == ([0, 1, 3, 4], False)

@pytest.mark.parametrize("lines, answer", [
  (["MOV R0, R1"], False), (["FENCE.VIEW.ASYNC.S"], False),
  ([f"@P0 BRA {ORIGIN + 32:#x}", "EXIT", "HGMMA.64x8x16.F32 R24, gdesc[UR8], RZ, !UPT"], True)])
def test_kernels_that_are_asynchronous(lines: list[str], answer: bool) -> None:
  for _ in range(2):    # also when it is known already
    block = block_of(assembled(lines))
    assert is_asynchronous(block.launch, block.decoder) is answer and isinstance(block.shared, SharedMemory) is answer

def test_another_kernel_at_the_same_place() -> None:
  for lines, answer in ((["MOV R0, R1"], False), (["HGMMA.64x8x16.F32 R24, gdesc[UR8], RZ, !UPT"], True),
                        (["MOV R0, R1"], False)):
    assert isinstance(block_of(assembled(lines)).shared, SharedMemory) is answer

def test_other_generations_have_none() -> None:
  assert not isinstance(block_of(assembled(["MOV R0, R1"], "sm_80"), "sm_80").shared, SharedMemory)
