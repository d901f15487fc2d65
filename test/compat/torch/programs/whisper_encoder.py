"""An encoder of sound in the manner of Whisper: a log-mel spectrogram, two convolutions, attention blocks, CTC."""
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

class MultiHeadAttention(nn.Module):
  def __init__(self, n_state: int, n_head: int):
    super().__init__()
    self.n_head = n_head
    self.query = nn.Linear(n_state, n_state)
    self.key = nn.Linear(n_state, n_state, bias=False)
    self.value = nn.Linear(n_state, n_state)
    self.out = nn.Linear(n_state, n_state)

  def forward(self, x: Tensor):
    q, k, v = self.query(x), self.key(x), self.value(x)
    n_batch, n_ctx, n_state = q.shape
    scale = (n_state // self.n_head) ** -0.25
    q = q.view(*q.shape[:2], self.n_head, -1).permute(0, 2, 1, 3) * scale
    k = k.view(*k.shape[:2], self.n_head, -1).permute(0, 2, 3, 1) * scale
    v = v.view(*v.shape[:2], self.n_head, -1).permute(0, 2, 1, 3)
    w = F.softmax((q @ k).float(), dim=-1).to(q.dtype)
    return self.out((w @ v).permute(0, 2, 1, 3).flatten(start_dim=2))

class ResidualAttentionBlock(nn.Module):
  def __init__(self, n_state: int, n_head: int):
    super().__init__()
    self.attn, self.attn_ln = MultiHeadAttention(n_state, n_head), nn.LayerNorm(n_state)
    self.mlp = nn.Sequential(nn.Linear(n_state, n_state * 4), nn.GELU(), nn.Linear(n_state * 4, n_state))
    self.mlp_ln = nn.LayerNorm(n_state)

  def forward(self, x: Tensor):
    x = x + self.attn(self.attn_ln(x))
    return x + self.mlp(self.mlp_ln(x))

def sinusoids(length, channels, max_timescale=10000):
  assert channels % 2 == 0
  log_timescale_increment = math.log(max_timescale) / (channels // 2 - 1)
  inv_timescales = torch.exp(-log_timescale_increment * torch.arange(channels // 2))
  scaled_time = torch.arange(length)[:, None] * inv_timescales[None, :]
  return torch.cat([torch.sin(scaled_time), torch.cos(scaled_time)], dim=1)

class AudioEncoder(nn.Module):
  def __init__(self, n_mels=10, n_ctx=16, n_state=16, n_head=2, n_layer=2):
    super().__init__()
    self.conv1 = nn.Conv1d(n_mels, n_state, kernel_size=3, padding=1)
    self.conv2 = nn.Conv1d(n_state, n_state, kernel_size=3, stride=2, padding=1)
    self.register_buffer("positional_embedding", sinusoids(n_ctx, n_state))
    self.blocks = nn.ModuleList([ResidualAttentionBlock(n_state, n_head) for _ in range(n_layer)])
    self.ln_post, self.head = nn.LayerNorm(n_state), nn.Linear(n_state, 6)

  def forward(self, x: Tensor):
    x = F.gelu(self.conv2(F.gelu(self.conv1(x)))).permute(0, 2, 1)
    assert x.shape[1:] == self.positional_embedding.shape, "incorrect audio shape"
    x = (x + self.positional_embedding).to(x.dtype)
    for block in self.blocks: x = block(x)
    return self.head(self.ln_post(x))

def log_mel_spectrogram(audio, filters):
  window = torch.hann_window(64)
  stft = torch.stft(audio, 64, 16, window=window, return_complex=True)
  magnitudes = stft[..., :-1].abs() ** 2
  log_spec = torch.clamp(filters @ magnitudes, min=1e-10).log10()
  log_spec = torch.maximum(log_spec, log_spec.max() - 8.0)
  return (log_spec + 4.0) / 4.0

def build(): return {"net": AudioEncoder()}

def train(models):
  net = models["net"]
  audio = torch.tensor([[math.sin(n * (k + 1) / 5) * math.exp(-n / 400) for n in range(512)] for k in range(2)])
  filters = torch.tensor([[max(0.0, 1 - abs(f / 3 - m) / 2) for f in range(33)] for m in range(10)])
  mel = log_mel_spectrogram(audio, filters)
  assert mel.shape == (2, 10, 32)
  yield mel.mean().item()
  targets, lengths = torch.tensor([[1, 2, 3], [4, 5, 1]]), torch.tensor([3, 2])
  optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, betas=(0.9, 0.98), eps=1e-6)
  scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 3, 1.0))
  ctc = nn.CTCLoss(blank=0, zero_infinity=True)
  for _ in range(4):
    log_probs = net(mel).log_softmax(2).transpose(0, 1)
    loss = ctc(log_probs, targets, torch.full((2,), log_probs.size(0), dtype=torch.long), lengths)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    yield loss.item()
