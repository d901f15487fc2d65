"""Queues, command buffers, encoders and fences of a virtual Metal, and the dispatches that its GPU executes.

Command buffers of a queue are executed in order, group by group, when the program looks. The order that a driver has to
make is checked apart from that: each dispatch knows which others come before it, by barriers, fences, and the
program's own waits. Two dispatches that touch the same bytes without such an order, where one of them writes, are a
race, also if this run had the right order.
"""
from __future__ import annotations
import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING

from tinyhw.autogen import metal
from tinyhw.emulator.errors import DataRace, StrictError
from tinyhw.emulator.metal.lanes import MslRegion, ThreadGroup
from tinyhw.emulator.metal.numbers import SIZES
from tinyhw.emulator.metal.objects import ErrorThing, Thing
from tinyhw.emulator.metal.translate import MOST_BUFFERS
from tinyhw.named_tuple import NamedTuple
if TYPE_CHECKING: from tinyhw.emulator.metal.device import BufferThing, DeviceThing, PipelineThing

MOST_BYTES, MOST_LOCAL, UNIT = 4096, 32768, 16
MOST_UNCOMPLETED = 64
DOMAIN = "MTLCommandBufferErrorDomain"

class ApiMistake(StrictError):
  """A use of Metal that its validation refuses, or that is undefined."""

class MetalBinding(NamedTuple):
  """An argument of a dispatch: a buffer from an offset on, or bytes."""
  buffer: BufferThing | None
  offset: int = 0
  data: bytes = b""

class TouchedBytes:
  """The granules of a buffer that a dispatch has read and written, with the thread of each."""
  def __init__(self) -> None:
    self.readers: dict[int, int] = {}
    self.writers: dict[int, int] = {}
    self.granule = 1

  def bytes_of(self, granules: dict[int, int]) -> set[int]:
    return {at + k for at in granules for k in range(self.granule)}

  def meets(self, other: TouchedBytes) -> bool:
    """Do two dispatches touch a byte, one of them to write it?"""
    if self.granule == other.granule:
      return not (self.writers.keys().isdisjoint(other.writers) and self.writers.keys().isdisjoint(other.readers)
                  and self.readers.keys().isdisjoint(other.writers))
    writes, others = self.bytes_of(self.writers), other.bytes_of(other.writers)
    return bool(writes & others or writes & other.bytes_of(other.readers) or others & self.bytes_of(self.readers))

class MetalDispatch:
  """A kernel with its arguments. phase: the number of barriers before it in its encoder."""
  def __init__(self, encoder: EncoderThing, groups: int, lanes: int):
    self.pipeline, self.groups, self.lanes, self.phase = encoder.pipeline, groups, lanes, encoder.phase
    self.encoder, self.bindings, self.local_bytes = encoder, dict(encoder.bindings), encoder.local_bytes
    self.resident = tuple(encoder.resident)
    self.touched: dict[BufferThing, TouchedBytes] = {}
    self.running: ThreadGroup | None = None
    self.order: list[int] = []

  @property
  def title(self) -> str: return f"kernel {self.pipeline.kernel.name} of {self.encoder.buffer.title}"

  def begin(self) -> None:
    """Prepare memory and threads."""
    kernel, regions, shared = self.pipeline.kernel, dict[str, MslRegion](), None
    places: dict[str, MetalBinding] = {}
    for argument in kernel.arguments:
      kind, index = argument.attribute
      if kind == "threadgroup":
        size = self.local_bytes
        shared = regions[argument.name] = MslRegion("the threadgroup memory", bytearray(size), bytearray(size))
      elif kind == "buffer" and argument.type.mark == "&": places |= self.pointed(self.bindings[index].data)
      elif kind == "buffer": places[argument.name] = self.bindings[index]
    for name, bound in places.items(): regions[name] = self.region(name, bound)
    seed = self.encoder.world.seed
    self.running = ThreadGroup(kernel, regions, shared, self.lanes, seed, self.encoder.world.steps)
    for name, bound in places.items():
      if bound.buffer: self.touched[bound.buffer].granule = regions[name].granule
    self.order = seed.sample(range(self.groups), self.groups) if self.groups < 1 << 12 else list(range(self.groups))

  def pointed(self, data: bytes) -> dict[str, MetalBinding]:
    """Return the memory of the pointers in a structure."""
    found: dict[str, MetalBinding] = {}
    for k, (name, element) in enumerate(self.pipeline.kernel.pointers):
      address = int.from_bytes(data[8 * k:8 * k + 8], "little")
      buffer = next((b for b in self.resident if b.address <= address < b.address + b.memory.size), None)
      if buffer is None:
        raise ApiMistake(f"{self.title}: {name} points to {address:#x}, in no buffer that useResource: made resident")
      if buffer.count <= 0: raise ApiMistake(f"{self.title}: {name} points into a buffer that was released")
      if address % SIZES[element]: raise ApiMistake(f"{self.title}: {name} is {address:#x}, no multiple of its element")
      found[name] = MetalBinding(buffer, address - buffer.address)
    return found

  def region(self, name: str, bound: MetalBinding) -> MslRegion:
    if bound.buffer is None: return MslRegion(name, bytearray(bound.data), bytearray([1]) * len(bound.data))
    memory = bound.buffer.memory
    found = MslRegion(name, memory.gpu, memory.written, bound.offset, memory.size)
    touched = self.touched.setdefault(bound.buffer, TouchedBytes())
    found.readers, found.writers = touched.readers, touched.writers
    return found

  def step(self) -> bool:
    """Execute one threadgroup. Return False after the last one."""
    if self.running is None: self.begin()
    assert self.running is not None, "begin makes it"
    if self.order: self.running.run(self.order.pop())
    if self.order: return True
    self.running = None
    for buffer, touched in self.touched.items(): buffer.memory.has_run(touched.writers, touched.granule)
    return False

  def comes_after(self, other: MetalDispatch) -> bool:
    """Has the program ordered this dispatch after another one?"""
    if other.encoder is self.encoder: return other.phase < self.phase
    return other.encoder in self.encoder.known

  def compare(self, earlier: list[MetalDispatch]) -> None:
    """Raise DataRace if an earlier dispatch touches the same bytes, and nothing orders the two."""
    for other in earlier:
      if self.comes_after(other): continue
      for buffer in self.touched.keys() & other.touched.keys():
        if self.touched[buffer].meets(other.touched[buffer]):
          raise DataRace(f"{self.title} and {other.title} touch the same bytes of {buffer.memory.name}, one of them "
                         f"writes, and nothing orders them; encode a barrier between them, or a fence between their "
                         f"encoders")

class EncoderThing(Thing):
  """A compute encoder. known: encoders whose work comes before all of its own."""
  protocols = ("MTLComputeCommandEncoder", "MTLCommandEncoder")

  def __init__(self, buffer: CommandBufferThing, is_concurrent: bool):
    super().__init__(buffer.world)
    self.buffer, self.is_concurrent, self.is_open, self.phase = buffer, is_concurrent, True, 0
    self.pipeline: PipelineThing = None  # type: ignore[assignment]
    self.bindings: dict[int, MetalBinding] = {}
    self.resident: dict[BufferThing, None] = {}
    self.local_bytes = 0
    self.known: set[EncoderThing] = set()
    self.dispatches: list[MetalDispatch] = []

  def ended(self) -> None:
    if self.is_open: raise ApiMistake("an encoder ended without endEncoding")

  def check(self, message: str) -> None:
    if not self.is_open: raise ApiMistake(f"{message} after endEncoding")

  def setComputePipelineState_(self, pipeline: PipelineThing) -> None:
    self.check("setComputePipelineState:")
    self.buffer.hold(pipeline)
    self.pipeline = pipeline

  def setBuffer_offset_atIndex_(self, buffer: BufferThing | None, offset: int, index: int) -> None:
    self.check("setBuffer:offset:atIndex:")
    if index >= MOST_BUFFERS: raise ApiMistake(f"buffer index {index}; there are {MOST_BUFFERS}")
    if buffer is None: return self.bindings.__setitem__(index, MetalBinding(None))
    if offset >= buffer.memory.size: raise ApiMistake(f"offset {offset} of a buffer of {buffer.memory.size} bytes")
    self.buffer.hold(buffer)
    self.buffer.uses[buffer] = None
    self.bindings[index] = MetalBinding(buffer, offset)

  def setBytes_length_atIndex_(self, address: int, length: int, index: int) -> None:
    self.check("setBytes:length:atIndex:")
    if index >= MOST_BUFFERS or not 0 < length <= MOST_BYTES:
      raise ApiMistake(f"setBytes of {length} bytes at index {index}; it takes 1 to {MOST_BYTES}, below {MOST_BUFFERS}")
    self.bindings[index] = MetalBinding(None, 0, ctypes.string_at(address, length))

  def useResource_usage_(self, buffer: BufferThing, usage: int) -> None:
    self.check("useResource:usage:")
    if usage != 3: raise ApiMistake(f"usage {usage} of a buffer; kernels may read and write each of their buffers")
    self.buffer.uses[buffer] = None     # not retained
    self.resident[buffer] = None

  def setThreadgroupMemoryLength_atIndex_(self, length: int, index: int) -> None:
    self.check("setThreadgroupMemoryLength:atIndex:")
    if index or length % UNIT or not 0 < length <= MOST_LOCAL:
      raise ApiMistake(f"threadgroup memory of {length} bytes at index {index}; kernels have one, of a multiple of "
                       f"{UNIT} up to {MOST_LOCAL}")
    self.local_bytes = length

  def memoryBarrierWithScope_(self, scope: int) -> None:
    self.check("memoryBarrierWithScope:")
    if scope not in (1, 2, 3): raise ApiMistake(f"a barrier of scope {scope}")
    if scope & metal.SCOPE_BUFFERS: self.phase += 1

  def waitForFence_(self, fence: FenceThing) -> None:
    self.check("waitForFence:")
    if self.dispatches: raise ApiMistake("waitForFence: after a dispatch; it belongs before all work of an encoder")
    self.known |= fence.known

  def updateFence_(self, fence: FenceThing) -> None:
    self.check("updateFence:")
    fence.known = {known for known in self.known if not known.buffer.is_seen} | {self}

  def dispatchThreadgroups_threadsPerThreadgroup_(self, groups: tuple[int, ...], lanes: tuple[int, ...]) -> None:
    self.check("dispatchThreadgroups:")
    if self.pipeline is None: raise ApiMistake("a dispatch without a pipeline")
    if groups[1:] != (1, 1) or lanes[1:] != (1, 1) or not 0 < groups[0] < 1 << 32:
      raise ApiMistake(f"a grid of {groups} threadgroups of {lanes} threads; kernels have one dimension, of at least 1")
    if not 0 < lanes[0] <= self.pipeline.most:
      raise ApiMistake(f"{lanes[0]} threads in a threadgroup; the pipeline allows {self.pipeline.most}")
    self.check_arguments()
    self.dispatches.append(MetalDispatch(self, groups[0], lanes[0]))
    if not self.is_concurrent: self.phase += 1

  def check_arguments(self) -> None:
    """Raise ApiMistake if an argument of the kernel is missing or misaligned."""
    kernel = self.pipeline.kernel
    for argument in kernel.arguments:
      kind, index = argument.attribute
      if kind == "threadgroup" and not self.local_bytes:
        raise ApiMistake(f"{kernel.name}: no length of threadgroup memory")
      if kind != "buffer": continue
      bound = self.bindings.get(index)
      if bound is None or bound.buffer is None and not bound.data:
        raise ApiMistake(f"{kernel.name}: no argument {index}")
      if argument.type.mark == "&":
        self.check_structure(kernel.name, bound, len(kernel.pointers))
        continue
      if bound.buffer is None and argument.type.space == "device":
        raise ApiMistake(f"{kernel.name}: setBytes for argument {index}, which the kernel may write")
      if bound.offset % SIZES[argument.type.name]:
        raise ApiMistake(f"{kernel.name}: argument {index} begins at {bound.offset}, no multiple of its element")

  def check_structure(self, kernel: str, bound: MetalBinding, count: int) -> None:
    if bound.buffer is not None: raise ApiMistake(f"{kernel}: a structure in a buffer is not part of the virtual Metal")
    if len(bound.data) < 8 * count: raise ApiMistake(f"{kernel}: {len(bound.data)} bytes for {count} pointers")

  def endEncoding(self) -> None:
    self.check("endEncoding")
    self.is_open = False

class CommandBufferThing(Thing):
  """A command buffer. uses: the buffers of its dispatches. rivals: command buffers that the program had not seen to be
  done when it committed this one."""
  protocols = ("MTLCommandBuffer",)

  def __init__(self, queue: QueueThing, number: int):
    super().__init__(queue.world)
    self.queue, self.number, self.state, self.is_seen = queue, number, metal.NOT_ENQUEUED, False
    self.encoders: list[EncoderThing] = []
    self.uses: dict[BufferThing, None] = {}
    self.rivals: list[CommandBufferThing] = []
    self.done: list[MetalDispatch] = []
    self.left: list[MetalDispatch] = []
    self.failure: tuple[int, str] = (0, "")
    self.times = [0.0, 0.0]
    self.hold(queue)

  @property
  def title(self) -> str: return f"command buffer {self.number}"

  def ended(self) -> None:
    self.queue.uncompleted.discard(self)

  def computeCommandEncoderWithDispatchType_(self, kind: int) -> EncoderThing | None:
    if self.state != metal.NOT_ENQUEUED: raise ApiMistake("an encoder of a command buffer that was committed")
    if any(encoder.is_open for encoder in self.encoders): raise ApiMistake("two encoders of a command buffer are open")
    if kind not in (metal.SERIAL, metal.CONCURRENT): raise ApiMistake(f"there is no MTLDispatchType {kind}")
    if "computeCommandEncoder" in self.queue.device.gpu.refused: return None
    self.encoders.append(EncoderThing(self, kind == metal.CONCURRENT))
    return self.encoders[-1]

  def commit(self) -> None:
    if self.state != metal.NOT_ENQUEUED: raise ApiMistake("a command buffer is committed twice")
    if any(encoder.is_open for encoder in self.encoders): raise ApiMistake("commit before endEncoding")
    self.state = metal.COMMITTED
    self.left = [dispatch for encoder in self.encoders for dispatch in encoder.dispatches]
    self.rivals = list(self.queue.unseen)
    for buffer in self.uses:
      buffer.memory.take_writes()
      buffer.memory.users.append(self.title)
    self.queue.commit(self)

  def status(self) -> int:
    """Return the state; the GPU moves first. The program sees results only after this has told that they are there."""
    self.queue.look()
    if self.state in (metal.COMPLETED, metal.ERROR) and not self.is_seen: self.see()
    return self.state

  def see(self) -> None:
    self.is_seen = True
    self.queue.unseen.remove(self)
    for buffer in self.uses:
      buffer.memory.users.remove(self.title)
      if self.state == metal.COMPLETED: buffer.memory.show()
    for encoder in self.encoders:
      encoder.known.clear()      # else each encoder keeps all before it
      encoder.dispatches.clear()
    self.encoders.clear()
    self.rivals.clear()          # `done` stays: later command buffers that were committed before compare with it
    for fence in self.queue.device.fences: fence.known = {known for known in fence.known if not known.buffer.is_seen}

  def error(self) -> Thing | None:
    return ErrorThing(self.world, *self.failure) if self.state == metal.ERROR else None

  def GPUStartTime(self) -> float: return self.times[0]
  def GPUEndTime(self) -> float: return self.times[1]

  # **** the GPU ****

  def step(self, clock: Callable[[], float]) -> None:
    """Execute one threadgroup."""
    if self.state == metal.COMMITTED: self.state, self.times[0] = metal.SCHEDULED, clock()
    if self.left:
      dispatch = self.left[0]
      self.queue.device.gpu.workgroups += 1
      if dispatch.step(): return
      self.left.pop(0)
      dispatch.compare([*self.done, *(other for rival in self.rivals for other in rival.done)])
      self.done.append(dispatch)
    if not self.left: self.finish(metal.COMPLETED, clock())

  def fail(self, number: int, words: str, now: float = 0.0) -> None:
    """End with an error."""
    self.failure, self.left = (number, words), []
    self.finish(metal.ERROR, now)

  def finish(self, state: int, now: float) -> None:
    self.state, self.times[1] = state, now
    self.queue.finish(self)

class FenceThing(Thing):
  """A fence. known: the encoders whose work is done when it is passed."""
  protocols = ("MTLFence",)
  def __init__(self, device: DeviceThing):
    super().__init__(device.world)
    self.known: set[EncoderThing] = set()
    self.device = device
    device.fences.append(self)

  def ended(self) -> None: self.device.fences.remove(self)

class QueueThing(Thing):
  """A command queue. uncompleted: command buffers that are not done. unseen: committed ones, that the program was not
  told to be done. It is an actor: the GPU executes its committed command buffers in order."""
  protocols = ("MTLCommandQueue",)

  def __init__(self, device: DeviceThing):
    super().__init__(device.world)
    self.device, self.made = device, 0
    self.uncompleted: set[CommandBufferThing] = set()
    self.unseen: list[CommandBufferThing] = []
    self.committed: list[CommandBufferThing] = []
    self.hold(device)
    self.world.scheduler.add(self)

  def ended(self) -> None: self.world.scheduler.remove(self)

  def commandBuffer(self) -> CommandBufferThing | None:
    if "commandBuffer" in self.device.gpu.refused: return None
    if len(self.uncompleted) >= MOST_UNCOMPLETED:
      raise ApiMistake(f"commandBuffer blocks without a deadline, since {MOST_UNCOMPLETED} are not done; count them")
    self.made += 1
    buffer = CommandBufferThing(self, self.made)
    self.uncompleted.add(buffer)
    return buffer

  def commit(self, buffer: CommandBufferThing) -> None:
    buffer.count += 1      # until it is done
    self.committed.append(buffer)
    self.unseen.append(buffer)

  def finish(self, buffer: CommandBufferThing) -> None:
    self.uncompleted.discard(buffer)
    self.committed.remove(buffer)
    buffer.drop()

  def look(self) -> None:
    """Let the GPU move."""
    self.world.scheduler.advance()

  def step(self) -> bool:
    """Execute one threadgroup of the oldest command buffer."""
    gpu = self.device.gpu
    if not self.committed or gpu.is_stuck: return False
    buffer = self.committed[0]
    if gpu.faults:
      buffer.fail(*gpu.faults.pop(0))
      return True
    try: buffer.step(gpu.clock)
    except StrictError as error:
      buffer.fail(1, f"Internal Error (00000001): {error.message}")
      raise
    return True
