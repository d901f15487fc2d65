"""ddpm.py in PyTorch."""
import math
import random
from collections.abc import Iterator

import samples
import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, WIDTH, STEPS = 64, 32, 200

class Block(nn.Module):
  """Two convolutions. The time is added between them."""
  def __init__(self, inputs: int, outputs: int) -> None:
    super().__init__()
    self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs)
    self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs)
    self.time = nn.Linear(WIDTH, outputs)

  def forward(self, x: Tensor, time: Tensor) -> Tensor:
    x = F.silu(self.norm1(self.conv1(x))) + self.time(time).unsqueeze(-1).unsqueeze(-1)
    return F.silu(self.norm2(self.conv2(x)))

class UNet(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.down, self.middle, self.up = Block(1, WIDTH), Block(WIDTH, 2 * WIDTH), Block(3 * WIDTH, WIDTH)
    self.time, self.out = nn.Linear(WIDTH, WIDTH), nn.Conv2d(WIDTH, 1, 1)

  def forward(self, x: Tensor, t: Tensor) -> Tensor:
    angles = t.unsqueeze(1) * (torch.arange(WIDTH // 2) * (-math.log(10000) / (WIDTH // 2))).exp()
    time = F.silu(self.time(torch.cat([angles.sin(), angles.cos()], dim=1)))
    high = self.down(x, time)
    low = self.middle(F.avg_pool2d(high, 2), time)
    low = F.interpolate(low, size=(8, 8), mode="nearest")
    return self.out(self.up(torch.cat([high, low], dim=1), time))

def training(jit: bool = True) -> Iterator[float]:
  pixels, labels = samples.digits()
  images = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(len(labels), 1, 8, 8).float() / 8 - 1
  noise = torch.tensor(samples.normal(len(labels) * 64, "noise")).reshape(len(labels), 1, 8, 8)
  kept = (1 - torch.linspace(1e-4, 0.04, STEPS)).cumprod(dim=0)   # the part of an image that is left at each time
  model = UNet()
  samples.initialize(model.state_dict(), lambda p, values: p.copy_(torch.tensor(values).reshape(p.shape)))
  optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

  def step(chosen: Tensor, noises: Tensor, t: Tensor) -> Tensor:
    left, epsilon = kept[t].reshape(-1, 1, 1, 1), noise[noises]
    noisy = images[chosen] * left.sqrt() + epsilon * (1 - left).sqrt()
    loss = F.mse_loss(model(noisy, t.float()), epsilon)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

  rng = random.Random("times")
  for chosen, noises in zip(samples.batches(len(labels), BATCH), samples.batches(len(labels), BATCH, "noises")):
    yield step(torch.tensor(chosen), torch.tensor(noises), torch.tensor([rng.randrange(STEPS) for _ in chosen])).item()

if __name__ == "__main__": samples.main(training)
