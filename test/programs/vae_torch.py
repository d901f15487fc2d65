"""vae.py in PyTorch."""
from collections.abc import Iterator

import samples
import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, HIDDEN, LATENT = 64, 256, 8

class VAE(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.encoder, self.to_mean, self.to_logvar = nn.Linear(64, HIDDEN), nn.Linear(HIDDEN,
                                                                                  LATENT), nn.Linear(HIDDEN, LATENT)
    self.decoder1, self.decoder2 = nn.Linear(LATENT, HIDDEN), nn.Linear(HIDDEN, 64)

  def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    h = F.relu(self.encoder(x))
    mean, logvar = self.to_mean(h), self.to_logvar(h)
    z = mean + (logvar * 0.5).exp() * noise
    return self.decoder2(F.relu(self.decoder1(z))), mean, logvar

def training(jit: bool = True) -> Iterator[float]:
  pixels, labels = samples.digits()
  images = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(len(labels), 64).float() / 16
  noise = torch.tensor(samples.normal(len(labels) * LATENT, "noise")).reshape(len(labels), LATENT)
  model = VAE()
  samples.initialize(model.state_dict(), lambda p, values: p.copy_(torch.tensor(values).reshape(p.shape)))
  optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

  def step(chosen: Tensor) -> Tensor:
    x = images[chosen]
    logits, mean, logvar = model(x, noise[chosen])
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / BATCH
    divergence = -0.5 * (1 + logvar - mean.square() - logvar.exp()).sum() / BATCH
    loss = reconstruction + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

  for chosen in samples.batches(len(labels), BATCH): yield step(torch.tensor(chosen)).item()

if __name__ == "__main__": samples.main(training)
