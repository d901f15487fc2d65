"""Steps in order: the result of each, and failures that stop the rest."""
import math

import pytest

from tinyhw.errors import DeviceError
from tinyhw.selftest import frame
from tinyhw.selftest.frame import ABSENT, FAILED, NOT_RUN, OK, Absent, Session, Probe, Tools, Wrong

class Recovering(Session):
  recovered = 0
  def recover(self) -> None: self.recovered += 1

def raising(error: BaseException) -> Probe:
  def run(session: Session) -> str: raise error
  return Probe(type(error).__name__, "does it", "look there", run)

def good(session: Session) -> str: return f"of {session.name}"

def outcomes(*steps: Probe) -> tuple[list[tuple[str, str]], int]:
  session = Recovering("CPU", Tools(lambda text, arch: b""))
  return [(r.outcome, r.words) for r in frame.run(session, steps)], session.recovered

def test_steps_go_on_after_one_that_failed() -> None:
  found, recovered = outcomes(raising(Wrong("bits differ")), Probe("good", "", "", good), raising(Absent("one card")),
                              raising(DeviceError("gone")))
  assert found == [(FAILED, "bits differ"), (OK, "of CPU"), (ABSENT, "one card"), (FAILED, "gone")] and recovered == 2

def test_nothing_runs_behind_a_basic_step_that_failed() -> None:
  found, recovered = outcomes(raising(Wrong("dead"))._replace(basic=True), Probe("good", "", "", good),
                              raising(Absent("")))
  assert found == [(FAILED, "dead"), (NOT_RUN, 'it needs "Wrong"'), (NOT_RUN, 'it needs "Wrong"')] and recovered == 1

def test_a_basic_step_that_is_absent_stops_nothing() -> None:
  assert outcomes(raising(Absent("none"))._replace(basic=True), Probe("good", "", "", good))[0][1][0] == OK

def test_an_error_of_python_is_told_with_its_place() -> None:
  (outcome, words), = outcomes(raising(KeyError("x")))[0]
  assert outcome == FAILED and words.startswith("KeyError: 'x' (at test_frame.py:")

def test_ctrl_c_is_no_result() -> None:
  with pytest.raises(KeyboardInterrupt): outcomes(raising(KeyboardInterrupt()))

def test_units_of_the_last_place() -> None:
  found = [frame.ulps(x, y) for x, y in ((1.0 + 2 ** -23, 1.0), (1.0 - 2 ** -24, 1.0), (0.0, 0.0), (math.inf, 1.0))]
  assert found == [1.0, 0.5, 0.0, math.inf]

def test_bytes_for_people() -> None:
  assert (frame.short_bytes(100), frame.short_bytes(1536)) == ("100 bytes", "1.50 KB")
