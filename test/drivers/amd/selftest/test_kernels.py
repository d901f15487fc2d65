"""The kernels of the self-test in AMD assembly. If card or driver make a mistake, each step fails with an
explanation."""
import pytest
from gpu.selftest import (
  Mistakes, Patch, Tried, altered, each_step, endless, explained, no_waits, nothing_copied, silent)

from tinyhw.drivers.amd import commands, faults, launch

from tinyhw.drivers.amd.device import AMDDevice
from tinyhw.drivers.amd.selftest import kernels as selftest_kernels
from tinyhw.emulator.amd.semantics.approximate import coarse, reciprocal

def one_group(patch: Patch) -> None: patch.setitem(selftest_kernels.WORDS[11], "group", "0")
def little_shared_memory(patch: Patch) -> None: patch.setattr(launch, "LDS_UNIT", 8192)
def no_scratch(patch: Patch) -> None: patch.setattr(AMDDevice, "reserve_scratch", lambda device, size: None)
def old_code(patch: Patch) -> None:
  patch.setitem(commands.ACQUIRE[10], "all", {**commands.ACQUIRE[10]["all"], "gli_inv": 0})
def other_words(patch: Patch) -> None: patch.setattr(faults, "explain", lambda device, fault: "went wrong")

# By step: a mistake, and the step's message
MISTAKES: Mistakes = {
  "empty kernel": (endless("AMD"), r"did not finish submission \d+ in 0.03 s"),
  "store": (one_group, "numbers of work-items: 63936 of 64000 elements differ; the first is number 64, 0 instead of "
            "64, the last number 63999"),
  "arithmetic": (altered("AMD", "add", "s10, v2\n", "s10, v2\nv_add_nc_u32 v2, 1, v2\n"),
                 r"a \+ b \+ 0.3: 320 of 320 elements differ"),
  "shared memory": (little_shared_memory, r"LDS write of 128 bytes at 0x\w+: the workgroup has 0 bytes"),
  "scratch": (no_scratch, r"the kernel uses scratch \(SCRATCH_EN\), and there is none"),
  "caches": (old_code, "the instruction cache of XCC 0 was not invalidated since"),
  "order": (no_waits, "for which the command processor has not waited, writes; nothing orders them"),
  "matrix unit": (altered("AMD", "matrix", "v_wmma_f32_16x16x16_f16", "v_wmma_f32_16x16x16_bf16"),
                  r"the product of two matrices: \d+ of 256 elements"),
  "approximations": (altered("AMD", "points f", "{op} v2", "v_add_nc_u32 v2, 2, v2\n{op} v2"),
                     r"v_rcp_f32 \S+ at \S+, where the emulator assumes 1; the compiler relies on that"),
  "peer copy": (nothing_copied, "a copy to AMD:1 and back: 319 of 320 elements differ"),
  "hang": (silent("AMD"), "the GPU ended it without a word"),
  "bad address": (other_words, "it was told in other words than \"touches memory that it has not\": AMD .* went wrong"),
}

@pytest.mark.parametrize("tester", ["AMD"], indirect=True)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_step_that_fails_is_explained(name: str, tester: Tried, monkeypatch: Patch) -> None:
  explained(tester, monkeypatch, name, MISTAKES)

def test_each_step_has_a_mistake() -> None: assert list(MISTAKES) == each_step()

def test_the_bounds_are_those_of_the_emulator() -> None:
  """The emulator's results for a float64 have the largest error that the step allows."""
  worst = max(abs(coarse(reciprocal)(x) * x - 1) for x in (1 + i / 997 for i in range(997)))
  assert selftest_kernels.HALF_OF_64 / 2 < worst <= selftest_kernels.HALF_OF_64
