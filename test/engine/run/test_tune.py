"""BEAM on a real device: right results, a winner that is stored, and no second search."""
from __future__ import annotations
from pathlib import Path

import numpy as np
import pytest

from test.helpers import HOME
from tinyhw.config import CACHEDIR, Context
from tinyhw.device import Device
from tinyhw.engine.run import tune
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.errors import CompileError
from tinyhw.files import storage
from tinyhw.tensor import Tensor

def matmul(n: int) -> tuple[np.ndarray, np.ndarray]:
  rng = np.random.default_rng(n)
  return rng.random((n, 16), np.float32), rng.random((16, 24), np.float32)

def forget() -> None:
  """Forget what this process knows of earlier searches."""
  tune._tuned.clear()
  Device[Device.DEFAULT].launches.clear()

def test_a_matmul_is_searched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  monkeypatch.setattr(CACHEDIR, "value", str(tmp_path))
  trials = []
  class Counted(tune.Trial):
    def seconds(self, opts: tuple[object, ...]) -> float:
      trials.append(opts)
      return super().seconds(opts) if len(trials) < 12 else float("inf")
  monkeypatch.setattr(tune, "Trial", Counted)
  a, b = matmul(19)
  with Context(BEAM=2):
    np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-5)
    searched = len(trials)
    assert searched > 5
    forget()   # as in another process: the winner is on disk
    np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-5)
    assert len(trials) == searched
    forget()
    (entry,) = [path for path in Path(storage.cache_dir(), "values", "beam").rglob("*") if path.is_file()]
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    (Tensor(a) @ Tensor(b)).realize()
    assert len(trials) > searched, "a damaged winner is no winner"
    searched = len(trials)
    forget()
    with Context(IGNORE_BEAM_CACHE=1): (Tensor(a) @ Tensor(b)).realize()
    assert len(trials) > searched

def test_what_does_not_compile_takes_forever(monkeypatch: pytest.MonkeyPatch) -> None:
  a, b = matmul(7)
  sink = schedule(canonicalize([(Tensor(a) @ Tensor(b)).uop])).kernels[0].sink
  trial = tune.Trial(HOME, sink)
  assert trial.seconds(()) < float("inf")
  monkeypatch.setattr(tune, "compile_kernel", lambda *_: (_ for _ in ()).throw(CompileError("no")))
  assert trial.seconds(()) == float("inf")
  monkeypatch.setattr(tune, "compile_kernel", lambda *_: (_ for _ in ()).throw(KeyError("a fault of tinyhw")))
  with pytest.raises(KeyError): trial.seconds(())
