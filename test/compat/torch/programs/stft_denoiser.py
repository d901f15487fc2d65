"""A denoiser that masks a spectrogram: stft, a recurrent mask, istft, losses in time and frequency, one-cycle."""
import math
import random

import torch
import torch.nn as nn

class Denoiser(nn.Module):
  def __init__(self, n_fft=32, hop=8, hidden=12):
    super().__init__()
    self.n_fft, self.hop = n_fft, hop
    self.register_buffer("window", torch.hann_window(n_fft), persistent=False)
    self.norm = nn.InstanceNorm1d(n_fft // 2 + 1, affine=True)
    self.gru = nn.GRU(n_fft // 2 + 1, hidden, batch_first=True)
    self.mask = nn.Sequential(nn.Linear(hidden, n_fft // 2 + 1), nn.PReLU(), nn.Linear(n_fft // 2 + 1, n_fft // 2 + 1),
                              nn.Sigmoid())

  def forward(self, wave):
    spectrum = torch.stft(wave, self.n_fft, hop_length=self.hop, window=self.window, center=True, return_complex=True)
    magnitude = torch.log1p(spectrum.abs())
    hidden, _ = self.gru(self.norm(magnitude).transpose(1, 2))
    mask = self.mask(hidden).transpose(1, 2)
    clean = torch.istft(spectrum * mask, self.n_fft, hop_length=self.hop, window=self.window, length=wave.shape[-1])
    return clean, mask

def build(): return {"net": Denoiser()}

def train(models):
  rng = random.Random(6)
  net = models["net"]
  clean = torch.tensor([[math.sin(n / (3 + k)) for n in range(256)] for k in range(3)])
  noisy = clean + torch.tensor([[rng.gauss(0, 0.3) for _ in range(256)] for _ in range(3)])
  optimizer = torch.optim.NAdam(net.parameters(), lr=1e-2)
  scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-2, total_steps=5)
  l1, mse = nn.L1Loss(), nn.MSELoss()
  for _ in range(4):
    out, mask = net(noisy)
    spectra = [torch.view_as_real(torch.stft(x, 64, 16, window=torch.hann_window(64), return_complex=True))
               for x in (out, clean)]
    loss = l1(out, clean) + 0.1 * mse(*spectra) + 1e-3 * mask.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    yield loss.item()
  with torch.no_grad():
    snr = 10 * torch.log10(clean.pow(2).sum() / (clean - net(noisy)[0]).pow(2).sum())
  yield snr.item()
