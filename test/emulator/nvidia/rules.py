"""The documented rules of control words, registers and shared memory, applied to the instructions that warps have
executed: a slow oracle for the emulator's watches.

It checks straight-line traces afterwards, backwards from each instruction, and uses nothing of tinyhw/emulator. It uses
two kinds of facts: registers and waits of an instruction (isa/sass/table/uses.py, from the rows of the assembler), and
distances in cycles (isa/sass/model/latency.py).

Only rules that mutations of our own kernels can break are here: loads and stores of shared memory, one barrier,
registers of asynchronous products. Accesses of copies and products to shared memory are not checked; wrong results show
those.
"""
from __future__ import annotations
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tinyhw.isa.sass.model.latency import (
  BOARD_STALL, distance, latency_of, overwrite_distance, reuse_distance, shortest_stall)
from tinyhw.isa.sass.table.control import NONE, Control
from tinyhw.isa.sass.table.form import NO_GROUP
from tinyhw.isa.sass.table.uses import ARRIVAL, PRODUCTS_DONE, Unit, Uses
from tinyhw.machine.ir.inst import MInst

ALL = (1 << 32) - 1

class Local(NamedTuple):
  """Access of an instruction to shared memory: (address, size) for each lane. data: bytes that a store writes."""
  write: bool
  places: tuple[tuple[int, int], ...]
  data: tuple[bytes, ...] = ()

class Did(NamedTuple):
  """An instruction that a warp was about to execute.

  - running, lanes: the lanes that have not ended, and those in which its guard holds.
  - when: its number among those of the whole block.
  - loads: (address, size) of its loads of global memory.
  """
  inst: MInst
  control: Control
  uses: Uses
  running: int
  lanes: int
  when: int
  local: Local | None = None
  loads: tuple[tuple[int, int], ...] = ()

class Broken(NamedTuple):
  """A broken rule, and the instruction that broke it."""
  rule: str
  at: MInst

def boards(control: Control) -> set[int]: return {board for board in (control.write, control.read) if board != NONE}

class Trace:
  """The instructions of one warp. times: issue time of each, by stalls alone."""
  def __init__(self, did: Sequence[Did]):
    self.did, self.times = did, [0]
    for one in did: self.times.append(self.times[-1] + one.control.stall)

  def waited(self, board: int, after: int, until: int) -> bool:
    """Return whether an instruction between two others waits for a scoreboard."""
    return board != NONE and any(self.did[k].control.wait >> board & 1 for k in range(after + 1, until + 1))

  def done(self, product: int, until: int) -> bool:
    """Return whether the group of an asynchronous product was waited for before another instruction."""
    for k in range(product + 1, until + 1):
      inst = self.did[k].inst
      if inst.row.name != PRODUCTS_DONE: continue
      ended = sum(other.uses.product and other.inst.operands[other.inst.row.isa.index["group"]] != NO_GROUP
                  for other in self.did[product:k])
      if ended > inst.operands[inst.row.isa.index["n"]]: return True
    return False

  def writer(self, unit: Unit, before: int) -> int | None:
    """Return the last instruction that wrote a register."""
    return next((k for k in range(before - 1, -1, -1) if unit in self.did[k].uses.writes), None)

def schedule(trace: Trace) -> Iterator[Broken]:
  """Check scoreboards and stalls."""
  for i, one in enumerate(trace.did):
    if one.control.stall < shortest_stall(one.inst.row): yield Broken("the next instruction issues too early", one.inst)
    for board in (b for b in range(NONE) if one.control.wait >> b & 1):
      taken = next((k for k in range(i - 1, -1, -1) if board in boards(trace.did[k].control)), None)
      if taken is not None and trace.times[i] - trace.times[taken] < BOARD_STALL:
        yield Broken("a scoreboard is waited for too early", one.inst)
    for unit, guard in one.uses.reads:
      writer = trace.writer(unit, i)
      if writer is not None and not result_is_there(trace, writer, i, unit, guard):
        yield Broken("a result is read too early", one.inst)
    if one.uses.product: yield from handed_over(trace, i)
    for unit in one.uses.writes: yield from overwritten(trace, i, unit)

def result_is_there(trace: Trace, writer: int, reader: int, unit: Unit, guard: bool) -> bool:
  """Return whether a result is ready when it is read."""
  first, second = trace.did[writer], trace.did[reader]
  if first.uses.product: return second.uses.product or trace.done(writer, reader)
  if first.uses.board: return trace.waited(first.control.write, writer, reader)
  needed = distance(latency_of(first.inst.row), first.inst.row.pipe, second.inst.row, unit[0], guard)
  return trace.times[reader] - trace.times[writer] >= needed

def handed_over(trace: Trace, product: int) -> Iterator[Broken]:
  """Check that the registers of an asynchronous product have not changed since the last WARPGROUP.ARRIVE."""
  one = trace.did[product]
  last = next((k for k in range(product, -1, -1) if trace.did[k].inst.row.name == ARRIVAL), None)
  touched = {unit for did in trace.did[last or 0:product] if not did.uses.product for unit in registers(did)}
  if last is None or touched & registers(one):
    yield Broken("registers of a product have not been handed over", one.inst)

def registers(did: Did) -> set[Unit]:
  """Return the vector registers that an instruction touches."""
  return {unit for unit in (*(unit for unit, _ in did.uses.reads), *did.uses.writes) if unit[0] == "R"}

def overwritten(trace: Trace, at: int, unit: Unit) -> Iterator[Broken]:
  """Check an overwrite of a register: neither its own result nor an earlier reader may come late."""
  one = trace.did[at]
  writer = trace.writer(unit, at)
  if writer is not None:
    first = trace.did[writer]
    if first.uses.product: fine = one.uses.product or trace.done(writer, at)
    elif first.uses.board: fine = trace.waited(first.control.write, writer, at)
    else:
      needed = overwrite_distance(latency_of(first.inst.row), first.inst.row.pipe, one.inst.row, one.uses.board)
      fine = trace.times[at] - trace.times[writer] >= needed
    if not fine: yield Broken("a register is overwritten before its own result is there", one.inst)
  for k in range(at):
    first = trace.did[k]
    if not any(unit == read for read, _ in first.uses.reads): continue
    if first.uses.product and unit[0] == "R": fine = one.uses.product or trace.done(k, at)
    elif first.uses.late: fine = any(trace.waited(board, k, at) for board in (first.control.read, first.control.write))
    else: fine = trace.times[at] - trace.times[k] >= reuse_distance(one.inst.row, one.uses.board)
    if not fine: yield Broken("a register is overwritten before it has been read", one.inst)

def undefined(trace: Trace) -> Iterator[Broken]:
  """Find registers that were never written, lane by lane; guards in all lanes that run."""
  known: dict[Unit, int] = {}
  for one in trace.did:
    for unit, guard in one.uses.reads:
      lanes = one.running if guard and unit[0] == "P" else one.lanes
      if lanes & ~known.get(unit, 0): yield Broken("a register is read that nothing has written", one.inst)
    for unit in one.uses.writes: known[unit] = known.get(unit, 0) | (ALL if unit[0] in ("UR", "UP") else one.lanes)

def shared_memory(traces: Sequence[Trace]) -> Iterator[Broken]:
  """Find two warps on the same byte between barriers, one of which writes another value there; and unwritten bytes."""
  order = sorted((one.when, warp, epoch, one) for warp, trace in enumerate(traces) for epoch, one in epochs(trace))
  memory: dict[int, int] = {}
  owners: dict[tuple[int, int, bool], set[int]] = {}    # (epoch, byte, whether it is written) -> warps
  for _, warp, epoch, one in order:
    local = one.local
    if local is None: continue
    for k, (address, size) in enumerate(local.places):
      for i, byte in enumerate(range(address, address + size)):
        if not local.write and byte not in memory:
          yield Broken("shared memory is read that nothing has written", one.inst)
        changes = local.write and memory.get(byte) != local.data[k][i]
        rivals = owners.get((epoch, byte, True), set()) if not changes and not local.write else set()
        if local.write:
          rivals = owners.get((epoch, byte, False), set()) | (owners.get((epoch, byte, True), set()) if changes
                                                              else set())
        if rivals - {warp} and (changes or not local.write):
          yield Broken("two warps touch a byte of shared memory between barriers", one.inst)
        owners.setdefault((epoch, byte, local.write), set()).add(warp)
        if local.write: memory[byte] = local.data[k][i]

def epochs(trace: Trace) -> Iterator[tuple[int, Did]]:
  """Yield each instruction with the number of barriers before it."""
  epoch = 0
  for one in trace.did:
    yield epoch, one
    epoch += one.inst.row.name == "BAR"

def outside(trace: Trace, buffers: Sequence[tuple[int, int]]) -> Iterator[Broken]:
  """Find loads outside of the kernel's buffers, or of a buffer that it writes. None of our kernels reads its own
  results.
  """
  for one in trace.did:
    if not all(any(first <= at and at + size <= first + length for first, length in buffers) for at, size in one.loads):
      yield Broken("memory is read that nothing has written", one.inst)

def broken(traces: Sequence[Sequence[Did]], buffers: Sequence[tuple[int, int]]) -> Iterator[Broken]:
  """Find the rules that the warps of a block have broken. buffers: (address, size) of those that the kernel may read.
  """
  known = [Trace(did) for did in traces]
  for trace in known:
    yield from schedule(trace)
    yield from undefined(trace)
    yield from outside(trace, buffers)
  yield from shared_memory(known)
