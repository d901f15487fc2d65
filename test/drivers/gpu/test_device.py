"""One GPU: deadlines, the timeline's end, forks, close and loss."""
import os
import sys
import threading
from typing import Any

import pytest
from amd.box import AMDBox, Opener, code
from gpu.forks import in_child_of_fork
from gpu.seen import FEW, Seen, seeing

from tinyhw.config import Context
from tinyhw.device import Buffer, Device, Launch
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.linux import files
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.drivers.gpu.queue import Timeline
from tinyhw.dtype import dtypes
from tinyhw.errors import DeviceError, DriverError

class Interrupt:
  """Raise KeyboardInterrupt before the nth line that the driver executes, once. Where it defers signals, none comes."""
  def __init__(self, nth: int): self.left = nth

  def __enter__(self) -> None: sys.settrace(self.trace)
  def __exit__(self, *_: object) -> None: sys.settrace(None)

  def trace(self, frame: Any, event: str, argument: Any) -> Any:
    name = frame.f_code.co_filename
    if "/drivers/" not in name or "/test/" in name or name.endswith("/gpu/signals.py"): return None
    if event == "line":
      self.left -= 1
      if self.left == 0: raise KeyboardInterrupt
    return self.trace

def test_the_timeline_begins_anew_before_it_wraps(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  box, device = opened("gfx1100")
  monkeypatch.setattr(Timeline, "LIMIT", device.timeline.submitted + 3)
  program, a = device.load(code()), device.allocator.alloc(1000)
  old = device.mark()
  for i in range(20):
    device.submit([Launch(program, [a], [i], 1)])
    data, out = bytes([i]) * 1000, bytearray(1000)
    device.allocator.copyin(a, memoryview(data))
    device.allocator.copyout(memoryview(out), a)
    assert out == data and device.timeline.submitted < Timeline.LIMIT
  assert device.epoch > 5 and len(box.dispatches) == 20
  device.wait_mark(old)

@pytest.mark.parametrize("kind", FEW)
@pytest.mark.parametrize("what", ("submit", "replay", "copyin"))
@pytest.mark.slow
def test_ctrl_c_anywhere_leaves_a_device_that_works(monkeypatch: pytest.MonkeyPatch, kind: str, what: str) -> None:
  """Interrupted work runs or does not. Later work runs, in order, and is waited for."""
  with seeing(monkeypatch) as seen: interrupted_anywhere(*seen(kind), what)

def interrupted_anywhere(it: Seen, device: GpuDevice, what: str) -> None:
  program, a = device.load(it.code()), device.allocator.alloc(1000)
  recording = device.record([Launch(program, [a], [1], 11)])
  actions = {"submit": lambda: device.submit([Launch(program, [a], [1], 11)]), "replay": recording.submit,
             "copyin": lambda: device.allocator.copyin(a, memoryview(b"x" * 1000))}
  for nth in range(1, 1000):
    device.allocator.copyin(a, memoryview(b"a" * 1000))
    device.synchronize()
    it.forget()
    try:
      with Interrupt(nth): actions[what]()
    except KeyboardInterrupt: pass
    else: break
    data, out = bytes([nth & 0xFF]) * 1000, bytearray(1000)
    device.submit([Launch(program, [a], [1], 22)])
    device.synchronize()
    assert [groups for groups, _ in it.launched(0)] in ([22], [11, 22])
    device.allocator.copyin(a, memoryview(data))
    device.allocator.copyout(memoryview(out), a)
    assert out == data
  assert 30 < nth < 999, "each line was tried"

def test_a_deadline_that_is_missed_loses_the_device_and_all_is_given_back(opened: Opener) -> None:
  box, device = opened("gfx1100")
  program, a = device.load(code(name="endless")), device.allocator.alloc(5 << 20)
  device.synchronize()
  box.stopped = True
  device.submit([Launch(program, [a], [1], 1)])
  with Context(HCQDEV_WAIT_TIMEOUT_MS=20), pytest.raises(DriverError) as caught: device.synchronize()
  text = caught.value.message
  assert (text.startswith("AMD (gfx1100) did not finish submission 2 in 0.02 s\n") and "submission 2, which it was "
          "at: endless" in text)
  assert "compute queue" in text and "DISPATCH_DIRECT dim_x=1" in text
  assert box.held() == {"files": 2, "mappings": 1, "memory": 1, "queues": 0, "events": 0}
  for call in (lambda: device.submit([Launch(program, [a], [1], 1)]), lambda: device.load(code()),
               lambda: device.allocator.alloc(9 << 20),
               lambda: device.allocator.copyin(a, memoryview(bytes(10))),
               lambda: device.record([Launch(program, [a], [1], 1)])):
    with pytest.raises(DeviceError, match="AMD is lost since it did not finish .*use another device"): call()
  device.allocator.free(a)
  device.allocator.free_cache()
  device.synchronize()
  device.close()

def test_what_is_done_at_the_deadline_is_done(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  """A program that was suspended past the deadline polls once more before it gives the GPU up."""
  from tinyhw.drivers.gpu import device as module
  _, device = opened("gfx1100")
  monkeypatch.setattr(module, "wait_until", lambda *arguments: False)
  device.wait_for(lambda: True, "x")
  with pytest.raises(DriverError, match="did not finish x"): device.wait_for(lambda: False, "x")

def test_a_refused_wait_loses_the_device(opened: Opener) -> None:
  box, device = opened("gfx1100")
  box.stopped = True
  program = device.load(code(text=b"x" * 10))
  box.fail("WaitEvents", box.seen["WaitEvents"] + 1, 5)
  device.submit([Launch(program, [device.allocator.alloc(1)], [1], 1)])
  with pytest.raises(DriverError, match="WaitEvents: input/output error"): device.synchronize()
  with pytest.raises(DeviceError, match=r"AMD is lost since it met an error \(/dev/kfd: WaitEvents"): device.check()

def test_virtual_gpus_have_longer(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  from tinyhw.drivers.gpu import device as module
  _, device = opened("gfx1100")
  given = list[int]()
  monkeypatch.setattr(module, "wait_until", lambda done, timeout_ms, sleep, looks: given.append(timeout_ms) or True)
  device.wait_for(lambda: False, "x")
  with Context(EMULATE="gfx1100"): device.wait_for(lambda: False, "x")
  assert given == [30_000, 600_000]

def test_a_closed_device_is_closed(opened: Opener) -> None:
  box, device = opened("gfx1100")
  program, a = device.load(code()), device.allocator.alloc(100)
  device.close()
  device.close()
  with pytest.raises(DeviceError, match="AMD was closed"): device.submit([Launch(program, [a], [1], 1)])
  assert box.held() == {"files": 2, "mappings": 1, "memory": 3, "queues": 0,
                        "events": 0}, ("and what the buffer and the program lie in")
  del program
  device.allocator.free(a)

def test_what_buffers_hold_outlives_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
  box = AMDBox("gfx1100")
  monkeypatch.setattr(files, "COMPUTER", box)
  monkeypatch.setattr(Device, "_opened", {})
  kept, gone = Buffer("AMD", 1000, dtypes.uint8, initial_value=bytes(range(250)) * 4), Buffer("AMD", 5 << 20,
                                                                                              dtypes.uint8).allocate()
  first = Device["AMD"]
  del gone
  Device.close("AMD")
  assert box.held() == {"files": 2, "mappings": 1, "memory": 2, "queues": 0,
                        "events": 0}, ("the event page, and what the buffer lies in")
  assert bytes(kept.as_memoryview()) == bytes(range(250)) * 4, "which opens the device"
  second = Device["AMD"]
  assert second is not first and kept._buf.memory.owner is second and second.allocator is first.allocator
  a = second.allocator.alloc(100)
  second.submit([Launch(second.load(code()), [kept._buf], [1], 1)])
  second.allocator.free(a)
  del kept
  Device.close("AMD")
  assert box.held() == {"files": 2, "mappings": 1, "memory": 1, "queues": 0, "events": 0}
  kfd.forget(box)

def test_what_nobody_takes_over_is_given_back_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
  box = AMDBox("gfx1100")
  monkeypatch.setattr(files, "COMPUTER", box)
  monkeypatch.setattr(Device, "_opened", {})
  kept = Buffer("AMD", 1000, dtypes.uint8).allocate()
  Device.close("AMD")
  kfd.forget(box)
  assert box.held() == {"files": 0, "mappings": 0, "memory": 1, "queues": 0, "events": 0} and kept.is_allocated()

def test_a_failing_queue_does_not_keep_the_rest_from_being_given_back(opened: Opener) -> None:
  box, device = opened("gfx1100")
  box.fail("DestroyQueue", 1, 16)
  with pytest.raises(DriverError, match="DestroyQueue: .*EBUSY"): device.close()
  box.queues.clear()
  assert box.held() == {"files": 2, "mappings": 1, "memory": 1, "queues": 0, "events": 0}

@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_the_child_of_a_fork_has_no_gpu_and_may_open_it(monkeypatch: pytest.MonkeyPatch) -> None:
  box = AMDBox("gfx1100")
  monkeypatch.setattr(files, "COMPUTER", box)
  monkeypatch.setattr(Device, "_opened", {})
  device = Device["AMD"]
  program, buffer = device.load(code()), device.allocator.alloc(100)
  part = device.allocator.offset(buffer, 50, 50)
  recording = device.record([Launch(program, [buffer], [1], 1)])
  held, calls = box.held(), len(box.calls)
  def child() -> None:
    belongs = r"belongs to the process that opened it.*Device\.close\('AMD'\).*spawn"
    for use in (lambda: device.submit([Launch(program, [buffer], [1], 1)]), lambda: recording.patch(0, 0, buffer),
                recording.submit, lambda: device.allocator.copyout(memoryview(bytearray(100)), buffer)):
      with pytest.raises(DeviceError, match=belongs): use()
    assert box.held() == {**held, "files": 0} and len(box.calls) == calls, "what the parent has is left alone"
    box.has_event_page = False  # to the kernel the child is another process
    Device.close("AMD")
    again = Device["AMD"]
    loaded, own = again.load(code()), again.allocator.alloc(100)
    again.submit([Launch(loaded, [own], [1], 1)])
    assert len(box.dispatches) == 1
    for old in (buffer, part):
      with pytest.raises(DeviceError, match="is memory of the parent process; make the tensor"):
        again.submit([Launch(loaded, [old], [1], 1)])
      with pytest.raises(DeviceError, match="is memory of the parent process"):
        again.record([Launch(loaded, [own], [1], 1)]).patch(0, 0, old)
    with pytest.raises(DeviceError, match="this memory of AMD is that of the parent process"):
      device.allocator.copyin(buffer, memoryview(bytes(100)))
    with pytest.raises(DeviceError, match="this memory of AMD is that of the parent process"):
      again.allocator.transfer(own, buffer, 100)
    Device.close("AMD")
  in_child_of_fork(child)
  device.submit([Launch(program, [buffer], [1], 1)])
  assert len(box.dispatches) == 1 and box.held() == held
  Device.close("AMD")
  kfd.forget(box)

def test_threads_take_turns(opened: Opener) -> None:
  box, device = opened("gfx1100")
  program = device.load(code())
  right = list[bool]()
  def work(number: int) -> None:
    a = device.allocator.alloc(1000)
    for i in range(20):
      device.submit([Launch(program, [a], [i], 1)])
      data, out = bytes([number, i]) * 500, bytearray(1000)
      device.allocator.copyin(a, memoryview(data))
      device.allocator.copyout(memoryview(out), a)
      right.append(out == data)
    device.allocator.free(a)
  threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
  for thread in threads: thread.start()
  for thread in threads: thread.join()
  assert right == [True] * 80 and len(box.dispatches) == 80

def test_rest_lets_work_end(opened: Opener) -> None:
  _, device = opened("gfx1100")
  device.rest()
  assert device.timeline.completed == device.timeline.submitted
