"""The calling convention, and constants of system calls."""
from tinyhw.isa.arm64 import abi
from tinyhw.isa.arm64.table import regs

def test_registers_of_the_convention() -> None:
  """x18 belongs to the platform: it is neither allocated nor saved. x29 and x30 are saved, and never allocated."""
  assert set(abi.AAPCS64.saved) == set(range(19, 31)) and set(abi.AAPCS64.saved_vector) == set(range(8, 16))
  assert not {18, 29, 30} & set(regs.GENERAL.allocatable) and abi.AAPCS64.stack_align == 16

def test_system_calls() -> None:
  """Linux, include/uapi/asm-generic/unistd.h and include/uapi/linux/futex.h."""
  assert (abi.FUTEX, abi.FUTEX_WAIT_PRIVATE, abi.FUTEX_WAKE_PRIVATE) == (98, 0 | 128, 1 | 128)
