"""One device: order, waits, its loss; on a virtual Mac, which checks every message."""
import dis
import functools
import gc
import os
import signal
import sys
import threading
from types import CodeType, FrameType
from typing import Any

import pytest

from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers.metal.device import MOST_FLYING, MetalDevice
from tinyhw.drivers.metal.memory import MetalMemory
from tinyhw.errors import CompileError, DeviceError, DriverError
from tinyhw.machine.ir.code import Code
from test.drivers.metal.conftest import Opener, code, code_of_many

def filled(device: MetalDevice, values: list[int]) -> MetalMemory:
  """A buffer with these integers."""
  found = device.allocator.alloc(4 * len(values))
  device.allocator.copyin(found, memoryview(b"".join(v.to_bytes(4, "little", signed=True) for v in values)))
  return found  # type: ignore[no-any-return]

def contents(device: MetalDevice, memory: MetalMemory) -> list[int]:
  out = bytearray(memory.size)
  device.allocator.copyout(memoryview(out), memory)
  return memoryview(out).cast("i").tolist()

def test_launches_in_order(mac: Opener) -> None:
  computer, device = mac()
  a, program = filled(device, [*range(16)]), device.load(code())
  for _ in range(3): device.submit([Launch(program, [a], [k], 4) for k in range(100)])
  device.submit([Launch(program, [a], [7], 0), Launch(program, [a], [5], 1)])
  assert contents(device, a)[:16] == [k + 3 * 4950 + 5 * (k < 4) for k in range(16)]
  assert device.workgroups == computer.gpus[0].workgroups == 1201 and device.submitted == 7

def test_nothing_leaks(mac: Opener) -> None:
  computer, device = mac()
  before = computer.census()
  assert before == {"MTLDevice": 1, "MTLCommandQueue": 1, "MTLFence": 1}
  a, program = filled(device, [0] * 16), device.load(code())
  device.submit([Launch(program, [a], [1], 4)])
  with pytest.raises(CompileError, match="use of undeclared identifier 'nowhere'"):
    device.load(code("bad", "data0[0] = nowhere;"))
  device.allocator.free(a)
  del program
  device.close()
  assert computer.census() == before
  del device, a
  gc.collect()
  assert computer.census() == {}

def test_a_device_that_fails_to_open_keeps_nothing(mac: Opener) -> None:
  from tinyhw.drivers import metal
  computer, device = mac("apple9x2")
  for selector in ("newCommandQueue", "newFence"):
    computer.gpus[1].refused = {selector}
    with pytest.raises(DeviceError, match=r"Apple M3 \(Apple9\) gives no queue; other programs may hold all of them"):
      metal.open(1, lambda name: None)  # type: ignore[arg-type,return-value]
    assert computer.census() == {"MTLDevice": 1, "MTLCommandQueue": 1, "MTLFence": 1} and device.name == "METAL"

def test_no_command_buffer(mac: Opener) -> None:
  computer, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  for selector in ("commandBuffer", "computeCommandEncoder"):
    computer.gpus[0].refused = {selector}
    with pytest.raises(DriverError, match=r"METAL \(Apple M1 \(Apple7\)\) gives no command buffer; start the program"):
      device.submit([Launch(program, [a], [1], 1)])
    assert "MTLCommandBuffer" not in computer.census() and not device.flying

def test_only_some_submissions_are_under_way(mac: Opener) -> None:
  computer, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  for _ in range(3 * MOST_FLYING):
    device.submit([Launch(program, [a], [1], 1)])
    assert len(device.flying) <= MOST_FLYING
  assert contents(device, a)[:4] == [3 * MOST_FLYING] * 4 and not device.flying
  assert computer.census() == {"MTLDevice": 1, "MTLCommandQueue": 1, "MTLFence": 1, "MTLBuffer": 1,
                               "MTLComputePipelineState": 1}

def test_a_kernel_that_never_ends_loses_the_device(mac: Opener) -> None:
  computer, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  computer.gpus[0].is_stuck = True
  device.submit([Launch(program, [a], [1], 1, line=("train.py", 7, "step"))])
  with Context(HCQDEV_WAIT_TIMEOUT_MS=2):
    with pytest.raises(DriverError, match=r"did not finish submission 1 in 0.04 s; it was at example of train.py:7; a "
                       r"larger HCQDEV_WAIT_TIMEOUT_MS allows more time"):
      device.synchronize()
  for work in (device.synchronize, lambda: device.submit([Launch(program, [a], [1], 1)]),
               lambda: device.allocator.alloc(64), lambda: device.load(code())):
    with pytest.raises(DeviceError, match="METAL is lost since it did not finish submission 1 in 0.04 s"): work()
  device.allocator.free(a)
  device.close()

def test_a_submission_that_fails_loses_the_device(mac: Opener) -> None:
  """Also where later ones end well: the status of each is looked at."""
  computer, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  computer.gpus[0].faults = [(8, "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)")]
  for _ in range(2): device.submit([Launch(program, [a], [1], 1)])
  with pytest.raises(DriverError, match=r"submission 1 \(example\) failed: Insufficient Memory"): device.synchronize()
  with pytest.raises(DeviceError, match=r"METAL is lost since it failed at submission 1 \(example\)"):
    device.synchronize()

def test_a_mistake_in_a_later_launch_starts_none(mac: Opener) -> None:
  computer, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  with pytest.raises(DeviceError, match="buffer 0: None is not allocated memory of METAL"):
    device.submit([Launch(program, [a], [1], 1), Launch(program, [None], [1], 1)])
  assert not device.flying and contents(device, a)[:4] == [0] * 4
  assert "MTLCommandBuffer" not in computer.census()

def test_an_interrupt_while_encoding_leaves_nothing(mac: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  from tinyhw.drivers.metal.launch import MetalEncoder
  computer, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  def interrupted(self: MetalEncoder, launch: Launch) -> None: raise KeyboardInterrupt
  with monkeypatch.context() as patch:
    patch.setattr(MetalEncoder, "launch", interrupted)
    with pytest.raises(KeyboardInterrupt): device.submit([Launch(program, [a], [1], 1)])
  device.submit([Launch(program, [a], [1], 1)])
  assert contents(device, a)[:4] == [1] * 4 and "MTLCommandBuffer" not in computer.census()

@pytest.mark.parametrize("committed", (False, True))
def test_an_interrupt_at_the_commit_waits(committed: bool, mac: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  """So the device knows the submission, and nobody writes to its buffers early."""
  computer, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  send = device.objc.send
  def interrupted(receiver: int, name: str, *arguments: object) -> object:
    if name == "commit" and not committed: signal.raise_signal(signal.SIGINT)
    found = send(receiver, name, *arguments)
    if name == "commit" and committed: signal.raise_signal(signal.SIGINT)
    return found
  with monkeypatch.context() as patch:
    patch.setattr(device.objc, "send", interrupted)
    with pytest.raises(KeyboardInterrupt): device.submit([Launch(program, [a], [1], 1)])
  assert len(device.flying) == 1
  device.synchronize()
  assert contents(device, a)[:4] == [1] * 4 and "MTLCommandBuffer" not in computer.census()

class SignalAtPlace:
  """`with` it: SIGINT arrives at the first place of the driver and of the virtual library that is not in `met`, where
  CPython may run handlers: at the start of functions and after calls. has_come: there was such a place."""
  def __init__(self, met: set[tuple[CodeType, int]]): self.met, self.has_come = met, False

  def __enter__(self) -> "SignalAtPlace":
    sys.settrace(self._called)
    return self

  def __exit__(self, *_: object) -> None: sys.settrace(None)

  def _called(self, frame: FrameType, event: str, argument: object) -> Any:
    if self.has_come or not frame.f_code.co_filename.endswith(FILES): return None
    frame.f_trace_opcodes, frame.f_trace_lines = True, False
    return self._stepped

  def _stepped(self, frame: FrameType, event: str, argument: object) -> Any:
    place = frame.f_code, frame.f_lasti
    if event != "opcode" or self.has_come or place in self.met or place[1] not in places(place[0]): return self._stepped
    self.met.add(place)
    self.has_come = True
    signal.raise_signal(signal.SIGINT)
    return self._stepped

FILES = tuple(f"drivers{os.sep}{name}.py" for name in (f"metal{os.sep}device", f"metal{os.sep}launch",
              f"metal{os.sep}memory", f"metal{os.sep}objc", f"gpu{os.sep}signals")) + (
              f"emulator{os.sep}metal{os.sep}runtime.py",)

@functools.lru_cache(None)
def places(code: CodeType) -> frozenset[int]:
  """Return the offsets of instructions that follow one after which handlers run."""
  instructions = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
  return frozenset(after.offset for before, after in zip(instructions, instructions[1:])
                   if before.opname == "RESUME" or before.opname.startswith("CALL"))

@pytest.mark.skipif(sys.version_info < (3, 11), reason="older Pythons run handlers at other places")
def test_an_interrupt_at_each_place_of_a_submission(mac: Opener) -> None:
  """Nothing is left open, and what has begun is known: the numbers are those before the submission, or after it."""
  computer, device = mac()
  a, program, many = filled(device, [0] * 4), device.load(code()), device.load(code_of_many())
  memories, done = [a, *(filled(device, [1] * 4) for _ in range(31))], 0
  before, met = computer.census(), set[tuple[CodeType, int]]()
  while True:
    interrupt = SignalAtPlace(met)
    try:
      with interrupt: device.submit([Launch(program, [a], [1], 1), Launch(many, memories, [1], 1)])
      assert not interrupt.has_come, f"{len(met)}: the interrupt was lost"
      break
    except KeyboardInterrupt: pass
    now = contents(device, a)[:4]
    assert now in ([done] * 4, [done + 3] * 4) and not device.flying, f"{len(met)}: {now} after {done}"
    assert computer.census() == before, f"{len(met)}: {computer.census()}"
    done = now[0]
  assert len(met) > 100 and contents(device, a)[:4] == [done + 3] * 4

def test_times(mac: Opener) -> None:
  _, device = mac()
  a, program = filled(device, [0] * 16), device.load(code())
  times = device.submit_timed([Launch(program, [a], [k], k) for k in range(4)])
  assert all(begin <= end for begin, end in times) and times[1][1] <= times[2][0] and times[0][0] == times[0][1]

def test_the_compiler_says_which_line_is_wrong(mac: Opener) -> None:
  computer, device = mac()
  with pytest.raises(CompileError, match=r"METAL .Apple M1 .Apple7.. failed on kernel bad:\nprogram_source:5: error"):
    device.load(code("bad", "data0[0] = nowhere;"))
  with pytest.raises(CompileError, match="the source of kernel other has no function k_other"):
    device.load(Code("other", "metal", code().text, ("buffer", "int64"), lanes=4))
  computer.gpus[0].refused = {"newComputePipelineState"}
  with pytest.raises(CompileError, match="XPC_ERROR_CONNECTION_INTERRUPTED"): device.load(code())

def test_garbage_of_another_thread_waits_for_the_lock(mac: Opener) -> None:
  computer, device = mac()
  programs = [device.load(code())]
  with device.lock:
    thread = threading.Thread(target=programs.clear)
    thread.start()
    thread.join(10)
    assert not thread.is_alive() and "MTLComputePipelineState" in computer.census()
  device.synchronize()
  assert "MTLComputePipelineState" not in computer.census()

def test_threads_share_a_device(mac: Opener) -> None:
  _, device = mac(seed=3)
  program, found = device.load(code()), dict[int, list[int]]()
  def work(number: int) -> None:
    a = filled(device, [number] * 4)
    for _ in range(5): device.submit([Launch(program, [a], [1], 1)])
    found[number] = contents(device, a)[:4]
  threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
  for thread in threads: thread.start()
  for thread in threads: thread.join(60)
  assert found == {k: [k + 5] * 4 for k in range(4)}

def test_a_copied_process_has_no_device(mac: Opener) -> None:
  computer, device = mac()
  program = device.load(code())
  device.after_fork(False)
  device.synchronize()
  device.after_fork(True)
  with pytest.raises(DeviceError, match='Metal cannot be used after a fork: start processes with "spawn"'):
    device.synchronize()
  messages = computer.world.messages
  del program
  assert computer.world.messages == messages
