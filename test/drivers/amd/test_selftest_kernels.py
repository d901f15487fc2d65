"""The kernels of the self-test: each step fails, and says what is wrong, where card or driver make a mistake. That they pass: test_selftest.py."""
from collections.abc import Callable

import pytest
from amd_selftest import Tried

from tinyhw.config import HCQDEV_WAIT_TIMEOUT_MS
from tinyhw.drivers.amd import commands, faults, launch, selftest_kernels
from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.gpu.memory import GpuAllocator
from tinyhw.drivers.gpu.order import Flight
from tinyhw.emulator.amd.approximate import coarse, reciprocal
from tinyhw.selftest.frame import ABSENT, OK

Patch = pytest.MonkeyPatch

def text(name: str, old: str, new: str) -> Callable[[Patch], None]:
  """A kernel does something else: what a card would do whose instruction is wrong."""
  def patch(patch: Patch) -> None:
    kept = getattr(selftest_kernels, name)
    assert old in kept
    patch.setattr(selftest_kernels, name, kept.replace(old, new))
  return patch

def endless(patch: Patch) -> None:
  patch.setattr(selftest_kernels, "EMPTY", selftest_kernels.HANG)
  patch.setattr(HCQDEV_WAIT_TIMEOUT_MS, "value", 30)

def one_group(patch: Patch) -> None: patch.setitem(selftest_kernels.WORDS[11], "group", "0")
def little_local_memory(patch: Patch) -> None: patch.setattr(launch, "LDS_UNIT", 8192)
def no_scratch(patch: Patch) -> None: patch.setattr(AMDDevice, "reserve_scratch", lambda device, size: None)
def old_code(patch: Patch) -> None: patch.setitem(commands.ACQUIRE[10], "all", {**commands.ACQUIRE[10]["all"], "gli_inv": 0})
def no_waits(patch: Patch) -> None: patch.setattr(Flight, "take", lambda flight, places, writes, spills: False)
def nothing_copied(patch: Patch) -> None: patch.setattr(GpuAllocator, "transfer", lambda allocator, dest, src, size: True)
def silent(patch: Patch) -> None: patch.setattr(selftest_kernels, "HANG", selftest_kernels.EMPTY)
def other_words(patch: Patch) -> None: patch.setattr(faults, "explain", lambda device, fault: "went wrong")

# By step: what goes wrong, and what the step says of it
MISTAKES: dict[str, tuple[Callable[[Patch], None], str]] = {
  "empty kernel": (endless, r"did not finish submission \d+ in 0.03 s"),
  "store": (one_group, "numbers of work-items: 63936 of 64000 elements differ; the first is number 64, 0 instead of 64, the last number 63999"),
  "arithmetic": (text("ADD", "s10, v2\n", "s10, v2\nv_add_nc_u32 v2, 1, v2\n"), r"a \+ b \+ 0.3: 320 of 320 elements differ"),
  "local memory": (little_local_memory, r"LDS write of 128 bytes at 0x\w+: the workgroup has 0 bytes"),
  "scratch": (no_scratch, r"the kernel uses scratch \(SCRATCH_EN\), and there is none"),
  "caches": (old_code, "the instruction cache of XCC 0 was not invalidated since"),
  "order": (no_waits, "for which the command processor has not waited, writes; nothing orders them"),
  "approximations": (text("FLOAT", "{op} v2", "v_add_nc_u32 v2, 2, v2\n{op} v2"),
                     r"v_rcp_f32 \S+ at \S+, where the emulator assumes 1; the compiler relies on that"),
  "peer copy": (nothing_copied, "a copy to AMD:1 and back: 319 of 320 elements differ"),
  "hang": (silent, "the GPU ended it without a word"),
  "bad address": (other_words, "it was told in other words than \"touches memory that it has not\": AMD .* went wrong"),
}

@pytest.mark.parametrize("name", MISTAKES)
def test_a_step_that_fails_is_explained(name: str, tester: Tried, monkeypatch: Patch) -> None:
  monkeypatch.setattr(selftest_kernels, "HANG_MS", (200, 20))
  wrong, words = MISTAKES[name]
  with monkeypatch.context() as patch: tester.fails(name, lambda box: wrong(patch), words)
  if name != "bad address": assert tester.run(["opens", "store"])[-1].outcome == OK, "the next step has a device that works"

def test_each_step_has_a_mistake() -> None:
  assert list(MISTAKES) == [s.name for s in (*selftest_kernels.STEPS, *selftest_kernels.LAST, selftest_kernels.BAD_ADDRESS_STEP)]

def test_faults_are_provoked_only_if_asked_for(tester: Tried) -> None:
  tester.session.tools = tester.session.tools._replace(faults=False)
  results = tester.run(["topology", "nodes", "opens", "hang"])
  assert results[-1].outcome == ABSENT and results[-1].words == "only with --faults: it may cost every process on the GPU its work"

def test_one_card_has_no_peer(tester: Tried, monkeypatch: Patch) -> None:
  monkeypatch.setattr(selftest_kernels, "gpus", lambda box: [None])
  assert tester.run(["topology", "nodes", "opens", "peer copy"])[-1].words == "there is one GPU"

def test_cards_that_do_not_see_each_other(tester: Tried) -> None:
  tester.box.peers = False
  found = tester.run(["topology", "nodes", "opens", "peer copy"])[-1]
  assert found.outcome == ABSENT and found.words == "AMD and AMD:1 cannot see each other's memory; copies go through the host"

def test_the_bounds_are_those_of_the_emulator() -> None:
  """What it makes of a float64 is as far off as the step allows."""
  worst = max(abs(coarse(reciprocal)(x) * x - 1) for x in (1 + i / 997 for i in range(997)))
  assert selftest_kernels.HALF_OF_64 / 2 < worst <= selftest_kernels.HALF_OF_64
