"""Choose what becomes of each loop of a kernel, and rewrite the kernel so. Input and output are kernels (docs/design.md 3.3); only ranges change."""
from __future__ import annotations

from tinyhw.machine.target import Capabilities
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp

def optimize(sink: UOp, capabilities: Capabilities) -> UOp:
  """The kernel with final AxisTypes. Here: the outermost loop of a kernel with one store becomes the grid."""
  if len(sink.src) != 1: return sink
  ranges = [s for s in sink.src[0].src[2:] if s.op is Ops.RANGE]
  if not ranges: return sink
  outer = ranges[0]
  return sink.substitute({outer: outer.replace(arg=(outer.arg[0], AxisType.GLOBAL))})
