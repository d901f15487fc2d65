"""A variational autoencoder of handwritten digits. Source: Kingma and Welling 2013."""
from collections.abc import Iterator

import samples

from tinyhw import Tensor, TinyJit, nn

BATCH, HIDDEN, LATENT = 64, 256, 8

class VAE:
  def __init__(self) -> None:
    self.encoder, self.to_mean, self.to_logvar = nn.Linear(64, HIDDEN), nn.Linear(HIDDEN,
                                                                                  LATENT), nn.Linear(HIDDEN, LATENT)
    self.decoder1, self.decoder2 = nn.Linear(LATENT, HIDDEN), nn.Linear(HIDDEN, 64)

  def __call__(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    h = self.encoder(x).relu()
    mean, logvar = self.to_mean(h), self.to_logvar(h)
    z = mean + (logvar * 0.5).exp() * noise
    return self.decoder2(self.decoder1(z).relu()), mean, logvar

def training(jit: bool = True) -> Iterator[float]:
  pixels, labels = samples.digits()
  images = (Tensor(pixels).reshape(len(labels), 64).float() / 16).realize()
  noise = Tensor(samples.normal(len(labels) * LATENT, "noise")).reshape(len(labels), LATENT).realize()
  model = VAE()
  samples.initialize(nn.state.get_state_dict(model), lambda p, values: p.assign(Tensor(values).reshape(p.shape)))
  optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=1e-3)

  @Tensor.train()
  def step(chosen: Tensor) -> Tensor:
    x = images[chosen]
    logits, mean, logvar = model(x, noise[chosen])
    reconstruction = logits.binary_crossentropy_logits(x, reduction="sum") / BATCH
    divergence = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum() / BATCH
    loss = reconstruction + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.realize()

  if jit: step = TinyJit(step)
  for chosen in samples.batches(len(labels), BATCH): yield step(Tensor(chosen)).item()

if __name__ == "__main__": samples.main(training)
