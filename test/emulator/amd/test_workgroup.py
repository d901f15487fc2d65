"""Small kernels on the four architectures: arguments, loads, arithmetic, loops, divergence, LDS, barriers, the start
of a wave."""
from __future__ import annotations
import random
import struct

import pytest
from amd.kernels import Box, Kernel, floats, words

from tinyhw.emulator.amd.workgroup import StepResult, Workgroup
from tinyhw.emulator.errors import OutOfBounds, StrictError, UnknownInstruction
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.isa.amd.table import regs

ARCHS = ("gfx1100", "gfx1200", "gfx942", "gfx950")

def lane_number(k: Kernel) -> None:
  """Set v0 to the work-item's number along x."""
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))

def arguments(k: Kernel, count: int) -> None:
  """Load addresses of buffers to s[4:5], s[6:7] ..."""
  for i in range(count): k("s_load_b64", k.s(4 + 2 * i, 2), k.s(0, 2), None, offset=8 * i)
  k.wait(lgkm=0)

def hazard(k: Kernel, states: int) -> None:
  """Add wait states that CDNA needs and RDNA does not."""
  if k.cdna: k("s_nop", states - 1)

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("size", [1, 33, 64, 200])
def test_vector_addition(arch: str, size: int) -> None:
  k, box, source = Kernel(arch), Box(), random.Random(1)
  a, b = ([struct.unpack("<f", struct.pack("<f", source.uniform(-9, 9)))[0] for _ in range(size)] for _ in range(2))
  box.buffer(struct.pack(f"<{size}f", *a))
  box.buffer(struct.pack(f"<{size}f", *b))
  out = box.buffer(4 * size)
  arguments(k, 3)
  lane_number(k)
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k("global_load_b32", k.v(2), k.v(1), k.s(4, 2))
  k("global_load_b32", k.v(3), k.v(1), k.s(6, 2))
  k.wait(vm=0)
  k("v_add_f32", k.v(4), k.v(2), k.v(3))
  k("global_store_b32", k.v(1), k.v(4), k.s(8, 2))
  k("s_endpgm")
  for seed in range(3):
    out[:] = bytes(4 * size)
    box.run(k, (size,), seed)
    assert floats(out) == [struct.unpack("<f", struct.pack("<f", x + y))[0] for x, y in zip(a, b)]

@pytest.mark.parametrize("arch", ARCHS)
def test_a_loop_and_scalar_arithmetic(arch: str) -> None:
  """The sum of i * i for i from 9 down to 1."""
  k, box = Kernel(arch), Box()
  out = box.buffer(4 * k.lanes)
  arguments(k, 1)
  k("s_mov_b32", k.s(10), 9)
  k("s_mov_b32", k.s(11), 0)
  k.label("again")
  k("s_mul_i32", k.s(12), k.s(10), k.s(10))
  k("s_add_u32", k.s(11), k.s(11), k.s(12))
  k("s_sub_u32", k.s(10), k.s(10), 1)
  k("s_cmp_lg_u32", k.s(10), 0)
  k.jump("s_cbranch_scc1", "again")
  lane_number(k)
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k("v_mov_b32", k.v(2), k.s(11))
  k("global_store_b32", k.v(1), k.v(2), k.s(4, 2))
  k("s_endpgm")
  box.run(k, (k.lanes,))
  assert words(out) == [285] * k.lanes

@pytest.mark.parametrize("arch", ARCHS)
def test_divergence(arch: str) -> None:
  """Even lanes get 100 + lane, odd ones 200 + lane, in the two sides of a branch on EXEC."""
  k, box = Kernel(arch), Box()
  n = k.lanes
  out = box.buffer(4 * n)
  wide = "b64" if n == 64 else "b32"
  arguments(k, 1)
  lane_number(k)
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k("v_and_b32", k.v(2), 1, k.v(0))
  k("v_cmp_eq_u32", regs.reg(regs.S[n // 32], regs.VCC), 0, k.v(2))
  hazard(k, 2)
  k(f"s_and_saveexec_{wide}", k.mask(20), regs.reg(regs.S[n // 32], regs.VCC))
  k("v_add_nc_u32", k.v(3), 100, k.v(0))
  k(f"s_xor_{wide}", regs.reg(regs.S[n // 32], regs.EXEC), regs.reg(regs.S[n // 32], regs.EXEC), k.mask(20))
  k("v_add_nc_u32", k.v(3), 0xc8, k.v(0))
  k(f"s_mov_{wide}", regs.reg(regs.S[n // 32], regs.EXEC), k.mask(20))
  k("global_store_b32", k.v(1), k.v(3), k.s(4, 2))
  k("s_endpgm")
  box.run(k, (n,))
  assert words(out) == [(200 if lane & 1 else 100) + lane for lane in range(n)]

def barrier(k: Kernel) -> None:
  if k.arch.startswith("gfx12"):
    k("s_barrier_signal", 0xffffffff)
    k("s_barrier_wait", -1)
  else: k("s_barrier")

@pytest.mark.parametrize("arch", ARCHS)
def test_local_memory_reversed_across_waves(arch: str) -> None:
  k, box = Kernel(arch), Box()
  n = 4 * k.lanes
  out = box.buffer(4 * n)
  arguments(k, 1)
  lane_number(k)
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k("v_add_nc_u32", k.v(2), 7, k.v(0))
  k("ds_store_b32", k.v(1), k.v(2))
  k("v_sub_nc_u32", k.v(3), 4 * n - 4, k.v(1))
  k.wait(lgkm=0)
  barrier(k)
  k("ds_load_b32", k.v(4), k.v(3))
  k.wait(lgkm=0)
  k("global_store_b32", k.v(1), k.v(4), k.s(4, 2))
  k("s_endpgm")
  for seed in range(4):
    box.run(k, (n,), seed, lds=4 * n)
    assert words(out) == [7 + n - 1 - i for i in range(n)]

@pytest.mark.parametrize("arch,expected", [("gfx1100", "s2"), ("gfx1200", "ttmp"), ("gfx942", "s2")])
def test_where_the_workgroup_number_is(arch: str, expected: str) -> None:
  k, box = Kernel(arch), Box()
  out = box.buffer(12)
  k("s_load_b64", k.s(10, 2), k.s(0, 2), None)
  k.wait(lgkm=0)
  k("v_mov_b32", k.v(1), 0)
  for axis in range(3):
    if expected == "s2": k("v_mov_b32", k.v(2), k.s(2 + axis))
    elif axis == 0: k("v_mov_b32", k.v(2), k.s(regs.TTMP + 9))
    else:
      k("s_bfe_u32", k.s(20 + 2 * axis), k.s(regs.TTMP + 7), (0x100000 if axis == 1 else 0x100010))
      k("v_mov_b32", k.v(2), k.s(20 + 2 * axis))
    k("global_store_b32", k.v(1), k.v(2), k.s(10, 2), offset=4 * axis)
  k("s_endpgm")
  box.run(k, (1,), group=(5, 6, 7), group_ids=(True, True, True))
  assert words(out) == [5, 6, 7]

def test_work_item_numbers_are_packed() -> None:
  k, box = Kernel(), Box()
  out = box.buffer(4 * 4 * 3 * 2)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_bfe_u32", k.v(1), k.v(0), 10, 10)
  k("v_bfe_u32", k.v(2), k.v(0), 20, 10)
  k("v_and_b32", k.v(3), 0x3ff, k.v(0))
  k("v_mul_u32_u24", k.v(4), 3, k.v(2))
  k("v_add_nc_u32", k.v(4), k.v(4), k.v(1))
  k("v_lshl_add_u32", k.v(4), k.v(4), 2, k.v(3))
  k("v_lshlrev_b32", k.v(4), 2, k.v(4))
  k.wait(lgkm=0)
  k("global_store_b32", k.v(4), k.v(0), k.s(4, 2))
  k("s_endpgm")
  box.run(k, (4, 3, 2), work_item_ids=3)
  assert words(out) == [x | y << 10 | z << 20 for z in range(2) for y in range(3) for x in range(4)]

def test_the_end_of_the_code_and_unknown_bytes_are_told() -> None:
  k = Kernel()
  k("s_nop", 0)
  with pytest.raises(OutOfBounds, match=r"fetches from 0x10004.*s_endpgm"): Box().run(k)
  k = Kernel()
  k.code.append(b"\xff\xff\xff\xff")
  with pytest.raises(UnknownInstruction, match=r"at 0x10000 \(kernel \+ 0x0\)"): Box().run(k)

def test_a_step_stops_at_its_budget_and_at_barriers() -> None:
  k, box = Kernel(), Box()
  for _ in range(50): k("s_nop", 0)
  k("s_barrier")
  k("s_endpgm")
  code = FlatMemory()
  code.add(0x10000, bytearray(k.bytes()))
  group = Workgroup("gfx1100", code.load, box.registers(k, (64,)), (0, 0, 0), box.memory, 0, 1)
  assert group.step(10) is StepResult.RUNNING
  assert group.step(1000) is StepResult.BARRIER
  assert group.step(1000) is StepResult.DONE
  assert group.executed == 2 * 52

def test_two_seeds_run_waves_in_another_order() -> None:
  k, orders = Kernel(), []
  for _ in range(4): k("s_nop", 0)
  k("s_endpgm")
  for seed in (1, 1, 2):
    order: list[int] = []
    Box().run(k, (256,), seed, watch=lambda wave, step, order=order: order.append(wave.number))
    orders.append(order)
  assert orders[0] == orders[1] != orders[2]

def test_a_barrier_is_not_waited_for_twice_nor_without_a_signal() -> None:
  k = Kernel("gfx1200")
  k("s_barrier_wait", -1)
  with pytest.raises(StrictError, match="without s_barrier_signal"): Box().run(k)
