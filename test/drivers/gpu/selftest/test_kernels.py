"""Steps with kernels that depend on the computer.

Each step's failure: selftest/test_kernels.py of each vendor.
"""
import struct
from typing import Any

import pytest
from gpu.selftest import VENDORS, Patch, Tried

from tinyhw.drivers.gpu.selftest import kernels as selftest_kernels
from tinyhw.drivers.gpu.selftest.kernels import Approximation
from tinyhw.selftest.frame import ABSENT

BOTH = pytest.mark.parametrize("tester", VENDORS, indirect=True)

@BOTH
def test_faults_are_provoked_only_if_asked_for(tester: Tried) -> None:
  tester.session.tools = tester.session.tools._replace(faults=False)
  results = tester.run_open(["hang"])
  assert (results[-1].outcome == ABSENT and results[-1].words == "only with --faults: it may cost every process on "
          "the GPU its work")

def test_each_approximation_is_told_once_with_its_unit(monkeypatch: Patch) -> None:
  """The message has the worst error of all operands."""
  asked = [Approximation("A", abs, 1, 2), Approximation("A", lambda x: x * (1 + 2.0 ** -20), 1, 2),
           Approximation("A", abs, 2, 3),
           Approximation("B", abs, 1, 2, kind="d")]
  class Session:
    class texts:
      approximations, points = asked, {"f": "", "d": ""}
  class Copying:
    def __enter__(self) -> Any: return self
    def __exit__(self, *_: object) -> None: pass
    def load(self, *_: object, **__: object) -> None: pass
    def buffer(self, content: bytes) -> list[bytes]: return [content]
    def run(self, program: object, buffers: list[list[bytes]], groups: int) -> None: buffers[0][0] = buffers[1][0]
    def read(self, buffer: list[bytes], kind: str, count: int) -> list[float]:
      return list(struct.unpack(f"<{count}{kind}", buffer[0]))
  monkeypatch.setattr(selftest_kernels, "kernels", lambda session: Copying())
  told = selftest_kernels.approximations(Session())  # type: ignore[arg-type]
  assert told.startswith("worst errors in units of the last place: A 1") and told.count("A ") == 1, told
  assert told.endswith("; worst errors in parts of the result: B 0"), told

@BOTH
def test_one_card_has_no_peer(tester: Tried, monkeypatch: Patch) -> None:
  monkeypatch.setattr(tester.session, "count", lambda: 1)
  assert tester.run_open(["peer copy"])[-1].words == "there is one GPU"

@BOTH
def test_cards_that_do_not_see_each_other(tester: Tried) -> None:
  tester.box.peers = False
  found, name = tester.run_open(["peer copy"])[-1], tester.vendor.device
  assert (found.outcome == ABSENT and found.words == f"{name} and {name}:1 cannot see each other's memory; copies go "
          f"through the host")
