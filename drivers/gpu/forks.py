"""Vendors' libraries that do not work in the child of a fork: CUDA, Metal, OpenCL, WebGPU.

They have threads and connections of their own, of which the child has no working copies. Drivers of kernel interfaces
(NV, AMD) do without this file: the child may open their GPUs anew.
"""
from __future__ import annotations
import os

from tinyhw.errors import DeviceError

_users: dict[str, int] = {}   # the process that first used a library, by the library's name

def begin_use(library: str) -> None:
  """Note that this process uses a library. Raises DeviceError if it is the child of a process that used it."""
  if _users.setdefault(library, os.getpid()) != os.getpid():
    raise DeviceError(f"this process is the child of one that uses it, and {advice(library)}")

def lost_in_child(device: str, library: str) -> str:
  """Return the reason why a device of the parent is lost in the child of a fork."""
  return f"{device} belongs to the process that opened it; {advice(library)}"

def advice(library: str) -> str:
  """Return the end of a sentence that tells how to use a library in several processes."""
  return f"{library} cannot be used after a fork: start processes with \"spawn\""
