"""Copies, spills and reloads of groups of more than four registers, as the sums of products of four warps are: macros made for a single use."""
from __future__ import annotations
import functools

from tinyhw.isa.sass.select_group import part
from tinyhw.machine.inst import Access
from tinyhw.machine.macros import Macro

AT_ONCE = 4  # registers of one access of local memory; sums have a multiple of them
BYTES = 4    # of a register

@functools.lru_cache(None)
def copied(registers: int, upwards: bool) -> Macro:
  """d = s, one register after the other; upwards: d is behind s and may begin inside of it, so the last ones go first."""
  order = reversed(range(registers)) if upwards else range(registers)
  return Macro("copy", (("d", Access.WRITE, f"v{registers}"), ("s", Access.READ, f"v{registers}")), 2,
               tuple([f"MOV {part('d', k)}, {part('s', k)}" for k in order]))

@functools.lru_cache(None)
def kept(registers: int, slot: int) -> Macro:
  """A group to local memory. slot: of the stack frame, in bytes."""
  return Macro("keep", (("b", Access.READ, f"v{registers}"),), 1,
               tuple([f"STL.128 [RZ+{slot + BYTES * k:#x}], {part('b', k)}" for k in range(0, registers, AT_ONCE)]))

@functools.lru_cache(None)
def reloaded(registers: int, slot: int) -> Macro:
  """The way back."""
  return Macro("kept", (("d", Access.WRITE, f"v{registers}"),), 1,
               tuple([f"LDL.128 {part('d', k)}, [RZ+{slot + BYTES * k:#x}]" for k in range(0, registers, AT_ONCE)]))
