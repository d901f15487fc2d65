"""Models that torch.onnx exports, where it is installed, compute the same as in torch."""
import io
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.nn.onnx import OnnxRunner

def exported(model: Any, x: Any, **options: Any) -> OnnxRunner:
  torch = pytest.importorskip("torch")
  pytest.importorskip("onnxscript")
  file = io.BytesIO()
  torch.onnx.export(model.eval(), (x,), file, dynamo=False, input_names=["x"], output_names=["y"], **options)
  return OnnxRunner(file.getvalue())

def networks() -> dict[str, Any]:
  torch = pytest.importorskip("torch")
  nn = torch.nn
  class Recurrent(nn.Module):  # type: ignore[misc, name-defined]  # torch is an oracle that may be absent
    def __init__(self) -> None:
      super().__init__()
      self.lstm, self.out = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(10, 3)
    def forward(self, x: Any) -> Any: return self.out(self.lstm(x)[0])
  class Block(nn.Module):  # type: ignore[misc, name-defined]  # as above
    def __init__(self) -> None:
      super().__init__()
      self.norm, self.qkv, self.mlp = nn.LayerNorm(8), nn.Linear(8, 24), nn.Sequential(nn.Linear(8, 16), nn.GELU(),
                                                                                       nn.Linear(16, 8))
    def forward(self, x: Any) -> Any:
      q, k, v = (p.reshape(*p.shape[:2], 2, 4).transpose(1, 2) for p in self.qkv(self.norm(x)).chunk(3, -1))
      scores = (q @ k.transpose(2, 3) / 2).masked_fill(torch.ones(5, 5).triu(1).bool(), float("-inf"))
      x = x + (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
      return x + self.mlp(x)
  torch.manual_seed(0)
  return {
    "convolutions": (nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(),
                                   nn.MaxPool2d(2, ceil_mode=True),
                                   nn.ConvTranspose2d(8, 4, 2, 2), nn.Upsample(scale_factor=2, mode="bilinear"),
                                   nn.AdaptiveAvgPool2d(1),
                                   nn.Flatten(), nn.Linear(4, 5), nn.Softmax(1)), (2, 3, 17, 17)),
    "transformer": (Block(), (2, 5, 8)),
    "recurrent": (Recurrent(), (2, 4, 6)),
  }

@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["convolutions", "transformer", "recurrent"])
def test_exports_of_torch(name: str) -> None:
  torch = pytest.importorskip("torch")
  model, shape = networks()[name]
  x = torch.randn(*shape)
  runner = exported(model, x)
  for _ in range(2):
    x = torch.randn(*shape)
    np.testing.assert_allclose(runner({"x": Tensor(x.numpy())})["y"].numpy(), model(x).detach().numpy(), rtol=2e-3,
                               atol=1e-4)
