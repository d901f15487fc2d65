"""lstm.py in PyTorch."""
from collections.abc import Iterator

import samples
import torch
import torch.nn.functional as F
from torch import Tensor, nn

COUNT, LENGTH, BATCH, WIDTH, HIDDEN = 640, 24, 64, 32, 96

class Classifier(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.letters, self.cell, self.head = nn.Embedding(26, WIDTH), nn.LSTM(WIDTH, HIDDEN,
                                                                          batch_first=True), nn.Linear(HIDDEN, 4)

  def forward(self, words: Tensor) -> Tensor:
    outputs, _ = self.cell(self.letters(words))
    return self.head(outputs[:, -1])

def training(jit: bool = True) -> Iterator[float]:
  letters, languages = samples.words(COUNT, LENGTH)
  words, labels = torch.tensor(list(letters)).reshape(COUNT, LENGTH), torch.tensor(list(languages))
  model = Classifier()
  samples.initialize(model.state_dict(), lambda p, values: p.copy_(torch.tensor(values).reshape(p.shape)))
  optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

  def step(chosen: Tensor) -> Tensor:
    loss = F.cross_entropy(model(words[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

  for chosen in samples.batches(COUNT, BATCH): yield step(torch.tensor(chosen)).item()

if __name__ == "__main__": samples.main(training)
