"""Kernels by which modes are told apart, and what is launched for them in each, for test/engine/run/test_compile.py.

As a program it is another process, which fills the cache.
"""
from __future__ import annotations
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

if __name__ == "__main__": sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tinyhw.codegen import search
from tinyhw.codegen.kernel.grid import ranges_of
from tinyhw.codegen.optimize import with_few_ranges
from tinyhw.codegen.transform.tiling import Opt, OptOps
from tinyhw.config import Context
from tinyhw.device import Device
from tinyhw.engine.run import compile as compiling, realize, tune
from tinyhw.engine.schedule.lower import Kernel
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.tensor import Tensor
from tinyhw.uop.enums import Ops

ARCH = "sm_89"      # for which all of them change code
DEVICE = "NULL:8"   # compiles and runs nothing; its programs are Code

# Each variable of tinyhw/config.py with which the same kernel becomes other code for the same device.
MODES: dict[str, dict[str, int]] = {
  "as usual": {}, "NOOPT": {"NOOPT": 1}, "BEAM": {"BEAM": 1}, "BEAM, wider": {"BEAM": 2}, "NV_BASES": {"NV_BASES": 0},
  "ALLOW_TF32": {"ALLOW_TF32": 1}, "ALLOW_FP8_SUMS": {"ALLOW_FP8_SUMS": 1}}

def kernels() -> list[Kernel]:
  """An elementwise one, products of float32 and of fp8, random numbers."""
  floats = Tensor.empty(64, 64, device=DEVICE)
  fp8 = Tensor.empty(64, 64, dtype="fp8e4m3", device=DEVICE)
  made = [floats * 2 + 1, floats @ floats.T, fp8.matmul(fp8.T, dtype="float32"), Tensor.rand(1000, device=DEVICE)]
  return [next(k for k in schedule(canonicalize([x.uop])).kernels if k.sink.op is Ops.SINK) for x in made]

def winner(sink: Any, capabilities: Any, measure: Any, width: int, say: Any = None) -> tuple[Opt, ...]:
  """In the place of a search, which takes time: another winner for each width."""
  if any(u.op in (Ops.REDUCE, Ops.THREEFRY) for u in sink.toposort()): return ()
  loop = ranges_of(with_few_ranges(sink, capabilities).src[0])[-1].arg[0]
  return (Opt(OptOps.LOCAL, loop, 32 * width), Opt(OptOps.GRID, loop))

def open_device() -> Any:
  """The device, with nothing loaded."""
  Device.close(DEVICE)
  opened = Device[DEVICE]
  opened.arch = ARCH
  tune._tuned.clear()
  return opened

def launched(mode: dict[str, int]) -> list[str]:
  """Return the launch of each kernel in a mode: code, grid, values."""
  with Context(**mode), mock.patch.object(search, "search", winner):
    return [repr([(p.runner.program, p.runner.grid, p.fixed) for p in realize.found_parts(DEVICE, [k.sink])[0]])
            for k in kernels()]

@contextlib.contextmanager
def without(left_out: int | None) -> Iterator[None]:
  """Keys leave out a mode, by its place."""
  whole = compiling.mode
  def mode() -> tuple[int, ...]: return tuple([x for k, x in enumerate(whole()) if k != left_out])
  with mock.patch.object(compiling, "mode", mode), mock.patch.object(tune, "mode", mode): yield

def main() -> None:
  """Compile all kernels in all modes. Argument: the mode that keys leave out."""
  open_device()
  with without(int(sys.argv[1]) if len(sys.argv) > 1 else None):
    for mode in MODES.values(): launched(mode)

if __name__ == "__main__": main()
