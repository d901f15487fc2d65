"""Patterns: their matches, the order of matches, and the notation of users."""
from __future__ import annotations
import pytest

from tinyhw.dtype import dtypes
from tinyhw.errors import PatternError
from tinyhw.uop.enums import Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.upat import UPat

a, b = UOp.variable("a", 0, 10), UOp.variable("b", 0, 10)
three, four = UOp.const(dtypes.weakint, 3), UOp.const(dtypes.weakint, 4)

def captures(pattern: UPat, u: UOp) -> list[dict[str, UOp]]: return pattern.match(u, {})

def test_names_that_users_know() -> None:
  from tinyhw.uop.ops import PatternMatcher as first, UPat as second, graph_rewrite as third
  from tinyhw.uop.upat import PatternMatcher, graph_rewrite
  assert (first, second, third) == (PatternMatcher, UPat, graph_rewrite)

def test_op_dtype_and_arg() -> None:
  assert captures(UPat(Ops.ADD), a + b) == [{}] and not captures(UPat(Ops.MUL), a + b)
  assert captures(UPat((Ops.MUL, Ops.ADD)), a + b) and captures(UPat({Ops.ADD}), a + b)
  assert captures(UPat(dtype=dtypes.weakint), a) and not captures(UPat(dtype=dtypes.int32), a)
  vector = UOp.const(dtypes.float32.vec(4), 1.0)
  assert captures(UPat(dtype=dtypes.float32), vector) and captures(UPat(dtype=(dtypes.int8, dtypes.float32.vec(4))),
                                                                   vector)
  assert captures(UPat(Ops.CONST, arg=3), three) and not captures(UPat(Ops.CONST, arg=3), four)
  assert captures(UPat.cvar("c"), vector) == [{"c": vector}] and not captures(UPat.cvar("c", vec=False), vector)

def test_sources_in_order_in_any_order_and_each() -> None:
  assert captures(UPat(Ops.ADD, src=(UPat.cvar("c"), UPat.var("x"))), a + 3) == []
  assert captures(UPat(Ops.ADD, src=[UPat.cvar("c"), UPat.var("x")]), a + 3) == [{"c": three, "x": a}]
  assert len(captures(UPat(Ops.ADD, src=[UPat.var("x"), UPat.var("y")]), a + b)) == 2
  constants = UPat(Ops.SINK, src=UPat(Ops.CONST))
  assert captures(constants, UOp.sink(three, four)) and not captures(constants, UOp.sink(three, a))
  assert captures(UPat(Ops.SINK, src=UPat.var("x")), UOp.sink(three, three)) == [{"x": three}]

def test_number_of_sources() -> None:
  sink = UOp.sink(three, four, a)
  assert not captures(UPat(Ops.SINK, src=(UPat.cvar("c"),)), sink)
  assert captures(UPat(Ops.SINK, src=(UPat.cvar("c"),), allow_any_len=True), sink) == [{"c": three}]
  assert not captures(UPat(Ops.SINK, src=(UPat(),) * 4, allow_any_len=True), sink)

def test_one_name_is_one_node() -> None:
  assert captures(UPat.var("x") + UPat.var("x"), a + a) and not captures(UPat.var("x") + UPat.var("x"), a + b)
  assert captures(UPat.var("x") * 3 + UPat.var("x"), a * 3 + a)[0] == {"x": a}

def test_operators_build_what_uops_build() -> None:
  x, y = UPat.var("x"), UPat.var("y")
  pairs = [(x - y, a - b), (x // 3, a // 3), (3 // x, 3 // a), (x % y, a % b), (x & y, a & b), (x | y, a | b),
           (x ^ y, a ^ b), (x << y, a << b),
           (x >> y, a >> b), (x < y, a < b), (x > 3, a > 3), (x >= y, a >= b), (x <= y, a <= b), (x != y, a.ne(b)),
           (x.eq(y), a.eq(b)), (-x, -a),
           (x.maximum(y), a.maximum(b)), (x.minimum(y), a.minimum(b)), (x + 3, 3 + a), (5 - x, 5 - a),
           ((x < y).where(x, 3), (a < b).where(a, 3)),
           (x.cast(dtypes.int32), a.cast(dtypes.int32)), (~x, ~a), (x.recip(), a.recip()), (x.f(Ops.SQRT), a.sqrt())]
  for pattern, u in pairs: assert any(found["x"] is a for found in captures(pattern, u)), u
  dividend = a.cast(dtypes.float32)
  assert captures(x / y, dividend / b.cast(dtypes.float32))[0]["x"] is dividend

def test_any_named_and_casted() -> None:
  either = UPat.any(UPat.var("x") + 3, UPat.var("x") * 3)
  assert captures(either, a * 3) == [{"x": a}] and captures(either.named("all"), a + 3) == [{"all": a + 3, "x": a}]
  assert captures(UPat(Ops.ADD, name="s").or_casted(), (a + b).cast(dtypes.int32)) == [{"s": a + b}]
  assert captures(UPat(Ops.ADD).or_casted("s"), (a + b).cast(dtypes.int32)) == [{"s": (a + b).cast(dtypes.int32)}]

def test_custom_early_reject() -> None:
  assert not captures(UPat(Ops.ADD, custom_early_reject={Ops.CONST}),
                      a + b) and captures(UPat(Ops.ADD, custom_early_reject={Ops.CONST}), a + 3)

def test_repr_reads_like_the_constructor() -> None:
  assert repr(UPat(Ops.ADD, dtypes.int32, (UPat.var("x"),), name="u", allow_any_len=True)) == \
    "UPat(Ops.ADD, dtype=dtypes.int32, src=(UPat(name='x'),), name='u', allow_any_len=True)"
  assert repr(UPat.any(UPat((Ops.ADD, Ops.MUL)), UPat.cvar("c", arg=1)).named("y")) == \
    "UPat.any(UPat((Ops.ADD, Ops.MUL)), UPat(Ops.CONST, arg=1, name='c')).named('y')"

def test_refusals() -> None:
  with pytest.raises(PatternError, match="give a UPat"): UPat(Ops.ADD, src=(UPat(), 3))  # type: ignore[arg-type]
  with pytest.raises(PatternError, match="a tuple, a list, or one UPat"): UPat(Ops.ADD, src=3)  # type: ignore[arg-type]
  with pytest.raises(PatternError, match="at least one"): UPat.any()
