"""The quality of choices, by times that were recorded: how much slower the chosen opts are than the best known.

Records are made by test/bench/regret.py on a quiet machine. Nothing is timed here. zen5_avx512 lacks 14 kernels: their
choices changed later, on a machine that was not at hand.
"""
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RECORDS = sorted((ROOT / "test" / "golden" / "regret").glob("*.json"))
MOST_MEAN, MOST_UNKNOWN = 1.11, 0.1

_spec = importlib.util.spec_from_file_location("regret", ROOT / "test" / "bench" / "regret.py")
assert _spec is not None and _spec.loader is not None
regret = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(regret)

@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_choices_are_close_to_the_best(path: Path) -> None:
  """A choice without a recorded time is unknown. If many are, the record is old: measure again."""
  record = json.loads(path.read_text())
  known, unknown = regret.replayed(record)
  assert len(unknown) <= MOST_UNKNOWN * len(record["kernels"]), unknown
  mean = regret.mean_regret(known)
  assert mean <= MOST_MEAN, sorted((regret.regret_of(one), one["name"]) for one in known)[-8:]

def test_there_are_records() -> None: assert RECORDS

def test_kernels_are_drawn_by_the_seed() -> None:
  first, again = (regret.cases(3, 12) for _ in range(2))
  assert [case.name for case in first] == [case.name for case in again]
  assert all(a.sink is b.sink for a, b in zip(first, again))
  assert {case.name for case in regret.cases(4, 12)}.isdisjoint(case.name for case in first)
