"""python3 -m tinyhw selftest AMD: it passes on all virtual cards, and each step that fails is explained.

Kernels: test_kernels.py.
"""
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gpu.selftest import Tried

from tinyhw.autogen.amd import sdma
from tinyhw.drivers.amd.selftest import steps as selftest
from tinyhw.emulator.amd.card.computer import GpuHost
from tinyhw.selftest.frame import FAILED, NOT_RUN

ROOT = Path(__file__).resolve().parents[4]
Patch = pytest.MonkeyPatch

@pytest.mark.slow
@pytest.mark.parametrize("cards", ("gfx1100", "gfx1201", "gfx942", "gfx950x2"))
def test_all_steps_pass_on_virtual_cards(cards: str) -> None:
  done = subprocess.run([sys.executable, "-m", "tinyhw", "selftest", "AMD", "--faults"], capture_output=True, text=True,
                        cwd=ROOT,
                        env={**os.environ, "EMULATE": cards, "DEV": ""})
  assert (done.returncode, done.stderr) == (0, ""), done.stdout
  assert done.stdout.splitlines()[-1] == ("31 ok, 0 FAILED" if cards.endswith("x2") else "30 ok, 0 FAILED, 1 absent")

def unknown_chip(box: GpuHost, patch: Patch) -> None:
  path = next(path for path in box.texts if path.endswith("nodes/1/properties"))
  text = box.texts[path]
  assert isinstance(text, str)
  box.texts[path] = text.replace("110000", "100302")

def no_permission(box: GpuHost, patch: Patch) -> None: box.refused["/dev/kfd"] = errno.EACCES
def no_memory(box: GpuHost, patch: Patch) -> None: box.fail("AllocMemoryOfGpu", 3, errno.ENOMEM)
def no_queue(box: GpuHost, patch: Patch) -> None: box.fail("CreateQueue", 1, errno.EINVAL)
def no_reaction(box: GpuHost, patch: Patch) -> None: patch.setattr(box.scheduler, "advance", lambda caller: None)
def no_interrupt(box: GpuHost, patch: Patch) -> None: patch.setattr(box.events, "interrupt", lambda number: None)
def no_event(box: GpuHost, patch: Patch) -> None: box.fail("CreateEvent", 2, errno.ENOMEM)

def short_copies(box: GpuHost, patch: Patch) -> None:
  """Make the count of bytes one too low: a wrong packet."""
  original = sdma.V6.COPY_LINEAR
  patch.setattr(sdma.V6, "COPY_LINEAR", lambda count, **fields: original(count=count - 1, **fields))

def lost_memory(box: GpuHost, patch: Patch) -> None:
  patch.setattr(selftest, "available", lambda session: session.available - 8192)

# By step: a mistake, and the step's message
MISTAKES: dict[str, tuple[Callable[[Any, Any], None], str]] = {
  "topology": (unknown_chip, "the GPU is a gfx1032, which has no driver here"),
  "nodes": (no_permission, r"opening /dev/kfd: permission denied \(EACCES\); join the group render"),
  "memory": (no_memory, "host memory: /dev/kfd: AllocMemoryOfGpu: cannot allocate memory"),
  "compute queue": (no_queue, r"CreateQueue: invalid argument \(EINVAL\); the kernel wants other sizes"),
  "command processor": (no_reaction, r"the word that RELEASE_MEM writes did not come in 0.05 s\ncompute queue \d+: 0 "
                        r"of 11 words read"),
  "interrupts": (no_interrupt, "the word was written, but nothing woke the process in 0.05 s"),
  "copy engine": (short_copies, "1 of 65536 bytes differ after a copy there and back; the first is number 65535"),
  "opens": (no_event, "device AMD does not open: /dev/kfd: CreateEvent: cannot allocate memory"),
  "release": (lost_memory, "8.00 KB less of the GPU's memory are free than in the beginning"),
}

@pytest.mark.parametrize("name", MISTAKES)
def test_a_step_that_fails_is_explained(name: str, tester: Tried, monkeypatch: Patch) -> None:
  wrong, words = MISTAKES[name]
  tester.fails(name, lambda box: wrong(box, monkeypatch), words)

def test_each_step_has_a_mistake() -> None:
  others = ("clock", "side by side", "memory of the program")  # test/drivers/gpu/selftest/test_session.py
  assert list(MISTAKES) == [step.name for step in (*selftest.SYSTEM, selftest.RELEASE) if step.name not in others]

def test_nothing_runs_without_a_card(tester: Tried) -> None:
  tester.box.nodes.clear()
  results = tester.run(["topology", "nodes", "memory"])
  assert [r.outcome for r in results] == [FAILED, NOT_RUN, NOT_RUN] and "there is no /dev/kfd" in results[0].words

def test_a_bench_that_cannot_be_made_leaves_nothing(tester: Tried) -> None:
  tester.run(["topology", "nodes"])
  before = tester.box.census()
  tester.box.fail("AllocMemoryOfGpu", 2)
  assert tester.run(["compute queue"])[0].outcome == FAILED and tester.box.census() == before
