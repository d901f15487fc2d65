"""Which of the GPUs that NVIDIA's kernel driver runs a process uses, and their numbers.

The kernel's driver tells of all, also in a container that was given one of them: those count whose node is there, and not kept from us by the
container's rules. Their order is that of the PCI bus, as nvidia-smi has it. CUDA_VISIBLE_DEVICES chooses among them as it does for the vendor's
library with CUDA_DEVICE_ORDER=PCI_BUS_ID: numbers, or how UUIDs begin, until -1. Virtual GPUs are all used. A GPU is told by its CardInfo
(autogen/nvidia/rm.py).
"""
from __future__ import annotations
import re
from collections.abc import Sequence
from typing import Any

from tinyhw.config import CUDA_VISIBLE_DEVICES, EMULATE
from tinyhw.drivers.linux.files import Box
from tinyhw.errors import DeviceError

INFORMATION = "/proc/driver/nvidia/gpus/{}/information"

def place(info: Any) -> str:
  """Where a GPU is on the PCI bus: 0000:17:00.0."""
  return f"{info.domain:04x}:{info.bus:02x}:{info.slot:02x}.{info.function:x}"

def node_of(info: Any) -> str: return f"/dev/nvidia{info.minor_number}"

def _given(box: Box, infos: Sequence[Any]) -> list[Any]:
  there = sorted((info for info in infos if box.exists(node_of(info))), key=place)
  return [info for info in there if not box.barred(node_of(info))] or there   # where none may be opened, opening tells why

def visible(box: Box, infos: Sequence[Any]) -> list[Any]:
  """The GPUs that this process uses, in order. infos: those that the kernel's driver runs. Raises DeviceError for a choice that cannot be."""
  given = _given(box, infos)
  if EMULATE or not CUDA_VISIBLE_DEVICES or not given: return given
  chosen = list[Any]()
  for word in str(CUDA_VISIBLE_DEVICES).split(","):
    if word.strip() == "-1": break
    info = _named(box, given, word.strip())
    if info in chosen: raise DeviceError(f"{CUDA_VISIBLE_DEVICES.key}={CUDA_VISIBLE_DEVICES} names the GPU at {place(info)} twice; name it once")
    chosen.append(info)
  return chosen

def _named(box: Box, given: list[Any], word: str) -> Any:
  if word.isdecimal() and int(word) < len(given): return given[int(word)]
  start = f"{CUDA_VISIBLE_DEVICES.key}={CUDA_VISIBLE_DEVICES}"
  if word.startswith("MIG-"): raise DeviceError(f"{start} names an instance of a GPU (MIG), which is not driven; NV:CUDA uses it")
  found = [info for info in given if word.startswith("GPU-") and _uuid(box, info).startswith(word.lower())]
  if len(found) == 1: return found[0]
  what = "begins several UUIDs" if found else "is no GPU"
  raise DeviceError(f"{start}: {word!r} {what} of the {len(given)} that this process was given; set it to numbers of nvidia-smi, or unset it")

def _uuid(box: Box, info: Any) -> str:
  """gpu-8932f937-...; nothing where the kernel does not tell it."""
  try: found = re.search(r"UUID:\s*(\S+)", box.read_text(INFORMATION.format(place(info))))
  except OSError: return ""
  return found[1].lower() if found else ""

def missing(box: Box, infos: Sequence[Any], ordinal: int) -> DeviceError:
  """The error for GPU number `ordinal`, which is not among those that this process uses."""
  count, used, given = len(infos), len(visible(box, infos)), _given(box, infos)
  hidden = [node_of(info) for info in infos if info not in given]
  words = f"there is no GPU number {ordinal}: NVIDIA's kernel driver runs {count}"
  if used < count: words += f", and this process uses {used} of them"
  if used < len(given): return DeviceError(f"{words}; look at {CUDA_VISIBLE_DEVICES.key}={CUDA_VISIBLE_DEVICES}")
  if hidden: return DeviceError(f"{words}: without {', '.join(hidden)}; have them given to the container, or made: sudo nvidia-modprobe -c=0")
  if used: return DeviceError(f"{words}; use {'NV' if used == 1 else f'NV to NV:{used - 1}'}")
  return DeviceError(f"{words}; dmesg | grep NVRM says whether the module refused the card")
