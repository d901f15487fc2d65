"""Kernels of Metal's language, by a compiler of C++ and its sanitizers: they agree with the virtual GPU about results,
and about damages."""
from __future__ import annotations
import random
from pathlib import Path

import pytest

from test.emulator.metal.damage import mutations, witness
from test.emulator.metal.damage.mutations import damaged, kernels, whole
from test.emulator.mutants.mutation_kernels import Case

# classes of damage, and the sanitizers that see them
SEEN = {"a barrier less": "races", "an index outside": "memory", "an index outside of shared memory": "memory",
        "a misaligned vector": "memory", "a gate less": "memory", "stores to one element": "races",
        "an unknown name": "memory"}
EACH = 2

def needs(kind: str) -> None:
  if why := witness.missing(kind): pytest.skip(why)

@pytest.mark.slow
@pytest.mark.parametrize("kind", witness.SANITIZERS)
@pytest.mark.parametrize("case", kernels(), ids=lambda case: case.name)
def test_results_are_those_of_the_virtual_gpu(case: Case, kind: str, tmp_path: Path) -> None:
  needs(kind)
  assert witness.run(case, kind, tmp_path) == ("", whole(case.name))

@pytest.mark.slow
@pytest.mark.parametrize("number", range(EACH))
@pytest.mark.parametrize("damage", SEEN)
def test_damages_that_both_see(damage: str, number: int, tmp_path: Path) -> None:
  """What the virtual GPU reports, sanitizers report; and what it does not, they do not either."""
  needs(SEEN[damage])
  rng, made = random.Random(f"{damage} {number}"), None
  while made is None: made = damaged(rng, damage)
  verdict, why = mutations.judge(made, rng)
  found = witness.run(made.case, SEEN[damage], tmp_path)
  assert (verdict == "reported") == bool(found.report), f"{made.what}: {verdict}, {why}; {found.report}"
