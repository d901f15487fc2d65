"""compat/torch/saving.py: states, modules and PyTorch's files."""
from __future__ import annotations
import io
from pathlib import Path

import pytest

import tinyhw.compat.torch as torch
from tinyhw.errors import ArgumentError, FileFormatError

def test_states(tmp_path: Path) -> None:
  net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
  optimizer = torch.optim.Adam(net.parameters())
  net(torch.randn(4, 3)).sum().backward()
  optimizer.step()
  file = io.BytesIO()
  torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "device": torch.device("cpu")}, file)
  file.seek(0)
  found = torch.load(file, map_location=torch.device("cpu"))
  assert found["device"] == "cpu" and type(found["net"]["0.weight"]) is torch.Tensor
  other = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
  other.load_state_dict(found["net"])
  torch.optim.Adam(other.parameters()).load_state_dict(found["optimizer"])
  assert other[0].weight.tolist() == net[0].weight.tolist()

def test_modules_as_a_whole(tmp_path: Path) -> None:
  net = torch.nn.Linear(3, 2)
  net.bias.requires_grad_(False)
  torch.save(net, tmp_path / "a.pt")
  found = torch.load(tmp_path / "a.pt", weights_only=False)
  assert type(found) is torch.nn.Linear and type(found.weight) is torch.nn.Parameter
  assert found.weight.tolist() == net.weight.tolist() and found.weight.requires_grad and not found.bias.requires_grad
  with pytest.raises(FileFormatError): torch.load(tmp_path / "a.pt")

def test_files_of_pytorch(tmp_path: Path) -> None:
  real = pytest.importorskip("torch")
  value = {"w": real.arange(6.0).reshape(2, 3).t(), "e": real.zeros(0, 2), "p": real.nn.Parameter(real.ones(2)),
           "s": real.Size([1, 2]), "d": real.float16}
  real.save(value, tmp_path / "a.pt")
  for weights_only in (True, False):
    found = torch.load(str(tmp_path / "a.pt"), weights_only=weights_only)
    assert found["w"].tolist() == value["w"].tolist() and found["e"].shape == (0, 2) and found["s"] == (1, 2)
    assert found["p"].tolist() == [1.0, 1.0] and found["d"] is torch.float16
  torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "b.pt")
  real.nn.Linear(2, 2).load_state_dict(real.load(tmp_path / "b.pt"))

def test_refusals() -> None:
  with pytest.raises(ArgumentError, match="a path or a binary file"): torch.load(3)
  with pytest.raises(FileFormatError, match="zip format only"): torch.load(io.BytesIO(b"no"), weights_only=False)
