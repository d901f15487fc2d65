"""A GPT that learns a text character by character. It has the size that nanoGPT proposes for a CPU.

Source: Karpathy's nanoGPT, Radford et al. 2019.
"""
import random
from collections.abc import Iterator

import samples

from tinyhw import Tensor, TinyJit, nn

LAYERS, HEADS, WIDTH, LENGTH, BATCH = 4, 4, 128, 64, 12

class Attention:
  def __init__(self) -> None: self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

  def __call__(self, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    q, k, v = (part.reshape(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
    y = q.scaled_dot_product_attention(k, v, is_causal=True)
    return self.project(y.transpose(1, 2).reshape(b, t, WIDTH))

class Block:
  def __init__(self) -> None:
    self.norm1, self.attention, self.norm2 = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
    self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

  def __call__(self, x: Tensor) -> Tensor:
    x = x + self.attention(self.norm1(x))
    return x + self.down(self.up(self.norm2(x)).gelu())

class GPT:
  def __init__(self, vocabulary: int) -> None:
    self.tokens, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(LENGTH, WIDTH)
    self.blocks = [Block() for _ in range(LAYERS)]
    self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary, bias=False)

  def __call__(self, tokens: Tensor) -> Tensor:
    x = self.tokens(tokens) + self.positions(Tensor.arange(tokens.shape[1]))
    return self.head(self.norm(x.sequential(self.blocks)))

def training(jit: bool = True) -> Iterator[float]:
  text, characters = samples.text()
  model = GPT(len(characters))
  samples.initialize(nn.state.get_state_dict(model), lambda p, values: p.assign(Tensor(values).reshape(p.shape)))
  optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=3e-4, b1=0.9, b2=0.99, weight_decay=0.1)

  @Tensor.train()
  def step(tokens: Tensor, following: Tensor) -> Tensor:
    loss = model(tokens).sparse_categorical_crossentropy(following)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.realize()

  if jit: step = TinyJit(step)
  rng = random.Random("places")
  while True:
    places = [rng.randrange(len(text) - LENGTH) for _ in range(BATCH)]
    yield step(Tensor([text[k:k + LENGTH] for k in places]),
               Tensor([text[k + 1:k + LENGTH + 1] for k in places])).item()

if __name__ == "__main__": samples.main(training)
