"""Lines of RISC-V with named registers: `sh2add x%d, x%i, x%p` (machine/select/lines.py). Names become registers from 8
on: zero, sp and the mask v0 stand for themselves. `%m` is the value of a mask.

A line of vectors ends with the state that it needs, `vadd.vv v%d, v%a, v%b @32x4m1`: bits of an element, elements, and
the share of a register (mf2: half). vector_types.py makes instructions of it.
"""
from __future__ import annotations
import copy

from tinyhw.data_class import replace
from tinyhw.isa.riscv64.asm.syntax import parse
from tinyhw.machine.ir.inst import Inst
from tinyhw.machine.select.lines import CodeLine, LineReader
from tinyhw.threads import once

READER = LineReader(parse, "xfv", 8, "m")

@once
def line(text: str) -> CodeLine:
  """Parse a line."""
  head, mark, state = text.partition(" @")
  made = READER(head)
  if mark: made.row = in_state(made.row, state)
  return made

@once
def in_state(row: Inst, state: str) -> Inst:
  """The row of an instruction in a state."""
  form = copy.copy(row.isa)
  form.state = state
  return replace(row, isa=form)
