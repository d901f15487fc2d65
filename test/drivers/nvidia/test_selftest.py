"""python3 -m tinyhw selftest NV: it passes on a virtual card, and each step that fails is explained."""
import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm, selftest
from tinyhw.drivers.nvidia.commands import Commands
from tinyhw.drivers.nvidia.selftest import NVSession
from tinyhw.emulator.nvidia.computer import Computer
from tinyhw.selftest import frame
from tinyhw.selftest.command import assemble
from tinyhw.selftest.frame import FAILED, OK, Tools

ROOT = Path(__file__).resolve().parents[3]
Patch = pytest.MonkeyPatch

def test_all_steps_pass_on_a_virtual_card() -> None:
  done = subprocess.run([sys.executable, "-m", "tinyhw", "selftest", "NV"], capture_output=True, text=True, cwd=ROOT,
                        env={**os.environ, "EMULATE": "sm_90", "DEV": ""})
  assert (done.returncode, done.stderr) == (0, ""), done.stdout
  assert done.stdout.splitlines()[-1] == "19 ok, 0 FAILED"

@pytest.fixture
def box(monkeypatch: Patch) -> Iterator[Computer]:
  made = Computer("sm_90", ["sm_90"])
  monkeypatch.setattr(files, "COMPUTER", made)
  with Context(EMULATE=""): yield made
  Device.close("NV")
  rm.forget(made)
  made.failures.clear()

def no_driver(box: Computer, patch: Patch) -> None: box.texts["/sys/module/nvidia/version"] = "470.1\n"
def no_card(box: Computer, patch: Patch) -> None: patch.setattr(box, "gpus", [])
def exclusive(box: Computer, patch: Patch) -> None: box.gpus[0].exclusive = True
def no_memory(box: Computer, patch: Patch) -> None: box.fail("UvmMapExternal", 3, errno.ENOMEM)
def no_clock(box: Computer, patch: Patch) -> None: patch.setattr(box.gpus[0], "clock", lambda: 5)
def no_channel(box: Computer, patch: Patch) -> None: box.gpus[0].chip = type(box.gpus[0].chip)(**{**vars(box.gpus[0].chip), "channels": ()})
def no_reaction(box: Computer, patch: Patch) -> None: patch.setattr(box.scheduler, "advance", lambda: None)
def other_class(box: Computer, patch: Patch) -> None: patch.setattr(Commands, "bind", lambda self, subchannel, number: self.call(
  subchannel, self.engines.host.SET_OBJECT, 0xC6C0))
def no_engine(box: Computer, patch: Patch) -> None: box.fail("UvmRegisterChannel", 1, errno.EIO)

def short_copies(box: Computer, patch: Patch) -> None:
  original = Commands.copy
  patch.setattr(Commands, "copy", lambda self, dest, source, size: original(self, dest, source, size - 1))

def one_after_the_other(box: Computer, patch: Patch) -> None:
  original = Commands.acquire
  patch.setattr(Commands, "acquire", lambda self, address, value: original(self, address, value + 1))

# By step: what goes wrong, and what the step says of it
MISTAKES: dict[str, tuple[Callable[[Any, Any], None], str]] = {
  "driver": (no_driver, "version 470.1 of NVIDIA's kernel driver is not known"),
  "cards": (no_card, "there is no GPU number 0; the kernel's driver runs 0"),
  "objects": (exclusive, "somebody has the GPU for himself"),
  "memory": (no_memory, "host memory: /dev/nvidia-uvm: UvmMapExternal: cannot allocate memory"),
  "clock": (no_clock, "the clock went on by 0.000 ms, while"),
  "channels": (no_channel, "making an object of class 0xc86f: NVIDIA's driver answers invalid class"),
  "semaphore": (no_reaction, r"the word that SEM_EXECUTE writes did not come in 0.05 s\ncompute channel .*: 0 of 1 entries read"),
  "engines": (other_class, "SET_OBJECT 0xc6c0, and the channel has no object of this class"),
  "copy engine": (short_copies, "1 of 65536 bytes differ after a copy there and back; the first is number 65535"),
  "side by side": (one_after_the_other, "the answer of the copy channel to the compute channel did not come"),
  "opens": (no_engine, "device NV does not open: /dev/nvidia-uvm: UvmRegisterChannel: input/output error"),
}

@pytest.mark.parametrize("name", MISTAKES)
def test_a_step_that_fails_is_explained(name: str, box: Computer, monkeypatch: Patch) -> None:
  session = NVSession("NV", Tools(assemble, False))
  session.limit_ms = 50
  steps = {step.name: step for step in session.first()}
  wrong, words = MISTAKES[name]
  names = list(steps)[:list(steps).index(name)]
  before = list(frame.run(session, [steps[n] for n in names]))
  assert all(result.outcome == OK for result in before), before
  with monkeypatch.context() as patch:
    wrong(box, patch)
    found = list(frame.run(session, [steps[name]]))[0]
  assert found.outcome == FAILED and re.search(words, found.words), found.words
  session.close()

def test_each_step_has_a_mistake() -> None: assert list(MISTAKES) == [step.name for step in selftest.SYSTEM]

def test_the_vendors_library_has_the_steps_with_tensors_only() -> None:
  assert type(selftest.begin("NV:CUDA", Tools(assemble, False))) is frame.Session
