"""A virtual Mac: its devices, and no device files."""
import pytest

from tinyhw.emulator.metal.computer import MetalComputer

def test_devices_are_the_same_objects() -> None:
  computer = MetalComputer("apple7x2", ["apple7", "apple9"])
  one, two = computer.devices(), computer.devices()
  assert one == two and [thing.count for thing in one] == [2, 2] and computer.census() == {"MTLDevice": 2}
  for thing in one + two: thing.drop()
  assert computer.census() == {} and computer.world.macos == 15 and computer.devices()[0] is not one[0]

def test_there_are_no_device_files() -> None:
  computer = MetalComputer("apple7", ["apple7"])
  with pytest.raises(FileNotFoundError): computer.open("/dev/kfd", 2)
  assert not computer.exists("/dev/nvidiactl") and computer.virtual
