"""Rules for // and % of integers. Both round to minus infinity, and x // 0 = x % 0 = 0 (see enums.py).

For a division by a number n, the dividend is treated as a sum:

- Multiples of n are moved out.
- A common divisor of all coefficients and n is cancelled.
- Terms that provably stay within one multiple of a divisor f of n are dropped. `(a*4 + b) // 12` is `a // 3` if 0 <= b
  < 4.
- The rest is written with canonical constants, so that `recombine` finds a quotient and a remainder of the same
  dividend.

For a division by an expression, its multiples are moved out. The rest is compared with the divisor symbolically. `(i*n
+ j) // n` is `i` if j is a range below n. Types that wrap are treated in the same way if nothing provably wraps.
"""
from __future__ import annotations
import math
from collections.abc import Iterable

from tinyhw.dtype import DType, dtypes
from tinyhw.uop.enums import Ops
from tinyhw.uop.symbolic.linear import (
  Linear, Terms, build, exact, factors, fits, limits, linear, number, plus, product, span, split_multiples, weakint,
  wrapped)
from tinyhw.uop.ops import UOp
from tinyhw.uop.rewrite.match import rule
from tinyhw.uop.upat import UPat

INTEGERS = dtypes.ints + (weakint,)
x, y, c = UPat.var("x", INTEGERS), UPat.var("y"), UPat.cvar("c")

def _divide_exactly(terms: Terms, n: int) -> Terms: return {t: k // n for t, k in terms.items()}

def _one_quotient(terms: Terms, constant: int, n: int) -> int | None:
  """The quotient by n, if it is the same for all values of the sum."""
  low, high = span(terms, constant)
  return low // n if low // n == high // n else None

def _low_terms(terms: Terms, constant: int, n: int) -> Iterable[tuple[int, Terms, Terms, int]]:
  """Yield forms of a sum as f*high + low, where f divides n and low stays within one multiple of f. A form is (f, high,
  low, that multiple)."""
  for f in sorted({math.gcd(k, n) for k in terms.values()}, reverse=True):
    if f == 1: continue
    low = {t: k for t, k in terms.items() if k % f}
    multiple = _one_quotient(low, constant, f)
    if multiple is not None: yield f, {t: k // f for t, k in terms.items() if k % f == 0}, low, multiple

def is_by_number(u: UOp, op: Ops) -> bool:
  """Whether u is `op` by a positive number that its type can hold."""
  return u.op is op and u.src[1].op is Ops.CONST and u.src[1].arg > 0 and (u.dtype is weakint
                                                                           or u.src[1].arg <= u.dtype.max)

# ***** division by a number *****

def _quotient(terms: Terms, constant: int, n: int, dtype: DType) -> UOp | None:
  """Divide a sum without multiples of n by n. None if a type that wraps cannot hold an intermediate value."""
  g = math.gcd(n, *terms.values())
  if g > 1: terms, constant, n = _divide_exactly(terms, g), constant // g, n // g
  if n == 1: return build(terms, constant, dtype)
  if not fits(dtype, terms, constant): return None
  for f, high, _, multiple in _low_terms(terms, constant, n):
    return UOp(Ops.IDIV, dtype, (build(high, multiple, dtype), number(dtype, n // f)))
  if len(terms) == 1 and 1 in terms.values():
    term = next(iter(terms))
    if is_by_number(term, Ops.IDIV) and n * term.src[1].arg <= dtype.max:
      inner = term.src[1].arg  # (x // a + b) // n = (x + a*b) // (a*n)
      shifted = term.src[0] if not constant else UOp(Ops.ADD, dtype, (term.src[0], number(dtype, constant * inner)))
      if not constant or dtype is weakint: return UOp(Ops.IDIV, dtype, (shifted, number(dtype, n * inner)))
    if is_by_number(term, Ops.MOD) and not constant and term.src[1].arg % n == 0:  # x % (a*n) // n = x // n % a
      return UOp(Ops.MOD, dtype,
                 (UOp(Ops.IDIV, dtype, (term.src[0], number(dtype, n))), number(dtype, term.src[1].arg // n)))
  return UOp(Ops.IDIV, dtype, (build(terms, constant, dtype), number(dtype, n)))

def _residues(terms: Terms, n: int, least: bool) -> Terms:
  """Reduce the coefficients modulo n: to 0..n-1, or to the least absolute value."""
  out: Terms = {}
  for t, k in terms.items():
    k %= n
    if k: out[t] = k - n if least and 2 * k > n else k
  return out

@rule(x // c)
def divide_by_number(x: UOp, c: UOp) -> UOp | None:
  """(a*40 + b) // 20 -> a*2 + b // 20, and the other steps of the module docstring."""
  n, dtype = wrapped(x.dtype, c.arg), x.dtype
  if n == 0: return x.const_like(0)
  if n == 1: return x
  form = exact(x)
  if form is None: return None
  if n < 0:  # x // -n is -x // n
    return UOp(Ops.IDIV, dtype, (build(*_negated(form), dtype), number(dtype, -n))) if dtype is weakint else None
  terms, constant = form
  whole = {t: k // n for t, k in terms.items() if k % n == 0}
  rest = {t: k for t, k in terms.items() if k % n}
  more, left = divmod(constant, n)
  single = _one_quotient(rest, left, n)
  if single is not None: return build(whole, more + single, dtype)
  for least in (False, True):  # 13*a // 10 is a + 3*a // 10: worth it only if the second part then vanishes
    reduced = _residues(rest, n, least)
    single = _one_quotient(reduced, left, n)
    if single is None: continue
    for t, k in rest.items(): whole[t] = (k - reduced.get(t, 0)) // n
    return build(whole, more + single, dtype)
  inner = _quotient(rest, left, n, dtype)
  if inner is None: return None
  if not whole and not more: return inner
  whole[inner] = whole.get(inner, 0) + 1
  return build(whole, more, dtype)

def _negated(form: Linear) -> Linear: return {t: -k for t, k in form[0].items()}, -form[1]

# ***** remainder by a number *****

def _open_remainders(terms: Terms, n: int) -> tuple[Terms, int] | None:
  """k*(x % m) is k*x modulo n if n divides k*m. None if there is no such term."""
  found = [(t, k) for t, k in terms.items() if is_by_number(t, Ops.MOD) and (k * t.src[1].arg) % n == 0]
  if not found: return None
  out, constant = dict(terms), 0
  for t, k in found:
    form = linear(t.src[0])
    if form is None: return None
    del out[t]
    constant += plus(out, form, k)
  return out, constant

@rule(x % c)
def remainder_by_number(x: UOp, c: UOp) -> UOp | None:
  """(a + b*10) % 10 -> a % 10; (a*4 + b) % 12 -> a % 3 * 4 + b for 0 <= b < 4; and so on."""
  n, dtype = wrapped(x.dtype, c.arg), x.dtype
  if n in (0, 1): return x.const_like(0)
  form = exact(x)
  if form is None: return None
  terms, constant = form
  if n < 0:  # x % -n is -(-x % n)
    if dtype is not weakint: return None
    positive = UOp(Ops.MOD, dtype, (build(*_negated(form), dtype), number(dtype, -n)))
    return UOp(Ops.MUL, dtype, (positive, number(dtype, -1)))
  opened = _open_remainders(terms, n) if dtype is weakint else None
  if opened is not None: terms, constant = opened[0], constant + opened[1]
  left = constant % n
  for candidate, start in ((terms, constant), (_residues(terms, n, True), left), (_residues(terms, n, False), left)):
    single = _one_quotient(candidate, start, n)
    if single is not None: return build(candidate, start - single * n, dtype)
  # the same form as in `_quotient`, for `recombine`
  rest = {t: r for t, k in terms.items() if (r := k % n if k > 0 else -(-k % n))}
  if not fits(dtype, rest, left): return None
  return _remainder(rest, left, n, dtype)

def _remainder(terms: Terms, constant: int, n: int, dtype: DType) -> UOp:
  """A reduced sum modulo n."""
  g = math.gcd(n, *terms.values())
  if g > 1:  # g*s + r modulo g*m is g*(s modulo m) + r
    inner = UOp(Ops.MOD, dtype, (build(_divide_exactly(terms, g), constant // g, dtype), number(dtype, n // g)))
    return build({inner: g}, constant % g, dtype)
  for f, high, low, multiple in _low_terms(terms, constant, n):
    inner = UOp(Ops.MOD, dtype, (build(high, multiple, dtype), number(dtype, n // f)))
    low[inner] = low.get(inner, 0) + f
    return build(low, constant - multiple * f, dtype)
  return UOp(Ops.MOD, dtype, (build(terms, constant, dtype), number(dtype, n)))

# ***** by an expression *****

def _multiply(a: Linear, b: Linear) -> Linear:
  """The product of two sums, multiplied out."""
  terms: Terms = {t: k * b[1] for t, k in a[0].items() if b[1]}
  plus(terms, (b[0], 0), a[1])
  for t, k in a[0].items():
    for s, j in b[0].items(): plus(terms, ({product(factors(t)[0] + factors(s)[0], 1, weakint): 1}, 0), k * j)
  return terms, a[1] * b[1]

def _largest_factor(u: UOp) -> Linear | None:
  """An upper bound of a factor, as a sum that may contain variables. A range ends one below its end."""
  if u.op is Ops.RANGE: end = u.src[0]
  elif u.op is Ops.MOD and limits(u.src[1])[0] > 0: end = u.src[1]
  else: return {u: 1}, 0
  form = linear(end)
  return None if form is None else (form[0], form[1] - 1)

def is_below(form: Linear, n: UOp) -> bool:
  """Whether a sum is provably smaller than an expression. Ends of ranges may be symbolic."""
  largest: Terms = {}
  end = linear(n)
  if end is None: return False
  constant = form[1] - end[1]
  for term, k in form[0].items():
    parts, own = factors(term)
    total: Linear = ({}, k * own)
    if k * own > 0 and all(limits(p)[0] >= 0 for p in parts):
      for part in parts:
        bound = _largest_factor(part)
        if bound is None: return False
        total = _multiply(total, bound)
    else: total = ({term: k}, 0)
    constant += plus(largest, total)
  plus(largest, end, -1)
  return span(largest, constant)[1] < 0

@rule(UPat(Ops.IDIV, weakint, (UPat.var("x"), y)))
def divide_by_expression(x: UOp, y: UOp) -> UOp | None:
  """(i*n + j) // n -> i + j // n. The last part is 0 if 0 <= j < n.

  An n that may be 0 is above 0 where j < n: a range of 0 iterations, from which j would come, computes nothing.
  """
  form, least = exact(x), limits(y)[0]
  if y.op is Ops.CONST or form is None or least < 0: return None
  (quotient, whole), (rest, left) = split_multiples(form, y)
  if span(rest, left)[0] >= 0 and is_below((rest, left), y): return build(quotient, whole, weakint)
  if least == 0 or not quotient and not whole: return None
  remaining = UOp(Ops.IDIV, weakint, (build(rest, left, weakint), y))
  return build(quotient, whole, weakint).alu(Ops.ADD, remaining)

@rule(UPat(Ops.MOD, weakint, (UPat.var("x"), y)))
def remainder_by_expression(x: UOp, y: UOp) -> UOp | None:
  """(i*n + j) % n -> j % n, or j if 0 <= j < n. n may be 0 as in divide_by_expression."""
  form, least = exact(x), limits(y)[0]
  if y.op is Ops.CONST or form is None or least < 0: return None
  (quotient, whole), (rest, left) = split_multiples(form, y)
  if span(rest, left)[0] >= 0 and is_below((rest, left), y): return build(rest, left, weakint)
  if least == 0 or not quotient and not whole: return None
  return UOp(Ops.MOD, weakint, (build(rest, left, weakint), y))

# ***** quotient and remainder of the same dividend, in one sum *****

def _digit(u: UOp) -> tuple[UOp, int] | None:
  """x // d as (x, d). Anything else is (itself, 1)."""
  return (u.src[0], u.src[1].arg) if is_by_number(u, Ops.IDIV) else (u, 1)

def recombine(terms: Terms) -> int | None:
  """Merge in place (x % m)*k with (x // m)*(k*m) to x*k, and with (x // m % m2)*(k*m) to (x % (m*m2))*k.

  Return the amount to add to the constant, or None if there is nothing to merge.
  """
  for low, k in terms.items():
    if not is_by_number(low, Ops.MOD): continue
    value, m = low.src[0], low.src[1].arg
    base, d = _digit(value) or (value, 1)
    for high, factor in terms.items():
      if factor != k * m or high is low: continue
      if is_by_number(high, Ops.IDIV) and high.src[0] is base and high.src[1].arg == d * m:
        form = linear(value)
        if form is None: return None
        del terms[low], terms[high]
        return plus(terms, form, k)
      if is_by_number(high, Ops.MOD) and _digit(high.src[0]) == (base, d * m) and m * high.src[1].arg <= low.dtype.max:
        del terms[low], terms[high]
        wide = UOp(Ops.MOD, low.dtype, (value, number(low.dtype, m * high.src[1].arg)))
        return plus(terms, ({wide: 1}, 0), k)
  return _remainder_from_quotient(terms)

def _remainder_from_quotient(terms: Terms) -> int | None:
  """Merge in place x*k - (x // m)*(m*k) to (x % m)*k, where x may be a sum."""
  for high, factor in terms.items():
    if not is_by_number(high, Ops.IDIV) or factor % high.src[1].arg: continue
    k = -factor // high.src[1].arg
    form = linear(high.src[0])
    if form is None or not form[0] or any(terms.get(t) != j * k for t, j in form[0].items()): continue
    del terms[high]
    remainder = UOp(Ops.MOD, high.dtype, high.src)
    return plus(terms, form, -k) + plus(terms, ({remainder: 1}, 0), k)
  return None

DIVMOD = (divide_by_number, remainder_by_number, divide_by_expression, remainder_by_expression)
