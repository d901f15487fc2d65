"""Properties that distinguish GPUs, and their clock."""
from tinyhw.emulator.nvidia.card.computer import GpuHost

def test_gpus_have_names_and_a_clock_that_goes_on() -> None:
  computer = GpuHost("sm_90x2", ["sm_90", "sm_90"])
  first, second = computer.gpus
  assert first.uuid != second.uuid and first.gpu_id != second.gpu_id and first.minor != second.minor
  assert first.uuid == GpuHost("sm_90x2", ["sm_90"]).gpus[0].uuid, "the same in each run"
  assert first.clock() <= first.clock()
