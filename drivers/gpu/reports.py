"""Reports about a lost GPU: its current kernel, the line of the program, the memory around an address, the state of the
queues."""
from __future__ import annotations
import contextlib
import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.device import Buffer, show_bytes
from tinyhw.drivers.gpu.launch import GpuProgram, Work
from tinyhw.drivers.gpu.memory import GpuBuffer
from tinyhw.drivers.linux.files import PAGE
from tinyhw.errors import TinyError
from tinyhw.named_tuple import NamedTuple
if TYPE_CHECKING: from tinyhw.drivers.gpu.device import GpuDevice

SHOWN = 8        # kernels in a report
# bytes; memory farther away is unrelated to an address. The nearest buffer is always reported
NEAR = 1 << 30
NULL = 1 << 16   # an address below this is an offset from a null pointer

class MemoryRegion(NamedTuple):
  """Memory that a report may name. size: bytes; holds: its contents, if they are known."""
  address: int
  size: int
  what: str
  holds: str = ""

  @property
  def end(self) -> int: return self.address + self.size

  def seen_from(self, address: int) -> str:
    """Describe its position relative to an address outside of it."""
    if address >= self.end: return f"{self.end:#x} is the end of {self}, {show_bytes(address - self.end)} before it"
    return f"{self.address:#x} begins {self}, {show_bytes(self.address - address)} after it"

  def distance(self, address: int) -> int: return max(self.address - address, address - self.end + 1, 0)
  def __str__(self) -> str: return f"{self.what} of {show_bytes(self.size)}{self.holds and f' with {self.holds}'}"

def buffers(device: GpuDevice) -> list[MemoryRegion]:
  """Return the program's buffers on a device, parts of them that are buffers too, and the code of its kernels.

  An allocator does not know the contents of its memory, so all objects of the process are searched. Only a report may
  take that long.
  """
  found = {id(part): MemoryRegion(part.address, size, "a buffer") for part, size in device.allocator.live.values()
           if isinstance(part, GpuBuffer)}
  for item in gc.get_objects():
    if issubclass(type(item), GpuProgram) and item.device is device and hasattr(item, "place"):
      found[id(item.place)] = MemoryRegion(item.place.address, item.place.size, "code", f"kernel {item.name}")
    elif type(item) is Buffer and item.device == device.name and isinstance(item._buf, GpuBuffer):
      what, kind = "a buffer" if item.base is item else "a part of a buffer", repr(item.dtype).removeprefix("dtypes.")
      found[id(item._buf)] = MemoryRegion(item._buf.address, item.nbytes, what, f"{item.size} {kind}")
  return list(found.values())

def describe_address(device: GpuDevice, address: int) -> str:
  """Describe the memory at or next to an address: buffers, other memory of the device, freed memory, and the nearest
  buffer."""
  if address < NULL: return "a null pointer, or an offset from one"
  known, others = buffers(device), [MemoryRegion(m.address, m.size, f"\"{m.label}\"") for m in device.memories]
  gone = [MemoryRegion(m.address, m.size, f"\"{m.label}\" (which was freed)") for m in device.freed]
  inside = next((p for group in (known, others, gone) for p in sorted(group, key=lambda p: p.size)
                 if p.address <= address < p.end), None)
  if inside is not None: told, words = [inside], [f"in {inside} at {inside.address:#x}"]
  else:
    around = [p for p in known + others if p.distance(address) < NEAR]
    before = max((p for p in around if p.end <= address), key=lambda p: p.end, default=None)
    after = min((p for p in around if p.address > address), key=lambda p: p.address, default=None)
    told = [p for p in (before, after) if p is not None]
    words = [p.seen_from(address) for p in told]
    page = address & -PAGE
    words += [f"on the page is {p} at {p.address:#x}"
              for p in [p for p in known if p.address < page + PAGE and p.end > page][:1]]
  nearest = min((p for p in known if p.what != "code"), key=lambda p: p.distance(address), default=None)
  if nearest is not None and not any(p in known for p in told):
    words.append(f"of all buffers {nearest.seen_from(address)}")
  return "; ".join(words) or "no memory of the device is near it"

def current(device: GpuDevice, submitting: Sequence[Work] = ()) -> list[str]:
  """Return a line with the current kernels of the device and the lines of the program that requested them, or nothing.

  submitting: the last work, which the device may not have seen completely.
  """
  with contextlib.suppress(TinyError):  # a virtual device may report more errors when it is polled
    done = device.timeline.completed
    for (epoch, number), work in device.log:
      if epoch == device.epoch and number > done: return [was_at(number, work)]
  return [f"which was being submitted: {_few(submitting)}"] if submitting else []

def was_at(number: int, work: Sequence[Work]) -> str:
  """Return a line about the submission that a device has not finished."""
  return f"submission {number}, which it was at: {_few(work)}"

def late(what: str, timeout_ms: int) -> str:
  """Return the reason of a device that missed a deadline."""
  return f"did not finish {what} in {timeout_ms / 1000:g} s"

def lost(name: str, reason: str) -> str:
  """Return the message of all later uses of a device."""
  return f"{name} is lost since it {reason}; start the program again, or use another device"

def beginning(name: str, arch: str, reason: str, done: int, submitted: int) -> list[str]:
  """Return the first lines of a report. done, submitted: numbers of submissions."""
  return [f"{name} ({arch}) {reason}", f"  submission {done} is the last one that it has done, {submitted} was "
          f"submitted last"]

def advice(name: str, arch: str) -> str:
  """Return the last line of a report about a real device."""
  return (f"  the kernel's log (dmesg) may tell more; with EMULATE={arch} DEV={name.partition(':')[0]} a virtual GPU "
          f"runs the same and names the "
          "instruction")

def _few(work: Sequence[Work]) -> str:
  shown = [name if line is None else f"{name} of {line[0]}:{line[1]}" for name, line in work[:SHOWN]]
  return ", ".join(shown) + (f" and {len(work) - SHOWN} more" if len(work) > SHOWN else "")

def report(device: GpuDevice, reason: str) -> str:
  """Return all known facts about a device that is about to be lost."""
  lines = beginning(device.name, device.arch, reason, device.timeline.completed, device.timeline.submitted)
  lines += [f"  {text}" for text in current(device)]
  lines += [f"  {queue.state()}" for queue in (device.compute, device.copies)]
  packets = device.compute.recent()
  if packets: lines.append("  packets around the place it reads:")
  lines += [f"    {text}" for text in packets]
  lines += [f"  {text}" for text in device.box.told().splitlines()]
  if not device.box.virtual: lines.append(advice(device.name, device.arch))
  return "\n".join(lines)
