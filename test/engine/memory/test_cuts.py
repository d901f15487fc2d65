"""Gradients past in-place writes: gradients that would be too small are refused; gradients that end on purpose are
not."""
from __future__ import annotations
from collections.abc import Callable

import pytest

from tinyhw import Tensor, nn
from tinyhw.engine.memory import cuts
from tinyhw.engine.memory.writes import base_of
from tinyhw.errors import GradientError

def leaf(*values: float, wanted: bool | None = True) -> Tensor: return Tensor(list(values), requires_grad=wanted)

def set_what_was_read(w: Tensor, x: Tensor) -> Tensor:
  z = x * w
  x[0] = 9.0
  return z + w

def set_to_a_result(w: Tensor, x: Tensor) -> Tensor:
  x[0] = w[0] * 2
  return x * x + w

def add_a_result_to_a_part(w: Tensor, x: Tensor) -> Tensor:
  x[0:1] += w[1:]
  return x * x + w

def add_a_result_under_a_view(w: Tensor, x: Tensor) -> Tensor:
  view = x[0:1]
  x += w
  return x * view + w

def set_by_index(w: Tensor, x: Tensor) -> Tensor:
  x[Tensor([1, 0])] = w * 3
  return x + w

def write_the_leaf(w: Tensor, x: Tensor) -> Tensor:
  z = x * w
  w.detach()[0] = 5.0
  return z + w

def add_to_the_leaf(w: Tensor, x: Tensor) -> Tensor:
  z = x * w
  w += 1
  return z + w

def assign_the_leaf(w: Tensor, x: Tensor) -> Tensor:
  z = x * w
  w.assign(w * 2).realize()
  return z + w

def step_with_the_leaf(w: Tensor, x: Tensor) -> Tensor:
  optimizer = nn.optim.SGD([w], lr=0.1)
  z = x * w
  with Tensor.train():
    (w * w).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
  return z + w

def copy_what_was_cut(w: Tensor, x: Tensor) -> Tensor:
  other = Tensor([0.0, 0.0]).realize()
  x[0] = w[0]
  other[:] = x * 2
  return other + w

LOSSES = (set_what_was_read, set_to_a_result, add_a_result_to_a_part, add_a_result_under_a_view, set_by_index,
          write_the_leaf, add_to_the_leaf, assign_the_leaf, step_with_the_leaf, copy_what_was_cut)

@pytest.mark.parametrize("loss", LOSSES)
def test_a_gradient_that_a_write_cut_off_is_refused(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
  """Without this each of them is too small, since `+ w` gives only a part of it."""
  w, x = leaf(1.0, 2.0), leaf(5.0, 6.0, wanted=None)
  y = loss(w, x)
  with pytest.raises(GradientError, match=r"would not reach all of the gradient of a tensor of shape \(2,\): .* in "
                     r"place since"):
    y.sum().backward()
  with pytest.raises(GradientError, match=r"gradient\(\) would not be all of the gradient"): y.sum().gradient(w)
  assert w.grad is None

@pytest.mark.parametrize("loss", LOSSES)
def test_a_constant_by_detach_is_one(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
  w, x = leaf(1.0, 2.0), leaf(5.0, 6.0, wanted=None)
  (loss(w, x).detach() * w).sum().backward()
  assert w.grad is not None

def test_realized_is_a_constant() -> None:
  w, x = leaf(1.0, 2.0), leaf(5.0, 6.0, wanted=None)
  x[0] = w[0] * 2
  x.realize()
  (x * w).sum().backward()
  assert w.grad is not None and w.grad.tolist() == [2.0, 6.0]
  z = x * w
  w.assign(w.detach() + 1).realize()
  (z.realize() * w).sum().backward()
  assert w.grad.tolist() == [2.0 + 2.0, 6.0 + 12.0]

def test_a_whole_new_content_is_a_new_start() -> None:
  w, x = leaf(1.0, 2.0), leaf(5.0, 6.0, wanted=None)
  x[0] = w[0] * 2
  x[1] = 3.0
  with pytest.raises(GradientError): (x * w).sum().backward()
  x[:] = Tensor([1.0, 1.0])
  (x * w).sum().backward()
  assert w.grad is not None and w.grad.tolist() == [1.0, 1.0]

def test_leaves_that_are_gone_want_nothing() -> None:
  w, other, x = leaf(1.0, 2.0), leaf(1.0, 1.0), leaf(5.0, 6.0, wanted=None)
  x[0] = w[0]
  del w
  (x * other).sum().backward()
  assert other.grad is not None and other.grad.tolist() == [1.0, 6.0]

def test_training_steps_go_on() -> None:
  """Parameters are written, earlier losses are kept, an average follows them: all of this is allowed."""
  with Tensor.train():
    layers = [nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 1)]
    parameters = nn.state.get_parameters(layers)
    average, losses = [p.detach().clone().realize() for p in parameters[:2]], []
    optimizer = nn.optim.Adam(parameters, lr=0.01)
    for _ in range(3):
      optimizer.zero_grad()
      losses.append(Tensor.ones(2, 3).sequential(layers).square().mean())
      losses[-1].backward()
      optimizer.step()
      for a, p in zip(average, parameters): a.assign(a * 0.9 + p * 0.1)
    assert losses[0].item() > losses[2].item() and all(p.grad is not None for p in parameters if p.requires_grad)

def test_a_leaf_that_was_written_is_a_new_start() -> None:
  for realized in (False, True):
    w = leaf(1.0, 2.0)
    w += 1
    if realized: w.realize()
    (w * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [4.0, 6.0]

def test_what_is_noted_goes_with_the_storage() -> None:
  w, x = leaf(1.0, 2.0), leaf(5.0, 6.0, wanted=None)
  x[0] = w[0]
  node = base_of(x.uop)
  assert {id(r()) for r in cuts._cuts[node]} >= {id(w)}
  before = len(cuts._cuts)
  del x, node
  assert len(cuts._cuts) < before
