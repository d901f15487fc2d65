"""The self-test of a virtual card in this process, with mistakes put into card or driver just before a step."""
from __future__ import annotations
import re
from collections.abc import Callable, Sequence

from tinyhw.drivers.amd import kfd
from tinyhw.drivers.amd.selftest import AMDSession
from tinyhw.emulator.amd.computer import Computer
from tinyhw.selftest import frame, tensors
from tinyhw.selftest.command import assemble
from tinyhw.selftest.frame import FAILED, OK, Result, Step, Tools
from tinyhw.device import Device

class Tried:
  """A session on a computer with these cards. It must be that of drivers/linux/files.py already."""
  def __init__(self, box: Computer, faults: bool = True):
    self.box, self.session = box, AMDSession("AMD", Tools(assemble, faults))
    self.session.limit_ms = 50
    self.steps: dict[str, Step] = {step.name: step for step in (*self.session.first(), *tensors.STEPS, *self.session.last())}

  def run(self, names: Sequence[str], before_last: Callable[[Computer], object] | None = None) -> list[Result]:
    """The results of steps; before the last one, something happens."""
    def last(session: AMDSession) -> str:
      if before_last is not None: before_last(self.box)
      return self.steps[names[-1]].run(session)
    return list(frame.run(self.session, [*[self.steps[name] for name in names[:-1]], self.steps[names[-1]]._replace(run=last)]))

  def fails(self, name: str, wrong: Callable[[Computer], object], words: str) -> None:
    """A step fails because of what is wrong, and says these words (a regular expression)."""
    needed = ["topology", "nodes", *([] if name in BENCH else ["opens"])]
    if name in needed: needed = needed[:needed.index(name)]
    *before, found = self.run([*needed, name], wrong)
    assert all(r.outcome == OK for r in before), before
    assert found.outcome == FAILED and found.step.check and found.step.question, found
    assert re.search(words, found.words), found.words

  def close(self) -> None:
    self.session.close()
    Device.close("AMD")
    kfd.forget(self.box)

BENCH = ("topology", "nodes", "memory", "compute queue", "command processor", "interrupts", "copy engine", "clock", "side by side", "opens")
