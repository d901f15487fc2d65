"""A virtual Mac: its GPUs, its objects, and the libraries that a driver loads."""
from __future__ import annotations
from collections.abc import Sequence

from tinyhw.emulator.files import VirtualComputer
from tinyhw.emulator.metal.device import CHIPS, AppleGpu, DeviceThing, OptionsThing
from tinyhw.emulator.metal.objects import TextThing, Thing, ObjectWorld
from tinyhw.emulator.metal.runtime import VirtualLibrary

class MetalComputer(VirtualComputer):
  """A Mac with these GPUs. It has no device files. metal: what drivers/metal loads."""
  def __init__(self, name: str, cards: Sequence[str], seed: int = 0, strict: int = 1):
    super().__init__(name, seed, strict)
    self.gpus = [AppleGpu(number, CHIPS[card]) for number, card in enumerate(cards)]
    self.world = ObjectWorld(self.scheduler, max(gpu.chip.macos for gpu in self.gpus))
    self.world.add_class("NSString", TextThing)
    self.world.add_class("MTLCompileOptions", OptionsThing)
    self.metal = VirtualLibrary(self.world, self.devices)

  def devices(self) -> list[Thing]:
    """Return the device of each GPU, with one more reference."""
    found: list[Thing] = []
    for gpu in self.gpus:
      if gpu.device is None: gpu.device = DeviceThing(self.world, gpu)
      else: gpu.device.count += 1
      found.append(gpu.device)
    return found

  def devices_census(self) -> dict[str, int]: return self.world.census()
