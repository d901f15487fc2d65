"""Ten programs in the habits of PyTorch's users, run by PyTorch and, with changes in imports only, here.

Both begin with the same weights, and their numbers (losses, rates, accuracies) agree.
"""
from __future__ import annotations
from pathlib import Path
import re
import sys
import types
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("test_"))

def run(name: str, ours: bool) -> dict[str, Any]:
  """Return the names of a program. ours: its imports of torch are those of tinyhw.compat.torch."""
  source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
  if ours:
    source = re.sub(r"^import torch$", "import tinyhw.compat.torch as torch", source, flags=re.MULTILINE)
    source = re.sub(r"^(import|from) torch\b", r"\1 tinyhw.compat.torch", source, flags=re.MULTILINE)
  module = types.ModuleType(f"{name}_{'ours' if ours else 'theirs'}")
  sys.modules[module.__name__] = module      # where dataclasses look
  exec(compile(source, str(FOLDER / f"{name}.py"), "exec"), module.__dict__)
  return module.__dict__

def test_there_are_ten() -> None: assert len(NAMES) == 10

# Programs of many kernels, which are compiled for the test.
LONG = ("cifar_resnet", "ddpm", "lstm_text", "nanogpt", "stft_denoiser", "vit", "whisper_encoder")

@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in NAMES])
def test_program(name: str) -> None:
  torch = pytest.importorskip("torch")
  torch.manual_seed(0)
  theirs, mine = (run(name, ours) for ours in (False, True))
  models, copies = theirs["build"](), mine["build"]()
  for key, model in models.items():
    assert set(model.state_dict()) == set(copies[key].state_dict())
    copies[key].load_state_dict(model.state_dict())
  wanted = list(theirs["train"](models))
  assert list(mine["train"](copies)) == pytest.approx(wanted, rel=2e-3, abs=1e-4)
