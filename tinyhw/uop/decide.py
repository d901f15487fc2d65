"""What Python decides by the values that Variables have: is a slice inside of its axis, are two sizes equal, how many
parts does a split have.

A bound Variable is two things. In a kernel it is its range: the code is for every value that it may have. Where Python
has to decide something, it is its value. `holds` and `number` give that, and while a TinyJit captures they note what
was decided, as conditions on the Variables (`noting`). A replay with other values is right if all conditions come out
as they did (`Decisions`); where one does not, TinyJit captures the function once more.
"""
from __future__ import annotations
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

from tinyhw.arithmetic import cast, operation
from tinyhw.dtype import dtypes
from tinyhw.uop.enums import GroupOp, Ops
from tinyhw.uop.ops import UOp, sint

class _Thread(threading.local):
  """noted: what this thread has decided since its capture began, and how; None where nobody captures."""
  noted: dict[UOp, bool] | None = None

_this = _Thread()

@contextmanager
def noting() -> Iterator[dict[UOp, bool]]:
  """Collect what this thread decides inside, by condition."""
  outer, _this.noted = _this.noted, {}
  try: yield _this.noted
  finally: _this.noted = outer

def note(condition: UOp, outcome: bool) -> None:
  """A condition on bound Variables was decided."""
  if _this.noted is not None: _this.noted[condition] = outcome

def value(x: sint) -> int | None:
  """The whole number that x is with the values of its Variables; None where one has none, or x is of a kernel."""
  if not isinstance(x, UOp): return x
  found = _computed(x)
  return None if found is None else int(found)

def _computed(x: UOp) -> Any:
  """The number, of x's kind."""
  found: dict[UOp, Any] = {}
  for u, compute in _steps(x):
    if compute is None: return None
    found[u] = compute(*[found[s] for s in u.src]) if u.op is not Ops.BIND else compute()
  return found[x]

def _steps(root: UOp) -> Iterator[tuple[UOp, Callable[..., Any] | None]]:
  """The nodes of an expression of bound Variables, sources first, and how each is computed; None for one that has no
  value."""
  for u in root.toposort(lambda u: u.op is not Ops.BIND):
    if u.op in (Ops.CONST, Ops.BIND): yield u, _constant(u.arg if u.op is Ops.CONST else u.src[1].arg)
    elif u.op is Ops.CAST: yield u, cast(u.src[0].dtype, u.dtype)
    elif u.op in GroupOp.ALU: yield u, operation(u.op.name, u.dtype)
    else: yield u, None

def _constant(x: Any) -> Callable[[], Any]: return lambda: x

def holds(condition: bool | UOp, unknown: bool = False) -> bool:
  """Does a condition on sizes hold?

  By its bounds if these tell, else by the values of its Variables. unknown: the answer where one has no value.
  """
  if not isinstance(condition, UOp): return condition
  found = holds_or_none(condition)
  return unknown if found is None else found

def holds_or_none(condition: UOp) -> bool | None:
  """Does a condition on sizes hold? None where a Variable has no value, and the bounds do not tell."""
  simple = condition.simplify()
  if simple.op is Ops.CONST: return bool(simple.arg)
  found = value(simple)
  if found is not None: note(simple, bool(found))
  return None if found is None else bool(found)

def differs(u: UOp, x: object) -> bool:
  """u != x: beside a number by values, of what has one; else whether they are two objects."""
  if not isinstance(x, Real) or u.dtype not in dtypes.weaks or u.ranges: return u is not x
  return holds(u.ne(x if isinstance(x, (int, float)) else float(x)), True)

def number(x: sint) -> int | None:
  """A size as the number that it is now: who asks goes on with the number, so a capture is for this one.

  None where a Variable has no value.
  """
  if not isinstance(x, UOp): return x
  simple = x.simplify()
  if simple.op is Ops.CONST: return int(simple.arg)
  found = value(simple)
  if found is not None: note(simple.eq(found), True)
  return found

def real(x: UOp) -> float | None:
  """A float made of Variables as the number that it is now, as `number` has a size."""
  simple = x.simplify()
  if simple.op is Ops.CONST: return float(simple.arg)
  found = _computed(simple)
  if found is not None: note(simple.eq(found), True)
  return None if found is None else float(found)

def narrowed(x: UOp, low: int, high: int) -> dict[UOp, UOp]:
  """What Variables become of which the values make low <= x <= high, as they do now: Variables of the same name with
  smaller bounds.

  Each is limited by what the other terms of the sum are at least, or at most; of a sum of several that is not all there
  is to know.
  """
  from tinyhw.uop.symbolic.linear import linear  # only slices with Variables need it; 0.1 ms to load
  form = linear(x.simplify())
  if form is None: return {}
  terms, constant = form
  found: dict[UOp, UOp] = {}
  for t, k in terms.items():
    if t.op is not Ops.BIND: continue
    ends = [sorted((int(s.vmin) * f, int(s.vmax) * f)) for s, f in terms.items() if s is not t]
    least, most = low - constant - sum(e[1] for e in ends), high - constant - sum(e[0] for e in ends)     # of k * t
    if k < 0: least, most, k = -most, -least, -k
    variable = t.src[0]
    name, old_low, old_high, *factor = variable.arg
    bounds = max(old_low, -(-least // k)), min(old_high, most // k)
    if bounds[0] <= t.src[1].arg <= bounds[1] and bounds != (old_low, old_high):
      found[t] = UOp(Ops.BIND, t.dtype, (UOp.variable(name, *bounds, variable.dtype, *factor), t.src[1]))
  return found

class Decisions:
  """What a call decided, to be asked of other values of its Variables. values: of those that may have others; None:
  all may."""
  def __init__(self, noted: dict[UOp, bool], values: dict[str, int] | None = None):
    self.noted = noted
    everything = UOp.sink(*noted)
    self.steps = [(u, compute) for c in noted for u, compute in _steps(c)] if noted else []
    binds = [u for u in everything.toposort() if u.op is Ops.BIND]
    self.binds = {u: u.src[0].expr for u in binds if values is None or values.get(u.src[0].expr) == u.src[1].arg}

  def hold(self, values: dict[str, int]) -> bool:
    """Are all decisions the same under these values, by name?"""
    found: dict[UOp, Any] = {}
    for u, compute in self.steps:
      if u in found: continue
      assert compute is not None, "what was decided had a value"
      if u.op is Ops.BIND: found[u] = values.get(self.binds[u], compute()) if u in self.binds else compute()
      else: found[u] = compute(*[found[s] for s in u.src])
    return all(bool(found[c]) is outcome for c, outcome in self.noted.items())
