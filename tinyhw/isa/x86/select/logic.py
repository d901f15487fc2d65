"""Select several operations of logic as one instruction, for x86-64: rotations, and AVX-512's functions of three
operands."""
from __future__ import annotations
import operator

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.select.level import Level
from tinyhw.isa.x86.select.scalar import general, width
from tinyhw.isa.x86.select.vector import ELEMENT, LETTER_CLASS, letter
from tinyhw.machine.ir.inst import Reg
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

FUNCTIONS = {Ops.AND: operator.and_, Ops.OR: operator.or_, Ops.XOR: operator.xor}
A, B, C = 0xF0, 0xCC, 0xAA  # vpternlog's operands as columns of its truth table; the immediate is the function of these

def rotation(u: UOp) -> tuple[UOp, int] | None:
  """x and a count, if u is x << count | x >> bits - count."""
  if u.op is not Ops.OR or not dtypes.is_unsigned(u.dtype.scalar()) or u.dtype.scalar().itemsize < 4: return None
  left, right = u.src if u.src[0].op is Ops.SHL else u.src[::-1]
  if left.op is not Ops.SHL or right.op is not Ops.SHR or left.src[0] is not right.src[0]: return None
  if left.src[1].op is not Ops.CONST or right.src[1].op is not Ops.CONST: return None
  return (left.src[0], left.src[1].arg) if left.src[1].arg + right.src[1].arg == u.dtype.scalar().bitsize else None

class Logic(Level):
  """The combined logic of Selector.

  `rotated`: the rotated value, and the count; `inner`: the operation that a function of three operands contains.
  """

  def take_logic(self, u: UOp, fence: int) -> None:
    """Before selection: mark operations that u includes as not emitted. fence: the last store or end before u."""
    found = rotation(u)
    if found is not None and (u.dtype.count == 1 or self.has_ternary) and all(self.users[s] == [u] for s in u.src):
      self.rotated[u] = found
      for s in u.src: self.users[s] = []
    elif self.has_ternary and u.dtype.count > 1 and dtypes.is_int(u.dtype):
      mine = [s for s in u.src if s.op in FUNCTIONS and self.users[s] == [u] and self.position[s] > fence]
      inner = next((s for s in mine if s not in self.inner and s not in self.rotated), None)
      if inner is None: return
      self.inner[u] = inner
      self.users[inner] = []

  def rotate(self, dtype: DType, value: Reg, count: int) -> Reg:
    if dtype.count == 1: return self.tied(general(dtype), f"rol_r{width(dtype)}_i8", value, count)
    return self.vop(dtype.itemsize, f"vprol{ELEMENT[dtype.scalar().itemsize]}_{{v}}_{{v}}_i8", value, count)

  def ternary(self, u: UOp) -> Reg:
    inner, v = self.inner[u], letter(u.dtype.itemsize)
    last = u.src[1] if u.src[0] is inner else u.src[0]
    a, b = inner.src if self.is_last_use(inner.src[0]) or not self.is_last_use(inner.src[1]) else inner.src[::-1]
    function = FUNCTIONS[u.op](FUNCTIONS[inner.op](A, B), C)
    old, middle = self.value(a), self.value(b)
    kind, place = self.last_operand(last)
    wide = "q" if kind == "b" and u.dtype.scalar().itemsize == 8 else "d"
    return self.tied(LETTER_CLASS[v], f"vpternlog{wide}_{v}_{v}_{kind or v}_i8", old, middle, *place, function)
