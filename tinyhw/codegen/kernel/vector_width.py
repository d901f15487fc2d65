"""Compute how many elements of an operand one access of a lane may have, from the alignment of rows and from gates.

Rows whose size is not a multiple of a piece begin anywhere. A wide access is aligned only if all terms of the address
are multiples of its size. One gate decides about all of its elements only if it closes between two accesses. Where
neither is certain, operands are copied by narrower accesses, and adjacent lanes have adjacent elements
(matrix/local.py). Cost: a few looks at the sum of an index and of its gates.
"""
from __future__ import annotations
import math

from tinyhw.codegen.kernel.access import gate_of
from tinyhw.codegen.kernel.affine import common_factor, linear
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp

_PLAIN = frozenset({Ops.RANGE, Ops.MAX})   # terms of an index: the last tile begins at the maximum of two

def width_along(x: UOp, r: UOp, most: int, aligned: bool) -> int:
  """Return the elements along a range that each load of an operand can have at once: a divisor of `most`.

  aligned: accesses are at multiples of their size. Some loads are ignored: those whose index is not a sum with the
  range as a term, and those with other computed terms. Their addresses cost much, and are better computed once for
  several elements.
  """
  width = most
  for u in x.toposort():
    if u.op is not Ops.LOAD or not is_plain(u, r): continue
    terms, constant = linear(u.src[0].src[1])
    del terms[r]
    if aligned: width = math.gcd(width, constant, common_factor(terms))
    gate = gate_of(u)
    if gate is not None: width = gate_width(gate, r, width)
  return width

def is_plain(load: UOp, r: UOp) -> bool:
  """Is the index of a load a sum with a range as a term, whose other terms are not computed?"""
  terms, _ = linear(load.src[0].src[1])
  return terms.pop(r, 0) == 1 and not any(term.op not in _PLAIN or r in term.ranges for term in terms)

def gate_width(gate: UOp, r: UOp, most: int) -> int:
  """Return for how many iterations of a range, at multiples of their number, a gate is equal: a divisor of `most`."""
  if r not in gate.ranges: return most
  if gate.op is Ops.AND: return gate_width(gate.src[1], r, gate_width(gate.src[0], r, most))
  if gate.op is not Ops.CMPLT: return 1
  left, right = (linear(s) for s in gate.src)
  terms = dict(left[0])
  for term, factor in right[0].items(): terms[term] = terms.get(term, 0) - factor
  if terms.pop(r, 0) != 1 or any(r in term.ranges for term in terms): return 1
  return math.gcd(most, left[1] - right[1], common_factor(terms))
