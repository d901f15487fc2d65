"""Decisions by the values of Variables, and the records that a capture makes of them."""
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import UnknownValueError
from tinyhw.uop.decide import Decisions, holds, number, noting, value
from tinyhw.uop.ops import UOp

V, W = UOp.variable("v", 0, 8), UOp.variable("w", 1, 8)

def test_values():
  v, w = V.bind(3), W.bind(4)
  assert (value(v * 2 + w) == 10 and value(5) == 5 and value((v - w).maximum(0)) == 0 and value(-v // 2) == -2
          and value(V + v) is None)
  assert number(v + 1) == 4 and number(V) is None and number(V - V) == 0
  assert int(v) == 3 and list(range(v)) == [0, 1, 2] and bool(v < w) and not v > w

def test_conditions():
  v, w = V.bind(3), W.bind(4)
  assert holds(v < w) and not holds(w < v) and holds(True) and not holds(False) and holds(V >= 0)
  assert not holds(V < 4) and holds(V < 4, True)
  with pytest.raises(UnknownValueError, match="bind its variables"): bool(V < 4)
  with pytest.raises(UnknownValueError, match="has no value yet"): int(V)

def test_what_bounds_decide_is_not_noted():
  with noting() as noted:
    assert holds(V.bind(3) >= 0) and int(V.bind(2) - V.bind(2)) == 0
    assert not noted
    assert holds(V.bind(3) < 4) and number(W.bind(2)) == 2
  assert list(noted.values()) == [True, True]

def test_decisions_under_other_values():
  with noting() as noted:
    assert V.bind(3) + W.bind(2) <= 8
    assert not holds((W.bind(2) % 2).eq(1))
  made = Decisions(noted, {"v": 3, "w": 2})
  assert [made.hold({"v": v, "w": w}) for v, w in ((3, 2), (6, 2), (7, 2), (1, 4), (1, 3))] == [True, True, False, True,
                                                                                                False]
  assert [Decisions(noted).hold({"v": v, "w": w}) for v, w in ((6, 2), (7, 2))] == [True, False]
  fixed = Decisions(noted, {"v": 3})    # the function itself binds w
  assert fixed.hold({"v": 6}) and not fixed.hold({"v": 7}) and Decisions({}, {}).hold({"v": 1})

def test_notes_are_of_one_capture():
  with noting() as outer:
    assert V.bind(1) < 4
    with noting() as inner: assert V.bind(2) < 5
  assert len(outer) == len(inner) == 1 and V.bind(1) < 4

def test_what_goes_by_value_and_what_by_expression():
  """`==` and `in` compare expressions, because the interning of nodes, dicts and tuples of sources rely on them."""
  v, w = V.bind(3), W.bind(3)
  with noting() as noted:
    assert not v != 3 and v != 4 and not 3 != v and 4 != v and not v * 2 != 6 and v / 2 != 1 and not v / 2 != 1.5
  assert len(noted) == 4 and all(v in c.toposort() for c in noted)
  assert not v == 3 and v not in (3, 4) and (v,) != (3,) and v == v and not v != v and v != w and V != 3
  assert int(v) == 3 and v.eq(3) and not v.eq(4) and v.eq(w) and not v.ne(3) and int(v) in (3, 4)
  r, f = UOp.range(1, 0), UOp.variable("f", 0, 0, dtypes.float32)
  assert r != 0 and f != 0 and v != None and v != "3"     # noqa: E711
