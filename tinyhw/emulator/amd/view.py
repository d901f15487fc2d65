"""Text view of a wave: registers lane by lane, and the registers that an instruction has changed.

A register to show is `v4`, `v4:f32`, `s2`, `s[2:3]`, `vcc`, `exec`, `scc`, `m0`. Types are those of emulator/view.py.
"""
from __future__ import annotations
import re
from typing import TYPE_CHECKING

from tinyhw.emulator.amd.checks.strict import SCC, scalar_name, vector_name
from tinyhw.emulator.view import FORMATS, by_lane
from tinyhw.errors import ArgumentError
from tinyhw.isa.amd.table import regs
from tinyhw.named_tuple import NamedTuple

if TYPE_CHECKING:
  from tinyhw.emulator.amd.execute.decoded import DecodedInstruction
  from tinyhw.emulator.amd.execute.state import Wave

_PLACE = re.compile(r"(?:([vas])(\d+)|([vas])\[(\d+):(\d+)\]|(vcc|exec|m0|scc))(?::(\w+))?$")
_NAMED = {"vcc": regs.VCC, "exec": regs.EXEC, "m0": regs.M0}

class ShownRegisters(NamedTuple):
  """Registers to show. `file` is v, a, s, or a name. The others are the first register, the count, and the type."""
  file: str
  first: int
  units: int
  form: str

def parse_registers(text: str) -> ShownRegisters:
  """Parse the name of registers. Raises ArgumentError."""
  found = _PLACE.match(text)
  form = found[7] or "x32" if found else ""
  if found is None or form not in FORMATS:
    raise ArgumentError(f"{text} is no register to show; v4, v4:f32, s2, s[2:3], vcc, exec, m0 and scc are, with "
                        f"{', '.join(FORMATS)} as types")
  if found[6]: return ShownRegisters(found[6], _NAMED.get(found[6], 0), 1, form)
  first = int(found[2] or found[4])
  return ShownRegisters(found[1] or found[3], first, int(found[5]) - first + 1 if found[5] else 1, form)

def show(wave: Wave, what: ShownRegisters) -> list[str]:
  """Return lines with the registers. A lane that was never written is -. An inactive lane is in parentheses."""
  if what.file == "scc": return [f"scc = {wave.scc}" if wave.strict.scalars >> SCC & 1 else "scc = -"]
  if what.file in ("v", "a"):
    rows = [what.first + i + 256 * (what.file == "a") for i in range(what.units)]
    return [line for row in rows for line in vector(wave, row, what.form)]
  count = wave.lanes // 32 if what.file in ("vcc", "exec") else what.units
  return [f"{scalar_name(what.first + i)} = {scalar(wave, what.first + i, what.form)}" for i in range(count)]

def scalar(wave: Wave, index: int, form: str) -> str:
  if not wave.strict.scalars >> index & 1: return "-"
  return FORMATS[form](wave.s[index])

def vector(wave: Wave, row: int, form: str) -> list[str]:
  """Return the lines of a vector register, a few lanes in each."""
  name = vector_name(row)
  if row not in wave.strict.vectors: return [f"{name}: the kernel has no such register"]
  cells = [cell(wave, row, lane, form) for lane in range(wave.lanes)]
  return by_lane(name, cells)

def cell(wave: Wave, row: int, lane: int, form: str) -> str:
  text = FORMATS[form](wave.u[row][lane]) if wave.strict.vectors.get(row, 0) >> lane & 1 else "-"
  return text if wave.exec >> lane & 1 else f"({text})"

def changes(wave: Wave, step: DecodedInstruction) -> str:
  """Return one line: the scalar registers that an instruction has just written, and the first active lanes of vector
  registers."""
  floating = any(spec.type is not None and spec.type.floating and spec.name == "vdst"
                 for spec in step.inst.row.isa.specs)
  parts = [f"{scalar_name(i)}={wave.s[i]:#x}" for i in range(regs.EXEC + 2) if step.scalar_writes >> i & 1
           and i != regs.NULL]
  if step.scalar_writes >> SCC & 1: parts.append(f"scc={wave.scc}")
  for row in step.vector_writes:
    if row in wave.strict.pending: parts.append(f"{vector_name(row)}=(pending)")
    else:
      parts.append(f"{vector_name(row)}=" + " ".join(FORMATS["f32" if floating else "x32"](wave.u[row][lane])
                                                     for lane in list(wave.active)[:4])
                   + (" ..." if len(wave.active) > 4 else ""))
  return "  ".join(parts)
