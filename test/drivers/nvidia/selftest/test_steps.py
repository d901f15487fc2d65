"""python3 -m tinyhw selftest NV: it passes on a virtual card, and each step that fails is explained."""
import errno
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nvidia.fake_cuda import FakeCuda, Loaded
from gpu.selftest import Tried

from tinyhw.device import Device
from tinyhw.drivers.nvidia import cuda
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.drivers.nvidia.selftest import steps as selftest
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.emulator.nvidia.card.gpu import ComputeMode
from tinyhw.selftest import frame
from tinyhw.selftest.command import assemble
from tinyhw.selftest.frame import Tools

ROOT = Path(__file__).resolve().parents[4]
Patch = pytest.MonkeyPatch

@pytest.mark.slow
@pytest.mark.parametrize("cards", ("sm_80", "sm_90x2"))
def test_all_steps_pass_on_virtual_cards(cards: str) -> None:
  done = subprocess.run([sys.executable, "-m", "tinyhw", "selftest", "NV", "--faults"], capture_output=True, text=True,
                        cwd=ROOT,
                        env={**os.environ, "EMULATE": cards, "DEV": ""})
  assert (done.returncode, done.stderr) == (0, ""), done.stdout
  assert done.stdout.splitlines()[-1] == ("34 ok, 0 FAILED" if cards.endswith("x2") else "32 ok, 0 FAILED, 2 absent")

def test_the_clock_is_read_in_one_piece() -> None:
  """The clock's low register wraps between two reads."""
  bench = object.__new__(selftest.NVBench)
  answers = iter((7, 0xFFFF_FFFF, 8, 3, 8))
  bench.doorbell = SimpleNamespace(load32=lambda offset: next(answers))  # type: ignore[assignment]
  assert bench.look_at_clock()[0] == 8 << 32 | 3

def test_a_page_that_is_no_clock_is_told() -> None:
  """The upper word differs at each read. The step gives advice."""
  bench, looks = object.__new__(selftest.NVBench), itertools.count()
  bench.doorbell = SimpleNamespace(load32=lambda offset: next(looks))  # type: ignore[assignment]
  with pytest.raises(frame.Wrong, match="upper word of the clock, at 0x84 of the page of the doorbell, differed in 9 "
                     "looks, 0x10 in the last"):
    bench.look_at_clock()
  step = next(step for step in selftest.SYSTEM if step.name == "clock")
  [result] = frame.run(frame.Session("NV", None),
                       [step._replace(run=lambda s: str(bench.look_at_clock()))])  # type: ignore[arg-type]
  assert result.outcome == frame.FAILED and "class of the usermode object" in step.check

def no_driver(box: GpuHost, patch: Patch) -> None: box.texts["/sys/module/nvidia/version"] = "470.1\n"
def no_card(box: GpuHost, patch: Patch) -> None: patch.setattr(box, "gpus", [])
def prohibited(box: GpuHost, patch: Patch) -> None: box.gpus[0].mode = ComputeMode.COMPUTE_PROHIBITED
def no_memory(box: GpuHost, patch: Patch) -> None: box.fail("UvmMapExternal", 3, errno.ENOMEM)
def no_channel(box: GpuHost, patch: Patch) -> None:
  box.gpus[0].chip = type(box.gpus[0].chip)(**{**vars(box.gpus[0].chip), "channels": ()})
def no_reaction(box: GpuHost, patch: Patch) -> None: patch.setattr(box.scheduler, "advance", lambda caller: None)
def other_class(box: GpuHost, patch: Patch) -> None:
  patch.setattr(Commands, "bind", lambda self, subchannel, number: self.call(
  subchannel, self.engines.host.SET_OBJECT, 0xC6C0))
def no_engine(box: GpuHost, patch: Patch) -> None: box.fail("UvmRegisterChannel", 1, errno.EIO)

def short_copies(box: GpuHost, patch: Patch) -> None:
  original = Commands.copy
  patch.setattr(Commands, "copy", lambda self, dest, source, size: original(self, dest, source, size - 1))

# By step: a mistake, and the step's message
MISTAKES: dict[str, tuple[Callable[[Any, Any], None], str]] = {
  "driver": (no_driver, "version 470.1 of NVIDIA's kernel driver is not known"),
  "cards": (no_card, "there is no GPU number 0: NVIDIA's kernel driver runs 0; dmesg"),
  "objects": (prohibited, r"the GPU at 0000:17:00.0 is kept from this process: .* nobody may compute on it "
              r"\(prohibited\)"),
  "memory": (no_memory, "host memory: /dev/nvidia-uvm: UvmMapExternal: cannot allocate memory"),
  "channels": (no_channel, "making an object of class 0xc86f: NVIDIA's driver answers invalid class"),
  "semaphore": (no_reaction, r"the word that SEM_EXECUTE writes did not come in 0.05 s\ncompute channel .*: 0 of 1 "
                r"entries read"),
  "engines": (other_class, "SET_OBJECT 0xc6c0, and the channel has no object of this class"),
  "copy engine": (short_copies, "1 of 65536 bytes differ after a copy there and back; the first is number 65535"),
  "opens": (no_engine, "device NV does not open: /dev/nvidia-uvm: UvmRegisterChannel: input/output error"),
}

@pytest.mark.parametrize("tester", ["NV"], indirect=True)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_step_that_fails_is_explained(name: str, tester: Tried, monkeypatch: Patch) -> None:
  wrong, words = MISTAKES[name]
  with monkeypatch.context() as patch: tester.fails(name, lambda box: wrong(box, patch), words)

@pytest.mark.parametrize("tester", ["NV"], indirect=True)
def test_the_library_in_place_of_our_driver_is_told_with_the_reason(tester: Tried, monkeypatch: Patch) -> None:
  monkeypatch.setattr(cuda, "_library", [])
  monkeypatch.setattr(cuda, "load_library", lambda: Loaded(FakeCuda()))
  words = "the vendor's library opened in its place: /dev/nvidia-uvm: UvmRegisterChannel: invalid argument"
  tester.fails("opens", lambda box: box.fail("UvmRegisterChannel", 1, errno.EINVAL), words)

def test_each_step_has_a_mistake() -> None:
  others = ("clock", "side by side", "memory of the program")  # test/drivers/gpu/selftest/test_session.py, as the last
                                                               # one
  assert list(MISTAKES) == [step.name for step in selftest.SYSTEM if step.name not in others]

def test_the_vendors_library_has_the_steps_with_kernels() -> None:
  session = selftest.begin("NV:CUDA", Tools(assemble, False))
  assert isinstance(session, selftest.CudaSession) and [step.name for step in session.first()] == [
    "opens", "empty kernel", "store", "arithmetic", "shared memory", "scratch", "matrix unit", "approximations",
    "bases", "bulk copies"]
  assert not session.last()

def test_kernels_are_run_by_the_vendors_library(monkeypatch: Patch) -> None:
  """A stand-in for the library records the launches, and computes nothing. So the first step with a result fails."""
  fake = FakeCuda()
  monkeypatch.setattr(cuda, "_library", [])
  monkeypatch.setattr(cuda, "load_library", lambda: Loaded(fake))
  monkeypatch.setitem(Device._opened, "NV:CUDA", cuda.open(0, lambda name: None))  # type: ignore[arg-type,return-value]
  session = selftest.begin("NV:CUDA", Tools(assemble, False))
  found = list(frame.run(session, session.first()[:3]))
  assert ([r.outcome for r in found] == ["ok", "ok", "FAILED"] and "numbers of work-items: 63999 of 64000 elements "
          "differ" in found[-1].words)
  assert [name for name, *_ in fake.kernels] == ["empty"] * 3 + ["store"]
