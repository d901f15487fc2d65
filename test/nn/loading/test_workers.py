"""nn/loading/workers.py: workers that raise, die, hang, are interrupted, or lose their parent."""
from __future__ import annotations
import multiprocessing
import os
from pathlib import Path
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tinyhw.errors import ArgumentError, DatasetError
from tinyhw.nn.loading.loader import DataLoader
from tinyhw.nn.loading.sets import Dataset
from tinyhw.nn.loading.workers import get_worker_info

ROOT = Path(__file__).resolve().parents[3]

class TwoArguments(Exception):
  def __init__(self, a: str, b: str): super().__init__(a, b)

class Failing(Dataset[Any]):
  """Item 5 does something bad."""
  def __init__(self, how: str): self.how = how
  def __len__(self) -> int: return 20

  def __getitem__(self, index: int) -> Any:
    if index != 5: return index
    match self.how:
      case "key": raise KeyError("five")
      case "two": raise TwoArguments("five", "six")
      case "exit": os._exit(3)
      case "kill": os.kill(os.getpid(), signal.SIGKILL)
      case "hang": time.sleep(60)
      case "pickle": return lambda: None

def one(items: list[Any]) -> Any: return items[0]

@pytest.mark.parametrize("how, kind, match", [
  ("key", KeyError, "KeyError: 'five'"), ("two", DatasetError, "TwoArguments"),
  ("exit", DatasetError, "ended with exit code 3"), ("kill", DatasetError, "ended by signal 9"),
  ("hang", DatasetError, "no batch within 1"), ("pickle", DatasetError, "number 1, raised this")])
def test_a_worker_fails(how: str, kind: type[Exception], match: str) -> None:
  with pytest.raises(kind, match=match):
    list(DataLoader(Failing(how), collate_fn=one, num_workers=2, timeout=1 if how == "hang" else 30))
  assert not multiprocessing.active_children()

def test_worker_init_fn_fails() -> None:
  def begin(number: int) -> None: raise ArgumentError(f"not {number}")
  with pytest.raises(ArgumentError, match="not 0"): list(DataLoader(Failing(""), num_workers=1, worker_init_fn=begin))
  assert get_worker_info() is None

PROGRAM = """
import os, time
from tinyhw.nn.loading.loader import DataLoader
class Slow:
  def __len__(self): return 99
  def __getitem__(self, index):
    if index > 3: time.sleep(60)
    return os.getpid()
if __name__ == "__main__":
  for pid in DataLoader(Slow(), batch_size=None, num_workers=2): print(pid, flush=True)
"""

def alive(pid: int) -> bool:
  """Is a process there, and no zombie?"""
  try: return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
  except FileNotFoundError: return False

@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc for processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_no_process_stays(how: signal.Signals, tmp_path: Path) -> None:
  """An interrupt reaches all processes of the terminal's group; the others only the parent."""
  (tmp_path / "program.py").write_text(PROGRAM)
  parent = subprocess.Popen([sys.executable, str(tmp_path / "program.py")], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True,
                            env={**os.environ, "PYTHONPATH": str(ROOT)})
  assert parent.stdout is not None
  pids = {int(parent.stdout.readline()) for _ in range(4)}
  assert len(pids) == 2
  (os.killpg if how == signal.SIGINT else os.kill)(parent.pid, how)
  error = parent.communicate(timeout=30)[1]
  until = time.monotonic() + 30
  while any(map(alive, pids)) and time.monotonic() < until: time.sleep(0.05)
  assert not any(map(alive, pids)) and parent.returncode != 0
  assert "KeyboardInterrupt" in error or how != signal.SIGINT
