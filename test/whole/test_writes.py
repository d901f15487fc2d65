"""In-place writes, views and gradients: random programs against PyTorch, some of them new each day.

test/campaigns/writes.py runs ten thousands of them.
"""
from __future__ import annotations
from collections import Counter
import time

import pytest

from test.helpers import HOME, on

pytest.importorskip("torch", reason="PyTorch says what the programs give")
from generators import write_programs

PROGRAMS = 200
SEED = int(time.time() // 86400) * 100_000 + 50_000   # of today, and not that of the nightly campaign; a failure prints
                                                      # its own

@pytest.mark.parametrize("part", range(2))
def test_random_programs_are_what_pytorch_gives(part: int) -> None:
  kinds: Counter[str] = Counter()
  with on(HOME):
    for seed in range(SEED + part * PROGRAMS // 2, SEED + (part + 1) * PROGRAMS // 2):
      program = write_programs.make(seed)
      found = write_programs.check(program)
      kinds[found] += 1
      assert found in ("same", "refused"), (f"python3 test/campaigns/writes.py --programs 1 --seed "
                                            f"{seed}\n{program}\n{found}")
  assert kinds["refused"] <= PROGRAMS // 5, kinds     # about one in fourteen

def test_a_seed_is_one_program() -> None:
  assert str(write_programs.make(7)) == str(write_programs.make(7)) != str(write_programs.make(9))

@pytest.mark.parametrize(("lines", "said"), (
  ((("v1 = fresh(data([1.0, 2.0]))", False), ("v1[0] = 3", False)), "v1 is [3.0, 2.0], not [1.0, 2.0]"),
  ((("v1 = fresh(data([1.0, 2.0]))", False), ("v1 += 0", True)), "v1 += 0: is not refused"),
))
def test_what_differs_is_said(lines: tuple[tuple[str, bool], ...], said: str) -> None:
  program = write_programs.Program(0, list(lines), {"v1": [1.0, 2.0]})
  with on(HOME): assert write_programs.check(program) == said
