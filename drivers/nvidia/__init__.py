"""The NV device: NVIDIA's GPUs driven through the vendor's kernel driver, without its libraries; or (NV:CUDA) with one.

| file | content |
|---|---|
| rm.py | the resource manager: its calls, the version of the kernel driver |
| visible.py | the GPUs that a process uses |
| chips.py | the differences between GPUs |
| addresses.py | addresses that processor and GPUs share |
| card.py | a GPU of this process: its objects and its memory |
| channel.py | the submission of commands |
| commands.py | commands as words |
| launch.py | the QMD of a launch |
| device.py | one GPU |
| faults.py | errors of channels in words |
| selftest/ | the checks of `python3 -m tinyhw selftest NV` |
| selftest/doctor.py | reasons why a GPU cannot be driven |
| cuda.py, library.py, cubin.py | the same GPUs through the vendor's library, NV:CUDA |

Code that is not specific to NVIDIA is in drivers/gpu.
"""
from __future__ import annotations
import contextlib
import errno
import sys
from collections.abc import Callable

from tinyhw.device import Compiled
from tinyhw.drivers.linux.files import Refused, machine
from tinyhw.drivers.nvidia import cuda
from tinyhw.drivers.nvidia.card import opened
from tinyhw.drivers.nvidia.device import NVDevice
from tinyhw.drivers.nvidia.rm import Answered, connect
from tinyhw.errors import DeviceError, DriverError
from tinyhw.machine.ir.code import Code

# A container answers so if it denies programs the calls of the kernel driver, or a sandbox if it does not know one of
# them
WALLED, UNKNOWN = (errno.EPERM, errno.ENOTSUP, errno.ENOTTY, errno.ENOSYS), errno.EINVAL

def walled(refused: Refused) -> bool:
  """Return whether the vendor's library may still reach the GPU."""
  return refused.errno in WALLED or refused.errno == UNKNOWN and not isinstance(refused, Answered)

def open(ordinal: int, runtime: Callable[[str], Code]) -> Compiled:
  """Open GPU number `ordinal` of the kernel driver's. If its calls are denied to programs, open it through the vendor's
  library.

  Raises DeviceError or DriverError, which have advice.
  """
  if sys.platform != "linux":
    raise DeviceError("NVIDIA GPUs are driven through the Linux kernel; use another device on this system")
  try: return open_directly(ordinal)
  except Refused as refused:
    if not walled(refused): raise
    with contextlib.suppress(DeviceError, DriverError): return cuda.open_as("NV", ordinal, refused.message)
    raise

def open_directly(ordinal: int) -> NVDevice:
  """Open it through the kernel driver and nothing else."""
  connection = connect(machine())
  info = connection.find_card(ordinal)
  known = info.gpu_id in connection.cards
  try: card = opened(connection, info)
  except DeviceError as error:
    others = [name_of(number) for number in range(len(connection.list_cards())) if number != ordinal]
    if not others: raise
    raise DeviceError(f"{error.message}; other GPUs here: {', '.join(others)}") from error
  try: return NVDevice(name_of(ordinal), card)
  except Refused as refused:
    # the card may be reserved for us, and the library is another client
    if walled(refused) and not known: connection.close_card(card)
    raise

def name_of(ordinal: int) -> str: return f"NV:{ordinal}" if ordinal else "NV"
