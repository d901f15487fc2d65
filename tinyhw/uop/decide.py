"""Decisions of Python by the values of Variables: whether a slice is inside of its axis, whether two sizes are equal,
how many parts a split has.

A bound Variable has two uses. A kernel uses its range: the code is valid for every value that it may have. A decision
in Python uses its value. `holds` and `number` return that decision.

While a TinyJit captures, they record each decision as a condition on the Variables (`noting`). A replay with other
values is right if all conditions have the same outcome (`Decisions`). If one differs, TinyJit captures the function
again.
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
  """noted: decisions of this thread since its capture began, with their outcomes. None if it does not capture."""
  noted: dict[UOp, bool] | None = None

_this = _Thread()

@contextmanager
def noting() -> Iterator[dict[UOp, bool]]:
  """Collect the decisions that this thread makes inside, with their outcomes."""
  outer, _this.noted = _this.noted, {}
  try: yield _this.noted
  finally: _this.noted = outer

def note(condition: UOp, outcome: bool) -> None:
  """Record the outcome of a condition on bound Variables."""
  if _this.noted is not None: _this.noted[condition] = outcome

def value(x: sint) -> int | None:
  """The whole number that x is with the values of its Variables. None if a Variable has no value, or if x belongs to a
  kernel."""
  if not isinstance(x, UOp): return x
  found = _computed(x)
  return None if found is None else int(found)

def _computed(x: UOp) -> Any:
  """The number, of the same kind as x."""
  found: dict[UOp, Any] = {}
  for u, compute in _steps(x):
    if compute is None: return None
    found[u] = compute(*[found[s] for s in u.src]) if u.op is not Ops.BIND else compute()
  return found[x]

def _steps(root: UOp) -> Iterator[tuple[UOp, Callable[..., Any] | None]]:
  """Yield the nodes of an expression of bound Variables, sources first, each with its function. The function is None
  for a node without a value."""
  for u in root.toposort(lambda u: u.op is not Ops.BIND):
    if u.op in (Ops.CONST, Ops.BIND): yield u, _constant(u.arg if u.op is Ops.CONST else u.src[1].arg)
    elif u.op is Ops.CAST: yield u, cast(u.src[0].dtype, u.dtype)
    elif u.op in GroupOp.ALU: yield u, operation(u.op.name, u.dtype)
    else: yield u, None

def _constant(x: Any) -> Callable[[], Any]: return lambda: x

def holds(condition: bool | UOp, unknown: bool = False) -> bool:
  """Whether a condition on sizes holds, by its bounds, else by the values of its Variables.

  unknown: the answer if a Variable has no value.
  """
  if not isinstance(condition, UOp): return condition
  found = holds_or_none(condition)
  return unknown if found is None else found

def holds_or_none(condition: UOp) -> bool | None:
  """Whether a condition on sizes holds. None if a Variable has no value and the bounds do not decide."""
  simple = condition.simplify()
  if simple.op is Ops.CONST: return bool(simple.arg)
  found = value(simple)
  if found is not None: note(simple, bool(found))
  return None if found is None else bool(found)

def differs(u: UOp, x: object) -> bool:
  """u != x. Compared with a number: by values, if u has one. Otherwise: whether they are two objects."""
  if not isinstance(x, Real) or u.dtype not in dtypes.weaks or u.ranges: return u is not x
  return holds(u.ne(x if isinstance(x, (int, float)) else float(x)), True)

def number(x: sint) -> int | None:
  """The current value of a size. The caller goes on with this number, so a capture is valid for this number only.

  None if a Variable has no value.
  """
  if not isinstance(x, UOp): return x
  simple = x.simplify()
  if simple.op is Ops.CONST: return int(simple.arg)
  found = value(simple)
  if found is not None: note(simple.eq(found), True)
  return found

def real(x: UOp) -> float | None:
  """The current value of a float that consists of Variables, as `number` does for a size."""
  simple = x.simplify()
  if simple.op is Ops.CONST: return float(simple.arg)
  found = _computed(simple)
  if found is not None: note(simple.eq(found), True)
  return None if found is None else float(found)

def narrowed(x: UOp, low: int, high: int) -> dict[UOp, UOp]:
  """Narrow the bounds of Variables so that low <= x <= high, which their current values satisfy. Each replacement is a
  Variable of the same name.

  The limits of each Variable follow from the minimum or maximum of the other terms of the sum. They are not the
  tightest ones if the sum has several Variables.
  """
  from tinyhw.uop.symbolic.linear import linear  # only slices with Variables need it; it takes 0.1 ms to load
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
  """The recorded decisions of a call, to be checked for other values of its Variables.

  values: the Variables, by name, that may change, with their values. None: all may change.
  """
  def __init__(self, noted: dict[UOp, bool], values: dict[str, int] | None = None):
    self.noted = noted
    everything = UOp.sink(*noted)
    self.steps = [(u, compute) for c in noted for u, compute in _steps(c)] if noted else []
    binds = [u for u in everything.toposort() if u.op is Ops.BIND]
    self.binds = {u: u.src[0].expr for u in binds if values is None or values.get(u.src[0].expr) == u.src[1].arg}

  def hold(self, values: dict[str, int]) -> bool:
    """Whether all decisions are the same under these values, by name."""
    found: dict[UOp, Any] = {}
    for u, compute in self.steps:
      if u in found: continue
      assert compute is not None, "what was decided had a value"
      if u.op is Ops.BIND: found[u] = values.get(self.binds[u], compute()) if u in self.binds else compute()
      else: found[u] = compute(*[found[s] for s in u.src])
    return all(bool(found[c]) is outcome for c, outcome in self.noted.items())
