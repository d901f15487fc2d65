"""Arithmetic as Python source: expressions for one lane, and when their exact results must be rounded or wrapped.

The source expects the names of tinyhw.arithmetic.
"""
from __future__ import annotations
import math
from collections.abc import Callable
from typing import Any

from tinyhw.arithmetic import round_to
from tinyhw.codegen.math.maximum import never_nan
from tinyhw.dtype import ALIASES_BY_TYPE, DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

_INFIX: dict[Ops, str] = {
  Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^", Ops.CMPLT: "<", Ops.CMPNE: "!=",
  Ops.CMPEQ: "==",
}
_ON_BOOLS: dict[Ops, str] = {Ops.ADD: "|", Ops.MUL: "&", Ops.SUB: "^"}
_CALLS: dict[Ops, str] = {
  Ops.SQRT: "square_root", Ops.EXP2: "exp2", Ops.LOG2: "log2", Ops.EXP: "exp", Ops.LOG: "log", Ops.SIN: "sin",
  Ops.COS: "cos", Ops.TANH: "math.tanh",
  Ops.ERF: "math.erf", Ops.POW: "power", Ops.TRUNC: "truncate_float", Ops.THREEFRY: "threefry",
}
_EXACT = (frozenset({Ops.TRUNC, Ops.MAX, Ops.WHERE, Ops.AND, Ops.OR, Ops.XOR, Ops.MOD, Ops.SHR, Ops.THREEFRY})
          | GroupOp.Comparison)
NARROW = frozenset(dtypes.narrow_floats)

def type_name(dtype: DType) -> str: return f"dtypes.{ALIASES_BY_TYPE[dtype.scalar()]}"

def literal(u: UOp) -> str:
  """Return a CONST as Python text, rounded or wrapped to its type."""
  value: Any = round_to(u.dtype.scalar())(u.arg)
  if isinstance(value, float) and math.isnan(value): return "math.nan"
  if isinstance(value, float) and math.isinf(value): return "math.inf" if value > 0 else "(-math.inf)"
  return f"({value!r})" if repr(value).startswith("-") else repr(value)

def wrap(text: str, dtype: DType) -> str:
  """Return an integer expression modulo the width of its type."""
  if dtype is dtypes.weakint: return text
  mask, half = (1 << dtype.bitsize) - 1, 1 << (dtype.bitsize - 1)
  return f"({text}) & {mask:#x}" if dtypes.is_unsigned(dtype) else f"(({text}) + {half:#x} & {mask:#x}) - {half:#x}"

def needs_rounding(u: UOp) -> bool:
  """Can the exact result of the expression be outside of the type's values?"""
  scalar, source = u.dtype.scalar(), u.src[0].dtype.scalar()
  if u.op is Ops.CAST: return _cast_rounds(u, source, scalar)
  if scalar in dtypes.fp8_fnuz: return u.op is not Ops.BITCAST  # it has no negative zero, so even NEG rounds
  if u.op in _EXACT or u.op is Ops.BITCAST or scalar is dtypes.bool: return False
  if dtypes.is_float(scalar):
    return scalar is not dtypes.float64 and u.op is not Ops.NEG and not (u.op is Ops.MULACC
                                                                         and scalar is dtypes.float32)
  low, high = exact_bounds(u)
  return bool(low < scalar.min or high > scalar.max)

def exact_bounds(u: UOp) -> tuple[int, int]:
  """Return the bounds of an integer operation before it wraps."""
  bounds = [(int(s.vmin), int(s.vmax)) for s in u.src]
  f: Callable[[int, int], int] | None = {Ops.ADD: int.__add__, Ops.SUB: int.__sub__, Ops.MUL: int.__mul__}.get(u.op)
  if u.op is Ops.NEG: return -bounds[0][1], -bounds[0][0]
  if u.op is Ops.IDIV and bounds[1][0] >= 0: return int(u.dtype.scalar().min), int(u.dtype.scalar().max)
  if f is None: return int(u.dtype.scalar().min) - 1, int(u.dtype.scalar().max) + 1
  corners = [f(a, b) for a in bounds[0] for b in bounds[1]]
  return min(corners), max(corners)

def _cast_rounds(u: UOp, source: DType, target: DType) -> bool:
  if target in (dtypes.bool, dtypes.float64, dtypes.weakint, dtypes.weakfloat): return False
  if dtypes.is_float(target):
    return not (target is dtypes.float32 and (source in NARROW or not dtypes.is_float(source)))
  if dtypes.is_float(source): return target not in (dtypes.int32, dtypes.int64, dtypes.uint64)
  return bool(u.src[0].vmin < target.min or u.src[0].vmax > target.max)

def _cast(u: UOp, x: str) -> str:
  source, target = u.src[0].dtype.scalar(), u.dtype.scalar()
  if target is dtypes.bool: return x if source is dtypes.bool else f"{x} != 0"
  if dtypes.is_float(target):
    if dtypes.is_float(source): return x
    if target is dtypes.float64: return f"float({x})"
    return f"float({x})" if -(1 << 24) <= u.src[0].vmin and u.src[0].vmax <= 1 << 24 else f"int_to_float32({x})"
  if dtypes.is_float(source):
    if target is dtypes.uint64: return f"float_to_uint64({x})"
    return f"float_to_{'int64' if target in (dtypes.int64, dtypes.uint32, dtypes.weakint) else 'int32'}({x})"
  return f"int({x})" if source is dtypes.bool else x

def _guarded(u: UOp, text: str, low: int, high: int, otherwise: str, operand: str) -> str:
  """Return text, guarded by its replacement for a second operand outside of low..high."""
  if low <= u.src[1].vmin and u.src[1].vmax <= high: return text
  return f"({text} if {low} <= {operand} <= {high} else {otherwise})"

def expression(u: UOp, x: list[str]) -> str:
  """Return one lane of an elementwise operation on the lanes x of its sources, before rounding."""
  op, scalar = u.op, u.dtype.scalar()
  if op is Ops.CAST: return _cast(u, x[0])
  if op is Ops.BITCAST: return f"from_bytes(to_bytes({x[0]}, {type_name(u.src[0].dtype)}), {type_name(scalar)})"
  if scalar is dtypes.bool and op in _ON_BOOLS: return f"{x[0]} {_ON_BOOLS[op]} {x[1]}"
  if op in _INFIX: return f"{x[0]} {_INFIX[op]} {x[1]}"
  if op is Ops.WHERE: return f"{x[1]} if {x[0]} else {x[2]}"
  if op is Ops.MAX:
    nan = f" or {x[1]} != {x[1]}" if dtypes.is_float(scalar) and not never_nan(u.src[1]) else ""
    return f"{x[1]} if {x[0]} < {x[1]}{nan} else {x[0]}"
  if op is Ops.NEG: return f"not {x[0]}" if scalar is dtypes.bool else f"-{x[0]}"
  if op is Ops.FDIV: return f"{x[0]} / {x[1]} if {x[1]} else divide({x[0]}, {x[1]})"
  if op is Ops.RECIPROCAL: return f"1.0 / {x[0]} if {x[0]} else divide(1.0, {x[0]})"
  if op in (Ops.IDIV, Ops.MOD):
    symbol = "//" if op is Ops.IDIV else "%"
    return (f"{x[0]} {symbol} {x[1]}" if u.src[1].vmin > 0 or u.src[1].vmax < 0 else f"({x[0]} {symbol} {x[1]} if "
            f"{x[1]} else 0)")
  if op is Ops.SHL: return _guarded(u, f"{x[0]} << {x[1]}", 0, scalar.bitsize - 1, "0", x[1])
  if op is Ops.SHR: return _guarded(u, f"{x[0]} >> {x[1]}", 0, scalar.bitsize - 1, f"{x[0]} >> {scalar.bitsize}", x[1])
  if op is Ops.MULACC: return _fused(scalar, x)
  if op is Ops.TRUNC and dtypes.is_int(scalar): return x[0]
  if op in _CALLS: return f"{_CALLS[op]}({', '.join(x)})"
  raise CompileError(f"device PYTHON has no {op.name} of {scalar}")

def _fused(dtype: DType, x: list[str]) -> str:
  if dtype is dtypes.float64: return f"fused_float64({', '.join(x)})"
  if dtypes.is_float(dtype): return f"fused_float32({', '.join(x)})"
  return f"{x[0]} * {x[1]} + {x[2]}"
