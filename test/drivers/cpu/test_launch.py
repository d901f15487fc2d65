"""Launching and recording: arguments reach the kernel, patches reach the next replay, mistakes are named."""
from collections.abc import Iterator

import pytest
from host_kernels import OPENERS, Loaded, code, values

from tinyhw.device import Launch
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

@pytest.fixture(params=list(OPENERS))
def loaded(request: pytest.FixtureRequest) -> Iterator[Loaded]:
  device = OPENERS[request.param](2)
  yield Loaded(device)
  device.close()

def test_replay_with_patches(loaded: Loaded) -> None:
  a, b = loaded.zeros(8), loaded.zeros(8)
  add = loaded["add"]
  recording = loaded.device.record([Launch(add, (a,), (1,), 4), Launch(add, (a,), (10,), 2),
                                    Launch(add, (a,), (-1,), 1)])
  recording.submit()
  assert values(a, 8) == [10, 11, 1, 1, 0, 0, 0, 0]
  recording.patch(1, 0, b)
  recording.patch(0, 1, 100)
  recording.patch(2, 1, -5)
  recording.submit()
  assert values(a, 8) == [105, 111, 101, 101, 0, 0, 0, 0] and values(b, 8) == [10, 10, 0, 0, 0, 0, 0, 0]

def test_timed_replays(loaded: Loaded) -> None:
  """Dependent launches, with one and with many chunks, give the same results one by one.

  Each begins after the end of the one before.
  """
  memory = loaded.zeros(4096)
  recording = loaded.device.record([Launch(loaded["add"], (memory,), (1,), 4096),
                                    Launch(loaded["add"], (memory,), (10,), 1),
                                    Launch(loaded["add"], (memory,), (100,), 4096)])
  for n in (1, 2):
    times = recording.submit_timed()
    assert values(memory, 4096) == [111 * n] + [101 * n] * 4095
    assert (all(start < end for start, end in times) and all(a[1] <= b[0] for a, b in zip(times, times[1:]))
            and len(times) == 3)
  recording.submit()
  assert values(memory, 4096) == [333] + [303] * 4095
  assert loaded.device.record([]).submit_timed() == []

def test_replay_with_other_grids(loaded: Loaded) -> None:
  memory = loaded.zeros(100)
  recording = loaded.device.record([Launch(loaded["add"], (memory,), (1,), 1),
                                    Launch(loaded["add"], (memory,), (1,), 100)])
  for grid in (0, 1, 100, 37, 0, 2): recording.patch_grid(0, grid), recording.submit()
  assert values(memory, 100) == [6 + sum(i < g for g in (1, 100, 37, 2)) for i in range(100)]

def test_recordings_alternate(loaded: Loaded) -> None:
  memory = loaded.zeros(3)
  recordings = [loaded.device.record([Launch(loaded["add"], (loaded.device.allocator.offset(memory, 8, 8 * i),), (1,))])
                for i in range(2)]
  for i in range(30):
    recordings[i % 2].submit()
    if i % 3 == 0: loaded.device.submit([Launch(loaded["add"], (loaded.device.allocator.offset(memory, 8, 16),), (1,))])
  assert values(memory, 3) == [15, 15, 10]

def test_an_empty_recording(loaded: Loaded) -> None:
  loaded.device.record([]).submit()
  loaded.device.submit([])

def test_recordings_keep_their_programs(loaded: Loaded) -> None:
  memory = loaded.zeros(1)
  recording = loaded.device.record([Launch(loaded.device.load(code("add", loaded.device.arch)), (memory,), (1,))])
  for _ in range(50): loaded.device.load(code("nothing", loaded.device.arch))
  recording.submit()
  assert values(memory, 1) == [1]

def test_many_arguments(loaded: Loaded) -> None:
  add = code("add", loaded.device.arch)
  program = loaded.device.load(Code(add.name, add.arch, add.text, add.arguments + ("int64",) * 200))
  memory = loaded.zeros(1)
  for _ in range(3): loaded.device.submit([Launch(program, (memory,), (2, *range(200)))])
  assert values(memory, 1) == [6]

@pytest.mark.parametrize("record", [False, True])
def test_mistakes(loaded: Loaded, record: bool) -> None:
  memory, add = loaded.zeros(1), loaded["add"]
  run = loaded.device.record if record else loaded.device.submit
  def refused(launch: Launch, match: str) -> None:
    with pytest.raises(DeviceError, match=match): run([launch])
  refused(Launch(add, (), (1,)), "kernel add takes 1 buffers and 1 variables, not 0 and 1")
  refused(Launch(add, (memory, memory), ()), "kernel add takes 1 buffers and 1 variables, not 2 and 0")
  refused(Launch(add, (memory,), ()), "not 1 and 0")
  refused(Launch(add, (None,), (1,)), "buffer 0: None is not allocated memory")
  refused(Launch(add, (memory,), (1 << 63,)), "are not all 64-bit integers")
  refused(Launch(add, (memory,), (1.5,)), "are not all 64-bit integers")  # type: ignore[arg-type]
  refused(Launch(add, (memory,), (1,), -1), "grid is -1")
  run([Launch(add, (memory,), (1,))])

def test_mistakes_in_patches(loaded: Loaded) -> None:
  recording = loaded.device.record([Launch(loaded["add"], (loaded.zeros(1),), (1,))])
  with pytest.raises(DeviceError, match="kernel add has 2 arguments; there is no number 2 to patch"):
    recording.patch(0, 2, 1)
  with pytest.raises(DeviceError, match="kernel add, argument 1: None is neither memory of this device nor a 64-bit"):
    recording.patch(0, 1, None)
  with pytest.raises(DeviceError, match="a grid of -3 work items"): recording.patch_grid(0, -3)

def test_what_is_no_program(loaded: Loaded) -> None:
  with pytest.raises(DeviceError, match="cannot launch 'add'; pass what load"):
    loaded.device.submit([Launch("add", ())])
