"""The uniform datapath."""
from __future__ import annotations
import pytest

from nvidia.warps import LANES, after, words
from tinyhw.emulator.errors import EmulatorError, UnknownInstruction
from tinyhw.emulator.nvidia.warp.state import Warp

def word(text: str, *before: str, **given: object) -> int:
  """Return UR0 after an instruction."""
  warp: Warp = after([*before, text], **given)  # type: ignore[arg-type]  # named as there
  return warp.uniform[0]

@pytest.mark.parametrize("text,expected", [
  ("UMOV UR0, 0x12345678", 0x12345678), ("UIADD3 UR0, UR1, 0x10, UR2", 0x10000012),
  ("UIADD3 UR0, -UR1, 0x100000, URZ", 0xf0100001),
  ("ULOP3.LUT UR0, UR2, 0xf0, UR1, 0xf8, !UPT", 0xf3), ("USHF.L.U32 UR0, UR1, 0x4, URZ", 0xfffffff0),
  ("USHF.R.U32.HI UR0, URZ, 0x4, UR1", 0x0fffffff), ("ULEA UR0, UR2, UR1, 0x3", 0x17)])
def test_arithmetic(text: str, expected: int) -> None:
  """UR1 is the larger one of both."""
  assert word(text, f"UMOV UR1, {0x0fffffff if 'UIADD3' in text else 0xffffffff:#x}", "UMOV UR2, 0x3") == expected

def test_carries() -> None:
  lines = ["UMOV UR1, 0xffffffff", "UMOV UR2, 0x5", "UIADD3 UR3, UP0, UR1, 0x1, URZ",
           "UIADD3.X UR0, URZ, UR2, URZ, UP0, !UPT"]
  assert after(lines).uniform[0] == 6

def test_from_lanes() -> None:
  assert word("R2UR UR0, R1", registers={1: [77]}) == 77
  with pytest.raises(EmulatorError, match="which of them R2UR takes is not known"):
    word("R2UR UR0, R1", registers={1: words(1)})
  with pytest.raises(UnknownInstruction, match="R2UR with a predicate"): word("R2UR P0, UR0, R1", registers={1: [1]})

def test_only_lanes_that_run_must_be_the_same() -> None:
  assert word("@P0 R2UR UR0, R1", registers={1: [*[3] * 8, *[4] * 24]}, predicates={0: 0xff}) == 3

def test_votes_and_the_elected() -> None:
  assert word("VOTEU.ANY UR0, UPT, P0", predicates={0: 0xf0}) == 0xf0
  warp = after(["VOTEU.ALL UP0, P0", "VOTEU.ANY UP1, P0", "ELECT P1, UR3, PT"], predicates={0: 0xf0})
  assert ((warp.uniform_predicates[0], warp.uniform_predicates[1]) == (0, (1 << LANES) - 1)
          and (warp.predicates[1], warp.uniform[3]) == (1, 0))

def test_special_registers() -> None:
  assert word("S2UR UR0, SR_CTAID.X") == 0
  with pytest.raises(UnknownInstruction, match="special register SR_LANEID"): word("S2UR UR0, SR_LANEID")

def test_guards_are_refused() -> None:
  with pytest.raises(UnknownInstruction, match="with the guard UP0 is not supported yet: branch around it"):
    after(["VOTEU.ANY UP0, P0", "@UP0 UMOV UR0, 0x1"], predicates={0: 0})
