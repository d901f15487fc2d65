"""functional/nn/losses.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

import tinyhw.compat.torch as torch
from tinyhw.errors import TinyError

F = torch.nn.functional

CASES = """
F.mse_loss(x, y)
F.l1_loss(x, y, reduction="sum")
F.smooth_l1_loss(x, y, beta=0.5)
F.huber_loss(x, y, delta=0.7)
F.binary_cross_entropy(u, 1 - u, reduction="none")
F.binary_cross_entropy_with_logits(x, u, pos_weight=w.abs().detach())
F.nll_loss(x, classes)
F.cross_entropy(x, classes, label_smoothing=0.1)
F.cross_entropy(x, torch.softmax(y, 1), weight=w.abs())
F.kl_div(x, u, reduction="batchmean")
F.kl_div(x.detach(), y.detach() - 1)
F.poisson_nll_loss(x, p, full=True)
F.gaussian_nll_loss(x, y, p)
F.hinge_embedding_loss(x, torch.sign(y))
F.margin_ranking_loss(x, y, torch.sign(u), margin=0.2)
F.soft_margin_loss(x, torch.sign(y).detach())
F.multi_margin_loss(x, classes)
F.multilabel_margin_loss(x, torch.tensor([[1, -1, 0, 0], [0, 2, -1, 0], [3, 1, 2, 0]]))
F.multilabel_soft_margin_loss(x, u)
F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1]))
F.triplet_margin_loss(x, y, p, swap=True)
F.ctc_loss(torch.log_softmax(signal.permute(2, 0, 1), 2), torch.tensor([[1, 2], [2, 0]]), (9, 7), (2, 1))
""".strip().splitlines()

@pytest.mark.parametrize("expression", CASES)
def test_agrees_with_pytorch(expression: str) -> None: agree(expression)

def test_values() -> None:
  assert F.mse_loss(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0])).item() == 2.0

@pytest.mark.parametrize("call", [
  lambda: F.mse_loss(torch.ones(2), torch.ones(2), reduction="median"), lambda: F.huber_loss(torch.ones(2),
                                                                                             torch.ones(2), delta=0),
  lambda: F.nll_loss(torch.ones(2, 3), torch.ones(2)), lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([1])),
  lambda: F.multi_margin_loss(torch.ones(2, 3), torch.tensor([1, 2]), p=3)])
def test_refuses(call: object) -> None:
  with pytest.raises(TinyError): call()  # type: ignore[operator]
