"""Select scalar arithmetic for x86-64: integers in general registers, floats in the low lane of vector registers.
Tables map operations to methods.

Integers of 8 and 16 bits are kept extended to 32 bits. So each operation whose result may leave their range extends it
again. Additions use lea, which preserves flags and operands. Comparisons return 0 or 1 in a general register.
"""
from __future__ import annotations
from collections.abc import Callable
from typing import Any

from tinyhw.dtype import DType, dtypes, encode_float, FLOAT_FORMATS
from tinyhw.errors import CompileError
from tinyhw.isa.x86.select.level import Level, SelectionRule, rule_of
from tinyhw.isa.x86.table import regs
from tinyhw.machine.ir.inst import Reg, RegClass
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

FLOATS = (dtypes.float32, dtypes.float64)
FLOAT_BINARY = {Ops.ADD: "vadd", Ops.SUB: "vsub", Ops.MUL: "vmul", Ops.FDIV: "vdiv"}
# predicates of vcmpps: less (quiet), equal (ordered), not equal (or unordered)
PREDICATES = {Ops.CMPLT: 17, Ops.CMPEQ: 0, Ops.CMPNE: 4}
TIED = {Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor", Ops.SUB: "sub"}
SIGNED_LESS, UNSIGNED_LESS = "l", "b"

def suffix(dtype: DType) -> str: return "ss" if dtype is dtypes.float32 else "sd"

def width(dtype: DType) -> int: return 64 if dtype.itemsize == 8 else 32

def general(dtype: DType) -> RegClass: return regs.R64 if dtype.itemsize == 8 else regs.R32

def code_of(dtype: DType, value: Any) -> int:
  """The integer in a general register that represents a value."""
  return encode_float(value, dtype) if dtype in FLOAT_FORMATS else int(value)

def small(u: UOp) -> int | None:
  """The value of a constant that fits into an immediate."""
  if u.op is not Ops.CONST or dtypes.is_float(u.dtype): return None
  return int(u.arg) if -(1 << 31) <= u.arg < 1 << 31 else None

class Scalars(Level):
  """The scalar arithmetic of Selector."""

  def scalar(self, u: UOp) -> Reg:
    operand = u.src[0].dtype if u.op in GroupOp.Comparison else u.dtype
    table = FLOAT_RULES if operand in FLOATS else INTEGER_RULES
    rule = table.get(u.op)
    if rule is None:
      raise CompileError(f"{self.program.name}: x86-64 has no {u.op.name} of {operand}; decompose it before selection")
    return rule(self, u)

  def constant(self, dtype: DType, value: Any) -> Reg:
    """A constant, made at `constants_place`, once for each such place."""
    return self.once((dtype, value, str(value)), lambda: self._constant(dtype, value))

  def lanes_constant(self, u: UOp) -> Reg:
    """A vector of different constants."""
    return self.once((u,), lambda: self.vectorize(u))

  def once(self, key: tuple[Any, ...], make: Callable[[], Reg]) -> Reg:
    """The register that `make` emits at the place for constants, or an earlier one from there or from the start of the
    function."""
    block, at = self.constants_place()
    found = self.constants.get((id(block), *key)) or self.constants.get((id(self.function.blocks[0]), *key))
    if found is not None: return found
    key = (id(block), *key)
    current, self.block = self.block, block
    rest = block.insts[at.index:]
    del block.insts[at.index:]
    found = self.constants[key] = make()
    at.index = len(block.insts)
    block.insts += rest
    self.block = current
    return found

  def _constant(self, dtype: DType, value: Any) -> Reg:
    if dtype.count > 1 or dtype in FLOATS: return self.vector_constant(dtype, value)
    value = code_of(dtype, value)
    if dtype.itemsize == 8 and not -(1 << 31) <= value < 1 << 31:
      return self.op(regs.R64, "movabs_r64_i64", (value + (1 << 63)) % (1 << 64) - (1 << 63))
    bits = width(dtype)
    return self.op(general(dtype), f"mov_r{bits}_i32", value if bits == 64 else (value + (1 << 31)) % (1 << 32)
                   - (1 << 31))

  def normal(self, dtype: DType, value: Reg) -> Reg:
    """Extend a 32-bit result of a type with fewer bits."""
    if dtype.itemsize >= 4 or dtype is dtypes.bool: return value
    sign = "z" if dtypes.is_unsigned(dtype) or not dtypes.is_int(dtype) else "s"
    return self.op(regs.R32, f"mov{sign}x_r32_r{8 * dtype.itemsize}", value)

  # ***** integers *****

  def add(self, u: UOp) -> Reg:
    a, b = u.src
    bits, c = width(u.dtype), small(u.src[1])
    if c is not None: value = self.op(general(u.dtype), f"lea_r{bits}_m", self.value(a), None, 1, c)
    else: value = self.op(general(u.dtype), f"lea_r{bits}_m", self.value(a), self.value(b), 1, 0)
    return self.normal(u.dtype, value)

  def tied_integer(self, u: UOp) -> Reg:
    if u in self.rotated: return self.rotate(u.dtype, self.value(self.rotated[u][0]), self.rotated[u][1])
    bits, c, name = width(u.dtype), small(u.src[1]), TIED[u.op]
    source: Any = c if c is not None else self.value(u.src[1])
    value = self.tied(general(u.dtype), f"{name}_r{bits}_{'i32' if c is not None else f'r{bits}'}",
                      self.value(u.src[0]), source)
    return self.normal(u.dtype, value)

  def multiply(self, u: UOp) -> Reg:
    bits, c, a = width(u.dtype), small(u.src[1]), self.value(u.src[0])
    cls = general(u.dtype)
    if c is not None and c > 0 and c & (c - 1) == 0:
      value = self.tied(cls, f"shl_r{bits}_i8", a, c.bit_length() - 1) if c > 1 else a
    elif c in (3, 5, 9): value = self.op(cls, f"lea_r{bits}_m", a, a, c - 1, 0)
    elif c is not None: value = self.op(cls, f"imul_r{bits}_r{bits}_i32", a, c)
    else: value = self.tied(cls, f"imul_r{bits}_r{bits}", a, self.value(u.src[1]))
    return self.normal(u.dtype, value)

  def negate(self, u: UOp) -> Reg:
    if u.dtype is dtypes.bool: return self.tied(regs.R32, "xor_r32_i32", self.value(u.src[0]), 1)
    return self.normal(u.dtype, self.tied(general(u.dtype), f"neg_r{width(u.dtype)}", self.value(u.src[0])))

  def shift(self, u: UOp) -> Reg:
    """Select a shift. Counts of the number of bits or more shift everything out."""
    bits, cls, unsigned = width(u.dtype), general(u.dtype), dtypes.is_unsigned(u.dtype)
    a, c = self.value(u.src[0]), small(u.src[1])
    right = "shr" if unsigned else "sar"
    name = "shl" if u.op is Ops.SHL else right
    if c is not None:
      if c < bits: return self.normal(u.dtype, self.tied(cls, f"{name}_r{bits}_i8", a, c))
      return self.constant(u.dtype, 0) if name != "sar" else self.tied(cls, f"sar_r{bits}_i8", a, bits - 1)
    count = self.value(u.src[1])
    value = self.op(cls, f"{name}x_r{bits}_r{bits}_r{bits}", a, count)
    all_out = self.constant(u.dtype, 0) if name != "sar" else self.tied(cls, f"sar_r{bits}_i8", a, bits - 1)
    self.emit(f"cmp_r{bits}_i32", count, bits)
    return self.normal(u.dtype, self.tied(cls, f"cmovae_r{bits}_r{bits}", value, all_out))

  def divide(self, u: UOp) -> Reg:
    """Quotient or remainder.

    Decomposition ensures that both operands are non-negative, or that the result is rounded to zero, and that no trap
    is possible.
    """
    bits, cls, unsigned = width(u.dtype), general(u.dtype), dtypes.is_unsigned(u.dtype)
    low = self.copied(self.value(u.src[0]))
    divisor = self.value(u.src[1])
    if unsigned: high = self.op(cls, f"mov_r{bits}_i32", 0)
    else: high = self.op(cls, "cqo" if bits == 64 else "cdq", low)
    quotient, remainder = self.new(cls), self.new(cls)
    self.emit(f"{'div' if unsigned else 'idiv'}_r{bits}", quotient, remainder, divisor, ties=(low, high))
    return quotient if u.op is Ops.IDIV else remainder

  def compare(self, u: UOp) -> Reg:
    flag = self.compare_flags(u)
    byte = self.op(regs.R8, f"set{flag}_r8")
    return self.op(regs.R32, "movzx_r32_r8", byte)

  def compare_flags(self, u: UOp) -> str:
    """Compare integers. Returns the condition under which u is true."""
    operand = u.src[0].dtype
    bits, c = width(operand), small(u.src[1])
    if c is not None: self.emit(f"cmp_r{bits}_i32", self.value(u.src[0]), c)
    else: self.emit(f"cmp_r{bits}_r{bits}", self.value(u.src[0]), self.value(u.src[1]))
    if u.op is not Ops.CMPLT: return "e" if u.op is Ops.CMPEQ else "ne"
    return UNSIGNED_LESS if dtypes.is_unsigned(operand) or operand is dtypes.bool else SIGNED_LESS

  def maximum(self, u: UOp) -> Reg:
    bits, a, b = width(u.dtype), self.value(u.src[0]), self.value(u.src[1])
    self.emit(f"cmp_r{bits}_r{bits}", a, b)
    return self.tied(general(u.dtype), f"cmov{'b' if dtypes.is_unsigned(u.dtype) else 'l'}_r{bits}_r{bits}", a, b)

  # ***** floats *****

  def float_binary(self, u: UOp) -> Reg:
    s = suffix(u.dtype)
    address = self.memory(u.src[1])
    if address is not None: return self.op(regs.XMM, f"{FLOAT_BINARY[u.op]}{s}_x_x_m", self.value(u.src[0]), *address)
    return self.op(regs.XMM, f"{FLOAT_BINARY[u.op]}{s}_x_x_x", self.value(u.src[0]), self.value(u.src[1]))

  def float_compare(self, u: UOp) -> Reg:
    dtype = u.src[0].dtype
    mask = self.scalar_mask(suffix(dtype), self.value(u.src[0]), self.value(u.src[1]), PREDICATES[u.op])
    if self.only_chooses(u):
      self.lone.add(u)
      return mask
    return self.flag_of_mask(mask)

  def only_chooses(self, u: UOp) -> bool:
    """Whether only WHEREs of the same type use a comparison of floats. Then it stays a mask."""
    return all(user.op is Ops.WHERE and user.dtype is u.src[0].dtype and user.src[0] is u for user in self.users[u])

  def float_unary(self, u: UOp) -> Reg:
    s, a = suffix(u.dtype), self.value(u.src[0])
    if u.op is Ops.SQRT: return self.op(regs.XMM, f"vsqrt{s}_x_x_x", a, a)
    if u.op is Ops.TRUNC: return self.op(regs.XMM, f"vround{s}_x_x_x_i8", a, a, 11)
    if u.op is Ops.RECIPROCAL: return self.op(regs.XMM, f"vdiv{s}_x_x_x", self.constant(u.dtype, 1.0), a)
    return self.op(regs.XMM, f"vxorp{s[1]}_x_x_x", a, self.constant(u.dtype, -0.0))

_tied, _float2, _float1 = Scalars.tied_integer, Scalars.float_binary, Scalars.float_unary
INTEGER_RULES: dict[Ops, SelectionRule] = {
  Ops.ADD: Scalars.add, Ops.SUB: _tied, Ops.AND: _tied, Ops.OR: _tied, Ops.XOR: _tied, Ops.MUL: Scalars.multiply,
  Ops.NEG: Scalars.negate,
  Ops.SHL: Scalars.shift, Ops.SHR: Scalars.shift, Ops.IDIV: Scalars.divide, Ops.MOD: Scalars.divide,
  Ops.MAX: Scalars.maximum,
  Ops.CMPLT: Scalars.compare, Ops.CMPEQ: Scalars.compare, Ops.CMPNE: Scalars.compare, Ops.WHERE: rule_of("where"),
}
FLOAT_RULES: dict[Ops, SelectionRule] = {
  Ops.ADD: _float2, Ops.SUB: _float2, Ops.MUL: _float2, Ops.FDIV: _float2, Ops.MULACC: rule_of("scalar_fma"),
  Ops.SQRT: _float1, Ops.TRUNC: _float1, Ops.RECIPROCAL: _float1, Ops.NEG: _float1, Ops.WHERE: rule_of("where"),
  Ops.CMPLT: Scalars.float_compare, Ops.CMPEQ: Scalars.float_compare, Ops.CMPNE: Scalars.float_compare,
}
