"""Rotations, and logic of three operands: their instructions, and their results."""
from __future__ import annotations
from collections.abc import Callable
import itertools

import numpy as np
from generators.program_builder import Builder, broadcast
import pytest
from test.isa.x86.select.test_choice import ARCHS, selected
from x86 import kernels as x86_kernels

from tinyhw.dtype import DType, dtypes
from tinyhw.isa.x86.target import target
from tinyhw.uop.enums import AxisType, Ops
from tinyhw.uop.ops import UOp
from tinyhw.uop.program import Program

N = 64
LOGIC = (Ops.AND, Ops.OR, Ops.XOR)
Body = Callable[[UOp, UOp, UOp], UOp]

def program(body: Body, dtype: DType, lanes: int, element: bool = False) -> Program:
  """out = body(x, y, z); element: z is one element of memory in all lanes."""
  b = Builder("logic")
  out, x, y, z = [b.param(k, dtype, N) for k in range(4)]
  with b.loop(N // lanes, AxisType.GLOBAL) as g:
    third = broadcast(b.load(z, g), lanes) if element else b.load(z, g * lanes, lanes)
    b.store(out, g * lanes, b.add(body(b.load(x, g * lanes, lanes), b.load(y, g * lanes, lanes), b.add(third))))
  return b.program()

def run(p: Program, arch: str, dtype: DType) -> None:
  noise = np.random.default_rng(1)
  x86_kernels.run(p, arch, [bytes(N * dtype.itemsize), *[noise.bytes(N * dtype.itemsize) for _ in "xyz"]])

def rotated(x: UOp, count: int, other: int, right: Ops = Ops.SHR) -> UOp:
  return x.alu(Ops.SHL, UOp.const(x.dtype, count)).alu(Ops.OR, x.alu(right, UOp.const(x.dtype, other)))

def lanes_of(arch: str, dtype: DType) -> tuple[int, ...]:
  return 1, 4, target(arch).capabilities.vector_bytes // dtype.itemsize

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", [dtypes.uint32, dtypes.uint64], ids=str)
def test_rotations(dtype: DType, arch: str) -> None:
  bits = dtype.bitsize
  for lanes, count in itertools.product(lanes_of(arch, dtype), (1, 7, bits - 1)):
    for body in (lambda x, y, z: rotated(x, count, bits - count) + y, lambda x, y,
                 z: rotated(x ^ y, count, bits - count) ^ z):
      p = program(body, dtype, lanes)
      run(p, arch, dtype)
      found = selected(p, arch)
      # an address may need a shl
      shifts = sum(n for row, n in found.items() if row.startswith(("vpsll", "vpsrl", "shr")))
      rotations = found["rol"] + found["vprold"] + found["vprolq"]
      assert (shifts, rotations) == ((0, 1) if lanes == 1 or arch == ARCHS[1] else (2, 0)), found

@pytest.mark.parametrize("arch", ARCHS)
def test_what_is_no_rotation(arch: str) -> None:
  """Counts with a wrong sum, two values, and shifts with other users."""
  for lanes in lanes_of(arch, dtypes.uint32):
    for body in (lambda x, y, z: rotated(x, 7, 24), lambda x, y, z: (x << 7).alu(Ops.OR, y >> 25), lambda x, y,
                 z: rotated(x, 7, 25) + (x << 7)):
      p = program(body, dtypes.uint32, lanes)
      run(p, arch, dtypes.uint32)
      assert not any(row.startswith(("vprol", "rol")) for row in selected(p, arch))

@pytest.mark.slow
@pytest.mark.parametrize("inner", LOGIC)
@pytest.mark.parametrize("outer", LOGIC)
def test_logic_of_three_operands(outer: Ops, inner: Ops) -> None:
  bodies: tuple[Body, ...] = (lambda x, y, z: x.alu(inner, y).alu(outer, z), lambda x, y,
                              z: z.alu(outer, x.alu(inner, y)),
                              lambda x, y, z: (x + 1).alu(inner, y + 1).alu(outer, z), lambda x, y,
                              z: x.alu(inner, y).alu(outer, y))
  for dtype in (dtypes.int32, dtypes.uint64, dtypes.uint8):
    for body, element, lanes in itertools.product(bodies, (False, True), (16 // dtype.itemsize, 64 // dtype.itemsize)):
      p = program(body, dtype, lanes, element)
      for arch in ARCHS:
        if lanes * dtype.itemsize <= target(arch).capabilities.vector_bytes: run(p, arch, dtype)
      found = selected(p, ARCHS[1])
      assert found["vpternlogd"] + found["vpternlogq"] == 1 and not any(row.startswith(("vpand", "vpor", "vpxor"))
                                                                        for row in found), found

def test_an_operation_that_others_want_stays() -> None:
  p = program(lambda x, y, z: (x & y ^ z) + (x & y), dtypes.int32, 16)
  run(p, ARCHS[1], dtypes.int32)
  assert selected(p, ARCHS[1])["vpandd"] == 1 and not selected(p, ARCHS[1])["vpternlogd"]
