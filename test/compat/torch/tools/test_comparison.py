"""compat/torch/tools/comparison.py: assert_close."""
from __future__ import annotations
from typing import Any

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError

CASES: list[tuple[Any, Any, str]] = [
  ([1.0, 2.0], [1.0, 2.5], "1 of 2 elements differ; the greatest absolute difference is 0.5"),
  ([1.0], [1.0, 2.0], "the shapes differ"), ([1.0], [1], "the types differ"),
  ([float("nan")], [float("nan")], "differ"),
]

@pytest.mark.parametrize(("a", "b", "text"), CASES)
def test_differences(a: Any, b: Any, text: str) -> None:
  x, y = torch.tensor(a), torch.tensor(b)
  torch.testing.assert_close(x, x.clone(), equal_nan=True)
  with pytest.raises(AssertionError, match=text): torch.testing.assert_close(x, y)

def test_tolerances() -> None:
  x = torch.ones(2)
  torch.testing.assert_close(x, x + 1e-6)
  torch.testing.assert_close(x, x + 0.1, rtol=0.2, atol=0)
  torch.testing.assert_close(x, x.double(), check_dtype=False)
  with pytest.raises(AssertionError): torch.testing.assert_close(x.double(), x.double() + 1e-6)
  with pytest.raises(AssertionError): torch.testing.assert_close(torch.tensor(3), torch.tensor(4))
  with pytest.raises(ArgumentError, match="together, or neither"): torch.testing.assert_close(x, x, rtol=1)

def test_containers() -> None:
  torch.testing.assert_close({"a": [torch.ones(1), 2]}, {"a": [torch.ones(1), 2]})
  with pytest.raises(AssertionError, match=r"not close at \['a'\]\[1\]"):
    torch.testing.assert_close({"a": [torch.ones(1), 2]}, {"a": [torch.ones(1), 3]})
  with pytest.raises(AssertionError, match="the keys differ"): torch.testing.assert_close({"a": 1}, {"b": 1})
  with pytest.raises(AssertionError, match="the lengths differ"): torch.testing.assert_close([1], [1, 2])
  with pytest.raises(AssertionError, match="None and 1 differ"): torch.testing.assert_close(None, 1)
  with pytest.raises(AssertionError, match="mine: "): torch.testing.assert_close(1, 2, msg=lambda text: f"mine: {text}")
