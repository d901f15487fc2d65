"""`Program`: a kernel as an ordered, structured list of UOps. Renderers, instruction selection and the PYTHON device
read it.

docs/design/program.md defines the semantics of each operation in a Program. Programs print and parse through
uop/text.py, and `verify` checks one.
"""
from __future__ import annotations
import functools

from tinyhw.data_class import dataclass
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp, sint
from tinyhw.uop.text import register

@register
@dataclass(frozen=True, eq=False)
class Program:
  """One kernel, ready for a renderer or an instruction selector.

  - uops: in execution order, with balanced brackets.
  - grid: work items of the GLOBAL range, an expression of the variables; 1 without one.
  - written: slots of the buffers that are stored to.
  - local_bytes: bytes of all DEFINE_LOCALs, as `local_offsets` lays them out.
  - opts: the optimizations that tiled it.
  """
  name: str
  uops: tuple[UOp, ...]
  grid: sint = 1
  written: frozenset[int] = frozenset()
  local_bytes: int = 0
  opts: tuple[object, ...] = ()

  @property
  def local_offsets(self) -> dict[UOp, int]:
    """The byte offset of each DEFINE_LOCAL in the scratch memory. They follow each other, each at a multiple of 64."""
    offsets: dict[UOp, int] = {}
    end = 0
    for u in self.uops:
      if u.op is not Ops.DEFINE_LOCAL or u in offsets: continue
      offsets[u] = end
      end += (u.arg[1] * u.dtype.itemsize + 63) // 64 * 64
    return offsets

  @property
  def lanes(self) -> int:
    """Lanes of a workgroup: the size of the LOCAL range, or 1 without one."""
    return next((int(u.src[0].arg) for u in self.uops if u.op is Ops.RANGE and u.arg[1] is AxisType.LOCAL), 1)

  @functools.cached_property
  def params(self) -> list[UOp]:
    """PARAMs by slot: the buffer arguments."""
    return sorted((u for u in self.uops if u.op is Ops.PARAM), key=lambda u: u.arg[0])

  @functools.cached_property
  def variables(self) -> list[UOp]:
    """DEFINE_VARs by name: the integer arguments, after the buffers."""
    return sorted((u for u in self.uops if u.op is Ops.DEFINE_VAR), key=lambda u: u.arg[0])
