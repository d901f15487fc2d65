"""Bounds of a kernel on a GPU, as lines of a listing: waves that a unit holds, the resources that each loop takes, and
the card's roofline.

occupancy.py and waves.py compute the numbers. `bounds_of` returns them without the text.
"""
from __future__ import annotations
from collections.abc import Callable, Sequence

from tinyhw.data_class import dataclass
from tinyhw.machine.ir.inst import Function, MInst
from tinyhw.machine.model.listing import Loop, InstructionInfo, find_loops, innermost, loop_name, accessed, size
from tinyhw.machine.model.occupancy import KernelResources, Residency, most_registers, residency
from tinyhw.machine.model.waves import Cost, Model, kernel_cost, loop_cost
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

NEAR = 0.9      # resources that take this share of a loop's cycles are listed with the greatest

@dataclass(frozen=True)
class CardModel:
  """An ISA's data about the card.

  - source: of the model's numbers.
  - units: number of model.unit on the card.
  - memory_rate: bytes of memory a cycle.
  - operations, touched: of one wave's instruction, as in InstructionInfo.
  - peak: the card's highest operations a cycle and SIMD with such instructions, and the type of their elements. It is 0
    if they compute nothing.
  """
  title: str
  source: str
  model: Model
  units: int
  clock_ghz: float
  memory_rate: float
  operations: Callable[[MInst], int]
  touched: Callable[[MInst], int]
  peak: Callable[[Sequence[MInst]], tuple[float, str]]

@dataclass(frozen=True)
class RegionBound:
  """A loop, or all of a kernel (loop is None).

  - cost: of one iteration by all waves of a unit.
  - operations: of one wave in it.
  - peak: operations a cycle of a unit.
  - element: the type of the peak, as the ISA names it.
  - times: iterations, if their number is known.
  """
  loop: Loop | None
  cost: Cost
  operations: float
  peak: float
  element: str
  times: int | None = None

  @property
  def rate(self) -> float:
    """Operations a cycle and unit, at most."""
    return self.operations * self.cost.waves / max(self.cost.cycles, 1e-9)

  @property
  def share(self) -> float:
    """The share of the peak, at most."""
    return self.rate / self.peak if self.peak else 0.0

  @property
  def binding(self) -> str:
    """The resource that takes longest, or "latency"."""
    return (self.cost.binding() or ["nothing"])[0]

@dataclass(frozen=True)
class Bounds:
  """The bounds of a kernel.

  - parts: its loops in layout order.
  - whole: all of it, once.
  - hottest: the outermost loop that takes longest, or the whole.
  - operations: of the launch, or None if that depends on the launch.
  - memory: the least bytes that memory must transfer, or None if that depends on the launch.
  - rounds: in which the card executes the workgroups, as many at once as it holds. None as above.
  - seconds: of all rounds, at least. None as above.
  """
  held: Residency
  parts: tuple[RegionBound, ...]
  whole: RegionBound
  hottest: RegionBound
  operations: float | None
  memory: float | None
  rounds: int | None
  seconds: float | None

def executions(function: Function, loops: Sequence[Loop]) -> list[int]:
  """The number of executions of each block by a wave: the product of the iterations of all loops around it. Loops of
  unknown length count once, and rare blocks not at all."""
  counts = []
  for i in range(len(function.blocks)):
    count, loop = int(not function.blocks[i].rare), innermost(loops, i)
    while loop is not None: count, loop = count * (loop.times or 1), loop.parent
    counts.append(count)
  return counts

def bounds_of(function: Function, kernel: KernelResources, card: CardModel,
              loops: Sequence[Loop] | None = None) -> Bounds:
  """The bounds of a laid out kernel. loops: of the function, if they are known already."""
  loops = find_loops(function) if loops is None else loops
  model, counts = card.model, executions(function, loops)
  held = residency(model.unit, kernel, card.units)
  def part(loop: Loop | None, cost: Cost) -> RegionBound:
    first, last = (loop.first, loop.last) if loop is not None else (0, len(function.blocks) - 1)
    insts = [inst for block in function.blocks[first:last + 1] for inst in block.insts]
    times = (loop.times or 1) if loop is not None else 1
    around = counts[first] // times if loop is not None else 1
    work = sum(count * sum(map(card.operations, block.insts))
               for count, block in zip(counts[first:last + 1], function.blocks[first:last + 1]))
    peak, element = card.peak(insts)
    return RegionBound(loop, cost, work / max(around * times, 1), peak * model.unit.simds, element,
                       loop.times if loop is not None else 1)
  parts = tuple(part(loop, loop_cost(model, function, loop, held)) for loop in loops)
  whole = part(None, kernel_cost(model, function, loops, held))
  outer = [p for p in parts if p.loop is not None and p.loop.parent is None]
  hottest = max(outer, key=lambda p: p.cost.cycles * (p.times or 1), default=whole)
  known = all(loop.times is not None for loop in loops)
  if not known or kernel.grid is None: return Bounds(held, parts, whole, hottest, None, None, None, None)
  waves = held.group_waves * kernel.grid
  full, rest = divmod(kernel.grid, card.units * held.groups)
  cycles = full * whole.cost.cycles
  if rest: cycles += last_round(whole.cost, -(-rest // card.units) / held.groups)
  return Bounds(held, parts, whole, hottest, whole.operations * waves, memory_of(function, counts, card, waves),
                full + bool(rest), cycles / (card.clock_ghz * 1e9))

def last_round(cost: Cost, share: float) -> float:
  """The cycles of a round with this share of the workgroups that a unit holds: those of the resources that they take,
  at least those of a workgroup alone."""
  return max([cost.alone, *[share * cycles for cycles in cost.resources.values()]])

def memory_of(function: Function, counts: Sequence[int], card: CardModel, waves: int) -> float:
  """Bytes that memory must transfer: each buffer once, or its accessed part."""
  touched: dict[UOp, float] = {}
  for count, block in zip(counts, function.blocks):
    for inst in block.insts:
      place = accessed(inst)
      buffer = place.src[0] if place is not None else None
      if buffer is not None and buffer.op is Ops.PARAM:
        touched[buffer] = touched.get(buffer, 0.0) + float(count * waves * card.touched(inst))
  return sum([min(total, float(buffer.arg[1] * buffer.dtype.itemsize)) for buffer, total in touched.items()])

# ***** text *****

def wave_lines(kernel: KernelResources, card: CardModel, function: Function, loops: Sequence[Loop],
               reader: InstructionInfo) -> list[str]:
  """The last lines of a listing."""
  found = bounds_of(function, kernel, card, loops)
  out = held_lines(kernel, card, found.held)
  for part in found.parts: out += part_lines(part, function, card, found)
  out += part_lines(found.whole, function, card, found)
  out += roofline(found, card)
  return [*out, f"bounds: {card.title}; table: {card.source}"]

def held_lines(kernel: KernelResources, card: CardModel, held: Residency) -> list[str]:
  """The number of waves that a unit holds, and its limits."""
  unit, parts = card.model.unit, []
  wave, workgroup, simd, local = unit.words
  for bank, waves in held.by_registers.items():
    file = unit.files[bank]
    more = f" (the next at {most_registers(file, waves + 1)})" if 0 < waves < unit.waves else ""
    parts.append(f"{kernel.registers.get(bank, 0)} {bank}s: {waves} {wave}s a {simd}{more}")
  if held.by_local is not None:
    parts.append(f"{kernel.local_bytes} bytes of {local}: {held.by_local} {workgroup}s a {unit.name}")
  group = f"{kernel.lanes} lanes, {held.group_waves} {wave}{'s' if held.group_waves > 1 else ''}"
  each = held.waves / unit.simds
  return [f"occupancy: {'; '.join(parts)}",
          f"  {workgroup}s of {group}: {held.groups} a {unit.name}, {each:g} {wave}s a {simd} of {unit.waves}, "
          f"limited by {held.limit}"]

def part_lines(part: RegionBound, function: Function, card: CardModel, found: Bounds) -> list[str]:
  """The cost of a loop."""
  names, cost = card.model.names, part.cost
  name = loop_name(part.loop, function) if part.loop is not None else "the kernel"
  once = "an iteration of " if part.loop is not None else ""
  words = card.model.unit.words
  waves = f"{cost.waves} {words.wave}{'s' if cost.waves > 1 else ''} of a {card.model.unit.name}"
  reasons = " and ".join(names.get(key, key) for key in cost.binding(NEAR)) or "nothing"
  taken = ", ".join(f"{names[key]} {size(cycles)}" for key, cycles in sorted(cost.resources.items(),
                                                                             key=lambda item: -item[1]))
  hot = " (the hottest)" if part is found.hottest else ""
  out = [f"bound of {name}{hot}: {size(cost.cycles)} cycles for {once}{waves}, by {reasons}",
         f"  {taken}; a {words.group} alone {size(cost.alone)}"]
  if part.operations:
    peak = f" of {size(part.peak)} ({part.element}), {100 * part.share:.1f} %" if part.peak else ""
    out.append(f"  at most {size(part.rate)} flop a cycle{peak}")
  return out

def roofline(found: Bounds, card: CardModel) -> list[str]:
  """The time of the launch on the whole card: by arithmetic, by memory, and by the bound above, with workgroups in
  rounds."""
  if found.operations is None or found.memory is None or found.seconds is None: return []
  hertz = card.clock_ghz * 1e9
  parts = [f"{size(found.operations)} flop"]
  if found.whole.peak: parts[0] += f" {time(found.operations / (found.whole.peak * card.units * hertz))}"
  parts.append(f"{size(found.memory)} bytes of memory {time(found.memory / (card.memory_rate * hertz))}")
  parts.append(f"the bound {time(found.seconds)} in {found.rounds} round{'s' if found.rounds != 1 else ''}")
  return [f"roofline: {', '.join(parts)}"]

def time(seconds: float) -> str:
  """Format a time, such as 1.2 ms."""
  for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
    if seconds >= scale: return f"{seconds / scale:.3g} {unit}"
  return f"{seconds * 1e9:.3g} ns"
