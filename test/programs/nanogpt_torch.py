"""nanogpt.py in PyTorch."""
import random
from collections.abc import Iterator

import samples
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LAYERS, HEADS, WIDTH, LENGTH, BATCH = 4, 4, 128, 64, 12

class Attention(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

  def forward(self, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    q, k, v = (part.reshape(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return self.project(y.transpose(1, 2).reshape(b, t, WIDTH))

class Block(nn.Module):
  def __init__(self) -> None:
    super().__init__()
    self.norm1, self.attention, self.norm2 = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
    self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

  def forward(self, x: Tensor) -> Tensor:
    x = x + self.attention(self.norm1(x))
    return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

class GPT(nn.Module):
  def __init__(self, vocabulary: int) -> None:
    super().__init__()
    self.tokens, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(LENGTH, WIDTH)
    self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
    self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary, bias=False)

  def forward(self, tokens: Tensor) -> Tensor:
    x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
    return self.head(self.norm(self.blocks(x)))

def training(jit: bool = True) -> Iterator[float]:
  text, characters = samples.text()
  model = GPT(len(characters))
  samples.initialize(model.state_dict(), lambda p, values: p.copy_(torch.tensor(values).reshape(p.shape)))
  optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=0.1)

  def step(tokens: Tensor, following: Tensor) -> Tensor:
    loss = F.cross_entropy(model(tokens).flatten(0, 1), following.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss

  rng = random.Random("places")
  while True:
    places = [rng.randrange(len(text) - LENGTH) for _ in range(BATCH)]
    yield step(torch.tensor([text[k:k + LENGTH] for k in places]),
               torch.tensor([text[k + 1:k + LENGTH + 1] for k in places])).item()

if __name__ == "__main__": samples.main(training)
