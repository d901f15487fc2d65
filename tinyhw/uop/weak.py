"""Arithmetic of weak floats, for which there are no operations: conversions, quotients, powers.

A float that consists of Variables is weak, as Python's floats are: it takes the type of the tensor next to it. Python
computes it in float64, so kernels do the same. For targets without float64 the host does it
(engine/run/host_numbers.py).
"""
from __future__ import annotations
from typing import TYPE_CHECKING, Any

from tinyhw.dtype import ConstType, DType, dtypes
from tinyhw.uop.enums import Ops
if TYPE_CHECKING: from tinyhw.uop.ops import UOp

LARGEST_PRODUCT = 8     # exponents up to this one: a power is a product

def rounded(u: UOp, dtype: DType) -> UOp:
  """Convert a weak float to another type. It is computed in float64 and rounded once."""
  new: dict[UOp, UOp] = {}
  for n in u.toposort(lambda n: n.dtype is dtypes.weakfloat):
    new[n] = type(u)(n.op, dtypes.float64, tuple([new[s] for s in n.src]), n.arg) if n.dtype is dtypes.weakfloat else n
  return new[u].cast(dtype)

def compared(op: Ops, a: UOp, b: UOp) -> UOp:
  """Compare weak floats."""
  return a.cast(dtypes.float64).alu(op, b.cast(dtypes.float64))

def quotient(op: Ops, a: UOp, b: UOp) -> UOp:
  """a // b (IDIV) or a % b (MOD) of weak floats.

  Kernels have neither operation, so the values of the Variables decide them.
  """
  return a.const_like(float(a) // float(b) if op is Ops.IDIV else float(a) % float(b))

def power(u: UOp, x: Any, reverse: bool = False) -> UOp | ConstType:
  """u ** x. It is a product for a small exponent, POW for floats, and a number by the values of the Variables for other
  whole numbers."""
  if type(x) is int and not reverse and 0 <= x <= LARGEST_PRODUCT:
    product = u.const_like(1)
    for _ in range(x): product = product * u
    return product
  found = u._binary(Ops.POW, x, reverse)
  if found is NotImplemented or dtypes.is_float(found.dtype): return found
  return int(found.src[0]) ** int(found.src[1])  # type: ignore[no-any-return]  # a float where the exponent is negative
