"""Loads and stores that translated code does itself. Programs as in test_translate.py show that they do the same as
Python."""
from __future__ import annotations
import random
import struct

import pytest
from amd.kernels import Box, Kernel, words

from tinyhw import Context
from tinyhw.emulator.amd.execute.arithmetic import Mode, NamedOperands
from tinyhw.emulator.amd.native.transfer import transfer_of
from tinyhw.emulator.errors import DataRace, StrictError
from tinyhw.emulator.native import threaded, translate
from tinyhw.isa.amd.asm.decode import decoder
from tinyhw.isa.amd.asm.syntax import assemble

ROWS = {row: 1000 + 32 * row for row in range(32)}

def transfer(text: str, arch: str = "gfx1100") -> str | None:
  inst, _ = decoder(arch)(assemble(text, arch), 0)
  found = transfer_of(NamedOperands(inst), Mode(arch, 32), ROWS)
  return found.function if found else None

def test_what_is_done_natively() -> None:
  assert (transfer("global_load_b32 v1, v[2:3], off") == "load4" and transfer("global_load_i8 v1, v2, s[4:5]")
          == "load1s")
  assert (transfer("global_load_d16_hi_b16 v1, v2, s[4:5]") == "load2high"
          and transfer("global_store_d16_hi_b16 v2, v1, s[4:5]") == "store2high")
  assert transfer("s_load_b128 s[4:7], s[0:1], null") == "load_scalar"

@pytest.mark.parametrize("text", ["global_load_b32 v1, v[2:3], off glc", "flat_load_b32 v1, v[2:3]",
                                  "global_atomic_add_u32 v2, v1, s[4:5]",
                                  "buffer_load_b32 v1, off, s[4:7], 0", "scratch_load_b32 v1, off, off",
                                  "v_mov_b32 v1, v2"])
def test_what_stays_python(text: str) -> None: assert transfer(text) is None

@pytest.mark.skipif(threaded.level() is None, reason="no x86-64 with AVX2, or no executable pages")
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("mask", [-1, 0x5a0f00c1])
def test_both_agree(arch: str, mask: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Gathers and scatters of all sizes at random addresses. Results overlap addresses."""
  monkeypatch.setattr(translate, "HOT", 2)
  names = "u8 i8 u16 i16 d16_b16 d16_hi_b16 b32 b64 b96 b128".split()
  found = []
  for on in (1, 0):
    source = random.Random(f"{arch}{mask}")
    k, box = Kernel(arch), Box()
    table = box.buffer(struct.pack("<1024I", *(source.randrange(0, 2000) & ~3 for _ in range(1024))))
    out = box.buffer(16384)
    k("s_load_b128", k.s(4, 4), k.s(0, 2), None)
    k("v_and_b32", k.v(0), 0x3ff, k.v(0))
    k("v_lshlrev_b32", k.v(1), 2, k.v(0))
    k("s_mov_b32", k.s(10), 5)
    k("v_mov_b32", k.v(2), 1)
    k.wait(lgkm=0)
    k("s_mov_b64" if k.lanes == 64 else "s_mov_b32", k.mask(126), mask)
    k.label("loop")
    for i, name in enumerate(names):
      place = 20 * i * k.lanes
      k("global_load_b32", k.v(4), k.v(1), k.s(4, 2), offset=64)
      k.wait(vm=0)
      for row in range(8, 12): k("v_mov_b32", k.v(row), 7)
      k("v_mov_b32", k.v(8), k.v(4))
      k(f"global_load_{name}", k.v(8, {"b64": 2, "b96": 3, "b128": 4}.get(name, 1)), k.v(8 if name[0] == "b" else 4),
        k.s(4, 2))
      k.wait(vm=0)
      k("v_mul_u32_u24", k.v(5), 20, k.v(0))
      k("v_add_nc_u32" if arch != "gfx942" else "v_add_u32", k.v(5), place, k.v(5))
      what = {"u8": "b8", "i8": "b8", "u16": "b16", "i16": "b16", "d16_b16": "b16",
              "d16_hi_b16": "d16_hi_b16"}.get(name, name)
      k(f"global_store_{what}", k.v(5), k.v(8, {"b64": 2, "b96": 3, "b128": 4}.get(name, 1)), k.s(6, 2))
      k.wait(vm=0, vs=0)
    k("s_sub_u32", k.s(10), k.s(10), 1)
    k("s_cmp_lg_u32", k.s(10), 0)
    k.jump("s_cbranch_scc1", "loop")
    k("s_endpgm")
    with Context(EMULATE_TRANSLATE=on): group = box.run(k, (k.lanes,))
    found.append((words(out), group.executed))
    assert len(table) == 4096
  assert found[0] == found[1]

def local_kernel(arch: str, barrier: bool) -> Kernel:
  """Return a kernel of two waves that exchange values of all sizes through the LDS, repeatedly."""
  k = Kernel(arch)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 4, k.v(0))
  k("v_xor_b32", k.v(2), 16 * k.lanes, k.v(1))
  k("s_mov_b32", k.s(10), 5)
  for row in range(8, 16): k("v_mul_u32_u24", k.v(row), 0x1234567 >> row, k.v(0))
  k.wait(lgkm=0)
  k.label("loop")
  for name, units in (("b128", 4), ("b64", 2), ("b32", 1), ("b16", 1), ("b8", 1)):
    k(f"ds_store_{name}", k.v(1), k.v(8, units))
    k.wait(lgkm=0)
    if barrier: k("s_barrier")
    loaded = {"b16": "u16", "b8": "i8"}.get(name, name)
    k(f"ds_load_{loaded}", k.v(12, units), k.v(2))
    k.wait(lgkm=0)
    k("s_barrier")
    k("v_add_nc_u32" if arch == "gfx1100" else "v_add_u32", k.v(8), k.v(8), k.v(12))
  k("s_sub_u32", k.s(10), k.s(10), 1)
  k("s_cmp_lg_u32", k.s(10), 0)
  k.jump("s_cbranch_scc1", "loop")
  k("global_store_b128", k.v(1), k.v(8, 4), k.s(4, 2))
  k("s_endpgm")
  return k

@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_local_memory(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """The same values, and an error where barriers are missing, though the accesses are translated."""
  monkeypatch.setattr(translate, "HOT", 2)
  found = []
  for on in (1, 0):
    k, box = local_kernel(arch, True), Box()
    out = box.buffer(4096)
    with Context(EMULATE_TRANSLATE=on): group = box.run(k, (2 * k.lanes,), lds=32 * k.lanes)
    found.append(words(out))
    with Context(EMULATE_TRANSLATE=on), pytest.raises(StrictError, match="LDS address"):
      Box().run(local_kernel(arch, False), (2 * k.lanes,), lds=32 * k.lanes)
    if on and threaded.level() is not None:
      assert all(wave.local is not None and wave.local.words[-1] > 20 for wave in group.waves), "Python has done it"
  assert found[0] == found[1] and any(found[0])

def test_what_is_under_way_at_a_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
  """A store that was not waited for also counts after the barrier, even if translated code did it."""
  monkeypatch.setattr(translate, "HOT", 2)
  for on in (1, 0):
    k = Kernel()
    k("v_and_b32", k.v(0), 0x3ff, k.v(0))
    k("v_lshlrev_b32", k.v(1), 2, k.v(0))
    k("v_xor_b32", k.v(2), 0x80, k.v(1))
    k("s_mov_b32", k.s(10), 5)
    k.label("loop")
    k("ds_store_b32", k.v(1), k.v(0))
    k.wait(lgkm=0)
    k("s_barrier")
    k("ds_load_b32", k.v(3), k.v(2))
    k.wait(lgkm=0)
    k("s_barrier")
    k("s_sub_u32", k.s(10), k.s(10), 1)
    k("s_cmp_lg_u32", k.s(10), 0)
    k.jump("s_cbranch_scc1", "loop")
    k("ds_store_b32", k.v(1), k.v(0))
    k("s_barrier")
    k("ds_load_b32", k.v(3), k.v(2))
    k("s_endpgm")
    with Context(EMULATE_TRANSLATE=on), pytest.raises(DataRace, match=r"LDS address.*wave \d does (read|write)"):
      Box().run(k, (64,), lds=256)
