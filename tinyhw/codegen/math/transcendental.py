"""Transcendental functions as expressions of operations that every target has: the list, and the entry for
decompose.py.

`expand(u, fused)` takes a node EXP2, LOG2, EXP, LOG, SIN, COS, TANH, ERF or POW with float sources, scalar or with
lanes. It returns an expression over the same sources, of these operations:
- on floats ADD, SUB, MUL, MULACC, FDIV, RECIPROCAL, TRUNC, MAX
- comparisons, WHERE, CAST, BITCAST
- on integers as wide as the float ADD, SUB, MAX, AND, OR, XOR, SHL, SHR, and for float32 MUL

It has no branches and no tables in memory. Where a target rounds MULACC twice, `fused` is False, and exact products are
made of more operations. No rule may reorder float additions in the result: it relies on how they round.

float32 and float64 have their own coefficients. Narrower types are computed in float32 and rounded once. Subnormal
numbers, signed zeros, infinities and NaN are right in all functions. docs/numerics.md has the error of each one, which
test/numerics/measure.py measures.
"""
from __future__ import annotations
from collections.abc import Callable

from tinyhw.codegen.math import exponential, logarithm, power, saturating, trigonometric
from tinyhw.dtype import dtypes
from tinyhw.errors import CompileError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

FUNCTIONS: dict[Ops, Callable[[UOp, bool], UOp]] = {
  Ops.EXP: exponential.exp, Ops.EXP2: exponential.exp2, Ops.LOG: logarithm.log, Ops.LOG2: logarithm.log2,
  Ops.SIN: trigonometric.sin,
  Ops.COS: trigonometric.cos, Ops.TANH: saturating.tanh, Ops.ERF: saturating.erf, Ops.POW: power.pow,
}

def expand(u: UOp, fused: bool = True) -> UOp | None:
  """Return a transcendental function in simple operations; None for another operation.

  Raises CompileError for an operand that is not a float.
  """
  function = FUNCTIONS.get(u.op)
  if function is None: return None
  scalar = u.dtype.scalar()
  if not dtypes.is_float(scalar):
    raise CompileError(f"{u.op.name} of {u.dtype} is not defined; cast the operand to a float")
  if scalar in (dtypes.float32, dtypes.float64): return function(u, fused)
  wide = dtypes.float32.vec(u.dtype.count)
  return function(UOp(u.op, wide, tuple([s.cast(dtypes.float32) for s in u.src])), fused).cast(scalar)

def _expand_fused(u: UOp) -> UOp:
  result = expand(u)
  assert result is not None, f"no expansion of {u.op.name}"
  return result

# Functions whose bounds (docs/numerics.md) need products and sums with one rounding.
NEED_FUSED = frozenset({Ops.LOG2, Ops.POW})

def unfused(body: UOp) -> UOp:
  """Return an expression with each MULACC as a product, which is rounded, and a sum."""
  new: dict[UOp, UOp] = {}
  for u in body.toposort():
    src = tuple([new[s] for s in u.src])
    if u.op is Ops.MULACC: new[u] = UOp(Ops.ADD, u.dtype, (UOp(Ops.MUL, u.dtype, src[:2]), src[2]))
    else: new[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
  return new[body]

expansions: dict[Ops, Callable[[UOp], UOp]] = {op: _expand_fused for op in FUNCTIONS}
