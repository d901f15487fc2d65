"""Structures of NVIDIA's kernel driver, for the known branches: calls of /dev/nvidiactl, parameters of objects and
controls, UVM's calls.

A row is a name, a number, and fields in C's order with C's alignment. A field is a u32 unless it has another type:
`pMemory:u64`, `data:u8[256]`, another row's name. `field@570-` exists from version 570 on, `field@-580` up to the last
of 580. `field@550.40.53-` begins within a branch. The number of a call is its own. That of a control is its command,
that of an object's parameters one of its classes. Parts of other structures have 0.

Sizes of calls, controls and UVM's structures must be exact. Parameters of objects must only be long enough: RM reads as
many bytes as it knows.

Source: NVIDIA/open-gpu-kernel-modules, all versions that are published there from 535.43.02 to 595.45.04: nvos.h,
nv-ioctl.h, class/*.h, ctrl/*.h, alloc/alloc_channel.h, uvm_ioctl.h, by hand. test/autogen/nvidia/test_rm.py compares
one or two versions of each branch (test/golden/nvidia_rm.txt), `generate --check` any.
"""
from __future__ import annotations
import ctypes
import functools
import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from tinyhw.autogen.fields import Table, lines

BRANCHES = (535, 545, 550, 555, 560, 565, 570, 575, 580, 590, 595)  # of the kernel driver; the structures are theirs

# calls of /dev/nvidiactl and /dev/nvidia<minor>
CALLS = """
RmAllocMemory        0x27  hRoot hObjectParent hObjectNew hClass flags pMemory:u64 limit:u64 status _ fd:i32
RmFree               0x29  hRoot hObjectParent hObjectOld status
RmControl            0x2a  hClient hObject cmd flags params:u64 paramsSize status
RmAlloc              0x2b  hRoot hObjectParent hObjectNew hClass pAllocParms:u64 pRightsRequested:u64 paramsSize flags status
RmDupObject          0x34  hClient hParent hObject hClientSrc hObjectSrc flags status
RmMapMemory          0x4e  hClient hDevice hMemory offset:u64 length:u64 pLinearAddress:u64 status flags fd:i32
RmUnmapMemory        0x4f  hClient hDevice hMemory pLinearAddress:u64 status flags
RmMapMemoryDma       0x57  hClient hDevice hDma hMemory offset:u64 length:u64 flags flags2@580- kindOverride@580- dmaOffset:u64 status
RmUnmapMemoryDma     0x58  hClient hDevice hDma hMemory flags dmaOffset:u64 size:u64@550- status
CardInfo             0xc8  valid:u8 domain bus:u8 slot:u8 function:u8 vendor_id:u16 device_id:u16 gpu_id interrupt_line:u16 reg_address:u64
                           reg_size:u64 fb_address:u64 fb_size:u64 minor_number dev_name:u8[10]
RegisterFd           0xc9  ctl_fd:i32
CheckVersion         0xd2  cmd reply versionString:u8[64]
SysParams            0xd6  memblock_size:u64
WaitOpenComplete     0xda  rc:i32@550- adapterStatus@550-
"""

# parameters of objects, by one of their classes
PARAMETERS = """
DeviceParams         0x80   deviceId hClientShare hTargetClient hTargetDevice flags vaSpaceSize:u64 vaStartInternal:u64 vaLimitInternal:u64 vaMode
SubdeviceParams      0x2080 subDeviceId
UsermodeParams       0xc661 bBar1Mapping:u8 bPriv:u8
VaSpaceParams        0x90f1 index flags vaSize:u64 vaStartInternal:u64 vaLimitInternal:u64 bigPageSize vaBase:u64 pasid@580-
ChannelGroupParams   0xa06c hObjectError hObjectEccError hVASpace engineType bIsCallingContextVgpuPlugin:u8
ContextShareParams   0x9067 hVASpace flags subctxId
MemoryParams         0x40   owner type flags width height pitch attr attr2 format comprCovg zcullCovg rangeLo:u64 rangeHi:u64 size:u64
                            alignment:u64 offset:u64 limit:u64 address:u64 ctagOffset hVASpace internalflags tag numaNode@545-
MemoryVirtualParams  0x70   offset:u64 limit:u64 hVASpace
MemoryDesc           0      base:u64 size:u64 addressSpace cacheAttrib
ChannelParams        0xc86f hObjectError hObjectBuffer gpFifoOffset:u64 gpFifoEntries flags hContextShare hVASpace hUserdMemory:u32[8]
                            userdOffset:u64[8] engineType cid subDeviceId hObjectEccError instanceMem:MemoryDesc userdMem:MemoryDesc
                            ramfcMem:MemoryDesc mthdbufMem:MemoryDesc hPhysChannelGroup internalFlags errorNotifierMem:MemoryDesc
                            eccErrorNotifierMem:MemoryDesc ProcessID SubProcessID encryptIv:u32[3] decryptIv:u32[3] hmacNonce:u32[8] tpcConfigID@570-
CopyParams           0xc8b5 version engineType
DebuggerParams       0x83de hDebuggerClient_Obsolete hAppClient hClass3dObject
"""

# controls, by their commands
CONTROLS = """
GetProbedIds         0x214      gpuIds:u32[32] excludedGpuIds:u32[32] gpuFlags:u32[32]@580-
GetIdInfo            0x205      gpuId gpuFlags deviceInstance subDeviceInstance sliStatus boardId gpuInstance numaId
GetClassList         0x800201   numClasses classList:u64
GetNameString        0x20800110 gpuNameStringFlags ascii:u8[64] _:u8[64]@-590
GetGidInfo           0x2080014a index flags length data:u8[256]
AcquireComputeModeReservation 0x20800145
GetTimeCorrelation   0x20800406 cpuClkId:u8 sampleCount:u8 samples:u64[32]
GrInfo               0          index data
GrRoute              0          flags route:u64
GrGetInfo            0x20801201 grInfoListSize grInfoList:u64 grRouteInfo:GrRoute
GrGetGpcMask         0x2080122a grRouteInfo:GrRoute gpcMask
GrGetTpcMask         0x2080122b grRouteInfo:GrRoute gpcId tpcMask
FbGetInfo            0x20801303 fbInfoListSize fbInfoList:GrInfo[54]@-535 fbInfoList:GrInfo[55]@545-555 fbInfoList:GrInfo[57]@560-575
                                fbInfoList:GrInfo[128]@580-
GetArchInfo          0x20801701 architecture implementation revision subRevision:u8
SmErrorState         0          hwwGlobalEsr hwwWarpEsr hwwWarpEsrPc hwwGlobalEsrReportMask hwwWarpEsrReportMask hwwEsrAddr:u64 hwwWarpEsrPc64:u64
                                hwwCgaEsr hwwCgaEsrReportMask
ReadSmErrorStates    0x83de030c hTargetChannel numSMsToRead smErrorStateArray:SmErrorState[100] mmuFaultInfo valid:u8 faultInfo startingSM
MmuFault             0          faultAddress:u64 faultType accessType
ReadMmuFaultInfo     0x83de0328 mmuFaultInfoList:MmuFault[4] count
GetMmuFaultInfo      0x906f0106 addrHi addrLo faultType faultString:u8[32] shaderProgramVA:u64[7]
GroupSchedule        0xa06c0101 bEnable:u8 bSkipSubmit:u8 bSkipEnable:u8@575-
GetWorkSubmitToken   0xc36f0108 workSubmitToken
"""

# calls of /dev/nvidia-uvm
UVM = """
UvmInitialize        0x30000001 flags:u64 rmStatus
UvmRegisterVaSpace   25  gpuUuid:u8[16] rmCtrlFd:i32 hClient hVaSpace rmStatus
UvmUnregisterVaSpace 26  gpuUuid:u8[16] rmStatus
UvmRegisterChannel   27  gpuUuid:u8[16] rmCtrlFd:i32 hClient hChannel base:u64 length:u64 rmStatus
UvmUnregisterChannel 28  gpuUuid:u8[16]@-580 hClient hChannel rmStatus
UvmEnablePeerAccess  29  gpuUuidA:u8[16] gpuUuidB:u8[16] rmStatus
UvmDisablePeerAccess 30  gpuUuidA:u8[16] gpuUuidB:u8[16] rmStatus
UvmMappingAttributes 0   gpuUuid:u8[16] gpuMappingType gpuCachingType gpuFormatType gpuElementBits gpuCompressionType
UvmMapExternal       33  base:u64 length:u64 offset:u64 perGpuAttributes:UvmMappingAttributes[32]@-550.40.07
                         perGpuAttributes:UvmMappingAttributes[256]@550.40.53- gpuAttributesCount:u64 rmCtrlFd:i32 hClient hMemory rmStatus
UvmFree              34  base:u64 length:u64@-580 rmStatus
UvmRegisterGpu       37  gpu_uuid:u8[16] numaEnabled:u8 numaNodeId:i32 rmCtrlFd:i32 hClient hSmcPartRef rmStatus
UvmUnregisterGpu     38  gpu_uuid:u8[16] rmStatus
UvmUnmapExternal     66  base:u64 length:u64 gpuUuid:u8[16] rmStatus
UvmValidateVaRange   72  base:u64 length:u64 rmStatus
UvmCreateExternal    73  base:u64 length:u64 rmStatus
UvmMmInitialize      75  uvmFd:i32 rmStatus
"""

# Flags of calls and parameters, the same in all versions: the prefix of their names, the first bit of their field, and
# the used values
FLAGS = """
NV_VASPACE_ALLOCATION_FLAGS_             0 IS_EXTERNALLY_OWNED=0x8 ENABLE_PAGE_FAULTING=0x40
NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ 0 ASYNC=1
NVOS02_FLAGS_PHYSICALITY_                4 NONCONTIGUOUS=1
NVOS02_FLAGS_COHERENCY_                 12 CACHED=1
NVOS02_FLAGS_MAPPING_                   30 NO_MAP=1
NVOS32_ALLOC_FLAGS_                      0 IGNORE_BANK_PLACEMENT=0x1 ALIGNMENT_FORCE=0x100
NVOS32_ATTR_PAGE_SIZE_                  23 4KB=1 HUGE=3
NVOS32_ATTR_LOCATION_                   25 PCI=1
NVOS32_ATTR_PHYSICALITY_                27 CONTIGUOUS=2 ALLOW_NONCONTIGUOUS=3
NVOS32_ATTR_COHERENCY_                  29 CACHED=1
NVOS32_ATTR2_ZBC_                        0 PREFER_NO_ZBC=1
NVOS32_ATTR2_GPU_CACHEABLE_              2 YES=1 NO=2
NVOS32_ATTR2_PAGE_SIZE_HUGE_            20 2MB=1
NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_ 0 BINARY=2
NV2080_CTRL_FB_INFO_INDEX_               0 TOTAL_RAM_SIZE=0x8 HEAP_FREE=0x16 L2CACHE_SIZE=0x1b
NV2080_ENGINE_TYPE_                      0 GRAPHICS=1 COPY0=0x9
NV_RM_API_VERSION_CMD_                   0 QUERY=0x32
UvmGpuMappingType                        0 ReadWriteAtomic=1
"""

_FIELD = re.compile(r"(?P<name>\w+)(:(?P<type>\w+)(\[(?P<count>\d+)\])?)?(@(?P<first>[\d.]*)-(?P<last>[\d.]*))?$")
_TYPES: dict[str, Any] = {"u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
                          "i32": ctypes.c_int32}

Version = tuple[int, ...]   # (550, 40, 7)

def version_of(text: str) -> Version:
  """Return (550, 40, 7) for 550.40.07, and () for ""."""
  return tuple(int(part) for part in text.split(".") if part)

def _fields(text: str, version: Version, known: dict[str, Any]) -> Iterator[tuple[str, Any]]:
  for number, item in enumerate(text.split()):
    found = _FIELD.match(item)
    assert found, f"{item} is no field"
    first, last = version_of(found["first"] or ""), version_of(found["last"] or "")
    if version < first or last and version[:len(last)] > last: continue
    kind = known[found["type"] or "u32"]
    yield (found["name"] if found["name"] != "_" else f"_{number}", kind * int(found["count"]) if found["count"]
           else kind)

class Structures(Table):
  """The structures of a version, as attributes: ctypes classes with NUMBER. Those of calls have the number of the call
  as REQUEST."""
  def __init__(self, version: Version):
    self.branch, known = version[0], dict(_TYPES)
    made: list[Any] = []
    for rows in (CALLS, PARAMETERS, CONTROLS, UVM):
      for name, text in lines(rows):
        number, _, fields = text.strip().partition(" ")
        kind: Any = type(name, (ctypes.Structure,),
                         {"_fields_": list(_fields(fields, version, known)), "NUMBER": int(number, 0), "name": name})
        if rows is CALLS: kind.REQUEST = 3 << 30 | ctypes.sizeof(kind) << 16 | ord("F") << 8 | kind.NUMBER
        if rows is UVM: kind.REQUEST = kind.NUMBER
        known[name] = kind
        made.append(kind)
    super().__init__(made)

@functools.cache
def structures(version: Version) -> Structures:
  """Return the structures of a version of the kernel driver: (580, 142).

  Raises ValueError for an unknown branch.
  """
  if version[0] not in BRANCHES:
    raise ValueError(f"structures of NVIDIA's kernel driver {version[0]} are not known; known are "
                     f"{', '.join(map(str, BRANCHES))}")
  return Structures(version)

@functools.cache
def _flags() -> dict[str, int]:
  found = dict[str, int]()
  for start, text in lines(FLAGS):
    bit, *values = text.split()
    for name, _, value in (item.partition("=") for item in values): found[start + name] = int(value, 0) << int(bit)
  return found

def flags(start: str, *ends: str) -> int:
  """Return the union of flags with a common prefix: flags("NVOS32_ATTR_", "PAGE_SIZE_HUGE", "LOCATION_PCI")."""
  found = 0
  for end in ends: found |= _flags()[start + end]
  return found

# Classes of objects
ROOT, DEVICE, SUBDEVICE, VA_SPACE, CHANNEL_GROUP, CONTEXT_SHARE, DEBUGGER = 0x41, 0x80, 0x2080, 0x90F1, 0xA06C, 0x9067, 0x83DE
MEMORY_SYSTEM, MEMORY_LOCAL, MEMORY_OF_PROGRAM = 0x3E, 0x40, 0x71
HOPPER_USERMODE = 0xC661

class Status(IntEnum):
  """The answers of calls (NV_STATUS) that this driver distinguishes."""
  OK = 0
  GPU_IS_LOST = 0x0F
  IN_USE = 0x17
  INSERT_DUPLICATE_NAME = 0x19
  INSUFFICIENT_RESOURCES = 0x1A
  INSUFFICIENT_PERMISSIONS = 0x1B
  INVALID_ADDRESS = 0x1E
  INVALID_ARGUMENT = 0x1F
  INVALID_CLASS = 0x22
  INVALID_CLIENT = 0x23
  INVALID_COMMAND = 0x24
  INVALID_DEVICE = 0x26
  INVALID_LIMIT = 0x2E
  INVALID_OBJECT_HANDLE = 0x33
  INVALID_OBJECT_PARENT = 0x36
  INVALID_PARAM_STRUCT = 0x3A
  INVALID_STATE = 0x40
  NO_FREE_FIFOS = 0x4F
  NO_MEMORY = 0x51
  NOT_READY = 0x55
  NOT_SUPPORTED = 0x56
  OBJECT_NOT_FOUND = 0x57
  PAGE_TABLE_NOT_AVAIL = 0x5D
  RESET_REQUIRED = 0x62
  STATE_IN_USE = 0x63
  TIMEOUT = 0x65
  UVM_ADDRESS_IN_USE = 0x68
  LIB_RM_VERSION_MISMATCH = 0x6A
  WARN_NOTHING_TO_DO = 0x10006
