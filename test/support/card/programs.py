"""Whole programs on a card: the first kernel of a process, networks that learn, a share of the tensor suite.

Each checks first that the device opens by the way that its name tells (silicon_system.device_of), for the programs it
starts do not look.
"""
from __future__ import annotations
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from card.bars import COLD, WARM
from card.frame import Absent, Notes
from card.system import device_of

from tinyhw import Tensor, TinyJit, nn
from tinyhw.config import EMULATE, Context
from tinyhw.errors import TinyError
from tinyhw.nn import datasets

ROOT = Path(__file__).resolve().parents[3]
FIRST = "from tinyhw import Tensor; print((Tensor([1.0, 2.0, 3.0]) * 2).tolist())"
WORKERS = 4           # processes of the tensor suite, where pytest-xdist is there
BATCH, STEPS = 128, 100
WORSE = 2.0           # percent of the test images that a card may have wrong beyond the CPU: rounding takes each its
                      # own way

def _run(command: list[str], device: str, **environment: str) -> subprocess.CompletedProcess[str]:
  """A Python program, whose device is `device`. Raises AssertionError with the end of what it wrote, if it fails."""
  done = subprocess.run([sys.executable, *command], cwd=ROOT, env={**os.environ, "DEV": device, **environment},
                        capture_output=True, text=True)
  if done.returncode: raise AssertionError((done.stdout + done.stderr)[-2000:])
  return done

def start(notes: Notes, device: str) -> None:
  """Seconds from the start of a process to the end of its first kernel: with nothing compiled before, each time with an
  empty folder, which is what the bar is about; and with the kernel on disk."""
  device_of(device)
  times = 1 if EMULATE.value else 3
  with tempfile.TemporaryDirectory() as folder:
    def seconds(name: str) -> float:
      begin = time.perf_counter()
      done = _run(["-c", FIRST], device, CACHEDIR=str(Path(folder, name)))
      assert done.stdout.strip() == "[2.0, 4.0, 6.0]", done.stdout
      return round(time.perf_counter() - begin, 2)
    notes(COLD, min(seconds(f"cold{k}") for k in range(times)))
    notes(WARM, min(seconds("cold0") for _ in range(times)))

def learns(notes: Notes, device: str, accuracy: Callable[[str], float]) -> None:
  """Raises AssertionError where a network that a device has trained names more than WORSE percent fewer of the test
  images rightly than the one that the CPU trains from the same seed in the same steps. accuracy: percent of the test
  images after the training on a device."""
  found = dict[str, float]()
  for place in dict.fromkeys((device, "CPU")):
    begin = time.perf_counter()
    found[place] = round(accuracy(place), 2)
    notes(f"accuracy on {place}, %", found[place])
    notes(f"seconds on {place}", round(time.perf_counter() - begin, 1))
  if found[device] < found["CPU"] - WORSE:
    raise AssertionError(f"{found[device]} % are right, {found['CPU']} % on the CPU; at most {WORSE:g} % fewer may be")

def digits(notes: Notes, device: str) -> None:
  """Does examples/digits.py learn as on the CPU, by the accuracy that it prints last?"""
  device_of(device)
  if EMULATE.value: raise Absent("it takes a virtual card very long")
  def accuracy(place: str) -> float:
    last = (_run([str(ROOT / "examples/digits.py")], place).stdout.strip().splitlines() or [""])[-1]
    found = re.fullmatch(r"test accuracy: (\d+\.\d+) %", last)
    assert found is not None, f"the last line tells no accuracy: {last!r}"
    return float(found[1])
  learns(notes, device, accuracy)

# **** the network for MNIST ****

def images() -> tuple[str, tuple[Any, Any, Any, Any]]:
  """Images of 28x28 pixels from 0 to 1: MNIST's where its files are, else the digits that come with tinyhw,
  enlarged."""
  try: return "MNIST", _scaled(datasets.mnist("CPU"), 255)
  except (TinyError, OSError):
    return "digits, enlarged: the files of MNIST are not here (DATASETS)", _scaled(datasets.digits("CPU"), 16)

def _scaled(found: Any, greatest: int) -> tuple[Any, Any, Any, Any]:
  def enlarged(x: Tensor) -> Tensor:
    x = x.float() / greatest
    if x.shape[-1] == 8: x = x.repeat_interleave(3, -1).repeat_interleave(3, -2).pad((2, 2, 2, 2))
    return x.realize()
  return enlarged(found[0]), found[1].realize(), enlarged(found[2]), found[3].realize()

class Convnet:
  """Four convolutions with normalization, for 28x28 pixels."""
  def __init__(self) -> None:
    self.layers = [nn.Conv2d(1, 32, 5), Tensor.relu, nn.Conv2d(32, 32, 5), Tensor.relu, nn.BatchNorm(32),
                   Tensor.max_pool2d,
                   nn.Conv2d(32, 64, 3), Tensor.relu, nn.Conv2d(64, 64, 3), Tensor.relu, nn.BatchNorm(64),
                   Tensor.max_pool2d,
                   lambda x: x.flatten(1), nn.Linear(576, 10)]
  def __call__(self, x: Tensor) -> Tensor: return x.sequential(self.layers)

def learned(device: str, data: tuple[Any, Any, Any, Any], steps: int, batch: int, tested: int) -> float:
  """Percent of the first `tested` test images that the network names rightly after so many steps on a device; the same
  steps on each."""
  with Context(DEV=device):
    Tensor.manual_seed(0)
    x, y, x_test, y_test = (part.to(device).contiguous().realize() for part in data)
    model = Convnet()
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.001)

    @TinyJit
    @Tensor.train()
    def step(samples: Tensor) -> Tensor:
      optimizer.zero_grad()
      return model(x[samples]).sparse_categorical_crossentropy(y[samples]).backward().realize(
        *optimizer.schedule_step())

    for i in range(steps):
      step(Tensor([(i * batch + k) * 7919 % x.shape[0] for k in range(batch)], device=device).realize())
    right = (model(x_test[:tested]).argmax(axis=1) == y_test[:tested]).sum().item()
  return 100 * float(right) / min(tested, x_test.shape[0])

def convnet(notes: Notes, device: str, steps: int = STEPS, batch: int = BATCH, tested: int = 1000) -> None:
  """Does the convolutional network for MNIST learn as on the CPU?"""
  device_of(device)
  if EMULATE.value: raise Absent("it takes a virtual card very long")
  name, data = images()
  notes("images", name)
  learns(notes, device, lambda place: learned(place, data, steps, batch, tested))

# **** the tensor suite ****

def suite(notes: Notes, device: str, share: int, seconds: float) -> None:
  """A share of the tensor suite on the card, as far as it comes in so many seconds: how many pass, and which fail."""
  device_of(device)
  if EMULATE.value: raise Absent("test/suite.py is for virtual cards")
  missing = [name for name in ("pytest", "hypothesis", "numpy") if importlib.util.find_spec(name) is None]
  if missing: raise Absent(f"not installed: {', '.join(missing)}")
  side_by_side = ["-n", str(WORKERS)] if importlib.util.find_spec("xdist") else []
  tested(notes, ["--suite", "tensor", "--share", str(share), *side_by_side], device, seconds)

def tested(notes: Notes, arguments: list[str], device: str, seconds: float) -> None:
  """Run pytest. Raises AssertionError if a test fails, or none has passed."""
  with tempfile.TemporaryFile("w+") as log:
    process = subprocess.Popen([sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short",
                                *arguments], cwd=ROOT,
                               env={**os.environ, "DEV": device}, stdout=log, stderr=subprocess.STDOUT)
    try: notes("ended", f"with status {process.wait(seconds)}")
    except subprocess.TimeoutExpired:
      process.kill()
      process.wait()
      notes("ended", f"not in {seconds:.0f} s")
    log.seek(0)
    text = log.read()
  lines = text.partition("\n====")[0]   # before the summary
  def those(word: str) -> list[tuple[str, str]]:
    return re.findall(rf"(?m)^(?:\[gw\d+\] +\[ *\d+%\] {word} (\S+)|(\S+) {word}\b)", lines)
  outcomes = {word: those(word) for word in ("PASSED", "FAILED", "ERROR", "SKIPPED")}
  for word, names in outcomes.items(): notes(word.lower(), len(names))
  failed = sorted({one or other for word in ("FAILED", "ERROR") for one, other in outcomes[word]})
  notes("which", failed)
  if failed or not outcomes["PASSED"]:
    raise AssertionError(f"{len(failed)} failed, {len(outcomes['PASSED'])} passed\n{text[-4000:]}")
