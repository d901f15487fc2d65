"""Damaged kernels and messages: the virtual Metal reports damages that change a result or break a rule.

In CI the mutants are the same each time. Nightly (--hypothesis-profile=nightly) there are some ten times as many, with
another seed each time.
"""
from __future__ import annotations
from collections import Counter

import pytest
from formats.mutations import cases

from test.emulator.metal.damage import message_mutations
from test.emulator.metal.damage.mutations import DAMAGES, SMALLER, mutants
from test.emulator.mutants.mutations import MISSED, Mutant, counts, drawn_seed, rate, shown

KINDS = (*DAMAGES, SMALLER)

@pytest.fixture(scope="module")
def of_kernels() -> list[Mutant]:
  return list(mutants(cases(20, 200) * len(KINDS), drawn_seed()))

@pytest.mark.slow
def test_nearly_all_damages_of_kernels_are_reported(of_kernels: list[Mutant]) -> None:
  print(shown(counts(of_kernels)))
  noticed, mattered = rate(of_kernels)
  assert mattered >= 100 and noticed >= 0.95 * mattered, (f"{noticed} of {mattered}: "
                                                          f"{[m for m in of_kernels if m.verdict in MISSED]}")
  reported = Counter(m.kind for m in of_kernels if m.verdict == "reported")
  assert all(reported[kind] >= 5 for kind in KINDS), reported

@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")   # finalizers meet a damaged device
def test_every_damage_of_messages_is_noticed() -> None:
  found = list(message_mutations.mutants(cases(2, 20) * len(message_mutations.DAMAGES), drawn_seed()))
  print(shown(counts(found)))
  noticed, mattered = rate(found)
  missed = [m for m in found if m.verdict in MISSED]
  assert mattered == len(found) and noticed >= 0.95 * mattered, f"{noticed} of {len(found)}: {missed}"
