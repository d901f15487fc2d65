"""Libraries that take turns, each in a process of its own, so that a machine's drift meets all alike and none runs
beside another's threads.

In one process, the threads of PyTorch and of NumPy's BLAS spin for a while after each call and keep cores from whoever
comes next: the time of a short call was then mostly that of the neighbour. Here all but one process wait for a line on
standard input, and each turn begins after a rest.
"""
from __future__ import annotations
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

Run = Callable[[], object]

ROUNDS = 3        # turns of each library for one workload
REST = 0.25       # seconds before each turn: longer than any library's threads spin
# glibc: freed memory is used again, never given back
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
WARM_UP = 2       # calls of a turn that are not counted
LEAST_CALLS = 3   # counted ones

def serve(prepare: Callable[[str], Run | None]) -> None:
  """A library's process: for each `[workload, seconds]` on standard input, answer with the times of its calls.
  prepare: None for what it lacks."""
  answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
  os.dup2(2, 1)   # what libraries print must not be taken for an answer
  prepared, run = "", None
  for line in sys.stdin:
    workload, seconds = json.loads(line)
    if workload != prepared: prepared, run = workload, prepare(workload)
    times: list[float] = []
    if run is not None:
      end = time.perf_counter() + seconds
      while len(times) < WARM_UP + LEAST_CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    answers.write(json.dumps(times) + "\n")
    answers.flush()

class Library:
  """A library's process, as the one that asks sees it: `script --serve name`."""
  def __init__(self, script: str, name: str) -> None:
    self.name = name
    self.process = subprocess.Popen([sys.executable, script, "--serve", name], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True,
                                    env={**os.environ, **KEEP_MEMORY})

  def turn(self, workload: str, seconds: float) -> list[float]:
    """The times of all calls of one turn. Raises RuntimeError when the process has died."""
    assert self.process.stdin is not None and self.process.stdout is not None
    time.sleep(REST)
    self.process.stdin.write(json.dumps([workload, seconds]) + "\n")
    self.process.stdin.flush()
    answer = self.process.stdout.readline()
    if not answer: raise RuntimeError(f"the process of {self.name} ended during {workload}")
    return list(json.loads(answer))

  def close(self) -> None:
    if self.process.stdin is not None: self.process.stdin.close()
    self.process.wait()

def take_turns(libraries: Sequence[Library], workload: str, seconds: float) -> dict[str, list[float]]:
  """Counted times by library; seconds: of each library, in all. Libraries that lack the workload are left out."""
  times: dict[str, list[float]] = {library.name: [] for library in libraries}
  for _ in range(ROUNDS):
    for library in libraries: times[library.name] += library.turn(workload, seconds / ROUNDS)[WARM_UP:]
  return {name: found for name, found in times.items() if found}

def medians(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
  return {name: statistics.median(found) for name, found in times.items()}
