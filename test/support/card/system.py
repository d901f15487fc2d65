"""Facts from the kernel's driver of a computer with NVIDIA GPUs: nodes, versions, classes, which calls it answers.

Looks only.
"""
from __future__ import annotations
import contextlib
import ctypes
import mmap
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from card.frame import Absent, Notes

from tinyhw.autogen.nvidia import rm
from tinyhw.config import EMULATE
from tinyhw.device import Compiled, Device
from tinyhw.drivers.linux.files import machine
from tinyhw.drivers.nvidia import doctor
from tinyhw.drivers.nvidia.card import HOST, RING, USER, VRAM, Card, _uuid, opened
from tinyhw.drivers.nvidia.chips import CHIPS
from tinyhw.drivers.nvidia.cuda import CudaDevice
from tinyhw.drivers.nvidia.device import NVDevice
from tinyhw.drivers.nvidia.library import FOLDERS
from tinyhw.drivers.nvidia.rm import QUERY, RmClient, connect, version_of
from tinyhw.drivers.nvidia.visible import node_of, pci_address
from tinyhw.errors import DeviceError, TinyError

FILES = ("/proc/driver/nvidia/version", "/sys/module/nvidia/version", "/sys/module/nvidia_uvm/version",
         "/proc/driver/nvidia/params")
NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset",
         *(f"/dev/nvidia{i}" for i in range(8)))
FB_INFO = {0x05: "BAR1 KiB", 0x07: "RAM KiB", 0x08: "memory KiB", 0x16: "free KiB", 0x1B: "L2 KiB",
           0x1D: "BAR1 free KiB"}
GR_INFO = {0x07: "shader pipes", 0x09: "TPCs", 0x0A: "register banks of an SM", 0x0C: "SM version",
           0x0D: "warps of an SM", 0x0E: "lanes of a warp",
           0x14: "GPCs", 0x17: "TPCs of a GPC", 0x1D: "cores", 0x20: "SMs of a TPC"}

def connected() -> RmClient:
  """The connection to the kernel's driver, which runs a GPU for us.

  Raises `Absent` where there is none: then nothing of our driver can be asked.
  """
  try:
    connection = connect(machine())
    connection.find_card(0)
  except DeviceError as error: raise Absent(error.message) from error
  return connection

def driver_version() -> tuple[int, ...]:
  """The version of the kernel's driver, by the file of its module. Raises `Absent` where it is not loaded."""
  try: return version_of(machine())
  except DeviceError as error: raise Absent(error.message) from error

def device_of(name: str) -> Compiled:
  """A device, by the way to the GPU that its name tells. Raises AssertionError where the vendor's library opened in the
  place of our own driver, with the reason; `Absent` where there is no GPU to open, or NV:CUDA is asked for and there is
  no such library."""
  if "CUDA" not in name:
    try: device = Device[name]
    except TinyError:
      if name == "NV": connected()
      raise
    assert not isinstance(device, CudaDevice), (f"the vendor's library opened in the place of our own driver: "
                                                f"{device.instead}")
    return device
  try: return Device[name]
  except TinyError as error: raise Absent(error.message) from error

def our_device() -> NVDevice:
  """The device NV through our own driver."""
  device = device_of("NV")
  assert isinstance(device, NVDevice)
  return device

def attempt(function: Any, *arguments: Any) -> Any:
  """Return the result of a call, or the words of its refusal."""
  try: return function(*arguments)
  except TinyError as error: return f"refused: {error.message}"

HOLD = """import glob, os, sys
held = []
for path in glob.glob("/dev/nvidia[0-9]*"):
  try: held.append(os.open(path, os.O_RDWR | os.O_CLOEXEC))
  except OSError: pass
sys.stdin.read()
"""

@contextlib.contextmanager
def held() -> Iterator[None]:
  """The GPUs' nodes are open meanwhile, by a process that does nothing else: where nobody has them open, the kernel's
  driver shuts a GPU down, and each step would wait for seconds until it has started again."""
  if EMULATE.value:
    yield
    return
  # it ends with this process, which its input does
  process = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE)
  try: yield
  finally:
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired): process.wait(5)

def files_and_nodes(notes: Notes) -> None:
  """Files of the kernel's driver, nodes with modes and owners, who we are, and what the vendor's own program says."""
  notes("user", f"{os.getuid()}:{os.getgid()}, groups {os.getgroups()}")
  box = machine()
  for path in FILES:
    try: notes(path, box.read_text(path)[:2000].strip())
    except OSError as error: notes(path, f"{error.strerror}")
  for path in NODES:
    if not os.path.exists(path): continue
    entry = os.stat(path)
    notes(path, f"{stat.filemode(entry.st_mode)} {entry.st_uid}:{entry.st_gid} "
          f"{os.major(entry.st_rdev)}:{os.minor(entry.st_rdev)}")
  folders = [folder for folder in FOLDERS if os.path.isdir(folder)]
  notes("libraries", [f"{folder}/{name}" for folder in folders for name in sorted(os.listdir(folder))
                      if name.startswith("libcuda.so")])
  program = shutil.which("nvidia-smi")
  if program:
    notes("nvidia-smi", subprocess.run([program, "-q", "-d", "MEMORY,CLOCK,COMPUTE,PERFORMANCE"], capture_output=True,
                                       text=True,
                                       timeout=20).stdout[:6000])

def examined(notes: Notes) -> None:
  """Return the findings of `doctor --device NV`."""
  bad = []
  for found in doctor.diagnose(0):
    notes(found.name, f"{found.state}: {found.words}{f' [{found.fix}]' if found.fix else ''}")
    if found.state == "problem": bad.append(found.name)
  if bad: raise Absent(f"not all that is needed is there: {', '.join(bad)}")

def version(notes: Notes) -> None:
  """The version by the file of the module, and by the driver's own call."""
  notes("by file", ".".join(map(str, driver_version())))
  connection = connected()
  notes("structures of branch", connection.structures.branch)
  request = connection.structures.CheckVersion(cmd=QUERY)
  connection.node.ioctl(request)
  notes("by call", bytes(request.versionString).split(b"\0")[0].decode("ascii", "replace"))
  notes("reply", request.reply)

def first_card() -> tuple[RmClient, Card]:
  connection = connected()
  return connection, opened(connection, connection.find_card(0))

def cards(notes: Notes) -> None:
  """Each GPU that the kernel's driver runs; of the first one its classes, and which of ours they mean."""
  connection = connected()
  for info in connection.list_cards():
    notes(node_of(info), f"{pci_address(info)}, device {info.device_id:#06x}, id {info.gpu_id:#x}")
  _, card = first_card()
  notes("name", card.name)
  notes("classes", " ".join(f"{number:#x}" for number in card.classes))
  notes("driven as", card.chip.arch)
  notes("known compute classes", {chip.arch: f"{chip.compute:#x} {'is there' if chip.compute in card.classes else 'no'}"
                                  for chip in CHIPS})
  notes("multiprocessors", card.multiprocessors)
  notes("TPCs", card.tpcs)
  notes("uuid", card.uuid.hex())

def controls(notes: Notes) -> None:
  """Which of the controls that the driver has structures of are answered, and with what."""
  connection, card = first_card()
  s, control = connection.structures, connection.control
  def probed() -> Any: return [hex(i) for i in control(connection.root, s.GetProbedIds()).gpuIds if i != 0xFFFF_FFFF]
  def architecture() -> Any:
    found = control(card.subdevice, s.GetArchInfo())
    return (f"architecture {found.architecture:#x}, implementation {found.implementation:#x}, revision "
            f"{found.revision:#x}")
  def correlation() -> Any:
    found = control(card.subdevice, s.GetTimeCorrelation(cpuClkId=1, sampleCount=2))
    return list(found.samples[:4])
  for name, function in (("GetProbedIds", probed), ("GetArchInfo", architecture), ("GetTimeCorrelation", correlation)):
    notes(name, attempt(function))
  notes("FbGetInfo", {name: attempt(_fb, connection, card, index) for index, name in FB_INFO.items()})
  notes("GrGetInfo", {name: attempt(_gr, connection, card, index) for index, name in GR_INFO.items()})
  notes("TPC masks", attempt(_masks, connection, card))

def _fb(connection: RmClient, card: Card, index: int) -> int:
  request = connection.structures.FbGetInfo(fbInfoListSize=1)
  request.fbInfoList[0].index = index
  return int(connection.control(card.subdevice, request).fbInfoList[0].data)

def _gr(connection: RmClient, card: Card, index: int) -> int:
  entry = connection.structures.GrInfo(index=index)
  connection.control(card.subdevice,
                     connection.structures.GrGetInfo(grInfoListSize=1, grInfoList=ctypes.addressof(entry)))
  return int(entry.data)

def _masks(connection: RmClient, card: Card) -> str:
  s, control = connection.structures, connection.control
  gpcs = control(card.subdevice, s.GrGetGpcMask()).gpcMask
  return f"GPCs {gpcs:#x}: " + " ".join(f"{control(card.subdevice, s.GrGetTpcMask(gpcId=i)).tpcMask:#x}"
                                        for i in range(32) if gpcs >> i & 1)

def objects(notes: Notes) -> None:
  """Which objects can be made: memory of each kind, with the calls that map it; a debugger; unified memory's look at a
  range."""
  own = mmap.mmap(-1, 1 << 20)   # pages of this program
  connection, card = first_card()
  s = connection.structures
  for kind in (VRAM, RING, HOST, USER):
    def made(kind: Any = kind) -> str:
      memory = card.allocate(1 << 20, kind, "asked", ctypes.addressof(ctypes.c_char.from_buffer(own)) if kind is USER
                             else 0)
      words = f"at {memory.address:#x}"
      if kind.visible:
        memory.mapping.store32(64, 0x1234)
        words += f", read {memory.mapping.load32(64):#x}"
      memory.close()
      return words
    notes(kind.name, attempt(made))
  def debugger() -> str:
    handle = connection.new(card.device, rm.DEBUGGER, s.DebuggerParams(hAppClient=connection.root))
    connection.free(handle)
    return "made"
  notes("debugger", attempt(debugger))
  notes("usermode classes", [hex(n) for n in card.chip.usermode if n in card.classes])
  def valid() -> str:
    connection.call_uvm(s.UvmValidateVaRange(base=1 << 38, length=1 << 20))
    return "answered"
  notes("UvmValidateVaRange", attempt(valid))
  notes("UvmRegisterGpu again",
        attempt(lambda: connection.call_uvm(s.UvmRegisterGpu(gpu_uuid=_uuid(card.uuid), rmCtrlFd=-1)) or "answered"))
