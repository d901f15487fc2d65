"""The graph: nodes, their operations and rules. `Ops` and `UOp` are here, too, loaded when they are asked for."""
from __future__ import annotations

def __getattr__(name: str) -> object:
  if name == "Ops":
    from tinyhw.uop.enums import Ops
    return Ops
  if name == "UOp":
    from tinyhw.uop.ops import UOp
    return UOp
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
