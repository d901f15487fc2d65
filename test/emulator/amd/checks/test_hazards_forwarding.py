"""Registers written before and after a write of EXEC, on RDNA3 in waves of 64."""
from __future__ import annotations

import pytest
from amd.kernels import Box, Kernel

from tinyhw.emulator.amd.checks.hazards_forwarding import ForwardingWatch
from tinyhw.emulator.errors import MissingHazard
from tinyhw.isa.amd.table import regs

EXEC = regs.reg(regs.S[2], regs.EXEC)

def kernel(before: int = 0, behind: int = 0, last: int = 0, cure: str = "", lanes: int = 64,
           exec: bool = True) -> Kernel:
  """Return a kernel: v2 and v3 are written before and after EXEC and then read, with these numbers of VALU instructions
  between.
  """
  k = Kernel("gfx1100", lanes)
  k("s_mov_b64", k.s(10, 2), 0xffffffffffffffff)
  k("s_load_b64", k.s(4, 2), k.s(0, 2), None)
  k("v_mov_b32", k.v(1), 0)
  k("v_mov_b32", k.v(3), 0)
  k.wait(lgkm=0)
  def others(count: int) -> None:
    for _ in range(count): k("v_mov_b32", k.v(9), 0)
  k("v_mov_b32", k.v(2), 1)
  others(before)
  if exec:
    k("s_mov_b64" if lanes == 64 else "s_mov_b32", EXEC if lanes == 64 else regs.reg(regs.S[1], regs.EXEC), k.mask(10))
  if cure == "access": k("global_load_b32", k.v(6), k.v(1), k.s(4, 2))
  others(behind)
  k("v_mov_b32", k.v(3), 2)
  others(last)
  if cure == "wait": k("s_waitcnt_depctr", 0x0fff)
  k("v_add_nc_u32", k.v(4), k.v(2), k.v(3))
  k("s_endpgm")
  return k

@pytest.mark.parametrize("between, fails", [((0, 0, 0), True), ((2, 0, 4), True), ((1, 1, 4), True), ((0, 2, 4), True),
                                            ((2, 1, 0), False),
                                            ((0, 3, 0), False), ((0, 0, 5), False)])
def test_how_far_apart(between: tuple[int, int, int], fails: bool) -> None:
  box = Box()
  box.buffer(bytes(64))
  if not fails: box.run(kernel(*between), (64,))
  else:
    with pytest.raises(MissingHazard, match=r"v2 and v3 are read.*va_vdst\(0\)(.|\n)*v_add_nc_u32_e32 v4, v2, v3"):
      box.run(kernel(*between), (64,))

def test_what_ends_it_and_where_it_is_not() -> None:
  for k in (kernel(cure="wait"), kernel(cure="access"), kernel(exec=False), kernel(lanes=32)):
    box = Box()
    box.buffer(bytes(64))
    box.run(k, (k.lanes,))

def test_what_is_known_is_told() -> None:
  first, second = ForwardingWatch(), ForwardingWatch()
  first.writes, first.execs = {2: (7, 0), 3: (9, 1), 4: (0, 0)}, 2
  second.tell(first.known(10), 110)
  assert second.known(110) == first.known(10) == ((2, 3, 2), (3, 1, 1))
