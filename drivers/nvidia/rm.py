"""The process's connection to NVIDIA's kernel driver: /dev/nvidiactl, /dev/nvidia-uvm, a client of its resource manager
(RM), and the version.

Objects of the resource manager form a tree: a client, under it devices, under those memory, address spaces, channels.
`new` makes an object, `control` sends it a command, `free` ends it and all below it. Layouts of parameters depend on
the version (autogen/nvidia/rm.py).
"""
from __future__ import annotations
import contextlib
import ctypes
import errno
import itertools
import os
import re
from typing import Any

from tinyhw.autogen.nvidia import rm
from tinyhw.autogen.nvidia.rm import Status
from tinyhw.config import EMULATE
from tinyhw.drivers.linux.files import HostFiles, Node, Refused, Unreturned
from tinyhw.drivers.nvidia.visible import missing, visible
from tinyhw.errors import DeviceError

CONTROL, UVM = "/dev/nvidiactl", "/dev/nvidia-uvm"
WSL = "/dev/dxg"   # Linux inside of Windows; this node leads to the driver of Windows
VERSION_FILES = ("/sys/module/nvidia/version", "/proc/driver/nvidia/version")
NOUVEAU = "/sys/module/nouveau"   # the kernel's own driver of NVIDIA's GPUs, which does not compute
INSTEAD_OF_NOUVEAU = ("install NVIDIA's, which keeps it from the GPU (its installer, or a package of the "
                      "distribution), and restart the computer")
QUERY = rm.flags("NV_RM_API_VERSION_CMD_", "QUERY")   # of CheckVersion: return the version, compare nothing
MOST_CARDS = 32
# of objects that we name. RM's own names begin at 0xCAF00000, those of clients at 0xC1D00000
FIRST_NAME = 0x10000000
CLASS_NAMES = {rm.ROOT: "a client", rm.DEVICE: "a device", rm.SUBDEVICE: "a subdevice", rm.VA_SPACE: "an address space",
               rm.CHANNEL_GROUP: "a channel group", rm.CONTEXT_SHARE: "a context share",
               rm.MEMORY_LOCAL: "memory of the GPU",
               rm.MEMORY_SYSTEM: "memory of the host", rm.DEBUGGER: "a debugger"}
# of an object's parameters: RM reads as many as it knows, so these are more than in any version
PARAMETER_BYTES = 512
ADVICE = {
  "open": {errno.ENOENT: "load the kernel's driver (modprobe nvidia, and nvidia-uvm: nvidia-modprobe -u); a container "
           "wants the devices given to it",
           errno.EACCES: "the file's mode keeps you out; ask for read and write access to /dev/nvidia*",
           errno.ENXIO: "the kernel's driver runs and its device does not answer; look into the kernel log (dmesg)",
           errno.EIO: "the GPU did not start; look into the kernel log (dmesg) for NVRM"},
}
# the meaning of a status for the caller: errno, and advice
MEANING = {
  Status.NO_MEMORY: (errno.ENOMEM, "drop references to tensors that are not needed, or use a smaller batch"),
  Status.INSUFFICIENT_RESOURCES: (errno.ENOMEM, "the driver has no more of it: end other processes on the GPU"),
  Status.NO_FREE_FIFOS: (errno.EBUSY, "other processes have all channels of the GPU: end one of them"),
  Status.INSUFFICIENT_PERMISSIONS: (errno.EPERM, "the driver keeps it for administrators, or the container does; look "
                                    "at its security settings"),
  Status.INVALID_CLASS: (errno.EINVAL, "the GPU, or this version of the driver, does not have such objects"),
  Status.INVALID_ARGUMENT: (errno.EINVAL, "the driver reads the parameters otherwise; report this with its version"),
  Status.INVALID_PARAM_STRUCT: (errno.EINVAL, "the driver reads the parameters otherwise; report this with its "
                                "version"),
  Status.GPU_IS_LOST: (errno.ENODEV, "the GPU fell off the bus; restart the computer"),
  Status.RESET_REQUIRED: (errno.EIO, "the GPU must be reset by its administrator"),
  Status.NOT_SUPPORTED: (errno.ENOTSUP, "this GPU or this version of the driver does not do it"),
  Status.STATE_IN_USE: (errno.EBUSY, "something still uses it"),
  Status.IN_USE: (errno.EBUSY, "something still uses it"),
  Status.TIMEOUT: (errno.EIO, "the GPU does not answer; look into the kernel log (dmesg) for NVRM and Xid"),
  Status.PAGE_TABLE_NOT_AVAIL: (errno.EINVAL, "unified memory does not hold this process's memory (UvmMmInitialize)"),
  Status.LIB_RM_VERSION_MISMATCH: (errno.EINVAL, "kernel module and library are of different versions; restart after "
                                   "an update"),
}

class Answered(Refused):
  """An answer of the resource manager itself, with a status. Other refusals come from the kernel, or from a sandbox
  before it."""

def check(what: str, status: int) -> None:
  """Raise Answered if a call failed. This is the single place where a status becomes words."""
  if status == Status.OK: return
  name = Status(status).name if status in list(Status) else f"status {status:#x}"
  number, hint = MEANING.get(status,
                             (errno.EINVAL, "look into the kernel log (dmesg) for NVRM"))  # type: ignore[call-overload]
  raise Answered(f"{what}: NVIDIA's driver answers {name.lower().replace('_', ' ')}; {hint}", number)

NUMBER = re.compile(r"\b\d{3,}\.\d+(?:\.\d+)?\b")

def version_of(box: HostFiles) -> tuple[int, ...]:
  """Return the version of the kernel driver. Raises DeviceError if none is loaded, Refused if it is that of Windows."""
  for path in VERSION_FILES:
    try: text = box.read_text(path)
    except OSError: continue
    found = NUMBER.search(text)
    if found: return rm.version_of(found[0])
  found = NUMBER.search(_asked(box))
  if found: return rm.version_of(found[0])
  if EMULATE:
    raise DeviceError(f"EMULATE={EMULATE} has no NVIDIA GPU; name one, such as EMULATE=sm_90, or use the device AMD")
  if box.exists(WSL):
    raise Refused("this is Linux inside of Windows (WSL), where NVIDIA's kernel driver is that of Windows; use "
                  "DEV=NV:CUDA, which has its library",
                  errno.ENOSYS)
  if box.exists(NOUVEAU):
    raise DeviceError(f"NVIDIA's kernel driver is not loaded: nouveau has the GPU; {INSTEAD_OF_NOUVEAU}")
  raise DeviceError("NVIDIA's kernel driver is not loaded (no /sys/module/nvidia); install it, and run: modprobe "
                    "nvidia && nvidia-modprobe -u")

def _asked(box: HostFiles) -> str:
  """Return the version as the driver itself tells it: sandboxes have its nodes but not its files. Return "" without an
  answer.

  Raises Refused.
  """
  if not box.exists(CONTROL): return ""
  try: node = Node(box, CONTROL, ADVICE)
  except Refused as refused:
    if refused.errno in (errno.ENXIO, errno.ENODEV): return ""  # the node is left from an unloaded module
    raise
  try:
    request = rm.structures(rm.BRANCHES[:1]).CheckVersion(cmd=QUERY)   # the same in all versions
    node.ioctl(request)
    return bytes(request.versionString).split(b"\0")[0].decode("ascii", "replace")
  finally: node.close()

class RmClient:
  """One client of the resource manager. The caller of each method owns the result."""
  def __init__(self, box: HostFiles):
    self.box, self.version = box, version_of(box)
    self.shown = ".".join(map(str, self.version))
    try: self.structures = rm.structures(self.version)
    except ValueError as error:
      raise DeviceError(f"version {self.shown} of NVIDIA's kernel driver is not known: {error}; install one of them, "
                        f"or use DEV=NV:CUDA") from error
    self.cards: dict[int, Any] = {}                 # by gpu_id; they stay open until the process ends (card.py)
    self.addresses: Any = None                      # addresses that processor and GPUs share (addresses.py)
    self.peers: set[frozenset[bytes]] = set()       # GPUs that access each other, by uuid
    self.unreturned = Unreturned()                  # resources that the kernel refused to take back
    self.memory: Node | None = None                 # the file by which unified memory holds this process's memory
    self.not_held: Refused | None = None            # the reason if unified memory does not hold it
    self._names = itertools.count(FIRST_NAME)
    with contextlib.ExitStack() as undo:
      self.node = Node(box, CONTROL, ADVICE)
      undo.callback(self.node.close)
      self.uvm = Node(box, UVM, ADVICE)
      undo.callback(self.uvm.close)
      self.root = self.new(0, rm.ROOT, None)
      undo.callback(self.free, self.root)
      self.call_uvm(self.structures.UvmInitialize())
      self.undo = undo.pop_all()

  def hold_memory(self) -> None:
    """Let unified memory hold this process's memory, as long as a second file of it is open. Without that it registers
    no address space.

    Source: open-gpu-kernel-modules, kernel-open/nvidia-uvm/uvm_va_space_mm.c. Some versions do without, and return
    WARN_NOTHING_TO_DO or do not know the call. A refusal is reported if UvmRegisterVaSpace fails, and the next GPU
    tries again. Raises Refused if the file cannot be opened.
    """
    if self.memory is not None: return
    request = self.structures.UvmMmInitialize(uvmFd=self.uvm.fileno())
    with contextlib.ExitStack() as undo:
      node = Node(self.box, UVM, ADVICE)
      undo.callback(node.close)
      try:
        node.ioctl(request)
        if request.rmStatus != Status.WARN_NOTHING_TO_DO: check(type(request).__name__, request.rmStatus)
      except Refused as refused:
        self.not_held = refused
        return
      self.memory, self.not_held = node, None
      self.undo.push(undo.pop_all())

  # **** calls ****

  def call(self, argument: Any, node: Node | None = None) -> Any:
    """Make a call of the control node (or of a GPU's). Raises Refused."""
    (node or self.node).ioctl(argument)
    check(type(argument).__name__, argument.status)
    return argument

  def call_uvm(self, argument: Any) -> None:
    """Make a call of unified memory. Raises Refused."""
    self.uvm.ioctl(argument)
    if argument.rmStatus == Status.PAGE_TABLE_NOT_AVAIL and self.not_held is not None: raise self.not_held
    check(type(argument).__name__, argument.rmStatus)

  def name(self) -> int:
    """Return a handle for an object that the caller names."""
    return next(self._names)

  def new(self, parent: int, kind: int, parameters: ctypes.Structure | None, answer: bool = False) -> int:
    """Make an object of a class. answer: whether RM's results in the parameters are wanted. Raises Refused."""
    buffer = (ctypes.c_char * PARAMETER_BYTES)()
    size = 0 if parameters is None else ctypes.sizeof(parameters)
    if parameters is not None: ctypes.memmove(buffer, ctypes.addressof(parameters), size)
    request = self.structures.RmAlloc(hRoot=self.root if parent else 0, hObjectParent=parent, hObjectNew=0, hClass=kind,
                                      paramsSize=size,
                                      pAllocParms=ctypes.addressof(buffer) if parameters is not None else 0)
    what = f"making {CLASS_NAMES.get(kind, f'an object of class {kind:#x}')}"
    self.node.ioctl(request, what)
    check(what, request.status)
    if answer and parameters is not None: ctypes.memmove(ctypes.addressof(parameters), buffer, size)
    return int(request.hObjectNew)

  def control(self, item: int, parameters: Any) -> Any:
    """Send a command to an object. The number of the structure is the command. Return the structure with RM's results.

    Raises Refused.
    """
    size = ctypes.sizeof(parameters)   # an empty structure has no address
    request = self.structures.RmControl(hClient=self.root, hObject=item, cmd=parameters.NUMBER, paramsSize=size,
                                        params=ctypes.addressof(parameters) if size else 0)
    self.node.ioctl(request, type(parameters).__name__)
    check(type(parameters).__name__, request.status)
    return parameters

  def free(self, item: int) -> None:
    """End an object and all below it."""
    self.call(self.structures.RmFree(hRoot=self.root, hObjectOld=item))

  def open_card(self, minor: int) -> Node:
    """Open a GPU's node, bound to this client. A mapping requires a node of its own."""
    node = Node(self.box, f"/dev/nvidia{minor}", ADVICE)
    try: node.ioctl(self.structures.RegisterFd(ctl_fd=self.node.fileno()))
    except BaseException:
      node.close()
      raise
    return node

  def open_control(self) -> Node:
    """Open another control node, for a mapping of host memory."""
    return Node(self.box, CONTROL, ADVICE)

  def list_cards(self) -> list[Any]:
    """Return CardInfo of the GPUs that this process uses, by number.

    Raises DeviceError if CUDA_VISIBLE_DEVICES names others.
    """
    return visible(self.box, self.run_cards())

  def find_card(self, ordinal: int) -> Any:
    """Return CardInfo of GPU number `ordinal`. Raises DeviceError if there is none."""
    running = self.run_cards()
    found = visible(self.box, running)
    if ordinal >= len(found): raise missing(self.box, running, ordinal)
    return found[ordinal]

  def run_cards(self) -> list[Any]:
    """Return CardInfo of all GPUs of the kernel driver, including those given to others."""
    found = (self.structures.CardInfo * MOST_CARDS)()
    request: Any = type(found)
    request.REQUEST = 3 << 30 | ctypes.sizeof(found) << 16 | ord("F") << 8 | self.structures.CardInfo.NUMBER
    self.node.ioctl(found, self.structures.CardInfo.__name__)
    return [card for card in found if card.valid]

  # **** the end ****

  def close_card(self, card: Any) -> None:
    """Close a GPU of this process that no device uses."""
    card.forget()
    self.unreturned.offer_again()
    del self.cards[card.gpu_id]
    card.close()

  def close(self) -> None:
    """End the client, and all its objects. A second call does nothing."""
    for card in self.cards.values(): card.forget()  # mappings of other cards' memory end before the cards do
    self.unreturned.offer_again()
    for card in self.cards.values(): card.close()
    self.cards.clear()
    self.undo.close()
    if self.addresses is not None: self.addresses.close()

_connections: dict[tuple[int, int], RmClient] = {}

def connect(box: HostFiles) -> RmClient:
  """Return the connection of this process, made at the first call. The child of a fork makes its own."""
  key = os.getpid(), id(box)
  found = _connections.get(key)
  if found is None: found = _connections[key] = RmClient(box)  # it holds the box, so the id stays unique
  return found

def forget(box: HostFiles) -> None:
  """Close the connection, for tests that make computers of their own."""
  found = _connections.pop((os.getpid(), id(box)), None)
  if found is not None: found.close()
