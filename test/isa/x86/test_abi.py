"""The calling conventions, against the rules that each must satisfy."""
import pytest

from tinyhw.isa.x86 import abi

@pytest.mark.parametrize("convention", [abi.SYSTEM_V, abi.WINDOWS])
def test_registers_have_one_role(convention: abi.Abi) -> None:
  assert (not set(convention.arguments) & set(convention.saved) and convention.result not in convention.arguments
          + convention.saved)
  assert len(set(convention.arguments)) == len(convention.arguments) and "rsp" not in convention.saved
  assert len(convention.saved) % 2 == 0, "the frames of the runtime count on it"

def test_platforms() -> None:
  assert abi.abi("win32") is abi.WINDOWS and abi.abi("linux") is abi.abi("darwin") is abi.abi("freebsd") is abi.SYSTEM_V
  for name, system in abi.SYSTEMS.items():
    assert abi.system(name) is system and system.abi is abi.abi(name) and system.name == name
  with pytest.raises(KeyError): abi.system("freebsd")
