"""Tasks in forked processes: all results arrive, and what goes wrong in a child is left to the caller."""
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tinyhw.config import EMULATE, Context
from tinyhw.engine.run import parallel
from tinyhw.engine.run.parallel import MOST_TASKS, processes_for, results

if not hasattr(os, "fork"): pytest.skip("this system has no forks", allow_module_level=True)

if EMULATE: pytest.skip("a GPU belongs to the process that opened it", allow_module_level=True)

HERE = os.getpid()

def open_files() -> list[str]: return sorted(os.listdir("/proc/self/fd"))

def children() -> set[str]:
  """Return the children of this process; nothing where the system does not tell."""
  found: set[str] = set()
  for path in Path("/proc/self/task").glob("*/children"): found.update(path.read_text().split())
  return found

@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
  before, others = open_files(), children()
  yield
  assert open_files() == before and children() <= others

def in_child(act: Callable[[], Any]) -> Callable[[int], int]:
  """A task that does something else in children. The parent waits until they have taken one, and then does its own."""
  def work(k: int) -> int:
    if os.getpid() != HERE: act()
    else: time.sleep(0.01)
    return k * k
  return work

@pytest.mark.parametrize("tasks, processes", [(0, 2), (1, 2), (7, 1), (100, 3), (1000, 2)])
def test_each_task_is_done_once(tasks: int, processes: int) -> None:
  assert results(lambda k: (k * k, os.getpid()), tasks, processes).keys() == set(range(tasks))
  assert all(found == k * k for k, (found, _) in results(lambda k: (k * k, os.getpid()), tasks, processes).items())

def test_children_do_a_part() -> None:
  found = results(lambda k: (time.sleep(0.005), os.getpid())[1], 60, 3)
  assert len(found) == 60 and len(set(found.values())) == 3 and HERE in found.values()

def test_tasks_that_fail_are_left_out() -> None:
  def work(k: int) -> int:
    if k % 3 == 0: raise ValueError(k)
    return k
  assert sorted(results(work, 20, 2)) == [k for k in range(20) if k % 3]

@pytest.mark.parametrize("act", [
  lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: os._exit(3), lambda: sys.exit(3),
  lambda: (_ for _ in ()).throw(KeyboardInterrupt)], ids=["killed", "ends", "exits", "interrupted"])
def test_a_child_that_ends_takes_its_tasks_along(act: Callable[[], Any]) -> None:
  found = results(in_child(act), 30, 3)
  assert 25 < len(found) < 30 and all(found[k] == k * k for k in found)

def test_a_result_that_cannot_be_sent() -> None:
  def work(k: int) -> object:
    time.sleep(0.01)
    return k if os.getpid() == HERE else lambda: k
  found = results(work, 20, 2)
  assert 0 < len(found) < 20 and all(found[k] == k for k in found)

def test_a_large_result_arrives() -> None:
  found = results(lambda k: bytes([k]) * (1 << 20), 12, 3)
  assert all(found[k] == bytes([k]) * (1 << 20) for k in range(12))

def test_a_child_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(parallel, "PATIENCE_S", 0.05)
  found = results(in_child(lambda: time.sleep(600)), 30, 2)
  assert len(found) == 29

def test_without_forks_the_caller_does_everything(monkeypatch: pytest.MonkeyPatch) -> None:
  def refused() -> int: raise OSError("no memory")
  monkeypatch.setattr(os, "fork", refused)
  assert results(lambda k: k, 9, 4) == {k: k for k in range(9)}

def test_more_tasks_than_a_pipe_takes() -> None:
  found = results(lambda k: k, MOST_TASKS + 10, 1)
  assert 1000 < len(found) <= MOST_TASKS and all(k == v for k, v in found.items())

def test_an_interrupt_ends_the_children() -> None:
  def work(k: int) -> int:
    if os.getpid() != HERE: time.sleep(600)
    raise KeyboardInterrupt
  with pytest.raises(KeyboardInterrupt): results(work, 9, 3)

def test_the_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(threading, "active_count", lambda: 1)
  monkeypatch.setattr(parallel, "are_all_of_the_host", lambda: True)
  monkeypatch.setattr(parallel, "available_cores", lambda: 40)
  monkeypatch.setattr(sys, "platform", "linux")
  with Context(PARALLEL=-1): assert [processes_for(n) for n in (0, 5, 6, 30, 1000)] == [1, 1, 2, 10, 16]
  for value, wanted in ((0, 1), (1, 1), (3, 3)):
    with Context(PARALLEL=value): assert processes_for(100) == wanted
  with Context(PARALLEL=4):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert processes_for(100) == 1
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert processes_for(100) == 1, "another thread may hold a lock"
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(parallel, "are_all_of_the_host", lambda: False)
    assert processes_for(100) == 1, "a GPU is open"

ORPHANS = """
import os, signal, sys, time
from tinyhw.engine.run.parallel import results
here = os.getpid()
def work(k):
  if os.getpid() != here:
    print(os.getpid(), flush=True)
    return bytes(1 << 20)
  time.sleep(1)
  os.kill(here, signal.SIGKILL)
results(work, 2, 2)
"""

def test_a_child_ends_when_its_parent_is_killed() -> None:
  """It is about to send more than a pipe holds."""
  done = subprocess.run([sys.executable, "-c", ORPHANS], capture_output=True, text=True, timeout=60,
                        env={"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": ""})
  assert done.returncode == -signal.SIGKILL and done.stdout
  child = Path("/proc") / done.stdout.split()[0]
  for _ in range(200):
    if not child.exists() or "\nState:\tZ" in (child / "status").read_text(): return
    time.sleep(0.02)
  os.kill(int(child.name), signal.SIGKILL)
  pytest.fail("the child waits for ever")

PROGRAM = """
import os, sys
from tinyhw import Tensor
from tinyhw.engine.run import compile, parallel
made, forks = [], 0
one, fork = compile._compile, os.fork
def counted(sink, *rest):
  made.append(sink)
  return one(sink, *rest)
def forked():
  global forks
  forks += 1
  return fork()
compile._compile, os.fork = counted, forked
x = Tensor.arange(40.0).realize()
parts = [(x * k).contiguous().reshape(k, 40 // k).sum(1).contiguous().exp2().contiguous() for k in (1, 2, 4, 5, 8, 10)]
found = Tensor.cat(*[p.log2() + 1 for p in parts]).tolist()
print(forks, len(made), [round(v, 3) for v in found])
"""

def test_a_program_gives_the_same_with_one_process_and_with_several(tmp_path: Path) -> None:
  def run(processes: int, cache: str) -> list[str]:
    environment = {"PARALLEL": str(processes), "CACHEDIR": cache, "PYTHONPATH": str(Path(__file__).parents[3]),
                   "PATH": "", "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300)
    assert not done.returncode and not done.stderr, done.stderr
    return done.stdout.split(maxsplit=2)
  alone, several, again = run(1, str(tmp_path / "a")), run(3, str(tmp_path / "b")), run(3, str(tmp_path / "b"))
  assert alone[2] == several[2] == again[2]
  assert alone[0] == "0" and several[0] == "2" and int(several[1]) < int(alone[1]), "children compiled a part"
  assert again[:2] == ["0", "0"], "what children made is in the disk cache"
