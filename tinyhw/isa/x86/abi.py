"""Calling conventions of x86-64 systems, as data, and the constants of the runtime's system calls.

Sources: System V Application Binary Interface, AMD64 Architecture Processor Supplement, section 3.2; Microsoft, "x64
calling convention".
"""
from __future__ import annotations
import sys

from tinyhw.data_class import dataclass

@dataclass(frozen=True)
class Abi:
  """A calling convention. Registers have their full (64-bit) names, in the order of the manual.

  - arguments: registers of integer and pointer arguments.
  - saved: general registers that a function must preserve; rsp is always preserved.
  - saved_vector: xmm registers whose low 128 bits a function must preserve.
  - shadow_bytes: free space that a caller leaves above the return address.
  - red_zone_bytes: space below rsp that a leaf function may use.
  - stack_align: at a call, rsp is a multiple of it.
  """
  name: str
  arguments: tuple[str, ...]
  saved: tuple[str, ...]
  saved_vector: tuple[str, ...] = ()
  shadow_bytes: int = 0
  red_zone_bytes: int = 0
  stack_align: int = 16
  result: str = "rax"

SYSTEM_V = Abi("sysv", ("rdi", "rsi", "rdx", "rcx", "r8", "r9"), ("rbx", "rbp", "r12", "r13", "r14", "r15"),
               red_zone_bytes=128)
WINDOWS = Abi("win64", ("rcx", "rdx", "r8", "r9"), ("rbx", "rbp", "rdi", "rsi", "r12", "r13", "r14", "r15"),
              tuple(f"xmm{i}" for i in range(6, 16)), shadow_bytes=32)

@dataclass(frozen=True)
class System:
  """An operating system: its convention, and the way in which a thread waits for a change of a 32-bit word.

  wait is "futex" (a system call), "ulock" or "address" (functions whose addresses the driver puts into the context).
  """
  name: str
  abi: Abi
  wait: str

SYSTEMS = {
  "linux": System("linux", SYSTEM_V, "futex"),
  "darwin": System("darwin", SYSTEM_V, "ulock"),    # untested
  "win32": System("win32", WINDOWS, "address"),     # untested
}

# Linux system calls: number in eax; arguments in rdi, rsi, rdx, r10, r8, r9; rcx and r11 are lost.
FUTEX = 202
FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE = 128, 129

# macOS, bsd/sys/ulock.h
UL_COMPARE_AND_WAIT, ULF_WAKE_ALL, ULF_NO_ERRNO = 1, 0x100, 0x01000000

def system(platform: str = sys.platform) -> System:
  """The row for a value of sys.platform.

  Other Unix systems use the System V convention, but their way to wait is unknown: KeyError.
  """
  return SYSTEMS[platform]

def abi(platform: str = sys.platform) -> Abi:
  """The convention of a platform. All systems except Windows use System V's."""
  return WINDOWS if platform == "win32" else SYSTEM_V
