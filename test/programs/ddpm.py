"""A diffusion model of handwritten digits: a small U-Net learns to find the noise in them. Source: Ho et al. 2020."""
import math
import random
from collections.abc import Iterator

import samples

from tinyhw import Tensor, TinyJit, nn

BATCH, WIDTH, STEPS = 64, 32, 200

class Block:
  """Two convolutions. The time is added between them."""
  def __init__(self, inputs: int, outputs: int) -> None:
    self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs)
    self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs)
    self.time = nn.Linear(WIDTH, outputs)

  def __call__(self, x: Tensor, time: Tensor) -> Tensor:
    x = self.norm1(self.conv1(x)).silu() + self.time(time).unsqueeze(-1).unsqueeze(-1)
    return self.norm2(self.conv2(x)).silu()

class UNet:
  def __init__(self) -> None:
    self.down, self.middle, self.up = Block(1, WIDTH), Block(WIDTH, 2 * WIDTH), Block(3 * WIDTH, WIDTH)
    self.time, self.out = nn.Linear(WIDTH, WIDTH), nn.Conv2d(WIDTH, 1, 1)

  def __call__(self, x: Tensor, t: Tensor) -> Tensor:
    angles = t.unsqueeze(1) * (Tensor.arange(WIDTH // 2) * (-math.log(10000) / (WIDTH // 2))).exp()
    time = self.time(angles.sin().cat(angles.cos(), dim=1)).silu()
    high = self.down(x, time)
    low = self.middle(high.avg_pool2d(2), time)
    low = low.interpolate((8, 8), mode="nearest")
    return self.out(self.up(high.cat(low, dim=1), time))

def training(jit: bool = True) -> Iterator[float]:
  pixels, labels = samples.digits()
  images = (Tensor(pixels).reshape(len(labels), 1, 8, 8).float() / 8 - 1).realize()
  noise = Tensor(samples.normal(len(labels) * 64, "noise")).reshape(len(labels), 1, 8, 8).realize()
  kept = (1 - Tensor.linspace(1e-4, 0.04, STEPS)).cumprod().realize()   # the part of an image that is left at each time
  model = UNet()
  samples.initialize(nn.state.get_state_dict(model), lambda p, values: p.assign(Tensor(values).reshape(p.shape)))
  optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)

  @Tensor.train()
  def step(chosen: Tensor, noises: Tensor, t: Tensor) -> Tensor:
    left, epsilon = kept[t].reshape(-1, 1, 1, 1), noise[noises]
    noisy = images[chosen] * left.sqrt() + epsilon * (1 - left).sqrt()
    loss = (model(noisy, t.float()) - epsilon).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.realize()

  if jit: step = TinyJit(step)
  rng = random.Random("times")
  for chosen, noises in zip(samples.batches(len(labels), BATCH), samples.batches(len(labels), BATCH, "noises")):
    yield step(Tensor(chosen), Tensor(noises), Tensor([rng.randrange(STEPS) for _ in chosen])).item()

if __name__ == "__main__": samples.main(training)
