"""Select arithmetic, comparisons and choices."""
from __future__ import annotations
from typing import Any

from tinyhw.arithmetic import to_bytes
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.sass.macros.macros import CLASSES, signed
from tinyhw.isa.sass.select.fused import Fused
from tinyhw.isa.sass.select.recipes import RECIPES
from tinyhw.isa.sass.table import regs
from tinyhw.machine.ir.inst import Access, Reg, RegClass
from tinyhw.machine.select.packed import is_exact_product, parts_of, unsigned
from tinyhw.machine.select.recipes import RecipeLine, followed
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import ROUGH, GroupOp, Ops
from tinyhw.uop.ops import UOp

# op -> macro, by kind
BITS_32 = {Ops.ADD: "add32", Ops.SUB: "sub32", Ops.MUL: "mul32", Ops.AND: "and32", Ops.OR: "or32", Ops.XOR: "xor32",
           Ops.SHL: "shl32"}
BITS_64 = {Ops.ADD: "add64", Ops.SUB: "sub64", Ops.MUL: "mul64", Ops.AND: "and64", Ops.OR: "or64", Ops.XOR: "xor64",
           Ops.SHL: "shl64"}
TABLES = {
  "s32": {**BITS_32, Ops.SHR: "shr_s32", Ops.MAX: "max_s32"},
  "u32": {**BITS_32, Ops.SHR: "shr_u32", Ops.MAX: "max_u32"},
  "s64": {**BITS_64, Ops.SHR: "shr_s64"}, "u64": {**BITS_64, Ops.SHR: "shr_u64"},
  **{f"f{bits}": {op: f"{name}_f{bits}" for op, name in (
    (Ops.ADD, "add"), (Ops.SUB, "sub"), (Ops.MUL, "mul"), (Ops.MULACC, "fma"), (Ops.FDIV, "div"), (Ops.SQRT, "sqrt"),
    (Ops.TRUNC, "trunc"),
    (Ops.NEG, "neg"), (Ops.RECIPROCAL, "reciprocal"))} for bits in (32, 64)},
}
ROUGHLY = {Ops.EXP2: "exp2_f32", Ops.MAX: "most_f32"}    # with the argument ROUGH
TABLES["f32"][Ops.MAX] = "most_nan_f32"  # of reductions; the MAX of two floats is made of other operations
SHIFTS = (Ops.SHL, Ops.SHR)
COMMON = 60  # float32 exponents within this bound are divided by recipes without a check
LOGIC = {Ops.AND: "p_and", Ops.OR: "p_or", Ops.XOR: "p_xor"}
PREDICATES = {Ops.CMPLT: "lt", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}
# names after an exchange of the operands; others stay
MIRRORED = {"lt_s32": "gt_s32", "lt_u32": "gt_u32", "lt_f32": "gt_f32"}

def kind_of(dtype: DType) -> str:
  """Return the kind of numbers in registers. Integers narrower than a register are extended to 32 bits."""
  if dtypes.is_float(dtype): return f"f{dtype.bitsize}"
  return f"{'u' if dtypes.is_unsigned(dtype) else 's'}{max(dtype.bitsize, 32)}"

class Arithmetic(Fused):
  """The layer of Selector for arithmetic."""

  def logic(self, u: UOp) -> Reg:
    return self.compared_and(u) or self.op(regs.P, LOGIC[u.op], *[self.value(s) for s in u.src])

  def number(self, u: UOp) -> Reg:
    cls, kind = self.home(u), kind_of(u.dtype)
    fused = self.total(u) or self.bitwise(u) if dtypes.is_int(u.dtype) else self.product_and_sum(u)
    if fused is not None: return fused
    sources = [self.value(s) for s in u.src]
    if u.op is Ops.DOT4: return self.op(cls, "dot4_" + "".join([kind_of(s.dtype)[0] for s in u.src[:2]]), *sources)
    if u.op is Ops.NEG and not dtypes.is_float(u.dtype): return self.op(cls, f"sub{kind[1:]}", 0, sources[0])
    if u.op is Ops.MAX and kind[1:] == "64": return self.max64(kind, *sources)
    name = ROUGHLY[u.op] if u.arg == ROUGH else TABLES[kind].get(u.op)
    if name is None: raise CompileError(f"{self.function.name}: NVIDIA selection has no {u.op.name} of {u.dtype}")
    if u.op is Ops.SUB and not isinstance(sources[1], Reg):
      name, sources[1] = TABLES[kind][Ops.ADD], negated(sources[1], kind)
    if u.op in GroupOp.Commutative and not isinstance(sources[0], Reg): sources.reverse()
    if u.op is Ops.MULACC and not isinstance(sources[0], Reg): sources[:2] = sources[1], sources[0]
    if u.op in SHIFTS: sources[1] = self.half(sources[1], "low") if kind[1:] == "64" else sources[1]
    if name == "mul64":
      narrow = self.narrow_factors(u)
      if narrow is not None: return self.op(cls, f"mul_wide_{narrow[0]}", *narrow[1])
    if name == "div_f32" and is_common(u.src[1]): return self.divided(u.src[0], u.src[1])
    return self.perform(cls, name, *sources)

  def product_and_sum(self, u: UOp) -> Reg | None:
    """Select a sum with a product that is exact in float32 as one instruction with the same bits.

    Return None if u is no such sum, or if the product has other users.
    """
    if u.op not in (Ops.ADD, Ops.SUB) or not any(self.inner(s, Ops.MUL) and is_exact_product(s) for s in u.src):
      return None
    a, b, c = parts_of(u)
    if b is None or c is None: return None
    (a, negative), (b, other), (c, minus) = (unsigned(x) for x in (a, b, c))
    if a.op is Ops.CONST: a, b = b, a
    term = self.value(c) if isinstance(self.value(c), Reg) or not minus else negated(self.value(c), "f32")
    signs = (negative is not other) | (minus and isinstance(term, Reg)) << 2
    return self.op(regs.R[1], signed(self.macro("fma_f32"), signs, 0), self.value(a), self.value(b), term)

  def divided(self, x: UOp, y: UOp) -> Reg:
    """Divide a float32 by a constant of common size."""
    whole = x.op is Ops.CAST and dtypes.is_int(x.src[0].dtype) and x.src[0].dtype.itemsize <= 4
    inverse = int.from_bytes(to_bytes(1 / y.arg, dtypes.float32), "little")
    return self.perform(regs.R[1], "div_integer_f32" if whole else "div_constant_f32", self.value(x), self.value(y),
                        inverse)

  def perform(self, cls: RegClass, name: str, *sources: Any) -> Reg:
    """Emit an instruction, a macro or a recipe."""
    if name not in RECIPES: return self.op(cls, name, *sources)
    found: Reg = followed(RECIPES[name], sources, self.line)
    return found

  def line(self, line: RecipeLine, sources: list[Any]) -> Reg:
    """Emit a line of a recipe. If the macro updates a register, its first source is the old value of that register."""
    macro = self.macro(line.key)
    if line.modifiers: macro = signed(macro, line.modifiers.get("neg", 0), line.modifiers.get("abs", 0))
    _, access, letters = macro.operands[0]
    if access is not Access.BOTH: return self.op(CLASSES[letters], macro, *sources)
    result = self.new(CLASSES[letters])
    self.emit(macro, result, *sources[1:], ties=(self.in_register(sources[0], 1),))
    return result

  def max64(self, kind: str, a: Any, b: Any) -> Reg:
    less = self.op(regs.P, f"lt_{kind}", a, b)
    return self.op(regs.R[2], "choose64", less, b, a)

  def comparison(self, u: UOp) -> Reg:
    if u.src[0].dtype is dtypes.bool: return self.compare_bools(u.op, *[self.value(s) for s in u.src])
    return self.op(regs.P, *self.test(u))

  def test(self, u: UOp) -> tuple[str, Any, Any]:
    a, b = (self.value(s) for s in u.src)
    kind = kind_of(u.src[0].dtype)
    if u.op is not Ops.CMPLT and kind[0] == "s": kind = f"u{kind[1:]}"
    name = f"{PREDICATES[u.op]}_{kind}"
    if not isinstance(a, Reg) and (u.op is not Ops.CMPLT or name in MIRRORED):
      a, b, name = b, a, MIRRORED.get(name, name)
    return name, a, b

  def compare_bools(self, op: Ops, a: Any, b: Any) -> Reg:
    """Compare bools. False is less than true."""
    if op is Ops.CMPNE: return self.op(regs.P, "p_xor", a, b)
    if op is Ops.CMPLT: return self.op(regs.P, "p_and", self.op(regs.P, "p_xor", a, 1), b)
    return self.op(regs.P, "p_xor", self.op(regs.P, "p_xor", a, b), 1)

  def choose(self, u: UOp) -> Reg:
    """Select WHERE."""
    limit = limit_of(u)
    if limit is not None: return self.op(regs.R[1], limit.macro, self.value(limit.x), self.value(limit.bound))
    condition, yes, no = (self.value(s) for s in u.src)
    if u.dtype is dtypes.bool: return self.op(regs.P, "p_choose", condition, yes, no)
    if u.dtype.itemsize == 8: return self.op(regs.R[2], "choose64", condition, yes, no)
    return self.op(regs.R[1], *self.choice_of(condition, yes, no))

  def choice_of(self, condition: Any, yes: Any, no: Any) -> tuple[str, Any, Any, Any]:
    """Return the macro of a choice of 32 bits and its sources. Only the second source can be a constant."""
    return (("choose_not", condition, no, yes) if not isinstance(yes, Reg) and isinstance(no, Reg)
            else ("choose", condition, yes, no))

class Limit(NamedTuple):
  """A number that a constant bounds."""
  macro: str
  x: UOp
  bound: UOp

# (is the constant the left operand of the comparison, is it the result if the comparison holds) -> the macro. For NaN
# the result is that of a comparison that does not hold
LIMITS = {(False, True): "most_nan_f32", (False, False): "least_f32", (True, True): "least_nan_f32",
          (True, False): "most_f32"}

def limit_of(u: UOp) -> Limit | None:
  """Recognize the minimum or maximum of a float32 and a constant, which is one instruction.

  Zeros are excluded: the instruction may return either of two equal numbers.
  """
  test, yes, no = u.src
  if u.dtype is not dtypes.float32 or test.op is not Ops.CMPLT or {yes, no} != set(test.src) or yes is no: return None
  bound = next((s for s in test.src if s.op is Ops.CONST and s.arg and s.arg == s.arg), None)
  if bound is None: return None
  return Limit(LIMITS[test.src[0] is bound, yes is bound], no if yes is bound else yes, bound)

def is_common(u: UOp) -> bool:
  """Return whether u is a constant divisor of common size.

  Quotients of common numbers by it are common, and its reciprocal is correctly rounded from float64.
  """
  return u.op is Ops.CONST and 2.0 ** -COMMON <= abs(u.arg) <= 2.0 ** COMMON

def negated(value: int, kind: str) -> int:
  """Return the bits of a negated constant."""
  bits = int(kind[1:])
  return value ^ 1 << bits - 1 if kind[0] == "f" else -value & (1 << bits) - 1
