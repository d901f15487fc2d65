"""The NV device: NVIDIA's GPUs driven through the vendor's kernel driver, without its libraries.

| file | what it owns |
|---|---|
| rm.py | the resource manager: its calls, the version of the kernel driver |
| chips.py | what distinguishes GPUs |
| addresses.py | addresses that processor and GPUs share |
| card.py | a GPU of this process: its objects and its memory |
| channel.py | how commands reach it |
| commands.py | commands as words |
| launch.py | what a QMD says of a launch |
| device.py | one GPU |
| faults.py | what errors of channels mean, in words |

What is not NVIDIA's own is in drivers/gpu.
"""
from __future__ import annotations
import sys
from collections.abc import Callable

from tinyhw.drivers.linux.files import machine
from tinyhw.drivers.nvidia.card import Card
from tinyhw.drivers.nvidia.device import NVDevice
from tinyhw.drivers.nvidia.rm import connect
from tinyhw.errors import DeviceError
from tinyhw.machine.code import Code

def open(ordinal: int, runtime: Callable[[str], Code]) -> NVDevice:
  """Open GPU number `ordinal` of those that the kernel's driver runs. Raises DeviceError or DriverError, which say what to do."""
  if sys.platform != "linux": raise DeviceError("NVIDIA GPUs are driven through the Linux kernel; use another device on this system")
  connection = connect(machine())
  infos = connection.list_cards()
  if ordinal >= len(infos):
    raise DeviceError(f"there is no GPU number {ordinal}: NVIDIA's kernel driver runs {len(infos)}; in a container only those that it was given")
  info = infos[ordinal]
  card = connection.cards.get(info.gpu_id)
  if card is None: card = connection.cards[info.gpu_id] = Card(connection, info)
  return NVDevice(f"NV:{ordinal}" if ordinal else "NV", card)
