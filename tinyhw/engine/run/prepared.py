"""Run a schedule with all that stays the same from run to run found once: places of storage, loaded kernels, launches.

A schedule runs many times, on other buffers and values of variables each time. So its buffers are numbered: those of
the inputs that kernels read, then those that outlive the schedule, then temporaries (`Places`, kept with the memory
plan). A launch is a row of such numbers (`Row`). A run lists the memory of all numbers, and makes each launch from its
row.

A device keeps the rows of a schedule as long as this lives, and the schedule refers to them weakly. So they end when
the device is closed, or drops kernels. They are made again then, and after a change of a variable on which code
depends.

This is the way of schedules of kernels on single devices whose launches nobody wants to see. realize.py has the general
way: copies, several devices, captures, listings and records.
"""
from __future__ import annotations
import weakref
from collections.abc import Sequence
from typing import Any

from tinyhw.config import BEAM
from tinyhw.device import Buffer, Compiled, Device, Launch
from tinyhw.dtype import dtypes
from tinyhw.engine.memory.buffers import buffer_of, result_buffer
from tinyhw.engine.run import compile as compiling
from tinyhw.engine.run.compile import BoundRunner, value_of, values_of
from tinyhw.engine.schedule.lower import Kernel
from tinyhw.engine.schedule.memory import MemoryPlan
from tinyhw.engine.schedule.schedule import IN_MEMORY, TRANSFER, Canonical, Schedule, strip
from tinyhw.errors import SymbolicError
from tinyhw.helpers import GlobalCounters
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Row(NamedTuple):
  """A launch. places: of its buffers. names: variables whose values precede `fixed`. kernel: it has the source line."""
  program: Any
  places: tuple[int, ...]
  names: tuple[str | UOp, ...]
  fixed: tuple[int, ...]
  grid: int | UOp
  small: bool
  written: tuple[int, ...]
  kernel: Kernel

class Rows:
  """The launches of a group on a device, for a mode (compile.py)."""
  __slots__ = ("opened", "mode", "rows", "__weakref__")

  def __init__(self, opened: Compiled, mode: tuple[int, ...], rows: list[Row]):
    self.opened, self.mode, self.rows = opened, mode, rows

class LaunchGroup:
  """Adjacent kernels of one device, and the places of the buffers of each. device: None for the default one."""
  __slots__ = ("device", "kernels", "places", "known", "__weakref__")

  def __init__(self, device: str | None, kernels: list[Kernel], places: list[tuple[int, ...]]):
    self.device, self.kernels, self.places = device, kernels, places
    self.known: weakref.ref[Rows] | None = None

  def rows(self, device: str, opened: Compiled) -> list[Row]:
    """Return the launches. Kernels are compiled and loaded if the device lacks them."""
    mode, found = compiling.mode(), None if self.known is None else self.known()
    if found is None or found.mode != mode or found.opened is not opened:
      kernels = self.kernels    # for faults.py
      found = Rows(opened, mode, [_row(part, places, kernel) for kernel, parts, places in zip(
        kernels, found_parts(device, [kernel.sink for kernel in kernels]), self.places) for part in parts])
      opened.launches[self], self.known = found, weakref.ref(found)
    return found.rows

def _row(part: BoundRunner, places: tuple[int, ...], kernel: Kernel) -> Row:
  found = part.runner
  if len(found.slots) != len(places): places = tuple([places[slot] for slot in found.slots])
  return Row(found.program, places, found.variables, part.fixed, found.grid, found.small, found.written, kernel)

def found_parts(device: str, sinks: Sequence[UOp]) -> list[tuple[BoundRunner, ...]]:
  """Return the compiled and loaded launches of each of a schedule's kernels on a device."""
  if not BEAM: return compiling.parts(device, sinks)
  from tinyhw.engine.run.tune import tuned  # hidden: a search is loaded where one is wanted
  return compiling.parts(device, [tuned(device, sink) for sink in sinks])

class Places:
  """The numbers of a schedule's buffers under a memory plan.

  inputs: numbers of the canonical graph's inputs that kernels read. kept: the BUFFERs that outlive the schedule.
  temporary: device, bytes and offset in its arena of each other buffer. groups: of kernels. roots: for each root its
  position in `kept`, or None for an ASSIGN.
  """
  def __init__(self, made: Schedule, plan: MemoryPlan, roots: list[int | None]):
    self.kept, self.roots = plan.kept, roots
    self.arenas: list[tuple[Any, int]] = list(plan.arena_bytes.items())
    inputs = dict.fromkeys([b.arg[0][1] for kernel in made.kernels for b in kernel.buffers
                            if b not in plan.offsets and b not in plan.kept])
    self.inputs = list(inputs)
    place_of_input = {number: place for place, number in enumerate(inputs)}
    place_of = {b: place for place, b in enumerate([*plan.kept, *plan.offsets], len(inputs))}
    self.temporary = [(b.arg[1], b.arg[2] * b.dtype.itemsize, offset) for b, offset in plan.offsets.items()]
    self.groups = [LaunchGroup(device, kernels, [tuple([place_of[b] if b in place_of else place_of_input[b.arg[0][1]]
                                                  for b in kernel.buffers]) for kernel in kernels])
                   for device, kernels in made.by_device if not isinstance(device, tuple)]

def places_of(made: Schedule, plan: MemoryPlan, canonical: Canonical) -> Places | None:
  """Return the places of a schedule, from the plan if they were made before. None if it runs in the general way."""
  if plan.places is None: plan.places = _places(made, plan, canonical) or False
  return plan.places or None

def _places(made: Schedule, plan: MemoryPlan, canonical: Canonical) -> Places | None:
  if made.local or any(isinstance(device, tuple) or device == TRANSFER for device, _ in made.by_device): return None
  roots: list[int | None] = []
  for root in map(strip, canonical.roots):
    if root.op in IN_MEMORY: return None
    roots.append(None if root.op is Ops.ASSIGN else plan.kept.index(made.storage[root]))
  results = [k for k in roots if k is not None]
  return None if len(set(results)) < len(results) else Places(made, plan, roots)   # equal roots get copies

def run_prepared(places: Places, canonical: Canonical) -> list[UOp]:
  """Run the kernels. Return the BUFFER nodes of `kept`."""
  inputs = canonical.inputs
  memory: list[Any] = [buffer_of(inputs[k]).get_buf() for k in places.inputs]
  kept = [result_buffer(b.arg[1], b.arg[2], b.dtype) for b in places.kept]
  memory += [node.storage.get_buf() for node in kept]
  arenas = {device: Buffer(device or Device.DEFAULT, size, dtypes.uint8) for device, size in places.arenas}
  memory += [Device[device or Device.DEFAULT].allocator.offset(arenas[device].get_buf(), size, offset)
             for device, size, offset in places.temporary]
  for group in places.groups:
    device = group.device or Device.DEFAULT
    opened = Device[device]
    launch_rows(opened, group.rows(device, opened), memory, canonical.variables)
  return kept

def launch_rows(opened: Compiled, rows: list[Row], memory: list[Any], variables: dict[str, int]) -> None:
  """Launch the rows of a group. Raises SymbolicError for a Variable without a value."""
  launches = []
  for program, places, names, fixed, grid, small, written, kernel in rows:
    if names:
      try: fixed = (*values_of(names, variables), *fixed)
      except KeyError as error:
        raise SymbolicError(f"the variable {error} has no value; bind it: variable.bind(3)") from None
    if isinstance(grid, UOp): grid = value_of(grid, variables)
    launches.append(Launch(program, [memory[k] for k in places], fixed, grid, small, written, kernel.line))
  opened.submit(launches)
  GlobalCounters.kernel_count += len(launches)
