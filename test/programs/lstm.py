"""An LSTM that recognises which of four invented languages a word is from. Source: Hochreiter and Schmidhuber 1997."""
from collections.abc import Iterator

import samples

from tinyhw import Tensor, TinyJit, nn

COUNT, LENGTH, BATCH, WIDTH, HIDDEN = 640, 24, 64, 32, 96

class Classifier:
  def __init__(self) -> None:
    self.letters, self.cell, self.head = nn.Embedding(26, WIDTH), nn.LSTMCell(WIDTH, HIDDEN), nn.Linear(HIDDEN, 4)

  def __call__(self, words: Tensor) -> Tensor:
    x, state = self.letters(words), None
    for t in range(words.shape[1]): state = self.cell(x[:, t], state)
    return self.head(state[0])

def training(jit: bool = True) -> Iterator[float]:
  letters, languages = samples.words(COUNT, LENGTH)
  words, labels = Tensor(letters).reshape(COUNT, LENGTH).int().realize(), Tensor(languages).realize()
  model = Classifier()
  samples.initialize(nn.state.get_state_dict(model), lambda p, values: p.assign(Tensor(values).reshape(p.shape)))
  optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=2e-3)

  @Tensor.train()
  def step(chosen: Tensor) -> Tensor:
    loss = model(words[chosen]).sparse_categorical_crossentropy(labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.realize()

  if jit: step = TinyJit(step)
  for chosen in samples.batches(COUNT, BATCH): yield step(Tensor(chosen)).item()

if __name__ == "__main__": samples.main(training)
