"""Annotated machine code of a kernel, for DEBUG=7: every instruction with its origin, then the cost of the loops.

Input: a laid out function over physical registers, the offset of each instruction, and the ISA's `InstructionInfo`.

Output: text. A line of code has these columns: loops as brackets, offset, bytes, instruction, live registers of each
bank, the UOp (or a note), the line of the tensor operation.

Loops are the spans of backward jumps in layout order (layout.py makes loops contiguous). The RANGE that the jump came
from gives the number of iterations. Counts include every branch of a condition. listing_core.py adds the bounds for a
processor's core, listing_waves.py those for a GPU.

Cost: a few microseconds an instruction, only if the listing is asked for.
"""
from __future__ import annotations
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tinyhw import trace
from tinyhw.arithmetic import operation
from tinyhw.data_class import dataclass, field
from tinyhw.dtype import ALIASES_BY_TYPE, dtypes
from tinyhw.machine.ir.inst import Bank, Effect, Function, MInst, Reg
from tinyhw.uop.enums import AxisType, GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.text import render

MOST_BYTES = 11        # of an instruction on its line; the rest follow an ellipsis of one dot
MOST_TEXT, MOST_ORIGIN = 76, 44
MOST_POINTS = 4096     # work items of which the mean number of iterations is taken
SPILLS = {"spill": "spills", "reload": "reloads"}  # comments that moves.expand leaves

@dataclass(frozen=True)
class InstructionInfo:
  """An ISA's description of its instructions.

  - show: the text of an instruction.
  - touched: bytes that its memory operand covers.
  - operations: its floating-point operations.
  - bounds: the last lines of the listing, about the bounds of the speed.
  - local: whether it accesses memory of the worker or workgroup, which is counted separately.
  - notes: text for instructions instead of their origin, by their id. Its arguments are the function and the offset of
    each instruction.
  - copies: waves that execute all of the code for each work item. 0: the code has a loop over its work items.
  - extra: an additional column: its heading, and its text for an instruction.
  - memory: the name of shared memory.
  """
  show: Callable[[MInst], str]
  touched: Callable[[MInst], int]
  operations: Callable[[MInst], int]
  bounds: Callable[[Function, Sequence[Loop], InstructionInfo], list[str]]
  local: Callable[[MInst], bool] = lambda inst: False
  notes: Callable[[Function, Mapping[int, int]], Mapping[int, str]] = lambda function, offsets: {}
  copies: int = 0
  extra: tuple[str, Callable[[MInst], str]] | None = None
  memory: str = "shared memory"

@dataclass(frozen=True)
class EncodedInst:
  """An encoded instruction with its offset."""
  offset: int
  code: bytes
  inst: MInst

@dataclass
class Work:
  """The work of some instructions when each is executed once."""
  instructions: int = 0
  loaded: int = 0
  stored: int = 0
  local: int = 0       # bytes of shared memory, loaded and stored
  operations: int = 0
  spills: int = 0
  reloads: int = 0

  def add(self, other: Work, times: int = 1) -> None:
    for name in vars(self): setattr(self, name, getattr(self, name) + times * getattr(other, name))

@dataclass(eq=False)
class Loop:
  """Blocks first to last in layout order.

  - range: the RANGE that it counts, if that is known.
  - own: instructions that are in no inner loop.
  - waits: it polls until something has happened, which counts as one iteration.
  - times: its iterations, on average over the work items, or None if they depend on the launch.
  """
  first: int
  last: int
  parent: Loop | None = None
  inner: list[Loop] = field(default_factory=list)
  range: UOp | None = None
  own: list[MInst] = field(default_factory=list)      # in no inner loop
  depth: int = 0
  waits: bool = False

  @property
  def times(self) -> int | None:
    if self.waits: return 1
    if self.range is None or self.range.arg[1] is AxisType.GLOBAL: return None
    end = self.range.src[0]
    return int(end.arg) if end.op is Ops.CONST else mean_of(end)

# ***** loops *****

def mean_of(end: UOp) -> int | None:
  """Return the mean of a loop's end over the work items; None if it depends on more than their number."""
  order = end.toposort()
  grid = [u for u in order if u.op is Ops.RANGE]
  if len(grid) != 1 or grid[0].arg[1] is not AxisType.GLOBAL or grid[0].src[0].op is not Ops.CONST: return None
  total, points = 0, range(0, grid[0].src[0].arg, -(-grid[0].src[0].arg // MOST_POINTS) | 1)
  for point in points:
    value: dict[UOp, Any] = {grid[0]: point}
    for u in order:
      if u in value: continue
      if u.op is Ops.CONST: value[u] = u.arg
      elif u.op in GroupOp.Elementwise: value[u] = operation(u.op.name, u.dtype)(*[value[s] for s in u.src])
      else: return None
    total += value[end]
  return max(round(total / len(points)), 1)

def find_loops(function: Function) -> list[Loop]:
  """Loops in layout order, outer ones before inner ones.

  Rare blocks are after the end. They jump back without a loop.
  """
  position = {block: i for i, block in enumerate(function.blocks)}
  spans: dict[int, int] = {}
  for i, block in enumerate(function.blocks):
    for target in block.successors() if not block.rare else ():
      if position[target] <= i: spans[position[target]] = max(i, spans.get(position[target], i))
  loops = [Loop(first, last) for first, last in sorted(spans.items(), key=lambda span: (span[0], -span[1]))]
  for n, loop in enumerate(loops):
    around = [other for other in loops[:n] if other.last >= loop.last]
    loop.parent = around[-1] if around else None
    if loop.parent is not None:
      loop.parent.inner.append(loop)
      loop.depth = loop.parent.depth + 1
  for i, block in enumerate(function.blocks):
    inside = innermost(loops, i)
    if inside is None: continue
    inside.own += block.insts
    for inst in block.insts:
      if not inst.row.effects & Effect.JUMP or not isinstance(inst.origin, UOp): continue
      if inst.origin.op is Ops.END: inside.range = inst.origin.src[0]
      elif inst.origin.op is Ops.WAIT and block in block.successors(): inside.waits = True
  return loops

def innermost(loops: Sequence[Loop], block: int) -> Loop | None:
  """The innermost loop around a block. Outer loops come first in `loops`."""
  found = None
  for loop in loops:
    if loop.first <= block <= loop.last: found = loop
  return found

# ***** registers *****

Masks = list[tuple[int, int]]  # for each instruction of a block: bits read, bits written

class LiveRegisters:
  """Physical registers that hold a value, instruction by instruction. Bits number (bank, index)."""

  def __init__(self, function: Function, banks: Sequence[Bank], allocatable: Mapping[str, tuple[int, ...]]):
    self.bits: dict[tuple[str, int], int] = {}
    for bank in banks:
      for index in allocatable.get(bank.name, bank.allocatable): self.bits[bank.name, index] = len(self.bits)
    self.banks = {bank.name: sum(1 << bit for (name, _), bit in self.bits.items() if name == bank.name)
                  for bank in banks}
    self.masks: list[Masks] = [[self._masks(inst) for inst in block.insts] for block in function.blocks]
    self.live_out = self._solve(function)

  def _bits(self, reg: Reg) -> int:
    assert reg.index is not None, f"{reg!r} is still virtual; a listing is of physical code"
    found = 0
    for unit in range(reg.cls.units):
      bit = self.bits.get((reg.cls.bank.name, reg.index + unit))
      if bit is not None: found |= 1 << bit
    return found

  def _masks(self, inst: MInst) -> tuple[int, int]:
    reads = writes = 0
    for r in inst.reads(): reads |= self._bits(r)
    for r in inst.writes(): writes |= self._bits(r)
    for bank, index in inst.row.clobbers:
      if (bank.name, index) in self.bits: writes |= 1 << self.bits[bank.name, index]
    return reads, writes

  def _solve(self, function: Function) -> list[int]:
    """Registers live at the end of each block, by iteration from the last block to the first."""
    blocks = function.blocks
    position = {block: i for i, block in enumerate(blocks)}
    following: list[list[int]] = []
    for i, block in enumerate(blocks):
      ends = bool(block.insts) and bool(block.insts[-1].row.effects & Effect.END)
      following.append([position[b] for b in block.successors()] + ([i + 1] if not ends and i + 1 < len(blocks)
                                                                    else []))
    live_in, live_out = [0] * len(blocks), [0] * len(blocks)
    changed = True
    while changed:
      changed = False
      for i in range(len(blocks) - 1, -1, -1):
        live = 0
        for s in following[i]: live |= live_in[s]
        live_out[i] = live
        for reads, writes in reversed(self.masks[i]): live = live & ~writes | reads
        if live != live_in[i]: live_in[i], changed = live, True
    return live_out

  def counts(self, block: int) -> list[dict[str, int]]:
    """Registers in use at each instruction of a block, by bank: the larger number of before and after it."""
    found = []
    after = self.live_out[block]
    for reads, writes in reversed(self.masks[block]):
      before = after & ~writes | reads
      found.append({name: max((before & mask).bit_count(), ((after | writes) & mask).bit_count())
                    for name, mask in self.banks.items()})
      after = before
    return found[::-1]

# ***** columns of a line *****

def is_copy(inst: MInst) -> bool:
  """Whether it copies from memory to shared memory (ASYNC_COPY)."""
  return isinstance(inst.origin, UOp) and inst.origin.op is Ops.ASYNC_COPY and bool(inst.row.effects & Effect.STORE)

def is_bulk_copy(inst: MInst) -> bool:
  """Whether it copies a box, which a unit of the card does in whole lines."""
  return is_copy(inst) and inst.origin.src[1].op is Ops.TENSOR_BOX

def accessed(inst: MInst) -> UOp | None:
  """The INDEX or TENSOR_BOX that a load or store of the Program accesses: for a copy, the one in memory. Spills have
  none."""
  u = inst.origin
  if isinstance(u, UOp) and is_copy(inst): return u.src[1]
  if not isinstance(u, UOp) or u.op not in (Ops.LOAD, Ops.STORE, Ops.FRAGMENT) or inst.comment in SPILLS: return None
  return u.src[0] if inst.row.effects & (Effect.LOAD | Effect.STORE) else None

def short(inst: MInst) -> str:
  """The origin of an instruction in a few words: `load data1[r2*64+i1:+8]`, `mulacc f32x8`, `spill`."""
  u, words = inst.origin, []
  if inst.comment in SPILLS or not isinstance(u, UOp): words.append(inst.comment)
  if isinstance(u, UOp): words.append(uop_text(u))
  # a load that was merged into its user
  if isinstance(u, UOp) and inst.row.effects & Effect.LOAD and u.op not in (Ops.LOAD, Ops.STORE):
    words += [f"of {element(s.src[0], s.dtype.count)}" for s in u.src if s.op is Ops.LOAD][:1]
  return cut(" ".join(w for w in words if w), MOST_ORIGIN)

def uop_text(u: UOp) -> str:
  """A UOp in a few words."""
  if u.op is Ops.END: return f"end {render(u.src[0])}"
  if u.op is Ops.RANGE: return f"{render(u)} in {u.arg[1].name} {cut(render(u.src[0]), 12)}"
  name = u.op.name.lower()
  if u.op in (Ops.LOAD, Ops.STORE) and u.src[0].op is Ops.INDEX:
    lanes = (u.src[1] if u.op is Ops.STORE else u).dtype.count
    text = f"{name} {element(u.src[0], lanes)}"
    return text + " gated" if len(u.src) > (2 if u.op is Ops.STORE else 1) else text
  if u.op is Ops.PARAM: return f"address of {render(u)}"
  if u.op in (Ops.DEFINE_VAR, Ops.DEFINE_LOCAL): return render(u)
  if u.op is Ops.ASYNC_COPY:
    return f"async copy {box(u.src[1]) if u.src[1].op is Ops.TENSOR_BOX else element(u.src[1], u.arg)}"
  if u.op in (Ops.COMMIT, Ops.WAIT, Ops.SIGNALS) and u.src:
    return f"{name} {' phase '.join(render(s) for s in u.src if s.dtype is not dtypes.bool)}"
  if u.op is Ops.FRAGMENT: return f"fragment {element(u.src[0], u.dtype.count)}"
  if u.op is Ops.CONST: return f"constant {cut(str(u.arg), 20)}"
  if u.dtype is dtypes.void: return name
  kind = ALIASES_BY_TYPE[u.dtype.scalar()]
  return f"{name} {kind}" + (f"x{u.dtype.count}" if u.dtype.count > 1 else "")

def box(u: UOp) -> str:
  """`64x192 of data1(r2*64, r0)`: sizes of a box, innermost axis first, and its first corner."""
  first = ", ".join(cut(sum_text(s), 16) for s in u.src[1:])
  return f"{'x'.join(map(str, u.arg.sizes))} of {render(u.src[0])}({first})"

def element(index: UOp, lanes: int) -> str:
  """`data0[i]`, or `data0[i:+8]` for 8 elements from there on.

  Deep expressions are left out, because their text can be long.
  """
  place = cut(sum_text(index.src[1]), 26) if len(index.src[1].toposort()) < 60 else "..."
  return (f"{render(index.src[0])}[{place}]" if lanes == 1 or index.src[1].dtype.count > 1
          else f"{render(index.src[0])}[{place}:+{lanes}]")

def sum_text(u: UOp) -> str:
  """Index arithmetic with the parentheses that it needs."""
  if u.op is Ops.ADD: return f"{sum_text(u.src[0])}+{sum_text(u.src[1])}"
  if u.op is Ops.MUL: return "*".join(f"({sum_text(s)})" if s.op is Ops.ADD else sum_text(s) for s in u.src)
  return render(u)

def cut(text: str, most: int) -> str: return text if len(text) <= most else text[:most - 2] + ".."

def lines_of(uops: Sequence[UOp]) -> dict[UOp, trace.Location]:
  """The source lines of a program's UOps. A UOp without a line gets that of a UOp that uses it."""
  found: dict[UOp, trace.Location] = {}
  for u in reversed(uops):
    location = trace.origin(u) or found.get(u)
    if location is None: continue
    found[u] = location
    for s in u.src: found.setdefault(s, location)
  for u in uops:
    if u.op in (Ops.END, Ops.ENDIF) and u.src and u.src[0] in found: found[u] = found[u.src[0]]
  return found

def gutter(loops: Sequence[Loop], block: int, at: int, count: int, width: int) -> str:
  """Brackets for the loops around line `at` of the `count` lines of a block: / at the first line of a loop, \\ at its
  last, | between."""
  marks = [" "] * width
  for loop in loops:
    if not loop.first <= block <= loop.last: continue
    first, last = block == loop.first and at == 0, block == loop.last and at == count - 1
    marks[loop.depth] = "|"
    if last: marks[loop.depth] = "\\"
    if first: marks[loop.depth] = "/"
  return "".join(marks)

def column(heading: str, tell: Callable[[MInst], str], lines: Sequence[EncodedInst]) -> dict[int, str]:
  """The texts of a column, padded to one width, by id of the instruction. Key 0 is the heading."""
  texts = {0: heading, **{id(line.inst): tell(line.inst) for line in lines}}
  wide = max(map(len, [text for key, text in texts.items() if key]), default=0)
  return {key: f"{text:{wide}}" for key, text in texts.items()}

def code_lines(function: Function, lines: Sequence[EncodedInst], registers: LiveRegisters, loops: Sequence[Loop],
               reader: InstructionInfo, came_from: Mapping[UOp, trace.Location]) -> list[str]:
  """The lines of all instructions. Jump targets have labels."""
  where = {id(line.inst): line for line in lines}
  notes = reader.notes(function, {id(line.inst): line.offset for line in lines})
  targets = {target for block in function.blocks for target in block.successors()}
  banks = [name for name in registers.banks if function.used.get(name)]
  width = 1 + max((loop.depth for loop in loops), default=-1)
  told = [("instruction", lambda inst: cut(reader.show(inst), MOST_TEXT)),
          *([reader.extra] if reader.extra is not None else [])]
  parts = [column(heading, tell, lines) for heading, tell in told]
  texts = {key: "  ".join(part[key] for part in parts) for key in parts[0]}
  head = f"{'':{width}} offset  {'bytes':{2 * MOST_BYTES + 1}}  {texts[0]}  {' '.join(f'{b:>4s}' for b in banks)}  "
  out = [head + f"{'from':{MOST_ORIGIN}}  line"]
  for n, block in enumerate(function.blocks):
    labelled = block in targets
    rows = ([f"{block!r}:"] if labelled else [])
    for inst, live in zip(block.insts, registers.counts(n)):
      line = where.get(id(inst))
      if line is None: continue  # a jump to the next block is not encoded
      code = line.code.hex() if len(line.code) <= MOST_BYTES else line.code[:MOST_BYTES].hex() + "."
      location = came_from.get(inst.origin)
      rows.append(f"{line.offset:7d}  {code:{2 * MOST_BYTES + 1}}  {texts[id(inst)]}  "
                  f"{' '.join(f'{live[b]:4d}' for b in banks)}  "
                  f"{cut(notes.get(id(inst)) or short(inst), MOST_ORIGIN):{MOST_ORIGIN}}  "
                  f"{'' if location is None else trace.show(location)}")
    out += [f"{gutter(loops, n, i, len(rows), width)} {row}".rstrip() for i, row in enumerate(rows)]
  return out

# ***** cost *****

def work_of(insts: Sequence[MInst], reader: InstructionInfo) -> Work:
  """The work of these instructions, each executed once."""
  work = Work(len(insts))
  for inst in insts:
    effects = inst.row.effects
    if effects & (Effect.LOAD | Effect.STORE):
      size = reader.touched(inst)
      if reader.local(inst): work.local += size
      elif effects & Effect.LOAD: work.loaded += size
      if is_copy(inst): work.local += size
      elif effects & Effect.STORE and not reader.local(inst): work.stored += size
    work.operations += reader.operations(inst)
    work.spills += inst.comment == "spill"
    work.reloads += inst.comment == "reload"
  return work

def iteration(loop: Loop, reader: InstructionInfo) -> tuple[Work, bool]:
  """The work of one iteration, including inner loops. The second result is False if it has loops of unknown length,
  which count once."""
  work, known = work_of(loop.own, reader), True
  for inner in loop.inner:
    each, sure = iteration(inner, reader)
    work.add(each, inner.times or 1)
    known = known and sure and inner.times is not None
  return work, known

def size(count: float) -> str:
  """12, 3.4 k, 1.2 M: at most four digits."""
  for unit in ("", " k", " M", " G", " T"):
    if count < 9999.5: return f"{count:.0f}{unit}" if unit == "" or count >= 99.95 else f"{count:.1f}{unit}"
    count /= 1000
  return f"{count:.0f} P"

def amounts(work: Work, memory: str) -> str:
  """The work in words. memory: the name of shared memory."""
  text = (f"{size(work.instructions)} instructions, {size(work.loaded)} bytes loaded, {size(work.stored)} bytes "
          f"stored, {size(work.operations)} flop")
  extra = [f"{size(n)} {name}" for n, name in ((work.local, f"bytes of {memory}"), (work.spills, "spills"),
                                               (work.reloads, "reloads")) if n]
  return ", ".join([text, *extra])

def loop_name(loop: Loop, function: Function) -> str:
  label = repr(function.blocks[loop.first])
  return label if loop.range is None else f"{label} ({uop_text(loop.range)})"

def loop_lines(function: Function, loops: Sequence[Loop], reader: InstructionInfo) -> list[str]:
  """For each loop: its number of iterations, and the work of one iteration and of an execution."""
  out = []
  for loop in loops:
    each, known = iteration(loop, reader)
    sure = "" if known else " (inner loops of unknown length count once)"
    out.append(f"{'  ' * loop.depth}loop {loop_name(loop, function)}: an iteration: "
               f"{amounts(each, reader.memory)}{sure}")
    if loop.times is None: continue
    whole = Work()
    whole.add(each, loop.times)
    out.append(f"{'  ' * loop.depth}  all {size(loop.times)} iterations: {amounts(whole, reader.memory)}")
  return out

def total_lines(function: Function, loops: Sequence[Loop], reader: InstructionInfo, grid: int | None) -> list[str]:
  """The work of all loops and the rest. If the work items of the grid are known, they count as iterations of the loop
  over them, or by waves."""
  inside = {id(inst) for loop in loops for inst in loop.own}
  whole, known = work_of([i for block in function.blocks if not block.rare for i in block.insts if id(i) not in inside],
                         reader), True
  for loop in loops:
    if loop.parent is not None: continue
    each, sure = iteration(loop, reader)
    is_grid = loop.range is not None and loop.range.arg[1] is AxisType.GLOBAL
    times = grid if is_grid else loop.times
    whole.add(each, times or 1)
    known = known and sure and times is not None
  if reader.copies:
    once, whole = whole, Work()
    known = known and grid is not None
    whole.add(once, reader.copies * (grid or 0))
  if not known: return ["overall: not known: it depends on the launch"]
  launch = f"overall ({size(grid)} work item{'s' if grid != 1 else ''})" if grid is not None else "overall"
  return [f"{launch}: {amounts(whole, reader.memory)}"]

def listing(function: Function, lines: Sequence[EncodedInst], banks: Sequence[Bank], reader: InstructionInfo,
            grid: int | None = None, allocatable: Mapping[str, tuple[int, ...]] | None = None,
            uops: Sequence[UOp] = ()) -> str:
  """The annotated code and its costs. lines: the encoded instructions, in order.

  grid: work items of a launch, if the kernel knows. uops: those of the program, in order; they give the lines of the
  tensor operations.
  """
  loops = find_loops(function)
  registers = LiveRegisters(function, banks, allocatable or {})
  everything = [inst for block in function.blocks for inst in block.insts]
  static = work_of(everything, reader)
  total = sum(len(line.code) for line in lines)
  head = f"{function.name}: {len(lines)} instructions, {total} bytes, {static.spills} spills, {static.reloads} reloads"
  frame = f", {function.stack_bytes} bytes of stack" if function.stack_bytes else ""
  local = f", {function.local_bytes} bytes of {reader.memory}" if function.local_bytes else ""
  used = ", ".join(f"{len(function.used[b.name])} of {len((allocatable or {}).get(b.name, b.allocatable))} {b.name}"
                   for b in banks if function.used.get(b.name))
  shown = [b.name for b in banks if function.used.get(b.name)]
  out = [f"--- machine code of {function.name}", *code_lines(function, lines, registers, loops, reader, lines_of(uops)),
         f"{head}{frame}{local}",
         *([f"columns {' and '.join(shown)}: registers that hold a value at the instruction"] if shown else []),
         f"registers written: {used or 'none'}", *loop_lines(function, loops, reader),
         *total_lines(function, loops, reader, grid)]
  return "\n".join([*out, *reader.bounds(function, loops, reader)])
