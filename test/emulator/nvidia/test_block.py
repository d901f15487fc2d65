"""Blocks: instructions are decoded once, unknown ones are refused, faults reach the caller."""
from __future__ import annotations

import pytest

from nvidia.warps import ORIGIN, assembled, block_of
from tinyhw import Context
from tinyhw.emulator.errors import PageFault, UnknownInstruction
from tinyhw.emulator.nvidia.block import ThreadBlock

def test_blocks_of_a_grid_share_what_is_decoded() -> None:
  first = block_of(assembled(["NOP", "NOP"]))
  first.run()
  second = ThreadBlock(first.launch, 1, first.memory, decoder=first.decoder)
  assert second.run() == 3 and list(first.decoder.steps) == [ORIGIN, ORIGIN + 16,
                                                             ORIGIN + 32] and second.translation is first.translation

def test_bytes_that_are_no_instruction() -> None:
  with pytest.raises(UnknownInstruction, match=r"sm_90 has no instruction with opcode[\s\S]*at 0x7f0000000000 "
                     r"\(kernel \+ 0x0\)"):
    block_of(bytes(16)).run()

def test_code_that_runs_past_its_end() -> None:
  with pytest.raises(PageFault): block_of(assembled(["NOP"])[:16]).run()

def test_a_budget_is_kept() -> None:
  with Context(EMULATE_TRANSLATE=0): block = block_of(assembled(["NOP"] * 9), threads=64)
  turns = 0
  while not block.step(3): turns += 1
  assert turns == 6 and block.executed == 20
