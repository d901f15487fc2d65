"""Translated blocks do the same as their steps one by one: memory, registers, errors and their text, for random blocks
and for loops."""
from __future__ import annotations
import random
import re
from typing import Any

import pytest
from amd.kernels import Box, Kernel, floats
from amd.lanes import FLOAT32, INTEGERS, values

from tinyhw import Context
from tinyhw.emulator.amd.execute.state import Wave
from tinyhw.emulator.amd.workgroup import Workgroup
from tinyhw.emulator.errors import StrictError
from tinyhw.emulator.native import threaded, translate
from tinyhw.errors import TinyError
from tinyhw.machine.ir.inst import Access, Reg

pytestmark = pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")

CARDS = ("gfx1100", "gfx1200", "gfx942")

@pytest.fixture(autouse=True)
def hot(monkeypatch: pytest.MonkeyPatch) -> None:
  """Translate every block at its second execution."""
  monkeypatch.setattr(translate, "HOT", 2)
  translate._kept.clear()

def both(kernel: Kernel, fill: bytes = b"", **more: Any) -> list[Workgroup]:
  """Return the workgroup after a kernel with and without translation. The one buffer holds `fill` at first, and must
  end the same."""
  found: list[tuple[Workgroup, bytearray]] = []
  for on in (1, 0):
    box = Box()
    out = box.buffer(fill or bytes(4096))
    with Context(EMULATE_TRANSLATE=on): found.append((box.run(kernel, **more), out))
  assert found[0][1] == found[1][1]
  return [workgroup for workgroup, _ in found]

def failure(kernel: Kernel, on: int, **more: Any) -> str:
  """Return the error of a kernel."""
  box = Box()
  box.buffer(4096)
  with Context(EMULATE_TRANSLATE=on), pytest.raises(StrictError) as caught: box.run(kernel, **more)
  return str(caught.value)

def state(wave: Wave) -> tuple[object, ...]:
  """Return the state of a wave at its end, without registers that it never wrote."""
  strict = wave.strict
  rows = {row: [x for lane, x in enumerate(wave.u[row].tolist()) if strict.vectors[row] >> lane & 1]
          for row in range(20)}
  scalars = [wave.s[i] for i in range(108) if strict.scalars >> i & 1]
  return rows, scalars, wave.exec, {row: strict.vectors[row] for row in strict.vectors.rows}, strict.scalars

def same_float(row: int, one: Wave, other: Wave, lane: int) -> bool:
  """Return whether a lane has the same float, or NaNs. The row determines the type."""
  a, b = one.u[row][lane], other.u[row][lane]
  if a == b: return True
  if row < 24:
    return all(x == y or x & 0x7fff > 0x7c00 < y & 0x7fff for x, y in ((a & 0xffff, b & 0xffff), (a >> 16, b >> 16)))
  if row < 28: return bool(a & 0x7fffffff > 0x7f800000 < b & 0x7fffffff)
  return all(wave.u[row | 1][lane] & 0x7ff00000 == 0x7ff00000 for wave in (one, other))

def start(arch: str, count: int) -> Kernel:
  """Return a kernel with s[4:5]: the buffer; v0: the work-item, v1: four times that; s10: number of iterations of a
  loop.
  """
  k = Kernel(arch)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k("s_mov_b32", k.s(10), count)
  k.wait(lgkm=0)
  return k

def again(k: Kernel, label: str) -> None:
  """Add the end of a loop."""
  k("s_sub_u32", k.s(10), k.s(10), 1)
  k("s_cmp_lg_u32", k.s(10), 0)
  k.jump("s_cbranch_scc1", label)

def stored(k: Kernel, *registers: int) -> Kernel:
  for i, register in enumerate(registers): k("global_store_b32", k.v(1), k.v(register), k.s(4, 2), offset=256 * i)
  return k("s_endpgm")

@pytest.mark.parametrize("arch", CARDS)
@pytest.mark.parametrize("seed", range(3))
def test_loops_with_lanes_that_leave_them(arch: str, seed: int) -> None:
  """100 sums in each lane, of which some lanes do 50 more."""
  k = start(arch, 100)
  k("v_cvt_f32_i32", k.v(2), k.v(0))
  k("v_mov_b32", k.v(3), 0)
  for label in ("first", "second"):
    k.label(label)
    k("v_fmac_f32", k.v(3), k.v(2), k.v(2))
    k("v_add_f32", k.v(3), 0x3e800000, k.v(3))
    again(k, label)
    if label == "first":
      k("v_cmp_gt_u32", k.mask(106), 7, k.v(0)) if arch == "gfx942" else k("v_cmpx_gt_u32", 7, k.v(0))
      if arch == "gfx942": k("s_mov_b64", k.mask(126), k.mask(106))
      k("s_mov_b32", k.s(10), 50)
  k("s_mov_b32" if k.lanes == 32 else "s_mov_b64", k.mask(126), -1)
  stored(k, 3)
  box = Box()
  out = box.buffer(256)
  workgroup = box.run(k, (k.lanes,), seed=seed)
  assert floats(out)[:k.lanes] == [(150 if lane < 7 else 100) * (0.25 + lane * lane) for lane in range(k.lanes)]
  assert workgroup.translation is not None and any(workgroup.translation.blocks.values()), "nothing was translated"

COMPUTING = {
  "gfx1100": "v_add_f32 v_mul_f32 v_fma_f32 v_max_f32 v_cndmask_b32 v_add_nc_u32 v_lshlrev_b32 v_mul_lo_u32 "
  "v_cvt_f32_u32 v_add_co_u32 "
             "v_add_co_ci_u32 v_cmp_lt_f32 v_bfe_u32 v_rcp_f32 s_add_u32 s_addc_u32 s_and_b32 s_lshl_b32 s_mul_i32 "
  "s_cselect_b32 s_cmp_lt_i32 "
             "v_add_f16 v_pk_add_f16 v_lshlrev_b64 v_cvt_f16_f32 v_readfirstlane_b32 s_bfe_u32 v_perm_b32",
  "gfx942": "v_add_f32 v_mul_f32 v_fma_f32 v_max_f32 v_cndmask_b32 v_add_u32 v_lshlrev_b32 v_mul_lo_u32 v_cvt_f32_u32 "
  "v_add_co_u32 v_add_f64 "
            "v_mul_f64 v_cmp_lt_f32 v_bfe_u32 s_add_u32 s_addc_u32 s_and_b64 s_lshl_b64 s_mul_i32 s_cselect_b32 "
  "v_pk_fma_f32 v_pk_mul_f32 v_mov_b64"}

def random_block(k: Kernel, source: random.Random, count: int) -> None:
  """Add instructions on v2 to v9, on v20 to v31 for floats, and on s12 to s19. All of these registers were written."""
  names = COMPUTING[k.arch].split()
  for _ in range(count):
    row = k.table[source.choice(names)]
    operands: list[Any] = []
    for spec in row.isa.specs:
      if not spec.classes: continue
      operands.append(operand(k, spec, source))
    try: k(row.name, *operands)
    except TinyError: continue  # combinations that the instruction does not have
    if k.arch == "gfx942": k("s_nop", 7)
    if row.name in ("v_rcp_f32",): k("s_waitcnt_depctr", 0xfff)

def operand(k: Kernel, spec: Any, source: random.Random) -> Any:
  """Return a register or a constant that an operand takes.

  Floats of each width have registers of their own, since the bits of NaNs do not matter.
  """
  units = max(spec.type.bits // 32, 1) if spec.type is not None and spec.type.bits else 1
  if spec.access & Access.WRITE: units = max([units, *(cls.units for cls in spec.classes if cls.bank.name == "vgpr")])
  names = {cls.bank.name for cls in spec.classes}
  if spec.type is not None and spec.type.name == "mask": return k.mask(106)
  if "vgpr" in names and ("sgpr" not in names or source.random() < 0.7):
    first, count = (({16: 20, 32: 24, 64: 28}[spec.type.bits], 2) if spec.type is not None and spec.type.floating
                    else (2, 4))
    return k.v(first + 2 * source.randrange(count), units)
  if spec.access == Access.READ and source.random() < 0.4 and units == 1: return source.choice((1, 2, 0x3f800000, -1))
  return k.s(12 + 2 * source.randrange(4), units)

@pytest.mark.slow
@pytest.mark.parametrize("arch", COMPUTING)
@pytest.mark.parametrize("seed", range(12))
def test_random_blocks(arch: str, seed: int) -> None:
  source = random.Random(f"{arch}{seed}")
  k = start(arch, 4)
  for i in (*range(2, 10), *range(20, 32)):
    k("v_mov_b32", k.v(i), source.choice(FLOAT32))
    k("v_add_nc_u32" if arch != "gfx942" else "v_add_u32", k.v(i), k.v(0), k.v(i))
  for i in range(12, 20): k("s_mov_b32", k.s(i), source.choice(INTEGERS))
  k("s_mov_b64" if k.lanes == 64 else "s_mov_b32", k.mask(106), 0x5aa5)
  if seed % 2: k("s_mov_b64" if k.lanes == 64 else "s_mov_b32", k.mask(126), 0x80f00a01)
  k("s_cmp_lg_u32", 0, 0)
  k.label("loop")
  random_block(k, source, 40)
  again(k, "loop")
  stored(k, *range(2, 10))
  translated, stepped = both(k, group_size=(k.lanes,), seed=seed)
  for workgroup in (translated, stepped):
    for wave in workgroup.waves:
      if workgroup.translation is not None: workgroup.translation.leave(wave)
  for one, other in zip(translated.waves, stepped.waves):
    assert state(one) == state(other)
    for row in range(20, 32):
      for lane in range(k.lanes): assert same_float(row, one, other, lane), (row, lane)
  assert translated.executed == stepped.executed

def errors() -> dict[str, Kernel]:
  """Return kernels with a mistake in a loop that is translated before the mistake matters."""
  made = {}
  def kernel(name: str) -> Kernel:
    k = made[name] = start("gfx1100", 6)
    k("v_mov_b32", k.v(2), 1)
    k("s_mov_b32", k.s(20), 0)
    k.label("loop")
    k("s_add_u32", k.s(20), k.s(20), 1)
    k("s_cmp_eq_u32", k.s(20), 5)
    k.jump("s_cbranch_scc0", "good")
    return k
  def end(k: Kernel) -> None:
    k.label("good")
    again(k, "loop")
    stored(k, 2)
  k = kernel("a vector register that nothing has written")
  k("v_add_f32", k.v(2), k.v(2), k.v(2))
  k("v_add_f32", k.v(2), k.v(2), k.v(9))
  end(k)
  k = kernel("a scalar register that nothing has written")
  k("s_add_u32", k.s(21), k.s(21), 1)
  end(k)
  k = kernel("a load that nobody has waited for")
  k("global_load_b32", k.v(3), k.v(1), k.s(4, 2))
  k("v_add_f32", k.v(2), k.v(2), k.v(3))
  end(k)
  k = kernel("a lane that nothing has written, in the middle of a block")
  k("v_add_f32", k.v(2), k.v(2), k.v(2))
  k("v_readlane_b32", k.s(22), k.v(9), 3)
  end(k)
  return made

@pytest.mark.parametrize("name", errors())
def test_errors_are_the_same(name: str) -> None:
  """The loops run the mistake only after they have been translated. Or the blocks have no mistake for the first waves.
  """
  k = errors()[name]
  assert failure(k, 1, seed=1) == failure(k, 0, seed=1)

def test_a_register_that_some_lanes_have_not_written() -> None:
  """The written lanes depend on values, so they are checked each time."""
  k = start("gfx1100", 20)
  k("v_mov_b32", k.v(2), 0)
  k("s_mov_b32", k.s(11), -1)
  k.label("loop")
  k("s_lshr_b32", k.s(11), k.s(11), 1)
  k("s_mov_b32", k.s(126), k.s(11))
  k("v_mov_b32", k.v(7), 3)
  k("v_add_nc_u32", k.v(2), k.v(2), k.v(7))
  again(k, "loop")
  k("s_mov_b32", k.s(126), -1)
  both(stored(k, 2))
  k = start("gfx1100", 20)
  k("v_mov_b32", k.v(2), 0)
  k("s_mov_b32", k.s(11), 1)
  k.label("loop")
  k("s_mov_b32", k.s(126), k.s(11))
  k("v_mov_b32", k.v(7), 3)
  k("s_cmp_lt_u32", k.s(10), 4)
  k("s_cselect_b32", k.s(126), 3, k.s(11))
  k("v_add_nc_u32", k.v(2), k.v(2), k.v(7))
  again(k, "loop")
  text = failure(stored(k, 2), 1)
  assert re.search("v7 is read in lane 1 and nothing has written it", text) and text == failure(k, 0)

def test_loads_and_local_memory_in_loops() -> None:
  """Waits, barriers and outstanding accesses at a barrier work in translated blocks too."""
  def kernel(wait: bool) -> Kernel:
    k = start("gfx1100", 12)
    k("v_mov_b32", k.v(3), 0)
    k.label("loop")
    k("ds_store_b32", k.v(1), k.v(0))
    if wait: k.wait(lgkm=0)
    k("s_barrier")
    k("v_xor_b32", k.v(2), 0x80, k.v(1))
    k("ds_load_b32", k.v(4), k.v(2))
    k.wait(lgkm=0)
    k("v_add_nc_u32", k.v(3), k.v(3), k.v(4))
    k("s_barrier")
    again(k, "loop")
    return stored(k, 3)
  both(kernel(True), group_size=(64,), lds=512)
  assert failure(kernel(False), 1, group_size=(64,), lds=512).startswith("LDS address")

def test_another_kernel_at_the_same_address() -> None:
  """Dispatches share translations, but not those of other bytes."""
  for constant in (1, 2, 3):
    k = start("gfx1100", 30)
    k("v_mov_b32", k.v(3), 0)
    k.label("loop")
    k("v_add_nc_u32", k.v(3), constant, k.v(3))
    again(k, "loop")
    box = Box()
    out = box.buffer(128)
    first = box.run(stored(k, 3))
    assert out[0] == 30 * constant
    assert box.run(k).translation is first.translation and len(translate._kept) == 1

def test_errors_say_where_in_every_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
  """Also in a dispatch that has decoded nothing, because another one translated the kernel."""
  monkeypatch.setattr(translate, "HOT", 1)
  k = start("gfx1100", 3)
  k("ds_load_b32", k.v(2), k.v(1))
  k.wait(lgkm=0)
  k("s_endpgm")
  for _ in range(2):
    with pytest.raises(StrictError, match="ds_load_b32 v2, v1"): Box().run(k, lds=512)

def test_values_of_the_same_seed() -> None:
  source = random.Random(0)
  fill = b"".join(x.to_bytes(4, "little") for x in values(source, FLOAT32, 32, 1024))
  k = start("gfx1100", 9)
  k("v_mov_b32", k.v(3), 0)
  k.label("loop")
  k("global_load_b32", k.v(2), k.v(1), k.s(4, 2))
  k("v_add_nc_u32", k.v(1), 64, k.v(1))
  k.wait(vm=0)
  k("v_xor_b32", k.v(3), k.v(2), k.v(3))
  again(k, "loop")
  both(stored(k, 3), fill)
  assert isinstance(k.v(3), Reg)
