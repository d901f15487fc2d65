"""Threads and interrupts at scale: what docs/guide/threads.md promises, tried from cold processes with the shortest
switch interval.

    python3 test/campaigns/threads.py    # a sample
    python3 test/campaigns/threads.py --processes 200 --operations 1000000 --interrupts 20000    # all, as .ci/nightly

cold: processes without a disk cache, in each six threads that run programs of all public families at once, from the
first kernel on. Each program knows its result (threads_families.py). races: reads and writes of tensors, own ones and
shared ones, while another thread captures and replays TinyJits. interrupts: at distinct bytecodes of first compile,
write, capture and replay (interrupts.py). Prints a line for each part; the exit status is 1 if anything was wrong.
--seed moves the sample on.
"""
from __future__ import annotations
import argparse
import faulthandler
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

THREADS = 6
SWITCH_SECONDS = 1e-6
LONGEST_SECONDS = {"cold": 600, "races": 1800, "interrupts": 7200}      # of a process: then it hangs

def together(works: list[Callable[[], None]]) -> list[str]:
  """Run each in a thread of its own, all from one moment on. What went wrong."""
  errors: list[str] = []
  start = threading.Barrier(len(works))
  def run(work: Callable[[], None]) -> None:
    start.wait()
    try: work()
    # whatever it is, it counts
    except BaseException as error: errors.append(f"{type(error).__name__}: {error}"[:400])  # noqa: BLE001
  threads = [threading.Thread(target=run, args=(work,)) for work in works]
  for thread in threads: thread.start()
  for thread in threads: thread.join()
  return errors

# ***** one process each *****

def cold(seed: int) -> list[str]:
  """Six threads, each with programs of some families, in another order and with other sizes."""
  from threads_families import FAMILIES
  def work(n: int) -> None:
    chosen = random.Random(seed * THREADS + n).sample(FAMILIES, 4)
    for family in chosen:
      found, expected = family(n)
      assert found == expected, f"{family.__name__}({n}): {found!r} is not {expected!r}"
  # a default of a lambda has no type
  return together([lambda n=n: work(n) for n in range(THREADS)])  # type: ignore[misc]

class Races:
  """Threads that read and write until `count` operations are done: own tensors, a shared one, one under a lock; and
  TinyJits beside."""
  def __init__(self, count: int):
    from tinyhw import Tensor, TinyJit
    self.Tensor, self.TinyJit = Tensor, TinyJit
    self.each = max(count // (THREADS - 1), 2)
    self.working = THREADS - 1
    self.shared = Tensor([0, 0, 0]).realize()
    self.locked = Tensor([0, 0]).realize()
    self.lock = threading.Lock()
    self.writes = 0

  def own(self) -> None:
    t = self.Tensor([0, 1]).realize()
    for k in range(1, self.each // 2 + 1):
      t += 1
      assert (found := t.tolist()) == [k, k + 1], f"own tensor: {found}, not {[k, k + 1]}"

  def common(self) -> None:
    """No lock: each `+=` counts, and a read is of one state."""
    last = 0
    for _ in range(self.each // 2):
      self.shared += 1
      found = self.shared.tolist()
      assert found[0] == found[1] == found[2] and found[0] > last, f"shared tensor: {found} after {last}"
      last = found[0]
    with self.lock: self.writes += self.each // 2

  def later(self) -> None:
    """Expressed under a lock, read without it: the value is that of the moment when it was expressed."""
    for _ in range(self.each // 3):
      with self.lock:
        now = self.locked.tolist()
        value = self.locked * 10
        self.locked += 1
      assert (found := value.tolist()) == [10 * v for v in now], f"expressed at {now}: {found}"

  def jits(self) -> None:
    while self.working > 1:
      w, x = self.Tensor([1.0, 2.0]).realize(), self.Tensor([1.0, 1.0]).realize()
      @self.TinyJit
      def step(x: Any, w: Any = w) -> Any:
        w.assign(w + x)
        return (w * 2).realize()
      for k in range(6):
        assert (found := step(x).tolist()) == [4.0 + 2 * k, 6.0 + 2 * k], f"replay {k}: {found}"

  def run(self) -> list[str]:
    def counted(work: Callable[[], None]) -> Callable[[], None]:
      def run() -> None:
        try: work()
        finally:
          with self.lock: self.working -= 1
      return run
    errors = together([counted(work) for work in (self.own, self.own, self.common, self.common,
                                                  self.later)][:THREADS - 1] + [self._jits_until_done])
    if not errors and self.shared.tolist() != [self.writes] * 3:
      errors.append(f"{self.writes} writes of a shared tensor: {self.shared.tolist()}")
    return errors

  def _jits_until_done(self) -> None:
    self.working += 1
    self.jits()

def races(count: int) -> list[str]: return Races(count).run()

def interrupts(number: int) -> list[str]:
  """Interrupts at up to `number` % 1,000,000 places; the rest of the number is the seed.

  The places go to the file PLACES.
  """
  from interrupts import interrupted
  places, errors = interrupted(number % 1_000_000, number // 1_000_000)
  with open(os.environ["PLACES"], "a", encoding="utf-8") as file: file.writelines(f"{place}\n" for place in places)
  return errors

PARTS: dict[str, Callable[[int], list[str]]] = {"cold": cold, "races": races, "interrupts": interrupts}
# Where to interrupt, one process after the other until enough different bytecodes were met: each adds a compiler, or a
# driver, of its own.
MACHINES = ({"DEV": "CPU"}, {"DEV": "CPU", "ARCH": "x86_64:avx2"}, {"DEV": "AMD", "EMULATE": "gfx1100"},
            {"DEV": "NV", "EMULATE": "sm_90"},
            {"DEV": "PYTHON"}, {"DEV": "CLANG"})

# ***** many processes *****

def process(part: str, number: int, **more: str) -> list[str]:
  """One part in a process of its own. What went wrong there."""
  environment = {**os.environ, "CACHE": "0", "PYTHONPATH": str(ROOT), **more}
  done = subprocess.run([sys.executable, __file__, "--part", part, "--number", str(number)], env=environment,
                        capture_output=True, text=True)
  lines = done.stdout.splitlines()
  return (lines if done.returncode in (0, 1) and (lines or not done.returncode)
          else [*lines, f"status {done.returncode}: {done.stderr[-2000:]}"])

def in_process(part: str, number: int) -> int:
  faulthandler.dump_traceback_later(LONGEST_SECONDS[part], exit=True)
  if part != "interrupts": sys.setswitchinterval(SWITCH_SECONDS)
  errors = PARTS[part](number)
  for error in errors: print(error)
  faulthandler.cancel_dump_traceback_later()
  return int(bool(errors))

def interrupt(wanted: int, seed: int) -> tuple[int, list[str]]:
  """Interrupts at so many different bytecodes, if the machines have so many: (how many there were, what went wrong)."""
  met: set[str] = set()
  errors: list[str] = []
  machines = MACHINES if wanted > 5000 else (MACHINES[seed % len(MACHINES)],)
  for machine in machines:
    with tempfile.TemporaryDirectory() as folder:
      path = os.path.join(folder, "places")
      open(path, "w", encoding="utf-8").close()
      found = process("interrupts", seed * 1_000_000 + wanted - len(met), PLACES=path, **machine)
      errors += [f"interrupts, {machine}, seed {seed}: {error}" for error in found]
      with open(path, encoding="utf-8") as file: met.update(file)
    if len(met) >= wanted: break
  return len(met), errors

def campaign(processes: int, operations: int, wanted: int, seed: int) -> list[str]:
  """All parts; prints what each did."""
  errors: list[str] = []
  for k in range(processes): errors += [f"cold, seed {seed + k}: {error}" for error in process("cold", seed + k)]
  if processes: print(f"cold: {processes} processes with {THREADS} threads, {len(errors)} errors", flush=True)
  before, done = len(errors), 0
  while done < operations:
    count = min(operations - done, 100_000)
    errors += [f"races: {error}" for error in process("races", count)]
    done += count
  if operations: print(f"races: {done} reads and writes, {len(errors) - before} errors", flush=True)
  if wanted:
    met, found = interrupt(wanted, seed)
    print(f"interrupts: at {met} different bytecodes, {len(found)} errors", flush=True)
    errors += found
  return errors

def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--processes", type=int, default=4, help="cold processes")
  parser.add_argument("--operations", type=int, default=2000, help="reads and writes")
  parser.add_argument("--interrupts", type=int, default=100, help="bytecodes at which to interrupt")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--only", choices=PARTS, help="this part alone")
  parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
  parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
  given = parser.parse_args()
  if given.part: return in_process(given.part, given.number)
  wanted = PARTS if given.only is None else {given.only: None}
  errors = campaign(given.processes * ("cold" in wanted), given.operations * ("races" in wanted),
                    given.interrupts * ("interrupts" in wanted), given.seed)
  for error in errors: print(error)
  return int(bool(errors))

if __name__ == "__main__": sys.exit(main())
