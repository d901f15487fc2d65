"""Semantics of all instructions that compute, by name: text in the notation (notation.py), or a function that makes the
text from an instruction's modifiers and constants.

They are executed in Python (nvidia/python.py) and as machine code of the host (nvidia/native). Instructions that move
data between lanes, or to and from memory, are functions (execute/, memory/).
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.emulator.nvidia.semantics import floats, half, integer
from tinyhw.emulator.nvidia.warp.operands import Operands

SEMANTICS: dict[str, str | Callable[[Operands], str]] = {**integer.SEMANTICS, **floats.SEMANTICS, **half.SEMANTICS}

def semantics_of(o: Operands) -> str:
  """Return the semantics of an instruction, "" if it is executed by a function. Raises UnknownInstruction."""
  found = SEMANTICS.get(o.inst.row.name, "")
  return found if isinstance(found, str) else found(o)
