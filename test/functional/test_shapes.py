"""functional/shapes.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError

CASES = """
torch.narrow(x, 1, 1, 2)
torch.select(x, 1, -1)
torch.movedim(z, (0, 1), (2, 0))
torch.transpose(z, 0, -1)
torch.permute(z, (2, 0, 1))
torch.flip(z, (0, 2))
torch.rot90(x)
torch.rot90(z, -1, (1, 2))
torch.roll(x, (1, 2), (0, 1))
torch.squeeze(x.unsqueeze(0), 0)
torch.flatten(z, 1)
torch.unflatten(x, 1, (2, 2))
torch.tile(x, (2, 1, 2))
torch.repeat_interleave(x, torch.tensor([1, 0, 2]), dim=0)
torch.unbind(x, 1)
torch.split(x, [1, 3], 1)
torch.chunk(v, 3)
torch.tensor_split(v, 3)
torch.tensor_split(v, (1, 4))
torch.hsplit(x, 2)
torch.cat([x, y], 1)
torch.cat([x, ints])
torch.stack([x, y], -1)
torch.hstack([x, y])
torch.dstack([x, y])
torch.column_stack([v, v])
torch.block_diag(x, v, s)
torch.cartesian_prod(v, w)
torch.combinations(v, 3)
torch.meshgrid(v, w, indexing="xy")
torch.diag_embed(x, 1)
torch.diag(v, -1)
torch.diagonal(z, 1, 1, 2)
torch.tril(x, 1)
torch.triu_indices(3, 4, 1)
torch.vander(v.detach(), 3)
torch.atleast_3d(x)
torch.as_strided(x, (2, 2), (1, 3), 1)
torch.as_strided_scatter(x.detach(), m[:2, :2].detach(), (2, 2), (1, 3))
torch.broadcast_tensors(x, w)
x.unfold(1, 2, 1)
x.expand(2, 3, 4)
x.T
z.mT
x.view(4, 3)
x[1:, ::2]
x[rows]
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert torch.tensor_split(torch.arange(5), 2)[0].tolist() == [0, 1, 2]
  assert torch.broadcast_shapes((3, 1), (1, 4), 4) == (3, 4)
  assert torch.as_strided(torch.arange(9), (2, 2), (1, 2)).tolist() == [[0, 2], [1, 3]]

@pytest.mark.parametrize("call", [
  lambda: torch.narrow(torch.arange(3), 0, 2, 2), lambda: torch.as_strided(torch.arange(3), (2,), (3,)),
  lambda: torch.cat([]), lambda: torch.hsplit(torch.arange(5), 2), lambda: torch.movedim(torch.ones(2, 3), (0, 0), (0,
                                                                                                                    1)),
  lambda: torch.rot90(torch.ones(3)), lambda: torch.flatten(torch.ones(2, 2), 1, 0)])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]
