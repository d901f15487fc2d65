"""differentiation/hooks.py: hooks of gradients, and requires_grad of results, against PyTorch's."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as ours
from tinyhw import TinyJit
from tinyhw.errors import ArgumentError, GradientError, ShapeError

def leaves(torch: Any) -> list[Any]:
  """Hooks of leaves: in order, removed, over steps of an optimizer."""
  w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
  seen: list[Any] = []
  double = w.register_hook(lambda g: g * 2)
  w.register_hook(lambda g: seen.append(g.tolist()))
  optimizer = torch.optim.SGD([w], lr=0.1)
  found = []
  for step in range(3):
    optimizer.zero_grad()
    (w * w).sum().backward()
    found.append(w.grad.tolist())
    optimizer.step()
    if step == 1: double.remove()
  double.remove()
  return [*found, *seen, w.tolist()]

def results(torch: Any) -> list[Any]:
  """Hooks of results: registered after use, of a tensor that is gone, of the loss, with retain_grad, in grad()."""
  x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
  y = x * x
  y.retain_grad()
  loss = (y * y).sum() + y.sum()
  y.register_hook(lambda g: g + 1)
  loss.register_hook(lambda g: g * 3)
  def hidden() -> Any:
    h = x.exp()
    h.register_hook(lambda g: g.clamp(max=0.5))
    return h.sin().sum()
  (loss + hidden()).backward(retain_graph=True)
  with (x * 4).register_hook(lambda g: g * 100): pass
  kept = y.grad.tolist()
  found, = torch.autograd.grad((y * 2).sum(), x)
  return [kept, x.grad.tolist(), found.tolist()]

def seconds(torch: Any) -> list[Any]:
  """A hook's result is differentiated again."""
  x = torch.tensor([1.0, 2.0], requires_grad=True)
  y = x ** 2
  y.register_hook(lambda g: g * x)
  first, = torch.autograd.grad((y * y).sum(), x, create_graph=True)
  second, = torch.autograd.grad(first.sum(), x)
  return [first.tolist(), second.tolist()]

def requirements(torch: Any) -> list[Any]:
  x, z = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0, 2.0])
  with torch.no_grad(): cut = x * 2
  net = torch.nn.Linear(2, 1)
  many = [x, z, x * z, z * 2, (x * z).detach(), x.argmax(), x > 1, cut, cut * x, net(z), net.weight, torch.zeros(2),
          torch.stack([x, z])[1], torch.where(z > 1, x, z), torch.relu(x), x.view(2, 1).t()]
  y = x * 2
  y.retain_grad()
  found = [*[t.requires_grad for t in many], *[t.is_leaf for t in many], y.is_leaf]
  return [*found, net.requires_grad_(False)(z).requires_grad]

@pytest.mark.parametrize("program", (leaves, results, seconds, requirements))
def test_against_pytorch(program: Any) -> None:
  for a, b in zip(program(pytest.importorskip("torch")), program(ours), strict=True):
    assert b == (pytest.approx(a) if isinstance(a, list) else a), (a, b)

def test_captured_hooks() -> None:
  w = ours.tensor([1.0, 2.0], requires_grad=True)
  w.register_hook(lambda g: g * 10)
  @TinyJit
  def step(x: Any) -> Any:
    w.grad = None
    (w * x).sum().backward()
    return w.grad.realize()
  for k in range(4): assert step(ours.tensor([1.0, float(k)]).realize()).tolist() == [10.0, 10.0 * k]

def test_checkpoints_with_hooks() -> None:
  x = ours.tensor([1.0, 2.0], requires_grad=True)
  def inner(x: Any) -> Any:
    h = x * 3
    h.register_hook(lambda g: g * 2)
    return h * h
  ours.utils.checkpoint.checkpoint(inner, x, use_reentrant=False).sum().backward()
  assert x.grad.tolist() == [36.0, 72.0]

def test_refusals() -> None:
  x = ours.tensor([1.0, 2.0], requires_grad=True)
  with pytest.raises(ArgumentError, match="is a function"): x.register_hook(3)
  for y in (ours.tensor([1.0]), x.detach(), x.argmax()):
    with pytest.raises(GradientError, match="requires a gradient"): y.register_hook(lambda g: g)
  with pytest.raises(GradientError, match="view_as_real"): ours.view_as_complex(x).register_hook(lambda g: g)
  for wrong, error in ((3, ArgumentError), (ours.ones(3), ShapeError)):
    handle = x.register_hook(lambda g, wrong=wrong: wrong)
    with pytest.raises(error): x.sum().backward()
    handle.remove()

def test_after_gradients_were_added() -> None:
  x = ours.tensor([1.0, 2.0], requires_grad=True)
  seen: list[float] = []
  handle = x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.sum().item()))
  (x * 2).sum().backward()
  (x * 3).sum().backward(inputs=[x])
  other = ours.zeros(1, requires_grad=True)
  other.sum().backward()
  handle.remove()
  x.sum().backward()
  assert seen == [4.0, 10.0]
  with pytest.raises(GradientError, match="wants a leaf"): (x * 2).register_post_accumulate_grad_hook(print)

def test_optimizers_within_the_backward_pass() -> None:
  real = pytest.importorskip("torch")
  found = []
  for t in (ours, real):
    net = t.nn.Linear(2, 1)
    with t.no_grad():
      for p in net.parameters(): p.fill_(0.5)
    steps = {p: t.optim.SGD([p], lr=0.1) for p in net.parameters()}
    def after(p: Any, steps: Any = steps) -> None:
      steps[p].step()
      steps[p].zero_grad()
    for p in net.parameters(): p.register_post_accumulate_grad_hook(after)
    for _ in range(2): net(t.tensor([[1.0, -2.0]])).square().sum().backward()
    assert all(p.grad is None for p in net.parameters())
    found.append([p.flatten().tolist() for p in net.parameters()])
  assert found[0][0] == pytest.approx(found[1][0]) and found[0][1] == pytest.approx(found[1][1])
