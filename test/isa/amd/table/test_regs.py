"""Registers of AMD: names, groups, codes."""
from __future__ import annotations

from tinyhw.isa.amd.table import regs

def test_names() -> None:
  assert [str(regs.s(i)) for i in (0, 105, regs.VCC, regs.VCC + 1, regs.M0, regs.EXEC, regs.TTMP)] == \
    ["s0", "s105", "vcc_lo", "vcc_hi", "m0", "exec_lo", "ttmp0"]
  assert ([str(r) for r in (regs.s(4, 2), regs.s(regs.VCC, 2), regs.v(3), regs.v(3, 4), regs.ve(4, 2))]
          == ["s[4:5]", "vcc", "v3", "v[3:6]", "v[4:5]"])

def test_a_register_is_one_object() -> None:
  assert regs.v(3) is regs.v(3) and regs.v(4, 2) != regs.ve(4, 2)

def test_groups_of_scalars_are_aligned() -> None:
  assert [regs.S[n].align for n in (1, 2, 3, 4, 8, 16)] == [1, 2, 4, 4, 4, 4]

def test_codes_differ_between_families() -> None:
  cdna, rdna = regs.NUMBERS["cdna"], regs.NUMBERS["rdna"]
  assert (cdna.codes[regs.M0], rdna.codes[regs.M0]) == (124, 125)
  assert (cdna.codes[regs.NULL], rdna.codes[regs.NULL]) == (-1, 124)
  assert (cdna.codes[regs.FLAT_SCRATCH], cdna.codes[102], rdna.codes[102]) == (102, -1, 102)
  for numbers in (cdna, rdna): assert all(numbers.codes[index] == code for code, index in numbers.indices.items())
