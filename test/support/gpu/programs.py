"""The duties of a GPU's device, as functions over a device, with the kernels of the self-test.

For virtual GPUs and for real ones.
"""
from __future__ import annotations
import ctypes
import random
import struct
import time
from collections.abc import Callable, Iterable
from typing import Any

from tinyhw.device import Launch
from tinyhw.drivers.amd.queue import Queue
from tinyhw.drivers.amd.selftest import kernels as amd
from tinyhw.drivers.amd.topology import CHIPS
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.drivers.gpu.selftest.kernels import GROUPS, LANES, SUM, N, Texts, bits
from tinyhw.drivers.linux.files import PAGE
from tinyhw.drivers.nvidia.chips import CHIPS as NVIDIA_CHIPS
from tinyhw.drivers.nvidia.selftest import kernels as nvidia
from tinyhw.machine.ir.code import Code
from tinyhw.selftest.command import assemble

def texts(kind: str) -> Texts:
  """The self-test's kernels for a chip."""
  return (nvidia.TEXTS if kind.startswith("sm_")
          else amd.texts(next(chip.gc for chip in CHIPS.values() if chip.arch == kind)))

def code(kind: str, text: str = "", name: str = "add", arguments: tuple[str, ...] = SUM, **fields: Any) -> Code:
  """A kernel for a chip, of a text in its words: the one that adds, if none is given."""
  found = text or texts(kind).add
  if kind.startswith("sm_"):
    return nvidia.kernel(assemble, next(chip for chip in NVIDIA_CHIPS if chip.arch == kind), found, name, arguments,
                         **fields)
  return amd.kernel(assemble, kind, next(chip.gc for chip in CHIPS.values() if chip.arch == kind), found, name,
                    arguments, **fields)

def spilling(kind: str, private_bytes: int) -> Code:
  """out[i] = 2 * i + 7, both terms spilled."""
  return code(kind, texts(kind).spill, "spill", ("buffer",), private_bytes=private_bytes)

class Vectors:
  """Three buffers of floats on a device (zeros, i, i / 2), and the kernel that adds."""
  def __init__(self, device: GpuDevice):
    self.device, self.program = device, device.load(code(device.arch))
    self.out, self.one, self.half = self.floats([0.0] * N), self.floats(range(N)), self.floats(i / 2 for i in range(N))

  def floats(self, values: Iterable[float]) -> Any:
    opaque = self.device.allocator.alloc(4 * N)
    self.device.allocator.copyin(opaque, memoryview(struct.pack(f"<{N}f", *values)))
    return opaque

  def read(self, opaque: Any) -> list[float]:
    out = bytearray(4 * N)
    self.device.allocator.copyout(memoryview(out), opaque)
    return list(struct.unpack(f"<{N}f", out))

  def launch(self, a: Any, b: Any, x: float = 0.0, groups: int = GROUPS) -> Launch:
    """out = a + b + x."""
    return Launch(self.program, [self.out, a, b], [bits(x)], groups)

def small_rings(patch: Any) -> None:
  """Have devices that are opened from now on rings as small as the kernels' drivers take them, which a virtual GPU has
  soon gone round."""
  patch.setattr(Queue.__init__, "__defaults__", (PAGE,))
  patch.setattr("tinyhw.drivers.amd.device.AQL_RING_BYTES", PAGE)
  patch.setattr("tinyhw.drivers.nvidia.channel.ENTRIES", 64)

# **** what it must do ****

def copies_bytes(device: GpuDevice) -> None:
  """There and back, also more than the memory that they go through holds."""
  for size in (1, 4096, 9 << 20):
    data, out = bytes(i * 7 & 0xFF for i in range(251)) * (size // 251 + 1), bytearray(size)
    opaque = device.allocator.alloc(size)
    device.allocator.copyin(opaque, memoryview(data)[:size])
    device.allocator.copyout(memoryview(out), opaque)
    assert out == data[:size]
    device.allocator.free(opaque)

def computes(device: GpuDevice) -> None:
  """One kernel."""
  v = Vectors(device)
  device.submit([v.launch(v.one, v.half, 100.0)])
  assert v.read(v.out) == [i * 1.5 + 100 for i in range(N)]

def sees_what_was_written_before(device: GpuDevice) -> None:
  """By other dies too, in one submission and over several, with copies between them."""
  v = Vectors(device)
  device.submit([v.launch(v.out, v.half)] * 3)
  device.allocator.copyin(v.one, memoryview(struct.pack(f"<{N}f", *[1.0] * N)))
  device.submit([v.launch(v.out, v.one)])
  assert v.read(v.out) == [i * 1.5 + 1 for i in range(N)]

def replays(device: GpuDevice) -> None:
  """A recording, patched; and times by the GPU's clock."""
  v = Vectors(device)
  recording = device.record([v.launch(v.one, v.half), v.launch(v.out, v.one)])
  recording.submit()
  recording.submit()
  assert v.read(v.out) == [i * 2.5 for i in range(N)]
  recording.patch(1, 2, v.half)
  recording.patch(1, 3, bits(3.0))
  recording.submit()
  assert v.read(v.out) == [i * 2.0 + 3 for i in range(N)]
  recording.patch_grid(1, 0)
  times = recording.submit_timed()
  assert v.read(v.out) == [i * 1.5 for i in range(N)] and len(times) == 2 and all(start < end for start, end in times)

def spills(device: GpuDevice) -> None:
  """Scratch memory, which grows while kernels that use it are recorded."""
  groups = 40
  out = device.allocator.alloc(4 * LANES * groups)
  small = device.load(spilling(device.arch, 68))
  recording = device.record([Launch(small, [out], (), groups)])
  device.load(spilling(device.arch, 1000))
  recording.submit()
  found = bytearray(4 * LANES * groups)
  device.allocator.copyout(memoryview(found), out)
  assert struct.unpack(f"<{LANES * groups}I", found) == tuple(2 * i + 7 for i in range(LANES * groups))

def goes_round_its_rings(device: GpuDevice) -> None:
  """More submissions than a ring holds; none of them has workgroups but the last."""
  v, ring = Vectors(device), device.compute.ring
  start = ring.written
  while ring.written - start <= ring.words: device.submit([v.launch(v.out, v.half, groups=0)] * 4)
  device.submit([v.launch(v.one, v.half)])
  assert v.read(v.out) == [i * 1.5 for i in range(N)]

def starts_everywhere(device: GpuDevice) -> None:
  """Many workgroups: each must have its number, and each die its share."""
  groups = 1000
  sized = [device.allocator.alloc(4 * LANES * groups) for _ in range(2)]
  device.allocator.copyin(sized[1], memoryview(struct.pack(f"<{LANES * groups}f", *range(LANES * groups))))
  program = device.load(code(device.arch))
  device.submit([Launch(program, [sized[0], sized[1], sized[1]], [bits(0.5)], groups)])
  found = bytearray(4 * LANES * groups)
  device.allocator.copyout(memoryview(found), sized[0])
  assert struct.unpack(f"<{LANES * groups}f", found) == tuple(2 * i + 0.5 for i in range(LANES * groups))

def uses_memory_of_the_program(device: GpuDevice) -> None:
  """In place, at an odd place on its page, from two buffers on one page, and given back."""
  v, size = Vectors(device), 4 * N
  own = (ctypes.c_ubyte * (3 * PAGE))()
  start = -(-ctypes.addressof(own) // PAGE) * PAGE + 256
  ctypes.memmove(start, struct.pack(f"<{N}f", *range(N)), size)
  before = len(device.memories)
  first, second = device.allocator.external(start, size), device.allocator.external(start, size)
  device.submit([Launch(v.program, [v.out, first, second], [0], GROUPS)])
  assert v.read(v.out) == [2.0 * i for i in range(N)] and v.read(first) == [float(i) for i in range(N)]
  device.submit([Launch(v.program, [first, v.one, v.one], [0], GROUPS)])
  device.synchronize()
  assert struct.unpack(f"<{N}f", ctypes.string_at(start, size)) == tuple(2.0 * i for i in range(N))
  device.allocator.copyin(second, memoryview(struct.pack(f"<{N}f", *[7.0] * N)))
  device.synchronize()
  assert struct.unpack(f"<{N}f", ctypes.string_at(start, size)) == (7.0,) * N
  del first, second
  device.synchronize()
  assert len(device.memories) == before

def tells_times(device: GpuDevice) -> None:
  """Of launches by the GPU's clock, as nanoseconds of the host's: one after the other, and not longer than the host
  has waited."""
  v = Vectors(device)
  launches = [v.launch(v.one, v.half)] * 5
  for run in (lambda: device.submit_timed(launches), device.record(launches).submit_timed):
    begin = time.perf_counter_ns()
    times = run()
    end = time.perf_counter_ns()
    flat = [stamp for pair in times for stamp in pair]
    assert len(times) == 5 and flat == sorted(flat) and all(start < stop for start, stop in times)
    assert begin <= flat[0] and flat[-1] <= end, "they are the host's nanoseconds"

DUTIES: tuple[Callable[[GpuDevice], None], ...] = (copies_bytes, computes, sees_what_was_written_before, replays,
                                                   spills, goes_round_its_rings,
                                                   starts_everywhere, uses_memory_of_the_program, tells_times)

def works(device: GpuDevice, draw: random.Random) -> bool:
  """Kernels, copies, patches and new code that overwrite what others have read, many times; are the results right?

  For drivers with mistakes.
  """
  it = Sums(device, draw)
  program, (a, b, c, d), (x, y, _, z) = it.program, it.buffers, it.values
  def add(out: Any, p: Any, q: Any) -> Launch: return Launch(program, [out, p, q], [0], GROUPS, written=[0])
  recording = device.record([add(c, a, b)])
  for buffer, values in ((b, y), (d, z), (b, y)):
    recording.patch(0, 2, buffer)
    recording.submit()
    if it.read(c) != [p + q for p, q in zip(x, values)]: return False
  apart = device.record([add(d, a, b), add(c, a, b)])
  apart.patch(1, 1, d)                  # now the second one needs the first one's result
  apart.submit()
  if it.read(c) != [p + 2 * q for p, q in zip(x, y)]: return False
  device.submit([add(c, a, b), add(d, c, c), add(c, b, b)])
  if it.read(d) != [2 * (p + q) for p, q in zip(x, y)] or it.read(c) != [2 * q for q in y]: return False
  for turn in range(3):
    if turn == 1:  # other code at the same place
      program = recording = apart = None  # type: ignore[assignment]
      it.program = None
      program = device.load(code(device.arch, ("NOP\n" if device.arch.startswith("sm_") else "s_nop 0\n")
                                 + texts(device.arch).add))
    device.submit([add(c, a, b), add(a, c, b)] * 3)
    x = [p + 6 * q for p, q in zip(x, y)]
    if it.read(a) != x: return False
    y = [float(turn + i % 7) for i in range(N)]
    it.write(b, y)
  return True

class Sums:
  """Buffers of small integers as floats, what they should hold, and the kernel that adds."""
  def __init__(self, device: GpuDevice, draw: random.Random, count: int = 4):
    self.device, self.program = device, device.load(code(device.arch))
    self.values = [[float(draw.randint(-99, 99)) for _ in range(N)] for _ in range(count)]
    self.buffers = [device.allocator.alloc(4 * N) for _ in range(count)]
    for buffer, values in zip(self.buffers, self.values): self.write(buffer, values)

  def write(self, buffer: Any, values: list[float]) -> None:
    """By the copy engine."""
    self.device.allocator.copyin(buffer, memoryview(bytearray(struct.pack(f"<{N}f", *values))))

  def read(self, buffer: Any) -> list[float]:
    out = bytearray(4 * N)
    self.device.allocator.copyout(memoryview(out), buffer)
    return list(struct.unpack(f"<{N}f", out))

def done_in_order(device: GpuDevice, draw: random.Random) -> None:
  """Sums of random buffers, in submissions and in recordings that are patched, and copies between, beside the same in
  Python."""
  it = Sums(device, draw, 5)
  def launch() -> tuple[list[int], Launch]:
    chosen = [draw.randrange(5) for _ in range(3)]
    return chosen, Launch(it.program, [it.buffers[i] for i in chosen], [0], GROUPS, written=[0])
  def add(chosen: list[int]) -> None:
    it.values[chosen[0]] = [x + y for x, y in zip(it.values[chosen[1]], it.values[chosen[2]])]
  for _ in range(6):
    launches = [launch() for _ in range(draw.randint(1, 4))]
    if draw.random() < 0.5: device.submit([l for _, l in launches])
    else:
      recording = device.record([l for _, l in launches])
      for _ in range(2):
        which, position, buffer = draw.randrange(len(launches)), draw.randrange(3), draw.randrange(5)
        recording.patch(which, position, it.buffers[buffer])
        launches[which][0][position] = buffer
      recording.submit()
    for chosen, _ in launches: add(chosen)
    for i in range(5):
      if draw.random() < 0.4:
        it.values[i] = [float(draw.randint(0, 9))] * N
        it.write(it.buffers[i], it.values[i])
  assert [it.read(buffer) for buffer in it.buffers] == it.values

SEEDS = 16  # of which one at least shows a mistake; what a seed shows does not depend on time

def noticed(work: Callable[[int], bool], kind: type[Exception]) -> bool:
  """Whether a mistake in a driver shows under one of the seeds: work(seed) is false, or raises what is expected."""
  def shows(seed: int) -> bool:
    try: return not work(seed)
    except kind: return True
  return any(map(shows, range(SEEDS)))
