"""Interrupts at any bytecode leave nothing behind: a little of test/campaigns/interrupts.py, with a seed that changes
from day to day."""
from __future__ import annotations
import gc
import importlib
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from thread_campaign import CAMPAIGN, ROOT, SEED, campaign
from tinyhw import Tensor, TinyJit, helpers
from tinyhw.capture import jit as jits
from tinyhw.config import TRAINING, ContextVar, FirstUse
from tinyhw.device import Buffer
from tinyhw.dtype import dtypes
from tinyhw.engine.run import realize as realizing

needs_tables = pytest.mark.skipif(sys.version_info < (3, 11), reason="the code of older Pythons does not say where "
                                  "handlers may run")

@needs_tables
@pytest.mark.parametrize("machine", range(3))
def test_a_computation_after_an_interrupt_is_right(machine: int) -> None:
  campaign("--only", "interrupts", "--interrupts", "120", "--seed", str(6 * SEED + (0, 1, 4)[machine]))

@needs_tables
def test_places_where_no_handler_runs_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.syspath_prepend(str(CAMPAIGN.parent))
  interrupts = importlib.import_module("interrupts")
  def leaves() -> None:
    with open("x") as file: file.read()
    print()
  closed = interrupts.undeliverable(leaves.__code__)
  assert closed and len(closed) < len(leaves.__code__.co_code) // 4

def test_collection_is_on_after_an_interrupt() -> None:
  def interrupted() -> None:
    assert not gc.isenabled()
    raise KeyboardInterrupt
  with pytest.raises(KeyboardInterrupt): helpers.uncollected(interrupted)
  assert gc.isenabled() and helpers.uncollected(gc.isenabled) is False
  gc.disable()
  try: assert helpers.uncollected(int, "7") == 7 and not gc.isenabled()
  finally: gc.enable()

def test_an_interrupt_at_the_end_of_what_a_capture_notes(monkeypatch: pytest.MonkeyPatch) -> None:
  def interrupted(*_: object) -> None: raise KeyboardInterrupt
  jit: Any = TinyJit(lambda x: (x + 1).realize())
  x = Tensor([1]).realize()
  jit(x)
  for owner in (jits.CallTracer, jits.FirstUse):
    with monkeypatch.context() as patch:
      patch.setattr(owner, "__exit__", interrupted)
      with pytest.raises(KeyboardInterrupt): jit(x)
    assert sys.getprofile() is None and realizing.this_thread.capture is None and gc.isenabled()
  for _ in range(3): assert jit(x).tolist() == [2]
  with FirstUse(TRAINING): pass
  assert type(TRAINING) is ContextVar

@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer that sends a signal")
def test_signals_while_threads_compute() -> None:
  program = """
import signal, threading
from tinyhw import Tensor
def work(n):
  for k in range(40): assert (Tensor([1.0] * (n + k + 1)) * 2).sum().item() == 2 * (n + k + 1)
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for t in threads: t.start()
inside = False
def interrupt(*_):
  if inside: raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
for k in range(20):
  try:
    signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.003 * k)
    inside = True
    for _ in range(300): (Tensor([2.0] * (k + 3)) + 1).tolist()   # it has an end: a finalizer may have met the signal
    inside = False
  except KeyboardInterrupt: inside = False
signal.signal(signal.SIGALRM, signal.SIG_IGN)
assert (Tensor([2.0, 3.0]) * 2).tolist() == [4.0, 6.0]
for t in threads: t.join()
"""
  environment = {**os.environ, "PYTHONPATH": str(ROOT), "CACHE": "0"}
  done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
  assert not done.returncode and "Error" not in done.stderr, done.stderr

def test_memory_whose_allocation_was_interrupted_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
  def interrupted(*_: object) -> None: raise KeyboardInterrupt
  buffer, view = Buffer("CPU", 4, dtypes.int8), Buffer("CPU", 4, dtypes.int8)
  with monkeypatch.context() as patch:
    patch.setattr("tinyhw.device._count_memory", interrupted)   # the memory is there, and nothing else was done
    with pytest.raises(KeyboardInterrupt): buffer.allocate()
    with pytest.raises(KeyboardInterrupt): view.allocate()
  assert buffer.ensure_allocated().copyin(memoryview(b"abcd")).as_memoryview().tobytes() == b"abcd"
  view.deallocate()
