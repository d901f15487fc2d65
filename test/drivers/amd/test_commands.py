"""Lists of PM4: the commands around kernels, those of one die only, and registers."""
import pytest
from amd.box import AMDBox

from tinyhw.autogen.amd import pm4
from tinyhw.drivers.amd import topology
from tinyhw.drivers.amd.commands import Commands, dispatch_header

def commands(kind: str) -> Commands:
  gpu = topology.gpus(AMDBox(kind))[0]
  return Commands(gpu, (0x1000, 0x1080) if gpu.xccs > 1 else None)

def names(made: Commands) -> list[str]:
  found, place = [], 0
  while place < len(made.words):
    packet, _, size = made.packets.read(made.words, place)
    found.append(packet.name)
    place += size
  return found

def test_registers_that_follow_each_other_are_one_packet() -> None:
  made = commands("gfx1100")
  place = made.set_registers(made.gc.COMPUTE_PGM_LO, 0x11, 0x22)
  assert made.words == [0xC0027600, 0x20C, 0x11, 0x22] and place == 2
  with pytest.raises(AssertionError, match="is no register of a shader"):
    made.set_registers(made.gc.BIF_BX_PF0_GPU_HDP_FLUSH_REQ, 0)

def test_a_wait_is_for_a_word_in_memory() -> None:
  made = commands("gfx1200")
  made.wait(0x100002000, 7)
  assert made.words == [0xC0053C00, 0x15, 0x2000, 1, 7, 0xFFFFFFFF, 4]

@pytest.mark.parametrize("kind, expected", [("gfx1100", 0x3F0), ("gfx1200", 0x3F0), ("gfx942", 0x08C00000)])
def test_what_a_kernel_sees_of_earlier_ones(kind: str, expected: int) -> None:
  """GFX9 with several dies invalidates also their L2s (TC_ACTION_ENA, bit 23). Later chips invalidate GLM, GLK, GLV,
  GL1."""
  made = commands(kind)
  made.see_earlier_kernels()
  assert names(made) == ["ACQUIRE_MEM"] and made.words[7 if kind != "gfx942" else 1] == expected

def test_one_die_finishes_when_its_waves_have_ended() -> None:
  made = commands("gfx1100")
  made.finish()
  assert made.words == [0xC0004600, 0x407]

def test_several_dies_write_back_and_meet_when_they_finish() -> None:
  made = commands("gfx942")
  made.finish()
  assert names(made) == ["EVENT_WRITE", "ACQUIRE_MEM", "ATOMIC_MEM", "WAIT_REG_MEM", "ATOMIC_MEM", "WAIT_REG_MEM"]
  assert made.words[3] == 1 << 18, "only TC_WB_ACTION_ENA"
  assert made.words[9:18] == [0xC0071E00, 0x0F, 0x1000, 0, 1, 0, 0, 0,
                              16] and made.words[18:25] == [0xC0053C00, 0x13, 0x1000, 0, 0, 7, 0x80]

def test_dies_meet_however_they_are_scheduled() -> None:
  """Run the barrier on a model of dies. Each step is one packet of one die, in any order.

  No die passes before all have arrived, round after round.
  """
  import random
  for seed in range(50):
    chooser, dies, rounds = random.Random(seed), 8, 4
    words, at, passed = [0, 0], [0] * dies, [0] * dies
    while min(passed) < rounds:
      die = chooser.choice([d for d in range(dies) if passed[d] < rounds])
      step = at[die] % 4
      if step % 2 == 0: words[step // 2] += 1
      elif words[step // 2] & dies - 1: continue
      at[die] += 1
      if step == 3:
        passed[die] += 1
        assert passed[die] - min(passed) <= 1

def test_what_one_die_does_is_skipped_by_the_others() -> None:
  made = commands("gfx942")
  with made.one_die(3): made.wait(0x1000, 1)
  assert made.words[:2] == [0xC0002300, 1 << 3 << 24 | 7] and len(made.words) == 9
  made = commands("gfx1100")
  with made.one_die(): made.wait(0x1000, 1)
  assert names(made) == ["WAIT_REG_MEM"]

def test_a_release_writes_then_signals() -> None:
  made = commands("gfx1100")
  made.release(0x7F0000001000, 9, (0x7F0000002008, 3))
  assert made.words == [0xC0064900, 0x70F514, 0x20000000, 0x1000, 0x7F00, 9, 0, 0, 0xC0064900, 0x514, 0x22000000,
                        0x2008, 0x7F00, 3, 0, 3]
  made = commands("gfx942")
  made.timestamp(0x1000)
  assert names(made) == ["PRED_EXEC", "RELEASE_MEM"] and made.words[4] == 3 << 29

@pytest.mark.parametrize("kind, size", [("gfx1100", 512 | 40 << 12), ("gfx942", 512 | 10 << 12)])
def test_scratch_of_each_die(kind: str, size: int) -> None:
  made = commands(kind)
  made.scratch(0x7F0000000000, 512, size >> 12, 1 << 20)
  dies = made.gpu.xccs
  assert made.words[:3] == [0xC0017600, 0x218, size] and names(made).count("SET_SH_REG") == 1 + dies
  assert [made.words[i + 2] for i, word in enumerate(made.words)
          if word == 0xC0027600] == [0x7F0000000000 + die * (1 << 20) >> 8 & 0xFFFFFFFF
                                     for die in range(dies)]

def test_no_workgroups_are_a_nop() -> None:
  made = commands("gfx1100")
  assert made.dispatch(0x8005, 0) == 0
  assert made.words == [0xC0031000, 0, 1, 1, 0x8005] == [dispatch_header(0), *made.words[1:]]
  assert dispatch_header(5) == pm4.GFX10.DISPATCH_DIRECT(dim_x=1, dim_y=1, dim_z=1, dispatch_initiator=1)[0]
