"""Every instruction that the processor in Python knows, on the processor that runs the tests (test/support/x86_silicon.py).

So the kernels that are executed in Python, and the bytes of the table, mean what the hardware says. SILICON_CASES: cases of each row, 2 by default.
"""
from __future__ import annotations
import os
import random
import sys
from collections.abc import Iterator

import pytest
import x86_lanes
import x86_silicon

from tinyhw import device
from tinyhw.drivers.cpu import processor
from tinyhw.errors import DeviceError
from tinyhw.isa.x86.table import TABLE

CASES = int(os.environ.get("SILICON_CASES", "2"))
PARTS = 4

def features() -> frozenset[str]:
  if not sys.platform.startswith("linux"): pytest.skip("the page that faults is made by Linux's mprotect")
  try: return processor(device.runtime).features
  except DeviceError as error: pytest.skip(error.message)

@pytest.fixture(params=["avx512", "avx2"])
def silicon(request: pytest.FixtureRequest) -> Iterator[tuple[x86_silicon.Silicon, frozenset[str]]]:
  """This processor, at each level that it has, and its features there."""
  found = features()
  if request.param == "avx512" and "avx512bw" not in found: pytest.skip("this processor has no AVX-512")
  if "avx2" not in found: pytest.skip("this processor has no AVX2")
  if request.param == "avx2": found = frozenset(f for f in found if not f.startswith("avx512"))
  opened = x86_silicon.Silicon(found)
  yield opened, found
  opened.close()

@pytest.mark.parametrize("part", range(PARTS))
def test_instructions(silicon: tuple[x86_silicon.Silicon, frozenset[str]], part: int) -> None:
  """From the same registers, masks and memory the same results, and nothing else changed."""
  opened, found = silicon
  rows = [row for row in TABLE if x86_silicon.may_run_alone(row) and x86_silicon.has(found, row)][part::PARTS]
  known, wrong = 0, []
  for row in rows:
    done, differ = x86_silicon.check(opened, row, CASES, random.Random(row.isa.key))
    known, wrong = known + (done > 0), wrong + differ
  assert not wrong, f"{len(wrong)} differ: " + "\n".join(wrong[:4])
  assert known > (900 if opened.wide else 220), "the machine in Python knows fewer instructions than it did"

def test_a_wrong_meaning_is_found(silicon: tuple[x86_silicon.Silicon, frozenset[str]], monkeypatch: pytest.MonkeyPatch) -> None:
  opened, _ = silicon
  for key, rule in (("vmaxps_y_y_y", ("ff", "f", lambda a, b: b if b > a else a)), ("vpaddd_x_x_x", ("ii", "i", lambda a, b: a + b | 1))):
    assert x86_silicon.check(opened, TABLE[key], 40, random.Random(1)) == (40, [])
    with monkeypatch.context() as patch:
      patch.setattr(x86_lanes, "lane_rule", lambda name, rule=rule: rule)
      done, wrong = x86_silicon.check(opened, TABLE[key], 40, random.Random(1))
      assert done == 40 and wrong
