"""What is told of a GPU that is lost: which kernel it was at, what lies next to an address, how far the queues are."""
from __future__ import annotations
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.config import EMULATE
from tinyhw.device import show_bytes
from tinyhw.drivers.gpu.memory import Part
from tinyhw.drivers.linux.files import PAGE
from tinyhw.errors import TinyError
if TYPE_CHECKING: from tinyhw.drivers.gpu.device import GpuDevice

SHOWN = 8        # names of kernels in a report
NEAR = 1 << 30   # bytes; what is farther away has nothing to do with an address
NULL = 1 << 16   # below it an address is an offset that was added to no address

def place(device: GpuDevice, address: int) -> str:
  """What lies at or next to an address, in buffers, other memory of the device, and what was freed."""
  parts = [(p.address, p.size, "a buffer") for p, _ in device.allocator.live.values() if isinstance(p, Part)]
  found = parts + [(m.address, m.size, f"\"{m.label}\"") for m in device.memories]
  gone = [(m.address, m.size, f"\"{m.label}\", which was freed") for m in device.freed]
  for start, size, label in found + gone:
    if start <= address < start + size: return f"in {label} of {show_bytes(size)} at {start:#x}"
  if address < NULL: return "a null pointer, or an offset from one"
  page = address & -PAGE
  inside = [entry for entry in parts if entry[0] < page + PAGE and entry[0] + entry[1] > page]
  before = max((e for e in found if address - NEAR < e[0] + e[1] <= address), key=lambda e: e[0] + e[1], default=None)
  after = min((e for e in found if address < e[0] < address + NEAR), key=lambda e: e[0], default=None)
  words = [f"{start + size:#x} is the end of {label} of {show_bytes(size)}, {show_bytes(address - start - size)} before it"
           for start, size, label in ([before] if before else [])]
  words += [f"{start:#x} begins {label} of {show_bytes(size)}, {show_bytes(start - address)} behind it"
            for start, size, label in ([after] if after else [])]
  words += [f"on the page is {label} at {start:#x}" for start, _, label in inside[:1]]
  return "; ".join(words) or "no memory of the device is near it"

def current(device: GpuDevice, submitting: Sequence[str] = ()) -> list[str]:
  """What the device is at: a line with the names of kernels, or none. submitting: what it was told last, perhaps not quite yet."""
  with contextlib.suppress(TinyError):  # a virtual device may tell of more errors when it is looked at
    done = device.timeline.completed
    for (epoch, number), names in device.log:
      if epoch == device.epoch and number > done: return [f"submission {number}, which it was at: {_few(names)}"]
  return [f"which was being submitted: {_few(submitting)}"] if submitting else []

def _few(names: Sequence[str]) -> str: return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")

def report(device: GpuDevice, reason: str) -> str:
  """All that is known of a device that is about to be lost."""
  lines = [f"{device.name} ({device.arch}) {reason}"]
  done = device.timeline.completed
  lines.append(f"  submission {done} is the last one that it has done, {device.timeline.submitted} was submitted last")
  lines += [f"  {text}" for text in current(device)]
  lines += [f"  {queue.state()}" for queue in (device.compute, device.copies)]
  packets = device.compute.recent()
  if packets: lines.append("  packets around the place it reads:")
  lines += [f"    {text}" for text in packets]
  if not EMULATE.value:
    lines.append(f"  the kernel's log (dmesg) may tell more; with EMULATE={device.arch} a virtual GPU runs the same and names the instruction")
  return "\n".join(lines)
