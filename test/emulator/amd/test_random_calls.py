"""Random calls of /dev/kfd. Any call, in any order, is done or refused with an errno, and all counts stay right."""
import ctypes
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from test.support.amd.virtual import AQL, COMPUTE, PAGE, SDMA, Program
from tinyhw.autogen.amd import kfd_ioctl as kfd
from tinyhw.drivers.linux.files import MAP_SHARED, READ_WRITE, map_memory
from tinyhw.emulator.amd.card.memory import VRAM

FLAGS = [1 << bit for bit in (0, 0, 1, 1, 2, 3, 4, 24, 25, 26, 28, 29, 29, 30, 31, 31)]
SIZES = [0, 1, PAGE, 2 * PAGE, 5 * PAGE, 8192, 1 << 20, 1 << 40]
CALLS = 120

class Random:
  """A program of two GPUs that calls at random. handles: those that it got, and some that it never had."""
  def __init__(self, seed: int):
    self.source, self.program = random.Random(seed), Program(count=2, seed=seed)
    self.computer = self.program.computer
    second = self.computer.open("/dev/dri/renderD129", 2)
    self.program.call(kfd.AcquireVm(drm_fd=second.fileno(), gpu_id=self.computer.gpus[1].gpu_id))
    self.files = [self.program.drm, second]
    self.addresses = map_memory(64 * PAGE, prot=0)
    self.handles = [0, 1 << 32 | 1, self.computer.gpus[0].gpu_id << 32 | 999]
    self.offsets = [0, 1 << 40]
    self.mappings: list[Any] = []
    self.shared: list[int] = [3]
    self.queues = [77]

  def gpu_id(self) -> int: return self.source.choice([gpu.gpu_id for gpu in self.computer.gpus] * 4 + [0, 5])

  def allocate(self) -> None:
    flags = sum(set(self.source.sample(FLAGS, self.source.randint(1, 6))))
    address = self.addresses.address + PAGE * self.source.randrange(64) + self.source.choice([0, 0, 0, 0, 8])
    user = map_memory(8 * PAGE).address if flags & 4 else 0
    size = self.source.choice(SIZES)
    made = self.program.call(kfd.AllocMemoryOfGpu(va_addr=address, size=size, gpu_id=self.gpu_id(), flags=flags,
                                                  mmap_offset=user))
    self.handles.append(made.handle)
    self.offsets.append(made.mmap_offset)

  def map(self, kind: Any = kfd.MapMemoryToGpu) -> None:
    ids = [self.gpu_id() for _ in range(self.source.randint(0, 3))]
    array = (ctypes.c_uint32 * max(1, len(ids)))(*ids)
    self.program.call(kind(handle=self.source.choice(self.handles), device_ids_array_ptr=ctypes.addressof(array),
                           n_devices=len(ids)))

  def unmap(self) -> None: self.map(kfd.UnmapMemoryFromGpu)
  def free(self) -> None: self.program.call(kfd.FreeMemoryOfGpu(handle=self.source.choice(self.handles)))

  def mmap(self) -> None:
    file = self.source.choice(self.files)
    mapping = file.mmap(self.source.choice([PAGE, 2 * PAGE, 0]), self.source.choice(self.offsets), 0, READ_WRITE,
                        MAP_SHARED)
    mapping.store32(0, 1)
    self.mappings.append(mapping)

  def munmap(self) -> None:
    if self.mappings: self.mappings.pop(self.source.randrange(len(self.mappings))).close()

  def export(self) -> None:
    self.shared.append(self.program.call(kfd.ExportDmabuf(handle=self.source.choice(self.handles))).dmabuf_fd)

  def import_shared(self) -> None:
    address = self.addresses.address + PAGE * self.source.randrange(64)
    made = self.program.call(kfd.ImportDmabuf(va_addr=address, gpu_id=self.gpu_id(),
                                              dmabuf_fd=self.source.choice(self.shared)))
    self.handles.append(made.handle)

  def create_queue(self) -> None:
    request, _ = self.program.request(self.source.choice([COMPUTE, SDMA, AQL]))
    if self.source.random() < 0.4:
      setattr(request, self.source.choice(request._fields_)[0], self.source.choice([0, 1, PAGE, 1 << 63]))
    self.queues.append(self.program.call(request).queue_id)

  def destroy_queue(self) -> None: self.program.call(kfd.DestroyQueue(queue_id=self.source.choice(self.queues)))

  def event(self) -> None:
    page = self.source.choice([0, 0, 0, *self.handles])
    self.program.call(kfd.CreateEvent(event_page_offset=page, event_type=self.source.randrange(10), auto_reset=1))

  def check(self) -> None:
    """Check that counts agree with the objects."""
    memory = self.computer.memory
    users = Counter(buffer.frames for buffer in memory.buffers.values())
    watchers: list[Any] = [mapping.watcher for mapping in self.computer.mappings]
    users.update(watcher.frames for watcher in watchers)
    shared = [self.computer.descriptor(number) for number in self.shared]
    users.update(item.buffer.frames for item in shared if item is not None)  # type: ignore[attr-defined]
    if self.computer.events.owned is not None: users[self.computer.events.owned] += 1
    assert users == memory.users
    for gpu in self.computer.gpus:
      assert gpu.vram_used == sum(frames.size for frames, owner in memory.vram_frames.items() if owner is gpu)
      mapped = {buffer.mapped[gpu].start for buffer in memory.buffers.values() if gpu in buffer.mapped}
      assert mapped == set(gpu.table.starts) and gpu.table.starts == sorted(gpu.table.starts)
      assert all(one.end <= two.start for one, two in zip(gpu.table.ranges, gpu.table.ranges[1:]))
    assert self.computer.physical.allocated == sum(gpu.vram_used for gpu in self.computer.gpus) + memory.system_used
    assert all(buffer.domain == VRAM for buffer in memory.buffers.values() if buffer.frames in memory.vram_frames)
    held = Counter((buffer.handle, queue.gpu.index) for queue in self.computer.queues.queues.values()
                   for buffer in queue.buffers)
    assert held == Counter({(b.handle, g.index): n for b in memory.buffers.values() for g, n in b.uses.items() if n})

@pytest.mark.parametrize("seed", range(12))
def test_random_calls(seed: int) -> None:
  it = Random(seed)
  calls: list[Callable[[], None]] = [it.allocate, it.allocate, it.allocate, it.map, it.map, it.unmap, it.free, it.mmap,
                                     it.munmap, it.export,
                                     it.import_shared, it.create_queue, it.destroy_queue, it.event]
  outcome: Counter[str] = Counter()
  for _ in range(CALLS):
    call = it.source.choice(calls)
    try:
      call()
      outcome["done"] += 1
    except OSError as error:
      assert error.errno
      outcome["refused"] += 1
    it.check()
  assert min(outcome["done"], outcome["refused"]) > CALLS // 8, outcome
  for mapping in it.mappings: mapping.close()
  for number in it.shared:
    file = it.computer.descriptor(number)
    if file is not None: file.close()
  for area in it.program.areas:
    if area.mapping is not None: area.mapping.close()
  it.computer.end_process()
  assert set(it.computer.census()) <= {"files"}
