"""What a GPU's device must do, as functions over a device, with the kernels of the self-test. For virtual GPUs and for real ones."""
from __future__ import annotations
import struct
from collections.abc import Callable, Iterable
from typing import Any

from tinyhw.device import Launch
from tinyhw.drivers.amd import selftest_kernels as amd
from tinyhw.drivers.amd.topology import CHIPS
from tinyhw.drivers.gpu.device import GpuDevice
from tinyhw.drivers.gpu.selftest_kernels import GROUPS, LANES, SUM, N, Texts, bits
from tinyhw.drivers.nvidia import selftest_kernels as nvidia
from tinyhw.drivers.nvidia.chips import CHIPS as NVIDIA_CHIPS
from tinyhw.machine.code import Code
from tinyhw.selftest.command import assemble

def texts(kind: str) -> Texts:
  """The self-test's kernels for a chip."""
  return nvidia.TEXTS if kind.startswith("sm_") else amd.texts(next(chip.gc for chip in CHIPS.values() if chip.arch == kind))

def code(kind: str, text: str = "", name: str = "add", arguments: tuple[str, ...] = SUM, **fields: Any) -> Code:
  """A kernel for a chip, of a text in its words: the one that adds, if none is given."""
  found = text or texts(kind).add
  if kind.startswith("sm_"):
    return nvidia.kernel(assemble, next(chip for chip in NVIDIA_CHIPS if chip.arch == kind), found, name, arguments, **fields)
  return amd.kernel(assemble, kind, next(chip.gc for chip in CHIPS.values() if chip.arch == kind), found, name, arguments, **fields)

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
  """More launches than a ring holds; none of them has workgroups but the last."""
  v = Vectors(device)
  rounds = 4 if getattr(getattr(device, "gpu", None), "xccs", 1) > 1 else 40
  for _ in range(rounds): device.submit([v.launch(v.out, v.half, groups=0)] * 100)
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

DUTIES: tuple[Callable[[GpuDevice], None], ...] = (copies_bytes, computes, sees_what_was_written_before, replays, spills, goes_round_its_rings,
                                                   starts_everywhere)
