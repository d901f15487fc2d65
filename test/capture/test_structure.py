"""Arguments and results as trees: their leaves, equality of values, and rebuilding."""
from __future__ import annotations
import array
import enum
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from tinyhw.capture.structure import (
  Rest, collect, difference, is_data, leaves_of, rebuilt, same_rest, tensors_in, token)
from tinyhw.errors import JitError
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

class Point(NamedTuple):
  x: Any
  y: Any

@dataclass
class Batch:
  image: Any
  label: Any = None

@dataclass(frozen=True)
class Frozen:
  value: Any

class Colour(enum.Enum):
  RED = 1

class Plain: pass

def tensor(*values: float) -> Tensor: return Tensor([float(v) for v in values])

def rest(*args: Any) -> tuple[Rest, ...]: return collect(args, {})[3]

def test_tensors_are_found_once_and_named() -> None:
  a, b, c = tensor(1), tensor(2), tensor(3)
  names, tensors, _, others = collect((a, [b, (c,)], Batch(a, {"k": Point(b, 1)})), {"more": [c]})
  assert names == ("0", "1.0", "1.1.0") and tensors == [a, b, c]
  assert {r.name: r.token for r in others if r.token[0] == "is argument"} == {
    "2.image": ("is argument", "0"), "2.label.k.0": ("is argument", "1.0"), "more.0": ("is argument", "1.1.0")}
  assert collect((a, b), {}) == (("0", "1"), [a, b], {}, ()) and collect((a, a), {})[1] == [a]
  many = [tensor(k) for k in range(20)]
  assert collect(tuple(many), {}) == (tuple(map(str, range(20))), many, {}, ())

def test_variables() -> None:
  v = UOp.variable("v", 1, 9)
  assert collect(([v.bind(3)],), {})[2] == {"v": 3} and same_rest(rest([v.bind(3)]), rest([v.bind(4)]))
  with pytest.raises(JitError, match="binds v to 4, another one to 3"): collect((v.bind(3), v.bind(4)), {})

@pytest.mark.parametrize(("a", "b", "same"), [
  (0.0, -0.0, False), (1, True, False), (1, 1.0, False), (float("nan"), float("nan"), True), ([1, [2]], [1, [2]], True),
  ([1], (1,), False),
  ({1, 2}, {2, 1}, True), ({1}, {True}, False), (slice(1, 2), slice(1, 2), True), (slice(1, 2), slice(1, 3), False),
  (0j, -0j, False),
  (Colour.RED, Colour.RED, True), (range(3), range(3), True), ("a", b"a", False), (Frozen(0.0), Frozen(-0.0), False),
  (Frozen(1), Frozen(1), True),
  ({"a": 1}, {"a": 1}, True), ({"a": 1}, {"b": 1}, False), ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
  (None, 0, False)])
def test_what_is_the_same(a: Any, b: Any, same: bool) -> None:
  assert same_rest(rest(a), rest(b)) is same

def test_objects_are_the_same_by_identity() -> None:
  thing = Plain()
  assert token(thing) == token(thing) and token(thing) != token(Plain()) and len({token(thing), token(thing)}) == 1
  assert difference(rest(1, 2), rest(1, 3)) == "1 was 2 and is 3"
  assert difference(rest(1), rest(1, 3)) == "their number"

def test_data_of_others_and_circles_are_refused() -> None:
  for data in (bytearray(3), memoryview(b"abc"), array.array("i", [1])):
    assert is_data(data)
    with pytest.raises(JitError, match="cannot tell whether its contents change; pass a Tensor of it"):
      collect((1, [data]), {})
  ctypes = pytest.importorskip("ctypes")
  for data in (ctypes.c_int(3), (ctypes.c_int * 2)()):
    assert is_data(data)
    with pytest.raises(JitError, match="cannot tell whether its contents change; pass a Tensor of it"):
      collect((data,), {})
  assert not is_data(ctypes.CFUNCTYPE(None)(lambda: None))
  assert not is_data(b"abc") and not is_data("abc") and not is_data(3)
  circle: list[Any] = []
  circle.append(circle)
  with pytest.raises(JitError, match="contains itself; pass"): collect((circle,), {})
  with pytest.raises(JitError, match="returns a container that contains itself"): list(leaves_of(circle))

def test_numbers_of_numpy_are_plain() -> None:
  np = pytest.importorskip("numpy")
  assert not is_data(np.float32(1)) and is_data(np.zeros(2))
  assert same_rest(rest(np.float32(1)), rest(np.float32(1)))
  assert not same_rest(rest(np.float32(1)), rest(np.float64(1)))

def test_results_are_rebuilt() -> None:
  table: Any = defaultdict(list, {"a": 1})
  tree = [1, (2, Point(3, None)), {"b": 4}, OrderedDict(c=5), table, Batch(6, [7]), Frozen(8), "text"]
  assert list(leaves_of(tree)) == [1, 2, 3, None, 4, 5, 1, 6, 7, 8, "text"]
  made = rebuilt(tree, lambda leaf: leaf * 10 if isinstance(leaf, int) else leaf)
  assert made == [10, (20, Point(30, None)), {"b": 40}, OrderedDict(c=50), {"a": 10}, Batch(60, [70]), Frozen(80),
                  "text"]
  assert type(made[3]) is OrderedDict and made[4].default_factory is list and type(made[1][1]) is Point and tree[0] == 1
  assert rebuilt(Batch, lambda leaf: leaf) is Batch

def test_tensors_of_a_result() -> None:
  a, b = tensor(1), tensor(2)
  assert tensors_in(a) == [a] and tensors_in({"x": (a, 3, Batch(b))}) == [a, b] and tensors_in(None) == []
