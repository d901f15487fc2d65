"""Queues, command buffers, encoders and fences: mistakes of a driver, each of which is reported."""
import ctypes
import gc
from collections.abc import Callable, Iterator

import pytest

from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers import metal
from tinyhw.drivers.metal import device as device_module
from tinyhw.drivers.metal.device import MetalDevice
from tinyhw.drivers.metal.launch import MetalEncoder
from tinyhw.drivers.metal.objc import SELECTORS, MetalSize, ObjectiveC
from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.metal.commands import MetalDispatch
from tinyhw.emulator.metal.computer import MetalComputer
from tinyhw.errors import TinyError
from test.drivers.metal.conftest import Opener, code, code_of_many, mac
from test.drivers.metal.test_device import contents, filled

__all__ = ["mac"]

def work(device: MetalDevice) -> list[int]:
  """Two submissions of dependent launches, shared memory, a variable; one of a kernel with many buffers. The result."""
  body = ("threadgroup int *s = (threadgroup int *)(shared_bytes + 0); s[lane] = data0[lane]; "
          "threadgroup_barrier(mem_flags::mem_threadgroup); data0[lane] = s[3u - lane] + (int)numbers[0];")
  a, program = filled(device, [1, 2, 3, 4]), device.load(code(body=body, local_bytes=16))
  for _ in range(2): device.submit([Launch(program, [a], [k], 1) for k in (1, 2)])
  b, many = filled(device, [10, 20, 30, 40]), device.load(code_of_many())
  device.submit([Launch(many, [a, *[b] * 31], [1], 1)])
  return contents(device, a)[:4]

RESULT = [18, 29, 40, 51]

def test_the_driver_is_right(mac: Opener) -> None:
  for chip in ("apple7", "apple8", "apple9"):
    for seed in range(3):
      computer, device = mac(chip, seed=seed)
      assert work(device) == RESULT and "MTLCommandBuffer" not in computer.census()

Send = Callable[..., object]
Change = Callable[[Send, ObjectiveC, int, str, tuple[object, ...]], object]

def skipped(name: str) -> Change:
  """A driver that forgets a message."""
  def send(plain: Send, objc: ObjectiveC, receiver: int, selector: str, arguments: tuple[object, ...]) -> object:
    return None if selector == name else plain(objc, receiver, selector, *arguments)
  return send

def changed(name: str, *values: object) -> Change:
  """A driver that sends other arguments; None keeps one."""
  def send(plain: Send, objc: ObjectiveC, receiver: int, selector: str, arguments: tuple[object, ...]) -> object:
    if selector == name: arguments = tuple(old if new is None else new for old, new in zip(arguments, values))
    return plain(objc, receiver, selector, *arguments)
  return send

def doubled(name: str) -> Change:
  """A driver that sends a message twice."""
  def send(plain: Send, objc: ObjectiveC, receiver: int, selector: str, arguments: tuple[object, ...]) -> object:
    found = plain(objc, receiver, selector, *arguments)
    return plain(objc, receiver, selector, *arguments) if selector == name else found
  return send

MUTATIONS = {
  **{f"without {name}": skipped(name) for name in (
    "waitForFence:", "updateFence:", "memoryBarrierWithScope:", "setComputePipelineState:", "setBuffer:offset:atIndex:",
    "setBytes:length:atIndex:", "setThreadgroupMemoryLength:atIndex:", "dispatchThreadgroups:threadsPerThreadgroup:",
    "endEncoding", "commit", "setFastMathEnabled:", "setLanguageVersion:", "release", "newFence",
    "useResource:usage:", "gpuAddress")},
  **{f"twice {name}": doubled(name) for name in ("release", "endEncoding", "commit")},
  "a barrier of textures": changed("memoryBarrierWithScope:", 2),
  "an offset beyond the end": changed("setBuffer:offset:atIndex:", None, 16, None),
  "an odd offset": changed("setBuffer:offset:atIndex:", None, 2, None),
  "another index": changed("setBuffer:offset:atIndex:", None, None, 3),
  "too short bytes": changed("setBytes:length:atIndex:", None, 4, None),
  "no bytes": changed("setBytes:length:atIndex:", None, 0, None),
  "bytes at the buffer's index": changed("setBytes:length:atIndex:", None, None, 0),
  "an odd length of threadgroup memory": changed("setThreadgroupMemoryLength:atIndex:", 20, None),
  "too little threadgroup memory": changed("setThreadgroupMemoryLength:atIndex:", 0, None),
  "too much threadgroup memory": changed("setThreadgroupMemoryLength:atIndex:", 65536, None),
  "too many threads": changed("dispatchThreadgroups:threadsPerThreadgroup:", None, MetalSize(2048, 1, 1)),
  "too few threads": changed("dispatchThreadgroups:threadsPerThreadgroup:", None, MetalSize(2, 1, 1)),
  "no groups": changed("dispatchThreadgroups:threadsPerThreadgroup:", MetalSize(0, 1, 1), None),
  "threads and groups in another order": changed("dispatchThreadgroups:threadsPerThreadgroup:", MetalSize(4, 1, 1),
                                                 MetalSize(1, 1, 1)),
  "a resource that is only read": changed("useResource:usage:", None, 1),
  "a private buffer": changed("newBufferWithLength:options:", None, 32),
  "fast math": changed("setFastMathEnabled:", True),
}

LEAKS = {"MTLCommandBuffer", "MTLComputeCommandEncoder", "MTLLibrary", "MTLFunction", "MTLCompileOptions", "NSString"}

def damaged(computer: MetalComputer, change: Change, monkeypatch: pytest.MonkeyPatch) -> str:
  """What a damaged driver is caught by: an error, a wrong result, or what it leaks; empty if it is not."""
  plain = ObjectiveC.send
  def send(objc: ObjectiveC, receiver: int, selector: str, *arguments: object) -> object:
    return change(plain, objc, receiver, selector, arguments)
  with Context(HCQDEV_WAIT_TIMEOUT_MS=25), monkeypatch.context() as patch:   # some wait for ever
    patch.setattr(ObjectiveC, "send", send)
    try: found = work(metal.open(0, lambda name: None))  # type: ignore[arg-type,return-value]
    except (TinyError, TypeError) as error: return f"{type(error).__name__}: {error}"
  return "a wrong result" if found != RESULT else ", ".join(LEAKS & computer.census().keys())

def test_a_driver_without_damage(mac: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  computer, _ = mac()
  assert damaged(computer, skipped("never sent"), monkeypatch) == ""

@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_of_the_driver(name: str, mac: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  computer, _ = mac()
  assert not name.startswith(("without", "twice")) or name.split()[1] in SELECTORS
  assert damaged(computer, MUTATIONS[name], monkeypatch)

def test_order_is_missed_also_if_the_first_was_seen_early(mac: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  """The program asks for the first of two submissions, and the second one begins only after that."""
  monkeypatch.setattr(MetalDevice, "_make_room", lambda self: None)   # it looks before there is a second one
  for seed in range(12):
    computer, _ = mac(seed=seed)
    assert damaged(computer, MUTATIONS["without waitForFence:"], monkeypatch).startswith("DataRace")

@pytest.fixture
def parts(mac: Opener) -> Iterator[tuple[ObjectiveC, MetalDevice]]:
  _, device = mac()
  with device.objc.pool(): yield device.objc, device

def test_command_buffers_are_counted(parts: tuple[ObjectiveC, MetalDevice]) -> None:
  objc, device = parts
  for _ in range(64): objc.send(device.queue, "commandBuffer")
  with pytest.raises(StrictError, match="commandBuffer blocks without a deadline, since 64 are not done; count them"):
    objc.send(device.queue, "commandBuffer")

def test_states_of_encoders(parts: tuple[ObjectiveC, MetalDevice]) -> None:
  objc, device = parts
  buffer = objc.send(device.queue, "commandBuffer")
  encoder = objc.send(buffer, "computeCommandEncoderWithDispatchType:", 1)
  with pytest.raises(StrictError, match="two encoders of a command buffer are open"):
    objc.send(buffer, "computeCommandEncoderWithDispatchType:", 1)
  with pytest.raises(StrictError, match="commit before endEncoding"): objc.send(buffer, "commit")
  objc.send(encoder, "endEncoding")
  with pytest.raises(StrictError, match="memoryBarrierWithScope: after endEncoding"):
    MetalEncoder(objc, encoder).barrier()
  objc.send(buffer, "commit")
  with pytest.raises(StrictError, match="committed twice"): objc.send(buffer, "commit")
  with pytest.raises(StrictError, match="an encoder of a command buffer that was committed"):
    objc.send(buffer, "computeCommandEncoderWithDispatchType:", 0)

def test_objects_of_other_kinds(parts: tuple[ObjectiveC, MetalDevice]) -> None:
  objc, device = parts
  buffer = objc.send(device.queue, "commandBuffer")
  with pytest.raises(StrictError, match="there is no MTLDispatchType 2"):
    objc.send(buffer, "computeCommandEncoderWithDispatchType:", 2)
  encoder = objc.send(buffer, "computeCommandEncoderWithDispatchType:", 1)
  objc.send(encoder, "setBuffer:offset:atIndex:", None, 0, 0)     # binds none
  for selector, given, words in (("waitForFence:", None, "argument 1 is nil, not Fence"),
                                 ("updateFence:", encoder, "argument 1 is MTLComputeCommandEncoder, not Fence"),
                                 ("setComputePipelineState:", device.fence, "argument 1 is MTLFence, not Pipeline")):
    with pytest.raises(StrictError, match=f"{selector} {words}; on a Mac the process may end"):
      objc.send(encoder, selector, given)
  with pytest.raises(StrictError, match="argument 1 is MTLFence, not Buffer"):
    objc.send(encoder, "setBuffer:offset:atIndex:", device.fence, 0, 0)
  objc.send(encoder, "endEncoding")

def test_results_are_seen_only_after_the_status(mac: Opener) -> None:
  _, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  device.submit([Launch(program, [a], [5], 1)])
  before = ctypes.string_at(a.address, 16)
  assert before == bytes(16) and contents(device, a)[:4] == [5] * 4

def test_the_program_may_not_write_meanwhile(mac: Opener) -> None:
  _, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  device.submit([Launch(program, [a], [5], 1)])
  ctypes.memset(a.address, 1, 4)
  with pytest.raises(StrictError, match="wrote to buffer 1 while the GPU used it"): device.synchronize()

def test_work_that_was_seen_is_forgotten(mac: Opener) -> None:
  computer, device = mac()
  a, program = filled(device, [0] * 4), device.load(code())
  for _ in range(20): device.submit([Launch(program, [a], [1], 1)] * 3)
  assert contents(device, a)[:4] == [60] * 4
  gc.collect()
  found = [thing for thing in gc.get_objects() if isinstance(thing, MetalDispatch)]
  assert not [dispatch for dispatch in found if dispatch.encoder.world is computer.world]

def test_pointers_must_be_to_buffers_that_live(mac: Opener) -> None:
  """Metal retains no buffer that a kernel reaches by its address: the driver does."""
  for is_kept in (True, False):
    computer, device = mac()
    a, b, many = filled(device, [1] * 4), filled(device, [2] * 4), device.load(code_of_many())
    device.submit([Launch(many, [*[a] * 29, *[b] * 3], [0], 1)])
    device.allocator.free(b)
    device.allocator.free_cache()
    if is_kept:
      assert contents(device, a)[:4] == [3] * 4 and computer.census()["MTLBuffer"] == 1
      continue
    flight = device.flying.pop()
    for thing in flight.kept: device.objc.release(thing)
    device.flying.append(flight._replace(kept=()))
    with pytest.raises(StrictError, match=r"slots.data29 points into a buffer that was released"): device.synchronize()

def test_serial_encoders_are_ordered(mac: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(device_module, "CONCURRENT", 0)
  monkeypatch.setattr(MetalEncoder, "barrier", lambda self: None)
  _, device = mac()
  assert work(device) == RESULT
