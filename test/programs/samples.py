"""Shared parts of a program and its PyTorch counterpart: the same data, initial weights, noise and choices, made only
from Python's random numbers.

A program `x.py` and its counterpart `x_torch.py` each have a function `training`: an endless iterator of the losses of
steps. Both run as scripts:

    python3 test/programs/vae.py [steps] [--plain]       # --plain: without TinyJit
"""
from __future__ import annotations
import argparse
import gzip
import math
import random
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))   # so that the programs work in a bare clone

Training = Callable[[bool], Iterator[float]]

def main(training: Training) -> None:
  """Print the loss of each step, as a script does."""
  parser = argparse.ArgumentParser()
  parser.add_argument("steps", type=int, nargs="?", default=50)
  parser.add_argument("--plain", action="store_true", help="without TinyJit")
  args = parser.parse_args()
  start = time.perf_counter()
  for k, loss in enumerate(islice(training(not args.plain), args.steps)):
    print(f"{k:4d}  {loss:.8f}  {time.perf_counter() - start:8.3f} s", flush=True)

# ***** weights and noise *****

def initialize(state: Mapping[str, Any], write: Callable[[Any, array[float]], object]) -> None:
  """Write initial values to all parameters of a state dict: uniform within 1/sqrt(fan in), 1 for the weights of norms,
  0 for their biases.

  Statistics of batchnorms stay. PyTorch's names of a recurrent layer's weights have a suffix `_l0`, which is ignored.
  """
  for name, parameter in state.items():
    if "running_" in name or "num_batches" in name: continue
    shape = tuple(int(n) for n in parameter.shape)
    size, rng = math.prod(shape), random.Random(name.removesuffix("_l0"))
    bound = 1 / math.sqrt(math.prod(shape[1:])) if len(shape) > 1 else 0.05
    if "norm" in name: values = array("f", [float(name.endswith("weight"))] * size)
    else: values = array("f", [bound * (2 * rng.random() - 1) for _ in range(size)])
    write(parameter, values)

def normal(size: int, seed: str) -> array[float]:
  """Return normally distributed float32 numbers."""
  rng = random.Random(seed)
  return array("f", [rng.gauss(0, 1) for _ in range(size)])

# ***** data *****

def batches(count: int, size: int, seed: str = "batches") -> Iterator[list[int]]:
  """Yield the numbers of `size` samples of `count` for ever, in random order and without repetition in an epoch."""
  rng, order = random.Random(seed), list(range(count))
  while True:
    rng.shuffle(order)
    for k in range(0, count - size + 1, size): yield order[k:k + size]

def digits() -> tuple[bytes, bytes]:
  """Return pixels from 0 to 16 and labels of the 1,797 digits of examples/data: (1797, 1, 8, 8) and (1797,)."""
  data = gzip.decompress((ROOT / "examples/data/digits.gz").read_bytes())
  return b"".join(data[k:k + 64] for k in range(0, len(data), 65)), data[64::65]

def photographs(count: int) -> tuple[bytes, bytes]:
  """Return coloured stripes of ten directions in noise, in the layout of CIFAR-10's images: (count, 3, 32, 32), and the
  direction of each."""
  rng = random.Random("photographs")
  pixels, labels = bytearray(), bytes(k % 10 for k in range(count))
  for label in labels:
    angle, phase, noise = math.pi * label / 10, rng.uniform(0, 6), iter(rng.randbytes(3 * 32 * 32))
    a, b = 0.7 * math.cos(angle), 0.7 * math.sin(angle)
    for channel in range(3):
      lines = [100 + 60 * math.sin(0.7 * k + phase + channel) for k in range(10)]
      wave = [lines[int(abs(a * x + b * y)) % 10] for y in range(32) for x in range(32)]
      pixels += bytes(int(v) + next(noise) // 3 for v in wave)
  return bytes(pixels), labels

def words(count: int, length: int) -> tuple[bytes, bytes]:
  """Return words of four invented languages: (count, length) from 0 to 25, and (count,). Each language has its own
  frequencies of pairs of letters."""
  rng = random.Random("words")
  follow = [[rng.sample(range(26), 4) for _ in range(26)] for _ in range(4)]
  letters, labels = bytearray(), bytes(k % 4 for k in range(count))
  for language in labels:
    letter = rng.randrange(26)
    for _ in range(length):
      letters.append(letter)
      letter = rng.choice(follow[language][letter]) if rng.random() < 0.6 else rng.randrange(26)
  return bytes(letters), labels

def text() -> tuple[list[int], str]:
  """Return the licence as numbers of characters, and the characters."""
  content = (ROOT / "LICENSE").read_text(encoding="utf-8")
  characters = "".join(sorted(set(content)))
  return [characters.index(c) for c in content], characters

class CartPole:
  """A pole on a cart. Pushes of the cart to the left (0) or to the right (1) keep it upright.

  Source: Barto, Sutton and Anderson 1983.
  """
  def __init__(self, seed: str = "cart"): self.rng = random.Random(seed)

  def reset(self) -> list[float]:
    """Start a new episode: position, speed, angle and its speed, near to 0."""
    self.state = [self.rng.uniform(-0.05, 0.05) for _ in range(4)]
    return self.state

  def step(self, action: int) -> tuple[list[float], float, bool]:
    """Return (state, reward, whether the pole has fallen) after 20 ms."""
    x, dx, angle, turn = self.state
    force, sine, cosine = 10.0 if action else -10.0, math.sin(angle), math.cos(angle)
    push = (force + 0.05 * turn * turn * sine) / 1.1
    bend = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
    acceleration = push - 0.05 * bend * cosine / 1.1
    self.state = [x + 0.02 * dx, dx + 0.02 * acceleration, angle + 0.02 * turn, turn + 0.02 * bend]
    return self.state, 1.0, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
