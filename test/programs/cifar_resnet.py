"""A small ResNet for 32x32 photographs, which are shifted and mirrored at random in each step.

Source: He et al. 2015, section 4.2.
"""
import random
from collections.abc import Iterator

import samples

from tinyhw import Tensor, TinyJit, nn

COUNT, BATCH, PAD = 320, 32, 4

class Block:
  def __init__(self, inputs: int, outputs: int, stride: int) -> None:
    self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), nn.BatchNorm(outputs)
    self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm(outputs)
    self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False) if stride > 1 else None

  def __call__(self, x: Tensor) -> Tensor:
    y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
    return (y + (self.shortcut(x) if self.shortcut is not None else x)).relu()

class ResNet:
  def __init__(self) -> None:
    self.conv, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm(16)
    self.blocks = [Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)]
    self.head = nn.Linear(64, 10)

  def __call__(self, x: Tensor) -> Tensor:
    return self.head(self.norm(self.conv(x)).relu().sequential(self.blocks).mean((2, 3)))

def augment(x: Tensor, down: Tensor, right: Tensor, mirrored: Tensor) -> Tensor:
  """Cut a window of 32x32 out of each image with a border around it, beginning at (down, right), and mirror some."""
  window = Tensor.arange(32)
  rows = (down.unsqueeze(1) + window).reshape(-1, 1, 32, 1)
  columns = right.unsqueeze(1) + mirrored.unsqueeze(1).where(31 - window, window)
  numbers, channels = Tensor.arange(x.shape[0]).reshape(-1, 1, 1, 1), Tensor.arange(3).reshape(1, 3, 1, 1)
  return x.pad((PAD, PAD, PAD, PAD))[numbers, channels, rows, columns.reshape(-1, 1, 1, 32)]

def training(jit: bool = True) -> Iterator[float]:
  pixels, kinds = samples.photographs(COUNT)
  images, labels = Tensor(pixels).reshape(COUNT, 3, 32, 32), Tensor(kinds).realize()
  images = (images.float() / 128 - 1).realize()
  model = ResNet()
  samples.initialize(nn.state.get_state_dict(model), lambda p, values: p.assign(Tensor(values).reshape(p.shape)))
  optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.003, momentum=0.9, weight_decay=5e-3)

  @Tensor.train()
  def step(chosen: Tensor, down: Tensor, right: Tensor, mirrored: Tensor) -> Tensor:
    x, y = augment(images[chosen], down, right, mirrored), labels[chosen]
    loss = model(x).sparse_categorical_crossentropy(y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.realize()

  if jit: step = TinyJit(step)
  rng = random.Random("augment")
  for chosen in samples.batches(COUNT, BATCH):
    down, right, mirrored = ([rng.randrange(n) for _ in chosen] for n in (2 * PAD + 1, 2 * PAD + 1, 2))
    yield step(Tensor(chosen), Tensor(down), Tensor(right), Tensor(mirrored).bool().realize()).item()

if __name__ == "__main__": samples.main(training)
