"""Integer expressions as sums: number * term + … + number. The rules of sums, divisions and comparisons build on this
algebra.

A `Linear` is {term: coefficient} and a constant. A term is any expression that is not itself a sum, a multiple or a
number. `build` writes a Linear as a node in canonical form: terms in the order of `order`, the constant last. So equal
sums are one node.

Sums may be reordered freely, also in types that wrap (int32, …). Division and comparison need `exact`: a proof that
nothing wraps.
"""
from __future__ import annotations
import math
from typing import Any

from tinyhw.dtype import DType, dtypes
from tinyhw.uop.bounds import bounds_of
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp, sint

Terms = dict[UOp, int]
Linear = tuple[Terms, int]
weakint = dtypes.weakint
# longer sums are not rewritten: rules look at all terms, and the cost would grow with the square
MOST_TERMS = 64

# ***** order *****

Order = tuple[Any, int, str, int]
_PRIME = (1 << 61) - 1

def _code(x: Any) -> int:
  """A number for an argument, the same in every process."""
  if x is None: return 0
  if isinstance(x, int): return int(x) % _PRIME  # hash() would make -1 and -2 equal
  if isinstance(x, float): return hash((x, math.copysign(1.0, x), 1)) if x == x else 2
  if isinstance(x, tuple): return hash(tuple([_code(item) for item in x]))
  from zlib import crc32  # only text needs it; sizes are ordered where nothing is compiled yet
  return crc32((x if isinstance(x, str) else repr(x)).encode())

def _order_of(u: UOp) -> Order:
  src, ranges = u.src, u.ranges
  below = tuple([s._order_[3] for s in src])
  dtype = u.dtype
  digest = hash((int(u.op), dtype.priority, dtype.bitsize, dtype.count, _code(u.arg), below))
  return ranges[-1].arg if ranges else (-1,), int(u.op), u.arg[0] if u.op is Ops.DEFINE_VAR else "", digest

def order(u: UOp) -> Order:
  """The sort key of operands: innermost range, operation, name, then a digest of the structure.

  It is the same in every process.
  """
  return u._order_ or u.derive("_order_", _order_of)  # type: ignore[no-any-return]  # derive returns Any

def term_order(term: UOp, factor: int) -> tuple[Any, ...]:
  """The sort key of the terms of a sum: outer ranges first, then large strides."""
  key = order(term)
  return key[0], -abs(factor), key[1], key[2], key[3]

# ***** splitting and building *****

def limits(u: UOp) -> tuple[Any, Any]:
  """(smallest, largest) value."""
  return u._bounds_ or u.derive("_bounds_", bounds_of)  # type: ignore[no-any-return]  # derive returns Any

def linear(u: UOp) -> Linear | None:
  """u as a sum, or None if it has too many terms. In types that wrap, products of sums are not multiplied out."""
  if u.op not in _INSIDE:
    low, high = u._bounds_ or limits(u)
    if low == high: return {}, low
    return ({u: 1}, 0) if u.op not in VARIABLES or multiple_of(u) == 1 else (_of_multiple(u), 0)
  if u.op is Ops.CONST: return {}, u.arg
  terms: Terms = {}
  constant = visited = 0
  weak = u.dtype is weakint
  stack = [(u, 1)]
  while stack:
    x, k = stack.pop()
    op, src = x.op, x.src
    while op is Ops.ADD and (weak or k == 1 or k == -1):  # down the left side of a chain
      visited += 1
      if visited > MOST_TERMS: return None
      stack.append((src[1], k))
      x = src[0]
      op, src = x.op, x.src
    if op is Ops.CONST: constant += k * x.arg
    elif op is Ops.MUL and src[1].op is Ops.CONST:
      inner = src[0]
      if inner.op not in _INSIDE: terms[inner] = terms.get(inner, 0) + k * src[1].arg
      else: stack.append((inner, k * src[1].arg))
    elif op is Ops.MUL and src[0].op is Ops.CONST: stack.append((src[1], k * src[0].arg))
    elif op is Ops.SUB and (weak or k == 1 or k == -1): stack += ((src[1], -k), (src[0], k))
    elif op is Ops.NEG: stack.append((src[0], -k))
    else: terms[x] = terms.get(x, 0) + k
  for x in [t for t in terms if (b := t._bounds_ or limits(t))[0] == b[1]]: constant += terms.pop(x) * limits(x)[0]
  for x in [t for t in terms if t.op in VARIABLES and multiple_of(t) > 1]:
    constant += plus(terms, (_of_multiple(x), 0), terms.pop(x))
  if 0 in terms.values(): terms = {t: k for t, k in terms.items() if k}
  return terms, constant

_INSIDE = frozenset({Ops.ADD, Ops.MUL, Ops.SUB, Ops.NEG, Ops.CONST})

VARIABLES = frozenset({Ops.DEFINE_VAR, Ops.BIND})

def multiple_of(variable: UOp) -> int:
  """The number that divides all values of a variable, bound or not."""
  arg = variable.src[0].arg if variable.op is Ops.BIND else variable.arg
  return arg[3] if len(arg) > 3 else 1

def _of_multiple(variable: UOp) -> Terms:
  """A variable that is a multiple of n, as n * (variable // n). `whole_variables` is the inverse."""
  n = multiple_of(variable)
  return {UOp(Ops.IDIV, variable.dtype, (variable, number(variable.dtype, n))): n}

def whole_variables(terms: Terms) -> Terms:
  """Terms with the variable itself in place of (variable // n) * n, if it is a multiple of n."""
  found = [t for t in terms if t.op is Ops.IDIV and t.src[0].op in VARIABLES and multiple_of(t.src[0]) > 1]
  if not found: return terms
  terms = dict(terms)
  for t in found:
    variable, n = t.src[0], multiple_of(t.src[0])
    if t.src[1].arg == n and terms[t] % n == 0: terms[variable] = terms.get(variable, 0) + terms.pop(t) // n
  return terms

def wrapped(dtype: DType, value: int) -> int:
  """value, wrapped to the range of an integer type."""
  if dtype is weakint: return value
  low, high = dtype.min, dtype.max
  return value if low <= value <= high else int(low + (value - low) % (high - low + 1))

def number(dtype: DType, value: int) -> UOp: return UOp(Ops.CONST, dtype, (), wrapped(dtype, value))

def scaled(term: UOp, factor: int) -> UOp:
  """term * factor, without a product by 1."""
  return term if factor == 1 else UOp(Ops.MUL, term.dtype, (term, number(term.dtype, factor)))

def build(terms: Terms, constant: int, dtype: DType) -> UOp:
  """The canonical sum."""
  terms = whole_variables(terms)
  items = [(t, k) for t, k in terms.items() if k] if dtype is weakint else [(t, w) for t, k in terms.items()
                                                                            if (w := wrapped(dtype, k))]
  if len(items) > 1: items.sort(key=lambda item: term_order(*item))
  if dtype is weakint: return _build_index(items, constant)
  result: UOp | None = None
  for term, factor in items:
    result = scaled(term, factor) if result is None else UOp(Ops.ADD, dtype, (result, scaled(term, factor)))
  if result is None: return number(dtype, constant)
  return UOp(Ops.ADD, dtype, (result, number(dtype, constant))) if constant else result

def _build_index(items: list[tuple[UOp, int]], constant: int) -> UOp:
  """`build` for the type of most sums, three times faster. It sets the bounds of the new nodes and marks nodes that no
  rule can change."""
  result: UOp | None = None
  least = most = 0
  plain = True
  for term, factor in items:
    low, high = limits(term)
    if term.op not in _PLAIN or term._simple_ is not True: plain = False
    if factor != 1:
      term = UOp(Ops.MUL, weakint, (term, UOp(Ops.CONST, weakint, (), factor)))
      low, high = (low * factor, high * factor) if factor > 0 else (high * factor, low * factor)
      term._bounds_ = low, high
    least, most = least + low, most + high
    if result is None: result = term
    else:
      result = UOp(Ops.ADD, weakint, (result, term))
      result._bounds_ = least, most
  if result is None: return UOp(Ops.CONST, weakint, (), constant)
  if constant: result = UOp(Ops.ADD, weakint, (result, UOp(Ops.CONST, weakint, (), constant)))
  if plain: _mark_simple(result)
  return result

_PLAIN = frozenset({Ops.RANGE, Ops.DEFINE_VAR, Ops.LOAD})

def _mark_simple(u: UOp) -> None:
  """Mark a canonical sum of variables, ranges and loads as simple, because no rule applies to it.

  This saves `symbolic.simplify` a visit: 30 % of an index's time.
  """
  while u._simple_ is None:
    u._simple_ = True
    if u.op is Ops.ADD: u, right = u.src
    elif u.op is Ops.MUL: u, right = u.src
    else: return
    if right._simple_ is None:
      right._simple_ = True
      if right.src: right.src[1]._simple_ = True

def span(terms: Terms, constant: int) -> tuple[int, int]:
  """(smallest, largest) value of a sum."""
  low = high = constant
  for term, factor in terms.items():
    a, b = term._bounds_ or limits(term)
    if factor < 0: a, b = b, a
    low += a * factor
    high += b * factor
  return low, high

def fits(dtype: DType, terms: Terms, constant: int) -> bool:
  """Whether a sum never wraps in its type."""
  if dtype is weakint: return True
  low, high = span(terms, constant)
  return bool(dtype.min <= low and high <= dtype.max)

def exact(u: UOp) -> Linear | None:
  """u as a sum if no step of its computation wraps, else None."""
  form = linear(u)
  if form is None or u.dtype is weakint: return form
  if not fits(u.dtype, *form): return None
  low, high = u.dtype.min, u.dtype.max
  stack, visited = [u], 0
  while stack:
    x = stack.pop()
    visited += 1
    if visited > 4 * MOST_TERMS: return None
    if x.op not in (Ops.ADD, Ops.MUL):
      if x.op in (Ops.SUB, Ops.NEG): return None
      continue
    a, b = limits(x.src[0]), limits(x.src[1])
    corners = (a[0] + b[0], a[1] + b[1]) if x.op is Ops.ADD else (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    if min(corners) < low or max(corners) > high: return None
    stack.extend(x.src)
  return form

def plus(into: Terms, form: Linear, factor: int = 1) -> int:
  """Add factor * form to a sum in place. Return the amount to add to its constant."""
  for term, k in form[0].items():
    value = into.get(term, 0) + k * factor
    if value: into[term] = value
    else: into.pop(term, None)
  return form[1] * factor

# ***** divisors *****

def const_factor(u: UOp) -> int:
  """The largest number known to divide u. It is 0 for 0."""
  form = linear(u) if dtypes.is_int(u.dtype) else None
  if form is None: return 1
  return math.gcd(form[1], *form[0].values())

def factors(u: UOp) -> tuple[list[UOp], int]:
  """u as a product: its factors that are not numbers, and the number. A product of more than MOST_TERMS factors is not
  split."""
  found: list[UOp] = []
  constant = 1
  stack = [u]
  while stack:
    if len(found) + len(stack) > MOST_TERMS: return [u], 1  # u*u of u*u of … has 2**n factors
    x = stack.pop()
    if x.op is Ops.MUL: stack += (x.src[1], x.src[0])
    elif x.op is Ops.CONST: constant *= x.arg
    else: found.append(x)
  return found, constant

def product(parts: list[UOp], constant: int, dtype: DType) -> UOp:
  """The canonical product: factors in order, the number last."""
  result: UOp | None = None
  for part in sorted(parts, key=order): result = part if result is None else UOp(Ops.MUL, dtype, (result, part))
  return number(dtype, constant) if result is None or not constant else scaled(result, constant)

def _term_divides(term: UOp, factor: int, parts: list[UOp], constant: int) -> tuple[UOp, int] | None:
  """term * factor divided by a product, or None if that is not exact."""
  have, own = factors(term)
  for part in parts:
    if part not in have: return None
    have.remove(part)
  if not constant or (own * factor) % constant: return None
  return product(have, 1, term.dtype), own * factor // constant

def divides(u: UOp, n: sint) -> UOp | None:
  """u // n if that is exact for all values, else None. n: a number or an expression, treated as a product."""
  form = exact(u)
  if form is None: return None
  quotient, rest = split_multiples(form, n if isinstance(n, UOp) else number(u.dtype, n))
  return None if rest[0] or rest[1] else build(quotient[0], quotient[1], u.dtype)

def split_multiples(form: Linear, n: UOp) -> tuple[Linear, Linear]:
  """A sum as quotient * n + rest. The quotient consists of the terms that are multiples of n."""
  parts, constant = factors(n)
  quotient: Terms = {}
  rest: Terms = {}
  whole = 0
  for term, k in form[0].items():
    if term is n: found: tuple[UOp, int] | None = (number(term.dtype, 1), k)
    else: found = _term_divides(term, k, parts, constant)
    if found is None: rest[term] = k
    elif found[0].op is Ops.CONST: whole += found[0].arg * found[1]
    else: quotient[found[0]] = quotient.get(found[0], 0) + found[1]
  left = form[1]
  if not parts and constant: whole, left = whole + left // constant, left % constant
  return (quotient, whole), (rest, left)
