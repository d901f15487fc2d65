"""The self-test of a virtual GPU in this process, with mistakes put into card or driver just before a step."""
from __future__ import annotations
import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from tinyhw.config import HCQDEV_WAIT_TIMEOUT_MS
from tinyhw.device import Device
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.amd.selftest import steps as amd
from tinyhw.drivers.amd.selftest import kernels as amd_kernels
from tinyhw.drivers.gpu.memory import GpuAllocator
from tinyhw.drivers.gpu.order import PendingLaunches
from tinyhw.drivers.gpu.selftest import kernels as selftest_kernels
from tinyhw.drivers.gpu.selftest.kernels import Texts
from tinyhw.drivers.gpu.selftest.session import GpuSession
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm
from tinyhw.drivers.nvidia.selftest import steps as nvidia
from tinyhw.drivers.nvidia.selftest import kernels as nvidia_kernels
from tinyhw.emulator.amd.card import computer as amd_computer
from tinyhw.emulator.nvidia.card import computer as nvidia_computer
from tinyhw.selftest import frame, tensors
from tinyhw.selftest.command import assemble
from tinyhw.selftest.frame import FAILED, OK, ProbeResult, Probe, Tools

Patch = pytest.MonkeyPatch
Mistakes = dict[str, tuple[Callable[[Patch], None], str]]

class Vendor(NamedTuple):
  """A vendor's virtual computers and self-test. first: steps that all others need; bench: those that need no open
  device."""
  device: str
  chip: str
  computer: Callable[..., Any]
  session: Callable[..., GpuSession]
  forget: Callable[[Any], None]
  system: Sequence[Probe]
  first: tuple[str, ...]

VENDORS = {
  "AMD": Vendor("AMD", "gfx1100", amd_computer.GpuHost, amd.AMDSession, kfd.forget, amd.SYSTEM, ("topology", "nodes")),
  "NV": Vendor("NV", "sm_90", nvidia_computer.GpuHost, nvidia.NVSession, rm.forget, nvidia.SYSTEM,
               ("driver", "cards", "objects")),
}

class Tried:
  """A session on a computer with these cards. It must be that of drivers/linux/files.py already."""
  def __init__(self, vendor: Vendor, box: Any, faults: bool = True):
    self.vendor, self.box, self.session = vendor, box, vendor.session(vendor.device, Tools(assemble, faults))
    self.session.limit_ms = 50
    self.steps: dict[str, Probe] = {step.name: step for step in (*self.session.first(), *tensors.STEPS,
                                                                 *self.session.last())}

  def run(self, names: Sequence[str], before_last: Callable[[Any], object] | None = None) -> list[ProbeResult]:
    """The results of steps; before the last one, something happens."""
    def last(session: GpuSession) -> str:
      if before_last is not None: before_last(self.box)
      return self.steps[names[-1]].run(session)
    return list(frame.run(self.session,
                          [*[self.steps[name] for name in names[:-1]], self.steps[names[-1]]._replace(run=last)]))

  def run_open(self, names: Sequence[str], before_last: Callable[[Any], object] | None = None) -> list[ProbeResult]:
    """The same, on the open device."""
    return self.run([*self.vendor.first, "opens", *names], before_last)

  def fails(self, name: str, wrong: Callable[[Any], object], words: str) -> None:
    """A step fails because of what is wrong, and says these words (a regular expression)."""
    bench = [step.name for step in self.vendor.system]
    needed = self._before(name, bench)
    *before, found = self.run([*needed, name], wrong)
    assert all(r.outcome == OK for r in before), before
    assert found.outcome == FAILED and found.step.check and found.step.question, found
    assert re.search(words, found.words), found.words

  def _before(self, name: str, bench: Sequence[str]) -> list[str]:
    """The steps that a step needs."""
    if name not in bench: return [*self.vendor.first, "opens"]
    if name in self.vendor.first: return list(self.vendor.first[:self.vendor.first.index(name)])
    made = "channels" in bench and bench.index(name) > bench.index("channels") and name != "opens"
    return [*self.vendor.first, *(["channels"] if made else []),
            *(["engines"] if made and bench.index(name) > bench.index("engines") else [])]

  def close(self) -> None:
    self.session.close()
    Device.close(self.vendor.device)
    self.vendor.forget(self.box)

@contextlib.contextmanager
def trying(name: str, monkeypatch: Patch) -> Iterator[Tried]:
  """The self-test of a virtual card, step by step; there are two, so that they can copy from each other."""
  vendor = VENDORS[name]
  Device.close(vendor.device)
  computer = vendor.computer("tested", [vendor.chip] * 2, seed=5)
  monkeypatch.setattr(files, "COMPUTER", computer)
  made = Tried(vendor, computer)
  yield made
  monkeypatch.undo()
  made.close()

def alter(name: str, patch: Patch, change: Callable[[Texts], dict[str, Any]]) -> None:
  """A vendor's kernels do something else: what a card would do whose instruction is wrong. change: fields of the texts
  that are replaced."""
  if name == "NV":
    patch.setattr(nvidia_kernels, "TEXTS", dataclasses.replace(nvidia_kernels.TEXTS, **change(nvidia_kernels.TEXTS)))
  else:
    kept = amd_kernels.texts
    patch.setattr(amd_kernels, "texts", lambda generation: dataclasses.replace(kept(generation),
                                                                               **change(kept(generation))))

def altered(name: str, field: str, old: str, new: str) -> Callable[[Patch], None]:
  """The same for one text, in which words are replaced.

  The matrix unit's is inside of its row, those of approximations are by kind: "points d".
  """
  def change(texts: Texts) -> dict[str, Any]:
    field_name, _, kind = field.partition(" ")
    kept = getattr(texts, field_name)
    text = kept[kind] if kind else kept.text if field_name == "matrix" else kept
    assert old in text
    made = text.replace(old, new)
    return {field_name: {**kept, kind: made} if kind else kept._replace(text=made) if field_name == "matrix" else made}
  return lambda patch: alter(name, patch, change)

# **** mistakes that both vendors' cards and drivers can make ****

def endless(name: str) -> Callable[[Patch], None]:
  """The kernel that does nothing never ends."""
  def wrong(patch: Patch) -> None:
    alter(name, patch, lambda texts: {"empty": texts.hang})
    patch.setattr(HCQDEV_WAIT_TIMEOUT_MS, "value", 30)
  return wrong

def silent(name: str) -> Callable[[Patch], None]:
  """The kernel that never ends ends."""
  return lambda patch: alter(name, patch, lambda texts: {"hang": texts.empty})

def no_waits(patch: Patch) -> None: patch.setattr(PendingLaunches, "take", lambda flight, places, writes, spills: False)
def nothing_copied(patch: Patch) -> None:
  patch.setattr(GpuAllocator, "transfer", lambda allocator, dest, src, size: True)

def explained(tester: Tried, monkeypatch: Patch, name: str, mistakes: Mistakes) -> None:
  """A step of kernels fails as its row says, and the next one has a device that works."""
  monkeypatch.setattr(selftest_kernels, "HANG_MS", (200, 20))
  monkeypatch.setattr(selftest_kernels, "MANY_GROUPS", 1000 if name == "store" else 50)
  wrong, words = mistakes[name]
  with monkeypatch.context() as patch: tester.fails(name, lambda box: wrong(patch), words)
  if name != "bad address": assert tester.run(["opens", "arithmetic"])[-1].outcome == OK

def each_step() -> list[str]: return [step.name for step in selftest_kernels.QUESTIONS]
