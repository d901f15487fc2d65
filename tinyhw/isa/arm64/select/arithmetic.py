"""Select arithmetic, comparisons and choices for AArch64, by the rules of rules.py."""
from __future__ import annotations
from collections.abc import Iterator
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.arm64.select.dot import Dots, orders
from tinyhw.isa.arm64.select.part import ELEMENTS, arrangement, scalar, width
from tinyhw.isa.arm64.select.rules import CONDITIONS, LANES, SCALAR_RULES, immediate
from tinyhw.machine.ir.inst import Reg
from tinyhw.machine.select.cpu import is_mask
from tinyhw.machine.select.rules import FLOATS, SelectionRule, family
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

class Arithmetic(Dots):
  """Elementwise operations of scalars and vectors."""

  def compute(self, u: UOp) -> Reg:
    if u.op in (Ops.CAST, Ops.BITCAST): return self.cast(u)
    if u.op is Ops.WHERE: return self.choose(u)
    if u.op in GroupOp.Comparison: return self.comparison(u)
    if is_mask(u): return self.logic(u)
    return self.lanes(u) if u.dtype.count > 1 else self.normal(u.dtype, self.by_rule(u, SCALAR_RULES))

  def lanes(self, u: UOp) -> Reg:
    shifted = self.shifted_bytes(u)
    return self.by_rule(u, self.rules) if shifted is None else shifted

  # ***** rules *****

  def without_rule(self, u: UOp) -> Reg: return self.mixed(u) if u.op is Ops.DOT4 else super().without_rule(u)

  def orders(self, u: UOp, rule: SelectionRule) -> Iterator[list[UOp]]: return orders(u, rule)
  def immediate(self, condition: str, value: int, bits: int) -> int | None: return immediate(condition, value, bits)

  def operands(self, u: UOp, condition: str, sources: list[UOp]) -> tuple[dict[str, Any] | None, dict[str, int]]:
    if condition == "b:element":
      if sources[1] not in self.spread: return None, {}
      values = {name: self.value(s) for name, s in zip("ac", (sources[0], *sources[2:]))}
      return {**values, "b": self.value(sources[1].src[0])}, {"b": 0}
    if condition == "halves":
      if any(s.op is not Ops.CAST or s.src[0].dtype.scalar() is not dtypes.float16 for s in sources[:2]):
        return None, {}
      return {name: self.value(s) for name, s in zip("abc", (*(s.src[0] for s in sources[:2]), sources[2]))}, {}
    return super().operands(u, condition, sources)

  def spelled(self, text: str, dtype: DType, numbers: dict[str, int]) -> str:
    """A line for a type."""
    size = dtype.scalar().itemsize
    if dtype.count > 1:
      text = text.replace(".T", "." + arrangement(size, dtype.itemsize)).replace(".E", "." + ELEMENTS[size])
      wide = dtype.itemsize > 8
      text = text.replace(".H", ".16b" if wide else ".8b").replace(".P", ".8h" if wide else ".4h")
      text = text.replace(".L", f".{dtype.count}h")
    else:
      r, f = width(dtype), scalar(dtype)
      text = text.replace("R%", f"{r}%").replace("Rzr", f"{r}zr").replace("F%", f"{f}%")
    return text.format_map(numbers) if "{" in text else text

  # ***** comparisons *****

  def compare(self, u: UOp) -> str:
    """Compare two scalars, and return the condition under which u is true."""
    a, b = u.src
    dtype, conditions = a.dtype, CONDITIONS[family(a.dtype)]
    if dtype in FLOATS:
      zero = b.op is Ops.CONST and b.arg == 0
      if zero: self.emit(f"fcmp {scalar(dtype)}%a, #0.0", a=self.value(a))
      else: self.emit(f"fcmp {scalar(dtype)}%a, {scalar(dtype)}%b", a=self.value(a), b=self.value(b))
      return conditions[u.op]
    number = self.compared(b)
    if number is not None and number >= 0: self.emit(f"cmp {width(dtype)}%a, #{number}", a=self.value(a))
    elif number is not None: self.emit(f"cmn {width(dtype)}%a, #{-number}", a=self.value(a))
    else: self.emit(f"cmp {width(dtype)}%a, {width(dtype)}%b", a=self.value(a), b=self.value(b))
    return conditions[u.op]

  def compared(self, u: UOp) -> int | None:
    """A constant that cmp or cmn takes."""
    if u.op is not Ops.CONST: return None
    value = int(u.arg)
    return value if -4096 < value < 4096 and (value >= 0 or u.dtype in dtypes.sints) else None

  def comparison(self, u: UOp) -> Reg:
    if u.dtype.count == 1: return self.code(f"cset w%d, {self.compare(u)}")
    operand = u.src[0].dtype
    if operand.scalar() is dtypes.bool: return self.logic(u)
    self.mask_bytes[u] = operand.scalar().itemsize
    values: dict[str, Any] = {"a": self.value(u.src[0]), "b": self.value(u.src[1])}
    for text in LANES[family(operand)][u.op].split("; "): self.put(self.spelled(text, operand, {}), values)
    made: Reg = values["d"]
    return made

  def truth(self, condition: UOp) -> str:
    """Set the flags by a scalar bool, and return the condition under which it is true."""
    if condition in self.flags: return self.compare(condition)
    self.emit("cmp w%a, #0", a=self.value(condition))
    return "ne"

  def mask_of_flag(self, condition: UOp) -> Reg:
    """A scalar bool in all bits of a vector."""
    return self.code("dup v%d.2d, x%a", a=self.code(f"csetm x%d, {self.truth(condition)}"))

  # ***** choices *****

  def choose(self, u: UOp) -> Reg:
    condition, yes, no = u.src
    if u.dtype.count > 1 and condition.dtype.count > 1:
      if is_mask(u): return self.logic(u)
      mask = self.mask(condition, u.dtype.scalar().itemsize)
      return self.blended(mask, self.value(yes), self.value(no))
    return self.chosen(u, self.value(yes), self.value(no), condition)

  def blended(self, mask: Reg, yes: Reg, no: Reg) -> Reg:
    """yes where the mask is ones, else no."""
    return self.code("bsl v%d:m.16b, v%a.16b, v%b.16b", m=mask, a=yes, b=no)

  def chosen(self, u: UOp, yes: Reg, no: Reg, condition: UOp) -> Reg:
    """One of two values by a scalar condition."""
    if u.dtype.count > 1:
      return self.blended(self.mask_of_flag(condition), yes, no)
    test = self.truth(condition)
    letter = scalar(u.dtype) if u.dtype in FLOATS else width(u.dtype)
    return self.code(f"{'fcsel' if u.dtype in FLOATS else 'csel'} {letter}%d, {letter}%a, {letter}%b, {test}", a=yes,
                     b=no)
