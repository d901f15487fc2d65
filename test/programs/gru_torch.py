"""gru.py in PyTorch."""
from collections.abc import Iterator

import samples
import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, HIDDEN = 64, 96

class Classifier(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.cell, self.head = nn.GRU(8, HIDDEN, batch_first=True), nn.Linear(HIDDEN, 10)

  def forward(self, x: Tensor) -> Tensor:
    outputs, _ = self.cell(x)
    return self.head(outputs[:, -1])

def training(jit: bool = True) -> Iterator[float]:
  pixels, kinds = samples.digits()
  images = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(len(kinds), 8, 8).float() / 16
  labels = torch.tensor(list(kinds))
  model = Classifier()
  samples.initialize(model.state_dict(), lambda p, values: p.copy_(torch.tensor(values).reshape(p.shape)))
  optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

  def step(chosen: Tensor) -> Tensor:
    loss = F.cross_entropy(model(images[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

  for chosen in samples.batches(len(kinds), BATCH): yield step(torch.tensor(chosen)).item()

if __name__ == "__main__": samples.main(training)
