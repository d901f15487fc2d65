"""Permission to use the tile registers of x86-64 (AMX).

Their 8 KiB are saved for each thread that uses them, so Linux gives a process permission when it asks, for all of its
threads. It refuses where a thread has a signal stack that is too small for them. Source: Linux,
Documentation/arch/x86/xstate.rst.
"""
from __future__ import annotations
import ctypes
import sys

ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18    # a system call, its first argument, a number of a state

def allowed() -> bool:
  """Ask the system for the tiles. Returns whether this process may use them."""
  if sys.platform != "linux": return False
  call = ctypes.CDLL(None, use_errno=True).syscall
  call.argtypes, call.restype = (ctypes.c_long,) * 3, ctypes.c_long
  return int(call(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA)) == 0
