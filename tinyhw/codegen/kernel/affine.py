"""Build index expressions in a normal form: fold constants, put the constant of a sum outermost, resolve divisions
where bounds allow it.

Passes use the constructor `make` when they copy integer and bool expressions with some ranges replaced by numbers. It
keeps `(base + 3)`, `(base + 4)`, … as sums of one shared node and a constant. It takes the common part of a tile's
copies out of `//` and `%` (`(r*16 + 5) // 4` is `r*4 + 1`). Cost: a few µs per node. It looks only at a node's direct
sources, except below `//` and `%`.
"""
from __future__ import annotations
import math
from collections.abc import Callable
from typing import Any

from tinyhw.arithmetic import operation
from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.symbolic.linear import span

weakint = dtypes.weakint

def number(value: int) -> UOp: return UOp(Ops.CONST, weakint, (), value)

def truth(value: bool) -> UOp: return UOp(Ops.CONST, dtypes.bool, (), value)

def linear(u: UOp) -> tuple[dict[UOp, int], int]:
  """Return u as a sum: {term: coefficient}, and a constant. Terms are in order of appearance; none has coefficient 0.
  """
  terms: dict[UOp, int] = {}
  constant = 0
  stack = [(u, 1)]
  while stack:
    x, factor = stack.pop()
    op = x.op
    if op is Ops.ADD: stack += ((x.src[1], factor), (x.src[0], factor))
    elif op is Ops.CONST: constant += x.arg * factor
    elif op is Ops.MUL and x.src[1].op is Ops.CONST: stack.append((x.src[0], factor * x.src[1].arg))
    elif op is Ops.MUL and x.src[0].op is Ops.CONST: stack.append((x.src[1], factor * x.src[0].arg))
    elif op is Ops.SUB: stack += ((x.src[1], -factor), (x.src[0], factor))
    elif op is Ops.NEG: stack.append((x.src[0], -factor))
    else: terms[x] = terms.get(x, 0) + factor
  if 0 in terms.values(): terms = {t: c for t, c in terms.items() if c}
  return terms, constant

def common_factor(terms: dict[UOp, int]) -> int:
  """Return a number that always divides a sum of terms; 0 if there are none.

  The divisor of a maximum of two is a common divisor of both: the last tile begins at such a maximum.
  """
  return math.gcd(*[c * (math.gcd(*map(factor_of, t.src)) if t.op is Ops.MAX else 1) for t, c in terms.items()])

def factor_of(u: UOp) -> int:
  """Return a number that always divides an expression."""
  terms, constant = linear(u)
  return math.gcd(constant, common_factor(terms))

def total(terms: dict[UOp, int], constant: int) -> UOp:
  """Return the sum of terms: the inverse of `linear`."""
  result: UOp | None = None
  for term, factor in terms.items():
    product = term if factor == 1 else UOp(Ops.MUL, weakint, (term, number(factor)))
    result = product if result is None else UOp(Ops.ADD, weakint, (result, product))
  if result is None: return number(constant)
  return UOp(Ops.ADD, weakint, (result, number(constant))) if constant else result

# ***** one function per operation: new sources -> a node *****

def _add(a: UOp, b: UOp) -> UOp:
  constant = 0
  if a.op is Ops.CONST: a, b = b, a
  if b.op is Ops.CONST:
    if a.op is Ops.CONST: return number(a.arg + b.arg)
    constant = b.arg
  elif b.op is Ops.ADD and b.src[1].op is Ops.CONST:
    constant, b = b.src[1].arg, b.src[0]
    if a.op is Ops.ADD and a.src[1].op is Ops.CONST: constant, a = constant + a.src[1].arg, a.src[0]
    a = UOp(Ops.ADD, weakint, (a, b))
  elif a.op is Ops.ADD and a.src[1].op is Ops.CONST: constant, a = a.src[1].arg, UOp(Ops.ADD, weakint, (a.src[0], b))
  else: return UOp(Ops.ADD, weakint, (a, b))
  if a.op is Ops.ADD and a.src[1].op is Ops.CONST: constant, a = constant + a.src[1].arg, a.src[0]
  return UOp(Ops.ADD, weakint, (a, number(constant))) if constant else a

def _multiply(a: UOp, b: UOp) -> UOp:
  if a.op is Ops.CONST: a, b = b, a
  if b.op is not Ops.CONST: return UOp(Ops.MUL, weakint, (a, b))
  factor = b.arg
  if a.op is Ops.CONST: return number(a.arg * factor)
  if factor == 0: return b
  if factor == 1: return a
  if a.op is Ops.ADD and a.src[1].op is Ops.CONST: return _add(_multiply(a.src[0], b), number(a.src[1].arg * factor))
  if a.op is Ops.MUL and a.src[1].op is Ops.CONST: return _multiply(a.src[0], number(a.src[1].arg * factor))
  return UOp(Ops.MUL, weakint, (a, b))

def _negate(a: UOp) -> UOp: return _multiply(a, number(-1))
def _subtract(a: UOp, b: UOp) -> UOp: return _add(a, _negate(b))

def _split(a: UOp, divisor: int) -> tuple[dict[UOp, int], dict[UOp, int], int]:
  """Return the terms of a that divisor divides, the other terms, and the constant."""
  terms, constant = linear(a)
  whole = {t: c for t, c in terms.items() if c % divisor == 0}
  return whole, {t: c for t, c in terms.items() if c % divisor}, constant

def _step(rest: dict[UOp, int], constant: int, divisor: int) -> tuple[int, dict[UOp, int], dict[UOp, int]] | None:
  """Return (g, G, S): rest is G + S, g divides G and divisor, 0 <= S + constant < g.

  Then S does not change the results of // and % for G.
  """
  for g in sorted({math.gcd(c, divisor) for c in rest.values()}, reverse=True):
    if g == 1: continue
    small = {t: c for t, c in rest.items() if c % g}
    low, high = span(small, constant)
    if 0 <= low and high < g: return g, {t: c for t, c in rest.items() if c % g == 0}, small
  return None

def _divide(a: UOp, b: UOp) -> UOp:
  if b.op is not Ops.CONST or b.arg <= 0:
    both = a.op is Ops.CONST and b.op is Ops.CONST
    return number(a.arg // b.arg if b.arg else 0) if both else UOp(Ops.IDIV, weakint, (a, b))
  divisor = b.arg
  if a.op is Ops.CONST: return number(a.arg // divisor)
  if divisor == 1: return a
  whole, rest, constant = _split(a, divisor)
  quotient = total({t: c // divisor for t, c in whole.items()}, 0)
  low, high = span(rest, constant)
  if low // divisor == high // divisor: return _add(quotient, number(low // divisor))
  step = _step(rest, constant, divisor)
  if step is not None: remaining, divisor = total({t: c // step[0] for t, c in step[1].items()}, 0), divisor // step[0]
  else:
    quotient = _add(quotient, number(constant // divisor))
    remaining = total(rest, constant % divisor)
  return _add(quotient, UOp(Ops.IDIV, weakint, (remaining, number(divisor))) if divisor != 1 else remaining)

def _modulo(a: UOp, b: UOp) -> UOp:
  if b.op is not Ops.CONST or b.arg <= 0:
    both = a.op is Ops.CONST and b.op is Ops.CONST
    return number(a.arg % b.arg if b.arg else 0) if both else UOp(Ops.MOD, weakint, (a, b))
  divisor = b.arg
  if a.op is Ops.CONST: return number(a.arg % divisor)
  if divisor == 1: return number(0)
  _, rest, constant = _split(a, divisor)
  low, high = span(rest, constant)
  if low // divisor == high // divisor: return total(rest, constant - low // divisor * divisor)
  constant %= divisor
  step = _step(rest, constant, divisor)
  if step is None: return UOp(Ops.MOD, weakint, (total(rest, constant), number(divisor)))
  g, large, small = step
  kept = total({t: c // g for t, c in large.items()}, 0)
  if divisor // g != 1: kept = _multiply(UOp(Ops.MOD, weakint, (kept, number(divisor // g))), number(g))
  else: kept = number(0)
  return _add(kept, total(small, constant))

_INDEX: dict[Ops, Callable[..., UOp]] = {Ops.ADD: _add, Ops.MUL: _multiply, Ops.SUB: _subtract, Ops.NEG: _negate,
                                         Ops.IDIV: _divide, Ops.MOD: _modulo}

def _bool(op: Ops, a: UOp, b: UOp) -> UOp:
  """Return AND, OR or XOR of bools, one of which may be known."""
  if a.op is Ops.CONST: a, b = b, a
  if b.op is Ops.CONST:
    if op is Ops.AND: return a if b.arg else b
    if op is Ops.OR: return b if b.arg else a
    if not b.arg: return a
    if a.op is Ops.CONST: return truth(not a.arg)
  if a is b and op is not Ops.XOR: return a
  return UOp(op, dtypes.bool, (a, b))

_BOOL = frozenset({Ops.AND, Ops.OR, Ops.XOR})
_MEMORY = frozenset({Ops.LOAD, Ops.STORE})
NOTHING = UOp(Ops.GROUP)  # a store that is never done

def make(op: Ops, dtype: DType, src: tuple[UOp, ...], arg: Any = None) -> UOp:
  """Build a node, or return its known value.

  Only weakint and bool nodes, nodes with a gate or condition, and comparisons of integer constants are simplified.
  """
  if dtype is weakint:
    function = _INDEX.get(op)
    if function is not None: return function(*src)
    if op in GroupOp.ALU and all(s.op is Ops.CONST for s in src):
      return number(operation(op.name, weakint)(*[s.arg for s in src]))
  elif dtype is dtypes.bool and op in _BOOL: return _bool(op, src[0], src[1])
  elif op in GroupOp.Comparison and (src[0].dtype is weakint or dtypes.is_int(src[0].dtype)
                                     and src[0].op is src[1].op is Ops.CONST):
    u = UOp(op, dtype, src, arg)
    return truth(bool(u.vmin)) if u.vmin == u.vmax else u
  if op is Ops.WHERE and src[0].op is Ops.CONST and src[0].dtype is dtypes.bool: return src[1] if src[0].arg else src[2]
  if op in _MEMORY and len(src) > 2 and src[-2 if op is Ops.LOAD else 2].op is Ops.CONST:
    return _known_gate(op, dtype, src, arg)
  return UOp(op, dtype, src, arg)

def _known_gate(op: Ops, dtype: DType, src: tuple[UOp, ...], arg: Any) -> UOp:
  """Build a load or store whose gate is a constant."""
  if op is Ops.LOAD: return UOp(op, dtype, src[:1], arg) if src[1].arg else src[2]
  if not dtypes.is_bool(src[2].dtype): return UOp(op, dtype, src, arg)
  return UOp(op, dtype, src[:2] + src[3:], arg) if src[2].arg else NOTHING
