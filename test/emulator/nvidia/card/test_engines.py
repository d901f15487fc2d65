"""Channels: refusals of engines, semaphores that order them, and every method and flag that the driver could leave out.
"""
import pytest
from nvidia.box import Note, argument, code

from tinyhw.autogen.nvidia import methods
from tinyhw.autogen.nvidia.methods import COMPUTE_SUBCHANNEL
from tinyhw.device import Launch
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.emulator.errors import DoorbellError, PageFault, StrictError
from tinyhw.errors import TinyError

def run(device, words: list[int]) -> None:
  device.enqueue([words], [("by hand", None)])
  device.synchronize()

@pytest.mark.parametrize("words, said", [
  ([0x20010000 | 5 << 13 | 0x300 >> 2, 1], "on subchannel 5, to which no object is bound"),
  ([0x20010000 | 1 << 13 | 0x1F0 >> 2, 1], "method 0x1f0 of subchannel 1 is none that the emulator knows"),
  ([0x20010000 | 1 << 13, 0xC6C0], "SET_OBJECT 0xc6c0, and the channel has no object of this class"),
  ([0x20FF0000], "is a header of 255 words"), ([0x40000001], "no header of methods"),
  ([0x20010000 | 0x6C >> 2, 4], "semaphore operation 4"), ([0x20010000 | 0x6C >> 2, 8], "no field has its bits")])
def test_what_would_be_misread_is_told(opened, words: list[int], said: str) -> None:
  computer, device = opened("sm_90")
  Note(computer)
  with pytest.raises(TinyError, match=said): run(device, words)

def test_an_error_reaches_the_notifiers_of_the_group(opened) -> None:
  computer, device = opened("sm_90")
  Note(computer)
  channel = computer.engines.channels[device.compute.token].channel
  assert device.compute.error() == device.copies.error() == 0
  computer.engines.fail(channel, 31, PageFault(0x1000, True))
  assert device.compute.error() == device.copies.error() == 31
  assert channel.group.fault is not None and computer.engines.channels[device.copies.token].stopped

def test_the_doorbell_wants_a_token(opened) -> None:
  _, device = opened("sm_90")
  with pytest.raises(DoorbellError, match="told 0x5, which is no channel's token"):
    device.doorbell.store32(methods.USERMODE_DOORBELL, 5)
  with pytest.raises(DoorbellError, match="a store of 8 bytes at offset 0x90"):
    device.doorbell.store64(methods.USERMODE_DOORBELL, 5)
  before = device.doorbell.load32(methods.USERMODE_TIME)
  assert device.doorbell.load32(methods.USERMODE_TIME) != before

LEFT_OUT = {
  "cache flags": ("see_earlier_kernels", lambda self: self.call(COMPUTE_SUBCHANNEL, self.engines.compute.WAIT_FOR_IDLE,
                                                                0)),
  "wait for idle": ("see_earlier_kernels", lambda self: self.call(
    COMPUTE_SUBCHANNEL, self.engines.compute.INVALIDATE_SHADER_CACHES_NO_WFI,
    self.engines.compute.INVALIDATE_SHADER_CACHES_NO_WFI(instruction=1, global_data=1, constant=1))),
  "acquire": ("acquire", lambda self, address, value: None),
}

class Reader:
  """Kernels of 64 blocks. Even ones store a value everywhere, odd ones read it and must find it."""
  def __init__(self, note: Note): self.note = note

  def make(self, grid, number: int, port, seed: int):
    value, start = argument(grid, 1), argument(grid, 0)
    class Block:
      left = 3
      def step(self, budget: int) -> bool:
        self.left -= 1
        if self.left: return False
        place = start + 4 * number
        if value % 2 == 0: port.store(place, value.to_bytes(4, "little"))
        elif int.from_bytes(port.load(start + 4 * (63 - number), 4), "little") != value - 1:
          raise StrictError("an old value")
        return True
    return Block()

def work(opened, seed: int) -> None:
  computer, device = opened("sm_90", seed=seed)
  note = Note(computer)
  computer.engines.make_block = Reader(note).make
  program, a = device.load(code()), device.allocator.alloc(256)
  for i in range(6):
    device.submit([Launch(program, [a], [2 * i], 64), Launch(program, [a], [2 * i + 1], 64)])
    device.allocator.copyin(a, memoryview((2 * i).to_bytes(4, "little") * 64))
  device.synchronize()

@pytest.mark.slow
def test_work_is_in_order(opened) -> None:
  for seed in range(3): work(opened, seed)

@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_is_found(opened, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
  name, without = LEFT_OUT[what]
  monkeypatch.setattr(Commands, name, without)
  with pytest.raises(TinyError):
    for seed in range(8): work(opened, seed)
