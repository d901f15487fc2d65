"""Calls that ran: comparable calls, and their differences."""
from __future__ import annotations
from collections import Counter
from typing import Any

from tinyhw import Tensor, Variable
from tinyhw.capture.calls import CallSignature, Ran, comparable, data_of, kind_of_call, shape_of
from tinyhw.capture.structure import collect
from tinyhw.dtype import dtypes
from tinyhw.uop.decide import Decisions, noting
from tinyhw.uop.ops import UOp

def kind(*args: Any) -> CallSignature: return kind_of_call(collect(args, {}))

def kernel(number: float, more: bool = False) -> UOp:
  made = UOp.const(dtypes.float, number) + UOp.variable("v", 0, 9).cast(dtypes.float)
  return made * UOp.const(dtypes.float, 7.5) if more else made

def ran(*kernels: UOp, data: tuple[bytes, ...] = ()) -> Ran:
  return Ran(kind(), Decisions({}),
             Counter([data_of(Tensor([1.0]).realize().uop.storage, content) for content in data]), list(kernels))

def test_arguments_are_alike_but_for_values() -> None:
  n, x, y = Variable("n", 1, 8), Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
  assert kind(x, n.bind(2)).is_like(kind(y, n.bind(3)))
  for other in (kind(x[1:], n.bind(2)), kind(x), kind(x, 2), kind(x, Variable("m", 1, 8).bind(2))):
    assert not kind(x, n.bind(2)).is_like(other)

def test_calls_that_decided_the_same_are_comparable() -> None:
  n, calls = Variable("n", 1, 8), []
  for k in (2, 5):
    with noting() as decided: bool(n.bind(k) < 4)
    calls.append(Ran(kind(), Decisions(decided), Counter(), []))
  assert [comparable(calls, kind(), {"n": k}) for k in (1, 3, 4, 8)] == [calls[0], calls[0], calls[1], calls[1]]
  assert comparable(calls, kind(1), {"n": 1}) is None and comparable(calls[1:], kind(), {"n": 1}) is None

def test_differences() -> None:
  assert ran(kernel(2.5)).difference(ran(kernel(2.5))) is None
  assert "computes with 3.5 where it computed with 2.5 in the call before" in str(
    ran(kernel(2.5)).difference(ran(kernel(3.5))))
  for now in (ran(), ran(kernel(3.5, True)), ran(kernel(2.5), kernel(3.5))):
    assert ran(kernel(2.5)).difference(now) is None
  assert "makes a Tensor of 1 elements of dtypes.float32 from data that were others" in str(
    ran(data=(b"a",)).difference(ran(data=(b"b",))))
  assert ran(data=(b"a", b"b")).difference(ran(data=(b"b",))) is None
  assert shape_of(kernel(1.5)) == shape_of(kernel(2.5)) != shape_of(kernel(2.5, True))
