"""The CPU's own steps of the self-test, and their messages about problems."""
import pytest

from tinyhw import device
from tinyhw.device import Device
from tinyhw.drivers import cpu
from tinyhw.drivers.cpu import selftest
from tinyhw.errors import DeviceError
from tinyhw.selftest import frame
from tinyhw.selftest.frame import FAILED, OK, Tools, Wrong

def run(*names: str) -> list[frame.ProbeResult]:
  session = selftest.begin("CPU", Tools(lambda text, arch: b""))
  return list(frame.run(session, [step for step in session.first() if step.name in names]))

def test_they_pass() -> None:
  results = run("processor", "code pages", "opens", "threads")
  assert [r.outcome for r in results[:3]] == [OK] * 3 and results[3].outcome in (OK, frame.ABSENT), results

def test_a_processor_without_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
  def refuse(*arguments: object) -> str: raise DeviceError("it lacks avx2")
  monkeypatch.setattr(selftest, "choose_arch", refuse)
  assert [r.outcome for r in run("processor", "code pages")] == [FAILED, frame.NOT_RUN]

def test_code_that_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
  kept = cpu.module(device.runtime).sample(device.runtime)[0]
  monkeypatch.setattr(cpu.module(device.runtime), "sample", lambda runtime: (kept, lambda address: [0, 0, 0]))
  assert run("code pages")[0].words == "code that was placed and called gave no result"

def test_rights_of_pages() -> None:
  lines = ["1000-2000 r-xp 0 0 0\n", "2000-3000 rw-p 0 0 0\n"]
  assert (selftest.rights(0x1FFF, lines), selftest.rights(0x2000, lines)) == ("r-xp", "rw-p")
  with pytest.raises(Wrong, match="no mapping at 0x3000"): selftest.rights(0x3000, lines)

def test_pages_that_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(selftest, "rights", lambda address, lines: "rwxp")
  assert run("code pages")[0].words == "the pages of code are rwxp: they should be executable and not writable"

def test_a_device_that_does_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
  def refuse(self: object, name: str) -> None: raise DeviceError("no")
  monkeypatch.setattr(type(Device), "__getitem__", refuse)
  assert run("opens")[0].words == "no"

def test_threads_that_do_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
  ring = Device["CPU"].ring  # type: ignore[attr-defined]
  monkeypatch.setattr(ring, "threads", ring.threads + 1)
  monkeypatch.setattr(ring, "start", lambda: None)
  assert run("threads")[0].words == f"0 of {ring.threads - 1} worker threads started"
