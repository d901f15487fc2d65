"""Shapes, padding and limits from arguments. Windows are tested with convolutions."""
import pytest

from tinyhw.errors import IndexRangeError, ShapeError
from tinyhw.methods.graph import views
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

def test_new_shapes():
  n = UOp.variable("n", 1, 8).bind(4)
  assert views.new_shape((2, 6), (3, -1)) == (3, 4) and views.new_shape((0, 3), (3, 0)) == (3, 0)
  assert views.new_shape((2, 6), (None, 3, 2)) == (2, 3, 2)
  assert views.new_shape((2, n, 6), (-1, n, 3)) == (4, n, 3) and views.new_shape((2, n), (-1,))[0].vmax == 16
  for wanted, text in (((-1, -1), "only one"), ((5, -1), "multiple of 5"), ((-2, 6), "negative"),
                       ((2, 5), "do not make 10"),
    ((0, -1), "multiple of 0")):
    with pytest.raises(ShapeError, match=text): views.new_shape((2, 6), wanted)

def test_limits_are_those_of_the_variable_and_checks_those_of_its_value():
  v = UOp.variable("n", 1, 8)
  n = v.bind(4)
  assert views.limits(n + 1) == (2, 9) and views.limits(5) == (5, 5)
  views.check_part(0, 9, n, n + 1)
  views.check_part(0, 8, v, 8)
  views.check_part(0, 5, n, n + 1)
  with pytest.raises(IndexRangeError, match=r"axis 2, which has size 4: n\[=4\] is 4, \(n\[=4\]\+1\) is 5"):
    views.check_part(2, 4, n, n + 1)
  # without values, the part must fit for all of them
  with pytest.raises(IndexRangeError, match="to n of axis 2, which has size 7"): views.check_part(2, 7, 0, v)

def test_padding():
  assert views.pad_pairs((1, 2, 3), (1, 2)) == [(0, 0), (0, 0),
                                                (1, 2)] and views.pad_pairs((1, 2), (1, 2, 3, 4)) == [(3, 4), (1, 2)]
  assert views.pad_pairs((1, 2), ((1, 2), None)) == [(1, 2), (0, 0)]
  with pytest.raises(ShapeError, match="1 pairs for 2 axes"): views.pad_pairs((1, 2), ((1, 2),))

def test_symbolic_sizes_where_a_number_is_needed():
  with pytest.raises(ShapeError, match="symbolic size n"): views.static(UOp.variable("n", 1, 2), "split")

@pytest.mark.parametrize("part", [(64, 65), (64, 70), (63, 65), (65, 65), (-1, 3)])
def test_parts_beyond_an_axis_are_refused(part):
  with pytest.raises(IndexRangeError): Tensor.arange(64).shrink((part,))
