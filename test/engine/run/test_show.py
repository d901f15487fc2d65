"""Output of DEBUG: numbers in columns, kernels as expressions, each level in a process with an empty environment."""
from __future__ import annotations
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tinyhw.dtype import dtypes
from tinyhw.engine.run import show
from tinyhw.helpers import GlobalCounters
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import KernelInfo, UOp

BAR = 101  # the column of the bar before the totals
ROOT = Path(__file__).resolve().parents[3]

@pytest.mark.parametrize("value, text", [(0, "   0.00  B/s"), (999, " 999.00  B/s"), (12_500_000_000, "  12.50 GB/s"),
                                         (3e12, "   3.00 TB/s")])
def test_amounts(value: float, text: str) -> None: assert show.amount(value, "B/s") == text

@pytest.mark.parametrize("seconds, text", [(1.5, "   1.50 s "), (0.0123, "  12.30 ms"), (4.2e-6, "   4.20 us")])
def test_durations(seconds: float, text: str) -> None: assert show.duration(seconds) == text

def test_line_of_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
  GlobalCounters.reset()
  runner = SimpleNamespace(device="CPU", name="r_64", operations=2_000_000, bytes_moved=4_000_000, variables=())
  step: Any = SimpleNamespace(runner=runner, grid=64, variables=())
  show.show_launch(step, 1e-3)
  show.show_launch(step, 1e-3)
  *legend, first, second = capsys.readouterr().out.splitlines()
  assert not legend or legend == [show.LEGEND], "once in a process"
  assert len(show.LEGEND) == len(first) and show.LEGEND.index("|") == BAR
  assert show.LEGEND.index("kernel") == first.index("r_64") and show.LEGEND.index(" time") + 5 == first.index(" ms") + 3
  assert first == ("*** CPU         0 r_64                         grid      64    1.00 ms    2.00 GFLOP/s    4.00 "
                   "GB/s  "
                   "|    1.00 ms    2.00 MFLOP    4.00 MB")
  assert (first.index("|") == BAR and second.endswith("|    2.00 ms    4.00 MFLOP    8.00 MB")
          and len(first) == len(second))

def test_line_of_a_copy(capsys: pytest.CaptureFixture[str]) -> None:
  GlobalCounters.reset()
  destination, source = SimpleNamespace(device="CPU"), SimpleNamespace(device="PYTHON", nbytes=1000)
  show.show_copy(destination, source, 1e-6)  # type: ignore[arg-type]
  line = capsys.readouterr().out.splitlines()[-1]
  assert "copy from PYTHON" in line and "1.00 GB/s" in line and line.index("|") == BAR

def test_kernels_as_expressions() -> None:
  a, b = UOp.param(0, dtypes.float32, 16), UOp.param(1, dtypes.float32, 64)
  i, k = UOp.range(16, 0, AxisType.GLOBAL), UOp.range(4, 1, AxisType.REDUCE)
  x = UOp(Ops.INDEX, dtypes.float32, (b, i * 4 + k)).load()
  total = (x * x).reduce(Ops.ADD, k)
  kernel = UOp.sink(UOp(Ops.INDEX, dtypes.float32, (a, i)).store(total + 1.0, i), arg=KernelInfo())
  assert show.expressions(kernel) == "\n".join([
    "  r0 in GLOBAL 16", "  r1 in REDUCE 4", "  x0 = data1[(r0*4)+r1]", "  x1 = reduce(x0*x0, r1, Ops.ADD)",
    "  store(data0[r0], x1+1.0, r0)"])

PROGRAM = "from tinyhw import Tensor; Tensor.rand(16,16).matmul(Tensor.rand(16,16)).relu().realize()"
MARKS = ("*** ", "GRID", "kernel r_", "reduce(", "u1 = PARAM", "instruction")  # of levels 2 to 7

def test_source_is_its_own_listing() -> None:
  environment = {"DEBUG": "7", "CACHE": "0", "DEV": "NULL", "NULL_ARCH": "opencl", "PATH": ""}
  softmax = "from tinyhw import Tensor; Tensor.empty(64, 64).softmax(-1).realize()"    # lanes share its sums
  done = subprocess.run([sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {softmax}"],
                        env=environment, capture_output=True, text=True, timeout=120)
  assert done.returncode == 0 and "void k_r_" in done.stdout and "barrier(CLK_LOCAL_MEM_FENCE);" in done.stdout

@pytest.mark.parametrize("level", (2, 4, 7))
def test_levels_print_with_an_empty_environment(level: int) -> None:
  """The issue's line. PATH is empty, and so is everything else."""
  environment = {"DEBUG": str(level), "CACHE": "0", "DEV": "NULL", "NULL_ARCH": "x86_64:avx2", "PATH": ""}
  done = subprocess.run([sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {PROGRAM}"],
                        env=environment,
                        capture_output=True, text=True, timeout=120)
  assert done.returncode == 0, done.stderr
  assert [mark in done.stdout for mark in MARKS] == [n <= level for n in range(2, 8)]
  if level == 7: assert "<string>:1 <module>" in done.stdout and "vfmadd" in done.stdout and "bound of" in done.stdout
