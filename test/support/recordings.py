"""Recordings of VIZ=1 that tests look at, made in this process."""
from __future__ import annotations
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tinyhw import trace
from tinyhw.capture.jit import TinyJit
from tinyhw.config import Context
from tinyhw.device import Buffer, Device
from tinyhw.engine.schedule import schedule as scheduling
from tinyhw.helpers import profile_marker
from tinyhw.tensor import Tensor
from tinyhw.viz.archive import Archive
from tinyhw.viz.record import RunRecorder

@contextlib.contextmanager
def recording(**variables: int) -> Iterator[RunRecorder]:
  """A recorder of its own, and no kernel or schedule known from before. variables: VIZ=1 and PROFILE=1 unless others
  are given.

  Fails if the recorder did: its faults, which never reach a program, are set back to 0 by a test that expects them.
  """
  before, dropped, recorder = trace.events[:], trace.dropped, RunRecorder()
  caches = [(cache, dict(cache)) for cache in (*(device.kernels for device in Device._opened.values()),
                                               scheduling._schedules)]
  for cache, _ in caches: cache.clear()
  trace.events.clear()
  trace.recorder, trace.dropped = recorder, 0
  try:
    with Context(**(variables or {"VIZ": 1, "PROFILE": 1})): yield recorder
  finally:
    trace.recorder, trace.dropped = None, dropped
    trace.events[:] = before
    trace.unfollow()
    Buffer.profile_events.clear()
    for cache, content in caches:
      cache.clear()
      cache.update(content)
  assert recorder.faults == 0, "the recorder failed; its first fault is told on stderr"

def device() -> str:
  """CPU where it opens: it has all passes; else PYTHON."""
  return "CPU" if "CPU" in Device.get_available_devices() else "PYTHON"

def train(where: str, steps: int = 4) -> list[float]:
  """A few steps of a small network, captured by TinyJit: matmuls, exp and log, reductions, random numbers, ASSIGNs."""
  w = (Tensor.arange(24 * 7, device=where).reshape(24, 7) % 5 * 0.25).realize()
  @TinyJit
  def step(x: Tensor) -> Tensor:
    loss = (x @ w).log_softmax().square().mean()
    w.assign(w - loss.gradient(w)[0] * 0.1)
    return loss.realize(w)
  losses = []
  for k in range(steps):
    profile_marker(f"step {k}", "orange")
    losses.append(float(step((Tensor.arange(16 * 24, device=where).reshape(16, 24) * 0.01).sin().realize()).item()))
  return losses

def read(archive: Archive, name: str) -> Any:
  found = archive.read(name)
  assert found is not None, f"the recording has no {name}"
  return json.loads(found)

def write_example(path: Path) -> list[float]:
  """Record `train` into a file. Gives its losses."""
  with recording() as recorder:
    losses = train(device())
    recorder.write_recording(str(path))
  return losses
