"""What a GPU does when a channel meets an error."""
from nvidia_box import Note

from tinyhw.emulator.errors import PageFault

def test_an_error_reaches_the_notifiers_of_the_group(opened) -> None:
  computer, device = opened("sm_90")
  Note(computer)
  gpu = computer.gpus[0]
  channel = computer.engines.channels[device.compute.token].channel
  assert device.compute.error() == device.copies.error() == 0
  gpu.stop(channel, 31, PageFault(0x1000, True))
  assert device.compute.error() == device.copies.error() == 31
  assert gpu.fault is not None and computer.engines.channels[device.copies.token].stopped
  assert gpu.clock() <= gpu.clock()
