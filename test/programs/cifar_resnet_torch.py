"""cifar_resnet.py in PyTorch."""
import random
from collections.abc import Iterator

import samples
import torch
import torch.nn.functional as F
from torch import Tensor, nn

COUNT, BATCH, PAD = 320, 32, 4

class Block(nn.Module):
  def __init__(self, inputs: int, outputs: int, stride: int) -> None:
    super().__init__()
    self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1,
                                       bias=False), nn.BatchNorm2d(outputs)
    self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)
    self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False) if stride > 1 else None

  def forward(self, x: Tensor) -> Tensor:
    y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
    return F.relu(y + (self.shortcut(x) if self.shortcut is not None else x))

class ResNet(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.conv, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
    self.blocks = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
    self.head = nn.Linear(64, 10)

  def forward(self, x: Tensor) -> Tensor:
    return self.head(self.blocks(F.relu(self.norm(self.conv(x)))).mean((2, 3)))

def augment(x: Tensor, down: Tensor, right: Tensor, mirrored: Tensor) -> Tensor:
  """Cut a window of 32x32 out of each image with a border around it, beginning at (down, right), and mirror some."""
  window = torch.arange(32)
  rows = (down.unsqueeze(1) + window).reshape(-1, 1, 32, 1)
  columns = right.unsqueeze(1) + torch.where(mirrored.unsqueeze(1), 31 - window, window)
  numbers, channels = torch.arange(x.shape[0]).reshape(-1, 1, 1, 1), torch.arange(3).reshape(1, 3, 1, 1)
  return F.pad(x, (PAD, PAD, PAD, PAD))[numbers, channels, rows, columns.reshape(-1, 1, 1, 32)]

def training(jit: bool = True) -> Iterator[float]:
  pixels, kinds = samples.photographs(COUNT)
  images = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(COUNT, 3, 32, 32)
  images, labels = images.float() / 128 - 1, torch.tensor(list(kinds))
  model = ResNet()
  samples.initialize(model.state_dict(), lambda p, values: p.copy_(torch.tensor(values).reshape(p.shape)))
  optimizer = torch.optim.SGD(model.parameters(), lr=0.003, momentum=0.9, weight_decay=5e-3)

  def step(chosen: Tensor, down: Tensor, right: Tensor, mirrored: Tensor) -> Tensor:
    x, y = augment(images[chosen], down, right, mirrored), labels[chosen]
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

  rng = random.Random("augment")
  for chosen in samples.batches(COUNT, BATCH):
    down, right, mirrored = ([rng.randrange(n) for _ in chosen] for n in (2 * PAD + 1, 2 * PAD + 1, 2))
    yield step(torch.tensor(chosen), torch.tensor(down), torch.tensor(right), torch.tensor(mirrored).bool()).item()

if __name__ == "__main__": samples.main(training)
