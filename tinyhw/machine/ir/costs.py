"""Costs of instructions, from the tables of ISAs, for interleave.py and for the bounds of listings (scoreboard.py)."""
from __future__ import annotations

from tinyhw.named_tuple import NamedTuple

class PipeCost(NamedTuple):
  """The cost of one use of a pipe: cycles until the result is available, and the ports of its micro-operations.

  - ports: one group per micro-operation, separated by "|". A group lists the ports that can execute it, one character
    each. "01|5" is two micro-operations, one for port 0 or 1 and one for port 5. "0|0|0|0" occupies port 0 for four
    cycles. Empty: done at renaming.
  - memory: "load" or "store" if its ports count toward the bound by memory.
  - slots: its share of the issue width. The load or store of an instruction that also computes takes no slot of its
    own.
  """
  latency: int
  ports: str = ""
  memory: str = ""
  slots: int = 1
