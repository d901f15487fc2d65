"""Order between grids and copies. Two that touch the same bytes without an order are a DataRace, in whatever order they
ran.

Each part of a grid on an XCC, and each copy, is a *task*, represented by one bit of an integer. An `Agent` starts
tasks: a command processor, a copy engine or the program. An agent knows a set of ended tasks. It learns of them so:

- A command processor learns of its own tasks at CS_PARTIAL_FLUSH.
- A copy engine runs one task after the other.
- Each word that an agent writes (a fence, the end of a pipe, an atomic) carries its knowledge to the reader of the
  word. A doorbell does the same.

Two tasks are rivals if one began without knowing that the other had ended. `Races` holds the bytes that a task has
touched; for a copy it holds two ranges. Not checked: the program's own reads and writes, scratch, instruction fetches,
and accesses of device scope, which make an order themselves.
"""
from __future__ import annotations
from tinyhw.emulator.checks.races import Races

WORD = 4
MOST_WATCHED = 64    # bytes: a longer access of the program is not a look at signals
PRUNE_AT = 64        # number of live tasks at which to prune those that every agent knows

class Agent:
  """A starter of tasks. known: the tasks that it knows to have ended; started: its own tasks; idle: it waits for a
  doorbell."""
  def __init__(self, order: Order | None):
    self.order = order
    self.known = self.started = 0
    self.idle = True
    if order is not None: order.agents.append(self)

  def begin(self, races: Races, who: str) -> int:
    """Begin a task, or a part of one. Return its bit."""
    if self.order is None: return 0
    bit = self.order.begin(races, self.known, who)
    self.started |= bit
    return bit

  def learn(self, tasks: int) -> None:
    """Add ended tasks to its knowledge."""
    self.known |= tasks

  def observe(self, physical: int, size: int) -> None:
    """Read words: learn the knowledge of their writers."""
    if self.order is None or not self.order.words: return
    for word in range(physical // WORD, (physical + size + WORD - 1) // WORD):
      self.known |= self.order.words.get(word, 0)

  def publish(self, physical: int, size: int, more: int = 0, keep: bool = False) -> None:
    """Write words, with the agent's knowledge. more: further ended tasks that the words stand for; keep: an atomic
    operation adds to the knowledge that the words carry."""
    if self.order is None: return
    for word in range(physical // WORD, (physical + size + WORD - 1) // WORD):
      self.order.words[word] = self.known | more | (self.order.words.get(word, 0) if keep else 0)

class Order:
  """All agents and tasks of a computer. words: physical address / WORD -> the knowledge that a reader of the word gets.
  """
  def __init__(self) -> None:
    self.agents: list[Agent] = []
    self.words: dict[int, int] = {}
    self.live: list[Races] = []
    self.count = 0
    self.host = Agent(self)

  def begin(self, races: Races, known: int, who: str) -> int:
    """Begin a part of a task. known: the knowledge of its agent."""
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
    """Forget the tasks that all agents know of, or will know of when the program gives them work."""
    known = self.host.known
    for agent in self.agents:
      if not agent.idle: known &= agent.known
    gone = [races for races in self.live if not races.mask & ~known]
    self.live = [races for races in self.live if races.mask & ~known]
    for races in self.live: races.rivals = [other for other in races.rivals if other not in gone]

  def leave(self, agent: Agent) -> None:
    """Remove the agent of a destroyed queue. Nothing of the queue runs any more, and the program knows it."""
    if agent in self.agents: self.agents.remove(agent)
    self.host.learn(agent.started)

  def forget(self, physical: int, size: int) -> None:
    """Forget pages that were given back, with the accesses of tasks to them."""
    for races in self.live: races.forget(physical, size)
    for word in [word for word in self.words if physical <= word * WORD < physical + size]: del self.words[word]
