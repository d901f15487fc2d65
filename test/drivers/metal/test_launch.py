"""Programs, the check of launches, what an encoder sends, recordings."""
import pytest

from tinyhw.device import Launch
from tinyhw.drivers.metal.launch import BATCH, order_of_batches
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code
from test.drivers.metal.conftest import Opener, code, code_of_many
from test.drivers.metal.test_device import contents, filled

def test_what_a_device_does_not_take(mac: Opener) -> None:
  _, device = mac()
  for wrong, words in ((code(arch="opencl"), "is for opencl, device METAL takes Metal's language"),
                       (code(local_bytes=40000), "needs 40000 bytes of threadgroup memory, and METAL has 32768"),
                       (code(lanes=1025), "has 1025 lanes in a threadgroup, and METAL allows it (512|896|1024)"),
                       (Code("n", "metal", b"", ("int64",) * 513), "has 513 variables, and Metal takes 512")):
    with pytest.raises(DeviceError, match=words): device.load(wrong)

def test_what_a_launch_must_have(mac: Opener) -> None:
  _, device = mac("apple7x2")
  _, other = mac()
  a, program, elsewhere = filled(device, [1] * 4), device.load(code()), filled(other, [1])
  for launch, words in (
      (Launch(program, [a], [], 1), "takes 1 buffers and 1 variables, not 1 and 0"),
      (Launch(program, [elsewhere], [1], 1), "buffer 0: <MetalMemory .* is not allocated memory of METAL"),
      (Launch(program, [a], [1 << 63], 1), "variable 0: 9223372036854775808 is no 64-bit integer"),
      (Launch(program, [a], [1], 1 << 32), "a grid of 4294967296 threadgroups"),
      (Launch(len, [a], [1], 1), "cannot launch <built-in function len>"),
      (Launch(other.load(code()), [a], [1], 1), "is of another device than METAL")):
    with pytest.raises(DeviceError, match=words): device.submit([launch])
    with pytest.raises(DeviceError, match=words): device.record([launch])

def test_only_differences_are_sent(mac: Opener) -> None:
  computer, device = mac()
  a, program = filled(device, [0] * 64), device.load(code())
  def messages(count: int) -> int:
    before = computer.world.messages
    device.submit([Launch(program, [a], [1], 1)] * count)
    sent = computer.world.messages - before
    device.synchronize()
    return sent
  assert messages(3) - messages(2) == messages(2) - messages(1) == 3   # barrier, setBytes, dispatch

def test_a_kernel_with_more_buffers_than_arguments(mac: Opener) -> None:
  computer, device = mac()
  a, b, program = filled(device, [1] * 8), filled(device, range(8)), device.load(code_of_many(40))
  part = device.allocator.offset(b, 16, 16)
  recording = device.record([Launch(program, [a, *[b] * 38, part], [k], 1) for k in (100, 200)])
  for _ in range(2): recording.submit()
  assert contents(device, a)[:4] == [1 + 600 + 4 * k for k in range(4, 8)]
  recording.patch(0, 39, b)
  recording.submit()
  assert contents(device, a)[:4] == [901 + 20 + 6 * k for k in range(4)]
  assert "MTLCommandBuffer" not in computer.census()

def test_independent_launches_run_at_the_same_time(mac: Opener) -> None:
  _, device = mac()
  a, b, program = filled(device, [0] * 4), filled(device, [0] * 4), device.load(code())
  launches = [Launch(program, [x], [1], 1, written=[0]) for x in (a, b, a)]
  assert order_of_batches(launches) == [False, False, True]
  assert order_of_batches([launches[0]] * (BATCH + 1)) == [False, *[True] * (BATCH - 1), False]
  device.submit(launches)
  assert contents(device, a)[:4] == [2] * 4 and contents(device, b)[:4] == [1] * 4

def test_recordings(mac: Opener) -> None:
  _, device = mac()
  a, b, program = filled(device, [0] * 8), filled(device, [0] * 8), device.load(code())
  recording = device.record([Launch(program, [a], [k], 1) for k in range(1, 71)])
  for _ in range(2): recording.submit()
  assert contents(device, a)[:8] == [2 * 2485] * 4 + [0] * 4
  recording.patch(0, 0, b)
  recording.patch(1, 1, 100)
  recording.patch_grid(2, 2)
  recording.patch_grid(3, 0)
  recording.submit()
  assert contents(device, b)[:8] == [1] * 4 + [0] * 4
  assert contents(device, a)[:8] == [3 * 2485 - 1 + 98 - 4] * 4 + [3] * 4
  with pytest.raises(DeviceError, match="has 2 arguments; there is no number 2 to patch"): recording.patch(0, 2, 1)
  with pytest.raises(DeviceError, match="buffer 0: 5 is not allocated"): recording.patch(0, 0, 5)
  with pytest.raises(DeviceError, match="a grid of -1 threadgroups"): recording.patch_grid(0, -1)
  assert len(recording.submit_timed()) == 70

def test_parts_of_buffers(mac: Opener) -> None:
  _, device = mac()
  a, program = filled(device, [*range(64)]), device.load(code())
  part = device.allocator.offset(a, 64, 64)
  device.submit([Launch(program, [part], [1000], 1), Launch(program, [a], [1], 4)])
  assert contents(device, a)[:24] == [*range(1, 17), *range(1016, 1020), *range(20, 24)]
  assert repr(part) == "<MetalMemory 64 bytes of METAL, at 64>"
