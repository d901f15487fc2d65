"""Each launch of a kernel is timed, in replays and without, and what the memory's rate does not explain is named."""
from __future__ import annotations

import pytest

from test.helpers import on
from tinyhw import Tensor, TinyJit, trace
from tinyhw.engine.run.kernel_times import KernelTime, KernelTimes

@pytest.mark.parametrize("captured", (False, True))
def test_launches_are_counted(captured: bool) -> None:
  with on("CPU"):
    x = Tensor.arange(4096).float().contiguous().realize()
    step = (TinyJit if captured else lambda f: f)(lambda: (x * 2).contiguous().sum().realize())
    for _ in range(3): step()
    with KernelTimes() as times:
      for _ in range(5): step()
  assert times.kernels and {k.launches for k in times.kernels} == {5} and times.untimed == 0
  assert sum(k.bytes for k in times.kernels) >= 5 * 3 * 4 * 4096, "x is read, twice x written and read"
  assert times.seconds == sum(k.seconds for k in times.kernels) > 0

def test_the_recorder_from_before_comes_back() -> None:
  before = trace.recorder
  with pytest.raises(ZeroDivisionError), KernelTimes(): 1 / 0  # noqa: B018
  assert trace.recorder is before

def test_the_kernel_that_loses_most_time_is_named() -> None:
  times = KernelTimes()
  times._launches = {("big", 0): [(1.0, 1e9)] * 2, ("small", 1): [(0.5, 1e6)], ("tiny", 2): [(0.1, 1e8)]}
  assert [k.name for k in times.kernels] == ["big", "small", "tiny"]
  assert times.kernels[1] == KernelTime("small", 1, 0.5, 1e6) and times.kernels[1].lost(1e9) == pytest.approx(0.499)
  *rows, slowest = times.table(1e9, most=2)
  assert len(rows) == 4 and rows[-1] == "1 more" and "100%" in rows[1]
  assert slowest.startswith("slowest: small, 19.2% of the time")

def test_nothing_was_timed() -> None:
  times = KernelTimes()
  times.together([None, None], 0, 10)
  assert times.table(1e9) == ["no kernel was timed alone"] and times.untimed == 2
