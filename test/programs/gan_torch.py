"""gan.py in PyTorch."""
from collections.abc import Iterator

import samples
import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, LATENT, WIDTH = 64, 16, 32

class Generator(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.up1, self.norm1 = nn.ConvTranspose2d(LATENT, 2 * WIDTH, 2, bias=False), nn.BatchNorm2d(2 * WIDTH)
    self.up2, self.norm2 = nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, stride=2, padding=1,
                                              bias=False), nn.BatchNorm2d(WIDTH)
    self.up3 = nn.ConvTranspose2d(WIDTH, 1, 4, stride=2, padding=1, bias=False)

  def forward(self, z: Tensor) -> Tensor:
    x = F.relu(self.norm1(self.up1(z.reshape(-1, LATENT, 1, 1))))
    return self.up3(F.relu(self.norm2(self.up2(x)))).tanh()

class Discriminator(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.conv1, self.conv2 = nn.Conv2d(1, WIDTH, 4, stride=2, padding=1), nn.Conv2d(WIDTH, 2 * WIDTH, 4, stride=2,
                                                                                    padding=1)
    self.head = nn.Linear(2 * WIDTH * 4, 1)

  def forward(self, x: Tensor) -> Tensor:
    return self.head(F.leaky_relu(self.conv2(F.leaky_relu(self.conv1(x), 0.2)), 0.2).flatten(1))

def training(jit: bool = True) -> Iterator[float]:
  pixels, labels = samples.digits()
  images = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(len(labels), 1, 8, 8).float() / 8 - 1
  noise = torch.tensor(samples.normal(len(labels) * LATENT, "noise")).reshape(len(labels), LATENT)
  generator, discriminator = Generator(), Discriminator()
  for net in (generator, discriminator):
    samples.initialize(net.state_dict(), lambda p, values: p.copy_(torch.tensor(values).reshape(p.shape)))
  makes = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
  judges = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
  real, made = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

  def step(chosen: Tensor, noises: Tensor) -> tuple[Tensor, Tensor]:
    fakes = generator(noise[noises])
    judged = (F.binary_cross_entropy_with_logits(discriminator(images[chosen]), real)
              + F.binary_cross_entropy_with_logits(discriminator(fakes.detach()), made))
    judges.zero_grad()
    judged.backward()
    judges.step()

    fooled = F.binary_cross_entropy_with_logits(discriminator(fakes), real)
    makes.zero_grad()
    fooled.backward()
    makes.step()
    return judged, fooled

  for chosen, noises in zip(samples.batches(len(labels), BATCH), samples.batches(len(labels), BATCH, "noises")):
    judged, fooled = step(torch.tensor(chosen), torch.tensor(noises))
    yield judged.item() + fooled.item()

if __name__ == "__main__": samples.main(training)
