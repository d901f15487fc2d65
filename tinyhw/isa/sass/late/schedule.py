"""Make the control word of every instruction: stalls for fixed latencies, scoreboards for variable ones, and waits.

The pass follows the age of each result of fixed latency, in cycles since its instruction was issued. If a reader would
be too early, the instruction before it stalls longer, or a NOP stalls. The last instruction before a loop stalls, so
that the iterations do not.

An instruction of variable latency gets one of six scoreboards:
- 0 and 1: loads of global memory;
- 2 and 3: loads of shared memory;
- 4: other results;
- 5: late reads of sources, by stores and global loads.

If there are asynchronous copies, scoreboard 0 counts their groups and nothing else. Loads with the same first reader
share a scoreboard. The next loads take the other one.

An instruction waits for a scoreboard if it is the first that reads the result, overwrites it, or overwrites a source
that may still be read. Where paths meet, the younger age holds, and the scoreboards of both paths. Before a barrier,
warps wait for accesses to shared memory.

WARPGROUP.ARRIVE hands vector registers over to asynchronous products, so all results are waited for before it.
WARPGROUP.DEPBAR waits for the results of such products. Selection has placed it.

Needs: physical code with final block order. Cost: linear in the instructions, times the depth of loops.
"""
from __future__ import annotations

from tinyhw.isa.sass.table.control import MOST_STALL, NONE, Control
from tinyhw.isa.sass.table.form import Generation
from tinyhw.isa.sass.model.latency import (BOARD_STALL, FIXED_READ, LATE_READERS, LEAST_STALL, MOST, Latency, distance,
                                           latency_of,
                                           overwrite_distance, reuse_distance)
from tinyhw.isa.sass.late.reuse import mark_reuse
from tinyhw.isa.sass.table.table import build, table
from tinyhw.isa.sass.table.uses import ARRIVAL, MAKES, PRODUCTS_DONE, WANTS, Unit, Uses, uses_of
from tinyhw.machine.ir.flow import walked
from tinyhw.machine.ir.inst import Block, Effect, Function, MInst
from tinyhw.machine.ir.target import Target

Lines = list[tuple[MInst, Control]]
Scheduled = list[tuple[Block, Lines]]

# scoreboards by name of the instruction
BOARDS = {"LDG": (0, 1), "LDG.plain": (0, 1), "LDG.U": (0, 1), "LDS": (2, 3), "LDSM": (2, 3)}
OTHER_BOARD, READ_BOARD = 4, 5
# counts groups of asynchronous copies, for which DEPBAR.LE SB0 waits; nothing else then takes the scoreboard
COUNTED, COUNTED_BOARD = "LDGDEPBAR", 0
SHARED_BOARDS = sum(1 << board for board in (*BOARDS["LDS"], READ_BOARD))
# they read their sources long before the result is there, so a scoreboard tells that too
SLOW = frozenset({"LDG", "LDG.plain", "LDG.U"})
ORDERS = "MEMBAR"  # is done when the scoreboard of late sources is free: memory is its source
MEMORY: tuple[tuple[Unit, bool], ...] = ((("memory", 0), False),)
MOST_YIELD = 11  # cycles of stall during which the hardware may prefer another warp

# an instruction of fixed latency that writes a unit: its latency, its pipe, its issue cycle
Written = tuple[Latency, str, int]

class State:
  """The pending results at a point of the program, in cycles. `now` is the cycle of the point, 0 at the start of a
  block.

  results: unit -> instructions that write it; several where paths meet.
  fetched: unit -> cycle at which an instruction of fixed latency began to read it.
  written: unit -> scoreboards that may be taken until it is written.
  read: unit -> for each instruction that reads it late, the scoreboards that signal the read; any of them is enough.
  view: scoreboards of FENCE that may be taken.
  """
  __slots__ = ("now", "results", "fetched", "written", "read", "view")

  def __init__(self) -> None:
    self.now = self.view = 0
    self.results: dict[Unit, tuple[Written, ...]] = {}
    self.fetched: dict[Unit, int] = {}
    self.written: dict[Unit, int] = {}
    self.read: dict[Unit, frozenset[int]] = {}

  def copy(self) -> State:
    """Return a copy with 0 as `now`, without entries that are too old to matter."""
    made, since = State(), self.now
    for unit, writers in self.results.items():
      young = tuple([(latency, pipe, at - since) for latency, pipe, at in writers if since - at < MOST])
      if young: made.results[unit] = young
    made.fetched = {unit: at - since for unit, at in self.fetched.items() if since - at < FIXED_READ}
    made.written, made.read, made.view = dict(self.written), dict(self.read), self.view
    return made

  def due(self) -> int:
    """Return the cycles until any instruction may read all pending results of fixed latency."""
    return max([due_after(unit, latency) + at - self.now for unit, writers in self.results.items()
                for latency, _, at in writers], default=0)

  def waited(self, boards: int) -> None:
    """Mark these scoreboards as free."""
    self.written = {unit: taken & ~boards for unit, taken in self.written.items() if taken & ~boards}
    left = {unit: frozenset(taken for taken in readers if not taken & boards) for unit, readers in self.read.items()}
    self.read = {unit: readers for unit, readers in left.items() if readers}
    self.view &= ~boards

  def boards(self, sources: bool = True) -> int:
    """Return all scoreboards that may be taken, with or without those of sources."""
    readers = [taken for readers in self.read.values() for taken in readers] if sources else []
    found = 0
    for taken in (*self.written.values(), *readers): found |= taken
    return found

def meet(known: State | None, state: State) -> State | None:
  """Merge the states of two paths. Return None if the second one adds nothing."""
  state = state.copy()
  if known is None: return state
  changed = False
  for unit, writers in state.results.items():
    both = youngest((*known.results.get(unit, ()), *writers))
    if both != known.results.get(unit): known.results[unit], changed = both, True
  for unit, at in state.fetched.items():
    if at > known.fetched.get(unit, -FIXED_READ): known.fetched[unit], changed = at, True
  for unit, taken in state.written.items():
    if taken & ~known.written.get(unit, 0): known.written[unit], changed = known.written.get(unit, 0) | taken, True
  for unit, readers in state.read.items():
    if not readers <= known.read.get(unit, frozenset()):
      known.read[unit], changed = known.read.get(unit, frozenset()) | readers, True
  if state.view & ~known.view: known.view, changed = known.view | state.view, True
  return known if changed else None

def youngest(writers: tuple[Written, ...]) -> tuple[Written, ...]:
  """Return the last writer of each latency and pipe."""
  found: dict[tuple[Latency, str], int] = {}
  for latency, pipe, at in writers: found[latency, pipe] = max(at, found.get((latency, pipe), at))
  return tuple((latency, pipe, at) for (latency, pipe), at in found.items())

class ControlWordScheduler:
  """The pass over one function."""

  def __init__(self, function: Function, generation: Generation):
    self.function = function
    self.nop = table(generation.arch)["NOP/918"]
    self.uses: dict[int, Uses] = {}    # by id of the instruction
    self.board: dict[int, int] = {}    # the scoreboard of each result, by id of the instruction
    self.counts = any(inst.row.name == COUNTED for block in function.blocks for inst in block.insts)
    self.before_loops = {block for block, following in zip(function.blocks, function.blocks[1:])
                         if following.depth > block.depth}
    for block in function.blocks:
      for inst in block.insts: self.uses[id(inst)] = uses_of(inst)
      self.choose(block)

  def run(self) -> Scheduled:
    found = walked(self.function.blocks, State(), self.walk, meet)
    return [(block, mark_reuse(found.get(block, []))) for block in self.function.blocks]

  def choose(self, block: Block) -> None:
    """Choose a scoreboard for each instruction of a block that needs one."""
    readers = first_readers([self.uses[id(inst)] for inst in block.insts])
    # name -> the first reader of its last group of loads, the number of the group
    last: dict[str, tuple[int, int]] = {}
    for k, inst in enumerate(block.insts):
      uses, boards = self.uses[id(inst)], BOARDS.get(inst.row.name)
      if uses.board and boards is not None:
        reader, group = last.get(inst.row.name, (readers[k], 0))
        last[inst.row.name] = readers[k], group + (reader != readers[k])
        free = self.free_of(boards)
        self.board[id(inst)] = free[last[inst.row.name][1] % len(free)]
      elif uses.board or uses.view == MAKES: self.board[id(inst)] = OTHER_BOARD
      elif inst.row.name == COUNTED: self.board[id(inst)] = COUNTED_BOARD

  def free_of(self, boards: tuple[int, ...]) -> tuple[int, ...]:
    """Return those of some scoreboards that count no copies."""
    return tuple(board for board in boards if board != COUNTED_BOARD or not self.counts)

  def walk(self, block: Block, start: State, lines: Lines) -> State:
    """Schedule a block under its start state. Return its lines and the state at its end."""
    state = start.copy()
    for inst in block.insts:
      uses = self.uses[id(inst)]
      boards = self.wanted(inst, uses, state)
      if boards: state.waited(boards)
      self.stall(self.lacking(inst, uses, state), state, lines)
      self.issue(inst, uses, boards, state, lines)
    if block in self.before_loops: self.stall(state.due(), state, lines)
    return state

  def wanted(self, inst: MInst, uses: Uses, state: State) -> int:
    """Return the scoreboards to wait for."""
    found = state.view if uses.view == WANTS else 0
    if inst.row.name == ARRIVAL: return found | state.boards(sources=False)
    if inst.row.effects & Effect.BARRIER and not uses.product and inst.row.name != PRODUCTS_DONE:
      return found | state.boards() & SHARED_BOARDS
    written, read = state.written, state.read
    if written:
      for unit, _ in uses.reads: found |= written.get(unit, 0)
      for unit in uses.writes: found |= written.get(unit, 0)
    for unit in uses.writes if read else ():
      for taken in read.get(unit, ()): found |= taken & 1 << READ_BOARD or taken
    return found

  def lacking(self, inst: MInst, uses: Uses, state: State) -> int:
    """Return the cycles by which the instruction would be too early."""
    now, row, results, fetched = state.now, inst.row, state.results, state.fetched
    free = now  # the first cycle in which it may issue
    for unit, guard in uses.reads:
      for latency, pipe, at in results.get(unit, ()):
        if now - at < MOST: free = max(free, at + distance(latency, pipe, row, unit[0], guard))
    for unit in uses.writes:
      for latency, pipe, at in results.get(unit, ()):
        if now - at < MOST: free = max(free, at + overwrite_distance(latency, pipe, row, uses.board))
      read = fetched.get(unit)
      if read is not None and now - read < FIXED_READ: free = max(free, read + reuse_distance(row, uses.board))
    return free - now

  def stall(self, cycles: int, state: State, lines: Lines) -> None:
    """Add stall cycles to the instruction before, and NOPs for the rest."""
    if cycles <= 0: return
    state.now += cycles
    if lines:
      inst, control = lines[-1]
      most = min(cycles, MOST_STALL - control.stall)
      lines[-1] = inst, with_stall(control, control.stall + most)
      cycles -= most
    while cycles > 0:
      lines.append((build(self.nop), with_stall(Control(), min(cycles, MOST_STALL))))
      cycles -= min(cycles, MOST_STALL)

  def issue(self, inst: MInst, uses: Uses, boards: int, state: State, lines: Lines) -> None:
    """Record the results and late reads of the instruction as pending."""
    board = self.board.get(id(inst), NONE)
    sources = uses.reads or (MEMORY if inst.row.name == ORDERS else ())
    read = READ_BOARD if uses.late and sources and (board == NONE or inst.row.name in SLOW) else NONE
    stall = max(LEAST_STALL.get(inst.row.pipe, 1), BOARD_STALL if (board, read) != (NONE, NONE) else 1)
    lines.append((inst, Control(stall, stall <= MOST_YIELD, board, read, boards)))
    if uses.board or uses.product:
      for unit in uses.writes:
        state.results.pop(unit, None)
        if uses.board: state.written[unit] = 1 << board
    elif uses.writes:
      made = ((latency_of(inst.row), inst.row.pipe, state.now),)
      for unit in uses.writes: state.results[unit] = made
    if uses.view == MAKES: state.view |= 1 << board
    if not uses.late:
      for unit, _ in uses.reads: state.fetched[unit] = state.now
    else:
      taken = sum(1 << one for one in (board, read) if one != NONE)
      for unit, _ in sources: state.read[unit] = state.read.get(unit, frozenset()) | {taken}
    state.now += stall

def first_readers(uses: list[Uses]) -> list[int]:
  """Map each instruction of a block to the position of the first later one that reads or overwrites its results.

  Instructions without a scoreboard, or without such a reader, map to the length of the block.
  """
  found = [len(uses)] * len(uses)
  makers: dict[Unit, int] = {}
  for k, one in enumerate(uses):
    if makers:
      for unit in (*[unit for unit, _ in one.reads], *one.writes):
        if unit in makers: found[makers[unit]] = min(found[makers[unit]], k)
    if one.board: makers.update(dict.fromkeys(one.writes, k))
  return found

def due_after(unit: Unit, latency: Latency) -> int:
  """Return the cycles after which any instruction may read a result."""
  return latency.guard if unit[0] in ("P", "UP") else max(latency.other, *LATE_READERS.values())

def with_stall(control: Control, stall: int) -> Control:
  """Return the control word with another stall."""
  return Control(stall, 1 <= stall <= MOST_YIELD, control.write, control.read, control.wait, control.reuse)

def control_words(function: Function, target: Target) -> Function:
  """Give each instruction its control word. Insert NOPs where a stall is longer than one word can hold."""
  scheduled = schedule(function, Generation(target.name))
  for block, lines in scheduled: block.insts = [inst for inst, _ in lines]
  function.controls = {block: [control for _, control in lines] for block, lines in scheduled}
  return function

def lines_of(function: Function) -> Scheduled:
  """Return the blocks of a function that has control words as lines."""
  return [(block, list(zip(block.insts, function.controls[block]))) for block in function.blocks]

def schedule(function: Function, generation: Generation) -> Scheduled:
  """Return the blocks of a function as lines of instructions with control words."""
  return ControlWordScheduler(function, generation).run()

