"""Commands as words, and the words as text."""
import pytest

from tinyhw.autogen.nvidia import methods
from tinyhw.drivers.nvidia.channel import show
from tinyhw.drivers.nvidia.commands import MOST_COPY, Commands

def text(commands: Commands, generation: int) -> list[str]: return show(methods.decode(commands.words), generation)

@pytest.mark.parametrize("generation", methods.GENERATIONS)
def test_semaphores(generation: int) -> None:
  commands = Commands(generation)
  commands.release(0x12_3456_7890, 5, wait=True)
  commands.acquire(0x1000, 7)
  assert text(commands, generation) == [
    "SEM_ADDR_LO offset=0x34567890", "SEM_ADDR_HI offset=0x12", "SEM_PAYLOAD_LO payload=0x5", "SEM_PAYLOAD_HI ",
    "SEM_EXECUTE operation=0x1 release_wfi=0x1", "SEM_ADDR_LO offset=0x1000", "SEM_ADDR_HI ",
    "SEM_PAYLOAD_LO payload=0x7", "SEM_PAYLOAD_HI ",
    "SEM_EXECUTE operation=0x3 acquire_switch_tsg=0x1"]
  assert commands.words[0] == 0x20050017

def test_a_launch() -> None:
  commands = Commands(9)
  commands.see_earlier_kernels()
  place = commands.launch(0x12_3456_7800)
  assert commands.words[place] == 0x12345678
  assert text(commands, 9)[-2:] == ["SEND_PCAS_A qmd_address_shifted8=0x12345678",
                                    "SEND_SIGNALING_PCAS2_B pcas_action=0x3"]

def test_long_copies_are_several() -> None:
  commands = Commands(9)
  commands.copy(1 << 32, 0, 2 * MOST_COPY + 5)
  lines = text(commands, 9)
  assert [line for line in lines if "LINE_LENGTH" in line] == [f"LINE_LENGTH_IN value={size:#x}"
                                                               for size in (MOST_COPY, MOST_COPY, 5)]
  commands = Commands(9)
  commands.copied(0x5_0000_0010, 9)
  assert text(commands, 9) == ["SET_SEMAPHORE_A upper=0x5", "SET_SEMAPHORE_B lower=0x10",
                               "SET_SEMAPHORE_PAYLOAD payload=0x9",
                               "LAUNCH_DMA flush_enable=0x1 semaphore_type=0x1"]
