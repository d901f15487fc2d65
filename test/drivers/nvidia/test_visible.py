"""The GPUs of a process: those that it was given, in the order of the PCI bus, as CUDA_VISIBLE_DEVICES chooses."""
import errno
from collections.abc import Iterator

import pytest

from tinyhw.config import Context
from tinyhw.drivers import nvidia
from tinyhw.drivers.linux import files
from tinyhw.drivers.nvidia import rm
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.errors import DeviceError, DriverError

@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuHost]:
  """Make a computer with three cards."""
  box = GpuHost("three", ["sm_80", "sm_89", "sm_90"])
  monkeypatch.setattr(files, "COMPUTER", box)
  with Context(EMULATE=""): yield box
  rm.forget(box)
  assert box.census() == {}

def used(box: GpuHost, chosen: str = "all") -> list[int]:
  """Return the minor numbers of the used cards."""
  with Context(CUDA_VISIBLE_DEVICES=chosen): return [info.minor_number for info in rm.connect(box).list_cards()]

def arch(ordinal: int) -> str:
  device = nvidia.open(ordinal, lambda name: None)  # type: ignore[arg-type,return-value]
  device.close()
  return device.arch

def test_numbers_go_by_the_place_on_the_bus(computer: GpuHost) -> None:
  """Numbers are those of nvidia-smi, not those of the kernel."""
  assert used(computer) == [0, 1, 2] and arch(0) == "sm_80"
  computer.gpus[0].bus, computer.gpus[2].bus = 0xC1, 0x01
  assert used(computer) == [2, 1, 0] and arch(0) == "sm_90"

def test_a_container_that_was_given_one_of_them(computer: GpuHost) -> None:
  """The kernel driver lists all. A GPU without a node belongs to others."""
  for minor in (0, 2): del computer.nodes[f"/dev/nvidia{minor}"]
  assert used(computer) == [1] and arch(0) == "sm_89"
  words = ("no GPU number 1: NVIDIA's kernel driver runs 3, and this process uses 1 of them: without /dev/nvidia0, "
           "/dev/nvidia2; have them given")
  with pytest.raises(DeviceError, match=words): arch(1)
  with pytest.raises(DeviceError, match="given to the container, or made: sudo nvidia-modprobe -c=0 -c=2 "): arch(1)
  del computer.nodes["/dev/nvidia1"]
  for chosen in ("all", "", "0"):
    with Context(CUDA_VISIBLE_DEVICES=chosen), pytest.raises(DeviceError, match="number 0: .* uses 0 of them: .* -c=0 "
                                                             "-c=1 -c=2 "):
      arch(0)

def test_a_batch_system_that_keeps_gpus_from_jobs(computer: GpuHost) -> None:
  """The rules of the cgroup deny nodes that exist. If no node may be opened, the open call tells so."""
  computer.refused |= {"/dev/nvidia0": errno.EPERM, "/dev/nvidia2": errno.EPERM}
  assert used(computer) == used(computer, "0") == [1] and arch(0) == "sm_89"
  with pytest.raises(DeviceError, match="uses 1 of them: without /dev/nvidia0, /dev/nvidia2; have them given to the "
                     "container ") as caught:
    arch(1)
  assert "modprobe" not in caught.value.message
  computer.refused["/dev/nvidia1"] = errno.EPERM
  with pytest.raises(DriverError, match="opening /dev/nvidia0: operation not permitted"): arch(0)

def test_a_choice(computer: GpuHost) -> None:
  names = {number: "GPU-" + computer.gpus[number].uuid.hex()[:8] for number in range(3)}
  for text, wanted in (("1", [1]), ("2,0", [2, 0]), (" 1 , 2", [1, 2]), ("-1", []), ("0,-1,1", [0]), ("2,-1,x", [2]),
                       (names[1], [1]),
                       (f"{names[2]},0", [2, 0]), (names[0].upper(), [0]), ("", []), ("2,3,0", [2]), ("0,x,1", [0]),
                       ("0,,1", [0]), ("+1,0", []),
                       ("1,GPU-,0", [1]), ("1,GPU-zz,0", [1])):
    assert used(computer, text) == wanted, text
  with Context(CUDA_VISIBLE_DEVICES="2,0"):
    assert arch(0) == "sm_90" and arch(1) == "sm_80"
    with pytest.raises(DeviceError, match="no GPU number 2: .* runs 3, and this process uses 2 of them; look at "
                       "CUDA_VISIBLE_DEVICES=2,0 "):
      arch(2)
  del computer.nodes["/dev/nvidia0"]
  assert used(computer, "1") == [2], "a choice among those that are given"

@pytest.mark.parametrize("text, words", [
  ("3", "uses 0 of them; look at CUDA_VISIBLE_DEVICES=3, which ends at '3': that is no GPU of the 3 that this process "
   "was given"),
  ("x,0", "'x': that is no GPU"), (",0", "ends at '': that is no GPU"), ("GPU-", "'GPU-': that begins several UUIDs"),
  ("GPU-zz", "'GPU-zz': that is no GPU"),
  ("", "number 0: .* runs 3, and this process uses 0 of them; unset CUDA_VISIBLE_DEVICES, or set it .*: it is empty, "
   "which leaves no GPU"),
  ("1,1", "names the GPU at 0000:18:00.0 twice"),
  ("MIG-12345678-1234", "an instance of a GPU \\(MIG\\), which is not driven; NV:CUDA uses it")])
def test_a_choice_that_cannot_be(computer: GpuHost, text: str, words: str) -> None:
  with Context(CUDA_VISIBLE_DEVICES=text), pytest.raises(DeviceError, match=words): arch(0)

def test_uuids_that_the_kernel_does_not_tell(computer: GpuHost) -> None:
  """procfs has question marks before a GPU has been started. In sandboxes it is missing."""
  name = "GPU-" + computer.gpus[1].uuid.hex()[:8]
  path = "/proc/driver/nvidia/gpus/0000:18:00.0/information"
  computer.texts[path] = "GPU UUID: \t GPU-????????-????-????-????-????????????\n"
  with Context(CUDA_VISIBLE_DEVICES=name), pytest.raises(DeviceError, match="that is no GPU of the 3"): arch(0)
  computer.refused[path] = errno.EACCES
  with Context(CUDA_VISIBLE_DEVICES=name), pytest.raises(DeviceError, match="that is no GPU of the 3"): arch(0)

def test_virtual_gpus_are_not_chosen(computer: GpuHost) -> None:
  with Context(EMULATE="sm_90"): assert used(computer, "7") == [0, 1, 2]

def test_a_gpu_among_others_that_is_not_driven(computer: GpuHost) -> None:
  """It is named, and so are the others. It does not affect their use."""
  chip = computer.gpus[0].chip
  computer.gpus[0].chip = type(chip)(**{**vars(chip), "compute": 0xC1C0, "marketing": "NVIDIA TITAN"})
  words = ("NVIDIA TITAN at 0000:17:00.0 has no compute class that is known here; known are .*; other GPUs here: "
           "NV:1, NV:2 ")
  for _ in range(2):
    with pytest.raises(DeviceError, match=words): arch(0)
  assert [arch(1), arch(2)] == ["sm_89", "sm_90"]

def test_nodes_that_may_only_be_read(computer: GpuHost) -> None:
  computer.refused["/dev/nvidia1"] = errno.EACCES
  with pytest.raises(DriverError, match="/dev/nvidia1: permission denied .*ask for read and write access"): arch(1)
  assert arch(0) == "sm_80"
