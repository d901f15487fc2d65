"""A share of PyTorch's module database, deterministic and small."""
from __future__ import annotations
from pathlib import Path
import sys

import pytest

pytest.importorskip("torch", reason="the database is PyTorch's")
pytest.importorskip("expecttest", reason="PyTorch's database imports it")

sys.path.insert(0, str(Path(__file__).parent))

from torch_modules import judge   # the path must be set before

@pytest.mark.slow
@pytest.mark.parametrize("name", ("nn.Conv2d", "nn.BatchNorm1d", "nn.CrossEntropyLoss", "nn.GRUCell", "nn.LayerNorm"))
def test_a_share_agrees(name: str) -> None:
  for found in judge([name], most=2).values():
    assert found.wrong == 0, found.reasons
    assert found.agree, found.reasons
