"""Steps of the self-tests of all GPUs before the device opens and after it has closed.

Those of a vendor: its selftest/test_steps.py.
"""
from collections.abc import Callable
from typing import Any

import pytest
from gpu.selftest import VENDORS, Patch, Tried

from tinyhw.drivers.amd.sdma import CopyQueue
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.errors import DriverError
from tinyhw.selftest.frame import FAILED, OK

BOTH = pytest.mark.parametrize("tester", VENDORS, indirect=True)

def no_clock(box: Any, patch: Patch) -> None: patch.setattr(box.gpus[0], "clock", lambda: 5)

def one_after_the_other(box: Any, patch: Patch) -> None:
  """Let a queue wait for more than the other one has written, as if that had to be done first."""
  waits, acquire = CopyQueue.wait_memory, Commands.acquire
  patch.setattr(CopyQueue, "wait_memory", lambda queue, address, value: waits(queue, address, value + 1))
  patch.setattr(Commands, "acquire", lambda commands, address, value: acquire(commands, address, value + 1))

# By step: a mistake, and the step's message
MISTAKES: dict[str, tuple[Callable[[Any, Patch], None], str]] = {
  "clock": (no_clock, r"the clock went on by 0 ticks of \d+ ns, which are 0.000 ms, while"),
  "side by side": (one_after_the_other, "the answer of the copy engine to the compute queue did not come"),
}

@BOTH
@pytest.mark.parametrize("name", MISTAKES)
def test_a_step_that_fails_is_explained(name: str, tester: Tried, monkeypatch: Patch) -> None:
  wrong, words = MISTAKES[name]
  with monkeypatch.context() as patch: tester.fails(name, lambda box: wrong(box, patch), words)

@BOTH
def test_memory_that_the_processor_does_not_see_is_told(tester: Tried, monkeypatch: Patch) -> None:
  kind = type(tester.session).kinds[1 if tester.vendor.device == "NV" else 2]
  made = tester.session.allocate
  def other_memory(size: int, wanted: Any, host: int) -> Any:
    memory = made(size, wanted, host)
    if wanted is kind: monkeypatch.setattr(type(memory.mapping), "load32", lambda mapping, offset: 0)
    return memory
  tester.fails("memory", lambda box: monkeypatch.setattr(tester.session, "allocate", other_memory),
               f"{kind}: the processor does not read what it has written")

@BOTH
def test_a_gpu_that_does_not_see_the_programs_memory_is_asked_the_rest(tester: Tried, monkeypatch: Patch) -> None:
  kinds = type(tester.session)
  made = tester.session.allocate
  def refused(size: int, wanted: Any, host: int) -> Any:
    if wanted is kinds.user: raise DriverError("no page may be locked; raise ulimit -l")
    return made(size, wanted, host)
  monkeypatch.setattr(tester.session, "allocate", refused)
  before = [name for name in tester.steps if name in ("topology", "nodes", "driver", "cards", "objects")]
  results = tester.run([*before, "memory", "memory of the program", "clock"])
  assert ([r.outcome for r in results[-3:]] == [OK, FAILED, OK] and results[-2].words == f"{kinds.user}: no page may "
          f"be locked; raise ulimit -l")

@BOTH
def test_buffers_that_somebody_holds_are_told(tester: Tried) -> None:
  held = list[Any]()
  results = tester.run_open(["release"], lambda box: held.append(tester.session.device.allocator.alloc(1 << 20)))
  assert results[-1].outcome == FAILED and "buffers are still referenced after the device was closed" in results[
    -1].words

@BOTH
def test_what_hangs_does_not_stand_in_the_way_of_the_next_step(tester: Tried, monkeypatch: Patch) -> None:
  with monkeypatch.context() as patch:
    tester.fails("side by side", lambda box: one_after_the_other(box, patch), "did not come")
  again = [name for name in ("channels", "engines", "copy engine", "side by side", "opens") if name in tester.steps]
  assert [r.outcome for r in tester.run(again)] == [OK] * len(again)
