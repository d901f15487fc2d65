"""Steps with kernels that depend on what the computer has. Each step's failure: test_selftest_kernels.py of each vendor."""
import pytest
from gpu_selftest import VENDORS, Patch, Tried

from tinyhw.selftest.frame import ABSENT

BOTH = pytest.mark.parametrize("tester", VENDORS, indirect=True)

@BOTH
def test_faults_are_provoked_only_if_asked_for(tester: Tried) -> None:
  tester.session.tools = tester.session.tools._replace(faults=False)
  results = tester.run_open(["hang"])
  assert results[-1].outcome == ABSENT and results[-1].words == "only with --faults: it may cost every process on the GPU its work"

@BOTH
def test_one_card_has_no_peer(tester: Tried, monkeypatch: Patch) -> None:
  monkeypatch.setattr(tester.session, "count", lambda: 1)
  assert tester.run_open(["peer copy"])[-1].words == "there is one GPU"

@BOTH
def test_cards_that_do_not_see_each_other(tester: Tried) -> None:
  tester.box.peers = False
  found, name = tester.run_open(["peer copy"])[-1], tester.vendor.device
  assert found.outcome == ABSENT and found.words == f"{name} and {name}:1 cannot see each other's memory; copies go through the host"
