"""What a GPU's fault means, in words: which kernel, which address, what lies next to it, how far the queues are."""
from __future__ import annotations
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.config import EMULATE
from tinyhw.device import show_bytes
from tinyhw.drivers.amd.events import HardwareFault, MemoryFault
from tinyhw.drivers.amd.memory import Part
from tinyhw.drivers.linux.files import PAGE
from tinyhw.errors import TinyError
if TYPE_CHECKING: from tinyhw.drivers.amd.device import AMDDevice

SHOWN = 8        # names of kernels in a report
NEAR = 1 << 30   # bytes; what is farther away has nothing to do with an address
NULL = 1 << 16   # below it an address is an offset that was added to no address

def explain(device: AMDDevice, fault: MemoryFault | HardwareFault) -> str:
  """A fault as the end of a sentence that begins with the device's name."""
  if isinstance(fault, HardwareFault):
    cause = "an uncorrectable memory error" if fault.ecc else "it did not respond"
    kept = "; what was in its memory is gone" if fault.memory_lost else ""
    return f"was reset by the kernel ({'all of it' if fault.whole else 'an engine'}), because of {cause}{kept}"
  kind = "writes to read-only memory" if fault.read_only else "executes what is no code" if fault.no_execute else "touches memory that it has not"
  if fault.error_type: kind = "met a memory error (ECC)"
  return f"{kind} at {fault.address:#x}{' or near it' if fault.imprecise else ''}: {place(device, fault.address)}"

def place(device: AMDDevice, address: int) -> str:
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

def current(device: AMDDevice, submitting: Sequence[str] = ()) -> list[str]:
  """What the device is at: a line with the names of kernels, or none. submitting: what it was told last, perhaps not quite yet."""
  with contextlib.suppress(TinyError):  # a virtual device may tell of more errors when it is looked at
    done = device.timeline.completed
    for (epoch, number), names in device.log:
      if epoch == device.epoch and number > done: return [f"submission {number}, which it was at: {_few(names)}"]
  return [f"which was being submitted: {_few(submitting)}"] if submitting else []

def _few(names: Sequence[str]) -> str: return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")

def report(device: AMDDevice, reason: str) -> str:
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
