"""tinyhw/threads.py, and the contract of docs/guide/threads.md: several threads, and forks. Interrupts are in
whole/test_interrupts.py.

The whole campaign is test/campaigns/threads.py; here a little of it runs, with a seed that changes from day to day.
"""
from __future__ import annotations
import os
import random
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import pytest

from thread_campaign import ROOT, SEED, campaign
from tinyhw import Tensor, TinyJit, threads
from tinyhw.errors import JitError
from tinyhw.threads import alone, lock, once

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

def in_thread(work: Any) -> None:
  """Run a function in another thread, to its end."""
  errors: list[BaseException] = []
  def run() -> None:
    try: work()
    except BaseException as error: errors.append(error)  # noqa: BLE001  # it is raised in the thread that asked
  thread = threading.Thread(target=run)
  thread.start()
  thread.join()
  if errors: raise errors[0]

# ***** the lock *****

def test_one_thread_at_a_time() -> None:
  inside, most = 0, 0
  @alone
  def enter() -> None:
    nonlocal inside, most
    inside += 1
    most = max(most, inside)
    time.sleep(0.0005)
    inside -= 1
  workers = [threading.Thread(target=lambda: [enter() for _ in range(10)]) for _ in range(4)]
  for worker in workers: worker.start()
  for worker in workers: worker.join()
  assert most == 1

def test_an_error_gives_the_lock_back() -> None:
  with pytest.raises(ZeroDivisionError): alone(lambda: 1 // 0)()
  taken = []
  in_thread(lambda: taken.append(lock.acquire(timeout=5)) or lock.release())
  assert taken == [True]

@pytest.mark.parametrize("use", [lambda t: t.tolist(), lambda t: t.numpy().tolist(), lambda t: t.__iadd__(1),
                                 lambda t: t.assign(t * 2),
                                 lambda t: t.__setitem__(0, 5), lambda t: (t + 1).realize(),
                                 lambda t: t.data().tolist(), repr],
                         ids=["tolist", "numpy", "+=", "assign", "[]=", "realize", "data", "repr"])
def test_reads_and_writes_wait_for_the_thread_that_is_within(use: Any) -> None:
  pytest.importorskip("numpy")
  t = Tensor([1, 2]).realize()
  use(Tensor([1, 2]).realize())   # compiled
  done = threading.Event()
  def work() -> None:
    use(t)
    done.set()
  thread = threading.Thread(target=work)
  with lock:
    thread.start()
    assert not done.wait(0.05)
  thread.join()
  assert done.is_set()

def test_expressing_waits_for_nobody() -> None:
  t = Tensor([1, 2]).realize()
  with lock: in_thread(lambda: ((t + 1) * 2).sum().shape)

# ***** what another thread left waiting *****

def test_a_write_of_another_thread_is_not_the_captures() -> None:
  own, x = Tensor([0]).realize(), Tensor([1]).realize()
  def write() -> None: own.__iadd__(1)
  def f(x: Tensor) -> Tensor:
    in_thread(write)
    return (x + 1).realize()
  jit: Any = TinyJit(f)
  for _ in range(5): assert jit(x).tolist() == [2]
  assert own.tolist() == [2]   # the function ran twice

def test_random_numbers_of_another_thread_are_not_the_captures() -> None:
  def f(x: Tensor) -> Tensor:
    in_thread(random.random)
    return x + 1
  jit: Any = TinyJit(f)
  for k in range(3): assert jit(Tensor([k]).realize()).tolist() == [k + 1]

@pytest.mark.parametrize("draw", [random.random, lambda: random.randint(0, 9), lambda: random.gauss(0, 1),
                                  lambda: random.choice([1, 2])])
def test_random_numbers_of_the_captures_own_thread_are_refused(draw: Any) -> None:
  jit: Any = TinyJit(lambda x: x + float(draw() * 0 + 1))
  for _ in range(2): draw()   # gauss keeps the second of two
  jit(Tensor([1]).realize())
  with pytest.raises(JitError, match="draws from the random module"): jit(Tensor([1]).realize())

def test_a_write_that_waits_is_done_before_the_capture_that_reads_it() -> None:
  total, x = Tensor([0]).realize(), Tensor([1]).realize()
  jit: Any = TinyJit(lambda x: (total + x).realize())
  found = []
  for _ in range(5):
    in_thread(lambda: total.__iadd__(1))   # main has not asked for it yet
    found.append(jit(x).item())
  assert found == [2, 3, 4, 5, 6]

def test_a_gradient_of_another_thread_is_not_the_captures() -> None:
  w, own, x = Tensor([2.0], requires_grad=True), Tensor([3.0], requires_grad=True), Tensor([1.0]).realize()
  def f(x: Tensor) -> Tensor:
    in_thread(lambda: (own * own).sum().backward())
    return (w * x).realize()
  jit: Any = TinyJit(f)
  for _ in range(2): jit(x)
  assert own.grad is not None and own.grad.tolist() == [12.0]
  own.grad = None
  for _ in range(3): assert jit(x).tolist() == [2.0]
  assert own.grad is None

def test_a_value_of_another_thread_is_not_taken_for_the_captures() -> None:
  x, kept = Tensor([1]).realize(), list[Tensor]()
  called, answered = threading.Barrier(2, timeout=30), threading.Barrier(2, timeout=30)
  def other() -> None:
    for _ in range(2):
      called.wait()
      kept.append(x * 7)
      answered.wait()
  def f(x: Tensor) -> Tensor:
    called.wait()
    answered.wait()
    return (x + 1).realize()
  thread = threading.Thread(target=other)
  thread.start()
  jit: Any = TinyJit(f)
  for _ in range(4): assert jit(x).tolist() == [2]
  thread.join()
  assert [t.tolist() for t in kept] == [[7], [7]]

def test_one_tinyjit_in_several_threads_is_captured_once() -> None:
  runs: list[int] = []
  def f(x: Tensor) -> Tensor:
    runs.append(1)
    return (x * 3).realize()
  jit: Any = TinyJit(f)
  start, wrong = threading.Barrier(4), list[Any]()
  def work(n: int) -> None:
    start.wait()
    for k in range(10):
      if (found := jit(Tensor([n * k]).realize()).item()) != 3 * n * k: wrong.append((n, k, found))
  workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
  for worker in workers: worker.start()
  for worker in workers: worker.join()
  assert not wrong and len(runs) == 2

def test_training_mode_is_that_of_the_thread() -> None:
  seen = []
  with Tensor.train():
    in_thread(lambda: seen.append(Tensor.training))
    assert Tensor.training
  assert seen == [False] and not Tensor.training

def test_two_threads_may_leave_training_mode_in_any_order() -> None:
  first, second = Tensor.train(), Tensor.train()
  seen, go, gone = [], threading.Event(), threading.Event()
  def other() -> None:
    with second:
      go.set()
      gone.wait(5)
      seen.append(Tensor.training)
  thread = threading.Thread(target=other)
  with first:
    thread.start()
    go.wait(5)
  gone.set()
  thread.join()
  assert seen == [True] and not Tensor.training

# ***** the campaign, a little of it *****

@pytest.mark.slow
def test_cold_processes_with_six_threads() -> None:
  campaign("--only", "cold", "--processes", "3", "--seed", str(SEED))

def test_reads_and_writes_of_own_and_shared_tensors() -> None:
  campaign("--only", "races", "--operations", "3000")

# ***** forks *****

SLOW = """
import importlib.abc, importlib.util, os, signal, sys, threading, time
import tinyhw
from tinyhw import Tensor
begun = threading.Event()
class Slow(importlib.abc.MetaPathFinder, importlib.abc.Loader):
  def find_spec(self, name, path, target=None):
    return importlib.util.spec_from_loader(name, self) if name == "tinyhw.slow" else None
  def create_module(self, spec): return None
  def exec_module(self, module):
    begun.set()
    time.sleep(0.3)
    module.answer = 42
sys.meta_path.insert(0, Slow())
threading.Thread(target=lambda: __import__("tinyhw.slow")).start()
begun.wait()
child = os.fork()
if child == 0:
  signal.alarm(20)
  import tinyhw.slow
  os._exit(0 if tinyhw.slow.answer == 42 and (Tensor([1, 2]) + 1).tolist() == [2, 3] else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
"""

BUSY = """
import os, signal, sys, threading
from tinyhw import Tensor
sys.setswitchinterval(1e-6)
done = False
def work(n):
  k = 0
  while not done:
    k += 1
    assert (Tensor([1.0] * (n + k % 40 + 1)) * 2).sum().item() == 2 * (n + k % 40 + 1)
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for t in threads: t.start()
wrong = 0
for k in range(8):
  child = os.fork()
  if child == 0:
    signal.alarm(60)
    x = Tensor([float(k)] * 7)
    os._exit(0 if (x * 3 + k).tolist() == [4.0 * k] * 7 else 1)
  wrong += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
done = True
for t in threads: t.join()
sys.exit(wrong)
"""

def run(program: str) -> int:
  environment = {**os.environ, "CACHE": "0", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
  return subprocess.run([sys.executable, "-c", program], env=environment, timeout=180).returncode

@needs_fork
def test_a_fork_waits_for_what_another_thread_imports() -> None: assert run(SLOW) == 0

class ChangingOnce(weakref.WeakSet):   # type: ignore[type-arg]
  """A set that another thread changes while it is iterated over for the first time."""
  changed = False
  def __iter__(self) -> Any:
    if not self.changed:
      self.changed = True
      raise RuntimeError("Set changed size during iteration")
    return super().__iter__()

def test_a_lock_that_is_registered_meanwhile_stops_no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
  small = threading.Lock()
  monkeypatch.setattr(threads, "_kept", ChangingOnce([small]))
  threads.hold_for_fork()
  assert small.locked(), "it is held until the fork is done"
  threads.release_after_fork()
  assert not small.locked()

@pytest.mark.host("a copied process has none of the GPUs of the one that it was copied from")
@needs_fork
def test_children_of_a_program_whose_threads_compute() -> None: assert run(BUSY) == 0

@needs_fork
def test_a_fork_gives_the_lock_and_the_switch_interval_back() -> None:
  before = sys.getswitchinterval()
  child = os.fork()
  if child == 0: os._exit(0 if lock.acquire(blocking=False) and sys.getswitchinterval() == before else 1)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
  assert sys.getswitchinterval() == before and not threads._forks
  in_thread(lambda: lock.acquire(timeout=5) and lock.release())

def test_imports_of_other_threads_are_seen() -> None:
  assert not threads.importing()   # this thread's own do not count

# ***** once *****

def test_a_result_is_made_once_for_equal_arguments() -> None:
  calls = []
  @once
  def made(x: int, y: int = 0) -> list[int]:
    """Return both arguments."""
    calls.append((x, y))
    return [x, y]
  assert made(1) is made(1) and made(1, y=2) is made(1, y=2) and made(1) is not made(2)
  assert calls == [(1, 0), (1, 2), (2, 0)]
  assert made.__doc__ == "Return both arguments." and made.__name__ == "made"

def test_a_call_that_raises_leaves_nothing() -> None:
  calls = []
  @once
  def made(x: int) -> int:
    calls.append(x)
    if len(calls) == 1: raise KeyboardInterrupt
    return x
  with pytest.raises(KeyboardInterrupt): made(3)
  assert made(3) == 3 and made(3) == 3 and calls == [3, 3]

def test_threads_that_make_a_value_at_the_same_time_go_on_with_the_same_one() -> None:
  inside = threading.Barrier(4, timeout=30)
  @once
  def made(x: int) -> object:
    inside.wait()  # all four are here before any has a result
    return object()
  found: list[object] = []
  threads = [threading.Thread(target=lambda: found.append(made(1))) for _ in range(4)]
  for thread in threads: thread.start()
  for thread in threads: thread.join()
  assert len(found) == 4 and all(x is found[0] and x is made(1) for x in found)
