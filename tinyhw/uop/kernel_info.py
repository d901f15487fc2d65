"""`KernelInfo`: the argument of a kernel's SINK."""
from __future__ import annotations
from typing import Any

from tinyhw.data_class import dataclass

@dataclass(frozen=True)
class KernelInfo:
  """Properties of a kernel, in the argument of its SINK.

  - name: of the kernel.
  - opts: the optimizations to apply, or those applied. None: the heuristic chooses.
  - origin: the source of the kernel.
  """
  name: str = ""
  opts: tuple[Any, ...] | None = None
  origin: Any = None
