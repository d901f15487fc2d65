"""What is told of a GPU that is lost: at which kernel it was, of which line, what lies next to an address, how far the
queues are."""
from __future__ import annotations
import contextlib
import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.device import Buffer, show_bytes
from tinyhw.drivers.gpu.launch import Kernel, Work
from tinyhw.drivers.gpu.memory import Part
from tinyhw.drivers.linux.files import PAGE
from tinyhw.errors import TinyError
from tinyhw.named_tuple import NamedTuple
if TYPE_CHECKING: from tinyhw.drivers.gpu.device import GpuDevice

SHOWN = 8        # kernels in a report
NEAR = 1 << 30   # bytes; what is farther away has nothing to do with an address, but for the nearest buffer, which is
                 # always told
NULL = 1 << 16   # below it an address is an offset that was added to no address

class Piece(NamedTuple):
  """Memory that a report may name. size: bytes; holds: its contents, where somebody knows them."""
  address: int
  size: int
  what: str
  holds: str = ""

  @property
  def end(self) -> int: return self.address + self.size

  def seen_from(self, address: int) -> str:
    """Where it lies, for who looks at an address outside of it."""
    if address >= self.end: return f"{self.end:#x} is the end of {self}, {show_bytes(address - self.end)} before it"
    return f"{self.address:#x} begins {self}, {show_bytes(self.address - address)} behind it"

  def distance(self, address: int) -> int: return max(self.address - address, address - self.end + 1, 0)
  def __str__(self) -> str: return f"{self.what} of {show_bytes(self.size)}{self.holds and f' with {self.holds}'}"

def buffers(device: GpuDevice) -> list[Piece]:
  """The program's buffers on a device, parts of them that are buffers too, and the code of its kernels.

  An allocator does not know what is in its memory, so all objects of the process are asked: only a report may take so
  long.
  """
  found = {id(part): Piece(part.address, size, "a buffer") for part, size in device.allocator.live.values()
           if isinstance(part, Part)}
  for item in gc.get_objects():
    if issubclass(type(item), Kernel) and item.device is device and hasattr(item, "place"):
      found[id(item.place)] = Piece(item.place.address, item.place.size, "code", f"kernel {item.name}")
    elif type(item) is Buffer and item.device == device.name and isinstance(item._buf, Part):
      what, kind = "a buffer" if item.base is item else "a part of a buffer", repr(item.dtype).removeprefix("dtypes.")
      found[id(item._buf)] = Piece(item._buf.address, item.nbytes, what, f"{item.size} {kind}")
  return list(found.values())

def place(device: GpuDevice, address: int) -> str:
  """What lies at or next to an address, in buffers, other memory of the device, and what was freed; and the buffer
  that is nearest to it."""
  if address < NULL: return "a null pointer, or an offset from one"
  known, others = buffers(device), [Piece(m.address, m.size, f"\"{m.label}\"") for m in device.memories]
  gone = [Piece(m.address, m.size, f"\"{m.label}\" (which was freed)") for m in device.freed]
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
  """What the device is at: a line with the names of kernels and where the program wants them, or none.

  submitting: what it was told last, perhaps not quite yet.
  """
  with contextlib.suppress(TinyError):  # a virtual device may tell of more errors when it is looked at
    done = device.timeline.completed
    for (epoch, number), work in device.log:
      if epoch == device.epoch and number > done: return [was_at(number, work)]
  return [f"which was being submitted: {_few(submitting)}"] if submitting else []

def was_at(number: int, work: Sequence[Work]) -> str:
  """A line about the submission that a device has not done."""
  return f"submission {number}, which it was at: {_few(work)}"

def late(what: str, timeout_ms: int) -> str:
  """The reason of a device that missed a deadline."""
  return f"did not finish {what} in {timeout_ms / 1000:g} s"

def lost(name: str, reason: str) -> str:
  """What whoever uses a device is told from then on."""
  return f"{name} is lost since it {reason}; start the program again, or use another device"

def beginning(name: str, arch: str, reason: str, done: int, submitted: int) -> list[str]:
  """The first lines of a report. done, submitted: numbers of submissions."""
  return [f"{name} ({arch}) {reason}", f"  submission {done} is the last one that it has done, {submitted} was "
          f"submitted last"]

def advice(name: str, arch: str) -> str:
  """The last line of a report about a real device."""
  return (f"  the kernel's log (dmesg) may tell more; with EMULATE={arch} DEV={name.partition(':')[0]} a virtual GPU "
          f"runs the same and names the "
          "instruction")

def _few(work: Sequence[Work]) -> str:
  shown = [name if line is None else f"{name} of {line[0]}:{line[1]}" for name, line in work[:SHOWN]]
  return ", ".join(shown) + (f" and {len(work) - SHOWN} more" if len(work) > SHOWN else "")

def report(device: GpuDevice, reason: str) -> str:
  """All that is known of a device that is about to be lost."""
  lines = beginning(device.name, device.arch, reason, device.timeline.completed, device.timeline.submitted)
  lines += [f"  {text}" for text in current(device)]
  lines += [f"  {queue.state()}" for queue in (device.compute, device.copies)]
  packets = device.compute.recent()
  if packets: lines.append("  packets around the place it reads:")
  lines += [f"    {text}" for text in packets]
  lines += [f"  {text}" for text in device.box.told().splitlines()]
  if not device.box.virtual: lines.append(advice(device.name, device.arch))
  return "\n".join(lines)
