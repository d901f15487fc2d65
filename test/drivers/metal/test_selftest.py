"""METAL's own steps of the self-test: they pass on virtual GPUs, and each fails for what it is about."""
from collections.abc import Callable

import pytest

from tinyhw.drivers.metal import selftest
from tinyhw.drivers.metal.launch import MetalEncoder
from tinyhw.drivers.metal.memory import MetalAllocator
from tinyhw.drivers.metal.objc import ObjectiveC
from tinyhw.emulator.metal import lanes, translate
from tinyhw.selftest import frame
from tinyhw.selftest.frame import FAILED, OK, Tools
from test.drivers.metal.conftest import Opener

Runner = Callable[..., list[frame.ProbeResult]]

@pytest.fixture
def run(mac: Opener, monkeypatch: pytest.MonkeyPatch) -> Runner:
  """Return a function that runs the steps with these names, or all."""
  def make(*names: str, chip: str = "apple7") -> list[frame.ProbeResult]:
    computer, device = mac(chip)
    monkeypatch.setattr(selftest, "device_of", lambda session: device)
    monkeypatch.setattr(selftest, "load_library", lambda: computer.metal)
    session = selftest.begin("METAL", Tools(lambda text, arch: b""))
    return list(frame.run(session, [step for step in (*session.first(), *session.last())
                                    if not names or step.name in names]))
  return make

@pytest.mark.parametrize("chip", ("apple7", "apple9"))
def test_they_pass(run: Runner, chip: str) -> None:
  results = run(chip=chip)
  assert len(results) == 19 and {result.outcome for result in results} == {OK}, results
  assert "subnormal numbers are zeros" in results[8].words

@pytest.mark.parametrize("name, owner, attribute, other, words", [
  ("messages", ObjectiveC, "responds", lambda *_: False, "device has no name"),
  ("texts", ObjectiveC, "text", lambda *_: "?", "came back as '?'"),
  ("memory", MetalAllocator, "_copyin", lambda *_: None, "differ from what was written"),
  ("numbers", lanes.ThreadGroup, "run", lambda self, group: None, "numbers of threads: 6"),
  ("order", MetalEncoder, "barrier", lambda self: None, "nothing orders them"),
  ("matrices", lanes, "place_of", lambda lane, k: (lane // 4, lane % 4 * 2 + k), "a product of 8 x 8"),
])
def test_a_step_fails(run: Runner, monkeypatch: pytest.MonkeyPatch, name: str, owner: object, attribute: str,
                   other: object, words: str) -> None:
  monkeypatch.setattr(owner, attribute, other, raising=False)
  result = run(name)[0]
  assert result.outcome == FAILED and words in result.words

def test_arithmetic_that_is_not_exact(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
  for name, words in (("QUOTIENT", "quotients: "), ("ROOT", "square roots: ")):
    with monkeypatch.context() as patch:
      exact = translate.RUNTIME[name]
      patch.setitem(translate.RUNTIME, name, lambda *x: exact(*x) * (1 + 2.0 ** -23))
      result = run("arithmetic")[0]
    assert result.outcome == FAILED and result.words.startswith(words)
