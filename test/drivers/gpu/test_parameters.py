"""The check of launches: counts, memory, integers, grids, patches."""
from typing import Any

import pytest

from tinyhw.device import Launch
from tinyhw.drivers.gpu.parameters import CheckedRecording, KernelParameters, checked, program_of
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

class Device:
  name = "CARD"
  def submit(self, launches: Any) -> None: raise AssertionError("nothing is submitted")

class Memory:
  def __init__(self, device: Any): self.device = device
  def __repr__(self) -> str: return f"<memory of {self.device.name}>"

class Program:
  def __init__(self, device: Any):
    self.device = device
    self.parameters = KernelParameters(device, Code("add", "x", b"", ("buffer", "int64")), Memory, 100, "blocks")
  def __repr__(self) -> str: return "<program>"

class Recording(CheckedRecording):
  kind = Program

DEVICE: Any = Device()
OTHER: Any = Device()
MEMORY = Memory(DEVICE)

@pytest.mark.parametrize("launch, words", [
  (Launch(Program(DEVICE), [], [1], 1), "kernel add takes 1 buffers and 1 variables, not 0 and 1"),
  (Launch(Program(DEVICE), [MEMORY], [], 1), "takes 1 buffers and 1 variables, not 1 and 0"),
  (Launch(Program(DEVICE), [b""], [1], 1), "kernel add, buffer 0: b'' is not allocated memory of CARD"),
  (Launch(Program(DEVICE), [Memory(OTHER)], [1], 1), "buffer 0: <memory of CARD> is not allocated memory of CARD"),
  (Launch(Program(DEVICE), [MEMORY], [1 << 63], 1), "variable 0: 9223372036854775808 is no 64-bit integer"),
  (Launch(Program(DEVICE), [MEMORY], [1.0], 1), "variable 0: 1.0 is no 64-bit integer"),   # type: ignore[list-item]
  (Launch(Program(DEVICE), [MEMORY], [1], 101), "kernel add: a grid of 101 blocks; it is an integer from 0 to 100"),
  (Launch(Program(DEVICE), [MEMORY], [1], -1), "a grid of -1 blocks"),
  (Launch(len, [MEMORY], [1], 1), "cannot launch <built-in function len>; pass what load"),
  (Launch(Program(OTHER), [MEMORY], [1], 1), "<program> is of another device than CARD; load the code here"),
])
def test_mistakes_of_a_launch(launch: Launch, words: str) -> None:
  with pytest.raises(DeviceError, match=words): checked([launch], Program, DEVICE)
  with pytest.raises(DeviceError, match=words): Recording(DEVICE, [launch])

def test_what_is_right() -> None:
  program = Program(DEVICE)
  launches = [Launch(program, [MEMORY], [value], grid) for value in (-1 << 63, (1 << 63) - 1) for grid in (0, 100)]
  assert checked(launches, Program, DEVICE) is launches and program_of(launches[0], Program, DEVICE) is program

def test_patches() -> None:
  recording, other = Recording(DEVICE, [Launch(Program(DEVICE), [MEMORY], [1], 1)]), Memory(DEVICE)
  recording.patch(0, 0, other)
  recording.patch(0, 1, 7)
  recording.patch_grid(0, 0)
  launch = recording.launches[0]
  assert (launch.buffers, launch.variables, launch.grid) == ([other], [7], 0)
  for position, value, words in ((2, 1, "kernel add has 2 arguments; there is no number 2 to patch"),
                                 (-1, 1, "there is no number -1 to patch"), (0, 5, "buffer 0: 5 is not allocated"),
                                 (1, None, "variable 0: None is no 64-bit integer")):
    with pytest.raises(DeviceError, match=words): recording.patch(0, position, value)
  with pytest.raises(DeviceError, match="a grid of 101 blocks"): recording.patch_grid(0, 101)
  assert recording.launches[0] == launch
