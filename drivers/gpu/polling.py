"""Polls of a device whose own wait has no deadline: how long to ask, and how long to sleep."""
from __future__ import annotations
import os
import time

SPIN_SECONDS = 0.0005  # a wait polls this long before it sleeps: most kernels take no longer
# a wait sleeps for a share of its duration so far, so it notices the end late by that share; at most this many seconds
SHARE, LONGEST_SLEEP = 8, 0.005

LONGEST_GAP = 1.0      # seconds between two polls, above which this process did not run

give_way = getattr(os, "sched_yield", lambda: time.sleep(0))

def pause(waited: float) -> None:
  """Let others run between two polls of a wait that took so many seconds. A device may be a processor that needs this
  core."""
  if waited > SPIN_SECONDS: time.sleep(min(waited / SHARE, LONGEST_SLEEP))
  else: give_way()

class WaitTime:
  """The duration of a wait, without gaps in which this process did not run: somebody stopped it (Ctrl-Z, a debugger).

  A device whose work is done by threads of the process, such as PoCL's, stood still, too, so a gap is no reason to give
  it up.
  """
  def __init__(self) -> None: self.restart()
  def restart(self) -> None: self.seconds, self.last = 0.0, time.monotonic()

  def look(self) -> float:
    """Return the seconds so far."""
    now = time.monotonic()
    self.seconds += min(now - self.last, LONGEST_GAP)
    self.last = now
    return self.seconds
