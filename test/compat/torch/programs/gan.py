"""A small DCGAN: two optimizers, detached samples, spectral norm, running losses."""
import math
import random

import torch
import torch.nn as nn
import torch.optim as optim

def weights_init(m):
  classname = m.__class__.__name__
  if classname.find("Conv") != -1: nn.init.normal_(m.weight.data, 0.0, 0.02)
  elif classname.find("BatchNorm") != -1:
    nn.init.normal_(m.weight.data, 1.0, 0.02)
    nn.init.constant_(m.bias.data, 0)

class Generator(nn.Module):
  def __init__(self):
    super().__init__()
    self.main = nn.Sequential(
      nn.ConvTranspose2d(6, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
      nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
      nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh())

  def forward(self, input): return self.main(input)

class Discriminator(nn.Module):
  def __init__(self):
    super().__init__()
    self.main = nn.Sequential(
      nn.Conv2d(1, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
      nn.Conv2d(8, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.2, inplace=True),
      nn.utils.parametrizations.weight_norm(nn.Conv2d(16, 1, 4, 1, 0, bias=False)))

  def forward(self, input): return self.main(input).view(-1)

def build():
  netG, netD = Generator(), Discriminator()
  netG.apply(weights_init)
  return {"netG": netG, "netD": netD}

def train(models):
  rng = random.Random(4)
  netG, netD = models["netG"], models["netD"]
  criterion = nn.BCEWithLogitsLoss()
  optimizerD = optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
  optimizerG = optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
  real = torch.tensor([[[[math.sin(i * j * (k + 1) / 16) for i in range(16)] for j in range(16)]] for k in range(4)])
  for _ in range(3):
    netD.zero_grad()
    label = torch.full((4,), 1.0, dtype=torch.float)
    errD_real = criterion(netD(real), label)
    errD_real.backward()
    noise = torch.tensor([rng.gauss(0, 1) for _ in range(24)]).view(4, 6, 1, 1)
    fake = netG(noise)
    label.fill_(0.0)
    errD_fake = criterion(netD(fake.detach()), label)
    errD_fake.backward()
    errD = errD_real + errD_fake
    optimizerD.step()
    netG.zero_grad()
    label.fill_(1.0)
    errG = criterion(netD(fake), label)
    errG.backward()
    optimizerG.step()
    yield errD.item()
    yield errG.item()
