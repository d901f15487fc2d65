"""Errors that stop a channel, in words. Numbers are those of Xid messages in the kernel log."""
from __future__ import annotations
import contextlib
from typing import TYPE_CHECKING

from tinyhw.drivers.gpu.reports import describe_address
from tinyhw.errors import TinyError
if TYPE_CHECKING:
  from tinyhw.drivers.nvidia.channel import Channel
  from tinyhw.drivers.nvidia.device import NVDevice

MMU_FAULT = 31
KINDS = {
  13: "a kernel met an exception (an address outside of its window or not aligned, an instruction that there is not, "
  "a stack that overflowed)",
  MMU_FAULT: "touches memory that it has not", 32: "read commands that mean nothing",
  43: "was stopped: a kernel met an error",
  44: "was stopped: the GPU met an error while its state was switched", 45: "was stopped by the driver, because of an "
  "error before",
  48: "met an uncorrectable memory error (ECC)", 62: "stopped: its own processor halted",
  63: "retired a page of its memory (ECC)",
  69: "read a method with data that it does not take", 79: "fell off the bus",
  94: "met a memory error that was contained (ECC)",
  109: "did not switch to other work in time", 119: "does not answer: its system processor (GSP) hangs"}

def explain(device: NVDevice, channel: Channel, number: int) -> str:
  """Describe an error by the end of a sentence that begins with the device's name."""
  what = KINDS.get(number, "was stopped")
  found = f"{what} (Xid {number}, {channel.name} channel)"
  if number != MMU_FAULT: return found
  with contextlib.suppress(TinyError):
    connection = device.card.connection
    info = connection.control(channel.handle, connection.structures.GetMmuFaultInfo())
    address = info.addrHi << 32 | info.addrLo
    kind = bytes(info.faultString).split(b"\0")[0].decode("ascii", "replace")
    if address: found += f" at {address:#x}{f' ({kind})' if kind else ''}: {describe_address(device, address)}"
  return found
