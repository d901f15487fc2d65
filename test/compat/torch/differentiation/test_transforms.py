"""compat/torch/differentiation/transforms.py: torch.func, against PyTorch's."""
from __future__ import annotations
import importlib
from typing import Any

import pytest
from torch_cases import agree_in_func as agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, ShapeError

CASES = """
grad(lambda a: (a.sin() ** 2).sum())(x)
grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, y)
grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": y})["b"]
grad(lambda a: (a.sum(), a * 2), has_aux=True)(x)
grad_and_value(lambda a: a.exp().sum())(x)
grad(grad(lambda a: a.sin()))(s)
grad(lambda a: (a * x.sum()).sum())(x)
vmap(grad(lambda a: torch.linalg.inv(a).sum()))(batch)
vmap(grad(lambda a: F.conv2d(a[None], image[:1, :, :3, :3]).sin().sum()))(image)
vmap(grad(lambda a: a.sort()[0].mul(w).sum()))(x)
vmap(lambda a: jacrev(torch.sin)(a))(x)
vmap(hessian(lambda a: a.sin().prod()))(x)
jacrev(lambda a, b: (a * b).cumsum(0), argnums=(0, 1))(w, y[0])
jacfwd(lambda a: torch.linalg.inv(a))(m)
jacfwd(lambda a: (a.sum(), a.outer(w)))(v)
hessian(lambda a: a.softmax(0).log().sum())(v)
jvp(lambda a: a.sin() * a, (x,), (y,))
jvp(lambda a, b: (a * b, a.sum()), (x, y), (y, x))
vjp(lambda a: a.sin(), x)[1](y)
vjp(lambda a, b: (a @ b, a.sum()), x, m)[1]((y, s))
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
@pytest.mark.filterwarnings("ignore")
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_a_gradient_is_by_the_argument_alone() -> None:
  x = torch.tensor([1.0, 2.0])
  assert torch.func.grad(lambda a: (a * x).sum())(x).tolist() == [1.0, 2.0]
  y = torch.tensor([3.0], requires_grad=True)
  torch.func.grad(lambda a: (a ** 3).sum())(y).sum().backward()
  with torch.no_grad(): assert torch.func.grad(lambda a: (a * a).sum())(y).tolist() == [6.0]
  assert y.grad.tolist() == [18.0]

def per_sample(t: Any, func: Any) -> Any:
  """Gradients for each sample of a batch, as PyTorch's tutorial computes them."""
  t.manual_seed(0)
  net = t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.ReLU(), t.nn.Flatten(), t.nn.Linear(8, 3))
  parameters = {name: t.arange(float(p.numel())).reshape(p.shape).sin() for name, p in net.named_parameters()}
  def loss(parameters: Any, x: Any, y: Any) -> Any:
    return t.nn.functional.cross_entropy(func.functional_call(net, parameters, (x.unsqueeze(0),)), y.unsqueeze(0))
  x = t.arange(64.0).reshape(4, 1, 4, 4).cos()
  found = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, x, t.tensor([0, 1, 2, 0]))
  return [v for name in sorted(found) for v in found[name].flatten().tolist()]

def ensemble(t: Any, func: Any) -> Any:
  """Several modules at once, as PyTorch's tutorial calls them."""
  nets = [t.nn.Linear(3, 2) for _ in range(3)]
  for k, net in enumerate(nets): net.load_state_dict({"weight": t.full((2, 3), k + 1.0), "bias": t.full((2,), 0.5 * k)})
  parameters, buffers = func.stack_module_state(nets)
  def call(p: Any, b: Any, x: Any) -> Any: return func.functional_call(nets[0], (p, b), (x,))
  assert all(p.requires_grad for p in parameters.values())
  return func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, t.ones(4, 3)).flatten().tolist()

@pytest.mark.parametrize("program", [per_sample, ensemble])
def test_programs(program: Any) -> None:
  real = pytest.importorskip("torch")
  assert program(torch, torch.func) == pytest.approx(program(real, importlib.import_module("torch.func")), abs=1e-5)

def test_modules_as_functions() -> None:
  net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))
  before = net[0].weight
  given = {"0.weight": torch.ones(1, 2), "0.bias": torch.zeros(1)}
  found = torch.func.functional_call(net.eval(), given, torch.ones(1, 2))
  assert found.item() == pytest.approx(2, abs=1e-4) and net[0].weight is before
  with pytest.raises(ArgumentError, match=r"has no tensors \['w'\]"): torch.func.functional_call(net, {"w": before})
  with pytest.raises(ArgumentError, match="lacks"):
    torch.func.functional_call(net, {"0.weight": before}, torch.ones(1, 2), strict=True)
  class Tied(torch.nn.Module):  # type: ignore[name-defined,misc]  # a class of the table
    """Two names of one parameter."""
    def __init__(self) -> None:
      super().__init__()
      self.a = torch.nn.Parameter(torch.ones(1))
      self.b = self.a
    def forward(self) -> Any: return self.a + self.b
  assert torch.func.functional_call(Tied(), {"a": torch.tensor([5.0])}).item() == 10
  assert torch.nn.utils.stateless.functional_call(Tied(), {"a": torch.tensor([5.0])}, tie_weights=False).item() == 6

def test_refusals() -> None:
  f, x = torch.func, torch.ones(2)
  with pytest.raises(ShapeError, match="a tensor without axes"): f.grad(torch.sin)(x)
  with pytest.raises(ArgumentError, match="argnums has 1"): f.grad(torch.sum, 1)(x)
  with pytest.raises(ArgumentError, match="has_aux wants"): f.grad(torch.sum, has_aux=True)(x)
  with pytest.raises(ShapeError, match="tangents have shapes"): f.jvp(torch.sin, (x,), (torch.ones(3),))
  with pytest.raises(ShapeError, match="cotangents have shapes"): f.vjp(torch.sin, x)[1](torch.ones(3))
  with pytest.raises(ArgumentError, match="a module at least"): f.stack_module_state([])
  with pytest.raises(ArgumentError, match="of one class"): f.stack_module_state([torch.nn.ReLU(), torch.nn.Tanh()])
