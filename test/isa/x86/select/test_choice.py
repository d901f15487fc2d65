"""Choices: the instructions of a WHERE, an IF and a gated store. They choose as UOps define it, at NaN and signed zeros
too."""
from __future__ import annotations
from collections import Counter
from collections.abc import Callable
import math
import struct

from generators.program_builder import Builder
import pytest
from x86 import kernels as x86_kernels

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.target import target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

ARCHS = ("x86_64:avx2", "x86_64:avx512")
N = 64
Choice = Callable[[UOp, UOp], UOp]

def less(a: UOp, b: UOp) -> UOp: return a.alu(Ops.CMPLT, b)
def where(c: UOp, a: UOp, b: UOp) -> UOp: return c.alu(Ops.WHERE, a, b)
def number(x: UOp, value: float) -> UOp: return UOp.const(x.dtype, value)

CHOICES: dict[str, tuple[Choice, str]] = {   # the choice between x and y, and the instruction that does it
  "lesser": (lambda x, y: where(less(x, y), x, y), "min"),
  "lesser, the other way": (lambda x, y: where(less(y, x), y, x), "min"),
  "greater": (lambda x, y: where(less(x, y), y, x), "max"),
  "greater, the other way": (lambda x, y: where(less(y, x), x, y), "max"),
  "MAX": (lambda x, y: x.alu(Ops.MAX, y), "max"),
  "relu": (lambda x, y: where(less(number(x, 0), x), x, number(x, 0)), "max"),
  "at most 1": (lambda x, y: where(less(number(x, 1), x), number(x, 1), x), "min"),
  "what passes relu": (lambda x, y: where(less(number(x, 0), x), y, number(x, 0)), "kept"),
  "what does not": (lambda x, y: where(less(number(x, 0), x), number(x, 0), y), "blend"),
}
CORNERS = (0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 2.0)

def program(choice: Choice, dtype: DType, lanes: int) -> Program:
  b = Builder("choice")
  out, p, q = b.param(0, dtype, N), b.param(1, dtype, N), b.param(2, dtype, N)
  with b.loop(N // lanes, AxisType.GLOBAL) as g:
    b.store(out, g * lanes, b.add(choice(b.load(p, g * lanes, lanes), b.load(q, g * lanes, lanes))))
  return b.program()

def memory(dtype: DType) -> list[bytes]:
  """All pairs of the corners of a type."""
  corners = CORNERS if dtypes.is_float(dtype) else (0, 1, 2, 3, int(dtype.max), int(dtype.max) - 1, int(dtype.min),
                                                    int(dtype.min) + 1)
  pairs = [(a, b) for a in corners for b in corners]
  return [bytes(N * dtype.itemsize), *[struct.pack(f"<{N}{dtype.fmt}", *column) for column in zip(*pairs, strict=True)]]

def selected(p: Program, arch: str) -> Counter[str]:
  """The count of each selected mnemonic, without copies and constants."""
  t = target(arch)
  return Counter(inst.row.name for block in t.select(p, t).blocks for inst in block.insts)

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", CHOICES)
def test_values(name: str, arch: str) -> None:
  for dtype in (dtypes.float32, dtypes.float64, *dtypes.ints):
    for lanes in (1, 2, 4, target(arch).capabilities.vector_bytes // dtype.itemsize):
      # codegen makes it a WHERE
      if name == "MAX" and not target(arch).capabilities.supports(Ops.MAX, dtype.vec(lanes)): continue
      x86_kernels.run(program(CHOICES[name][0], dtype, lanes), arch, memory(dtype))

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", CHOICES)
def test_one_instruction_chooses(name: str, arch: str) -> None:
  """No instruction compares, if the chosen one does that itself."""
  choice, kind = CHOICES[name]
  for dtype in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint8,
                *((dtypes.int64,) if arch == ARCHS[1] else ())):
    if name == "MAX" and dtypes.is_float(dtype): continue
    found = selected(program(choice, dtype, 32 // dtype.itemsize), arch)
    compares = sum(n for row, n in found.items() if "cmp" in row and row != "cmp")
    blends = sum(n for row, n in found.items() if "blend" in row)
    extrema = sum(n for row, n in found.items() if row.startswith(("vmin", "vmax", "vpmin", "vpmax")))
    if kind in ("min", "max"):
      assert (compares, blends, extrema) == (0, 0, 1), found
      assert any(kind in row for row in found)
    else: assert (compares, blends, extrema) == (1, kind == "blend", 0), found

@pytest.mark.parametrize("arch", ARCHS)
def test_scalars(arch: str) -> None:
  floats = selected(program(CHOICES["relu"][0], dtypes.float32, 1), arch)
  assert floats["vmaxss"] == 1 and not floats["vcmpss"]
  integers = selected(program(CHOICES["lesser"][0], dtypes.int32, 1), arch)
  assert integers["cmovl"] == 1 and not integers["setl"] and not integers["test"]

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("stored", [False, True])
def test_a_comparison_of_floats_stays_a_mask_where_it_only_chooses(stored: bool, dtype: DType, arch: str) -> None:
  """It moves to a general register, as 0 or 1, only if it has another user: here a store, and a choice between
  integers."""
  b = Builder("masks")
  out, flags, p, q = b.param(0, dtype, N), b.param(1, dtypes.int32, N), b.param(2, dtype, N), b.param(3, dtype, N)
  with b.loop(N, AxisType.GLOBAL) as g:
    x, y = b.load(p, g), b.load(q, g)
    equal, unequal = b.add(x.alu(Ops.CMPEQ, y)), b.add(x.alu(Ops.CMPNE, x))
    b.store(out, g, b.add(where(unequal, y, where(equal, x * 3, x + y))))
    if stored: b.store(flags, g, b.add(where(equal, UOp.const(dtypes.int32, 7), UOp.const(dtypes.int32, 8))))
  found = selected(b.program(), arch)
  moves = {"x86_64:avx2": "vmovd", "x86_64:avx512": "kmovw"}[arch]
  assert (found[moves] > 0) is stored, found
  x86_kernels.run(b.program(), arch, [bytes(N * dtype.itemsize), bytes(4 * N), *memory(dtype)[1:]])

@pytest.mark.parametrize("arch", ARCHS)
def test_a_comparison_that_others_want_is_made(arch: str) -> None:
  """The mask is stored too, and a minimum and a maximum share it. That costs one comparison, and each choice still is
  one instruction."""
  b = Builder("shared")
  out, flags, x, y = b.param(0, dtypes.float32, N), b.param(1, dtypes.bool, N), b.param(2, dtypes.float32,
                                                                                        N), b.param(3, dtypes.float32,
                                                                                                    N)
  with b.loop(N // 8, AxisType.GLOBAL) as g:
    p, q = b.load(x, g * 8, 8), b.load(y, g * 8, 8)
    mask = b.add(less(p, q))
    b.store(flags, g * 8, mask)
    b.store(out, g * 8, b.add(where(mask, p, q) * 2 + where(mask, q, p)))
  found = selected(b.program(), arch)
  assert (found["vcmpps"], found["vminps"], found["vmaxps"]) == (1, 1, 1)
  empty, *data = memory(dtypes.float32)
  x86_kernels.run(b.program(), arch, [empty, bytes(N), *data])

def branches(compare: Ops, dtype: DType, after: bool) -> Program:
  """Stores under a gate and in an IF. after: a store is between the comparison and its user."""
  b = Builder("branches")
  out, x, y = b.param(0, dtype, 3 * N), b.param(1, dtype, N), b.param(2, dtype, N)
  with b.loop(N, AxisType.GLOBAL) as g:
    p, q = b.load(x, g), b.load(y, g)
    first, second = b.add(p.alu(compare, q)), b.add(q.alu(compare, p))
    third = b.add(p.alu(compare, UOp.const(dtype, 1)))
    if after: b.store(out, g + 2 * N, p)
    b.store(out, g, b.add(where(third, p, q)), gate=first)
    with b.when(second): b.store(out, g + N, q)
  return b.program()

@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("compare", [Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE])
def test_branches(compare: Ops, arch: str) -> None:
  for dtype in (dtypes.int32, dtypes.uint8, dtypes.int64, dtypes.uint64, dtypes.float32):
    for after in (False, True):
      _, *data = memory(dtype)
      x86_kernels.run(branches(compare, dtype, after), arch, [b"\7" * (3 * N * dtype.itemsize), *data])

@pytest.mark.parametrize("arch", ARCHS)
def test_flags_decide_at_once(arch: str) -> None:
  found = selected(branches(Ops.CMPLT, dtypes.int32, False), arch)
  assert found["setl"] == 1 and found["jge"] == 1, "the second is decided after a store, so its flag is kept"
  assert found["cmovl"] == 1
