"""vit.py in PyTorch."""
from collections.abc import Iterator

import samples
import torch
import torch.nn.functional as F
from torch import Tensor, nn

COUNT, BATCH, PATCH, WIDTH, HEADS, LAYERS = 320, 32, 4, 64, 4, 3
PATCHES = (32 // PATCH) ** 2

class Attention(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

  def forward(self, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    qkv = self.qkv(x).reshape(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
    return self.project(y.transpose(1, 2).reshape(b, t, WIDTH))

class Block(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.norm1, self.attention, self.norm2 = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
    self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

  def forward(self, x: Tensor) -> Tensor:
    x = x + self.attention(self.norm1(x))
    return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

class ViT(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
    self.kind, self.positions = nn.Parameter(torch.zeros(1, 1, WIDTH)), nn.Parameter(torch.zeros(1, PATCHES + 1, WIDTH))
    self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
    self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

  def forward(self, x: Tensor) -> Tensor:
    x = self.patches(x).flatten(2).transpose(1, 2)
    x = torch.cat([self.kind.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
    return self.head(self.norm(self.blocks(x)[:, 0]))

def training(jit: bool = True) -> Iterator[float]:
  pixels, kinds = samples.photographs(COUNT)
  images = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(COUNT, 3, 32, 32)
  images, labels = images.float() / 128 - 1, torch.tensor(list(kinds))
  model = ViT()
  samples.initialize(model.state_dict(), lambda p, values: p.copy_(torch.tensor(values).reshape(p.shape)))
  optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05)

  def step(chosen: Tensor) -> Tensor:
    loss = F.cross_entropy(model(images[chosen]), labels[chosen], label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

  for chosen in samples.batches(COUNT, BATCH): yield step(torch.tensor(chosen)).item()

if __name__ == "__main__": samples.main(training)
