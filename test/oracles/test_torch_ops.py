"""A share of PyTorch's operator database, deterministic and small; the command's own judgement; the recorded counts."""
from __future__ import annotations
import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the database is PyTorch's")
pytest.importorskip("expecttest", reason="PyTorch's database imports it")

sys.path.insert(0, str(Path(__file__).parent))

from torch_ops import DRAWN, RECORD, Verdict, counts, judge

# One operator of each family, and those that were wrong once.
SHARE = """nn.functional.conv2d nn.functional.max_pool1d nn.functional.interpolate nn.functional.cross_entropy
  nn.functional.grid_sample nn.functional.ctc_loss nn.functional.embedding_bag linalg.lu linalg.eigh linalg.solve_ex
  linalg.pinv special.zeta special.bessel_y1 igamma quantile mode unique searchsorted index_reduce scatter_reduce
  as_strided_scatter masked.var tensordot cdist nextafter gradient std var_mean sort where diff cov histogramdd
  signal.windows.kaiser polygamma triplet native_batch_norm take_along_dim""".split()

@pytest.mark.slow
@pytest.mark.parametrize("name", SHARE)
def test_a_share_agrees(name: str) -> None:
  for found in judge([name], most=4).values():
    assert found.wrong == 0, found.reasons
    assert found.agree, found.reasons

@pytest.mark.parametrize("name", ("add", "quantile", "linalg.det"))
def test_bad_input_is_refused(name: str) -> None:
  assert all(found.wrong == 0 for found in judge([name], what="errors").values())

@pytest.mark.parametrize("name", ("nn.functional.grid_sample", "linalg.cholesky_ex", "polygamma", "cdist"))
def test_gradients_agree_with_autograd(name: str) -> None:
  assert all(found.wrong == found.failed == 0 for found in judge([name], most=4, what="gradients").values())

@pytest.mark.parametrize("name", ("erfinv", "nn.functional.linear_cross_entropy", "as_strided"))
def test_second_gradients_agree(name: str) -> None:
  assert all(found.wrong == found.failed == 0
             for found in judge([name], most=2, what="second gradients").values())

def test_kinds() -> None:
  assert [Verdict(*numbers, False, {}).kind for numbers in ((3, 0, 0, 0), (3, 1, 1, 0), (0, 0, 0, 2))] == [
    "whole", "part", "none"]
  assert Verdict(0, 0, 0, 2, True, {}).kind == "absent"
  found = counts({"a": Verdict(3, 1, 0, 0, False, {}), "b": Verdict(1, 0, 2, 0, False, {}),
                  "c": Verdict(2, 0, 0, 0, False, {})})
  assert (found["whole"], found["close"], found["part"], found["operators with a wrong sample"]) == (1, 1, 1, 1)
  assert (found["agree"], found["agree by accuracy"], found["samples"]) == (6, 1, 9)

def test_the_record_meets_the_goal() -> None:
  record = json.loads(RECORD.read_text(encoding="utf-8"))["values, float32"]
  assert record["whole"] >= 540
  assert record["operators with a wrong sample"] == 0
  assert len(DRAWN) <= 40
