"""Prove that an access stays inside its buffer, given the conditions under which it happens. The verifier uses it. It
is independent of codegen's rules.

An index is a sum of terms with integer factors. A condition `x < c` or `c <= x` narrows the interval of the sum x. If
the index contains a multiple of x, that part gets the narrowed interval, and the rest its own. A condition on a single
expression narrows it wherever it occurs. A condition on a dividend narrows its quotients and remainders. A sum with
conditions on its quotient and remainder is split into these. A condition on a quotient or a maximum implies one on the
dividend or the operands. Vectors are checked lane by lane.

If that fails, there are three more attempts:

- with the index simplified;
- at every point, if there are MOST_POINTS at most;
- case by case, with numbers in place of Variables and of short ranges, because their products and quotients are numbers
  then.

Cost: about 20 µs for a gated access, 0.1 s for one that is checked at every point, 1 ms for a case.
"""
from __future__ import annotations
from collections.abc import Sequence
import itertools
from typing import Any

from tinyhw.arithmetic import cast, operation
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.matrix import MatrixRows, Scattered
from tinyhw.uop.ops import UOp

Interval = tuple[int, int]
Terms = tuple[dict[UOp, int], int]  # expression -> factor, and a constant

_INFINITE = 1 << 799
MOST_CASES = 1 << 12    # values of Variables and ranges for which an access is checked
MOST_CONDITIONS = 64    # given and implied ones
MOST_POINTS = 1 << 14   # points at which an access is checked

def lane_of(u: UOp, k: int) -> UOp:
  """Lane k of a vector expression, as a scalar expression."""
  lanes: dict[UOp, UOp] = {}
  for n in u.toposort(lambda n: n.dtype.count > 1 and (n.op in GroupOp.Elementwise)):
    if n.dtype.count == 1: lanes[n] = n
    elif n.op is Ops.CONST: lanes[n] = UOp(Ops.CONST, n.dtype.scalar(), (), n.arg)
    elif n.op is Ops.BROADCAST: lanes[n] = n.src[0]
    elif n.op is Ops.VECTORIZE: lanes[n] = n.src[k]
    elif n.op in GroupOp.Elementwise: lanes[n] = UOp(n.op, n.dtype.scalar(), tuple([lanes[s] for s in n.src]), n.arg)
    else: lanes[n] = UOp(Ops.GEP, n.dtype.scalar(), (n,), k)
  return lanes[u]

def without_lanes(u: UOp) -> UOp:
  """Replace lanes of operations by operations on lanes, so that equal expressions are written in the same way."""
  new: dict[UOp, UOp] = {}
  for n in u.toposort():
    src = tuple([new[s] for s in n.src])
    v = n if src == n.src else UOp(n.op, n.dtype, src, n.arg, n.tag)
    new[n] = lane_of(v.src[0], v.arg) if v.op is Ops.GEP and v.dtype.count == 1 else v
  return new[u]

def _fits(u: UOp, low: int, high: int) -> bool:
  return u.dtype is dtypes.weakint or bool(u.dtype.min <= low and high <= u.dtype.max)

def _interval(u: UOp) -> Interval: return int(u.vmin), int(u.vmax)

def linear(u: UOp) -> Terms:
  """u as a sum of factors times expressions. Sums and products that may wrap are not split."""
  terms: dict[UOp, int] = {}
  constant = 0
  stack = [(u, 1)]
  while stack:
    n, factor = stack.pop()
    if n.op is Ops.CONST: constant += factor * int(n.arg)
    elif n.op in (Ops.ADD, Ops.SUB) and _exact(n):
      stack += [(n.src[0], factor), (n.src[1], factor if n.op is Ops.ADD else -factor)]
    elif n.op is Ops.MUL and any(s.op is Ops.CONST for s in n.src) and _exact(n):
      x, by = n.src if n.src[1].op is Ops.CONST else n.src[::-1]
      stack.append((x, factor * int(by.arg)))
    elif n.op is Ops.CAST and dtypes.is_int(n.src[0].dtype) and _fits(n, *_interval(n.src[0])):
      stack.append((n.src[0], factor))
    else: terms[n] = terms.get(n, 0) + factor
  return {n: f for n, f in terms.items() if f}, constant

def _exact(n: UOp) -> bool:
  """Whether a sum, difference or product of integers cannot wrap."""
  if n.dtype is dtypes.weakint: return True
  (a, b), (c, d) = _interval(n.src[0]), _interval(n.src[1])
  if n.op is Ops.ADD: return _fits(n, a + c, b + d)
  if n.op is Ops.SUB: return _fits(n, a - d, b - c)
  corners = (a * c, a * d, b * c, b * d)
  return _fits(n, min(corners), max(corners))

# ***** conditions *****

Condition = tuple[dict[UOp, int], int, int]  # terms, and the smallest and largest value of their sum

def conditions(gate: UOp) -> list[Condition]:
  """The intervals of sums that follow if gate is true. Other clauses are left out."""
  out: list[Condition] = []
  for clause in gate.split(Ops.AND):
    truth = True
    while ((clause.op is Ops.XOR or clause.op is Ops.CMPNE) and clause.src[1].op is Ops.CONST
           and clause.src[1].arg is True):
      clause, truth = clause.src[0], not truth
    if not truth and clause.op is Ops.OR:  # neither of them is true
      out += [c for part in clause.split(Ops.OR) for c in conditions(part ^ part.const_like(True))]
    if clause.op not in (Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE) or not dtypes.is_int(clause.src[0].dtype): continue
    found = _difference(clause, truth)
    if found is not None and found[0]: out.append(found)
  return out

def _difference(clause: UOp, truth: bool) -> Condition | None:
  """a < b (or not, or a == b) as an interval of a - b."""
  (terms, constant), (others, other) = linear(clause.src[0]), linear(clause.src[1])
  both = dict(terms)
  for n, f in others.items(): both[n] = both.get(n, 0) - f
  both = {n: f for n, f in both.items() if f}
  low, high = -_INFINITE, _INFINITE
  if clause.op is Ops.CMPLT: low, high = (low, -1) if truth else (0, high)
  elif (clause.op is Ops.CMPEQ) is truth: low = high = 0
  else: return None
  shift = constant - other
  return both, low - shift, high - shift

def implied(given: list[Condition]) -> list[Condition]:
  """The conditions, and those that follow from them without a quotient or a maximum.

  a < x // c implies c * a + c <= x. x // c < a implies x < c * a. max(x, y) < a implies x < a.
  """
  out, seen = [*given], {frozenset(part.items()) for part, _, _ in given}
  for part, low, high in out:      # which grows
    for terms, most in ((part, high), ({n: -f for n, f in part.items()}, -low)):
      if most >= _INFINITE: continue
      for n in terms:
        for more in _weaker(terms, most, n):
          key = frozenset(more[0].items())
          if not more[0] or key in seen or len(out) >= MOST_CONDITIONS: continue
          seen.add(key)
          out.append(more)
  return out

def _weaker(terms: dict[UOp, int], most: int, n: UOp) -> list[Condition]:
  """What `terms <= most` implies without n: with the dividend in place of a quotient or remainder, or with an operand
  in place of a maximum."""
  f, others = terms[n], {x: g for x, g in terms.items() if x is not n}
  if by := _by(n, Ops.IDIV):    # c * (x // c) is from x - c + 1 to x
    return [_replaced(others, most, f, n.src[0], by, f * (by - 1) if f > 0 else 0)]
  if by := _by(n, Ops.MOD):
    quotient = UOp(Ops.IDIV, n.dtype, n.src)
    return [_replaced({**others, quotient: others.get(quotient, 0) - f * by}, most, f, n.src[0])]
  if n.op is not Ops.MAX: return []
  if f > 0: return [_replaced(others, most, f, s) for s in n.src]
  least = (most - _sum(others, {})[0]) // f      # of the maximum, so of one operand if the other one is below it
  return [_replaced(others, most, f, s) for s, other in (n.src, n.src[::-1]) if other.vmax < least]

def _replaced(others: dict[UOp, int], most: int, factor: int, source: UOp, by: int = 1, more: int = 0) -> Condition:
  """by * others + factor * source <= by * most + more."""
  inner, constant = linear(source)
  changed = {x: g * by for x, g in others.items()}
  for x, g in inner.items(): changed[x] = changed.get(x, 0) + factor * g
  return {x: g for x, g in changed.items() if g}, -_INFINITE, most * by + more - factor * constant

def _sum(terms: dict[UOp, int], known: dict[UOp, Interval]) -> Interval:
  low = high = 0
  for n, f in terms.items():
    a, b = known.get(n) or _interval(n)
    low, high = low + min(a * f, b * f), high + max(a * f, b * f)
  return low, high

def _ratio(terms: dict[UOp, int], part: dict[UOp, int]) -> int | None:
  """m, if terms contain m times part, else None."""
  n, f = next(iter(part.items()))
  if n not in terms or terms[n] % f: return None
  m = terms[n] // f
  return m if all(terms.get(x) == m * g for x, g in part.items()) else None

def bounds_under(u: UOp, given: Sequence[Condition]) -> Interval:
  """The smallest and largest value of an integer expression if the conditions hold.

  The interval is empty, such as (1, 0), if they never hold.
  """
  return _bounds(linear(u), given)

def _bounds(sum_: Terms, given: Sequence[Condition]) -> Interval:
  """`bounds_under` for a sum."""
  terms, constant = sum_
  known: dict[UOp, Interval] = {}
  groups: list[Condition] = []
  for part, low, high in given:
    if len(part) > 1: groups.append((part, low, high))
    else:
      (n, f), = part.items()
      a, b = known.get(n) or _interval(n)
      bound = (-(-low // f), high // f) if f > 0 else (-(-high // f), low // f)
      known[n] = max(a, bound[0]), min(b, bound[1])
  merged: dict[frozenset[tuple[UOp, int]], Condition] = {}
  for part, low, high in groups:
    key, negated = frozenset(part.items()), frozenset((n, -f) for n, f in part.items())
    if negated in merged: key, part, low, high = negated, merged[negated][0], -high, -low
    a, b = merged[key][1:] if key in merged else _sum(part, {**_narrowed(part, known), **known})
    merged[key] = part, max(a, low), min(b, high)
  if any(a > b for a, b in known.values()) or any(a > b for _, a, b in merged.values()): return 1, 0
  low, high, terms = _whole_quotients(terms, [c for c in merged.values()])
  low, high = low + constant, high + constant
  for part, a, b in sorted(merged.values(), key=lambda c: -len(c[0])):
    m = _ratio(terms, part)
    if not m: continue
    low, high = low + min(m * a, m * b), high + max(m * a, m * b)
    terms = {n: f for n, f in terms.items() if n not in part}
  least, most = _rest(terms, {**_narrowed(terms, known), **(_divided(terms, given) if groups else {}), **known},
                      list(merged.values()))
  return low + least, high + most

def _rest(terms: dict[UOp, int], known: dict[UOp, Interval], given: Sequence[Condition]) -> Interval:
  """The interval of a sum whose terms conditions narrow together with others: i + v * j, where i < v, is below v + v *
  j."""
  low, high = _sum(terms, known)
  for part, a, b in given:
    shared = [n for n in part if n in terms]
    for m in {terms[n] // part[n] for n in shared if terms[n] % part[n] == 0}:
      others = {n: terms.get(n, 0) - m * part.get(n, 0) for n in {**terms, **part}}
      least, most = _sum({n: f for n, f in others.items() if f}, known)
      low, high = max(low, least + min(m * a, m * b)), min(high, most + max(m * a, m * b))
  return low, high

def _narrowed(terms: dict[UOp, int], known: dict[UOp, Interval]) -> dict[UOp, Interval]:
  """Bounds of terms that contain narrowed expressions somewhere inside, such as (i - 1) // 2 where i is at least 1."""
  if not known: return {}
  stand_ins = {n: UOp(Ops.DEFINE_VAR, n.dtype, (), ("narrowed", a, b, k))
               for k, (n, (a, b)) in enumerate(known.items())}
  return {n: _interval(n.substitute(stand_ins)) for n in terms if n not in known and n.src}

def _divided(terms: dict[UOp, int], given: Sequence[Condition]) -> dict[UOp, Interval]:
  """Bounds of quotients and remainders by a number whose dividend is a sum that conditions narrow, such as (i + j) // 8
  where i + j < 16."""
  out: dict[UOp, Interval] = {}
  for n in terms:
    by = _by(n, Ops.IDIV) or _by(n, Ops.MOD)
    if n.op is Ops.IDIV and not by and (above := _quotient_below(n, given)) is not None:
      out[n] = int(n.vmin), min(int(n.vmax), above - 1)
    if not by: continue
    (low, high), (least, most) = bounds_under(n.src[0], given), _interval(n)
    if low > high: continue
    if n.op is Ops.IDIV: out[n] = max(low // by, least), min(high // by, most)
    elif low // by == high // by: out[n] = max(low % by, least), min(high % by, most)
  return out

def _quotient_below(n: UOp, given: Sequence[Condition]) -> int | None:
  """k, if a condition implies that the dividend is less than k times the divisor. The divisor is an expression, as in i
  // (v * 8) where i < v * 16."""
  (dividend, shift), (divisor, constant) = linear(n.src[0]), linear(n.src[1])
  if not divisor or constant or n.src[1].vmin < 0: return None
  first, f = next(iter(divisor.items()))
  for part, _, high in given:
    k = (dividend.get(first, 0) - part.get(first, 0)) // f
    difference = {x: dividend.get(x, 0) - k * divisor.get(x, 0) for x in {**dividend, **divisor}}
    if k > 0 and high + shift < 0 and {x: g for x, g in difference.items() if g} == part: return k
  return None

def _whole_quotients(terms: dict[UOp, int], given: Sequence[Condition]) -> tuple[int, int, dict[UOp, int]]:
  """The interval of quotients that conditions narrow together with other terms, and the remaining terms.

  i + j // 2 is (2 * i + j) // 2. A condition may bound 2 * i + j more tightly than its parts.
  """
  low = high = 0
  for n, f in list(terms.items()):
    by = _by(n, Ops.IDIV)
    if not by or n not in terms: continue
    inner, constant = linear(n.src[0])
    for part, least, most in given:
      sign = _ratio(part, inner) if inner else None
      if sign not in (1, -1): continue
      if sign == -1: least, most = -most, -least
      others = {x: sign * g for x, g in part.items() if x not in inner}
      if not others or any(g % by or terms.get(x) != g // by * f for x, g in others.items()): continue
      bounds = f * ((least + constant) // by), f * ((most + constant) // by)
      low, high = low + min(bounds), high + max(bounds)
      terms = {x: g for x, g in terms.items() if x is not n and x not in others}
      break
  return low, high, terms

def _by(n: UOp, op: Ops) -> int:
  """The positive constant by which n divides, or 0 if n is no such quotient or remainder."""
  return int(n.src[1].arg) if n.op is op and n.src[1].op is Ops.CONST and n.src[1].arg > 0 else 0

def _taken_apart(sum_: Terms, given: Sequence[Condition]) -> Terms:
  """The same sum, split into the quotients and remainders that the conditions contain.

  - Conditions on x // c or x % c: x is x // c * c + x % c.
  - Conditions on x // c % d: x % (c * d) is x // c % d * c + x % c.
  - Conditions on x % c: x % (c * d) is x % (c * d) // c * c + x % c.
  """
  terms, constant = sum_
  for n in dict.fromkeys(n for part, _, _ in given for n in part):
    terms = _with_residue(terms, n)
    d, q, s = _by(n, Ops.MOD), n, 0   # n is x // c or x % c, or (x // c + s) % d
    if d:
      inside, s = linear(n.src[0])
      (first, f), *others = inside.items() or [(n, 0)]
      if f == 1 and not others and _by(first, Ops.IDIV): q = first
      else: d = s = 0
    c = _by(q, Ops.IDIV) or _by(q, Ops.MOD)
    if not c: continue
    inner, shift = linear(q.src[0])
    if d: inner, shift = _remainder((inner, shift + s * c), c * d, terms)
    m = _ratio(terms, inner) if inner else None
    if not m: continue
    constant -= m * shift
    changes = [(t, -m * f) for t, f in inner.items()]
    changes += [(n if d else UOp(Ops.IDIV, q.dtype, q.src), m * c), (UOp(Ops.MOD, q.dtype, q.src), m)]
    terms = dict(terms)
    for t, f in changes: terms[t] = terms.get(t, 0) + f
    terms = {t: f for t, f in terms.items() if f}
  return terms, constant

def _with_residue(terms: dict[UOp, int], n: UOp) -> dict[UOp, int]:
  """Replace t, where t is x % (c * d) and n is x % c, by t // c * c + n."""
  c = _by(n, Ops.MOD)
  for t, f in list(terms.items()) if c else []:
    if t is n or _by(t, Ops.MOD) % c or not _by(t, Ops.MOD) or _residue(t, c) != _residue(n, c): continue
    quotient = UOp(Ops.IDIV, t.dtype, (t, t.const_like(c)))
    changed = {**terms, t: 0, n: terms.get(n, 0) + f, quotient: terms.get(quotient, 0) + f * c}
    terms = {x: g for x, g in changed.items() if g}
  return terms

def _residue(u: UOp, by: int) -> Terms:
  """A sum that equals u modulo `by`, without multiples of `by` and without remainders by them."""
  found: dict[UOp, int] = {}
  constant, stack = 0, [(u, 1)]
  while stack:
    n, factor = stack.pop()
    terms, more = linear(n)
    constant += factor * more
    for t, f in terms.items():
      if (k := _by(t, Ops.MOD)) and f * factor * k % by == 0: stack.append((t.src[0], f * factor))
      else: found[t] = found.get(t, 0) + f * factor
  return {t: f % by for t, f in found.items() if f % by}, constant % by

def _remainder(dividend: Terms, by: int, terms: dict[UOp, int]) -> Terms:
  """dividend % by, if it is among terms, or empty if it is not. Its form is k * (a % (by / k)) + rest, for a dividend k
  * a + rest with 0 <= rest < k."""
  for t in terms:
    if not (part := _by(t, Ops.MOD)) or by % part: continue
    k, (a, more) = by // part, linear(t.src[0])
    rest = {x: dividend[0].get(x, 0) - k * a.get(x, 0) for x in {**dividend[0], **a}}
    rest, shift = {x: f for x, f in rest.items() if f}, dividend[1] - k * more
    low, high = _sum(rest, {})
    if 0 <= low + shift and high + shift < k: return {**rest, t: rest.get(t, 0) + k}, shift
  return {}, 0

# ***** accesses *****

def outside(access: UOp, size: int, given: Sequence[UOp] = ()) -> str | None:
  """The reason why a LOAD or STORE may leave its buffer of `size` elements, or None if it cannot. given: other
  conditions that hold there."""
  if isinstance(access.arg, Scattered): return outside_run(access, access.src[0], access.arg.reach, size, given)
  if isinstance(access.arg, MatrixRows):
    return outside_run(access, access.src[0], access.arg.reach(access.dtype.count), size, given)
  at = access.src[0].src[1]
  if access.op is Ops.LOAD: value, gate = access, access.src[1] if len(access.src) > 1 else None
  else: value, gate = access.src[1], next((s for s in access.src[2:3] if dtypes.is_bool(s.dtype)), None)
  lanes = value.dtype.count
  # adjacent elements, all or none
  whole = lanes > 1 and at.dtype.count == 1 and (gate is None or gate.dtype.count == 1)
  for k in range(1 if whole else lanes):
    index = at if at.dtype.count == 1 else lane_of(at, k)
    clauses = list(given)
    if gate is not None: clauses.append(gate if gate.dtype.count == 1 else lane_of(gate, k))
    first = k if at.dtype.count == 1 else 0
    extra = (first, lanes - 1 if whole else first)
    reason = _outside(index, clauses, size, extra)
    if reason is not None: return reason if lanes == 1 else f"{reason} (lane {k})"
  return None

def outside_run(access: UOp, place: UOp, count: int, size: int, given: Sequence[UOp] = ()) -> str | None:
  """`outside` for `count` adjacent elements at an INDEX, which another operation (ASYNC_COPY, FRAGMENT) accesses."""
  return _outside(place.src[1], [*given, *(s for s in access.src if dtypes.is_bool(s.dtype))], size, (0, count - 1))

def _outside(index: UOp, clauses: list[UOp], size: int, extra: Interval) -> str | None:
  low, high = _interval(index)
  if 0 <= low + extra[0] and high + extra[1] < size: return None
  clauses = [*clauses, *_within_ranges(index)]
  found = _unproven(index, clauses, size, extra)
  if found is None or _inside_everywhere(index, clauses, size,
                                         extra) or _is_proven_by_cases(index, clauses, size, extra):
    return None
  low, high = found
  where = f" where {' and '.join(c.render(False) for c in clauses)}" if clauses else ""
  return f"index {index.render(False)} is in {low + extra[0]}..{high + extra[1]}{where}, outside of 0..{size - 1}"

def _unproven(index: UOp, clauses: list[UOp], size: int, extra: Interval) -> Interval | None:
  """The interval of the index if the conditions hold, or None if intervals prove that it is inside."""
  low, high = _interval(index)
  for simpler in (False, True):
    try:
      x, gates = ((without_lanes(index).simplify(), [without_lanes(c).simplify() for c in clauses]) if simpler
                  else (index, clauses))
    except ImportError: break
    if any(c.op is Ops.CONST and c.arg is False for c in gates): return None
    given = implied([c for clause in gates for c in conditions(clause)])
    for terms in (linear(x), _taken_apart(linear(x), given)):
      low, high = _bounds(terms, given)
      if low > high or (0 <= low + extra[0] and high + extra[1] < size): return None
  return low, high

def _within_ranges(index: UOp) -> list[UOp]:
  """The condition that a range is below its end, for each range whose end is an expression. Bounds do not imply it."""
  return [r < r.src[0] for r in index.toposort() if r.op is Ops.RANGE and r.src[0].op is not Ops.CONST]

def _is_proven_by_cases(index: UOp, clauses: list[UOp], size: int, extra: Interval) -> bool:
  """Whether the index is inside for each value of a Variable or of a short range, with a number in its place.

  If that does not prove it, the next one is replaced too. Ranges inside of quotients, remainders and maxima come first,
  because these become numbers with them. False after MOST_CASES.
  """
  cases = itertools.count()
  def proven(whole: UOp) -> bool:
    first = _first_leaf(whole)
    if first is None: return False
    for value in range(int(first.vmin), int(first.vmax) + 1):
      if next(cases) >= MOST_CASES: return False
      case = whole.substitute({first: first.const_like(value)})
      x, *gates = case.src
      if _unproven(x, [*gates, *_within_ranges(x)], size, extra) is not None and not proven(case): return False
    return True
  return proven(UOp.sink(index, *clauses))

def _first_leaf(whole: UOp) -> UOp | None:
  """The Variable or range that a number replaces first. Numbers in place of Variables change the ends of ranges, so
  each case has leaves of its own."""
  curved = {leaf for u in whole.toposort() if u.op in (Ops.IDIV, Ops.MOD, Ops.MAX) for leaf in _leaves(u)}
  return min(filter(lambda u: dtypes.is_int(u.dtype), _leaves(whole)), default=None,
             key=lambda u: (u.op is not Ops.DEFINE_VAR, u not in curved, u.vmax - u.vmin))

def _leaves(whole: UOp) -> list[UOp]:
  """The inputs of the sources of `whole`, without constants."""
  inner = whole.toposort(lambda u: u is whole or u.op in GroupOp.Elementwise)
  return [u for u in inner if u is not whole and u.op is not Ops.CONST and u.op not in GroupOp.Elementwise]

def _inside_everywhere(index: UOp, clauses: list[UOp], size: int, extra: Interval) -> bool:
  """Whether the index is inside wherever the conditions hold, by testing all values of its variables.

  False if there are too many.
  """
  whole = UOp.sink(index, *clauses)
  order = [u for u in whole.toposort(lambda u: u is whole or u.op in GroupOp.Elementwise) if u is not whole]
  variables, points = _leaves(whole), 1
  for u in variables:
    if not (dtypes.is_int(u.dtype) or u.dtype is dtypes.bool): return False
    low, high = _interval(u)
    points *= high - low + 1
    if points > MOST_POINTS: return False
  steps = [u for u in order if u.op in GroupOp.Elementwise and u.op is not Ops.CONST]
  constants = {u: u.arg for u in order if u.op is Ops.CONST}
  functions = [cast(u.src[0].dtype, u.dtype) if u.op is Ops.CAST else operation(u.op.name, u.dtype) for u in steps]
  for point in itertools.product(*[range(low, high + 1) for low, high in map(_interval, variables)]):
    values: dict[UOp, Any] = {**constants, **dict(zip(variables, point))}
    for u, f in zip(steps, functions): values[u] = f(*[values[s] for s in u.src])
    if all(values[c] for c in clauses) and not (0 <= values[index] + extra[0] and values[index] + extra[1] < size):
      return False
  return True
