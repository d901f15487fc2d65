"""Kernels of the engine, one of each kind, with data. formats/mutations.py damages them.

Tensor programs are scheduled, optimised and compiled as usual.
"""
from __future__ import annotations
import functools
import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from test.codegen.kernels import data_for
from tinyhw import Tensor, dtypes
from tinyhw.arithmetic import to_bytes
from tinyhw.codegen.optimize import optimize
from tinyhw.codegen.passes import lower
from tinyhw.dtype import DType
from tinyhw.engine.schedule.schedule import canonicalize, schedule
from tinyhw.machine.ir.code import Code
from tinyhw.uop.enums import AxisType
from tinyhw.uop.matrix import Matrix
from tinyhw.uop.ops import UOp

class Case(NamedTuple):
  """A kernel, and the initial content of its buffers; None for those that it writes."""
  name: str
  arch: str
  code: Code
  buffers: tuple[bytes | None, ...]
  sizes: tuple[int, ...]
  grid: int

def empty(*shape: int, dtype: DType = dtypes.float32) -> Tensor:
  return Tensor.empty(*shape, dtype=dtype, device="PYTHON")

def product(m: int, n: int, k: int, dtype: DType) -> Tensor:
  return (empty(m, k, dtype=dtype) @ empty(k, n, dtype=dtype))

def softmax() -> Tensor: return empty(3, 33).softmax(1)

def integers(dtype: DType) -> Tensor:
  a, b = empty(40, dtype=dtype), empty(40, dtype=dtype)
  return a // (b.abs() + 1) * 7 + (a & b) - (a < b).where(a, b << 2)

TENSORS: dict[str, Callable[[], Tensor]] = {
  "elementwise": lambda: (empty(70) * 2 + empty(70)).relu() - empty(70).exp2() / 3,
  "sum over lanes": lambda: empty(700).sum(),
  "rows": lambda: empty(4, 33).sum(1),
  "softmax": softmax,
  "product of halves": lambda: product(64, 32, 16, dtypes.float16),
  "product": lambda: product(17, 10, 12, dtypes.float32),
  "convolution": lambda: empty(1, 2, 4, 4).conv2d(empty(2, 2, 3, 3), padding=1).relu(),
  "gated": lambda: empty(4, 33).pad(((1, 1), (0, 3))).flip(0),
  "gather": lambda: empty(5, 33)[empty(3, dtype=dtypes.int32).abs() % 5],
  "64 bits": lambda: integers(dtypes.int64),
  "doubles": lambda: (empty(40, dtype=dtypes.float64) / 7).abs().sqrt(),
  "sorted": lambda: empty(2, 9).sort(1)[0],
}

def crowded() -> UOp:
  """Return a kernel with more live values than registers."""
  n, lanes = 160, 32
  a, r = UOp.param(1, dtypes.float64, lanes * n), UOp.range(lanes, 0, AxisType.LOCAL)
  values = [a.index(r * n + k).load() for k in range(n)]
  total = values[0]
  for x in values[1:]: total = total + x
  for x in values: total = total + x
  return UOp.sink(UOp.param(0, dtypes.float64, lanes).index(r).store(total, r))

def case(name: str, isa: str, arch: str, kernel: UOp, spread: bool = True,
         matrix: tuple[Matrix, ...] | None = None) -> Case:
  """Compile a kernel, and make data for it: small whole numbers. matrix: the shapes of the matrix unit that it may use,
  if not all."""
  target = importlib.import_module(f"tinyhw.isa.{isa}.target")  # the ISA is a parameter
  capable = target.capabilities(arch) if matrix is None else replace(target.capabilities(arch), matrix=matrix)
  program = lower(optimize(kernel, capable) if spread else kernel, capable, name.replace(" ", "_"))
  data: dict[int, list[Any]] = data_for(kernel)
  contents = [b"".join(to_bytes(x, p.dtype.scalar()) for x in data[p.arg[0]]) for p in program.params]
  buffers = tuple([None if p.arg[0] in program.written else content for p, content in zip(program.params, contents)])
  assert isinstance(program.grid, int) and not program.variables
  return Case(name, arch, target.compile(program, arch), buffers, tuple(map(len, contents)), program.grid)

@functools.lru_cache(None)
def cases(isa: str, arch: str) -> tuple[Case, ...]:
  """Return all kernels for an architecture of an ISA, which is a folder of tinyhw/isa."""
  found = []
  for name, make in TENSORS.items():
    kernels = [k.sink for k in schedule(canonicalize([make().uop])).kernels]
    found += [case(name if len(kernels) == 1 else f"{name} {i}", isa, arch, kernel) for i, kernel in enumerate(kernels)]
  return (*found, case("spilled", isa, arch, crowded(), spread=False))
