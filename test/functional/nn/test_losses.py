"""functional/nn/losses.py against PyTorch: values, types, shapes, gradients. Some by hand."""
from __future__ import annotations

import pytest
from torch_cases import agree

from tinyhw import TinyJit
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

@pytest.mark.parametrize("call, says", [
  (lambda: F.nll_loss(torch.ones(2, 3), torch.tensor([0, 3])), "a class is 3; it must be from 0 to 2, or -100"),
  (lambda: F.cross_entropy(torch.ones(2, 3), torch.tensor([0, -1])), "a class is -1"),
  (lambda: F.multi_margin_loss(torch.ones(2, 3), torch.tensor([1, 7])), "a class is 7"),
  (lambda: F.multilabel_margin_loss(torch.ones(1, 3), torch.tensor([[1, 3, -1]])), "a class is 3"),
  (lambda: F.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0])), "input has elements outside of 0..1"),
  (lambda: F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([-1.0])), "target has elements outside of 0..1"),
  (lambda: F.gaussian_nll_loss(torch.ones(2), torch.ones(2), torch.tensor([1.0, -1.0])), "a variance is negative"),
  (lambda: F.ctc_loss(torch.ones(5, 1, 3), torch.tensor([[1, 2]]), (6,), (2,)), "input_lengths is 6"),
  (lambda: F.ctc_loss(torch.ones(5, 1, 3), torch.tensor([[1, 2]]), (5,), (3,)), "target_lengths is 3"),
  (lambda: F.ctc_loss(torch.ones(5, 2, 3), torch.tensor([1, 2]), (5, 5), (1, 2)), "sum to 3")])
def test_values_out_of_range_are_named(call: object, says: str) -> None:
  with pytest.raises(TinyError, match=says): call()  # type: ignore[operator]

def test_ignored_classes_pass_and_what_no_check_has_seen_gives_nan() -> None:
  x = torch.zeros(2, 3, requires_grad=True)
  assert F.cross_entropy(x, torch.tensor([1, 9]), ignore_index=9).item() == pytest.approx(1.0986, abs=1e-4)
  classes = torch.tensor([1, 4]).realize()
  assert F.cross_entropy(x, classes + 1).isnan().item()
  assert F.cross_entropy(x, classes - 1, reduction="none").isnan().tolist() == [False, True]
  assert F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.0]) * 2).isnan().item()

def test_a_captured_step_checks_nothing_and_does_not_read() -> None:
  x = torch.zeros(2, 3).realize()
  @TinyJit
  def loss(classes: torch.Tensor) -> torch.Tensor: return F.nll_loss(x - 1, classes).realize()
  for k in range(3): assert loss(torch.tensor([k, 0]).realize()).item() == 1.0
  assert loss(torch.tensor([5, 0]).realize()).isnan().item()
