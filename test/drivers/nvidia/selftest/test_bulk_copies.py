"""The step for bulk tensor copies. It passes on a virtual card, and explains each mistake that is put in."""
import pytest
from gpu.selftest import Mistakes, Patch, Tried, explained

from tinyhw.drivers.nvidia import launch

from tinyhw.drivers.nvidia.selftest import bulk_copies as selftest_bulk_copies
from tinyhw.selftest.frame import OK

def no_map(patch: Patch) -> None:
  patch.setattr(selftest_bulk_copies, "tensor_map", lambda: bytes(128))

def other_address(patch: Patch) -> None:
  """Give the kernel a wrong address of the constant bank."""
  kept = launch.NVProgram.launch
  def launched(program, address, groups, data):
    words = kept(program, address, groups, data)
    if program.maps:
      data[program.argument_offset + 16:program.argument_offset + 24] = (address + launch.BANK).to_bytes(8, "little")
    return words
  patch.setattr(launch.NVProgram, "launch", launched)

def for_each_lane(patch: Patch) -> None:
  """Copy twice, as if the unit were asked for each lane."""
  patch.setattr(selftest_bulk_copies, "TEXT", selftest_bulk_copies.TEXT.replace("UTMALDG.2D [UR8], [UR4]",
      "UTMALDG.2D [UR8], [UR4]\nUTMALDG.2D [UR8], [UR4]"))

@pytest.mark.parametrize("tester", ["NV"], indirect=True)
def test_it_passes(tester: Tried) -> None:
  assert tester.run_open(["bulk copies"])[-1].outcome == OK

@pytest.mark.parametrize("tester", ["NV"], indirect=True)
@pytest.mark.parametrize("mistake, said", [(no_map, "tensor map: "), (other_address, "tensor map"),
                                           (for_each_lane, "mbarrier|copies")])
def test_a_mistake_is_told(mistake, said: str, tester: Tried, monkeypatch: Patch) -> None:
  mistakes: Mistakes = {"bulk copies": (mistake, said)}
  explained(tester, monkeypatch, "bulk copies", mistakes)
