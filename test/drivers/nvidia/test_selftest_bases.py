"""The step that asks for the sum of a base and 32 bits: it passes on a virtual card, and fails where the sign counts, or the base does not."""
import pytest
from gpu_selftest import Mistakes, Patch, Tried, explained

from tinyhw.drivers.nvidia import selftest_bases
from tinyhw.emulator.nvidia import transfer
from tinyhw.emulator.nvidia.numbers import LONG, signed
from tinyhw.selftest.frame import OK

def with_a_sign(patch: Patch) -> None:
  def based(o, base, offset="o"):
    read, start, more = o.raw("a", "u"), o.raw(base, "q"), o.number(offset)
    return lambda warp: [signed(x) + start(warp)[0] + more & LONG for x in read(warp)]
  patch.setattr(transfer, "based", based)

def other_constant(patch: Patch) -> None: patch.setattr(selftest_bases, "TEXT", selftest_bases.TEXT.replace("+UR4+0x8]", "+UR4+0x4]"))

@pytest.mark.parametrize("tester", ["NV"], indirect=True)
def test_it_passes(tester: Tried) -> None:
  assert tester.run_open(["bases"])[-1].outcome == OK

@pytest.mark.parametrize("tester", ["NV"], indirect=True)
@pytest.mark.parametrize("mistake, said", [
  (with_a_sign, "touches memory that it has not"), (other_constant, "behind a base: 64 of 64 elements differ")])
def test_a_mistake_is_told(mistake, said: str, tester: Tried, monkeypatch: Patch) -> None:
  mistakes: Mistakes = {"bases": (mistake, said)}
  explained(tester, monkeypatch, "bases", mistakes)
