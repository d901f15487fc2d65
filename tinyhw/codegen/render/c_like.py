"""Arithmetic of languages that have C's expressions: C, OpenCL C, Metal. A `CLike` is the record of their words.

Integers wrap by way of unsigned types. Operations without a vector operator are written lane by lane, and compilers
join them again. bool has lanes of 0 and 1 in a type of one byte. Float types narrower than float32 are held as their
bits; arithmetic on them goes through float.
"""
from __future__ import annotations
import math
import struct
from collections.abc import Mapping

from tinyhw.arithmetic import CODED, round_to
from tinyhw.codegen.render.source import SourceText
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.named_tuple import NamedTuple
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

NARROW = frozenset(dtypes.narrow_floats)
INFIX: dict[Ops, str] = {
  Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^", Ops.CMPLT: "<",
  Ops.CMPNE: "!=", Ops.CMPEQ: "==",
}
ON_BOOLS: dict[Ops, str] = {Ops.ADD: "|", Ops.MUL: "&", Ops.SUB: "^",
                            **{op: INFIX[op] for op in (Ops.AND, Ops.OR, Ops.XOR)}}
VECTOR_INFIX = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.AND, Ops.OR, Ops.XOR})

class CLike(NamedTuple):
  """The words of a language with C's expressions. Texts with braces are forms for `str.format`.

  - types: of one lane. wide: the suffixes of 64-bit literals, signed and unsigned. smallest: the smallest number by
    bits.
  - functions: of floats, (suffix): "f", or nothing for float64. infinity, nan: values (suffix).
  - bitcasts: (source, target, x), between a float and an integer. vector_bitcasts: (type, x).
  - helpers: functions of the prelude by name; those that a source calls are in its head.
  """
  language: str
  types: Mapping[DType, str]
  functions: Mapping[Ops, str]
  bitcasts: str
  vector_bitcasts: str
  infinity: str
  nan: str
  wide: tuple[str, str]
  smallest: Mapping[int, str]
  helpers: Mapping[str, str]

  def type_of_lane(self, dtype: DType) -> str:
    """Return the type of one lane."""
    found = self.types.get(dtype.scalar())
    if found is None: raise CompileError(f"{self.language} has no values of {dtype}")
    return found

  def literal(self, u: UOp) -> str:
    """Return a CONST as text, rounded or wrapped to its type. Floats have the digits that make them exact."""
    scalar = u.dtype.scalar()
    value = round_to(scalar)(u.arg)
    if scalar is dtypes.bool: return str(int(value))
    if scalar in CODED: return str(CODED[scalar][1](value))
    if dtypes.is_float(scalar):
      suffix = "" if scalar is dtypes.float64 else "f"
      if math.isfinite(value): return f"({value!r}{suffix})"
      bits = struct.unpack("<Q", struct.pack("<d", value))[0]
      if value == value: return f"({'-' if bits >> 63 else ''}{self.infinity.format(suffix=suffix)})"
      return self.nan.format(suffix=suffix)
    if value == -(1 << 63): return self.smallest[64]
    if scalar is dtypes.uint64: return f"{value}{self.wide[1]}"
    if scalar is dtypes.uint32: return f"{value}u"
    if scalar.bitsize >= 64: return f"({value}{self.wide[0]})"
    return self.smallest[32] if value == -(1 << 31) else f"({value})"

  # ***** helpers *****

  def helper(self, source: SourceText, name: str) -> str:
    """Return the name of a function, which the source then contains."""
    if name not in self.helpers: raise CompileError(f"{source.program.name}: {self.language} has no function {name}")
    source.helpers[name] = None
    return name

  def needed_helpers(self, source: SourceText) -> list[str]:
    """Return the functions that a source needs, earlier ones first. Joined sources define each of them once."""
    needed = set(source.helpers)
    while True:
      more = {name for name in self.helpers for user in needed if f"{name}(" in self.helpers[user]} | needed
      if more == needed: break
      needed = more
    return [f"#ifndef HAS_{name}\n#define HAS_{name}\n{text}\n#endif" for name, text in self.helpers.items()
            if name in needed]

  # ***** operations *****

  def compute(self, source: SourceText, u: UOp) -> None:
    """Define an elementwise operation."""
    n, scalar = u.dtype.count, u.dtype.scalar()
    if u.op is Ops.BITCAST and n != u.src[0].dtype.count:
      raise CompileError(f"{source.program.name}: no BITCAST between numbers of lanes")
    # a cast of vectors keeps their bits; lane by lane, GCC 12 takes the wrong ones on AVX-512: test_c.py
    if n > 1 and u.op is Ops.BITCAST:
      return source.define(u, [self.vector_bitcasts.format(type=source.dialect.type(source, u.dtype),
                                                           x=source.value(u.src[0]))])
    plain = scalar not in NARROW and (dtypes.is_float(scalar) or u.op in (Ops.AND, Ops.OR, Ops.XOR)
                                      or dtypes.is_unsigned(scalar))
    if n > 1 and u.op in VECTOR_INFIX and plain and all(s.dtype is u.dtype for s in u.src):
      return source.define(u, [f"{source.value(u.src[0])} {INFIX[u.op]} {source.value(u.src[1])}"])
    # lane by lane, GCC 12 takes the wrong lanes on AVX-512: test_c.py
    if n > 1 and u.op is Ops.WHERE and u.src[0].op is Ops.BROADCAST:
      gate, one, other = source.value(u.src[0].src[0]), source.value(u.src[1]), source.value(u.src[2])
      return source.define(u, [f"{gate} ? {one} : {other}"])
    lanes = [self.expression(source, u, [source.lane(s, k) for s in u.src]) for k in range(n)]
    source.define(u, source.join(u.dtype, lanes))

  def expression(self, source: SourceText, u: UOp, x: list[str]) -> str:
    """Return one lane of an elementwise operation on the lanes x of its sources."""
    op, scalar, operand = u.op, u.dtype.scalar(), u.src[-1].dtype.scalar()
    if op is Ops.CAST: return self.cast(source, x[0], operand, scalar)
    if op is Ops.BITCAST: return self.bitcast(x[0], operand, scalar)
    if op is Ops.WHERE: return f"{x[0]} ? {x[1]} : {x[2]}"
    if operand in NARROW:  # computed in float
      wide = [self.cast(source, y, operand, dtypes.float32) for y in x]
      if op in GroupOp.Comparison: return f"{wide[0]} {INFIX[op]} {wide[1]}"
      return self.cast(source, self.operation(source, u, wide, dtypes.float32), dtypes.float32, scalar)
    if op in GroupOp.Comparison: return f"{x[0]} {INFIX[op]} {x[1]}"
    return self.operation(source, u, x, scalar)

  def operation(self, source: SourceText, u: UOp, x: list[str], scalar: DType) -> str:
    if dtypes.is_float(scalar): return self.float_operation(source, u, x, scalar)
    if u.op is Ops.MAX: return f"{x[0]} < {x[1]} ? {x[1]} : {x[0]}"
    if scalar is dtypes.bool:
      if u.op is Ops.NEG: return f"!{x[0]}"
      if u.op in ON_BOOLS: return f"{x[0]} {ON_BOOLS[u.op]} {x[1]}"
    return self.int_operation(source, u, x, scalar)

  def float_operation(self, source: SourceText, u: UOp, x: list[str], scalar: DType) -> str:
    suffix = "" if scalar is dtypes.float64 else "f"
    if u.op in INFIX: return f"{x[0]} {INFIX[u.op]} {x[1]}"
    if u.op is Ops.MAX: return f"({x[0]}) < ({x[1]}) || ({x[1]}) != ({x[1]}) ? ({x[1]}) : ({x[0]})"
    if u.op is Ops.NEG: return f"-{x[0]}"
    if u.op is Ops.RECIPROCAL: return f"1.0{suffix} / {x[0]}"
    function = self.functions.get(u.op)
    if function is None:
      raise CompileError(f"{source.program.name}: {self.language} has no {u.op.name} of {scalar} without a library; "
                         f"decompose it first")
    return f"{function.format(suffix=suffix)}({', '.join(x)})"

  def int_operation(self, source: SourceText, u: UOp, x: list[str], scalar: DType) -> str:
    """Return signed arithmetic as unsigned arithmetic, where overflow wraps."""
    bits = 64 if scalar is dtypes.weakint else scalar.bitsize
    kind, wide = self.type_of_lane(scalar), self.types[dtypes.uint64 if bits == 64 else dtypes.uint32]
    name = ALIASES_BY_TYPE[scalar] if scalar is not dtypes.weakint else "int64"
    if u.op in (Ops.ADD, Ops.SUB, Ops.MUL): return f"({kind})(({wide}){x[0]} {INFIX[u.op]} ({wide}){x[1]})"
    if u.op in (Ops.AND, Ops.OR, Ops.XOR): return f"{x[0]} {INFIX[u.op]} {x[1]}"
    if u.op is Ops.MULACC: return f"({kind})(({wide}){x[0]} * ({wide}){x[1]} + ({wide}){x[2]})"
    if u.op is Ops.NEG: return f"({kind})(0 - ({wide}){x[0]})"
    if u.op is Ops.TRUNC: return x[0]
    if u.op in (Ops.IDIV, Ops.MOD):
      function = f"{u.op.name.lower()}_{name}"
      # without such a function the guarantee of decompose.py holds: the dividend is not negative, the divisor above 0
      if u.src[0].vmin >= 0 and u.src[1].vmin > 0 or function not in self.helpers:
        return f"({kind})({x[0]} {'/' if u.op is Ops.IDIV else '%'} {x[1]})"
      return f"{self.helper(source, function)}({x[0]}, {x[1]})"
    if u.op in (Ops.SHL, Ops.SHR): return self.shift(u.op, x, scalar, bits, kind, wide)
    if u.op is Ops.THREEFRY: return f"{self.helper(source, 'threefry')}({x[0]}, {x[1]})"
    raise CompileError(f"{source.program.name}: {self.language} has no {u.op.name} of {scalar}")

  def shift(self, op: Ops, x: list[str], scalar: DType, bits: int, kind: str, wide: str) -> str:
    """Return a shift; by the width or more it gives 0, or copies of the sign."""
    inside = f"({self.types[dtypes.uint64]}){x[1]} < {bits}"
    if op is Ops.SHL: return f"{inside} ? ({kind})(({wide}){x[0]} << {x[1]}) : 0"
    return (f"{inside} ? ({kind})({x[0]} >> {x[1]}) : "
            f"{f'({kind})0' if dtypes.is_unsigned(scalar) else f'({kind})({x[0]} >> {bits - 1})'}")

  # ***** conversions *****

  def cast(self, source: SourceText, x: str, operand: DType, target: DType) -> str:
    """Return a conversion, as arithmetic.cast defines it."""
    if operand is target: return x
    def helper(name: str) -> str: return self.helper(source, name)
    if operand in NARROW:
      return self.cast(source, f"{helper(f'decode_{ALIASES_BY_TYPE[operand]}')}({x})", dtypes.float32, target)
    if target in NARROW and operand is dtypes.float64:
      return self.cast(source, f"{helper('round_to_odd')}({x})", dtypes.float32, target)
    if target in NARROW:
      return f"{helper(f'encode_{ALIASES_BY_TYPE[target]}')}({self.cast(source, x, operand, dtypes.float32)})"
    if target is dtypes.bool: return f"({x}) != 0"
    kind = self.type_of_lane(target)
    if not dtypes.is_float(operand) or dtypes.is_float(target): return f"({kind})({x})"
    integer = {dtypes.uint64: "uint64", dtypes.int64: "int64", dtypes.weakint: "int64",
               dtypes.uint32: "int64"}.get(target, "int32")
    return f"({kind}){helper(f'{ALIASES_BY_TYPE[operand]}_to_{integer}')}({x})"

  def bitcast(self, x: str, operand: DType, target: DType) -> str:
    a, b = self.type_of_lane(operand), self.type_of_lane(target)
    if target is dtypes.bool: return f"({x}) != 0"
    if a == b: return x
    if not {a, b} & {self.types[dtypes.float32], self.types.get(dtypes.float64)}: return f"({b})({x})"
    return self.bitcasts.format(source=a, target=b, x=x)
