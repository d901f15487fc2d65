"""The calling convention of RISC-V on Linux, and the constants of the runtime's system calls.

Source: RISC-V ABIs Specification 1.0, chapter "Register Convention"; Linux, include/uapi/asm-generic/unistd.h and
arch/riscv/include/uapi/asm/unistd.h.
"""
from __future__ import annotations

from tinyhw.data_class import dataclass

@dataclass(frozen=True)
class RiscvConvention:
  """saved, saved_float: registers that a function must preserve; of vectors there are none. arguments: the first four.
  stack_align: sp is always a multiple of it."""
  saved: tuple[int, ...]
  saved_float: tuple[int, ...]
  arguments: tuple[int, ...] = (10, 11, 12, 13)
  stack_align: int = 16

LP64D = RiscvConvention((8, 9, *range(18, 28)), (8, 9, *range(18, 28)))

# Linux system calls: number in a7, arguments in a0 to a5, result in a0; other registers are kept
FUTEX = 98
FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE = 128, 129
