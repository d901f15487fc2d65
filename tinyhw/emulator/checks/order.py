"""What is known to be done when: grids and copies that touch the same bytes, and that nothing orders, are a DataRace,
whatever order they came in.

Each part of a grid on an XCC, and each copy, is a *task*, a bit of a number. Whoever starts tasks is an `Agent`: a
command processor, a copy engine, the program. An agent knows a set of ended tasks. A command processor learns of its
own at CS_PARTIAL_FLUSH; a copy engine does one thing after the other; and what an agent knows goes with each word that
it writes (a fence, the end of a pipe, an atomic) to who reads that word, and with a doorbell. Two tasks are rivals if
one began without knowing that the other had ended. What a task has touched is in its `Races`, or of a copy its two
pieces.
Not looked at: what the program itself reads and writes, scratch, instructions, and accesses of the whole device's
scope, which make an order.
"""
from __future__ import annotations
from tinyhw.emulator.checks.races import Races

WORD = 4
MOST_WATCHED = 64    # bytes of an access of the program that may be a look at signals
PRUNE_AT = 64        # live tasks from which on those that everybody knows of are looked for

class Agent:
  """Who starts tasks. known: those that have ended, as far as it knows; started: its own; idle: it has nothing to do
  until a doorbell rings."""
  def __init__(self, order: Order | None):
    self.order = order
    self.known = self.started = 0
    self.idle = True
    if order is not None: order.agents.append(self)

  def begin(self, races: Races, who: str) -> int:
    """A task, or a part of one, begins: its bit."""
    if self.order is None: return 0
    bit = self.order.begin(races, self.known, who)
    self.started |= bit
    return bit

  def learn(self, tasks: int) -> None:
    """Tasks have ended."""
    self.known |= tasks

  def observe(self, physical: int, size: int) -> None:
    """It reads words: what their writers knew, it knows."""
    if self.order is None or not self.order.words: return
    for word in range(physical // WORD, (physical + size + WORD - 1) // WORD):
      self.known |= self.order.words.get(word, 0)

  def publish(self, physical: int, size: int, more: int = 0, keep: bool = False) -> None:
    """It writes words. more: ended tasks that the words stand for besides; keep: an atomic operation adds to what is
    there."""
    if self.order is None: return
    for word in range(physical // WORD, (physical + size + WORD - 1) // WORD):
      self.order.words[word] = self.known | more | (self.order.words.get(word, 0) if keep else 0)

class Order:
  """All agents and tasks of a computer. words: physical address / WORD -> what is known to who reads it."""
  def __init__(self) -> None:
    self.agents: list[Agent] = []
    self.words: dict[int, int] = {}
    self.live: list[Races] = []
    self.count = 0
    self.host = Agent(self)

  def begin(self, races: Races, known: int, who: str) -> int:
    """A part of a task begins, with what its agent knows."""
    bit = 1 << self.count
    self.count += 1
    races.mask, races.who = races.mask | bit, who
    if races not in self.live:
      if len(self.live) >= PRUNE_AT: self.prune()
      self.live.append(races)
    for other in self.live:
      if other is races or not other.mask & ~known or other in races.rivals: continue
      races.rivals.append(other)
      other.rivals.append(races)
    return bit

  def prune(self) -> None:
    """Forget the tasks that all agents know of, or will when the program gives them work."""
    known = self.host.known
    for agent in self.agents:
      if not agent.idle: known &= agent.known
    gone = [races for races in self.live if not races.mask & ~known]
    self.live = [races for races in self.live if races.mask & ~known]
    for races in self.live: races.rivals = [other for other in races.rivals if other not in gone]

  def leave(self, agent: Agent) -> None:
    """A queue is destroyed: nothing of it runs any more, and the program knows."""
    if agent in self.agents: self.agents.remove(agent)
    self.host.learn(agent.started)

  def forget(self, physical: int, size: int) -> None:
    """Pages were given back: what tasks did there concerns nobody."""
    for races in self.live: races.forget(physical, size)
    for word in [word for word in self.words if physical <= word * WORD < physical + size]: del self.words[word]
