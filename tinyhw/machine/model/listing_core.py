"""Bounds of the innermost loops of a listing on a processor's core, as text: ports, issue, latency (scoreboard.py)."""
from __future__ import annotations
from collections.abc import Callable, Mapping, Sequence

from tinyhw.data_class import dataclass
from tinyhw.machine.ir.costs import PipeCost
from tinyhw.machine.ir.inst import Function, MInst
from tinyhw.machine.model.listing import Loop, InstructionInfo, loop_name, work_of
from tinyhw.machine.model.scoreboard import Bound, bound

@dataclass(frozen=True)
class Core:
  """A microarchitecture, as in an ISA's latency tables.

  - ports: the names of the ports, by their characters in port groups.
  - peak: the processor's highest floating-point operations a cycle, for elements like those of these instructions. It
    is 0 if they have none.
  """
  title: str
  source: str
  issue_width: int
  ports: Mapping[str, str]
  costs: Mapping[str, PipeCost]
  peak: Callable[[Sequence[MInst]], float]

def bound_lines(core: Core, function: Function, loops: Sequence[Loop], reader: InstructionInfo) -> list[str]:
  """The bounds of the innermost loops, or nothing if there is none."""
  out = []
  for loop in loops:
    if loop.inner: continue
    found = bound(loop.own, core.costs, core.issue_width)
    work, peak = work_of(loop.own, reader), core.peak(loop.own)
    parts = (f"ports {found.ports:.1f}, load/store {found.memory:.1f}, issue {found.issue:.1f}, latency "
             f"{found.latency:.1f}")
    line = (f"bound of {loop_name(loop, function)}: {found.cycles:.1f} cycles an iteration, by {reason(found, core)} "
            f"({parts})")
    out.append(line)
    rates = []
    if work.operations:
      rate = work.operations / max(found.cycles, 1e-9)
      rates.append(f"{rate:.1f} flop a cycle" + (f" of {peak:.0f}, {100 * rate / peak:.0f} %" if peak else ""))
    moved = work.loaded + work.stored
    if moved: rates.append(f"{moved / max(found.cycles, 1e-9):.1f} bytes a cycle")
    if rates: out.append(f"  at most {'; '.join(rates)}")
    if found.unknown: out.append(f"  not in the table, counted as nothing: {', '.join(found.unknown)}")
  return [*out, f"bounds: {core.title}, caches always hit; table: {core.source}"] if out else []

def port_names(ports: str, core: Core) -> str: return " ".join(core.ports.get(p, p) for p in ports) or "none"

def reason(found: Bound, core: Core) -> str:
  """The reason of a loop's bound: all limits that equal it."""
  reasons = (("ports " + port_names(found.busiest, core), found.ports), ("loads and stores", found.memory),
             ("issue", found.issue),
             ("latency", found.latency))
  return " and ".join(name for name, cycles in reasons if cycles >= found.cycles - 1e-9)
