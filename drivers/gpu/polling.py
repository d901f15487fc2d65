"""Polls of a device whose own wait has no deadline: how long to ask, and how long to sleep."""
from __future__ import annotations
import os
import time

SPIN_SECONDS = 0.0005  # a wait polls this long before it sleeps: most kernels take no longer
# a wait sleeps for a share of its duration so far, so it notices the end late by that share; at most this many seconds
SHARE, LONGEST_SLEEP = 8, 0.005

give_way = getattr(os, "sched_yield", lambda: time.sleep(0))

def pause(waited: float) -> None:
  """Let others run between two polls of a wait that took so many seconds. A device may be a processor that needs this
  core."""
  if waited > SPIN_SECONDS: time.sleep(min(waited / SHARE, LONGEST_SLEEP))
  else: give_way()
