"""tinyhw/emulator/amd/card/dispatch.py: from registers to waves, dispatches that never start, and the order of
workgroups.
"""
from collections.abc import Iterator
from typing import Any

import pytest

from test.support.amd.virtual import Group, Program, kernels
from tinyhw.emulator.amd.card import dispatch
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.errors import MissingHazard, PacketError, StrictError
from tinyhw.emulator.memory.memory import MemoryInterface

def started(card: str, launch: list[int] | None = None, size: tuple[int, int, int] = (64, 1, 1), seed: int = 0,
            **changes: Any) -> tuple[list[Group], DispatchRegisters]:
  """Return the workgroups in the order of their starts, and their initial registers."""
  program = Program(card, seed=seed)
  flags = changes.pop("flags", {})
  groups, seen, order = changes.pop("groups", (3, 2, 2)), list[DispatchRegisters](), list[Group]()
  def kernel(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    seen.append(registers)
    order.append(group)
    yield
  kernels(program.computer, {0x1000: kernel})
  queue = program.queue()
  queue.submit(program.kernel_registers(size=size, user_data=range(100, 116), **changes),
               program.dispatch(*groups, **flags))
  program.settle()
  return order, seen[0]

@pytest.mark.parametrize("card,wave,vgprs,sgprs",
                         [("gfx1100", 32, 32, 106), ("gfx1200", 32, 32, 106), ("gfx942", 64, 32, 16)])
def test_registers_say_how_waves_start(card: str, wave: int, vgprs: int, sgprs: int) -> None:
  _, registers = started(card, lds=1000)
  assert (registers.arch, registers.wave_size, registers.vgprs, registers.sgprs) == (card, wave, vgprs, sgprs)
  assert registers.user_data == tuple(range(100, 115)) and registers.group_ids == (True, False, False)
  assert (registers.lds_bytes == 1024 and registers.work_item_ids == 1 and registers.groups == (3, 2, 2)
          and registers.group_size == (64, 1, 1))
  assert registers.accumulator == (16 if card == "gfx942" else None)

def test_user_data_that_nothing_has_set() -> None:
  program, seen = Program(), list[DispatchRegisters]()
  def kernel(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    seen.append(registers)
    yield
  kernels(program.computer, {0x1000: kernel})
  program.queue().submit(program.kernel_registers(user_data=[7, 8]), program.dispatch())
  program.settle()
  assert seen[0].user_data == (7, 8, *[None] * 13)

def test_modes_and_wave64() -> None:
  rsrc1 = 1 << 30 | 3 | 0xC1 << 12 | 1 << 21 | 1 << 23 | 1 << 29 | 1 << 26
  _, registers = started("gfx1100", PGM_RSRC1=rsrc1, flags={"cs_w32_en": 0})
  assert registers.wave_size == 64 and registers.vgprs == 16
  assert ((registers.float_round, registers.float_denorm) == (1, 12) and registers.wgp_mode and registers.ieee_mode
          and registers.dx10_clamp)
  assert registers.fp16_overflow and not registers.privileged

@pytest.mark.slow
def test_all_workgroups_run_once_and_the_order_is_the_seeds() -> None:
  orders = {tuple(started("gfx1100", seed=seed)[0]) for seed in range(6)}
  assert (all(sorted(order) == [(x, y, z) for x in range(3) for y in range(2) for z in range(2)] for order in orders)
          and len(orders) > 3)
  assert started("gfx1100", seed=1)[0] == started("gfx1100", seed=1)[0]

def test_grids_in_work_items_end_inside_of_workgroups() -> None:
  partial = 100 % 64
  _, registers = started("gfx1100", groups=(100, 1, 1), NUM_THREAD_X=64 | partial << 16,
                         flags={"use_thread_dimensions": 1, "partial_tg_en": 1})
  assert registers.groups == (2, 1, 1) and registers.partial_size == (36, 0, 0)

def test_local_memory_of_gfx950() -> None:
  """Its compute units have 160 KiB, and one workgroup may take all of it."""
  _, registers = started("gfx950", lds=160 << 10)
  assert registers.lds_bytes == 160 << 10

def test_scratch() -> None:
  _, registers = started("gfx1100", PGM_RSRC2=15 << 1 | 1 << 7 | 1, TMPRING_SIZE=2 | 16 << 12,
                         DISPATCH_SCRATCH_BASE_LO=0x5678,
                         DISPATCH_SCRATCH_BASE_HI=1)
  assert (registers.scratch_base == 0x100_0056_7800 and registers.scratch_wave_bytes == 16 * 256
          and registers.scratch_waves == 12)

REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
  "1024 work-items": ("gfx1100", "1 to 1024", {"size": (1024, 2, 1)}),
  "no work-items": ("gfx1100", "1 to 1024", {"size": (64, 0, 1)}),
  "LDS": ("gfx1100", "65536 bytes of LDS", {"lds": 66000}),
  "LDS of gfx950": ("gfx950", "163840 bytes of LDS", {"lds": 164000}),
  "room": ("gfx1100", "never starts", {"size": (1024, 1, 1), "PGM_RSRC1": 1 << 30 | 31}),
  "VGPRs": ("gfx1100", "at most 256 VGPRs", {"PGM_RSRC1": 1 << 30 | 40}),
  "accumulation registers": ("gfx942", "ACCUM_OFFSET", {"PGM_RSRC3": 20}),
  "order of loads": ("gfx1200", "MEM_ORDERED", {"PGM_RSRC1": 3}),
  "unknown bits": ("gfx942", "no field has its bits", {"PGM_RSRC1": 3 | 1 << 31}),
  "user data": ("gfx942", "16 registers of user data", {"PGM_RSRC2": 20 << 1}),
  "scratch": ("gfx1100", "there is none", {"PGM_RSRC2": 15 << 1 | 1 << 7 | 1}),
  "scratch for too few waves": ("gfx1100", "never starts",
                                {"PGM_RSRC2": 15 << 1 | 1 << 7 | 1, "TMPRING_SIZE": 1 | 1 << 12, "size": (1024, 1, 1),
                                 "DISPATCH_SCRATCH_BASE_LO": 1, "DISPATCH_SCRATCH_BASE_HI": 0}),
  "start": ("gfx1100", "START_X", {"START_X": 1, "flags": {"force_start_at_000": 0}}),
  "partial": ("gfx1100", "PARTIAL_TG_EN", {"groups": (100, 1, 1), "flags": {"use_thread_dimensions": 1}}),
  "partial sizes": ("gfx1100", "NUM_THREAD_PARTIAL",
                    {"groups": (100, 1, 1), "flags": {"use_thread_dimensions": 1, "partial_tg_en": 1}}),
}

@pytest.mark.parametrize("name", REFUSED)
def test_what_never_starts_is_refused(name: str) -> None:
  card, message, changes = REFUSED[name]
  with pytest.raises(PacketError, match=message): started(card, **changes)

def test_gfx1100_needs_16_scalar_registers() -> None:
  with pytest.raises(MissingHazard, match="needs 16 SGPRs.*3 are"): started("gfx1100", PGM_RSRC2=2 << 1 | 1 << 7)
  started("gfx1200", PGM_RSRC2=2 << 1 | 1 << 7)

@pytest.mark.parametrize("name", ["PGM_LO", "PGM_RSRC1", "PGM_RSRC2", "PGM_RSRC3", "NUM_THREAD_Z", "RESOURCE_LIMITS"])
def test_registers_must_have_been_set(name: str) -> None:
  program = Program()
  queue = program.queue()
  offset = program.registers.rows["COMPUTE_" + name].address - 0x2C00
  words = program.kernel_registers()
  packets = [words[i:i + 3] for i in range(0, len(words), 3)]
  queue.submit(*(packet for packet in packets if packet[1] != offset), program.dispatch())
  with pytest.raises(PacketError, match=f"needs COMPUTE_{name}, which no packet"): program.settle()

def test_a_kernel_that_faults_stops_the_gpu() -> None:
  program = Program()
  def kernel(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    yield
    memory.load(0x123456789000, 4)
  kernels(program.computer, {0x1000: kernel})
  queue = program.queue()
  queue.submit(program.kernel_registers(), program.dispatch(20))
  program.settle()
  assert (program.gpu.stopped is not None and program.gpu.stopped.startswith("kernel at 0x1000 (gfx1100")
          and not program.gpu.work)

def test_a_kernel_that_is_wrong_stops_its_queue_alone() -> None:
  program = Program()
  def kernel(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    yield
    raise StrictError("wrong")
  kernels(program.computer, {0x1000: kernel})
  queue, other, signal = program.queue(), program.queue(), program.allocate(4096)
  queue.submit(program.kernel_registers(), program.dispatch(20))
  with pytest.raises(StrictError, match="wrong"): program.settle()
  other.submit(program.release(signal.address, 1))
  program.settle()
  assert signal.mapping.load64(0) == 1 and not program.gpu.work

def test_several_workgroups_are_resident() -> None:
  program, running, most = Program(), [0], [0]
  def kernel(memory: MemoryInterface, registers: DispatchRegisters, group: Group) -> Iterator[None]:
    running[0] += 1
    most[0] = max(most[0], running[0])
    for _ in range(1000): yield
    running[0] -= 1
  kernels(program.computer, {0x1000: kernel})
  program.queue().submit(program.kernel_registers(), program.dispatch(30))
  program.settle()
  assert running[0] == 0 and 2 < most[0] <= dispatch.RESIDENT
