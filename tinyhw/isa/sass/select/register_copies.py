"""Copies of groups of more than four registers, such as the sums of four warps. Each copy is a macro of its own."""
from __future__ import annotations

from tinyhw.isa.sass.select.vector import part
from tinyhw.machine.ir.inst import Access
from tinyhw.machine.select.macros import Macro
from tinyhw.threads import once

@once
def copied(registers: int, upwards: bool) -> Macro:
  """Return a macro of d = s, one register after the other.

  upwards: d is after s and may overlap it, so the last registers go first.
  """
  order = reversed(range(registers)) if upwards else range(registers)
  return Macro("copy", (("d", Access.WRITE, f"v{registers}"), ("s", Access.READ, f"v{registers}")), 2,
               tuple([f"MOV {part('d', k)}, {part('s', k)}" for k in order]))
