"""Arithmetic as WGSL: expressions for one lane.

int8 and int16 are held in `i32`, uint8, uint16 and the codes of narrow floats in `u32`; codegen computes them in 32
bits. A 64-bit integer is a `vec2<u32>` (wgsl_prelude.py). WGSL refuses literals of infinities and NaNs, and constant
expressions that overflow. So an operation has no two literals as operands: one of them becomes unknown to the compiler.
"""
from __future__ import annotations
import math
import struct

from tinyhw.arithmetic import CODED, round_to
from tinyhw.codegen.math.maximum import never_nan
from tinyhw.codegen.render.source import SourceText
from tinyhw.dtype import DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

NARROW = frozenset(dtypes.narrow_floats)
SIGNED = frozenset({dtypes.int8, dtypes.int16, dtypes.int32})
WIDE = frozenset({dtypes.int64, dtypes.uint64})
PAIR = "vec2<u32>"
ZERO = "zero"   # the name of a number that is 0 (wgsl_prelude.py)
SPECIAL = frozenset({0.0, 1.0, -1.0, 2.0, -2.0})   # factors and terms that compilers treat in ways of their own
INFIX: dict[Ops, str] = {Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^",
                         Ops.CMPLT: "<", Ops.CMPNE: "!=", Ops.CMPEQ: "==", Ops.IDIV: "/", Ops.MOD: "%",
                         Ops.SHL: "<<", Ops.SHR: ">>", Ops.FDIV: "/"}
CALLS64: dict[Ops, str] = {Ops.ADD: "add64", Ops.SUB: "sub64", Ops.MUL: "mul64", Ops.IDIV: "idiv64", Ops.MOD: "mod64"}
ON_BOOLS: dict[Ops, str] = {Ops.AND: "&", Ops.OR: "|", Ops.XOR: "!=", Ops.CMPNE: "!=", Ops.CMPEQ: "==", Ops.MAX: "|"}

def type_of(dtype: DType) -> str:
  """Return the type of values of one lane. Raises CompileError for float64."""
  scalar = dtype.scalar()
  if scalar is dtypes.bool: return "bool"
  if scalar is dtypes.float32: return "f32"
  if scalar in WIDE: return PAIR
  if scalar in SIGNED: return "i32"
  if scalar in NARROW or scalar in (dtypes.uint8, dtypes.uint16, dtypes.uint32): return "u32"
  raise CompileError(f"WGSL has no values of {scalar}; cast to float32" if dtypes.is_float(scalar) else
                     f"WGSL has no values of {scalar}")

def literal(u: UOp) -> str:
  """Return a CONST as text, rounded or wrapped to its type."""
  scalar = u.dtype.scalar()
  kind, value = type_of(scalar), round_to(scalar)(u.arg)
  if kind == "bool": return "true" if value else "false"
  if scalar in CODED: return f"{CODED[scalar][1](value)}u"
  if kind == "f32":
    if math.isfinite(value): return f"{value!r}f" if math.copysign(1, value) > 0 else f"({value!r}f)"
    return f"bitcast<f32>({struct.unpack('<I', struct.pack('<f', value))[0]:#x}u ^ {ZERO})"
  if kind == PAIR: return f"{PAIR}({value & 0xffffffff}u, {value >> 32 & 0xffffffff}u)"
  if kind == "u32": return f"{value}u"
  return "(-2147483647i - 1i)" if value == -(1 << 31) else f"{value}i" if value >= 0 else f"({value}i)"

def unknown(source: SourceText, text: str, dtype: DType) -> str:
  """Return a value that the compiler does not know."""
  kind = type_of(dtype)
  if kind == "bool": return f"({text} != ({ZERO} != 0u))"
  if kind == "f32": return f"{helper(source, 'exact')}({text})"
  if kind == "i32": return f"({text} ^ bitcast<i32>({ZERO}))"
  return f"({text} ^ {PAIR}({ZERO}))" if kind == PAIR else f"({text} ^ {ZERO})"

def helper(source: SourceText, name: str) -> str:
  """Return the name of a function, which the source then contains."""
  source.helpers[name] = None
  return name

def compute(source: SourceText, u: UOp) -> None:
  """Define an elementwise operation, lane by lane."""
  n = u.dtype.count
  if u.op is Ops.BITCAST and n != u.src[0].dtype.count:
    raise CompileError(f"{source.program.name}: no BITCAST between numbers of lanes")
  source.define(u, [expression(source, u, operands(source, u, k)) for k in range(n)])

def operands(source: SourceText, u: UOp, k: int) -> list[str]:
  """Return lane k of the sources. Literals are made unknown where all are literals, or where compilers make something
  of them that is wrong for NaNs, infinities and zeros."""
  x, consts = [source.lane(s, k) for s in u.src], [is_literal(s) for s in u.src]
  if all(consts): return [unknown(source, x[0], u.src[0].dtype), *x[1:]]
  if u.op is Ops.WHERE: return x
  def is_misused(s: UOp) -> bool:
    return s.dtype.scalar() is dtypes.float32 and bool(s.src or s.arg in SPECIAL or u.op is Ops.FDIV)
  return [unknown(source, text, s.dtype) if is_const and is_misused(s) else text
          for text, s, is_const in zip(x, u.src, consts)]

def is_literal(u: UOp) -> bool:
  """Is a value a literal, or one whose text was moved?"""
  return u.op is Ops.CONST or (u.op in (Ops.BROADCAST, Ops.VECTORIZE, Ops.GEP, Ops.SHUFFLE)
                               and all(map(is_literal, u.src)))

def first_values(source: SourceText, u: UOp) -> list[str]:
  """Return the first values of an accumulator. A compiler that unrolls its loop must not know that it begins as 0.0,
  since 0.0 + -0.0 is not -0.0."""
  texts = source.values[u.src[0]]
  if u.dtype.scalar() is not dtypes.float32 or not is_literal(u.src[0]): return texts
  return [unknown(source, text, dtypes.float32) for text in texts]

def expression(source: SourceText, u: UOp, x: list[str]) -> str:
  """Return one lane of an elementwise operation on the lanes x of its sources."""
  op, scalar, operand = u.op, u.dtype.scalar(), u.src[-1].dtype.scalar()
  if op is Ops.CAST: return cast(source, x[0], operand, scalar)
  if op is Ops.BITCAST: return bitcast(x[0], operand, scalar)
  if op is Ops.WHERE: return f"select({x[2]}, {x[1]}, {x[0]})"
  text = None
  if operand is dtypes.bool and op is Ops.CMPLT: text = f"!{x[0]} && {x[1]}"
  elif operand is dtypes.bool: text = f"{x[0]} {ON_BOOLS[op]} {x[1]}" if op in ON_BOOLS else None
  elif operand in WIDE: text = wide_operation(source, u, x, operand)
  elif operand is dtypes.float32: text = float_operation(source, u, x)
  elif operand not in NARROW: text = int_operation(u, x, operand)
  if text is None:
    raise CompileError(f"{source.program.name}: WGSL has no {op.name} of {operand}; decompose it first")
  return text

def float_operation(source: SourceText, u: UOp, x: list[str]) -> str | None:
  """Return an operation of float32. `exact` separates it from other ones."""
  exact = helper(source, "exact")
  if u.op is Ops.TRUNC: return f"trunc({x[0]})"
  if u.op is Ops.NEG: return f"-{x[0]}"
  if u.op is Ops.RECIPROCAL: return f"{exact}({exact}(1.0f) / {x[0]})"
  if u.op is Ops.SQRT: return f"{exact}(sqrt({x[0]}))"
  if u.op is Ops.CMPNE:
    nans = [f"{helper(source, 'is_nan')}({y})" for y in dict.fromkeys(x)
            if not never_nan(u.src[x.index(y)])]
    return " || ".join([f"({x[0]} != {exact}({x[1]}))", *nans])
  if u.op is Ops.MULACC: return f"{helper(source, 'fused')}({', '.join(x)})"
  if len(x) == 2 and x[0] == x[1]: x = [x[0], f"{exact}({x[1]})"]   # x - x is not 0 where x is infinite
  if u.op in GroupOp.Comparison: return f"{x[0]} {INFIX[u.op]} {exact}({x[1]})"
  return f"{exact}({x[0]} {INFIX[u.op]} {x[1]})" if u.op in (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV) else None

def int_operation(u: UOp, x: list[str], scalar: DType) -> str | None:
  if u.op is Ops.NEG: return f"0{'u' if type_of(scalar) == 'u32' else 'i'} - {x[0]}"
  if u.op is Ops.TRUNC: return x[0]
  if u.op in (Ops.SHL, Ops.SHR): return f"{x[0]} {INFIX[u.op]} u32({x[1]})"
  if u.op is Ops.MAX: return f"max({x[0]}, {x[1]})"
  if u.op is Ops.MULACC: return f"{x[0]} * {x[1]} + {x[2]}"
  if u.op is Ops.FDIV: return None
  return f"{x[0]} {INFIX[u.op]} {x[1]}" if u.op in INFIX else None

def wide_operation(source: SourceText, u: UOp, x: list[str], scalar: DType) -> str | None:
  """Return an operation of 64-bit integers."""
  if u.op in (Ops.AND, Ops.OR, Ops.XOR): return f"{x[0]} {INFIX[u.op]} {x[1]}"
  if u.op in CALLS64: return f"{helper(source, CALLS64[u.op])}({x[0]}, {x[1]})"
  if u.op is Ops.NEG: return f"{helper(source, 'sub64')}({PAIR}(0u, 0u), {x[0]})"
  if u.op is Ops.TRUNC: return x[0]
  if u.op in (Ops.CMPEQ, Ops.CMPNE):
    return f"{'!' if u.op is Ops.CMPNE else ''}{helper(source, 'equal64')}({x[0]}, {x[1]})"
  if u.op is Ops.MULACC:
    return f"{helper(source, 'add64')}({helper(source, 'mul64')}({x[0]}, {x[1]}), {x[2]})"
  sign = "u64" if dtypes.is_unsigned(scalar) else "i64"
  if u.op is Ops.CMPLT: return f"{helper(source, f'less_{sign}')}({x[0]}, {x[1]})"
  if u.op is Ops.MAX: return f"select({x[0]}, {x[1]}, {helper(source, f'less_{sign}')}({x[0]}, {x[1]}))"
  if u.op is Ops.SHL: return f"{helper(source, 'shl64')}({x[0]}, {x[1]}.x)"
  return f"{helper(source, f'shr_{sign}')}({x[0]}, {x[1]}.x)" if u.op is Ops.SHR else None

# ***** conversions *****

def cast(source: SourceText, x: str, operand: DType, target: DType) -> str:
  """Return a conversion, as arithmetic.cast defines it."""
  if operand is target: return x
  if operand in NARROW or target in NARROW:
    raise CompileError(f"{source.program.name}: WGSL does not convert {operand} to {target}; decompose it first")
  if operand is dtypes.bool: return select_one(x, target)
  if target is dtypes.float32:
    if operand in WIDE: return f"{helper(source, 'u64_to_f32' if operand is dtypes.uint64 else 'i64_to_f32')}({x})"
    return f"f32({x})"
  if operand is dtypes.float32: return from_float(source, x, target)
  if target is dtypes.bool and operand in WIDE: return f"!{helper(source, 'equal64')}({x}, {PAIR}(0u, 0u))"
  if target is dtypes.bool: return f"{x} != 0"
  if target in WIDE: return widened(source, x, operand)
  if operand in WIDE: x, operand = f"{x}.x", dtypes.uint32
  return bitcast(x, operand, target)

def select_one(x: str, target: DType) -> str:
  """Return a bool as 1 or 0 of a type."""
  kind = type_of(target)
  if kind == PAIR: return f"{PAIR}(select(0u, 1u, {x}), 0u)"
  suffix = {"f32": ".0f", "i32": "i", "u32": "u"}[kind]
  return f"select(0{suffix}, 1{suffix}, {x})"

def widened(source: SourceText, x: str, operand: DType) -> str:
  """Return an integer in 64 bits."""
  if operand in WIDE: return x
  if type_of(operand) == "u32": return f"{PAIR}({x}, 0u)"
  return f"{PAIR}(bitcast<u32>({x}), {helper(source, 'sign_word')}({x}))"

def from_float(source: SourceText, x: str, target: DType) -> str:
  """Return a float32 as an integer; NaN and numbers outside of the type give the smallest number."""
  if target is dtypes.bool: return f"{x} != 0.0f || {helper(source, 'is_nan')}({x})"
  if target is dtypes.uint64: return f"{helper(source, 'f32_to_u64')}({x})"
  if target in (dtypes.int64, dtypes.uint32):
    wide = f"{helper(source, 'f32_to_i64')}({x})"
    return wide if target is dtypes.int64 else f"{wide}.x"
  return bitcast(f"{helper(source, 'f32_to_i32')}({x})", dtypes.int32, target)

def bitcast(x: str, operand: DType, target: DType) -> str:
  """Return the bits of a value in another type of this size, or those of an integer in a narrower one."""
  a, b = type_of(operand), type_of(target)
  if target is dtypes.bool: return f"{x} != 0"
  if operand is dtypes.bool: return select_one(x, target)
  if a != b: x = f"bitcast<{b}>({x})"
  if target.itemsize < 4 and (operand.itemsize > target.itemsize or a != b):
    return f"extractBits({x}, 0u, {8 * target.itemsize}u)"
  return x
