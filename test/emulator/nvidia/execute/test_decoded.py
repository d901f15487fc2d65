"""Instructions are decoded once, and all their modifiers are checked."""
from __future__ import annotations

import pytest

from nvidia.warps import ORIGIN, assembled
from tinyhw.emulator.errors import MissingHazard, OutOfBounds
from tinyhw.emulator.nvidia.execute.decoded import DecodedCode, made_ready
from tinyhw.isa.sass.asm.encode import encode
from tinyhw.isa.sass.asm.syntax import parse
from tinyhw.isa.sass.table.control import Control

def test_what_is_kept_for_the_next_instruction_stays_true() -> None:
  inst, _ = parse("FADD R0, R1, R2", "sm_90")
  made_ready(encode(inst, Control(reuse=1)), "sm_90", 0)
  own, _ = parse("FADD R1, R1, R2", "sm_90")
  made_ready(encode(own, Control(reuse=2)), "sm_90", 0)
  with pytest.raises(MissingHazard, match="R1.reuse keeps what its own instruction overwrites"):
    made_ready(encode(own, Control(reuse=1)), "sm_90", 0)

def test_a_decoder_reads_each_instruction_once() -> None:
  code, reads = assembled(["@!P3 FADD R0, R1, R2", "BAR.SYNC 0x0"]), []
  def read(address: int, size: int) -> bytes:
    reads.append(address)
    return code[address - ORIGIN:address - ORIGIN + size]
  decoder = DecodedCode("sm_90", read)
  steps = [decoder.at(ORIGIN + 16 * i) for i in (0, 1, 2, 0)]
  assert reads == [ORIGIN, ORIGIN + 16, ORIGIN + 32] and steps[3] is steps[0]
  assert [(step.guard, step.inverted, step.ends) for step in steps[:3]] == [(3, True, False), (7, False, True),
                                                                            (7, False, True)]
  assert "@!P3 FADD R0, R1, R2" in steps[0].text
  with pytest.raises(OutOfBounds, match="multiples of 16"): decoder.at(ORIGIN + 8)
