"""EMULATE_STRICT=2: results that no path reads, and results that some path reads."""
from __future__ import annotations
import struct

import pytest
from amd.kernels import CODE, Box, Kernel

from tinyhw.device import Launch
from tinyhw.drivers import amd
from tinyhw.drivers.amd import kfd
from tinyhw.drivers.linux import files
from tinyhw.emulator.amd.card.computer import GpuHost
from tinyhw.emulator.amd.unused import check
from tinyhw.emulator.errors import UnusedResult
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.isa.amd.table import regs
from tinyhw.machine.ir.code import Code

ARCHS = ("gfx1100", "gfx1200", "gfx942")

def look(k: Kernel) -> None:
  memory = FlatMemory()
  memory.add(CODE, bytearray(k("s_endpgm").bytes()))
  check(Box().registers(k), memory.load)

def refused(k: Kernel, text: str) -> None:
  with pytest.raises(UnusedResult, match=rf"(?s)no instruction that can come later reads.*{text}.*kernel at {CODE:#x}"):
    look(k)

@pytest.mark.parametrize("arch", ARCHS)
def test_what_is_read_or_stored_is_used(arch: str) -> None:
  k = Kernel(arch)
  k("v_mov_b32", k.v(1), 0)
  refused(k, r"kernel \+ 0x0: v_mov_b32")
  k = Kernel(arch)
  k("v_mov_b32", k.v(1), 0)
  k("global_store_b32", k.v(0), k.v(1), k.s(0, 2))
  look(k)

@pytest.mark.parametrize("arch", ARCHS)
def test_overwritten_before_it_is_read(arch: str) -> None:
  k = Kernel(arch)
  for value in (1, 2): k("v_mov_b32", k.v(1), value)
  k("global_store_b32", k.v(0), k.v(1), k.s(0, 2))
  refused(k, r"kernel \+ 0x0: v_mov_b32.*1")

@pytest.mark.parametrize("arch", ARCHS)
def test_fewer_lanes_overwrite_only_a_part(arch: str) -> None:
  k = Kernel(arch)
  k("v_mov_b32", k.v(1), 1)
  k("v_cmp_eq_u32", k.mask(8), 0, k.v(0))
  k(f"s_and_saveexec_b{k.lanes}", k.mask(10), k.mask(8))
  k("v_mov_b32", k.v(1), 2)
  k(f"s_mov_b{k.lanes}", k.mask(regs.EXEC), k.mask(10))
  k("global_store_b32", k.v(0), k.v(1), k.s(0, 2))
  look(k)

@pytest.mark.parametrize("arch", ARCHS)
def test_lanes_that_are_saved_come_back(arch: str) -> None:
  k = Kernel(arch)
  k("v_cmp_eq_u32", k.mask(8), 0, k.v(0))
  k(f"s_and_saveexec_b{k.lanes}", k.mask(10), k.mask(8))
  refused(k, "s_and_saveexec")
  k = Kernel(arch)
  k("v_cmp_eq_u32", k.mask(8), 0, k.v(0))
  k(f"s_and_b{k.lanes}", k.mask(regs.EXEC), k.mask(regs.EXEC), k.mask(8))
  look(k)

@pytest.mark.parametrize("arch", ARCHS)
def test_a_loop_reads_what_its_end_writes(arch: str) -> None:
  """One of two results is enough: the sum or the carry, the value or SCC."""
  k = Kernel(arch)
  k("s_mov_b32", k.s(4), 0)
  k.label("again")
  k("s_add_u32", k.s(4), k.s(4), 1)
  k("s_cmp_lt_u32", k.s(4), 10)
  k.jump("s_cbranch_scc1", "again")
  look(k)
  k = Kernel(arch)
  k("s_add_u32", k.s(4), k.s(0), 1)
  k("s_addc_u32", k.s(5), k.s(1), 0)
  k("s_load_b32", k.s(6), k.s(4, 2), None)
  k("s_cmp_lt_u32", k.s(6), 10)
  k.jump("s_cbranch_scc1", "end")
  k.label("end")
  look(k)

@pytest.mark.parametrize("arch", ("gfx1100", "gfx1200"))
def test_each_half_of_a_pair_of_operations_is_used(arch: str) -> None:
  for read in (2, 3):
    k = Kernel(arch)
    k("v_dual_mul_f32::v_dual_add_f32", k.v(2), k.v(0), k.v(0), k.v(3), k.v(1), k.v(1))
    k("global_store_b32", k.v(0), k.v(read), k.s(2, 2))
    refused(k, "v_dual_mul_f32")

def test_code_that_goes_anywhere_is_left_alone() -> None:
  k = Kernel()
  k("v_mov_b32", k.v(1), 0)
  k("s_setpc_b64", k.s(4, 2))
  look(k)

@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("strict", [1, 2])
@pytest.mark.parametrize("condition", [False, True])
def test_launches_are_looked_at_only_where_it_is_asked_for(arch: str, strict: int, condition: bool,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
  """Level 1 accepts unused results of compilers: after a kernel's last condition no instruction reads the saved lanes.
  """
  computer = GpuHost(arch, [arch], strict=strict)
  monkeypatch.setattr(files, "COMPUTER", computer)
  device = amd.open(0, lambda name: None)  # type: ignore[arg-type]
  k = Kernel(arch)
  if condition:
    k("v_cmp_eq_u32", k.mask(8), 0, k.v(0))
    k(f"s_and_saveexec_b{k.lanes}", k.mask(10), k.mask(8))
  else: k("v_mov_b32", k.v(1), struct.unpack("<I", struct.pack("<f", 1.0))[0])
  code = Code("needless", arch, k("s_endpgm").bytes(), (), lanes=64, wave=k.lanes,
              registers=(("vgpr", 4), ("sgpr", 16)))
  device.submit([Launch(device.load(code), [], (), 1)])
  if strict == 1: device.synchronize()
  else:
    with pytest.raises(UnusedResult, match="(?s)(v_mov_b32|s_and_saveexec_b).*needless"): device.synchronize()
  device.close()
  kfd.forget(computer)
