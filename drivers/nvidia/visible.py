"""The GPUs of NVIDIA's kernel driver that a process uses, and their numbers.

The kernel driver lists all GPUs, also in a container that was given one of them. A GPU counts if its node exists, and
the container's rules allow it. The order is that of the PCI bus, as in nvidia-smi.

CUDA_VISIBLE_DEVICES chooses among them as for the vendor's library with CUDA_DEVICE_ORDER=PCI_BUS_ID (CUDA Programming
Guide, 5.2.1.1). It lists numbers, or prefixes of UUIDs. The list ends at the first word that is no GPU's, such as -1.
An empty list chooses none. The word `all` counts as unset, as in the container runtime's NVIDIA_VISIBLE_DEVICES, since
a variable of ours has a default. To CUDA it names no GPU. The guide does not define a GPU that is named twice; it is
refused here. Virtual GPUs are all used. A GPU is described by its CardInfo (autogen/nvidia/rm.py).
"""
from __future__ import annotations
import re
from collections.abc import Sequence
from typing import Any

from tinyhw.config import CUDA_VISIBLE_DEVICES, EMULATE
from tinyhw.drivers.linux.files import HostFiles
from tinyhw.errors import DeviceError

INFORMATION = "/proc/driver/nvidia/gpus/{}/information"

def pci_address(info: Any) -> str:
  """Return the position of a GPU on the PCI bus: 0000:17:00.0."""
  return f"{info.domain:04x}:{info.bus:02x}:{info.slot:02x}.{info.function:x}"

def node_of(info: Any) -> str: return f"/dev/nvidia{info.minor_number}"

def _given(box: HostFiles, infos: Sequence[Any]) -> list[Any]:
  there = sorted((info for info in infos if box.exists(node_of(info))), key=pci_address)
  # if none may be opened, the attempt to open one tells why
  return [info for info in there if not box.barred(node_of(info))] or there

def visible(box: HostFiles, infos: Sequence[Any]) -> list[Any]:
  """Return the GPUs that this process uses, in order. infos: all GPUs of the kernel driver.

  Raises DeviceError for an invalid choice.
  """
  given = _given(box, infos)
  return given if EMULATE or CUDA_VISIBLE_DEVICES == CUDA_VISIBLE_DEVICES.default else _chosen(box, given)[0]

def _chosen(box: HostFiles, given: list[Any]) -> tuple[list[Any], str | None]:
  """Return the GPUs that CUDA_VISIBLE_DEVICES names, and the word that ends them, or None if the list ends."""
  chosen = list[Any]()
  for word in map(str.strip, str(CUDA_VISIBLE_DEVICES).split(",")):
    found = _named(box, given, word)
    if len(found) != 1: return chosen, word
    if found[0] in chosen:
      raise DeviceError(f"{CUDA_VISIBLE_DEVICES.key}={CUDA_VISIBLE_DEVICES} names the GPU at "
                        f"{pci_address(found[0])} twice; "
                        f"name it once")
    chosen += found
  return chosen, None

def _named(box: HostFiles, given: list[Any], word: str) -> list[Any]:
  """Return the GPUs that a word may mean."""
  if word.startswith("MIG-"):
    raise DeviceError(f"{CUDA_VISIBLE_DEVICES.key}={CUDA_VISIBLE_DEVICES} names an instance of a GPU (MIG), which is "
                      f"not driven; NV:CUDA uses it")
  if word.isdecimal(): return given[int(word):][:1]
  return [info for info in given if word.startswith("GPU-") and _uuid(box, info).startswith(word.lower())]

def _uuid(box: HostFiles, info: Any) -> str:
  """Return gpu-8932f937-..., or "" if the kernel does not tell it."""
  try: found = re.search(r"UUID:\s*(\S+)", box.read_text(INFORMATION.format(pci_address(info))))
  except OSError: return ""
  return found[1].lower() if found else ""

def advice(box: HostFiles, infos: Sequence[Any]) -> str:
  """Return advice if CUDA_VISIBLE_DEVICES hides GPUs, else ""."""
  given = _given(box, infos)
  if len(visible(box, infos)) == len(given): return ""
  name = CUDA_VISIBLE_DEVICES.key
  if not CUDA_VISIBLE_DEVICES:
    return f"unset {name}, or set it to numbers of nvidia-smi: it is empty, which leaves no GPU"
  end = _chosen(box, given)[1]
  if end is None or end == "-1": return f"look at {name}={CUDA_VISIBLE_DEVICES}"
  what = "begins several UUIDs" if _named(box, given, end) else "is no GPU"
  return (f"look at {name}={CUDA_VISIBLE_DEVICES}, which ends at {end!r}: that {what} of the {len(given)} that this "
          f"process was given")

def missing(box: HostFiles, infos: Sequence[Any], ordinal: int) -> DeviceError:
  """Return the error for GPU number `ordinal`, which is not among those that this process uses."""
  count, used, given = len(infos), len(visible(box, infos)), _given(box, infos)
  hidden = [node_of(info) for info in infos if info not in given]
  words = f"there is no GPU number {ordinal}: NVIDIA's kernel driver runs {count}"
  if used < count: words += f", and this process uses {used} of them"
  if used < len(given): return DeviceError(f"{words}; {advice(box, infos)}")
  if hidden:
    missing = "".join(f" -c={info.minor_number}" for info in infos if not box.exists(node_of(info)))
    made = f", or made: sudo nvidia-modprobe{missing}" if missing else ""   # existing nodes are denied to us
    return DeviceError(f"{words}: without {', '.join(hidden)}; have them given to the container{made}")
  if used: return DeviceError(f"{words}; use {'NV' if used == 1 else f'NV to NV:{used - 1}'}")
  return DeviceError(f"{words}; dmesg | grep NVRM says whether the module refused the card")
