"""Tests here run on the reference interpreter, unless TEST_ENGINE=1."""
from collections.abc import Iterator

import pytest

from test.helpers import reference
from tinyhw.tensor import Tensor

@pytest.fixture(autouse=True)
def _on_reference() -> Iterator[None]:
  with reference():
    Tensor.manual_seed(1337)
    yield
