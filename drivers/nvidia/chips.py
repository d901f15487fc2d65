"""Differences between NVIDIA's GPUs for the driver: a row for each supported kind, by the newest compute class of the
GPU."""
from __future__ import annotations
from collections.abc import Collection

from tinyhw.autogen.nvidia import bank
from tinyhw.data_class import dataclass
from tinyhw.errors import DeviceError
from tinyhw.machine.ir.code import Code

@dataclass(frozen=True)
class Chip:
  """A kind of GPU.

  generation: of autogen/nvidia/methods.py and qmd.py. version: SASS_VERSION of a launch. compute, copy, channel,
  usermode: classes of objects. carve_outs: possible sizes of shared memory in a multiprocessor's cache, in KiB.
  """
  arch: str
  generation: int
  compute: int
  copy: tuple[int, ...]
  channel: tuple[int, ...]
  usermode: tuple[int, ...]
  version: int
  carve_outs: tuple[int, ...]
  warps: int                       # of a multiprocessor
  cache_bytes: int                 # of a multiprocessor's own cache and shared memory
  sms_of_tpc: int = 2

  @property
  def arguments(self) -> int:
    """The offset of the first argument in constant bank 0, in bytes."""
    return bank.ARGUMENTS[self.generation]
  @property
  def stack(self) -> int:
    """The offset in constant bank 0 of the word that holds the end of a lane's memory, in bytes."""
    return bank.STACK[self.generation]
  @property
  def reserved(self) -> int:
    """The bytes of a block's shared memory that the system reserves, before the kernel's own."""
    return bank.RESERVED[self.generation]
  @property
  def local_bytes(self) -> int:
    """The most shared memory of a block."""
    return (self.carve_outs[-1] << 10) - (self.reserved or 1024)

SMALL = (0, 8, 16, 32, 64, 100)
MIDDLE = (*SMALL, 132, 164)
LARGE = (*MIDDLE, 196, 228)

# The newest first. A GPU's class list also has the classes of older ones. sm_86 runs the code of sm_80.
CHIPS = (
  Chip("sm_120", 10, 0xCEC0, (0xCAB5, 0xC9B5), (0xCA6F, 0xC96F), (0xC761, 0xC661), 0xC0, SMALL, 48, 128 << 10),
  Chip("sm_100", 10, 0xCDC0, (0xC9B5,), (0xC96F,), (0xC761, 0xC661), 0xA0, LARGE, 64, 256 << 10),
  Chip("sm_90", 9, 0xCBC0, (0xC8B5,), (0xC86F,), (0xC661, 0xC561), 0x90, LARGE, 64, 256 << 10),
  Chip("sm_89", 8, 0xC9C0, (0xC7B5, 0xC6B5), (0xC56F,), (0xC561, 0xC461), 0x89, SMALL, 48, 128 << 10),
  Chip("sm_86", 8, 0xC7C0, (0xC7B5, 0xC6B5), (0xC56F,), (0xC561, 0xC461), 0x86, SMALL, 48, 128 << 10),
  Chip("sm_80", 8, 0xC6C0, (0xC6B5,), (0xC56F,), (0xC561, 0xC461), 0x80, MIDDLE, 64, 192 << 10),
)

WITHOUT_CODE = ("sm_120", "sm_100")  # launches are described for them, but the compiler does not support them yet

def chip_of(classes: Collection[int]) -> Chip | None:
  """Return the kind of a GPU with these classes. Return None if it is older, or newer without any of them."""
  return next((chip for chip in CHIPS if chip.compute in classes), None)

def known_kinds() -> str:
  """Return the kinds with a compiler, the oldest first, as text."""
  return ", ".join(chip.arch for chip in reversed(CHIPS) if chip.arch not in WITHOUT_CODE)

def check_code(arch: str, title: str) -> None:
  """Raise DeviceError for a known kind without a compiler."""
  if arch in WITHOUT_CODE:
    raise DeviceError(f"{title} is of the kind {arch}, for which nothing compiles here yet; use another device")

def newest(wanted: tuple[int, ...], classes: Collection[int]) -> int | None:
  """Return the first of the wanted classes that a GPU has."""
  return next((number for number in wanted if number in classes), None)

def registers_used(code: Code) -> int:
  """Return the count of registers up to the highest one. If the code does not tell, return the maximum."""
  return dict(code.registers).get("r", bank.MOST_REGISTERS - bank.HIDDEN_REGISTERS)

def registers_given(code: Code) -> int:
  """Return the count of registers that a launch gives each lane: those of the code and those of the hardware."""
  return max(bank.LEAST_REGISTERS, registers_used(code) + bank.HIDDEN_REGISTERS)

def shared_config(chip: Chip, kib: int) -> int:
  """Return a launch's code for a split of the cache."""
  return kib // 4 + 1

def split(chip: Chip, block_bytes: int, blocks: int) -> int:
  """Return the smallest split, in KiB, with room for `blocks` blocks of this much shared memory. If none has, return
  the largest."""
  wanted = block_bytes * max(blocks, 1)
  return next((kib for kib in chip.carve_outs if kib << 10 >= wanted), chip.carve_outs[-1])
