"""The resource manager: refusals, and objects that end with their parents."""
import ctypes

import pytest

from tinyhw.autogen.nvidia import rm
from tinyhw.autogen.nvidia.rm import Status
from tinyhw.drivers.linux.files import Refused
from tinyhw.emulator.errors import PacketError
from tinyhw.emulator.nvidia.card.computer import GpuHost
from tinyhw.emulator.nvidia.card.gpu import ComputeMode
from tinyhw.emulator.nvidia.card.objects import EXTERNALLY_OWNED, Refusal

class Client:
  """A client that calls the objects directly."""
  def __init__(self, **arguments) -> None:
    self.computer = GpuHost("sm_90x2", ["sm_90", "sm_90"], **arguments)
    self.s, self.objects = self.computer.structures, self.computer.objects
    self.root = self.new(0, rm.ROOT)
    self.device = self.new(self.root, rm.DEVICE, self.s.DeviceParams())

  def new(self, parent: int, kind: int, parameters=None, handle: int = 0) -> int:
    self.kept = parameters
    request = self.s.RmAlloc(hRoot=self.root if parent else 0, hObjectParent=parent, hObjectNew=handle, hClass=kind,
                             pAllocParms=ctypes.addressof(parameters) if parameters is not None else 0)
    self.objects.alloc(request)
    return int(request.hObjectNew)

  def control(self, item: int, parameters, size: int = 0):
    self.objects.control(self.s.RmControl(hClient=self.root, hObject=item, cmd=parameters.NUMBER,
                                          params=ctypes.addressof(parameters),
                                          paramsSize=size or ctypes.sizeof(parameters)))
    return parameters

@pytest.fixture
def client() -> Client: return Client()

def refused(status: Status): return pytest.raises(Refusal, match=status.name)

def test_objects_have_their_place(client: Client) -> None:
  s = client.s
  with refused(Status.INVALID_OBJECT_PARENT): client.new(client.root, rm.SUBDEVICE, s.SubdeviceParams())
  with refused(Status.INVALID_OBJECT_PARENT): client.new(0xDEAD, rm.VA_SPACE, s.VaSpaceParams())
  with refused(Status.INVALID_CLASS): client.new(client.device, 0xC6C0)
  with refused(Status.INVALID_DEVICE): client.new(client.root, rm.DEVICE, s.DeviceParams(deviceId=2))
  with refused(Status.INVALID_PARAM_STRUCT): client.new(client.device, rm.VA_SPACE)
  with refused(Status.INSERT_DUPLICATE_NAME):
    client.new(client.device, rm.VA_SPACE, s.VaSpaceParams(), handle=client.device)
  subdevice = client.new(client.device, rm.SUBDEVICE, s.SubdeviceParams())
  with refused(Status.INSUFFICIENT_PERMISSIONS): client.new(subdevice, 0xC661, s.UsermodeParams(bPriv=1))
  assert client.new(subdevice, 0xC661), "without parameters it is the page among the registers"
  with refused(Status.INVALID_CLIENT): client.objects.control(s.RmControl(hClient=5))

def test_memory_has_limits(client: Client) -> None:
  s = client.s
  with refused(Status.NO_MEMORY): client.new(client.device, rm.MEMORY_LOCAL, s.MemoryParams(size=5 << 30))
  with refused(Status.INVALID_ARGUMENT): client.new(client.device, rm.MEMORY_LOCAL, s.MemoryParams(size=0))
  with refused(Status.INVALID_ARGUMENT): client.new(client.device, rm.MEMORY_SYSTEM, s.MemoryParams(size=4096))
  made = client.new(client.device, rm.MEMORY_LOCAL, s.MemoryParams(size=5000))
  assert client.computer.gpus[0].vram_used == 8192
  client.objects.free(s.RmFree(hRoot=client.root, hObjectOld=made))
  assert client.computer.gpus[0].vram_used == 0
  with refused(Status.INVALID_LIMIT):
    client.objects.pin(s.RmAllocMemory(hRoot=client.root, hObjectParent=client.device, hObjectNew=7,
                                       hClass=rm.MEMORY_OF_PROGRAM, pMemory=1))

def test_what_ends_takes_all_below_it_along(client: Client) -> None:
  s = client.s
  client.new(client.device, rm.SUBDEVICE, s.SubdeviceParams())
  client.new(client.device, rm.MEMORY_LOCAL, s.MemoryParams(size=4096))
  client.objects.free(s.RmFree(hRoot=client.root, hObjectOld=client.root))
  assert client.computer.census() == {}

def test_a_channel_is_checked(client: Client) -> None:
  s = client.s
  space = client.new(client.device, rm.VA_SPACE, s.VaSpaceParams())
  other = client.new(client.device, rm.VA_SPACE, s.VaSpaceParams())
  group = client.new(client.device, rm.CHANNEL_GROUP, s.ChannelGroupParams(hVASpace=space, engineType=1))
  with refused(Status.INVALID_ARGUMENT):
    client.new(client.device, rm.CHANNEL_GROUP, s.ChannelGroupParams(hVASpace=space, engineType=2))
  with refused(Status.INVALID_ARGUMENT): client.new(group, rm.CONTEXT_SHARE, s.ContextShareParams(hVASpace=other))
  memory = client.new(client.device, rm.MEMORY_LOCAL, s.MemoryParams(size=8192))
  def channel(**fields):
    made = s.ChannelParams(**{"gpFifoOffset": 1 << 30, "gpFifoEntries": 64, **fields})
    made.hUserdMemory[0], made.userdOffset[0] = memory, 512
    return made
  with refused(Status.INVALID_ARGUMENT): client.new(group, 0xC86F, channel(hVASpace=space))
  with refused(Status.INVALID_ARGUMENT): client.new(group, 0xC86F, channel(gpFifoEntries=63))
  with pytest.raises(PacketError, match="is not mapped in the channel's address space"):
    client.new(group, 0xC86F, channel())
  wrong = channel()
  wrong.userdOffset[0] = 100
  with refused(Status.INVALID_ARGUMENT): client.new(group, 0xC86F, wrong)

def test_unified_memory_knows_a_channel_before_it_is_scheduled(client: Client) -> None:
  """A channel has its token from the beginning. If the program manages the address space itself, nothing is checked."""
  s = client.s
  for flags, asked in ((EXTERNALLY_OWNED, True), (0, False)):
    space = client.new(client.device, rm.VA_SPACE, s.VaSpaceParams(flags=flags))
    group = client.new(client.device, rm.CHANNEL_GROUP, s.ChannelGroupParams(hVASpace=space, engineType=1))
    memory = client.new(client.device, rm.MEMORY_LOCAL, s.MemoryParams(size=8192))
    client.computer.strict = False  # a ring need not be mapped
    parameters = s.ChannelParams(gpFifoOffset=1 << 30, gpFifoEntries=64)
    parameters.hUserdMemory[0], parameters.userdOffset[0] = memory, 512
    channel = client.new(group, 0xC86F, parameters)
    assert client.control(channel, s.GetWorkSubmitToken()).workSubmitToken
    if asked:
      with refused(Status.INVALID_STATE): client.control(group, s.GroupSchedule(bEnable=1))
      client.objects.items[channel].registered = True
    client.control(group, s.GroupSchedule(bEnable=1))
    assert client.objects.items[group].running

def test_controls_have_exactly_their_size(client: Client) -> None:
  s = client.s
  found = client.control(client.device, s.GetClassList())
  assert found.numClasses == len(client.computer.gpus[0].chip.classes)
  with refused(Status.INVALID_ARGUMENT): client.control(client.device, s.GetClassList(), size=8)
  class Unknown(ctypes.Structure): NUMBER = 0x20801234
  with refused(Status.NOT_SUPPORTED): client.control(client.device, Unknown())

def test_controls_without_parameters_have_no_address(client: Client) -> None:
  subdevice = client.new(client.device, rm.SUBDEVICE, client.s.SubdeviceParams())
  with refused(Status.INVALID_ARGUMENT): client.control(subdevice, client.s.AcquireComputeModeReservation())
  with refused(Status.INVALID_ARGUMENT):
    client.objects.control(client.s.RmControl(hClient=client.root, hObject=subdevice, cmd=client.s.GetNameString.NUMBER,
                                              paramsSize=ctypes.sizeof(client.s.GetNameString)))

def test_one_client_computes_where_the_mode_lets_only_one(client: Client) -> None:
  """Until its subdevice ends."""
  s, (gpu, _) = client.s, client.computer.gpus
  subdevice = client.new(client.device, rm.SUBDEVICE, s.SubdeviceParams())
  def acquire(item: int = subdevice) -> None:
    client.objects.control(s.RmControl(hClient=client.root, hObject=item, cmd=s.AcquireComputeModeReservation.NUMBER))
  acquire()
  acquire()
  for mode in (ComputeMode.EXCLUSIVE_COMPUTE, ComputeMode.EXCLUSIVE_COMPUTE_PROCESS, ComputeMode.COMPUTE_PROHIBITED):
    gpu.mode = mode
    with refused(Status.STATE_IN_USE): acquire()
  with refused(Status.INVALID_OBJECT_HANDLE): acquire(client.device)
  client.objects.free(s.RmFree(hRoot=client.root, hObjectOld=subdevice))
  again = client.new(client.device, rm.SUBDEVICE, s.SubdeviceParams())
  with refused(Status.STATE_IN_USE): acquire(again)
  gpu.mode = ComputeMode.EXCLUSIVE_COMPUTE_PROCESS
  acquire(again)
  assert gpu.reserved is client.objects.items[client.root]

def test_names_of_the_program_are_none_that_the_manager_makes(opened, monkeypatch: pytest.MonkeyPatch) -> None:
  """It counts objects from 0xCAF00000. The caller that pins memory of the program names it."""
  computer, device = opened("sm_90")
  own = (ctypes.c_ubyte * 9000)()
  part = device.allocator.external(ctypes.addressof(own), 9000)
  assert (part.memory.handle < min(computer.objects.items) + 1 and device.card.device >= 0xCAF00000
          and device.card.connection.root == 0xC1D00000)
  monkeypatch.setattr(device.card.connection, "name", lambda: device.card.device)
  with pytest.raises(Refused, match="RmAllocMemory: .* insert duplicate name"):
    device.allocator.external(ctypes.addressof(own), 9000)
  del part
