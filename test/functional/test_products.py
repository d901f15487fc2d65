"""functional/products.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import ShapeError

CASES = """
torch.matmul(z, m)
torch.mm(x, m)
torch.bmm(batch, batch)
torch.mv(x, w)
torch.dot(v, v)
torch.addmm(x, x, m, beta=0.5, alpha=2)
torch.addmv(v[:3], x, w)
torch.addmv(ints[0, :3], ints[:3, :3], ints[1, :3], beta=0.6, alpha=2.7)
torch.addr(x, v[:3], w)
torch.addr(mask, mask[:, 0], mask[0], beta=3, alpha=2)
torch.addr(mask, mask[:, 0], mask[0], beta=0)
torch.addbmm(m, batch, batch)
torch.baddbmm(m, batch, batch)
torch.outer(v, w)
torch.inner(x, y)
torch.tensordot(z, x, ([1, 2], [0, 1]))
torch.kron(x, m)
torch.linalg.multi_dot([x, m, m, w])
torch.cross(v[:3], w[:3], 0)
torch.linalg.vecdot(x, y)
torch.cdist(x, y)
torch.cdist(x, y, 1)
F.pdist(x)
F.pairwise_distance(x, y)
F.cosine_similarity(x, y)
torch.renorm(x, 2, 0, 1.0)
torch.einsum("ij,kj->ik", x, y)
torch.einsum(x, [0, 1], y, [2, 1], [0, 2])
torch.einsum(z, [..., 1], w, [1])
torch.einsum("ij , kj", (x, y))
F.bilinear(x, y, torch.ones(2, 4, 4), None)
F.linear(x, m, w)
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.kron(torch.tensor([1, 2]), torch.tensor([1, 10])).tolist() == [1, 10, 2, 20]
  assert torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])).item() == 5.0
  with pytest.raises(ShapeError, match="mm"): torch.mm(torch.ones(2, 3), torch.ones(3))
