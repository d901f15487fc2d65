"""Kernels and recordings: launches, patches, what is refused."""
from pathlib import Path
from typing import Any

import pytest
from amd_box import Opener, arguments, code

from tinyhw.device import Launch
from tinyhw.drivers.gpu import launch
from tinyhw.errors import DeviceError

GOLDEN = Path(__file__).parents[2] / "golden"
KINDS = ("gfx1100", "gfx1200", "gfx942", "gfx950")

def test_code_of_another_chip_is_refused(opened: Opener) -> None:
  _, device = opened("gfx1100")
  with pytest.raises(DeviceError, match="kernel example is for gfx942, device AMD is gfx1100; compile it for that"): device.load(code("gfx942"))

def test_a_long_batch_is_several_submissions(opened: Opener) -> None:
  box, device = opened("gfx1100")
  program = device.load(code())
  a = device.allocator.alloc(100)
  device.submit([Launch(program, [a], [i], 1) for i in range(300)])
  assert len(box.dispatches) == 300 and [len(names) for _, names in list(device.log)[-3:]] == [128, 128, 44]

def test_a_program_is_given_back_when_it_is_garbage(opened: Opener) -> None:
  _, device = opened("gfx1100")
  program = device.load(code())
  assert repr(program) == f"<Program example on AMD at {program.place.address:#x}>"
  address = program.place.address
  del program
  assert device.code.live == {}
  program = device.load(code())
  assert program.place.address == address

@pytest.mark.parametrize("kind", KINDS)
def test_a_recording_replays_with_what_was_patched(opened: Opener, kind: str) -> None:
  box, device = opened(kind)
  a, b = device.allocator.alloc(100), device.allocator.alloc(100)
  one, two = device.load(code(kind)), device.load(code(kind, name="other", arguments=("buffer", "buffer", "int64", "int64")))
  recording = device.record([Launch(one, [a], [1], 5), Launch(two, [a, b], [2, 3], 6)])
  recording.submit()
  recording.patch(0, 0, b)
  recording.patch(1, 3, -9)
  recording.patch_grid(0, 0)
  recording.patch_grid(1, 60)
  recording.submit()
  recording.patch_grid(0, 4)
  recording.submit()
  device.synchronize()
  assert [groups for _, groups in box.dispatches] == [5, 6, 60, 4, 60]
  last = [registers for registers, _ in box.dispatches[-2:]]
  assert arguments(last[0], 2) == [b.address, 1] and arguments(last[1], 4) == [a.address, b.address, 2, -9]

def test_a_replay_is_one_indirect_buffer(opened: Opener) -> None:
  box, device = opened("gfx1100")
  program, a = device.load(code()), device.allocator.alloc(100)
  recording = device.record([Launch(program, [a], [i], 1) for i in range(50)])
  recording.submit()
  box.packets.clear()
  recording.submit()
  assert box.packets.count("INDIRECT_BUFFER") == 1 and box.packets.count("DISPATCH_DIRECT") == 50
  assert device.timeline.submitted - device.timeline.completed == 0

@pytest.mark.parametrize("kind", ("gfx1100", "gfx942"))
@pytest.mark.parametrize("fit", (1, 2, 3, 7, 8))
def test_a_long_recording_is_several_indirect_buffers(opened: Opener, monkeypatch: pytest.MonkeyPatch, kind: str, fit: int) -> None:
  box, device = opened(kind)
  program, a = device.load(code(kind)), device.allocator.alloc(100)
  monkeypatch.setattr(launch.GpuRecording, "most_words", fit * len(program.words.words))
  recording = device.record([Launch(program, [a], [i], i + 1) for i in range(7)])
  assert [piece.words // len(program.words.words) for piece in recording.pieces] == [fit] * (7 // fit) + [7 % fit] * (7 % fit > 0)
  recording.submit()
  device.synchronize()
  assert [groups for _, groups in box.dispatches] == list(range(1, 8))

@pytest.mark.parametrize("kind", KINDS)
def test_only_launches_that_need_each_other_wait(opened: Opener, kind: str) -> None:
  """Waits are EVENT_WRITE packets; one is at the end of each submission, and one around each launch that is timed."""
  box, device = opened(kind)
  program, (a, b) = device.load(code(kind)), (device.allocator.alloc(100) for _ in range(2))
  def waits(*launches: Launch) -> list[int]:
    found, recording = list[int](), device.record(launches)
    for run in (lambda: device.submit(launches), recording.submit):
      box.packets.clear()
      run()
      found.append(box.packets.count("EVENT_WRITE"))
    return found
  one, two = Launch(program, [a], [1], 1), Launch(program, [b], [1], 1)
  assert waits(one) == waits(one, two) == [1, 1] and waits(one, one) == waits(one, two, one) == [2, 2]
  assert waits(*[one._replace(written=())] * 5) == [1, 1], "all of them only read"
  assert waits(*[one] * 5) == [5, 5]

def test_a_patched_buffer_may_be_anywhere(opened: Opener) -> None:
  box, device = opened("gfx1100")
  program, buffers = device.load(code()), [device.allocator.alloc(100) for _ in range(4)]
  recording = device.record([Launch(program, [b], [1], 1, written=[0]) for b in buffers[:3]])
  counts = list[int]()
  for position, value in ((1, 7), (0, buffers[3]), (0, buffers[1])):
    recording.patch(1, position, value)
    box.packets.clear()
    recording.submit()
    counts.append(box.packets.count("EVENT_WRITE"))
  assert counts == [1, 3, 3], "a variable changes nothing; of a buffer nobody knows where it is in the next replay"

def test_an_empty_recording_does_nothing(opened: Opener) -> None:
  box, device = opened("gfx1100")
  recording = device.record([])
  box.packets.clear()
  recording.submit()
  assert recording.submit_timed() == [] and box.packets == []

def test_a_patch_waits_for_the_last_replay(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  box, device = opened("gfx1100")
  program, a = device.load(code()), device.allocator.alloc(100)
  recording, waited = device.record([Launch(program, [a], [1], 1)]), list[Any]()
  wait_mark = device.wait_mark
  monkeypatch.setattr(device, "wait_mark", lambda mark: (waited.append(mark), wait_mark(mark)))
  recording.patch(0, 1, 2)
  assert waited == []
  recording.submit()
  recording.patch(0, 1, 3)
  recording.patch(0, 1, 4)
  assert waited == [device.mark()]

@pytest.mark.parametrize("kind", KINDS)
def test_launches_are_timed_by_the_gpu(opened: Opener, kind: str) -> None:
  box, device = opened(kind)
  program, a = device.load(code(kind)), device.allocator.alloc(100)
  launches = [Launch(program, [a], [i], 1) for i in range(130)]
  for times in (device.submit_timed(launches), device.record(launches[:3]).submit_timed()):
    assert all(end - start == 1000 for start, end in times), "100 ticks of 10 ns"
    assert all(end <= start for (_, end), (start, _) in zip(times[:3], times[1:3]))
  assert len(box.dispatches) == 133

def test_memory_of_a_recording_is_given_back_when_it_is_done(opened: Opener) -> None:
  box, device = opened("gfx1100")
  program, a = device.load(code()), device.allocator.alloc(100)
  device.synchronize()
  before = len(box.memory)
  recording = device.record([Launch(program, [a], [1], 1)])
  recording.submit()
  del recording
  device.synchronize()
  assert len(box.memory) == before

@pytest.mark.parametrize("wrong, reason", [
  (lambda p, a: Launch("text", [a], [1]), "cannot launch 'text'"), (lambda p, a: Launch(p, [], [1]), "takes 1 buffers and 1 variables, not 0 and 1"),
  (lambda p, a: Launch(p, [a], []), "not 1 and 0"), (lambda p, a: Launch(p, ["b"], [1]), "buffer 0: 'b' is not allocated memory"),
  (lambda p, a: Launch(p, [a], [1 << 63]), "are not all 64-bit integers"), (lambda p, a: Launch(p, [a], [1.5]), "are not all 64-bit"),
  (lambda p, a: Launch(p, [a], [1], -1), "grid is -1"), (lambda p, a: Launch(p, [a], [1], 1 << 32), "grid is 4294967296"),
  (lambda p, a: Launch(p, [a], [1], "3"), "grid is '3'")])
def test_wrong_launches_are_explained(opened: Opener, wrong: Any, reason: str) -> None:
  _, device = opened("gfx1100")
  program, a = device.load(code()), device.allocator.alloc(100)
  for run in (lambda launch: device.submit([launch]), lambda launch: device.record([launch]), lambda launch: device.submit_timed([launch])):
    with pytest.raises(DeviceError, match=reason): run(wrong(program, a))

def test_wrong_patches_are_explained(opened: Opener) -> None:
  _, device = opened("gfx1100")
  program, a = device.load(code()), device.allocator.alloc(100)
  recording = device.record([Launch(program, [a], [1], 1)])
  with pytest.raises(DeviceError, match="has 2 arguments; there is no number 2 to patch"): recording.patch(0, 2, 1)
  with pytest.raises(DeviceError, match="neither memory of this device nor a 64-bit integer"): recording.patch(0, 0, "x")
  with pytest.raises(DeviceError, match="64-bit integer"): recording.patch(0, 1, 1 << 63)
  with pytest.raises(DeviceError, match="a grid of -1 workgroups"): recording.patch_grid(0, -1)
