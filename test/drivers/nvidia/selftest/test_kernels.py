"""The kernels of the self-test in NVIDIA assembly. If card or driver make a mistake, each step fails with an
explanation."""
import struct

import pytest
from gpu.selftest import (
  Mistakes, Patch, Tried, altered, each_step, endless, explained, no_waits, nothing_copied, silent)

from tinyhw.drivers.nvidia import faults, launch

from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.drivers.nvidia.device import NVDevice
from tinyhw.drivers.nvidia.selftest import kernels as selftest_kernels
from tinyhw.emulator.nvidia.semantics.approximate import FUNCTIONS

def little_shared_memory(patch: Patch) -> None:
  kept = launch.describe
  patch.setattr(launch, "describe", lambda *arguments: {**kept(*arguments), "shared_memory_size": 1024})

def no_local_memory(patch: Patch) -> None: patch.setattr(NVDevice, "reserve_local", lambda device, size: None)
def old_constants(patch: Patch) -> None:
  patch.setattr(Commands, "see_earlier_kernels", lambda c: c.call(1, c.engines.compute.WAIT_FOR_IDLE, 0))

def other_words(patch: Patch) -> None: patch.setattr(faults, "explain", lambda device, channel, number: "went wrong")

# By step: a mistake, and the step's message
MISTAKES: Mistakes = {
  "empty kernel": (endless("NV"), r"did not finish submission \d+ in 0.03 s"),
  "store": (altered("NV", "store", "S2R R1, SR_CTAID.X", "MOV R1, RZ"), "numbers of work-items: 63936 of 64000 "
            "elements differ"),
  "arithmetic": (altered("NV", "add", "FADD R11, R10, R11", "IADD3 R11, R11, 0x1, RZ\nFADD R11, R10, R11"),
                 r"a \+ b \+ 0.3: \d+ of 320 elements"),
  "shared memory": (little_shared_memory, "has 1024 bytes"),
  "scratch": (no_local_memory, "it wants local memory, and SET_SHADER_LOCAL_MEMORY was never set"),
  "caches": (old_constants, r"the (L1|constant|instruction) cache .* was not invalidated since"),
  "order": (no_waits, "for which nothing has waited, (reads|writes); nothing orders them"),
  "matrix unit": (altered("NV", "matrix", "F32 R16", "F32.BF16 R16"), r"the product of two matrices: \d+ of 128 "
                  r"elements differ"),
  "approximations": (altered("NV", "points f", "MUFU.{op} R8, R8", "IADD3 R8, R8, 0x10, RZ\nMUFU.{op} R8, R8"),
                     r"RCP \S+ at \S+, where the emulator assumes 1; the compiler relies on that"),
  "peer copy": (nothing_copied, "a copy to NV:1 and back: 319 of 320 elements differ"),
  "hang": (silent("NV"), "the GPU ended it without a word"),
  "bad address": (other_words, "it was told in other words than \"touches memory that it has not\": NV .* went wrong"),
}

@pytest.mark.parametrize("tester", ["NV"], indirect=True)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_step_that_fails_is_explained(name: str, tester: Tried, monkeypatch: Patch) -> None:
  explained(tester, monkeypatch, name, MISTAKES)

def test_each_step_has_a_mistake() -> None: assert list(MISTAKES) == each_step()

def double_of(bits: int) -> float: return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
def bits_of(x: float) -> int: return int.from_bytes(struct.pack("<d", x), "little")

def test_the_bounds_are_those_of_the_emulator() -> None:
  """The emulator's results for a float64 have the largest error that the step allows."""
  worst = max(abs(double_of(FUNCTIONS["RCP64H"](bits_of(x) >> 32) << 32) * x - 1)
              for x in (1 + i / 997 for i in range(997)))
  assert selftest_kernels.UPPER / 4 < worst <= selftest_kernels.UPPER

def test_control_words_wait_for_everything() -> None:
  assert selftest_kernels.patient("LDG.E R1, [R2]\nSTG.E [R2], R1\nFADD R1, R1, R2").splitlines() == [
    "[B01----:R-:W0:-:S15] LDG.E R1, [R2]", "[B01----:R1:W-:-:S15] STG.E [R2], R1",
    "[B01----:R-:W-:-:S15] FADD R1, R1, R2"]
