"""One GPU: the order of its two queues, deadlines, the timeline's end, forks, close and loss."""

import pytest
from amd.box import AMDBox, Opener, code

from tinyhw.device import Launch
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.errors import DriverError

def unfinished(device: AMDDevice, patch: pytest.MonkeyPatch) -> None:
  """Let the device assume that no work is done yet. The box does everything at once."""
  take = device.queues.take
  patch.setattr(device.queues, "take", lambda queue, number, what, completed: take(queue, number, what, 0))

def order(box: AMDBox) -> list[str]:
  return [name for name in box.packets if name in ("WAIT_REG_MEM", "DISPATCH_DIRECT", "sdma POLL_REGMEM",
                                                   "sdma COPY_LINEAR")]

def test_a_queue_waits_for_the_other_one_and_not_for_itself(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  box, device = opened("gfx1100")
  unfinished(device, monkeypatch)
  program, a = device.load(code()), device.allocator.alloc(100)
  box.packets.clear()
  device.submit([Launch(program, [a], [1], 1)])
  device.submit([Launch(program, [a], [1], 1)])
  device.allocator.copyin(a, memoryview(bytes(100)))
  device.allocator.copyin(a, memoryview(bytes(100)))
  assert order(box) == ["WAIT_REG_MEM", "DISPATCH_DIRECT", "DISPATCH_DIRECT", "sdma POLL_REGMEM", "sdma COPY_LINEAR",
                        "sdma COPY_LINEAR"]

def test_a_copy_and_a_kernel_that_do_not_need_each_other_run_at_once(opened: Opener,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
  """Each waits only before it signals its completion."""
  box, device = opened("gfx1100")
  program, a, b = device.load(code()), device.allocator.alloc(100), device.allocator.alloc(100)
  device.submit([Launch(program, [a], [1], 1)])
  unfinished(device, monkeypatch)
  box.packets.clear()
  device.submit([Launch(program, [a], [1], 1)])
  device.allocator.copyin(b, memoryview(bytes(100)))
  device.submit([Launch(program, [a], [1], 1)])
  assert order(box) == ["DISPATCH_DIRECT", "sdma COPY_LINEAR", "sdma POLL_REGMEM", "DISPATCH_DIRECT", "WAIT_REG_MEM"]
  box.packets.clear()
  device.record([Launch(program, [b], [1], 1)]).submit()
  assert order(box) == ["WAIT_REG_MEM", "DISPATCH_DIRECT"], "it reads what was copied"

def test_nothing_waits_for_what_is_done(opened: Opener) -> None:
  box, device = opened("gfx1100")
  program, a = device.load(code()), device.allocator.alloc(100)
  box.packets.clear()
  device.submit([Launch(program, [a], [1], 1)])
  assert "DISPATCH_DIRECT" in order(box) and device.queues.take("compute", 100, device.queues.flying["compute"][-1][1],
                                                                99) == 0

def test_each_submission_ends_with_its_number_and_the_event(opened: Opener) -> None:
  box, device = opened("gfx942")
  program, a = device.load(code("gfx942")), device.allocator.alloc(100)
  before = device.timeline.submitted
  device.submit([Launch(program, [a], [1], 1)])
  assert device.timeline.completed == device.timeline.submitted == before + 1 and device.mark() == (0, before + 1)
  assert box.packets[-3:] == ["PRED_EXEC", "RELEASE_MEM", "RELEASE_MEM"]

def test_scratch_grows_and_is_told_before_kernels(opened: Opener) -> None:
  box, device = opened("gfx1100")
  a = device.allocator.alloc(100)
  device.load(code(private_bytes=16))
  small = device.scratch
  assert small is not None and small[1:3] == (96 * 32 // 6, 4)
  device.load(code(private_bytes=8))
  assert device.scratch is small
  program = device.load(code(private_bytes=100))
  assert device.scratch is not None and device.scratch[2] == 25 and device.scratch[0].size >= 96 * 32 * 25 * 256
  device.submit([Launch(program, [a], [1], 1)])
  registers = box.dispatches[-1][0]
  assert registers["COMPUTE_TMPRING_SIZE"] == 512 | 25 << 12
  low, high = (registers[f"COMPUTE_DISPATCH_SCRATCH_BASE_{half}"] for half in ("LO", "HI"))
  assert low << 8 | high << 40 == device.scratch[0].address
  device.synchronize()
  assert small[0] not in device.memories

def test_a_fault_is_told_and_loses_the_device(opened: Opener) -> None:
  box, device = opened("gfx1100")
  program, a = device.load(code()), device.allocator.alloc(5 << 20)
  device.synchronize()
  box.stopped = True
  device.submit([Launch(program, [a], [1], 1)])
  box.fault = {"va": a.address + (5 << 20), "gpu_id": 1000, "NotPresent": 1}
  with pytest.raises(DriverError, match="touches memory that it has not at 0x.* is the end of a buffer of 5.00 MB"):
    device.synchronize()

def test_facts_are_of_all_dies(opened: Opener) -> None:
  _, device = opened("gfx942")
  facts = device.facts()
  assert (facts["threads"] == 304 and facts["arch"] == "gfx942" and facts["local_bytes"] == 65536
          and facts["memory_limit"] == 1 << 30)
  assert facts["kernel_interface"] == "KFD 1.17" and "cache_bytes" not in facts, "an L2 of unknown size is not told"

def test_small_boxes_are_boxes() -> None:
  assert AMDBox("gfx942").held() == {"files": 0, "mappings": 0, "memory": 0, "queues": 0, "events": 0}
