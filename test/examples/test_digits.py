"""examples/digits.py as a reader runs it: with Python alone, from another folder, to the accuracy that the README
promises.

Its network is also trained on virtual GPUs as on the CPU: three steps of two images, and each night 50 steps of 64 (20
minutes).
"""
import json
import os
from pathlib import Path
import re
import subprocess
import sys

import pytest
from formats.mutations import cases

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples/digits.py"

def test_the_main_job(tmp_path: Path) -> None:
  environment = {"PATH": "", "CACHEDIR": str(tmp_path), "SYSTEMROOT": "C:\\Windows"}
  done = subprocess.run([sys.executable, "-I", "-S", "-B", str(DIGITS)], cwd=tmp_path, env=environment,
                        capture_output=True, text=True, check=True)
  lines = done.stdout.splitlines()
  found = re.fullmatch(r"test accuracy: (\d\d\.\d\d) %", lines[-1])
  assert found is not None and float(found[1]) >= 98, lines[-1]
  progress = [re.fullmatch(r"epoch +(\d+)  loss (\d+\.\d{4})  +[\d,]+ images/s", line) for line in lines[:-1]]
  assert len(progress) > 2 and all(progress), "plain lines where there is no terminal"
  losses = [float(line[2]) for line in progress if line is not None]
  assert losses[-1] < losses[0] / 2 and not done.stderr

# Arguments: steps, images of a step. Prints the losses.
TRAINING = """
import json, sys
from examples import digits
from tinyhw import Tensor, TinyJit, nn
steps, batch = map(int, sys.argv[1:])
Tensor.manual_seed(0)
images, labels, _, _ = nn.datasets.digits()
images, labels, model = (images.float() / 16).realize(), labels.realize(), digits.Model()
optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.001)
@TinyJit
@Tensor.train()
def step(samples):
  optimizer.zero_grad()
  loss = model(images[samples]).sparse_categorical_crossentropy(labels[samples]).backward()
  return loss.realize(*optimizer.schedule_step())
order = Tensor.randperm(len(images)).realize()
begins = [k % 20 * batch for k in range(steps)]
print(json.dumps([step(order[k:k + batch].contiguous().realize()).item() for k in begins]))
"""

def losses(device: str, steps: int, batch: int) -> list[float]:
  """Return the loss of each step on "CPU" or a virtual chip."""
  where = {"DEV": device} if device == "CPU" else {"DEV": "NV" if device.startswith("sm_") else "AMD",
                                                   "EMULATE": device}
  done = subprocess.run([sys.executable, "-c", TRAINING, str(steps), str(batch)],
                        env={**os.environ, "PYTHONPATH": str(ROOT), "CACHE": "0", **where},
                        capture_output=True, text=True)
  assert done.returncode == 0, done.stderr[-3000:]
  found: list[float] = json.loads(done.stdout)
  return found

@pytest.mark.slow
@pytest.mark.parametrize("chip", ["gfx1100", "sm_90"])
def test_training_on_a_virtual_gpu_follows_the_cpu(chip: str) -> None:
  """Plain, captured and replayed steps have losses within 1e-3 of the CPU's."""
  steps, batch = cases(3, 50), cases(2, 64)
  found, expected = losses(chip, steps, batch), losses("CPU", steps, batch)
  assert len(found) == steps and found == pytest.approx(expected, rel=1e-3)
  assert steps < 50 or expected[-1] < 0.7 * expected[0], "it learns"
