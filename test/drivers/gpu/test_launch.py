"""Kernels and recordings: launches, patches, refusals."""
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpu.seen import FEW, KINDS, Seen, seeing

from tinyhw.device import Launch
from tinyhw.drivers.gpu import launch
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.errors import DeviceError

Opener = Callable[[str], tuple[Seen, GpuDevice]]

@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
  with seeing(monkeypatch) as make: yield make

def test_code_of_another_chip_is_refused(seen: Opener) -> None:
  it, device = seen("gfx1100")
  with pytest.raises(DeviceError, match="kernel example is for gfx942, device AMD is gfx1100; compile it for that"):
    device.load(it.code(arch="gfx942"))

@pytest.mark.parametrize("kind", FEW)
def test_a_long_batch_is_several_submissions(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  program, a = device.load(it.code()), device.allocator.alloc(100)
  device.submit([Launch(program, [a], [i], 1) for i in range(300)])
  device.synchronize()
  assert [arguments[1] for _, arguments in it.launched()][-3:] == [297, 298, 299] and len(it.launched()) == 300
  assert [len(names) for _, names in list(device.log)[-3:]] == [128, 128, 44]

@pytest.mark.parametrize("kind", FEW)
def test_a_program_is_given_back_when_it_is_garbage(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  program = device.load(it.code())
  assert repr(program) == f"<{type(program).__name__} example on {device.name} at {program.place.address:#x}>"
  address = program.place.address
  del program
  assert device.code.live == {}
  program = device.load(it.code())
  assert program.place.address == address

@pytest.mark.parametrize("kind", KINDS)
def test_a_recording_replays_with_what_was_patched(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  a, b = device.allocator.alloc(100), device.allocator.alloc(100)
  one, two = device.load(it.code()), device.load(it.code(name="other",
                                                         arguments=("buffer", "buffer", "int64", "int64")))
  recording = device.record([Launch(one, [a], [1], 5), Launch(two, [a, b], [2, 3], 6)])
  def replay() -> list[tuple[int, list[int]]]:
    it.forget()
    recording.submit()
    device.synchronize()
    return it.launched()
  assert replay() == [(5, [a.address, 1]), (6, [a.address, b.address])]
  recording.patch(0, 0, b)
  recording.patch(1, 3, -9)
  recording.patch_grid(0, 0)
  recording.patch_grid(1, 60)
  assert replay() == [(60, [a.address, b.address])], "no workgroups are no launch"
  recording.patch_grid(0, 4)
  assert replay()[0] == (4, [b.address, 1]) and it.launched(4)[1] == (60, [a.address, b.address, 2, -9])

@pytest.mark.parametrize("kind", FEW)
def test_a_replay_is_one_piece(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  program, a = device.load(it.code()), device.allocator.alloc(100)
  recording = device.record([Launch(program, [a], [i], 1) for i in range(50)])
  recording.submit()
  device.synchronize()
  it.forget()
  recording.submit()
  device.synchronize()
  assert len(recording.pieces) == 1 and [arguments[1] for _, arguments in it.launched()] == list(range(50))
  assert device.timeline.submitted - device.timeline.completed == 0

@pytest.mark.parametrize("kind", FEW)
@pytest.mark.parametrize("fit", (1, 2, 3, 7, 8))
def test_a_long_recording_is_several_pieces(seen: Opener, monkeypatch: pytest.MonkeyPatch, kind: str, fit: int) -> None:
  it, device = seen(kind)
  program, a = device.load(it.code()), device.allocator.alloc(100)
  for made in (launch.GpuRecording, device.recording):
    monkeypatch.setattr(made, "most_words", fit * program.words_of_launch)
  recording = device.record([Launch(program, [a], [i], i + 1) for i in range(7)])
  assert ([piece.words // program.words_of_launch for piece in recording.pieces] == [fit] * (7 // fit) + [7 % fit]
          * (7 % fit > 0))
  recording.submit()
  device.synchronize()
  assert [groups for groups, _ in it.launched()] == list(range(1, 8))

@pytest.mark.parametrize("kind", KINDS)
def test_only_launches_that_need_each_other_wait(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  program, (a, b) = device.load(it.code()), (device.allocator.alloc(100) for _ in range(2))
  def waits(*launches: Launch) -> list[int]:
    found, recording = list[int](), device.record(launches)
    for run in (lambda: device.submit(launches), recording.submit):
      device.synchronize()
      it.forget()
      run()
      device.synchronize()
      found.append(it.waits())
    return found
  one, two = Launch(program, [a], [1], 1), Launch(program, [b], [1], 1)
  assert waits(one) == waits(one, two) == [1, 1] and waits(one, one) == waits(one, two, one) == [2, 2]
  assert waits(*[one._replace(written=())] * 5) == [1, 1], "all of them only read"
  assert waits(*[one] * 5) == [5, 5]

@pytest.mark.parametrize("kind", FEW)
def test_a_patched_buffer_may_be_anywhere(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  program, buffers = device.load(it.code()), [device.allocator.alloc(100) for _ in range(4)]
  recording = device.record([Launch(program, [b], [1], 1, written=[0]) for b in buffers[:3]])
  counts = list[int]()
  for position, value in ((1, 7), (0, buffers[3]), (0, buffers[1])):
    recording.patch(1, position, value)
    device.synchronize()
    it.forget()
    recording.submit()
    device.synchronize()
    counts.append(it.waits())
  assert counts == [1, 3, 3], "a variable changes nothing; of a buffer nobody knows where it is in the next replay"

@pytest.mark.parametrize("kind", FEW)
def test_a_grid_that_is_patched_keeps_the_barrier(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  program, a = device.load(it.code()), device.allocator.alloc(100)
  recording = device.record([Launch(program, [a], [1], 1, written=[0]) for _ in range(3)])
  recording.patch_grid(1, 0)
  it.forget()
  recording.submit()
  device.synchronize()
  assert it.waits() == 3 and [groups for groups, _ in it.launched()] == [1, 1]

@pytest.mark.parametrize("kind", FEW)
def test_an_empty_recording_does_nothing(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  recording = device.record([])
  it.forget()
  recording.submit()
  assert recording.submit_timed() == [] and it.launched() == [] and it.waits() == 0

@pytest.mark.parametrize("kind", FEW)
def test_a_patch_waits_for_the_last_replay(seen: Opener, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
  it, device = seen(kind)
  program, a = device.load(it.code()), device.allocator.alloc(100)
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
def test_launches_are_timed_by_the_gpu(seen: Opener, kind: str) -> None:
  """The clock of AMD's stand-in advances by 100 ticks of 10 ns at each read."""
  it, device = seen(kind)
  program, a = device.load(it.code()), device.allocator.alloc(100)
  launches = [Launch(program, [a], [i], 1) for i in range(130)]
  for times in (device.submit_timed(launches), device.record(launches[:3]).submit_timed()):
    assert all(end - start == 1000 if kind.startswith("gfx") else end > start for start, end in times)
    assert all(end <= start for (_, end), (start, _) in zip(times[:3], times[1:3]))
  assert len(it.launched(0)) == 133

@pytest.mark.parametrize("kind", FEW)
def test_memory_of_a_recording_is_given_back_when_it_is_done(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  program, a = device.load(it.code()), device.allocator.alloc(100)
  device.synchronize()
  before = len(device.memories)
  recording = device.record([Launch(program, [a], [1], 1)])
  recording.submit()
  del recording
  device.synchronize()
  assert len(device.memories) == before

@pytest.mark.parametrize("wrong, reason", [
  (lambda p, a: Launch("text", [a], [1]), "cannot launch 'text'"),
  (lambda p, a: Launch(p, [], [1]), "takes 1 buffers and 1 variables, not 0 and 1"),
  (lambda p, a: Launch(p, [a], []), "not 1 and 0"),
  (lambda p, a: Launch(p, ["b"], [1]), "buffer 0: 'b' is not allocated memory"),
  (lambda p, a: Launch(p, [a], [1 << 63]), "are not all 64-bit integers"),
  (lambda p, a: Launch(p, [a], [1.5]), "are not all 64-bit"),
  (lambda p, a: Launch(p, [a], [1], -1), "grid is -1"),
  (lambda p, a: Launch(p, [a], [1], 1 << 32), "grid is 4294967296"),
  (lambda p, a: Launch(p, [a], [1], "3"), "grid is '3'")])
@pytest.mark.parametrize("kind", FEW)
def test_wrong_launches_are_explained(seen: Opener, kind: str, wrong: Any, reason: str) -> None:
  it, device = seen(kind)
  program, a = device.load(it.code()), device.allocator.alloc(100)
  for run in (lambda launch: device.submit([launch]), lambda launch: device.record([launch]),
              lambda launch: device.submit_timed([launch])):
    with pytest.raises(DeviceError, match=reason): run(wrong(program, a))

@pytest.mark.parametrize("kind", FEW)
def test_wrong_patches_are_explained(seen: Opener, kind: str) -> None:
  it, device = seen(kind)
  program, a = device.load(it.code()), device.allocator.alloc(100)
  recording = device.record([Launch(program, [a], [1], 1)])
  with pytest.raises(DeviceError, match="has 2 arguments; there is no number 2 to patch"): recording.patch(0, 2, 1)
  with pytest.raises(DeviceError, match="neither memory of this device nor a 64-bit integer"):
    recording.patch(0, 0, "x")
  with pytest.raises(DeviceError, match="64-bit integer"): recording.patch(0, 1, 1 << 63)
  with pytest.raises(DeviceError, match="a grid of -1 workgroups"): recording.patch_grid(0, -1)

def test_reports_name_kernels() -> None:
  assert launch.shown([("a", None), ("b", ("x.py", 3, "f"))]) == "a, b of x.py:3"
  assert launch.shown([("a", None)] * 9).endswith(" and 1 more")
