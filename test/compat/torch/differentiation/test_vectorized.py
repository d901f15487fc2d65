"""compat/torch/differentiation/vectorized.py: torch.vmap, against PyTorch's."""
from __future__ import annotations
import pytest
from torch_cases import agree_in_func as agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, FunctionError, ShapeError

CASES = """
vmap(torch.mul, in_dims=(0, None))(x, w)
vmap(vmap(torch.mul), in_dims=(1, 1), out_dims=1)(x, y)
vmap(lambda a: (a.sum(), a * 2), out_dims=(0, 1))(x)
vmap(lambda a: torch.stack([a, a * 2]), out_dims=-1)(x)
vmap(lambda d, k: d["a"].sum() * d["b"][0] + k)({"a": x, "b": [y]}, k=w)
vmap(lambda d: d["a"] + d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": w})
vmap(lambda a: a.mean(), in_dims=1, chunk_size=3)(x)
vmap(lambda a, b: a[b])(x, i)
vmap(lambda a, b, c: a.scatter_add(0, b, c))(x, i, y)
vmap(lambda a: F.layer_norm(a, (4,)))(x)
vmap(lambda a: F.max_pool2d(a, 2))(image)
vmap(lambda a: F.conv2d(a[None], image[:1, :, :3, :3]))(image)
vmap(lambda a: F.cross_entropy(a, torch.tensor(1)))(x)
vmap(lambda a: F.one_hot(a, 4))(i)
vmap(torch.linalg.inv)(batch)
vmap(torch.linalg.det)(batch)
vmap(lambda a: torch.linalg.solve(a, w))(batch)
vmap(lambda a: a.topk(2)[1])(x)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
@pytest.mark.filterwarnings("ignore")
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_random_numbers_are_the_same_for_all() -> None:
  x = torch.ones(3, 8)
  found = torch.vmap(lambda a: torch.nn.functional.dropout(a, 0.5), randomness="same")(x)
  assert found[0].tolist() == found[1].tolist() == found[2].tolist()
  with pytest.raises(ArgumentError, match="draw the numbers before"): torch.vmap(len, randomness="different")

def test_refusals() -> None:
  x = torch.ones(2, 3)
  with pytest.raises(ShapeError, match="one count of items"): torch.vmap(torch.add)(x, torch.ones(3))
  with pytest.raises(ArgumentError, match="in_dims has 2 for"): torch.vmap(torch.sin, in_dims=2)(x)
  with pytest.raises(ArgumentError, match="results of a function under vmap are tensors"): torch.vmap(lambda a: 1)(x)
  with pytest.raises(FunctionError, match="inside of function vmap"): torch.vmap(lambda a: a.sum().item())(x)
  with pytest.raises(ArgumentError, match="takes real tensors"): torch.vmap(torch.sin)(torch.tensor([1j]))
  assert x.sum().item() == 6      # computing is allowed again
