"""Scalar memory instructions: loads into scalar registers, through the scalar cache.

Addresses are of dwords (of bytes for the narrow loads of gfx12). Source: ISA guides of RDNA3, RDNA4, CDNA3: SMEM
instructions.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import TYPE_CHECKING

from tinyhw.emulator.amd.execute.control import scalar_value
from tinyhw.emulator.amd.execute.transfer import element_of
from tinyhw.emulator.amd.execute.transfer_global import ADDRESS_MASK, Resource
from tinyhw.emulator.errors import StrictError, UnknownInstruction
from tinyhw.emulator.memory.memory import SCALAR

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
  from tinyhw.emulator.amd.execute.state import Wave

def bind(uses: NamedOperands, mode: Mode) -> Callable[[Wave], None] | None:
  """Return the function of a scalar load, or None if the name is none."""
  name = uses.name
  buffer = name.startswith("s_buffer_load_")
  if not buffer and not name.startswith("s_load_"): return None
  element = element_of(name.removeprefix("s_buffer_load_").removeprefix("s_load_"))
  if element is None: raise UnknownInstruction(f"{name} is not emulated")
  target, count, base = uses["sdata"].index, uses.count("sdata"), uses["sbase"].index
  offset, register = uses.get("offset"), scalar_value(uses.get("soffset"))
  aligned = ADDRESS_MASK if element.bytes < 4 else ADDRESS_MASK & ~3
  def run(wave: Wave) -> None:
    moved = offset + register(wave)
    if buffer:
      address = Resource([wave.s[base + i] for i in range(4)]).address(0, moved & aligned, element.bytes)
      data = bytes(element.bytes) if address is None else wave.memory.load(address, element.bytes, SCALAR)
    else:
      address = wave.wide(base) + moved & ADDRESS_MASK
      if address & ~aligned:
        raise StrictError(f"{name} from {address:#x}: the hardware ignores the lowest two bits; align the address to 4")
      data = wave.memory.load(address, element.bytes, SCALAR)
    wave.set_wide(target, count, int.from_bytes(data, "little", signed=element.signed) & (1 << 32 * count) - 1)
  return run
