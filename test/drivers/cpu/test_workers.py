"""The ring and its threads, for the loop in machine code and the loop in C.

Every chunk runs once, in order, and nothing waits for ever.
"""
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from host_kernels import OPENERS, Loaded, code, values

from tinyhw.autogen.cpu_ring import SERIAL_BITS
from tinyhw.config import Context
from tinyhw.device import Launch
from tinyhw.drivers.cpu import workers
from tinyhw.errors import ConfigError, DeviceError, DriverError

@pytest.fixture(params=list(OPENERS))
def kind(request: pytest.FixtureRequest) -> str: return str(request.param)

@pytest.fixture
def loaded(kind: str) -> Iterator[Loaded]:
  device = OPENERS[kind](3)
  yield Loaded(device)
  device.close()

def thread_count() -> int: return len(os.listdir("/proc/self/task"))

def settled_thread_count() -> int:
  """Return the count of threads, after the joined ones of earlier tests have ended."""
  for _ in range(200):
    if thread_count() == threading.active_count(): break
    time.sleep(0.005)
  return thread_count()

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc")

@pytest.mark.parametrize("grid", [0, 1, 2, 3, 7, 8, 9, 31, 1000, 12345])
@pytest.mark.parametrize("threads", range(1, 9))
def test_split_covers_the_grid(grid: int, threads: int) -> None:
  chunks, size = workers.split(grid, threads)
  assert 1 <= chunks <= max(1, 2 * (threads * workers.CHUNKS_PER_THREAD) ** 2)
  assert (chunks - 1) * size < max(grid, 1) and chunks * size >= grid
  assert chunks == 1 or chunks >= min(grid, threads), "no thread is left out"

@pytest.mark.parametrize("threads", range(2, 9))
def test_threads_have_equal_shares(threads: int) -> None:
  """Nothing is known of the threads' speeds. The busiest has a few hundredths more than its share, or one work item."""
  for grid in range(threads, 80 * threads):
    chunks, size = workers.split(grid, threads)
    assert -(-chunks // threads) * size <= max(1.07 * grid / threads, -(-grid // threads))
  assert workers.split(42, 2) == (14, 3) and workers.split(40, 2) == (8, 5) and workers.split(34, 2) == (34, 1)

@pytest.mark.parametrize("threads", range(1, 9))
def test_each_work_item_once(kind: str, threads: int) -> None:
  loaded = Loaded(OPENERS[kind](threads))
  for grid in (0, 1, 2, threads, 97, 1000):
    memory = loaded.zeros(1000)
    for _ in range(20): loaded.device.submit([Launch(loaded["add"], (memory,), (3,), grid)])
    assert values(memory, 1000) == [60] * grid + [0] * (1000 - grid)
  loaded.device.close()

def test_chunks_are_disjoint_and_whole(loaded: Loaded) -> None:
  ranges, counter = loaded.zeros(256), loaded.zeros(1)
  loaded.device.submit([Launch(loaded["ranges"], (ranges, counter), (), 100)])
  chunks = values(counter, 1)[0]
  found = values(ranges, 256)
  count, size = workers.split(100, loaded.device.ring.threads)
  assert sorted(zip(found[0:2 * chunks:2], found[1:2 * chunks:2], strict=True)) == [
    (size * i, min(size * i + size, 100)) for i in range(count)]

def test_small_launches_have_one_chunk(loaded: Loaded) -> None:
  ranges, counter = loaded.zeros(64), loaded.zeros(1)
  loaded.device.submit([Launch(loaded["ranges"], (ranges, counter), (), 100, small=True)])
  assert values(counter, 1) == [1] and values(ranges, 2) == [0, 100] and not loaded.device.ring.handles

def test_packets_run_in_order(loaded: Loaded) -> None:
  """Run 700 packets, which do not fit into the ring at once. Some have several chunks, whose appends must not mix with
  those of adjacent packets."""
  log, memory = loaded.zeros(1 << 14), loaded.zeros(64)
  launches = []
  for i in range(700):
    grid = random.Random(i).choice((1, 1, 2, 12))
    launches += [Launch(loaded["append"], (log,), (i,), grid), Launch(loaded["add"], (memory,), (1,), 64)]
  loaded.device.submit(launches)
  found = values(log, 1 << 14)
  assert found[1:1 + found[0]] == sorted(found[1:1 + found[0]]) and set(found[1:1 + found[0]]) == set(range(700))
  assert values(memory, 64) == [700] * 64

def test_ten_thousand_launches(loaded: Loaded) -> None:
  memory = loaded.zeros(1)
  before = loaded.device.ring.timeline
  for i in range(10_000): loaded.device.submit([Launch(loaded["add"], (memory,), (i,))])
  assert values(memory, 1) == [sum(range(10_000))]
  assert loaded.device.ring.timeline == before + 10_000 and not loaded.device.ring.handles

def test_serial_numbers_wrap(loaded: Loaded) -> None:
  near_the_end = (1 << SERIAL_BITS) - 5
  loaded.device.ring._set(0x40, near_the_end)      # PUBLISHED
  loaded.device.ring._set(0x80, near_the_end << 24)  # STATE
  memory = loaded.zeros(50)
  for _ in range(20): loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 50)])
  assert values(memory, 50) == [20] * 50 and loaded.device.ring.read("PUBLISHED") == 15

def test_no_wake_up_is_lost(kind: str) -> None:
  """Pause for about the time that threads spin before they sleep.

  A lost wake-up of the caller would show as its 2 ms time limit, many times.
  """
  loaded = Loaded(OPENERS[kind](4))
  memory, rng = loaded.zeros(40), random.Random(1)
  for _ in range(600):
    until = time.perf_counter() + rng.choice((0, 0, 20e-6, 45e-6, 60e-6, 300e-6))
    while time.perf_counter() < until: pass
    loaded.device.submit([Launch(loaded["slow"], (memory, ), (rng.choice((1, 50, 2000)),), rng.choice((2, 5, 40)))])
  memory = loaded.zeros(40)
  for _ in range(200): loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 40)])
  assert values(memory, 40) == [200] * 40
  loaded.device.close()

def test_the_caller_sleeps_while_others_work(loaded: Loaded) -> None:
  """Run two long chunks on three threads. Each thread must return, also the caller if it was not the last to finish."""
  memory = loaded.zeros(2)
  for _ in range(20): loaded.device.submit([Launch(loaded["slow"], (memory,), (30_000,), 2)])
  assert values(memory, 2) == [20, 20] and loaded.device.ring.read("CALLER_SLEEPS") == 0

def test_sleeping_threads_do_not_burn_a_core(loaded: Loaded) -> None:
  memory = loaded.zeros(64)
  loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 64)])
  time.sleep(0.05)
  before = time.process_time()
  time.sleep(0.2)
  assert time.process_time() - before < 0.05 and loaded.device.ring.read("SLEEPERS") == 2

def test_threads_that_python_has_submit_at_once(loaded: Loaded) -> None:
  memories = [loaded.zeros(100) for _ in range(4)]
  program = loaded["add"]
  def work(memory: object, step: int) -> None:
    recording = loaded.device.record([Launch(program, (memory,), (1,), 100)] * 3)
    for _ in range(100):
      loaded.device.submit([Launch(program, (memory,), (step,), 100)])
      recording.submit()
  threads = [threading.Thread(target=work, args=(memory, i)) for i, memory in enumerate(memories)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert [values(memory, 100) for memory in memories] == [[100 * i + 300] * 100 for i in range(4)]

@needs_proc
def test_threads_start_when_needed_and_end_with_the_device(kind: str) -> None:
  before = settled_thread_count()
  loaded = Loaded(OPENERS[kind](5))
  memory = loaded.zeros(64)
  loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 1)])
  assert thread_count() == before
  loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 64)])
  assert thread_count() == before + 4
  loaded.device.rest()
  assert thread_count() == before
  loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 64)])
  assert thread_count() == before + 4
  loaded.device.close()
  assert thread_count() == before

@needs_proc
def test_reopening_leaks_nothing(kind: str) -> None:
  def mappings() -> int:
    with open("/proc/self/maps") as file: return len(file.readlines())
  program = None
  for i in range(60):
    if i == 10: before, threads = mappings(), settled_thread_count()
    loaded = Loaded(OPENERS[kind](2))
    memory = loaded.zeros(64)
    program = loaded["add"]
    loaded.device.submit([Launch(program, (memory,), (1,), 64)])
    loaded.device.allocator.free(memory)
    loaded.device.close()
    del loaded, memory, program
  assert mappings() <= before + 4 and thread_count() == threads

def test_a_closed_device_says_so(kind: str) -> None:
  loaded = Loaded(OPENERS[kind](2))
  memory = loaded.zeros(64)
  recording = loaded.device.record([Launch(loaded["add"], (memory,), (1,), 64)])
  loaded.device.close()
  with pytest.raises(DeviceError, match="device is closed"): recording.submit()
  with pytest.raises(DeviceError, match="device is closed"):
    loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 64)])

@pytest.mark.parametrize("error", (OSError, OverflowError, MemoryError))
def test_no_memory_for_scratch(loaded: Loaded, monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
  def refuse(size: int) -> None: raise error("no memory")
  monkeypatch.setattr("tinyhw.drivers.cpu.workers.map_aligned", refuse)
  ring = loaded.device.ring
  with pytest.raises(DriverError, match="scratch memory of .* bytes each: no memory"):
    ring.reserve_scratch(ring.scratch_bytes + 1)

def test_scratch_is_private_and_aligned(loaded: Loaded) -> None:
  loaded.device.ring.reserve_scratch(10_000)
  where = loaded.zeros(1000)
  for _ in range(20): loaded.device.submit([Launch(loaded["scratch"], (where,), (), 1000)])
  found = sorted(set(values(where, 1000)) - {0})
  assert all(address % 64 == 0 for address in found) and all(b - a >= 10_000
                                                             for a, b in zip(found, found[1:], strict=False))
  assert len(found) <= 3

FORK = """
import os, sys, warnings
warnings.simplefilter("error")
from host_kernels import OPENERS, Loaded, code, values
from tinyhw.device import Launch
loaded = Loaded(OPENERS[sys.argv[1]](3))
memory = loaded.zeros(100)
def work(): loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 100)])
work()
child = os.fork()
for _ in range(50): work()
assert values(memory, 100) == [51] * 100, values(memory, 100)
if child == 0: sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print("both")
"""

def run_python(program: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
  path = os.pathsep.join([os.getcwd(), os.path.dirname(sys.modules["host_kernels"].__file__ or "")])
  return subprocess.run([sys.executable, "-X", "dev", "-c", program, *arguments],
                        env={**os.environ, "PYTHONPATH": path}, capture_output=True,
                        text=True, timeout=60)

@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_after_use(loaded: Loaded, kind: str) -> None:
  done = run_python(FORK, kind)
  assert (done.stdout, done.returncode) == ("both\n", 0), done.stderr

def test_exit_with_running_threads_is_clean(loaded: Loaded, kind: str) -> None:
  done = run_python("import sys\nfrom host_kernels import *\nfrom tinyhw.device import Launch\nloaded = "
                    "Loaded(OPENERS[sys.argv[1]](4))\n"
                    "loaded.device.submit([Launch(loaded['add'], (loaded.zeros(64),), (1,), 64)])\nprint('end')", kind)
  assert (done.stdout, done.returncode) == ("end\n", 0) and "Error" not in done.stderr, done.stderr

@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_interrupt_during_a_kernel(loaded: Loaded) -> None:
  memory = loaded.zeros(64)
  turns = 1000
  while True:  # long enough to be interrupted, on any machine
    start = time.perf_counter()
    loaded.device.submit([Launch(loaded["slow"], (memory,), (turns,), 64)])
    if time.perf_counter() - start > 0.05: break
    turns *= 2
  is_near = False
  def interrupt(number: int, frame: object) -> None:
    if is_near: raise KeyboardInterrupt
    signal.setitimer(signal.ITIMER_REAL, 0.01)    # a busy machine: the launch is still ahead
  before = signal.signal(signal.SIGALRM, interrupt)
  memory = loaded.zeros(64)
  try:
    with pytest.raises(KeyboardInterrupt):
      signal.setitimer(signal.ITIMER_REAL, 0.01)
      is_near = True
      loaded.device.submit([Launch(loaded["slow"], (memory,), (turns,), 64)])
      time.sleep(1)
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
  assert values(memory, 64) == [1] * 64, "what was submitted is done"
  loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 64)])
  assert values(memory, 64) == [2] * 64

@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
# an interrupt inside of a garbage collection callback of hypothesis
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("other", (False, True), ids=("alone", "beside a thread that gets the signals"))
def test_interrupts_at_any_moment(loaded: Loaded, other: bool) -> None:
  """A signal handler raises, again and again, between any two lines of the driver. The driver stays usable and counts
  correctly."""
  end = threading.Event()
  thread = threading.Thread(target=end.wait)
  if other: thread.start()
  memory, interrupts = loaded.zeros(64), 0
  program, nothing = loaded["add"], code("nothing", loaded.device.arch)
  kept = []  # an interrupt in a finalizer would be swallowed
  def interrupt(number: int, frame: object) -> None: raise KeyboardInterrupt
  before = signal.signal(signal.SIGALRM, interrupt)
  try:
    for i in range(300):
      try:
        signal.setitimer(signal.ITIMER_REAL, 20e-6 + i * 1e-6)
        if other or i % 10 == 0: loaded.device.rest()
        for _ in range(100):
          loaded.device.submit([Launch(program, (memory,), (1,), 64)])
          kept.append(loaded.device.load(nothing))
        signal.setitimer(signal.ITIMER_REAL, 0)
      except KeyboardInterrupt: interrupts += 1
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    end.set()
    if other: thread.join()
  found = values(memory, 64)
  assert interrupts > 100 and len(set(found)) == 1
  loaded.device.submit([Launch(program, (memory,), (1,), 64)])
  assert values(memory, 64) == [found[0] + 1] * 64

@needs_proc
@pytest.mark.parametrize("name", ("start", "join"))
def test_an_interrupt_right_behind_a_thread_s_start_or_end(loaded: Loaded, monkeypatch: pytest.MonkeyPatch,
                                                           name: str) -> None:
  """No thread is forgotten, started twice or joined twice."""
  ring, memory, before = loaded.device.ring, loaded.zeros(64), settled_thread_count()
  real, calls = getattr(ring.system, name), []
  def interrupted(*arguments: object) -> object:
    result = real(*arguments)
    calls.append(arguments[0])
    if len(calls) == 2: raise KeyboardInterrupt
    return result
  with monkeypatch.context() as patch:
    patch.setattr(ring.system, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
      loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 64)])
      loaded.device.rest()
  assert not ring.handles
  for _ in range(200):
    if thread_count() == before: break
    time.sleep(0.005)
  assert thread_count() == before
  first = values(memory, 64)[0]
  for _ in range(20): loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 64)])
  assert values(memory, 64) == [first + 20] * 64 and len(ring.handles) == ring.threads - 1

def test_a_refused_thread_is_an_error(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(loaded.device.ring.system, "start", lambda thread, routine,
                      argument: "Resource temporarily unavailable")
  with pytest.raises(DriverError, match="starting a thread: Resource temporarily unavailable; raise the limit on "
                     "processes"):
    loaded.device.submit([Launch(loaded["add"], (loaded.zeros(64),), (1,), 64)])

def test_some_refused_threads_are_not(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
  real, asked = loaded.device.ring.system.start, []
  def start(thread: workers.NativeThread, routine: int, argument: int) -> str:
    asked.append(argument)
    return str(real(thread, routine, argument)) if len(asked) == 1 else "no"
  monkeypatch.setattr(loaded.device.ring.system, "start", start)
  memory = loaded.zeros(64)
  loaded.device.submit([Launch(loaded["add"], (memory,), (1,), 64)])
  assert values(memory, 64) == [1] * 64 and len(loaded.device.ring.handles) == 1

def test_threads_variable() -> None:
  with Context(THREADS=5): assert workers.available_threads() == 5
  with Context(THREADS=-3), pytest.raises(ConfigError, match="THREADS=-3 is no number of threads"):
    workers.available_threads()
  with Context(THREADS=0): assert 1 <= workers.available_threads() <= (os.cpu_count() or 1)
