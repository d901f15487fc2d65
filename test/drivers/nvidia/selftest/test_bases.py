"""The step for the sum of a base and 32 bits. It passes on a virtual card. It fails if the offset is signed, or the
base is wrong."""
import pytest
from gpu.selftest import Mistakes, Patch, Tried, explained

from tinyhw.drivers.nvidia.selftest import bases as selftest_bases
from tinyhw.emulator.nvidia.memory import transfer
from tinyhw.emulator.nvidia.warp.numbers import LONG, signed
from tinyhw.emulator.nvidia.warp.operands import Operands
from tinyhw.selftest.frame import OK

def with_a_sign(patch: Patch) -> None:
  def based(o, base, offset="o"):
    read, start, more = o.raw("a", "u"), o.raw(base, "q"), o.number(offset)
    return lambda warp: [signed(x) + start(warp)[0] + more & LONG for x in read(warp)]
  patch.setattr(transfer, "based", based)

def constants(change):
  """Change the constants of instructions on the card. change: of the constant."""
  def wrong(patch: Patch) -> None:
    kept = Operands.number
    patch.setattr(Operands, "number", lambda o, name: change(name, kept(o, name)))
  return wrong

def another(said: str, instead: str):
  """Return another constant than the step expects."""
  assert selftest_bases.TEXT.count(said) == 1
  return lambda patch: patch.setattr(selftest_bases, "TEXT", selftest_bases.TEXT.replace(said, instead))

ASTRAY, DIFFER = "touches memory that it has not", "relative to a base: 64 of 64 elements differ"

@pytest.mark.parametrize("tester", ["NV"], indirect=True)
def test_it_passes(tester: Tried) -> None:
  found = tester.run_open(["bases"])[-1]
  assert found.outcome == OK, found.words

@pytest.mark.parametrize("tester", ["NV"], indirect=True)
@pytest.mark.parametrize("mistake, said", [
  (with_a_sign, ASTRAY),
  (constants(lambda name, value: value & 0xFFFFFF if name == "o" else value), ASTRAY),
  (constants(lambda name, value: (value & 0xFFF ^ 0x800) - 0x800 if name == "o" else value), ASTRAY),
  (constants(lambda name, value: value & 0xFFF if name == "g" else value), ASTRAY + "|" + DIFFER),
  (another("UR4+-0x4]", "UR4+0x4]"), DIFFER), (another("UR4+0x7fc]", "UR4+0x7f8]"), DIFFER)],
  ids=("a sign", "constants without", "constants of 12 bits", "copies without", "another of a load",
       "another of a copy"))
def test_a_mistake_is_told(mistake, said: str, tester: Tried, monkeypatch: Patch) -> None:
  mistakes: Mistakes = {"bases": (mistake, said)}
  explained(tester, monkeypatch, "bases", mistakes)
