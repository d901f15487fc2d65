"""`function`: it has the function's results; its inputs, own gradients, kernels that are compiled ahead; errors."""
from __future__ import annotations
import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinyhw.function as by_module
from tinyhw import function as exported
from tinyhw.capture.jit import TinyJit
from tinyhw.device import Device
from tinyhw.errors import ArgumentError, FunctionError, GradientError
from tinyhw.function import function
from tinyhw.nn import Linear
from tinyhw.tensor import Tensor
from tinyhw.uop.ops import UOp

def tensor(*values: float) -> Tensor: return Tensor([float(v) for v in values]).realize()

@pytest.fixture(autouse=True, scope="module")
def all_engines() -> None:
  """The engine does not matter here: graphs are built, as without @function."""

def test_it_is_the_function() -> None:
  @function
  def f(x: Tensor, y: Tensor, scale: float = 2.0, *, more: list[Tensor]) -> Tensor:
    """Documented."""
    return x * y * scale + more[0]
  assert f(tensor(1, 2), tensor(3, 4), more=[tensor(1, 1)]).tolist() == [7, 17]
  assert f.__name__ == "f" and f.__doc__ == "Documented."
  assert [t.tolist() for t in function(lambda x: (x * 2, x + 1))(tensor(1))] == [[2], [2]]
  v = UOp.variable("v", 1, 3)
  assert function(lambda x, n: x[:n].sum())(tensor(1, 2, 3), v.bind(2)).item() == 3
  assert function(lambda: Tensor.ones(2))().tolist() == [1, 1] and function(lambda x: x)(tensor(3)).tolist() == [3]
  assert function(lambda x: x + Tensor([1.0, 2.0]))(tensor(1, 1)).tolist() == [2, 3]

@function
def decorated(x: Tensor) -> Tensor: return x * 3

def plain(x: Tensor) -> Tensor: return x * 5

class Scale:
  def __init__(self, k: float) -> None: self.w = tensor(k)
  @function
  def __call__(self, x: Tensor) -> Tensor: return x * self.w
  @function(precompile=True)
  def twice(self, x: Tensor) -> Tensor: return x * self.w * 2
  @staticmethod
  @function
  def half(x: Tensor) -> Tensor: return x * 0.5
  @classmethod
  @function
  def third(cls, x: Tensor) -> Tensor: return x / 3
  class Inner:
    @function
    def add(self, x: Tensor) -> Tensor: return x + 1

def test_it_pickles_by_its_name() -> None:
  for f in (decorated, Scale.twice, Scale.half, Scale.Inner.add):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1): assert pickle.loads(pickle.dumps(f, protocol)) is f
    assert copy.copy(f) is f and copy.deepcopy(f) is f
  scale, inner = pickle.loads(pickle.dumps((Scale(2), Scale.Inner())))
  for f, value in ((scale, 6), (scale.twice, 12), (scale.half, 1.5), (inner.add, 4), (Scale.third, 1),
                   (scale.third, 1)):
    again = pickle.loads(pickle.dumps(f))
    assert f(tensor(3)).tolist() == again(tensor(3)).tolist() == [value]

def test_another_pickles_with_its_function() -> None:
  made = function(plain, precompile=True)
  for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
    assert (again is not made and again.fxn is plain and again.precompile and again.name == "plain"
            and again(tensor(2)).tolist() == [10])
  with pytest.raises((AttributeError, pickle.PicklingError)): pickle.dumps(function(lambda x: x))

def test_a_captured_one_pickles_with_it() -> None:
  jit = TinyJit(decorated)
  assert [jit(tensor(k)).tolist() for k in range(3)] == [[0], [3], [6]]
  assert pickle.loads(pickle.dumps(jit))(tensor(4)).tolist() == [12]

def test_nothing_is_computed_before_it_is_wanted() -> None:
  x = tensor(1, 2)
  y = function(lambda x: x * 3)(x)
  assert y.uop.realized is None and y.uop.op.name == "MUL"
  x.assign(x + 1).realize()
  assert y.tolist() == [3, 6]

def test_tensors_that_were_not_given_are_refused() -> None:
  x, w = tensor(1, 2), tensor(5, 6)
  with pytest.raises(FunctionError, match=r"uses 1 buffers that are not among its arguments \(\(2,\) dtypes.float32 "
                     r"on .*allow_implicit=True"):
    function(lambda x: x * w)(x)
  with pytest.raises(FunctionError, match="uses 1 buffers"): function(lambda x: x * (w + 1))(x)
  assert function(allow_implicit=True)(lambda x: x * w)(x).tolist() == [5, 12]
  assert function(lambda x: x * (w + 1).detach(), allow_implicit=True)(x).tolist() == [6, 14]
  assert function(lambda x: x + 1)(x * w).tolist() == [6, 13]     # w is below the argument

def test_attributes_of_objects_are_given() -> None:
  class Model:
    def __init__(self) -> None: self.layer, self.w = Linear(2, 1), tensor(2, 3)
    @function
    def __call__(self, x: Tensor) -> Tensor: return self.layer(x * self.w)
    @function(allow_implicit=False)
    def in_list(self, xs: list[Tensor]) -> Tensor: return xs[0] * self.w
  model, x = Model(), tensor(1, 2)
  assert model(x).tolist() == model.layer(x * model.w).tolist()
  assert model.in_list([x]).tolist() == [2, 6]
  assert model.w.shape == model(x).sum().gradient(model.w)[0].shape

def test_random_numbers_and_writes() -> None:
  Tensor.manual_seed(3)
  expected = [(tensor(1, 1) + Tensor.rand(2)).tolist() for _ in range(2)]
  Tensor.manual_seed(3)
  f = function(lambda x: x + Tensor.rand(2))
  assert [f(tensor(1, 1)).tolist() for _ in range(2)] == expected and expected[0] != expected[1]
  x = tensor(1, 2)
  assert function(lambda x: x.assign(x + 1))(x).tolist() == x.tolist() == [2, 3]

def test_values_are_not_read_inside() -> None:
  for read in (lambda x: x * x.sum().item(), lambda x: (x * 2).realize() + 1, lambda x: Tensor(x.tolist())):
    with pytest.raises(FunctionError, match="is (read|realized) inside of function .*lambda.*; do that outside"):
      function(read)(tensor(1, 2))
  assert (tensor(1) + 1).realize().item() == 2

@pytest.mark.parametrize("wrong", [lambda x: None, lambda x: 3, lambda x: [x], lambda x: {"a": x}, lambda x: (),
                                   lambda x: (x, (x,))])
def test_other_results_are_refused(wrong: Any) -> None:
  with pytest.raises(FunctionError, match="return a Tensor, or a tuple of Tensors"): function(wrong)(tensor(1))

def test_what_cannot_be_called_is_refused() -> None:
  with pytest.raises(ArgumentError, match="wants something that can be called, not 3"):
    function(3)  # type: ignore[arg-type]  # that is the test
  with pytest.raises(ArgumentError, match="grad_fxn can be called, or is None"): function(lambda x: x,
    grad_fxn=3)  # type: ignore[arg-type]  # as above

# ***** gradients *****

@pytest.mark.parametrize("settings", [{}, {"precompile": True}, {"precompile_backward": True},
                                      {"precompile": True, "precompile_backward": True}])
def test_gradients_are_those_of_the_function(settings: dict[str, bool]) -> None:
  x, y, w = tensor(1, 2), tensor(3, 4), tensor(0.5, 0.25)
  def f(x: Tensor, y: Tensor, z: Tensor) -> Tensor: return (x * y * w + z).square() * x
  lazy = x * 2
  expected = [g.tolist() for g in f(x, y, lazy).sum().gradient(x, y, w)]
  made = function(f, allow_implicit=True, **settings)(x, y, lazy)
  assert made.tolist() == f(x, y, lazy).tolist()
  assert ([g.tolist() for g in function(f, allow_implicit=True, **settings)(x, y, lazy).sum().gradient(x, y, w)]
          == expected)
  def cube(x: Tensor) -> Tensor: return x * x * x
  g = function(cube, **settings)(x).sum().gradient(x)[0]
  assert g.tolist() == [3, 12] and g.sum().gradient(x)[0].tolist() == [6, 12]
  x.requires_grad = True
  function(cube, **settings)(x).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [3, 12]

@pytest.mark.parametrize("settings", ({}, {"precompile": True}, {"precompile_backward": True}))
def test_an_unused_input_has_no_gradient(settings: dict[str, bool]) -> None:
  x, y, z = (Tensor([1.0, 2.0], requires_grad=True) for _ in range(3))
  made = function(lambda x, y, z: x * z.detach(), **settings)(x, y, z)
  made.sum().backward()
  assert x.grad is not None and x.grad.tolist() == [1, 2] and y.grad is None and z.grad is None
  with pytest.raises(GradientError, match="was not computed from"):
    function(lambda x, y: x * 2, **settings)(x, y).sum().gradient(y)

def test_a_gradient_of_its_own() -> None:
  x, y, seen = tensor(1, 2), tensor(3, 4, 5), []
  def gradient(g: UOp, call: UOp) -> Any:
    seen.append(call.src[1:])
    return Tensor(g) * 100, None
  f = function(lambda x, y: x * y.sum(), grad_fxn=gradient)
  assert f(x, y).tolist() == [12, 24]
  assert [g.tolist() for g in f(x, y).sum().gradient(x, y)] == [[100, 100], [0, 0, 0]] and seen == [(x.uop, y.uop)]
  def both(first: UOp, second: UOp, call: UOp) -> Any: return Tensor(first) * 10 + 0, Tensor(second).expand(3) + 1
  first, second = function(lambda x, y: (x * 2, y.sum()), grad_fxn=both)(x, y)
  assert [g.tolist() for g in first.sum().gradient(x, y)] == [[10, 10], [1, 1, 1]]
  assert [g.tolist() for g in (first.sum() * 3 + second * 0).gradient(x)] == [[30, 30]]
  w = tensor(7, 7)
  implicit = function(lambda x: x * w, allow_implicit=True, grad_fxn=lambda g, call: (Tensor(g) * 2, Tensor(g) * 3))
  assert [g.tolist() for g in implicit(x).sum().gradient(x, w)] == [[2, 2], [3, 3]]

def test_a_gradient_that_does_not_fit_is_refused() -> None:
  x, y = tensor(1, 2), tensor(3, 4, 5)
  for wrong, message in ((lambda g, call: (g,), "gives 1, and there are 2 inputs"),
                         (lambda g, call: g, "and there are 2 inputs"),
                         (lambda g, call: (g, g), r"for input 1 of shape \(3,\)"),
                         (lambda g, call: (3, None), "for input 0 of shape")):
    with pytest.raises(GradientError, match=message):
      function(lambda x, y: x * y.sum(), grad_fxn=wrong)(x, y).sum().gradient(x, y)

# ***** kernels *****

def test_kernels_are_compiled_in_the_call() -> None:
  kernels = Device["CPU"].kernels if Device.DEFAULT == "CPU" else Device[Device.DEFAULT].kernels
  x = tensor(*range(37))
  def f(x: Tensor) -> Tensor: return (x * 1.75 + 3).exp() - 0.125
  before = set(kernels)     # those used least recently may go when others come
  late = function(f)(x)
  assert kernels.keys() <= before
  early = function(f, precompile=True)(x)
  assert early.uop.realized is None and kernels.keys() - before
  before |= kernels.keys()
  assert early.tolist() == pytest.approx(late.tolist())
  z = function(f, precompile=True)(x).contiguous()
  z.realize()
  assert len(kernels.keys() - before) <= 1      # the kernel of `late`, if it is another one

def test_gradients_are_compiled_when_they_are_expressed() -> None:
  kernels = Device[Device.DEFAULT].kernels
  x = tensor(*range(1, 42))
  y = function(lambda x: (x * 1.625).log().sum(), precompile_backward=True)(x)
  before = set(kernels)
  g = y.gradient(x)[0]
  expressed = set(kernels)
  assert expressed - before and g.uop.realized is None
  assert g.tolist() == pytest.approx([1 / k for k in range(1, 42)]) and kernels.keys() <= expressed

def test_inside_of_a_jit_and_of_another() -> None:
  @function
  def f(x: Tensor, y: Tensor) -> Tensor: return x * y + 1
  w = tensor(3)
  jit: Any = TinyJit(lambda x: f(x, w).realize())
  for k in range(5): assert jit(tensor(k)).item() == 3 * k + 1
  assert function(lambda x: f(x, x) + f(x, x))(tensor(2)).item() == 10

# ***** names *****

def test_module_and_name_are_both_there() -> None:
  assert exported(lambda x: x + 1)(tensor(1)).item() == by_module(lambda x: x + 1)(tensor(1)).item() == 2
  programs = ["from tinyhw import function; from tinyhw.function import function as f; assert function is f",
              "import tinyhw.function; from tinyhw import function, Tensor; print(function(lambda x: x + "
              "1)(Tensor([1])).tolist())",
              "import tinyhw, tinyhw.function; print(tinyhw.function(lambda: tinyhw.Tensor([2]))().tolist(), "
              "tinyhw.function.function)",
              "from tinyhw import function; import tinyhw.function as m; m.function; import tinyhw; "
              "tinyhw.function.function"]
  for program in programs:
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).resolve().parent.parent,
                   capture_output=True)
