"""Strict checks of a block in advance find the same as its execution. The state of a wave's checks can be copied to
another wave."""
from __future__ import annotations

import pytest
from amd.kernels import Box, Kernel

from tinyhw import Context
from tinyhw.emulator.amd.checks.foresight import CheckState, StandIn, foresee, known, tell
from tinyhw.emulator.amd.workgroup import Workgroup
from tinyhw.emulator.errors import StrictError

def stopped(kernel: Kernel) -> Workgroup:
  """A workgroup that has executed a kernel up to its end."""
  with Context(EMULATE_TRANSLATE=0): return Box().run(kernel)

def steps_of(workgroup: Workgroup) -> list[tuple[int, object]]:
  return sorted(workgroup.decoder.steps(workgroup.waves[0].mode).items())

def beginning(kernel: Kernel) -> CheckState:
  """Return the state of the checks before the first instruction."""
  box = Box()
  with Context(EMULATE_TRANSLATE=0):
    group = Workgroup(kernel.arch, lambda *_: b"", box.registers(kernel), (0, 0, 0), box.memory, 0, 0)
  return known(group.waves[0].strict)

def kernel(arch: str) -> Kernel:
  """Return a kernel with loads, stores, waits, and pairs that are hazards on some architecture."""
  k = Kernel(arch)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_mov_b32", k.v(1), 0)
  k("s_mov_b32", k.s(9), 7)
  k.wait(lgkm=0)
  return k

@pytest.mark.parametrize("arch", ["gfx1100", "gfx1200", "gfx942"])
def test_foreseen_and_executed_agree(arch: str) -> None:
  k = kernel(arch)
  k("v_cmp_gt_u32", k.mask(106), 7, k.v(0))
  k("s_endpgm")
  group = stopped(k)
  wave = group.waves[0]
  found = foresee(StandIn(wave), beginning(k), steps_of(group))  # type: ignore[arg-type]  # steps by address
  assert found == known(wave.strict) and found is not None and found.scalars >> 106 & 1

def test_a_missing_wait_is_foreseen() -> None:
  k = Kernel()
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("s_mov_b32", k.s(4), 0)
  k("s_endpgm")
  box = Box()
  with Context(EMULATE_TRANSLATE=0), pytest.raises(StrictError): box.run(k)
  code = k.bytes()
  with Context(EMULATE_TRANSLATE=0):
    group = Workgroup(k.arch, lambda at, size: code[at - 0x10000:][:size], box.registers(k), (0, 0, 0), box.memory, 0,
                      0)
  steps = []
  at = 0x10000
  for _ in range(2):
    steps.append((at, group.decoder.decode(at, group.waves[0].mode)))
    at += steps[-1][1].size
  stand_in = StandIn(group.waves[0])
  assert foresee(stand_in, beginning(k), steps[:1]) is not None and foresee(stand_in, beginning(k), steps) is None

def test_stores_that_nobody_waits_for_are_forgotten() -> None:
  """Otherwise each iteration of a loop would be another state. After a load they count, since the load ends after them.
  """
  k = kernel("gfx942")
  for _ in range(3): k("global_store_b32", k.v(1), k.v(1), k.s(4, 2))
  k("global_load_b32", k.v(3), k.v(1), k.s(4, 2))
  for _ in range(2): k("global_store_b32", k.v(1), k.v(1), k.s(4, 2))
  k("s_endpgm")
  box = Box()
  box.buffer(4096)
  with Context(EMULATE_TRANSLATE=0): strict = box.run(k).waves[0].strict
  assert len(strict.outstanding) == 6 and [e.registers for e in known(strict).events] == [{3}, set(), set()]

def test_what_is_known_can_be_told() -> None:
  k = kernel("gfx1100")
  k("ds_store_b32", k.v(1), k.v(1))
  k("v_rcp_f32", k.v(2), k.v(1))
  k("s_endpgm")
  with Context(EMULATE_TRANSLATE=0): group = Box().run(k, lds=512)
  strict = group.waves[0].strict
  before, accesses = known(strict), strict.unfinished_local()
  assert before.transcendental and len(accesses) == 32
  strict.hazards.now += 5
  assert known(strict).transcendental == before.transcendental, "no VALU instruction came"
  tell(strict, before)
  assert known(strict) == before and strict.unfinished_local() == accesses
