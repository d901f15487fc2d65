"""Who moves next in a virtual computer: a seeded choice, so that every run with one seed is the same run.

There is no thread. Virtual processors move when the program looks: each access to a virtual mapping and each call into
a virtual kernel lets them take some steps first, at random none or many. So every order in which a real device could
have been seen by the program can happen, each one can be repeated by its seed, and nothing runs behind the back of a
debugger. A device that nobody looks at stands still, as a slow one would. Actors belong
to processes: whoever looks moves all of them, but what strict checks find is told to the process whose actor was at
fault.
"""
from __future__ import annotations
import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Protocol

from tinyhw.emulator.errors import EmulatorError
from tinyhw.emulator.signals import Signals

BURSTS = (0, 0, 1, 2, 5, 20, 80)  # steps that an access lets the devices take, one of them at random

class Actor(Protocol):
  """Something that moves by itself: a queue's processor, a workgroup."""
  def step(self) -> bool:
    """Do a little. False: nothing could be done now, only something that others do (or the program) can change that."""

class Scheduler:
  """The actors of one virtual computer. All its state, and that of its devices, is guarded by `lock`."""
  def __init__(self, seed: int):
    self.random = random.Random(seed)
    self.lock = threading.RLock()
    self.actors: list[Actor] = []
    self.running = False
    self.steps = 0                        # taken so far
    self.owners: dict[int, object] = {}   # by the id of an actor: its process; nobody's are everybody's
    self.errors: dict[object, Exception] = {}   # the last one that an actor of each process raised
    self.untold: dict[object, Exception] = {}   # those that were raised while another process looked
    self.signals = Signals()

  def add(self, actor: Actor, owner: object = None) -> None:
    """It moves from now on. owner: the process that it works for."""
    self.actors.append(actor)
    self.owners[id(actor)] = owner

  def remove(self, actor: Actor) -> None:
    """It moves no more. One that is not there is left out silently: it may have ended by itself."""
    if actor not in self.actors: return
    self.actors.remove(actor)
    del self.owners[id(actor)]

  def ended(self, owner: object) -> None:
    """A process is no more: nobody is to be told of its errors."""
    self.errors.pop(owner, None)
    self.untold.pop(owner, None)

  def advance(self, caller: object = None) -> None:
    """Let the devices take a random number of steps: called wherever the program looks. caller: the process that
    does."""
    if (self.actors or self.untold) and not self.running: self.run(self.random.choice(BURSTS), caller)

  @contextlib.contextmanager
  def whole(self) -> Iterator[None]:
    """Signals of the program wait until what is inside is done: neither hardware nor the kernel stop halfway.

    Takes the lock.
    """
    with self.lock, self.signals.wait(): yield

  @property
  def interrupted(self) -> bool:
    """Does a signal wait? Then what takes long should end."""
    return bool(self.signals.noted)

  def run(self, most: int, caller: object = None) -> int:
    """Up to `most` steps of actors in a random order; fewer if all wait for the program. How many were taken.

    Errors of actors reach the caller; those of another process's actors wait until that one looks. No caller: all of
    them reach it.
    """
    with self.whole():
      if self.running: return 0
      for owner in list(self.untold) if caller is None else (caller,):
        if owner in self.untold: raise self.untold.pop(owner)
      self.running, taken = True, 0
      try:
        waiting: set[int] = set()
        while taken < most and not self.signals.noted:
          ready = [actor for actor in self.actors if id(actor) not in waiting] if waiting else self.actors
          if not ready: break
          actor = ready[self.random.randrange(len(ready))]
          if self._step(actor, caller):
            taken += 1
            waiting.clear()
          else: waiting.add(id(actor))
      finally:
        self.running = False
        self.steps += taken
      return taken

  def _step(self, actor: Actor, caller: object) -> bool:
    owner = self.owners[id(actor)]
    try: return actor.step()
    except Exception as error:
      self.errors[owner] = error
      if caller is None or owner in (None, caller) or not isinstance(error, EmulatorError): raise
      self.untold[owner] = error
      return True

  def settle(self, most: int = 1 << 30) -> None:
    """Run until all actors wait for the program: for tests, and for waits that may take as long as they like."""
    while most > 0:
      taken = self.run(min(most, 1 << 12))
      if taken == 0: return
      most -= taken
