"""nn/torch_save.py: files that PyTorch and torch_load read."""
from __future__ import annotations
from pathlib import Path
from typing import Any

import pytest

from tinyhw import Tensor, dtypes
from tinyhw.errors import DTypeError
from tinyhw.nn.state import torch_load
from tinyhw.nn.torch_save import GlobalName, name_of, torch_save

def values() -> dict[str, Any]:
  return {"w": Tensor([[1.0, 2.0], [3.0, 4.0]]).transpose(), "n": Tensor(3), "none": None,
          "list": [1, 2.5, "x", (True,)],
          "half": Tensor([1.5], dtype=dtypes.bfloat16), "byte": Tensor([1, 2], dtype=dtypes.uint8),
          "wide": Tensor([1, 2], dtype=dtypes.uint16), "empty": Tensor.zeros(0, 2), "type": dtypes.float16,
          "sum": Tensor([1, 2]) + 1}

def test_it_is_read_again(tmp_path: Path) -> None:
  torch_save(values(), str(tmp_path / "a.pt"))
  found = torch_load(str(tmp_path / "a.pt"))
  for key, x in values().items():
    if isinstance(x, Tensor): assert found[key].tolist() == x.tolist() and found[key].dtype is x.dtype, key
    else: assert found[key] == x

def test_pytorch_reads_it(tmp_path: Path) -> None:
  torch = pytest.importorskip("torch")
  torch_save(values(), str(tmp_path / "a.pt"))
  found = torch.load(str(tmp_path / "a.pt"), weights_only=True)
  for key, x in values().items():
    if not isinstance(x, Tensor): continue
    assert found[key].tolist() == x.tolist() and str(found[key].dtype) == f"torch.{name_of(x.dtype)}"
  assert found["type"] is torch.float16 and found["list"] == values()["list"]

def test_tensors_over_one_buffer_share_a_storage(tmp_path: Path) -> None:
  x = Tensor([1.0] * 1000).realize()
  torch_save([x, x.reshape(10, 100), x], str(tmp_path / "a.pt"))
  assert (tmp_path / "a.pt").stat().st_size < 6000

def test_refusals(tmp_path: Path) -> None:
  with pytest.raises(DTypeError, match="view_as_real"): torch_save(Tensor([1j]), str(tmp_path / "a.pt"))
  with pytest.raises(NotImplementedError, match="only written"): GlobalName("torch", "Size")()
