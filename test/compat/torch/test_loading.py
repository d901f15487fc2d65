"""compat/torch/loading.py: batches against those of PyTorch's DataLoader."""
from __future__ import annotations
from typing import Any

import numpy as np
import pytest

import tinyhw.compat.torch as ours

ITEMS = [{"image": np.full((2, 2), i, np.float32), "label": i, "score": i / 2, "name": str(i), "flag": i % 2 == 0,
          "pair": (i, [i, 2.0])} for i in range(7)]

def flat(x: Any) -> Any:
  if hasattr(x, "detach"): return str(x.dtype).split(".")[-1], x.tolist()
  if isinstance(x, dict): return {k: flat(v) for k, v in x.items()}
  return [flat(y) for y in x] if isinstance(x, list) else x

@pytest.mark.parametrize("options", [{"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None},
                                     {"batch_size": 2, "num_workers": 2}, {"batch_sampler": [[0, 2], [5]]}], ids=str)
def test_against_pytorch(options: dict[str, Any]) -> None:
  torch = pytest.importorskip("torch")
  a, b = (t.utils.data.DataLoader(ITEMS, **options) for t in (torch, ours))
  assert [flat(x) for x in b] == [flat(x) for x in a] and len(a) == len(b)
