"""Two competing networks: one makes handwritten digits, one distinguishes them from real ones.

Source: Radford et al. 2015 (DCGAN).
"""
from collections.abc import Iterator

import samples

from tinyhw import Tensor, TinyJit, nn

BATCH, LATENT, WIDTH = 64, 16, 32

class Generator:
  def __init__(self) -> None:
    self.up1, self.norm1 = nn.ConvTranspose2d(LATENT, 2 * WIDTH, 2, bias=False), nn.BatchNorm(2 * WIDTH)
    self.up2, self.norm2 = nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, stride=2, padding=1, bias=False), nn.BatchNorm(WIDTH)
    self.up3 = nn.ConvTranspose2d(WIDTH, 1, 4, stride=2, padding=1, bias=False)

  def __call__(self, z: Tensor) -> Tensor:
    x = self.norm1(self.up1(z.reshape(-1, LATENT, 1, 1))).relu()
    return self.up3(self.norm2(self.up2(x)).relu()).tanh()

class Discriminator:
  def __init__(self) -> None:
    self.conv1, self.conv2 = nn.Conv2d(1, WIDTH, 4, stride=2, padding=1), nn.Conv2d(WIDTH, 2 * WIDTH, 4, stride=2,
                                                                                    padding=1)
    self.head = nn.Linear(2 * WIDTH * 4, 1)

  def __call__(self, x: Tensor) -> Tensor:
    return self.head(self.conv2(self.conv1(x).leaky_relu(0.2)).leaky_relu(0.2).flatten(1))

def training(jit: bool = True) -> Iterator[float]:
  pixels, labels = samples.digits()
  images = (Tensor(pixels).reshape(len(labels), 1, 8, 8).float() / 8 - 1).realize()
  noise = Tensor(samples.normal(len(labels) * LATENT, "noise")).reshape(len(labels), LATENT).realize()
  generator, discriminator = Generator(), Discriminator()
  for net in (generator, discriminator):
    samples.initialize(nn.state.get_state_dict(net), lambda p, values: p.assign(Tensor(values).reshape(p.shape)))
  makes = nn.optim.Adam(nn.state.get_parameters(generator), lr=2e-4, b1=0.5)
  judges = nn.optim.Adam(nn.state.get_parameters(discriminator), lr=2e-4, b1=0.5)
  real, made = Tensor.ones(BATCH, 1), Tensor.zeros(BATCH, 1)

  @Tensor.train()
  def step(chosen: Tensor, noises: Tensor) -> tuple[Tensor, Tensor]:
    fakes = generator(noise[noises])
    judged = (discriminator(images[chosen]).binary_crossentropy_logits(real)
              + discriminator(fakes.detach()).binary_crossentropy_logits(made))
    judges.zero_grad()
    judged.backward()
    judges.step()

    fooled = discriminator(fakes).binary_crossentropy_logits(real)
    makes.zero_grad()
    fooled.backward()
    makes.step()
    return judged.realize(), fooled.realize()

  if jit: step = TinyJit(step)
  for chosen, noises in zip(samples.batches(len(labels), BATCH), samples.batches(len(labels), BATCH, "noises")):
    judged, fooled = step(Tensor(chosen), Tensor(noises))
    yield judged.item() + fooled.item()

if __name__ == "__main__": samples.main(training)
