"""functional/known.py: which values a check reads, and what it says."""
from __future__ import annotations

import pytest

from tinyhw import Tensor, TinyJit, dtypes
from tinyhw.errors import ArgumentError, IndexRangeError
from tinyhw.functional.known import extent, is_known, want_all, want_index

def test_what_is_in_memory_is_known_and_what_is_computed_is_not() -> None:
  x = Tensor([3, -1, 2]).realize()
  assert is_known(x) and is_known(x.long()) and is_known(x.reshape(3, 1)) and is_known(x[1:])
  assert is_known(Tensor.zeros(4, dtype=dtypes.int32))
  assert not is_known(x + 1) and not is_known(3)
  assert extent(x) == (-1, 3) and extent(x + 1) is None and extent(Tensor.empty(0)) is None
  assert extent(Tensor([float("nan"), 1.0])) != extent(Tensor([1.0, 1.0]))

@pytest.mark.parametrize("n", (3, 5000))
def test_an_index_out_of_range_is_named(n: int) -> None:
  index = Tensor([0, 7] + [1] * (n - 2)).realize()
  want_index("a row", index, 8)
  want_index("a row", index, 2, ignored=7)
  with pytest.raises(IndexRangeError, match="a row is 7; it must be from 0 to 6"): want_index("a row", index, 7)
  with pytest.raises(IndexRangeError, match="or -100, which is ignored"): want_index("a class", index, 7, 0, -100)
  want_index("a row", index + 10, 7)          # not computed yet

def test_a_condition_of_known_operands() -> None:
  x = Tensor([0.5, 1.5]).realize()
  want_all("above", x.le(2), x)
  with pytest.raises(ArgumentError, match="above"): want_all("above", x.le(1), x)
  want_all("above", (x * 1).le(1), x * 1)

def test_a_capture_checks_nothing() -> None:
  @TinyJit
  def picked(i: Tensor) -> Tensor:
    want_index("a row", i, 3)
    return (i * 2).realize()
  for k in range(3): assert picked(Tensor([k]).realize()).item() == 2 * k
  assert picked(Tensor([5]).realize()).item() == 10
