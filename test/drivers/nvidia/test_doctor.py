"""Findings of `doctor --device NV`: each possible problem is named, with its fix. The device gives the same message
when it opens."""
import errno
from collections.abc import Callable, Iterator

import pytest

from tinyhw.autogen.nvidia.rm import Status
from tinyhw.config import Context
from tinyhw.drivers import nvidia
from tinyhw.drivers.linux import files
from tinyhw.drivers.linux.diagnosis import NOTE, OK, PROBLEM, Finding
from tinyhw.drivers.nvidia import doctor, rm
from tinyhw.drivers.nvidia.card import Card
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.emulator.nvidia.card.gpu import ComputeMode
from tinyhw.errors import TinyError

PCI = "/sys/bus/pci/devices/0000:17:00.0"
LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so."

@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuHost]:
  """Make a computer with one card, which is on the PCI bus too, and the vendor's library."""
  box = GpuHost("examined", ["sm_90"])
  box.texts |= {f"{PCI}/vendor": "0x10de\n", f"{PCI}/class": "0x030200\n", f"{PCI}/device": "0x2335\n",
                LIBRARY + "580.142": "", LIBRARY + "1": ""}
  monkeypatch.setattr(files, "COMPUTER", box)
  with Context(EMULATE=""): yield box
  rm.forget(box)
  others_end(box)

def others_end(box: GpuHost) -> None:
  """End all processes except the first one."""
  for other in box.processes[1:]: other.kill()

def test_a_card_that_is_driven(computer: GpuHost) -> None:
  found = doctor.diagnose(0)
  names = ["card", "kernel module", "version", "/dev/nvidiactl", "/dev/nvidia-uvm", "cards", "/dev/nvidia0", "chip",
           "memory"]
  assert [f.name for f in found] == names
  assert all(f.state == OK and not f.fix for f in found)
  assert found[-2].words == "NVIDIA H200, which is driven as sm_90" and found[-1].words == "4.00 GB of 4.00 GB are free"
  assert [f.state for f in doctor.diagnose(0)] == [OK] * 9, "a second look is as good"

def no_card(box: GpuHost) -> None: box.texts[f"{PCI}/vendor"] = "0x8086\n"
def no_module(box: GpuHost) -> None:
  box.nodes.clear()
  del box.texts["/sys/module/nvidia/version"]
def no_card_and_no_module(box: GpuHost) -> None:
  no_card(box)
  no_module(box)
def unknown_version(box: GpuHost) -> None: box.texts["/sys/module/nvidia/version"] = "610.12\n"
def nouveau(box: GpuHost) -> None:
  no_module(box)
  box.texts["/sys/module/nouveau/version"] = ""
def windows(box: GpuHost) -> None:
  no_card_and_no_module(box)
  box.nodes["/dev/dxg"] = lambda: None   # type: ignore[assignment,return-value]
def bare_container(box: GpuHost) -> None:
  box.nodes.clear()
  box.texts["/.dockerenv"] = ""
def forbidden(box: GpuHost) -> None: box.refused["/dev/nvidiactl"] = errno.EACCES
def forbidden_by_the_container(box: GpuHost) -> None: box.refused["/dev/nvidia0"] = errno.EPERM
def no_unified_memory(box: GpuHost) -> None: del box.nodes["/dev/nvidia-uvm"]
def no_node_of_unified_memory(box: GpuHost) -> None:
  del box.nodes["/dev/nvidia-uvm"]
  box.texts["/sys/module/nvidia_uvm/version"] = "580.142\n"
def other_library(box: GpuHost) -> None:
  del box.texts[LIBRARY + "580.142"]
  box.texts[LIBRARY + "575.57.08"] = ""
def no_gpu_for_us(box: GpuHost) -> None: box.gpus.clear()
def walled(box: GpuHost) -> None: box.fail("RmAlloc", 1, errno.EPERM)
def unknown_gpu(box: GpuHost) -> None:
  box.gpus[0].chip = type(box.gpus[0].chip)(**{**vars(box.gpus[0].chip), "compute": 0xD0C0})
def instances(box: GpuHost) -> None:
  box.texts["/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access"] = "DeviceFileMinor: 3\n"
def exclusive(box: GpuHost) -> None:
  """Let another process have the GPU: its client has made a device and a subdevice."""
  box.gpus[0].mode = ComputeMode.EXCLUSIVE_COMPUTE_PROCESS
  other = rm.RmClient(box.process())  # type: ignore[arg-type]
  Card(other, other.list_cards()[0])
def prohibited(box: GpuHost) -> None: box.gpus[0].mode = ComputeMode.COMPUTE_PROHIBITED
def fell_off(box: GpuHost) -> None: box.fail("GetGidInfo", 1, Status.GPU_IS_LOST)
def somebody_else(box: GpuHost) -> None: box.gpus[0].vram_used = 3 << 30
def did_not_start(box: GpuHost) -> None: box.refused["/dev/nvidia0"] = errno.EIO

# The problem, the finding that names it, words of it, and of its fix
WRONG = [
  (no_card_and_no_module, "card", PROBLEM, "no GPU of NVIDIA is on the PCI bus", "look whether it has power"),
  (no_module, "kernel module", PROBLEM, "(device 0x2335) is on the PCI bus, but the kernel's module nvidia is not "
   "loaded", "sudo modprobe nvidia"),
  (unknown_version, "version", PROBLEM, "610.12 is not known: structures of NVIDIA's kernel driver 610 are not known; "
   "known are 535", "NV:CUDA"),
  (nouveau, "kernel module", PROBLEM, "the kernel's module nvidia is not loaded, and nouveau has the GPU",
   "install NVIDIA's, which keeps it from"),
  (windows, "version", PROBLEM, "Linux inside of Windows (WSL), where NVIDIA's kernel driver is that of Windows",
   "use DEV=NV:CUDA"),
  (bare_container, "/dev/nvidiactl", PROBLEM, "this container was started without it",
   "start the container with --gpus all"),
  (forbidden, "/dev/nvidiactl", PROBLEM, "it belongs to the group render, in which this user is not", "usermod"),
  (forbidden_by_the_container, "/dev/nvidia0", PROBLEM, "the container may not use it", "--gpus all"),
  (did_not_start, "/dev/nvidia0", PROBLEM, "input/output error", ""),
  (no_unified_memory, "/dev/nvidia-uvm", PROBLEM, "the kernel's module nvidia_uvm is not loaded",
   "sudo nvidia-modprobe -u -c=0"),
  (no_node_of_unified_memory, "/dev/nvidia-uvm", PROBLEM, "although its module is loaded",
   "sudo nvidia-modprobe -u -c=0"),
  (other_library, "library", NOTE, "is version 575.57.08, and the kernel's module 580.142: NV works, NV:CUDA does not",
   "restart the computer"),
  (no_gpu_for_us, "cards", PROBLEM, "shows no GPU that this process may use", "start the container with --gpus all"),
  (walled, "connection", PROBLEM, "making a client: operation not permitted (EPERM)", "DEV=NV:CUDA"),
  (unknown_gpu, "chip", PROBLEM, "has no compute class that is known here", "known are sm_80"),
  (instances, "objects", PROBLEM, "is divided into instances (MIG), which are not driven",
   "sudo nvidia-smi -i 0 -mig 0"),
  (exclusive, "objects", PROBLEM, "another one has it for itself (compute mode exclusive)", "wait for the other's end"),
  (prohibited, "objects", PROBLEM, "or nobody may compute on it (prohibited)", "sudo nvidia-smi -i 0 -c DEFAULT"),
  (fell_off, "objects", PROBLEM, "GetGidInfo: NVIDIA's driver answers gpu is lost", "restart the computer"),
  (somebody_else, "memory", NOTE, "1.00 GB of 4.00 GB are free: other processes hold the rest", "nvidia-smi"),
]

@pytest.mark.parametrize("wrong, name, state, words, fix", WRONG, ids=[row[0].__name__ for row in WRONG])
def test_what_is_wrong_is_named(computer: GpuHost, wrong: Callable[[GpuHost], None], name: str, state: str,
                                words: str, fix: str) -> None:
  wrong(computer)
  bad = [f for f in doctor.diagnose(0) if f.state != OK]
  assert bad[0].name == name and bad[0].state == state, bad
  assert words in bad[0].words and fix in bad[0].fix, bad[0]
  computer.vram_used = 0

@pytest.mark.parametrize("wrong",
                         [row[0] for row in WRONG if row[2] == PROBLEM and row[0] not in (no_card_and_no_module,)],
                         ids=lambda value: value.__name__)
def test_the_device_says_so_too_and_opens_when_it_is_mended(computer: GpuHost,
                                                            wrong: Callable[[GpuHost], None]) -> None:
  kept = dict(computer.texts), dict(computer.nodes), list(computer.gpus), computer.gpus[0].chip
  wrong(computer)
  with pytest.raises(TinyError) as caught: nvidia.open(0, lambda name: None)  # type: ignore[arg-type]
  assert "; " in caught.value.message or ": " in caught.value.message
  computer.texts, computer.nodes, computer.gpus[:] = kept[0], kept[1], kept[2]
  computer.gpus[0].chip = kept[3]
  if wrong is prohibited: computer.gpus[0].mode = ComputeMode.EXCLUSIVE_COMPUTE_PROCESS
  others_end(computer)
  computer.refused.clear()
  computer.failures.clear()
  nvidia.open(0, lambda name: None).close()  # type: ignore[arg-type]
  rm.forget(computer)
  assert computer.census() == {}

def test_a_number_that_no_gpu_has(computer: GpuHost) -> None:
  assert doctor.diagnose(3)[-1] == Finding("cards", PROBLEM, "there is 1 GPU, and number 3 is none of them", "use NV")

def test_a_choice_of_gpus_that_cannot_be(computer: GpuHost) -> None:
  with Context(CUDA_VISIBLE_DEVICES="3"): last = doctor.diagnose(0)[-1]
  assert last == Finding("cards", PROBLEM, "the kernel's driver shows no GPU that this process may use",
                         "look at CUDA_VISIBLE_DEVICES=3, which ends at '3': that is no GPU of the 1 that this "
                         "process was given")
  with Context(CUDA_VISIBLE_DEVICES=""): last = doctor.diagnose(0)[-1]
  assert last.fix.startswith("unset CUDA_VISIBLE_DEVICES, or set it to numbers of nvidia-smi")
  with Context(CUDA_VISIBLE_DEVICES="-1"): last = doctor.diagnose(0)[-1]
  assert "no GPU that this process may use" in last.words and last.fix == "look at CUDA_VISIBLE_DEVICES=-1"
  with Context(CUDA_VISIBLE_DEVICES="0"): assert doctor.diagnose(0)[-1].state == OK

def test_a_card_that_is_not_on_the_bus_but_driven(computer: GpuHost) -> None:
  """A virtual machine may hide the bus."""
  no_card(computer)
  assert [f.name for f in doctor.diagnose(0) if f.state == PROBLEM] == ["card"]

def test_several_problems_are_all_told(computer: GpuHost) -> None:
  forbidden(computer)
  no_unified_memory(computer)
  assert [f.name for f in doctor.diagnose(0) if f.state == PROBLEM] == ["/dev/nvidiactl", "/dev/nvidia-uvm"]
