"""What instructions take, as the tables of ISAs tell it to interleave.py and to the bounds of listings
(scoreboard.py)."""
from __future__ import annotations

from tinyhw.named_tuple import NamedTuple

class PipeCost(NamedTuple):
  """What one use of a pipe costs: cycles until the result is there, and the ports of its micro-operations.

  ports: one group per micro-operation, separated by "|"; a group lists the ports, a character each, that can execute
  it. "01|5" is two micro-operations, one for port 0 or 1 and one for port 5. "0|0|0|0" occupies port 0 for four cycles.
  Empty: done at renaming.
  memory: "load" or "store" when its ports count into the bound by memory.
  slots: what it takes of the issue width. The load or store of an instruction that does something else too takes none
  of its own.
  """
  latency: int
  ports: str = ""
  memory: str = ""
  slots: int = 1
