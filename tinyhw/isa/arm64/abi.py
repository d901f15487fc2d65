"""The calling convention of AArch64, and the constants of the runtime's system calls.

Linux, macOS and Windows agree on what the kernels of tinyhw use: four arguments in registers, and the registers that a
function must preserve. x18 is left alone everywhere. Source: Procedure Call Standard for the Arm 64-bit Architecture
(AAPCS64), section 6.1; Apple, "Writing ARM64 code for Apple platforms".
"""
from __future__ import annotations

from tinyhw.data_class import dataclass

@dataclass(frozen=True)
class CallingConvention:
  """saved: general registers that a function must preserve. saved_vector: vector registers whose lower 64 bits it must.
  stack_align: sp is always a multiple of it."""
  saved: tuple[int, ...]
  saved_vector: tuple[int, ...]
  stack_align: int = 16

AAPCS64 = CallingConvention(tuple(range(19, 31)), tuple(range(8, 16)))

# Linux system calls: number in x8, arguments in x0 to x5, result in x0; other registers are kept
FUTEX = 98
FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE = 128, 129
