"""Copies of groups of more than four registers, as the sums of products of four warps are: macros made for a single
use."""
from __future__ import annotations

from tinyhw.isa.sass.select.group import part
from tinyhw.machine.ir.inst import Access
from tinyhw.machine.select.macros import Macro
from tinyhw.once import once

@once
def copied(registers: int, upwards: bool) -> Macro:
  """d = s, one register after the other; upwards: d is behind s and may begin inside of it, so the last ones go
  first."""
  order = reversed(range(registers)) if upwards else range(registers)
  return Macro("copy", (("d", Access.WRITE, f"v{registers}"), ("s", Access.READ, f"v{registers}")), 2,
               tuple([f"MOV {part('d', k)}, {part('s', k)}" for k in order]))
