"""Fold terms: one with another, the first of a sum, all of a list in pairs.

All forms of a REDUCE are made of these.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.dtype import ConstType, DType, dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

# the value of a reduction of nothing
START: dict[Ops, Callable[[DType], ConstType]] = {Ops.ADD: lambda d: 0, Ops.MUL: lambda d: 1, Ops.MAX: lambda d: d.min}

# the update of an ACC that is read for another variable of the same loop: its value before the iteration
BEFORE = -1

def start_of(op: Ops, dtype: DType) -> UOp:
  """Return the value of a reduction of nothing."""
  if op not in START: raise CompileError(f"REDUCE cannot fold with {op.name}; ADD, MUL and MAX it can")
  return UOp(Ops.CONST, dtype, (), dtype.const(START[op](dtype)))

def accumulate(op: Ops, total: UOp, term: UOp) -> UOp:
  """Fold total with term. A float product is added with one rounding, a product of matrices by the matrix unit."""
  if op is Ops.ADD and term.op is Ops.MMA and term.src[2].op is Ops.CONST:
    return UOp(Ops.MMA, term.dtype, (*term.src[:2], total), term.arg)
  if op is Ops.ADD and term.op is Ops.MUL and dtypes.is_float(term.dtype):
    return UOp(Ops.MULACC, term.dtype, (*term.src, total))
  if op is Ops.ADD and term.op in (Ops.DOT4, Ops.DOT2): return _onto(total, term)
  return UOp(op, total.dtype, (total, term))

def _onto(total: UOp, term: UOp) -> UOp:
  """Return total + term, a chain of DOT4s or DOT2s. One that starts with 0 starts with total instead."""
  if term.op is Ops.CONST and term.arg == 0: return total
  if term.op not in (Ops.DOT4, Ops.DOT2): return UOp(Ops.ADD, total.dtype, (total, term))
  return UOp(term.op, term.dtype, (*term.src[:2], _onto(total, term.src[2])))

def begun(op: Ops, term: UOp) -> UOp:
  """Return the first term of a sum that starts at 0.0, as all sums do: terms that are all -0.0 have the sum 0.0."""
  starts = op is Ops.ADD and dtypes.is_float(term.dtype) and term.op is not Ops.MMA
  return accumulate(op, UOp(Ops.CONST, term.dtype, (), 0.0), term) if starts else term

def fold_tree(op: Ops, values: list[UOp], arg: object = None) -> UOp:
  """Fold values in pairs, so that the longest chain is short."""
  while len(values) > 1:
    pairs = [UOp(op, a.dtype, (a, b), arg) for a, b in zip(values[::2], values[1::2])]
    values = pairs + values[len(pairs) * 2:]
  return values[0]
