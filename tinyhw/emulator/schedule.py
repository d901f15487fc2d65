"""Scheduler of a virtual computer: a seeded choice of the next actor. Runs with the same seed are the same.

There is no thread. Virtual processors move when the program looks: each access to a virtual mapping, and each call into
a virtual kernel, first lets them take a random number of steps, often none. So every order that a program could see on
a real device can happen, and its seed repeats it. A debugger never sees work in the background. A device that the
program does not look at stands still, like a slow device. Actors belong to processes. A look by any process moves all
actors. An error that strict checks find goes to the process of the actor at fault.
"""
from __future__ import annotations
import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Protocol

from tinyhw.drivers.gpu.signals import SIGNALS
from tinyhw.emulator.errors import EmulatorError

BURSTS = (0, 0, 1, 2, 5, 20, 80)  # steps that an access lets the devices take, one of them at random

class Actor(Protocol):
  """An object that moves by itself: a queue's processor, a workgroup."""
  def step(self) -> bool:
    """Do a little work. Return False if it can do nothing until another actor or the program changes something."""

class ActorScheduler:
  """The actors of one virtual computer. `lock` guards all its state, and that of its devices."""
  def __init__(self, seed: int):
    self.random = random.Random(seed)
    self.lock = threading.RLock()
    self.actors: list[Actor] = []
    self.running = False
    self.steps = 0                        # taken so far
    self.owners: dict[int, object] = {}   # by the id of an actor: its process; None: of every process
    self.errors: dict[object, Exception] = {}   # the last error that an actor of each process raised
    self.untold: dict[object, Exception] = {}   # errors that were raised while another process looked
    self.signals = SIGNALS

  def add(self, actor: Actor, owner: object = None) -> None:
    """Add an actor. owner: the process that it works for."""
    self.actors.append(actor)
    self.owners[id(actor)] = owner

  def remove(self, actor: Actor) -> None:
    """Remove an actor. An absent one is ignored, since it may have ended by itself."""
    if actor not in self.actors: return
    self.actors.remove(actor)
    del self.owners[id(actor)]

  def ended(self, owner: object) -> None:
    """Drop the errors of a process that has ended."""
    self.errors.pop(owner, None)
    self.untold.pop(owner, None)

  def advance(self, caller: object = None) -> None:
    """Let the devices take a random number of steps. Called wherever the program looks. caller: the process that looks.
    """
    if (self.actors or self.untold) and not self.running: self.run(self.random.choice(BURSTS), caller)

  @contextlib.contextmanager
  def whole(self) -> Iterator[None]:
    """Hold the lock, and defer signals of the program to the end of the block. Neither hardware nor the kernel stop
    halfway.
    """
    with self.lock, self.signals.wait(): yield

  @property
  def interrupted(self) -> bool:
    """Return whether a signal waits. A long operation should then end."""
    return bool(self.signals.noted)

  def run(self, most: int, caller: object = None) -> int:
    """Take up to `most` steps of actors in random order; fewer if all wait for the program. Return the number of steps.

    Errors of the caller's actors reach the caller. Errors of another process's actors wait until that process looks.
    With no caller, all errors are raised.
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
    """Run until all actors wait for the program. For tests, and for waits of any length."""
    while most > 0:
      taken = self.run(min(most, 1 << 12))
      if taken == 0: return
      most -= taken
