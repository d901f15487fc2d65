"""A vision transformer of 32x32 photographs, cut into 64 patches. Source: Dosovitskiy et al. 2020."""
from collections.abc import Iterator

import samples

from tinyhw import Tensor, TinyJit, nn

COUNT, BATCH, PATCH, WIDTH, HEADS, LAYERS = 320, 32, 4, 64, 4, 3
PATCHES = (32 // PATCH) ** 2

class Attention:
  def __init__(self) -> None: self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

  def __call__(self, x: Tensor) -> Tensor:
    b, t, _ = x.shape
    qkv = self.qkv(x).reshape(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    y = qkv[0].scaled_dot_product_attention(qkv[1], qkv[2])
    return self.project(y.transpose(1, 2).reshape(b, t, WIDTH))

class Block:
  def __init__(self) -> None:
    self.norm1, self.attention, self.norm2 = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH)
    self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

  def __call__(self, x: Tensor) -> Tensor:
    x = x + self.attention(self.norm1(x))
    return x + self.down(self.up(self.norm2(x)).gelu())

class ViT:
  def __init__(self) -> None:
    self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
    self.kind, self.positions = Tensor.zeros(1, 1, WIDTH), Tensor.zeros(1, PATCHES + 1, WIDTH)
    self.blocks = [Block() for _ in range(LAYERS)]
    self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

  def __call__(self, x: Tensor) -> Tensor:
    x = self.patches(x).flatten(2).transpose(1, 2)
    x = self.kind.expand(x.shape[0], -1, -1).cat(x, dim=1) + self.positions
    return self.head(self.norm(x.sequential(self.blocks)[:, 0]))

def training(jit: bool = True) -> Iterator[float]:
  pixels, kinds = samples.photographs(COUNT)
  images, labels = Tensor(pixels).reshape(COUNT, 3, 32, 32), Tensor(kinds).realize()
  images = (images.float() / 128 - 1).realize()
  model = ViT()
  samples.initialize(nn.state.get_state_dict(model), lambda p, values: p.assign(Tensor(values).reshape(p.shape)))
  optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=3e-4, weight_decay=0.05)

  @Tensor.train()
  def step(chosen: Tensor) -> Tensor:
    loss = model(images[chosen]).sparse_categorical_crossentropy(labels[chosen], label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.realize()

  if jit: step = TinyJit(step)
  for chosen in samples.batches(COUNT, BATCH): yield step(Tensor(chosen)).item()

if __name__ == "__main__": samples.main(training)
