"""Global, flat, scratch and buffer instructions in kernels: addresses, widths, atomics, accesses outside of buffers."""
from __future__ import annotations
import struct

import pytest
from amd.kernels import DATA, Box, Kernel, words

from tinyhw.emulator.errors import PageFault, StrictError, UnknownInstruction
from tinyhw.emulator.memory.memory import FlatMemory, AccessKind, Scope, AccessUnit
from tinyhw.isa.amd.table import regs

ARCHS = ("gfx1100", "gfx1200", "gfx942")

def prepared(arch: str, *sizes: int | bytes) -> tuple[Kernel, Box]:
  """Return a kernel with buffers at s[4:5], s[6:7] ...; v0: the lane, v1: 4 times the lane."""
  k, box = Kernel(arch), Box()
  for i, size in enumerate(sizes):
    box.buffer(size)
    k("s_load_b64", k.s(4 + 2 * i, 2), k.s(0, 2), None, offset=8 * i)
  k("v_and_b32", k.v(0), 0x3ff, k.v(0))
  k("v_lshlrev_b32", k.v(1), 2, k.v(0))
  k.wait(lgkm=0)
  return k, box

@pytest.mark.parametrize("arch", ARCHS)
def test_widths_and_offsets(arch: str) -> None:
  """Loads of 1 to 16 bytes at offsets before and after the address, stored again contiguously."""
  source = bytes((7 * i + 3) % 256 for i in range(1024))
  k, box = prepared(arch, source, 4096)
  k("v_lshlrev_b32", k.v(2), 4, k.v(0))
  k("s_add_u32", k.s(4), k.s(4), 0x40)
  loads = (("u8", 1, 4, -3), ("i8", 1, 5, 5), ("u16", 2, 6, 2), ("i16", 2, 7, 0), ("b32", 4, 8, 16), ("b64", 8, 10, 8),
           ("b128", 16, 12, -64))
  for name, _, row, offset in loads:
    k(f"global_load_{name}", k.v(row, {"b64": 2, "b128": 4}.get(name, 1)), k.v(2), k.s(4, 2), offset=offset)
  k.wait(vm=0)
  k("v_lshlrev_b32", k.v(3), 6, k.v(0))
  for row in (4, 5, 6, 7, 8): k("global_store_b32", k.v(3), k.v(row), k.s(6, 2), offset=4 * (row - 4))
  k("global_store_b64", k.v(3), k.v(10, 2), k.s(6, 2), offset=24)
  k("global_store_b128", k.v(3), k.v(12, 4), k.s(6, 2), offset=32)
  k("s_endpgm")
  box.run(k, (32,))
  for lane in range(32):
    place = 0x40 + 16 * lane
    image = box.buffers[1][64 * lane:64 * lane + 48]
    expected = b"".join(int.from_bytes(source[place + o:place + o + n], "little",
                                       signed=name[0] == "i").to_bytes(8, "little",
                                                                       signed=name[0] == "i")[:4]
                        for name, n, _, o in loads[:5])
    assert image[:20] == expected
    assert image[24:32] == source[place + 8:place + 16] and image[32:48] == source[place - 64:place - 48]

@pytest.mark.parametrize("arch", ARCHS)
def test_addresses_in_registers(arch: str) -> None:
  """A 64-bit address of each lane, with global and flat instructions."""
  for space in ("global", "flat"):
    k, box = prepared(arch, struct.pack("<64I", *range(64)), 256)
    vcc = regs.reg(regs.S[k.lanes // 32], regs.VCC)
    for row, base in ((4, 4), (6, 6)):
      k("v_mov_b32", k.v(row + 1), k.s(base + 1))
      k("v_add_co_u32", k.v(row), vcc, k.s(base), k.v(1))
    more = (None,) if space == "global" else ()
    k(f"{space}_load_b32", k.v(8), k.v(4, 2), *more)
    k.wait(vm=0, lgkm=0)
    k(f"{space}_store_b32", k.v(6, 2), k.v(8), *more)
    k("s_endpgm")
    box.run(k, (32,))
    assert words(box.buffers[1])[:32] == list(range(32))

@pytest.mark.parametrize("arch", ARCHS)
def test_atomics_return_the_old_value_or_nothing(arch: str) -> None:
  k, box = prepared(arch, struct.pack("<I", 1000), 256)
  k("v_mov_b32", k.v(2), 0)
  k("v_mov_b32", k.v(3), 2)
  k("global_atomic_add_u32_rtn", k.v(4), k.v(2), k.v(3), k.s(4, 2), **({"th": 1} if arch == "gfx1200" else {}))
  k("global_atomic_add_u32", k.v(2), k.v(3), k.s(4, 2))
  k.wait(vm=0)
  k("global_store_b32", k.v(1), k.v(4), k.s(6, 2))
  k("s_endpgm")
  box.run(k, (32,))
  assert words(box.buffers[0]) == [1000 + 4 * 32]
  assert sorted(words(box.buffers[1])[:32]) == [1000 + 2 * i for i in range(32)]

def test_comparing_atomics_and_alignment() -> None:
  k, box = prepared("gfx1100", struct.pack("<32I", *range(32)))
  k("v_mov_b32", k.v(2), 0x77)
  k("v_and_b32", k.v(3), 0x1e, k.v(0))
  k("global_atomic_cmpswap_b32", k.v(1), k.v(2, 2), k.s(4, 2))
  k("s_endpgm")
  box.run(k)
  assert words(box.buffers[0]) == [0x77 if i % 2 == 0 else i for i in range(32)]
  k, box = prepared("gfx1100", 256)
  k("global_atomic_add_u32", k.v(1), k.v(0), k.s(4, 2), offset=2)
  with pytest.raises(StrictError, match="not a multiple of 4"): box.run(k)

def test_halves_keep_the_other_half() -> None:
  k, box = prepared("gfx1100", struct.pack("<2H", 0x1234, 0xabcd), 4)
  k("v_mov_b32", k.v(2), 0)
  k("v_mov_b32", k.v(3), 0)
  k("global_load_d16_b16", k.v(3), k.v(2), k.s(4, 2), offset=2)
  k("global_load_d16_hi_b16", k.v(3), k.v(2), k.s(4, 2))
  k.wait(vm=0)
  k("global_store_d16_hi_b16", k.v(2), k.v(3), k.s(6, 2))
  k("global_store_b16", k.v(2), k.v(3), k.s(6, 2), offset=2)
  k("s_endpgm")
  box.run(k, (1,))
  assert box.buffers[1] == struct.pack("<2H", 0x1234, 0xabcd)

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name,there", [("global_load_d16_b16", 0x5678abcd), ("global_load_d16_hi_b16", 0xabcd1234)])
def test_the_other_half_of_a_load_is_lost_where_registers_have_ecc(arch: str, name: str, there: int) -> None:
  k, box = prepared(arch, struct.pack("<H", 0xabcd), 4)
  k("v_mov_b32", k.v(2), 0)
  k("v_mov_b32", k.v(3), 0x56781234)
  k(name, k.v(3), k.v(2), k.s(4, 2))
  k.wait(vm=0)
  k("global_store_b32", k.v(2), k.v(3), k.s(6, 2))
  k("s_endpgm")
  box.run(k, (1,))
  lost = 0 if arch != "gfx942" else 0xffff0000 if there & 0xffff == 0xabcd else 0xffff
  assert box.buffers[1] == struct.pack("<I", there ^ lost)

def test_faults_come_from_memory() -> None:
  k, box = prepared("gfx1100", 64)
  k("global_load_b32", k.v(2), k.v(1), k.s(4, 2), offset=0)
  with pytest.raises(PageFault) as fault: box.run(k)
  assert fault.value.address == DATA + 64 and not fault.value.write

def test_scopes_reach_memory() -> None:
  for arch, modifiers, scope in (("gfx1100", {"glc": 1}, Scope.DEVICE), ("gfx942", {"sc0": 1}, Scope.GROUP),
                                 ("gfx1200", {"scope": 3}, Scope.SYSTEM)):
    k, box = prepared(arch, 4096)
    kinds: list[AccessKind] = []
    load = FlatMemory.load
    box.memory.load = lambda address, size, kind: (kinds.append(kind),
                                                   load(box.memory, address, size))[1]  # type: ignore[method-assign]
    k("global_load_b32", k.v(2), k.v(1), k.s(4, 2), **modifiers)
    k("s_endpgm")
    box.run(k)
    assert [kind.scope for kind in kinds if kind.unit is AccessUnit.VECTOR] == [scope]

def test_buffers_end_where_their_resource_says() -> None:
  k, box = prepared("gfx1100", struct.pack("<32I", *range(1, 33)), 128)
  k("s_mov_b32", k.s(10), 64)                       # bytes
  k("s_mov_b32", k.s(11), 0)
  k("s_mov_b64", k.s(8, 2), k.s(4, 2))
  k("buffer_load_b32", k.v(2), k.v(1), k.s(8, 4), 0, offen=1)
  k.wait(vm=0)
  k("global_store_b32", k.v(1), k.v(2), k.s(6, 2))
  k("s_endpgm")
  box.run(k)
  assert words(box.buffers[1]) == [*range(1, 17)] + [0] * 16

def test_loads_to_local_memory() -> None:
  """Lane i's dword goes to M0 + 4 i."""
  k, box = prepared("gfx942", struct.pack("<64I", *range(64)), 256)
  k("s_mov_b32", regs.s(regs.M0), 16)
  k("s_nop", 0)
  k("global_load_lds_dword", k.v(1), k.s(4, 2))
  k.wait(vm=0)
  k("ds_load_b32", k.v(2), k.v(1), offset=16)
  k.wait(lgkm=0)
  k("global_store_b32", k.v(1), k.v(2), k.s(6, 2))
  k("s_endpgm")
  box.run(k, (64,), lds=512)
  assert words(box.buffers[1]) == list(range(64))

def test_what_is_not_emulated_is_refused() -> None:
  k, box = prepared("gfx1100", 256)
  for i in range(8, 12): k("s_mov_b32", k.s(i), 0)
  k("buffer_load_format_x", k.v(2), k.v(1), k.s(8, 4), 0, idxen=1)
  with pytest.raises(UnknownInstruction, match="buffer_load_format_x is not emulated"): box.run(k)
