"""Which of the GPUs that NVIDIA's kernel driver runs a process uses, and their numbers.

The kernel's driver tells of all, also in a container that was given one of them: those count whose node is there, and
not kept from us by the container's rules. Their order is that of the PCI bus, as nvidia-smi has it.
CUDA_VISIBLE_DEVICES chooses among them as it does for the vendor's library with CUDA_DEVICE_ORDER=PCI_BUS_ID (CUDA
Programming Guide, 5.2.1.1): numbers, or how UUIDs begin, up to the first word that is no GPU's, such as -1; none where
it is empty. The word `all` counts as unset, as in the container runtime's NVIDIA_VISIBLE_DEVICES, since a variable of
ours has a default; to CUDA it names no GPU. What the guide leaves open is refused: a GPU named twice. Virtual GPUs are
all used. A GPU is told by its CardInfo (autogen/nvidia/rm.py).
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
  # where none may be opened, opening tells why
  return [info for info in there if not box.barred(node_of(info))] or there

def visible(box: Box, infos: Sequence[Any]) -> list[Any]:
  """The GPUs that this process uses, in order. infos: those that the kernel's driver runs.

  Raises DeviceError for a choice that cannot be.
  """
  given = _given(box, infos)
  return given if EMULATE or CUDA_VISIBLE_DEVICES == CUDA_VISIBLE_DEVICES.default else _chosen(box, given)[0]

def _chosen(box: Box, given: list[Any]) -> tuple[list[Any], str | None]:
  """The GPUs that CUDA_VISIBLE_DEVICES names, and the word that ends them; None where they end with the list."""
  chosen = list[Any]()
  for word in map(str.strip, str(CUDA_VISIBLE_DEVICES).split(",")):
    found = _named(box, given, word)
    if len(found) != 1: return chosen, word
    if found[0] in chosen:
      raise DeviceError(f"{CUDA_VISIBLE_DEVICES.key}={CUDA_VISIBLE_DEVICES} names the GPU at {place(found[0])} twice; "
                        f"name it once")
    chosen += found
  return chosen, None

def _named(box: Box, given: list[Any], word: str) -> list[Any]:
  """The GPUs that a word may mean."""
  if word.startswith("MIG-"):
    raise DeviceError(f"{CUDA_VISIBLE_DEVICES.key}={CUDA_VISIBLE_DEVICES} names an instance of a GPU (MIG), which is "
                      f"not driven; NV:CUDA uses it")
  if word.isdecimal(): return given[int(word):][:1]
  return [info for info in given if word.startswith("GPU-") and _uuid(box, info).startswith(word.lower())]

def _uuid(box: Box, info: Any) -> str:
  """gpu-8932f937-...; nothing where the kernel does not tell it."""
  try: found = re.search(r"UUID:\s*(\S+)", box.read_text(INFORMATION.format(place(info))))
  except OSError: return ""
  return found[1].lower() if found else ""

def advice(box: Box, infos: Sequence[Any]) -> str:
  """What to do where CUDA_VISIBLE_DEVICES leaves GPUs out; nothing where it does not."""
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

def missing(box: Box, infos: Sequence[Any], ordinal: int) -> DeviceError:
  """The error for GPU number `ordinal`, which is not among those that this process uses."""
  count, used, given = len(infos), len(visible(box, infos)), _given(box, infos)
  hidden = [node_of(info) for info in infos if info not in given]
  words = f"there is no GPU number {ordinal}: NVIDIA's kernel driver runs {count}"
  if used < count: words += f", and this process uses {used} of them"
  if used < len(given): return DeviceError(f"{words}; {advice(box, infos)}")
  if hidden:
    missing = "".join(f" -c={info.minor_number}" for info in infos if not box.exists(node_of(info)))
    made = f", or made: sudo nvidia-modprobe{missing}" if missing else ""   # nodes that are there are kept from us
    return DeviceError(f"{words}: without {', '.join(hidden)}; have them given to the container{made}")
  if used: return DeviceError(f"{words}; use {'NV' if used == 1 else f'NV to NV:{used - 1}'}")
  return DeviceError(f"{words}; dmesg | grep NVRM says whether the module refused the card")
