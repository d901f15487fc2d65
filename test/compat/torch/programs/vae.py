"""A variational autoencoder: given noise, a KL term by torch.distributions, Adam, save and load."""
import io
import random

import torch
from torch import nn, optim
from torch.distributions import Independent, Normal, kl_divergence
from torch.nn import functional as F

class VAE(nn.Module):
  def __init__(self):
    super().__init__()
    self.fc1 = nn.Linear(36, 32)
    self.fc21, self.fc22 = nn.Linear(32, 4), nn.Linear(32, 4)
    self.decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 36), nn.Sigmoid())

  def encode(self, x):
    h1 = F.relu(self.fc1(x))
    return self.fc21(h1), self.fc22(h1)

  def forward(self, x, eps):
    mu, logvar = self.encode(x.view(-1, 36))
    std = torch.exp(0.5 * logvar)
    return self.decoder(mu + eps * std), mu, logvar

def loss_function(recon_x, x, mu, logvar):
  bce = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction="sum")
  kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
  q = Independent(Normal(mu, torch.exp(0.5 * logvar)), 1)
  p = Independent(Normal(torch.zeros_like(mu), torch.ones_like(mu)), 1)
  assert abs(kl_divergence(q, p).sum().item() - kld.item()) < 1e-3
  return bce + kld

def build(): return {"net": VAE()}

def train(models):
  rng = random.Random(2)
  data = torch.tensor([[[[float((i * (k % 3 + 1) + j) % 4 < 2)] * 1 for i in range(6)] for j in range(6)]
                       for k in range(12)]).reshape(12, 1, 6, 6)
  net = models["net"]
  optimizer = optim.Adam(net.parameters(), lr=1e-2)
  for step in range(5):
    if step == 3:                       # go on from a checkpoint
      file = io.BytesIO()
      torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, file)
      file.seek(0)
      checkpoint = torch.load(file, map_location="cpu", weights_only=True)
      net = VAE()
      net.load_state_dict(checkpoint["model"])
      optimizer = optim.Adam(net.parameters(), lr=1.0)
      optimizer.load_state_dict(checkpoint["optimizer"])
      assert checkpoint["step"] == 3 and optimizer.param_groups[0]["lr"] == 1e-2
    net.train()
    optimizer.zero_grad()
    noise = torch.tensor([[rng.gauss(0, 1) for _ in range(4)] for _ in range(12)])
    recon, mu, logvar = net(data, noise)
    loss = loss_function(recon, data, mu, logvar)
    loss.backward()
    yield loss.item() / len(data)
    optimizer.step()
