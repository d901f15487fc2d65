"""Products on the matrix unit, of groups of registers (select_group.py)."""
from __future__ import annotations

from tinyhw.errors import CompileError
from tinyhw.isa.sass import regs
from tinyhw.isa.sass.matrix import units
from tinyhw.isa.sass.select_group import Groups
from tinyhw.machine.inst import Reg
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

class Matrices(Groups):
  """The part of Selector that knows the matrix unit."""

  def multiply(self, u: UOp) -> Reg:
    """MMA. What begins at zero adds to the register that is zero."""
    unit = next((x for x in units() if x.matrix == u.arg), None)
    if unit is None: raise CompileError(f"{self.function.name}: {self.generation.arch} has no matrix unit for {u.arg}")
    c = regs.RZ if u.src[2].op is Ops.CONST and u.src[2].arg == 0 else self.group(u.src[2])
    return self.op(self.group_class(u.dtype), unit.key, self.group(u.src[0]), self.group(u.src[1]), c)
