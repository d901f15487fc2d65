"""Arithmetic of vectors in OpenCL C: operators and functions on whole vectors, where the language has them.

A comparison gives lanes of -1 and 0 in a signed type of the operands' size; bool is 1 and 0 in bytes. Vector types are
converted by functions only. What has no form here is computed lane by lane (c_like.py).
"""
from __future__ import annotations

from tinyhw.codegen.render.c_like import INFIX, NARROW, CLike
from tinyhw.codegen.render.source import SourceText
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp

MASKS = {1: "char", 2: "short", 4: "int", 8: "long"}   # by the bytes of an element
UNSIGNED = {dtypes.int8: "uchar", dtypes.int16: "ushort", dtypes.int32: "uint", dtypes.int64: "ulong"}
INTEGER_INFIX = {**INFIX, Ops.IDIV: "/", Ops.MOD: "%", Ops.SHL: "<<", Ops.SHR: ">>"}
WRAPPING = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.SHL, Ops.NEG})   # signed numbers go by way of unsigned ones

def whole(words: CLike, source: SourceText, u: UOp) -> str | None:
  """Return an elementwise operation on whole vectors; None where there is no such form."""
  x, n, kind, operand = [source.value(s) for s in u.src], u.dtype.count, u.dtype.scalar(), u.src[-1].dtype.scalar()
  if u.op is Ops.CAST: return converted(words, x[0], operand, kind, n)
  if u.op is Ops.BITCAST or operand in NARROW and u.op is not Ops.WHERE: return None
  if u.op is Ops.WHERE: return chosen(u, x, n)
  if u.op in GroupOp.Comparison: return truths(f"{x[0]} {INFIX[u.op]} {x[1]}", operand, n)
  if dtypes.is_float(kind): return words.float_operation(source, u, x, kind)
  if kind is dtypes.bool: return f"{x[0]} {INFIX[u.op]} {x[1]}" if u.op in (Ops.AND, Ops.OR, Ops.XOR) else None
  is_signed = kind in UNSIGNED and u.op in WRAPPING
  if is_signed: x = [f"as_{UNSIGNED[kind]}{n}({y})" for y in x]
  if u.op is Ops.NEG: text = f"-{x[0]}"
  elif u.op in INTEGER_INFIX: text = f"{x[0]} {INTEGER_INFIX[u.op]} {x[1]}"
  else: return None
  return f"as_{words.types[kind]}{n}({text})" if is_signed else text

def truths(mask: str, operand: DType, n: int) -> str:
  """Return lanes of -1 and 0 as bool."""
  return f"as_uchar{n}(-({mask}))" if operand.itemsize == 1 else f"convert_uchar{n}(-({mask}))"

def chosen(u: UOp, x: list[str], n: int) -> str | None:
  """Return a WHERE: the choice of `select` goes by the highest bit of a mask."""
  if u.src[0].op is Ops.BROADCAST: return None   # c_like.py asks the scalar
  mask = MASKS[u.dtype.scalar().itemsize]
  return f"select({x[2]}, {x[1]}, convert_{mask}{n}({x[0]}) != ({mask}{n})(0))"

def converted(words: CLike, x: str, operand: DType, target: DType, n: int) -> str | None:
  """Return a conversion between numbers; None from floats to integers, which are guarded."""
  if operand in NARROW or target in NARROW: return None
  if operand is target: return x
  if target is dtypes.bool: return truths(f"{x} != ({words.types[operand]}{n})(0)", operand, n)
  if dtypes.is_float(operand) and not dtypes.is_float(target): return None
  return f"convert_{words.types[target]}{n}({x})"
