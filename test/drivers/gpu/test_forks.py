"""Forks of a program with an open GPU: the parent goes on, however the child ends. The child is told what to do."""
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu.forks import in_child_of_fork

from tinyhw.drivers.gpu import forks
from tinyhw.errors import DeviceError

if not hasattr(os, "fork"): pytest.skip("this system has no forks", allow_module_level=True)

ROOT = Path(__file__).parents[3]
CARDS = ["sm_80", "gfx1100", "apple7"]
REFUSED = {"sm_80": "call Device.close('NV') to open it anew here",
           "gfx1100": "call Device.close('AMD') to open it anew here", "apple7": "Metal cannot be used after a fork"}

# Each way of leaving is taken with the device busy, and after it the parent uses old code, old data and new code.
PROGRAM = """
import multiprocessing, os, subprocess, sys
from tinyhw import Device, Tensor, TinyJit
from tinyhw.errors import DeviceError
from tinyhw.nn.loading.loader import DataLoader

def twice(size): return (Tensor([float(i) for i in range(size)]).realize() * 2).tolist()
@TinyJit
def captured(x): return (x * 3 + 1).realize()
kept = (Tensor([1.0, 2.0, 3.0]) + 1).realize()
for _ in range(3): captured(kept)
part = kept[1:]

def leave_by_exit(): os._exit(0)
def leave_by_the_interpreter(): sys.exit(0)
def use():
  for work in (kept.tolist, part.tolist, lambda: twice(9), lambda: captured(kept).tolist(),
               lambda: kept.assign(kept + 1).realize()):
    try: work()
    except DeviceError as error: assert sys.argv[1] in str(error), error
    else: raise AssertionError("the child used the GPU of its parent")
  os._exit(0)

def fork(leave):
  pending = kept * 5
  pending.realize()
  child = os.fork()
  if child == 0: leave()
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
  assert pending.tolist() == [10, 15, 20]

def with_multiprocessing():
  child = multiprocessing.get_context("fork").Process(target=sys.exit)
  child.start()
  child.join()
  assert child.exitcode == 0
def with_subprocess(): subprocess.run(["true"], check=True, preexec_fn=lambda: None)
def with_workers():
  assert [batch.tolist() for batch in DataLoader([1, 2, 3, 4], batch_size=2, num_workers=2)] == [[1, 2], [3, 4]]

size = 4
for way in (lambda: fork(leave_by_exit), lambda: fork(leave_by_the_interpreter), lambda: fork(use),
            with_multiprocessing, with_subprocess, with_workers):
  way()
  size += 1
  assert kept.tolist() == [2, 3, 4] and part.tolist() == [3, 4] and captured(kept).tolist() == [7, 10, 13]
  assert twice(size) == [2.0 * i for i in range(size)] and twice(4) == [0, 2, 4, 6]
"""

@pytest.mark.parametrize("card", CARDS)
def test_a_fork_leaves_the_gpu_to_the_parent(card: str) -> None:
  environment = {**os.environ, "EMULATE": card, "DEV": "", "CACHE": "0", "PYTHONPATH": str(ROOT),
                 "PYTHONWARNINGS": "ignore"}
  found = subprocess.run([sys.executable, "-c", PROGRAM, REFUSED[card]], env=environment, capture_output=True,
                         text=True, timeout=180)
  assert found.returncode == 0, found.stderr

def test_a_library_is_of_the_process_that_used_it_first(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(forks, "_users", {})
  forks.begin_use("CUDA")
  forks.begin_use("CUDA")
  def child() -> None:
    with pytest.raises(DeviceError, match='CUDA cannot be used after a fork: start processes with "spawn"'):
      forks.begin_use("CUDA")
    forks.begin_use("OpenCL")
  in_child_of_fork(child)
  assert "OpenCL" not in forks._users
  assert forks.lost_in_child("NV:CUDA", "CUDA").startswith("NV:CUDA belongs to the process that opened it; CUDA cannot")
