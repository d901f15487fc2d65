"""Channels: rings that wrap and fill up, long lists of commands, reports."""
import pytest
from nvidia.box import Note, argument, code

from tinyhw.autogen.nvidia.rm import CONTEXT_SHARE, flags
from tinyhw.device import Launch
from tinyhw.drivers.gpu.queue import Timeline
from tinyhw.drivers.linux import files
from tinyhw.drivers.linux.files import Refused
from tinyhw.drivers.nvidia import channel
from tinyhw.drivers.nvidia.rm import RmClient, forget
from tinyhw.emulator.files import VirtualMapping
from tinyhw.emulator.nvidia.card.engines import ChannelProcessor
from tinyhw.emulator.nvidia.card.objects import GroupItem

COPY0 = flags("NV2080_ENGINE_TYPE_", "COPY0")

def test_a_ring_wraps(opened, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(channel, "ENTRIES", 64)
  computer, device = opened("sm_90")
  note, program, a = Note(computer), device.load(code()), device.allocator.alloc(100)
  for i in range(250): device.submit([Launch(program, [a], [i], 1)])
  device.synchronize()
  assert len(note.launches) == 250 and device.compute.ring.written > 2 * 64 * 3
  assert device.compute.state().startswith("compute channel 0x10000: ")

def test_a_ring_goes_on_where_the_gpu_does_not_tell_how_far_it_has_read(opened,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
  """Completed commands have been read. A restarted timeline is recognized."""
  monkeypatch.setattr(channel, "ENTRIES", 64)
  monkeypatch.setattr(Timeline, "LIMIT", 100)
  monkeypatch.setattr(ChannelProcessor, "_entry_done",
                      lambda p: p.__dict__.update(open=False, get=(p.get + 1) % p.channel.entries))
  computer, device = opened("sm_90")
  note, program, a = Note(computer), device.load(code()), device.allocator.alloc(100)
  for i in range(250): device.submit([Launch(program, [a], [i], 1)])
  device.synchronize()
  assert len(note.launches) == 250 and device.compute.told() == 0 and device.epoch == 2
  assert device.compute.ring.written > 2 * 64 * 3

@pytest.mark.parametrize("tells", (True, False))
def test_a_full_ring_that_nothing_has_been_read_of_is_not_overwritten(opened, monkeypatch: pytest.MonkeyPatch,
                                                                      tells: bool) -> None:
  """The GPU advances only when the ring is full, one submission at a time. It may or may not report its position."""
  monkeypatch.setattr(channel, "ENTRIES", 64)
  computer, device = opened("sm_90")
  note, program, a = Note(computer), device.load(code()), device.allocator.alloc(100)
  ring, step, full = device.compute.ring, ChannelProcessor.step, list[int]()
  allowed = [0]   # how far the GPU may advance
  def begin(done) -> None:
    full.append(ring.written - behind)
    allowed[0] = device.timeline.completed + 1
    ring.publish(ring.published)   # wakes it
    device.compute.wait(done)
  for i in range(20): device.submit([Launch(program, [a], [i], 1)])   # so the ring's beginning is not the memory's
  device.synchronize()
  if not tells:
    monkeypatch.setattr(ChannelProcessor, "_entry_done",
                        lambda p: p.__dict__.update(open=False, get=(p.get + 1) % p.channel.entries))
  behind = ring.written
  monkeypatch.setattr(ChannelProcessor, "step", lambda processor: device.timeline.completed < allowed[0]
                      and step(processor))
  monkeypatch.setattr(ring, "wait", begin)
  for i in range(20, 250): device.submit([Launch(program, [a], [i], 1)])
  allowed[0] = device.timeline.submitted
  ring.publish(ring.published)
  device.synchronize()
  assert full[0] == 2 * 63 and [argument(grid, 1) for grid in note.launches] == list(range(250))

def test_copies_may_have_a_group_of_their_own(opened, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(channel, "COPY_ENGINE", COPY0 + 2)
  computer, device = opened("sm_90")
  note, program, a = Note(computer, stores=True), device.load(code()), device.allocator.alloc(100)
  device.submit([Launch(program, [a], [1], 25)])
  found = bytearray(100)
  device.allocator.copyout(memoryview(found), a)
  assert found == b"".join((i + 1).to_bytes(4, "little") for i in range(25)) and len(note.launches) == 1
  groups = [item for item in computer.objects.items.values() if isinstance(item, GroupItem)]
  assert [(group.engine, group.running, [item.kind for item in group.children]) for group in groups] == [
    (1, True, [CONTEXT_SHARE, 0xC86F]), (11, True, [0xC86F])]
  device.close()
  assert not [item for item in computer.objects.items.values() if isinstance(item, GroupItem)]

def test_many_words_are_several_entries(opened) -> None:
  computer, device = opened("sm_90")
  Note(computer)
  before = device.compute.ring.written
  device.enqueue([[0] * (device.transient.size // 8)], [("nothing", None)])
  device.synchronize()
  assert device.compute.ring.written - before >= 4

def test_channels_are_registered_and_then_scheduled(opened, monkeypatch: pytest.MonkeyPatch) -> None:
  """The kernel driver refuses the other order, and so does the virtual one."""
  said, control, uvm = list[str](), RmClient.control, RmClient.call_uvm
  def noted(connection: RmClient, item: int, parameters: object) -> object:
    said.append(type(parameters).__name__)
    return control(connection, item, parameters)
  def told(connection: RmClient, argument: object) -> None:
    said.append(type(argument).__name__)
    uvm(connection, argument)
  monkeypatch.setattr(RmClient, "control", noted)
  monkeypatch.setattr(RmClient, "call_uvm", told)
  opened("sm_90")
  order = [name for name in said if name in ("GetWorkSubmitToken", "UvmRegisterChannel", "GroupSchedule")]
  assert order == ["GetWorkSubmitToken", "UvmRegisterChannel"] * 2 + ["GroupSchedule"]
  monkeypatch.setattr(channel.Channel, "register", lambda channel: None)
  with pytest.raises(Refused, match="GroupSchedule: .* invalid state"): opened("sm_90")
  forget(files.COMPUTER)

def test_commands_are_shown(opened) -> None:
  computer, device = opened("sm_90")
  Note(computer)
  program, a = device.load(code()), device.allocator.alloc(100)
  device.submit([Launch(program, [a], [1], 1)])
  device.synchronize()
  assert any("SEM_EXECUTE operation=0x1 release_wfi=0x1" in line for line in device.compute.recent())
  assert device.compute.error() == 0
  assert channel.show([channel.methods.Call(7, 0x900, 5)], 9) == ["method 0x900 of subchannel 7 = 0x5"]

def test_the_doorbell_comes_after_the_pointer_and_is_not_left_in_the_processor(opened,
                                                                               monkeypatch: pytest.MonkeyPatch) -> None:
  """Stores to a write-combined window leave the processor at a fence."""
  computer, device = opened("sm_90")
  Note(computer)
  seen, store = list[str](), VirtualMapping.store32
  names = {device.compute.memory.mapping: "pointer", device.doorbell: "doorbell"}
  def noted(mapping: VirtualMapping, offset: int, value: int) -> None:
    seen.append(names.get(mapping, "other"))
    store(mapping, offset, value)
  monkeypatch.setattr(VirtualMapping, "store32", noted)
  monkeypatch.setattr(channel, "fence", lambda: seen.append("fence"))
  program, a = device.load(code()), device.allocator.alloc(100)
  seen.clear()
  device.submit([Launch(program, [a], [1], 1)])
  assert seen == ["fence", "pointer", "fence", "doorbell", "fence"]
