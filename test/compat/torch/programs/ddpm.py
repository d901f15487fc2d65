"""Denoising diffusion: a small U-Net with time embeddings, group norms, an exponential average of weights, sampling."""
import copy
import math
import random

import torch
from torch import nn
import torch.nn.functional as F

class SinusoidalPositionEmbeddings(nn.Module):
  def __init__(self, dim):
    super().__init__()
    self.dim = dim

  def forward(self, time):
    half_dim = self.dim // 2
    embeddings = math.log(10000) / (half_dim - 1)
    embeddings = torch.exp(torch.arange(half_dim, device=time.device) * -embeddings)
    embeddings = time[:, None] * embeddings[None, :]
    return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)

class Block(nn.Module):
  def __init__(self, dim_in, dim_out, time_dim):
    super().__init__()
    self.time = nn.Sequential(nn.SiLU(), nn.Linear(time_dim, dim_out * 2))
    self.conv = nn.Conv2d(dim_in, dim_out, 3, padding=1)
    self.norm = nn.GroupNorm(4, dim_out)
    self.res = nn.Conv2d(dim_in, dim_out, 1) if dim_in != dim_out else nn.Identity()

  def forward(self, x, t):
    scale, shift = self.time(t)[..., None, None].chunk(2, dim=1)
    return F.silu(self.norm(self.conv(x)) * (scale + 1) + shift) + self.res(x)

class Unet(nn.Module):
  def __init__(self, dim=8):
    super().__init__()
    self.time_mlp = nn.Sequential(SinusoidalPositionEmbeddings(dim), nn.Linear(dim, 16), nn.GELU(), nn.Linear(16, 16))
    self.init_conv = nn.Conv2d(1, dim, 3, padding=1)
    self.down = nn.ModuleList([Block(dim, dim, 16), Block(dim, 2 * dim, 16)])
    self.downsample = nn.Conv2d(dim, dim, 4, 2, 1)
    self.up = nn.ConvTranspose2d(2 * dim, dim, 4, 2, 1)
    self.last = Block(2 * dim, dim, 16)
    self.final_conv = nn.Conv2d(dim, 1, 1)

  def forward(self, x, time):
    t = self.time_mlp(time.float())
    h = self.down[0](self.init_conv(x), t)
    x = self.down[1](self.downsample(h), t)
    x = torch.cat((self.up(x), h), dim=1)
    return self.final_conv(self.last(x, t))

def extract(a, t, x_shape):
  out = a.gather(-1, t)
  return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1)))

def build(): return {"net": Unet()}

def train(models):
  rng = random.Random(3)
  def noise(*shape): return torch.tensor([rng.gauss(0, 1) for _ in range(math.prod(shape))]).reshape(*shape)
  timesteps = 20
  betas = torch.linspace(0.0001, 0.02, timesteps)
  alphas = 1.0 - betas
  alphas_cumprod = torch.cumprod(alphas, axis=0)
  alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
  posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)
  net = models["net"]
  ema = copy.deepcopy(net).eval().requires_grad_(False)
  optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
  images = torch.stack([torch.tensor([[math.sin((i * k + j) / 2) for i in range(8)] for j in range(8)])
                        for k in range(8)])
  for _ in range(4):
    t = torch.tensor([rng.randrange(timesteps) for _ in range(8)]).long()
    eps = noise(8, 1, 8, 8)
    x0 = images.unsqueeze(1)
    x = extract(alphas_cumprod.sqrt(), t, x0.shape) * x0 + extract((1 - alphas_cumprod).sqrt(), t, x0.shape) * eps
    loss = F.smooth_l1_loss(eps, net(x, t))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
      for p, q in zip(ema.parameters(), net.parameters()): p.mul_(0.9).add_(q, alpha=0.1)
    yield loss.item()
  img = noise(2, 1, 8, 8)
  with torch.inference_mode():
    for i in reversed(range(0, timesteps, 7)):
      t = torch.full((2,), i, dtype=torch.long)
      mean = alphas.rsqrt()[i] * (img - betas[i] * ema(img, t) / (1 - alphas_cumprod[i]).sqrt())
      img = mean + posterior_variance[i].sqrt() * noise(2, 1, 8, 8)
  yield img.clamp(-1, 1).mean().item()
