"""Train a network on real handwritten digits: 1,438 images of 8x8 pixels to learn from, 359 to test on.

    python3 examples/digits.py

Needs Python and nothing else. The last line printed is the accuracy on the images that the network has not seen. Every
kernel of the training step is machine code from this repository's assembler; `DEBUG=2` lists them, `DEBUG=7` shows
their instructions.
"""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tinyhw import Tensor, TinyJit, nn  # the path above makes this work in a bare clone
from tinyhw.helpers import trange
from tinyhw.nn.datasets import digits

BATCH = 64
EPOCHS = 40

class Model:
  """Two convolutions and two linear layers."""
  def __init__(self) -> None:
    self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
    self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
    self.linear1 = nn.Linear(32 * 4 * 4, 64)
    self.linear2 = nn.Linear(64, 10)

  def __call__(self, x: Tensor) -> Tensor:
    """x: (N, 1, 8, 8), pixels from 0 to 1 -> (N, 10), a score for each digit."""
    x = self.conv1(x).relu()
    x = self.conv2(x).relu().max_pool2d((2, 2))
    x = self.linear1(x.flatten(1)).relu().dropout(0.2)
    return self.linear2(x)

def main() -> None:
  Tensor.manual_seed(0)
  x_train, y_train, x_test, y_test = digits()
  x_train, x_test = x_train.float() / 16, x_test.float() / 16
  x_train, y_train = x_train.realize(), y_train.realize()
  model = Model()
  optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.001)
  steps_per_epoch = len(x_train) // BATCH

  @TinyJit
  @Tensor.train()
  def step(samples: Tensor) -> Tensor:
    """Run one step on the images with the given numbers. Return the loss."""
    optimizer.zero_grad()
    loss = model(x_train[samples]).sparse_categorical_crossentropy(y_train[samples]).backward()
    return loss.realize(*optimizer.schedule_step())

  start = time.perf_counter()
  interactive = sys.stdout.isatty()
  progress = trange(EPOCHS * steps_per_epoch, disable=not interactive)
  loss = 0.0
  for i in progress:
    if i % steps_per_epoch == 0: order = Tensor.randperm(len(x_train)).realize()
    k = i % steps_per_epoch * BATCH
    result = step(order[k:k + BATCH].contiguous().realize())
    if i % steps_per_epoch == steps_per_epoch - 1:
      loss = result.item()
      images = (i + 1) * BATCH / (time.perf_counter() - start)
      if interactive: progress.set_description(f"loss {loss:.4f}, {images:,.0f} images/s")
      elif (i + 1) // steps_per_epoch % 5 == 0:
        print(f"epoch {(i + 1) // steps_per_epoch:3d}  loss {loss:.4f}  {images:9,.0f} images/s", flush=True)

  correct = (model(x_test).argmax(axis=1) == y_test).sum().item()
  print(f"test accuracy: {100 * correct / len(y_test):.2f} %")

if __name__ == "__main__":
  # `digits.py | head -1` ends without a message
  if hasattr(signal, "SIGPIPE"): signal.signal(signal.SIGPIPE, signal.SIG_DFL)
  main()
