"""Select arithmetic, comparisons and choices. The scalar unit computes uniform results, the vector unit all others."""
from __future__ import annotations
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.isa.amd.select.part import Part
from tinyhw.isa.amd.select.recipes import RECIPES
from tinyhw.isa.amd.table import regs
from tinyhw.isa.amd.table.constants import KINDS
from tinyhw.machine.ir.inst import Reg, RegClass
from tinyhw.machine.select.recipes import followed
from tinyhw.uop.enums import ROUGH, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.words import bits_of_bytes

# op -> key, for 32-bit integers (UNSIGNED: where unsigned numbers differ), 64-bit ones, floats; "~": the operands are
# exchanged
VECTOR_32 = {
  Ops.ADD: "v_add_nc_u32", Ops.SUB: "v_sub_nc_u32", Ops.MUL: "v_mul_lo_u32", Ops.MAX: "v_max_i32",
  Ops.AND: "v_and_b32", Ops.OR: "v_or_b32", Ops.XOR: "v_xor_b32", Ops.SHL: "~v_lshlrev_b32", Ops.SHR: "~v_ashrrev_i32"}
VECTOR_32_UNSIGNED = {**VECTOR_32, Ops.SHR: "~v_lshrrev_b32", Ops.MAX: "v_max_u32"}
VECTOR_64 = {
  Ops.ADD: "add64", Ops.SUB: "sub64", Ops.MUL: "mul64",
  Ops.AND: "and64", Ops.OR: "or64", Ops.XOR: "xor64", Ops.SHL: "~v_lshlrev_b64", Ops.SHR: "~v_ashrrev_i64"}
VECTOR_64_UNSIGNED = {**VECTOR_64, Ops.SHR: "~v_lshrrev_b64"}
SCALAR_32 = {
  Ops.ADD: "s_add_u32", Ops.SUB: "s_sub_u32", Ops.MUL: "s_mul_i32", Ops.MAX: "s_max_i32",
  Ops.AND: "s_and_b32", Ops.OR: "s_or_b32", Ops.XOR: "s_xor_b32", Ops.SHL: "s_lshl_b32", Ops.SHR: "s_ashr_i32"}
SCALAR_32_UNSIGNED = {**SCALAR_32, Ops.SHR: "s_lshr_b32", Ops.MAX: "s_max_u32"}
SCALAR_64 = {
  Ops.ADD: "s_add64", Ops.SUB: "s_sub64", Ops.MUL: "s_mul64",
  Ops.AND: "s_and_b64", Ops.OR: "s_or_b64", Ops.XOR: "s_xor_b64", Ops.SHL: "s_lshl_b64", Ops.SHR: "s_ashr_i64"}
SCALAR_64_UNSIGNED = {**SCALAR_64, Ops.SHR: "s_lshr_b64"}
FLOAT_32 = {
  Ops.ADD: "v_add_f32", Ops.SUB: "v_sub_f32", Ops.MUL: "v_mul_f32", Ops.MULACC: "v_fma_f32", Ops.TRUNC: "v_trunc_f32",
  Ops.FDIV: "div_f32", Ops.SQRT: "sqrt_f32", Ops.RECIPROCAL: "reciprocal_f32",
  Ops.EXP2: "exp2_f32", Ops.EXP: "exp_f32", Ops.LOG2: "log2_f32", Ops.LOG: "log_f32"}
FLOAT_64 = {
  Ops.ADD: "v_add_f64", Ops.MUL: "v_mul_f64", Ops.MULACC: "v_fma_f64", Ops.TRUNC: "v_trunc_f64",
  Ops.FDIV: "div_f64", Ops.SQRT: "sqrt_f64"}
ROUGHLY = {Ops.EXP2: "v_exp_f32", Ops.MAX: "v_max_f32"}    # with the argument ROUGH
PREDICATES = {Ops.CMPLT: "lt", Ops.CMPEQ: "eq", Ops.CMPNE: "ne"}
TABLES = {  # (varying, bytes, unsigned)
  (True, 4, False): VECTOR_32, (True, 4, True): VECTOR_32_UNSIGNED,
  (True, 8, False): VECTOR_64, (True, 8, True): VECTOR_64_UNSIGNED,
  (False, 4, False): SCALAR_32, (False, 4, True): SCALAR_32_UNSIGNED,
  (False, 8, False): SCALAR_64, (False, 8, True): SCALAR_64_UNSIGNED,
}
SHIFTS = (Ops.SHL, Ops.SHR)
TOP_BITS = 0x80808080    # of each byte of a word: -128 as signed bytes
COMMUTATIVE = (Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR)

def is_vector(operand: Any) -> bool: return isinstance(operand, Reg) and operand.cls.bank is regs.VGPR

def scalar_first(a: Any, b: Any) -> tuple[Any, Any]:
  """Order two operands so that a constant or a scalar register is before a vector register, as short instructions
  require."""
  return (b, a) if is_vector(a) and not is_vector(b) else (a, b)

def letters(dtype: DType) -> str:
  """The type in the name of a comparison: f32, i64, u32."""
  if dtypes.is_float(dtype): return f"f{dtype.bitsize}"
  return f"{'u' if dtypes.is_unsigned(dtype) else 'i'}{max(dtype.bitsize, 32)}"

class Arithmetic(Part):
  """The arithmetic of Selector."""

  # defined in select.py
  def vector(self, u: UOp) -> Reg: raise NotImplementedError
  def mask(self, u: UOp) -> Any: raise NotImplementedError

  def number(self, u: UOp) -> Reg:
    return self.float_operation(u) if dtypes.is_float(u.dtype) else self.integer_operation(u)

  def integer_operation(self, u: UOp) -> Reg:
    """Select an integer operation by its table. Exceptions and cheaper instructions for some operands come first."""
    cls, varying = self.home(u), u in self.varying
    if u.op is Ops.NEG:
      return self.keyed(cls, TABLES[varying, u.dtype.itemsize, False][Ops.SUB], 0, self.value(u.src[0]))
    if u.op is Ops.MUL and varying and u.dtype.itemsize == 8:
      narrow = [self.low_half(s) for s in u.src]
      if None not in narrow: return self.op(cls, "mul_wide", *narrow)
    if u.op is Ops.MAX and u.dtype.itemsize == 8: return self.max64(u)
    if u.op is Ops.DOT4: return self.byte_products(u)
    key = TABLES[varying, u.dtype.itemsize, dtypes.is_unsigned(u.dtype)].get(u.op)
    if key is None: raise CompileError(f"{self.function.name}: AMD has no {u.op.name} of {u.dtype}")
    a, b = (self.value(s) for s in u.src)
    if u.op in SHIFTS and u.dtype.itemsize == 8: b = self.half(b, "low")
    if varying and u.op in COMMUTATIVE: a, b = scalar_first(a, b)
    if u.op is Ops.MUL and varying and u.dtype.itemsize == 4 and not isinstance(a, Reg) and a & a - 1 == 0 and a > 0:
      # products of integers take four times as long
      return self.op(cls, VECTOR_32[Ops.SHL][1:], a.bit_length() - 1, b)
    return self.keyed(cls, key, a, b)

  def keyed(self, cls: RegClass, key: str, a: Any, b: Any) -> Reg:
    """An operation of two sources; "~" before the key exchanges them."""
    return self.op(cls, key[1:], b, a) if key[0] == "~" else self.op(cls, key, a, b)

  def low_half(self, u: UOp) -> Any:
    """The uint32 from which a 64-bit integer was extended; else None."""
    if u.op is Ops.CONST: return int(u.arg) if 0 <= u.arg < 1 << 32 else None
    return self.value(u.src[0]) if u.op is Ops.CAST and u.src[0].dtype is dtypes.uint32 else None

  def byte_products(self, u: UOp) -> Reg:
    """A sum of four products of bytes. RDNA has modifiers for signed bytes; CDNA multiplies signed by signed ones, and
    unsigned by unsigned ones.

    There an unsigned byte below 128 is a signed one too, and any other is one plus 128:
    a * b = (a - 128) * b - (-128) * b.
    """
    cls, (a, b, total) = self.home(u), u.src
    first, second = self.value(a), self.value(b)
    signs = [not dtypes.is_unsigned(s.dtype) for s in (a, b)]
    if "v_dot4_i32_iu8" in self.table:
      return self.op(cls, "v_dot4_i32_iu8", first, second, self.value(total), neg_lo=signs[0] | signs[1] << 1)
    small = [signed or bits_of_bytes(s) < 128 for s, signed in zip((a, b), signs)]
    if not any(signs): return self.op(cls, "v_dot4_u32_u8", first, second, self.value(total))
    if all(small): return self.op(cls, "v_dot4_i32_i8", first, second, self.value(total))
    if small[0]: first, second = second, first
    flipped = self.op(cls, "v_xor_b32", TOP_BITS, first)
    whole = self.op(cls, "v_dot4_i32_i8", flipped, second, self.value(total))
    return self.op(cls, "v_sub_nc_u32", whole, self.op(cls, "v_dot4_i32_i8", TOP_BITS, second, 0))

  def max64(self, u: UOp) -> Reg:
    """The greater of two 64-bit integers, for which there is no instruction."""
    a, b = (self.vector(s) for s in u.src)
    less = self.op(self.mask_class, f"v_cmp_lt_{letters(u.dtype)}", a, b)
    return self.op(self.home(u), "choose64", less, b, a)

  def float_operation(self, u: UOp) -> Reg:
    """Select a floating-point operation by its table."""
    cls, wide = self.home(u), u.dtype.itemsize == 8
    values = [self.value(s) for s in u.src]
    if u.op is Ops.NEG:
      return self.op(cls, "negate_f64", self.vector(u.src[0])) if wide else self.op(cls, "v_xor_b32", 0x80000000,
                                                                                    self.vector(u.src[0]))
    if u.op is Ops.SUB and wide: return self.op(cls, "v_add_f64", *values, neg=2)
    if u.arg == ROUGH: return self.op(cls, ROUGHLY[u.op], *scalar_first(*values) if u.op is Ops.MAX else values)
    key = (FLOAT_64 if wide else FLOAT_32).get(u.op)
    if key is None: raise CompileError(f"{self.function.name}: AMD has no {u.op.name} of {u.dtype}")
    if u.op in COMMUTATIVE: values = list(scalar_first(*values))
    if u.op is Ops.MULACC and not wide: return self.multiply_add(cls, *values)
    return self.perform(cls, key, *values)

  def multiply_add(self, cls: RegClass, a: Any, b: Any, c: Any) -> Reg:
    """a*b + c. Short instructions take one literal operand."""
    if not isinstance(a, Reg): a, b = b, a
    if isinstance(a, Reg) and isinstance(c, Reg) and self.literal(b): return self.op(cls, "v_fmamk_f32", a, b, c)
    if isinstance(a, Reg) and isinstance(b, Reg) and self.literal(c):
      if b.cls.bank is regs.SGPR: a, b = b, a
      return self.op(cls, "v_fmaak_f32", a, b, c)
    return self.op(cls, "v_fma_f32", a, b, c)

  def literal(self, value: Any) -> bool:
    """Whether a 32-bit constant has no code in instructions."""
    return not isinstance(value, Reg) and value & 0xffffffff not in KINDS["f32"].codes

  def perform(self, cls: RegClass, key: str, *sources: Any) -> Reg:
    """Emit an instruction, a macro or a recipe."""
    if key not in RECIPES: return self.op(cls, key, *sources)
    found: Reg = followed(RECIPES[key], sources, lambda line, values: self.op(
      self.result_class(line.key), line.key, *values, **line.modifiers))
    return found

  def comparison(self, u: UOp) -> Reg:
    dtype, predicate = u.src[0].dtype, PREDICATES[u.op]
    a, b = (self.value(s) for s in u.src)
    if u in self.varying:
      if predicate == "ne" and dtypes.is_float(dtype): predicate = "neq"
      return self.op(self.mask_class, f"v_cmp_{predicate}_{letters(dtype)}", a, b)
    self.compare(predicate, dtype, a, b)
    return self.op(regs.S[1], "s_cselect_b32", 1, 0)

  def compare(self, predicate: str, dtype: DType, a: Any, b: Any) -> None:
    """Compare by the scalar unit; the result is in scc."""
    name = "lg" if predicate == "ne" else predicate
    if dtype.itemsize == 8:
      if name in ("eq", "lg"):
        return self.emit(f"s_cmp_{name}_u64", self.in_scalar(a, regs.S[2]), self.in_scalar(b, regs.S[2]))
      a, b = self.half(a, "low"), self.half(b, "low")  # counters and their limits: small numbers
    if not isinstance(a, Reg) and not isinstance(b, Reg): a = self.in_scalar(a, regs.S[1])
    self.emit(f"s_cmp_{name}_{'u' if dtypes.is_unsigned(dtype) and name not in ('eq', 'lg') else 'i'}32", a, b)

  # ***** bools *****

  def logic(self, u: UOp) -> Reg:
    """AND, OR, XOR of bools."""
    name = u.op.name.lower()
    if u in self.varying:
      return self.op(self.mask_class, f"s_{name}_b{self.generation.wave}", *[self.mask(s) for s in u.src])
    return self.op(regs.S[1], f"s_{name}_b32", *[self.value(s) for s in u.src])

  def choose(self, u: UOp) -> Reg:
    """Select WHERE."""
    condition, yes, no = u.src
    if u not in self.varying:
      self.emit("s_cmp_lg_u32", self.in_scalar(self.value(condition), regs.S[1]), 0)
      cls = self.home(u)
      return self.op(cls, f"s_cselect_b{32 * cls.units}", self.constant64(self.value(yes), cls),
                     self.constant64(self.value(no), cls))
    mask = self.in_scalar(self.mask(condition), self.mask_class)
    if u.dtype is dtypes.bool: return self.choose_mask(mask, self.mask(yes), self.mask(no))
    if u.dtype.itemsize == 8: return self.op(self.home(u), "choose64", mask, self.vector(yes), self.vector(no))
    return self.op(regs.V[1], "v_cndmask_b32", self.value(no), self.value(yes), mask)

  def constant64(self, value: Any, cls: RegClass) -> Any:
    """A 64-bit constant in registers, as it cannot be an operand."""
    if cls.units == 1 or isinstance(value, Reg): return value
    return self.in_scalar(value, cls)

  def choose_mask(self, mask: Reg, yes: Any, no: Any) -> Reg:
    """mask ? yes : no, bit by bit."""
    wave = self.generation.wave
    first = self.op(self.mask_class, f"s_and_b{wave}", mask, yes)
    second = self.op(self.mask_class, f"s_and_not1_b{wave}", self.in_scalar(no, self.mask_class), mask)
    return self.op(self.mask_class, f"s_or_b{wave}", first, second)
