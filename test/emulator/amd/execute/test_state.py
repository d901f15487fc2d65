"""The registers of a wave: views, masks, wide scalars, initial values, and garbage in all others."""
from __future__ import annotations
import random

import pytest

from tinyhw.emulator.amd.execute.state import AGPR, Wave, start
from tinyhw.emulator.amd.registers import DispatchRegisters
from tinyhw.emulator.memory.lds import LocalMemory
from tinyhw.emulator.memory.memory import FlatMemory
from tinyhw.isa.amd.table import regs

def waves(arch: str = "gfx1100", lanes: int = 32, size: tuple[int, int, int] = (64, 1, 1),
          group: tuple[int, int, int] = (0, 0, 0), seed: int = 0,
          **more: object) -> list[Wave]:
  registers = DispatchRegisters(arch, 0x1000, lanes, 16, 32, size, (2, 2, 2), user_data=(11, 12),
                                **more)  # type: ignore[arg-type]  # by name
  source = random.Random(seed)
  return start(registers, group, FlatMemory(), LocalMemory(0, source), source, 0)

def test_three_views_of_a_register() -> None:
  wave = waves()[0]
  wave.f[3][5] = -1.0
  assert wave.u[3][5] == 0xbf800000 and wave.i[3][5] == 0xbf800000 - (1 << 32)

def test_masks_and_wide_scalars() -> None:
  wave = waves("gfx942", 64)[0]
  wave.set_mask(10, 0x123456789abcdef0)
  assert (wave.s[10], wave.s[11], wave.mask(10)) == (0x9abcdef0, 0x12345678, 0x123456789abcdef0)
  wave.set_wide(regs.EXEC, 2, 1 << 40 | 5)
  assert wave.exec == 1 << 40 | 5 and list(wave.active) == [0, 2, 40] and not wave.full
  wave.set_exec((1 << 64) - 1)
  assert wave.full and wave.mask(regs.EXEC) == (1 << 64) - 1
  wave.set_wide(regs.NULL, 1, 99)
  wave.set_mask(regs.NULL, 99)
  assert wave.s[regs.NULL] == 0
  assert waves()[0].moved(wave.u[0], (1, -1, 0))[1] == 0

def test_the_order_of_scalar_registers() -> None:
  wave = waves(group=(7, 8, 9), group_ids=(True, False, True), group_info=True)[1]
  assert wave.s[:4].tolist() == [11, 12, 7, 9] and wave.s[4] == 1 << 6 | 2
  assert wave.strict.scalars & 0x3f == 0x1f
  first = waves(group_info=True)[0]
  assert first.s[3] == 1 << 31 | 2

def test_user_data_that_nothing_set_is_garbage() -> None:
  registers = DispatchRegisters("gfx942", 0x1000, 64, 16, 32, (64, 1, 1), (2, 2, 2), user_data=(11, None, 13))
  source = random.Random(0)
  wave = start(registers, (5, 0, 0), FlatMemory(), LocalMemory(0, source), source, 0)[0]
  assert (wave.s[0], wave.s[2], wave.s[3]) == (11, 13, 5) and wave.strict.scalars & 0x1f == 0b1101

def test_gfx12_has_them_in_trap_registers() -> None:
  wave = waves("gfx1200", group=(7, 8, 9), group_ids=(True, True, True))[0]
  assert wave.s[regs.TTMP + 9] == 7 and wave.s[regs.TTMP + 7] == 8 | 9 << 16
  assert wave.strict.scalars & 0xffff == 3

def test_work_items_fill_waves_in_order() -> None:
  pair = waves(size=(5, 10, 1), work_item_ids=2)
  assert len(pair) == 2 and pair[0].full and pair[1].exec == (1 << 18) - 1
  assert pair[1].u[0][0] == 32 % 5 | 32 // 5 << 10
  assert waves(size=(5, 10, 1))[1].u[0][0] == 32 % 5

def test_the_last_workgroup_may_be_smaller() -> None:
  assert len(waves(partial_size=(20, 0, 0), group=(1, 0, 0))) == 1 and len(waves(partial_size=(20, 0, 0),
                                                                                 group=(0, 0, 0))) == 2

def test_the_rest_is_garbage_that_the_seed_makes() -> None:
  one, same, other = waves(seed=1)[0], waves(seed=1)[0], waves(seed=2)[0]
  assert one.s == same.s != other.s and list(one.u[5]) == list(same.u[5]) != list(other.u[5])
  assert one.strict.vectors[0] == one.all and one.strict.vectors[1] == 0

def test_accumulation_registers_follow() -> None:
  wave = waves("gfx942", 64, accumulator=4)[0]
  assert wave.file.numbers() == [0, 1, 2, 3, *range(AGPR, AGPR + 12)] and len(wave.u[AGPR + 11]) == 64
  with pytest.raises(KeyError): wave.u[4]

def test_mode_and_scratch() -> None:
  wave = waves(float_round=0, float_denorm=12)[0]
  assert wave.mode == 0xc0
  pair = waves(scratch_base=0x1000, scratch_wave_bytes=256, scratch_enabled=True)
  assert [wave.scratch_base for wave in pair] == [0x1000, 0x1100]
