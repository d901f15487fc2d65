"""The registers of a kernel's arguments and numbers, compared with the hardware's documents."""
import pytest

from tinyhw.isa.amd.abi import abi
from tinyhw.isa.amd.table import regs

@pytest.mark.parametrize("family, workgroup, user", [("cdna", "s2", 2), ("rdna3", "s15", 15), ("rdna4", "ttmp9", 2)])
def test_the_start_of_each_family(family: str, workgroup: str, user: int) -> None:
  found = abi(family)
  assert repr(found.workgroup) == workgroup and found.user_sgprs == user
  assert found.arguments == regs.s(0, 2) and found.lane == regs.v(0)

def test_sixteen_scalar_registers_are_initialised_on_rdna3() -> None:
  found = abi("rdna3")
  assert found.user_sgprs + 1 == 16 and found.workgroup.index == found.user_sgprs
