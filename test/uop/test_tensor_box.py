"""Boxes of tensors: the offsets of their elements, and the reasons why something is no box."""
from __future__ import annotations

import pytest

from tinyhw.uop.tensor_box import TensorBox
from tinyhw.uop.matrix import SwizzledLayout

def test_lines_lie_as_those_of_a_swizzled_layout() -> None:
  box, layout = TensorBox((64, 16), (1, 80), (64, 16)), SwizzledLayout(16, False)
  assert list(box.places((0, 0), 2)) == [(layout.offset(line, at, 2), 80 * line + at) for line in range(16)
                                         for at in range(64)]

def test_what_is_outside_of_the_tensor_has_no_place() -> None:
  places = [place for _, place in TensorBox((100, 9), (1, 104), (64, 8)).places((60, 5), 2)]
  assert [place is not None for place in places] == [at < 40 and line < 4 for line in range(8) for at in range(64)]
  assert places[0] == 5 * 104 + 60
  assert all(place is None for _, place in TensorBox((64, 8), (1, 64), (64, 8)).places((0, -8), 2))

def test_three_axes() -> None:
  box = TensorBox((64, 2, 3), (1, 64, 1000), (64, 2, 2))
  assert [place for _, place in box.places((0, 0, 1), 2)][::64] == [1000, 1064, 2000, 2064] and box.count == 256

@pytest.mark.parametrize("box, said",
                         [(TensorBox((64, 8), (1,), (64, 8)), "not as many"),
                          (TensorBox((64,), (2,), (64,)), "elements that are not contiguous"),
                          (TensorBox((64, 0), (1, 64), (64, 8)), "below 1"),
                          (TensorBox((64, 8), (1, 64), (32, 8)), "lines of 64 bytes")])
def test_what_is_no_box(box: TensorBox, said: str) -> None: assert said in (box.wrong(2) or "")
