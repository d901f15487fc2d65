"""A GRU that reads handwritten digits line by line. Source: Cho et al. 2014, with the gates as in PyTorch's nn.GRU."""
from collections.abc import Iterator

import samples

from tinyhw import Tensor, TinyJit, nn

BATCH, HIDDEN = 64, 96

class GRUCell:
  def __init__(self, inputs: int, hidden: int) -> None:
    self.weight_ih, self.weight_hh = Tensor.glorot_uniform(3 * hidden,
                                                           inputs), Tensor.glorot_uniform(3 * hidden, hidden)
    self.bias_ih, self.bias_hh = Tensor.zeros(3 * hidden), Tensor.zeros(3 * hidden)

  def __call__(self, x: Tensor, h: Tensor) -> Tensor:
    reset, update, new = x.linear(self.weight_ih.T, self.bias_ih).chunk(3, dim=1)
    reset_h, update_h, new_h = h.linear(self.weight_hh.T, self.bias_hh).chunk(3, dim=1)
    new = (new + (reset + reset_h).sigmoid() * new_h).tanh()
    z = (update + update_h).sigmoid()
    return (1 - z) * new + z * h

class Classifier:
  def __init__(self) -> None: self.cell, self.head = GRUCell(8, HIDDEN), nn.Linear(HIDDEN, 10)

  def __call__(self, x: Tensor) -> Tensor:
    h = Tensor.zeros(x.shape[0], HIDDEN)
    for t in range(x.shape[1]): h = self.cell(x[:, t], h)
    return self.head(h)

def training(jit: bool = True) -> Iterator[float]:
  pixels, kinds = samples.digits()
  images, labels = (Tensor(pixels).reshape(len(kinds), 8, 8).float() / 16).realize(), Tensor(kinds).realize()
  model = Classifier()
  samples.initialize(nn.state.get_state_dict(model), lambda p, values: p.assign(Tensor(values).reshape(p.shape)))
  optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=2e-3)

  @Tensor.train()
  def step(chosen: Tensor) -> Tensor:
    loss = model(images[chosen]).sparse_categorical_crossentropy(labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.realize()

  if jit: step = TinyJit(step)
  for chosen in samples.batches(len(kinds), BATCH): yield step(Tensor(chosen)).item()

if __name__ == "__main__": samples.main(training)
