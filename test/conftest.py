"""Setup of all tests: random tests that are the same in every run, a cache of their own, machine code that is
checked, engines; the tensor suite.

`--suite tensor` takes the files of suite.py only, `--share N` one test of N of them. `--slow N` takes one of N of the
tests marked slow. `--changed`, `--layer` and `--fast` take those of scope.py.
"""
import gc
import mmap
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import tinyhw.emulator as emulator
from test import suite
from test.helpers import ENGINES, keeps_host_memory, on, takes_foreign_memory
from test.house import scope
from tinyhw.config import CACHEDIR, CHECK, DEV, EMULATE, PARALLEL
from tinyhw.device import Device
from tinyhw.drivers.cpu import CPUDevice

# A shell lets what it starts in the background ignore Ctrl-C, and so would all that starts there; tests interrupt
# themselves and their programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN: signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("tinyhw", derandomize=True, deadline=None, database=None)
# pytest --hypothesis-profile=nightly
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=5000, print_blob=True)
hypothesis.settings.load_profile("tinyhw")

@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
  """Tests and what they start, other libraries and browsers too, leave the user's folders alone: theirs are in the
  temporary folder of this run."""
  os.environ["no_proxy"] = "127.0.0.1"  # servers on loopback are reached directly
  os.environ["CACHEDIR"] = CACHEDIR.value = str(tmp_path_factory.mktemp("cache"))
  for kind in ("CACHE", "CONFIG"): os.environ[f"XDG_{kind}_HOME"] = str(tmp_path_factory.mktemp(f"xdg_{kind.lower()}"))
  os.environ["PARALLEL"] = "0"          # tinygrad compiles what its cache lacks in this process: its workers would wait
  PARALLEL.value = 0                    # for ever below pytest; and tests count the steps of our compiler
  CHECK.value = 1  # allocated machine code is run symbolically and compared with what was to be allocated
  yield

MOST_BYTES = 1 << 29   # that a process grows by, from the last collection to the end of a file's tests

@pytest.fixture(scope="module", autouse=True)
def no_virtual_memory_left() -> Iterator[None]:
  """Give back the memory of virtual computers of a file's tests. As garbage they are few objects, which Python
  collects late."""
  global collected
  yield
  if not STATM.exists() or resident() < collected + MOST_BYTES: return
  gc.collect()
  collected = resident()

STATM = Path("/proc/self/statm")   # sizes of this process, in pages; the second is what is in memory
collected = 0                      # bytes of this process after the last collection

def resident() -> int: return int(STATM.read_text().split()[1]) * mmap.PAGESIZE

@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
  """The test runs on the interpreter and on every device, or on the one that DEV names."""
  with on(request.param) as name: yield name

# ***** the tensor suite, and devices other than the host *****

COUNTER = suite.Counter(suite.chip_here(EMULATE.value, DEV.value))

def pytest_addoption(parser: pytest.Parser) -> None:
  group = parser.getgroup("tinyhw")
  group.addoption("--suite", choices=("tensor",), help="run the tests of test/suite.py only")
  group.addoption("--share", type=int, default=1, metavar="N", help="run one test of N, drawn by the names of test "
                  "and card")
  group.addoption("--changed", nargs="?", const="HEAD", metavar="COMMIT", help="run the tests of what differs from "
                  "the last commit, or from another")
  group.addoption("--layer", action="append", metavar="NAME", help="run the tests of a layer: a folder of test/, or "
                  "tensor for the files beside them")
  group.addoption("--fast", action="store_true", help="without tests that are marked as slow")
  group.addoption("--slow", type=int, default=1, metavar="N", help="of the tests that are marked as slow, run one of "
                  "N, drawn by the names of test and commit")
  group.addoption("--count-into", metavar="FILE", help="write there what test/suite.py counts")

WANTED: set[Path] | None = None    # the test files of a suite, of layers or of changes; None: all

def pytest_configure(config: pytest.Config) -> None:
  global WANTED
  chosen = [] if not config.getoption("--suite") else [{suite.TEST / name for name in suite.files()}]
  try:
    if layers := config.getoption("--layer"): chosen.append(set().union(*map(scope.of_layer, layers)))
    if commit := config.getoption("--changed"): chosen.append(scope.wanted_by(scope.changed_since(commit)))
  except scope.ScopeError as error: raise pytest.UsageError(str(error)) from None
  if chosen: WANTED = set.intersection(*chosen)

def pytest_ignore_collect(collection_path: Path) -> bool | None:
  """Other files than those that are wanted."""
  if WANTED is None or collection_path.suffix != ".py" or collection_path.name == "conftest.py": return None
  return None if collection_path in WANTED else True

def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
  if config.getoption("--fast"): items[:] = [item for item in items if item.get_closest_marker("slow") is None]
  items[:] = [item for item in items if suite.drawn(item.nodeid, COUNTER.chip, config.getoption("--share"))]
  if (slow := config.getoption("--slow")) > 1:
    commit = suite.commit()
    items[:] = [item for item in items if item.get_closest_marker("slow") is None
                or suite.drawn(item.nodeid, commit, slow)]

def pytest_runtest_setup(item: pytest.Item) -> None:
  for name in ("host", "host_memory"):
    mark = item.get_closest_marker(name)
    if mark is None or not DEV.value: continue
    if not keeps_host_memory(DEV.value) or name == "host" and suite.is_gpu(DEV.value):
      pytest.skip(f"of the host alone: {mark.args[0]}")
  foreign = item.get_closest_marker("foreign_memory")
  if foreign is not None and DEV.value and not takes_foreign_memory(DEV.value): pytest.skip(foreign.args[0])

def pytest_runtest_logreport(report: pytest.TestReport) -> None:
  """Of this process's tests, or, where it shares them among others, of all of them."""
  reason = report.longrepr[2].removeprefix("Skipped: ") if report.skipped and isinstance(report.longrepr, tuple) else ""
  COUNTER.add(report.when or "", report.outcome, reason)

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
  """A kernel of a type that the card does not have is refused by name; then the test is skipped, with this reason."""
  outcome: Any = yield
  why = suite.lacks(COUNTER.chip, call.excinfo.value) if call.excinfo is not None else ""
  if not why: return
  report = outcome.get_result()
  report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {why}")

@pytest.hookimpl(optionalhook=True)  # xdist's
def pytest_testnodedown(node: Any, error: object) -> None:
  """A process that had a part of the tests has ended."""
  COUNTER.workgroups += getattr(node, "workeroutput", {}).get("workgroups", 0)

def workgroups() -> int:
  """Workgroups that this process has executed, on virtual GPUs or on OpenCL's devices; submissions to worker threads.
  """
  if EMULATE.value: return sum(gpu.workgroups for gpu in emulator.box(EMULATE.value).gpus)
  return sum(device.ring.timeline if isinstance(device, CPUDevice) else getattr(device, "workgroups", 0)
             for device in Device._opened.values())

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
  """A run of the suite on a virtual GPU, PoCL or QEMU that executes nothing shows nothing, and has failed."""
  if not (session.config.getoption("--suite") and COUNTER.chip): return
  COUNTER.workgroups += workgroups()
  if hasattr(session.config, "workeroutput"):
    session.config.workeroutput["workgroups"] = COUNTER.workgroups
    return
  if into := session.config.getoption("--count-into"): Path(into).write_text(COUNTER.run().line(), "utf-8")
  if not COUNTER.workgroups and session.config.getoption("--share") == 1:
    sys.stdout.write(f"\nnothing ran on {EMULATE.value or COUNTER.chip}: set DEV={suite.CHIPS.get(COUNTER.chip)}\n")
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
