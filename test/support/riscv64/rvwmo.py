"""The memory model of RISC-V, RVWMO, for small programs: which executions it allows.

An execution says which store each load reads (rf), and the order of the stores to an address (co). It is allowed if
three axioms hold. Per address, program order, rf, co and fr (a load, and the stores after the one that it read) have no
cycle. Stores between a load-reserved and its store-conditional are of the same thread; an AMO reads the store just
before it. And ppo, co, fr and rf between threads have no cycle. ppo, the preserved program order, is rules 1 to 8 of
the manual. Dependencies (rules 9 to 13) are left out, so programs that are proved do not need them.

Source: RISC-V Unprivileged ISA, version 20240411, chapter "RVWMO" and appendix "Formal Memory Model Specifications".
"""
from __future__ import annotations
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

class Event(NamedTuple):
  """An access of memory. reads and writes: an AMO does both. pair: the load-reserved of a store-conditional."""
  thread: int
  place: int
  address: str
  reads: bool
  writes: bool
  acquire: bool = False
  release: bool = False
  pair: int = -1
  fences: tuple[tuple[str, str], ...] = ()   # between the access before it in its thread and itself

class Execution(NamedTuple):
  """rf: load -> the store that it reads, None for the value at the start. co: address -> its stores in order."""
  rf: Mapping[Event, Event | None]
  co: Mapping[str, Sequence[Event]]

def events_of(thread: int, text: str, pointers: Mapping[str, str]) -> list[Event]:
  """The accesses of assembly text whose branches fall through. pointers: register -> the name of what it points to."""
  known, found, fences = dict(pointers), list[Event](), list[tuple[str, str]]()
  reserved = -1
  for line in filter(None, (line.strip() for line in text.splitlines())):
    mnemonic, _, rest = line.partition(" ")
    operands = [part.strip() for part in rest.split(",")]
    kind = mnemonic.split(".")[0]
    if kind == "fence": fences.append((operands[0], operands[1]))
    elif mnemonic == "addi" and operands[1] in known: known[operands[0]] = f"{known[operands[1]]}+{operands[2]}"
    place = re.search(r"(-?\d*)\((\w+)\)$", rest)
    if place is None: continue
    address = known[place[2]] + (f"+{place[1]}" if place[1] not in ("", "0") else "")
    reads, writes = kind in ("ld", "lw", "lr") or kind[:3] == "amo", kind in ("sd", "sw", "sc") or kind[:3] == "amo"
    order = mnemonic.split(".")[-1] if kind in ("lr", "sc") or kind[:3] == "amo" else ""
    found.append(Event(thread, len(found), address, reads, writes, "aq" in order, "rl" in order,
                       reserved if kind == "sc" else -1, tuple(fences)))
    fences = []
    if kind == "lr": reserved = len(found) - 1
    elif reads: known.pop(operands[0], None)
  return found

def before(a: Event, b: Event, thread: Sequence[Event], rf: Mapping[Event, Event | None]) -> bool:
  """Rules 1 to 8: a precedes b in program order, and for all threads."""
  between = thread[a.place + 1:b.place]
  if a.address == b.address:
    if b.writes: return True                                                                              # 1
    same = rf[a] == rf[b] if a.reads else False
    if a.reads and not a.writes and not same and not any(e.writes and e.address == a.address for e in between):
      return True                                                                                         # 2
    if a.writes and (a.reads or a.pair >= 0) and rf[b] == a: return True                                  # 3
  for event in thread[a.place + 1:b.place + 1]:
    for first, second in event.fences:                                                                    # 4
      if ("r" in first and a.reads or "w" in first and a.writes) and ("r" in second and b.reads
                                                                      or "w" in second and b.writes): return True
  if a.acquire or b.release: return True                                                                  # 5, 6
  if (a.acquire or a.release) and (b.acquire or b.release): return True                                   # 7
  return b.pair == a.place                                                                                # 8

def has_cycle(edges: Mapping[Event, set[Event]]) -> bool:
  """Whether a graph has a cycle."""
  state: dict[Event, int] = {}
  def visit(node: Event) -> bool:
    state[node] = 1
    for following in edges.get(node, ()):
      if state.get(following) == 1 or following not in state and visit(following): return True
    state[node] = 2
    return False
  return any(node not in state and visit(node) for node in list(edges))

def allowed(threads: Sequence[Sequence[Event]]) -> Iterator[Execution]:
  """The executions that the model allows."""
  events = [e for thread in threads for e in thread]
  addresses = sorted({e.address for e in events})
  stores = {address: [e for e in events if e.writes and e.address == address] for address in addresses}
  loads = [e for e in events if e.reads]
  for orders in itertools.product(*(itertools.permutations(stores[address]) for address in addresses)):
    co = dict(zip(addresses, orders))
    for sources in itertools.product(*((None, *stores[e.address]) for e in loads)):
      execution = Execution(dict(zip(loads, sources)), co)
      if is_allowed(threads, events, execution): yield execution

def is_allowed(threads: Sequence[Sequence[Event]], events: Sequence[Event], execution: Execution) -> bool:
  """The three axioms."""
  rf, co = execution
  rank = {e: k for stores in co.values() for k, e in enumerate(stores)}
  def source(e: Event) -> int: return -1 if (read := rf[e]) is None else rank[read]
  for e in events:
    if e.reads and e.writes and source(e) != rank[e] - 1: return False
    if e.pair >= 0:
      seen = source(threads[e.thread][e.pair])
      if seen >= rank[e] or any(other.thread != e.thread for other in co[e.address][seen + 1:rank[e]]): return False
  common: dict[Event, set[Event]] = {e: set() for e in events}
  for e in events:
    after = co[e.address][rank[e] + 1:] if e.writes else ()
    common[e] |= set(after)
    if e.reads: common[e] |= set(co[e.address][source(e) + 1:]) - {e}
  local = {e: set(found) for e, found in common.items()}
  overall = {e: set(found) for e, found in common.items()}
  for e in events:
    read = rf[e] if e.reads else None
    if read is not None:
      local[read].add(e)
      if read.thread != e.thread: overall[read].add(e)
    for later in threads[e.thread][e.place + 1:]:
      if later.address == e.address: local[e].add(later)
      if before(e, later, threads[e.thread], rf): overall[e].add(later)
  return not has_cycle(local) and not has_cycle(overall)

def may_happen(threads: Sequence[Sequence[Event]], outcome: Callable[[Execution], bool]) -> bool:
  """Does the model allow an outcome?"""
  return any(outcome(execution) for execution in allowed(threads))
