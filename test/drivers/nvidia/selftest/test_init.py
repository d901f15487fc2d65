"""The self-test finds the driver's steps by the name of its package."""
from tinyhw.selftest import command

def test_the_command_finds_the_steps() -> None:
  session = command.begin("NV", faults=False)
  assert type(session).__module__ == "tinyhw.drivers.nvidia.selftest.steps"
