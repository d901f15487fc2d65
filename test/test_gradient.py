"""gradient.py: what rules decide, graphs of any depth and order, and which nodes gradients reach."""
import math

import numpy as np
import pytest

from test.helpers import check_gradient, same
from tinyhw.errors import GradientError, ShapeError
from tinyhw.gradient import define_gradient, gradients
from tinyhw.methods import graph
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops

pytestmark = pytest.mark.usefixtures("engine")

def test_higher_derivatives():
  x = Tensor([0.7])
  y = x.sin() * x.exp() + x ** 4
  for want in (lambda a: (math.sin(a) + math.cos(a)) * math.exp(a) + 4 * a ** 3, lambda a: 2 * math.cos(a) * math.exp(a) + 12 * a * a,
               lambda a: 2 * (math.cos(a) - math.sin(a)) * math.exp(a) + 24 * a):
    y = y.sum().gradient(x)[0]
    same(y, np.array([want(0.7)], np.float32))

def test_shared_nodes_add_up():
  x = Tensor([2.0, 3.0])
  h = x * x
  assert (h + h * h).sum().gradient(x, h) and [g.tolist() for g in (h + h * h).sum().gradient(x, h)] == [[36.0, 114.0], [9.0, 19.0]]

def test_deep_graphs_need_no_recursion():
  x = Tensor([1.0])
  y = x
  for _ in range(3000): y = y + x
  g = y.sum().gradient(x)[0]
  assert len(g.uop.toposort()) > 3000

def test_cost_is_linear_in_the_graph():
  def nodes(layers: int) -> int:
    x = Tensor.ones(4, 4, requires_grad=True)
    y = x
    for _ in range(layers): y = (y @ x).relu()
    return len(y.sum().gradient(x)[0].uop.toposort())
  assert nodes(16) < 2.2 * nodes(8)

def test_reshaped_and_realized_targets():
  w = Tensor(np.arange(4, dtype=np.float32).reshape(2, 2))
  h = (w * 2).reshape(4)
  z = (h.reshape(2, 2) * w).sum()
  assert z.gradient(h)[0].tolist() == [0, 1, 2, 3]
  h.realize()
  assert z.gradient(h, w)[0].tolist() == [0, 1, 2, 3] and z.gradient(w)[0].tolist() == [[0, 4], [8, 12]]

def test_assign_passes_the_gradient_of_its_value():
  w, v = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
  w.assign(v * 2)
  assert (w * w).sum().gradient(v)[0].tolist() == [24.0, 32.0]

def test_copies_return_the_gradient_to_their_source():
  x = Tensor([1.0, 2.0], device="PYTHON")
  g = (x.to("PYTHON:1") * 3).sum().gradient(x)[0]
  assert g.device == "PYTHON"

def test_gather_adds_up():
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  assert x[Tensor([1, 1, 0, -1, 7])].sum(0).square().sum().gradient(x)[0].tolist() == [[20.0, 28.0], [60.0, 84.0]]

def test_a_rule_of_its_own():
  x = Tensor([1.0, 2.0])
  node = graph.unary(Ops.TRUNC, x.uop)
  define_gradient(node, (x.uop,), lambda u, g: (g,))
  assert gradients(node, graph.like(node, 5), [x.uop])[0] is graph.like(node, 5)

def test_powers_at_zero():
  a, b = Tensor([0.0, 0.0, 2.0]), Tensor([2.0, 1.0, 0.0])
  ga, gb = (a ** b).sum().gradient(a, b)
  assert ga.tolist() == [0.0, 1.0, 0.0] and gb.tolist()[:2] == [0.0, 0.0]

def test_nothing_flows_through_integers_and_rounding():
  x = Tensor([1.5, 2.5])
  assert (x.floor() + x.int()).sum().gradient(x)[0].tolist() == [0.0, 0.0]

def test_refusals():
  x, y = Tensor([1.0, 2.0]), Tensor([1.0])
  with pytest.raises(GradientError, match=r"the shape is \(2,\)"): x.gradient(x)
  with pytest.raises(GradientError, match="was not computed from"): x.sum().gradient(y)
  with pytest.raises(GradientError, match="cannot be differentiated"): Tensor([1]).sum().gradient(x)
  with pytest.raises(GradientError, match="has no gradient"): x.sum().gradient(Tensor([1]))
  with pytest.raises(ShapeError): x.gradient(x, gradient=y.expand(3))

def test_a_network():
  check_gradient(lambda x, w, v: ((x @ w).gelu() @ v).layernorm().softmax(), (2, 3), (3, 4), (4, 2))
