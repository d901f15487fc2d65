"""Checks of arguments."""
import math

import numpy as np
import pytest

from tinyhw import Tensor, UOp, dtypes, nn
from tinyhw.errors import ArgumentError, IndexingError, UnknownValueError
from tinyhw.methods import checks

def test_numbers_of_other_libraries_are_numbers():
  assert checks.whole("n", np.int64(3)) == 3 and type(checks.whole("n", np.int64(3))) is int
  assert type(checks.real("x", np.float32(2.5))) is float and type(checks.real("x", np.uint8(2))) is int
  assert (checks.wholes("n", (np.int8(1), 2)) == (1, 2) and checks.wholes("n", 5) == (5,)
          and checks.wholes("n", range(2)) == (0, 1))
  n = UOp.variable("n", 1, 3)
  assert checks.sizes("n", [1, np.int64(2), n]) == (1, 2, n)

def test_numbers_of_others_become_plain():
  assert (checks.plain(np.float64(2.5)) == 2.5 and type(checks.plain(np.float64(2.5))) is float
          and type(checks.plain(np.uint8(3))) is int)
  array = np.ones(2)
  assert checks.plain(np.bool_(True)) is True and checks.is_number(np.bool_(False))
  assert checks.plain(array) is array and checks.plain(True) is True and checks.plain("x") == "x"

@pytest.mark.parametrize("f, text", [
  (lambda: checks.whole("n", 2.5), "n is a whole number, not 2.5"), (lambda: checks.whole("n", "3"), "not '3'"),
  (lambda: checks.whole("n", -1, 0), "n is -1; it must be at least 0"),
  (lambda: checks.real("x", "3"), "x is a number"),
  (lambda: checks.real("x", 1j), "x is a number"), (lambda: checks.finite("x", math.inf), "finite"),
  (lambda: checks.sizes("n", [1, None]), "not None"),
  (lambda: checks.size("n", UOp.const(dtypes.float32, 1.0)), "Variable"),
  (lambda: checks.wholes("n", [1, "a"]), "not 'a'"),
  (lambda: checks.function("f", 3), "f is a function"),
  (lambda: checks.flag("f", np.array([True, False])), "f is True or False, not array"),
  (lambda: checks.real("x", np.array(True)), "x is a number"),
  (lambda: checks.flag("f", np.array([])), "f is True or False")])
def test_refusals(f, text):
  with pytest.raises(ArgumentError, match=text): f()

@pytest.mark.parametrize("yes", [True, 1, np.bool_(True), np.array(True), np.array([True])])
@pytest.mark.parametrize("no", [False, 0, None, np.bool_(False), np.array(False)])
def test_flags_are_what_python_says_of_their_truth(yes, no):
  assert checks.flag("f", yes) is True and checks.flag("f", no) is False

def test_the_truth_of_a_tensor_is_no_flag():
  with pytest.raises(UnknownValueError): checks.flag("f", Tensor(True))

def x() -> Tensor: return Tensor([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
def image() -> Tensor: return Tensor.ones(1, 1, 3, 3)

FLAGS = {   # calls with a flag, whose result shows the value of the flag
  "keepdim": [lambda f, name=name: getattr(x(), name)(1, keepdim=f).shape
              for name in ("sum", "max", "any", "mean", "std", "argmax", "logsumexp")]
    + [lambda f: x().argmax(keepdim=f).shape],
  "equal_nan": [lambda f: Tensor([math.nan]).isclose(Tensor([math.nan]), equal_nan=f).tolist()],
  "descending": [lambda f: x().sort(descending=f)[1].tolist()],
  "largest": [lambda f: x().topk(1, largest=f)[1].tolist()],
  "is_causal": [lambda f: x().scaled_dot_product_attention(x(), x(), is_causal=f).tolist()],
  "ceil_mode": [lambda f: image().max_pool2d(2, ceil_mode=f).shape],
  "return_indices": [lambda f: type(image().max_pool2d(2, return_indices=f))],
  "count_include_pad": [lambda f: image().avg_pool2d(2, padding=1, count_include_pad=f).tolist()],
  "align_corners": [lambda f: x().interpolate((4,), align_corners=f).tolist()],
  "full_matrices": [lambda f: x().svd(full_matrices=f)[2].shape],
  "include_self": [lambda f: x().scatter_reduce(1, Tensor([[0], [0]]), x(), "sum", include_self=f).tolist()],
  "detect_negative": [lambda f: Tensor([-math.inf]).isinf(detect_negative=f).tolist()],
  "requires_grad": [lambda f: Tensor([1.0], requires_grad=f).requires_grad,
                    lambda f: Tensor.ones(1, requires_grad=f).requires_grad,
                    lambda f: Tensor([1.0]).requires_grad_(f).requires_grad],
  "bias": [lambda f: nn.Linear(2, 2, bias=f).bias is None, lambda f: nn.Conv2d(2, 2, 1, bias=f).bias is None],
  "affine": [lambda f: nn.BatchNorm(2, affine=f).weight is None],
  "elementwise_affine": [lambda f: nn.LayerNorm(2, elementwise_affine=f).weight is None],
  "track_running_stats": [lambda f: nn.BatchNorm(2, track_running_stats=f).track_running_stats],
  "nesterov": [lambda f: nn.optim.SGD([Tensor([1.0])], nesterov=f).nesterov],
  "fused": [lambda f: nn.optim.SGD([Tensor([1.0])], fused=f).fused],
  "mode": [lambda f: Tensor.train(f).mode],
}

@pytest.mark.parametrize("what, call", [(what, call) for what, calls in FLAGS.items() for call in calls])
def test_flags_of_numpy(what, call):
  yes, no = call(True), call(False)
  assert yes != no
  assert call(np.bool_(True)) == call(np.array(True)) == yes and call(np.bool_(False)) == call(np.array(False)) == no
  with pytest.raises(ArgumentError, match=f"{what} is True or False, not array"): call(np.array([True, False]))

def test_a_flag_of_numpy_turns_the_gradient_off():
  x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0], requires_grad=np.bool_(False))
  (x * y).sum().backward()
  assert x.grad.tolist() == [3.0, 4.0] and y.grad is None

def test_bools_of_numpy_are_numbers():
  yes, condition = np.bool_(True), Tensor([True, False])
  assert Tensor.full((2,), yes).dtype is dtypes.bool and condition.where(yes, False).tolist() == [True, False]
  assert Tensor([1.0]).pad((1, 0), value=yes).tolist() == [1.0, 1.0] and (Tensor([1.0]) + yes).tolist() == [2.0]
  with pytest.raises(IndexingError, match="needs an axis"): Tensor([1.0])[np.array(True)]
