"""Facts from headers of NVIDIA's open kernel modules, for autogen/generate.py, which compares one version with the
table rm.py.

A fact of a structure is its number, its size, or the position of a field: "hRoot@0:4", offset and bytes. Fields of
inner structures count as those of the outer one, arrays as one field. A field `_` of the table covers unused fields,
which are not compared.
"""
from __future__ import annotations
import contextlib
import ctypes
import re
from collections.abc import Iterator
from typing import Any

from tinyhw.autogen.c_reader import Header, HeaderError, Struct
from tinyhw.autogen.fields import lines
from tinyhw.autogen.nvidia import rm

_SDK, _UNIX, _OPEN = "src/common/sdk/nvidia/inc", "src/nvidia/arch/nvalloc/unix/include", "kernel-open"
_CLASSES = ("0000", "0080", "2080", "2080_notification", "83de", "90f1", "a06c", "9067", "0040", "003e", "0070", "0071",
            "c661", "c86f", "c8b5",
            "b0b5sw")
_CONTROLS = ("xxxx", "0000/ctrl0000base", "0000/ctrl0000gpu", "0080/ctrl0080gpu", "0080/ctrl0080gr", "2080/ctrl2080gpu",
             "2080/ctrl2080tmr",
             "2080/ctrl2080gr", "2080/ctrl2080fb", "2080/ctrl2080mc", "2080/ctrl2080perf", "83de/ctrl83dedebug", "906f",
             "a06f/ctrla06fgpfifo",
             "a06c", "c36f")
# in the order of their dependences; of several paths the first existing one
HEADERS = (
  *((name,) for name in (
    "src/common/inc/nvUnixVersion.h",
    *(f"{_SDK}/{name}.h" for name in ("nvstatuscodes", "nvlimits", "nvos", "alloc/alloc_channel")),
    *(f"{_UNIX}/{name}.h" for name in ("nv_escape", "nv-ioctl-numbers", "nv-ioctl", "nv-unix-nvos-params-wrappers")),
    *(f"{_SDK}/class/cl{name}.h" for name in _CLASSES), *(f"{_SDK}/ctrl/ctrl{name}.h" for name in _CONTROLS),
    f"{_OPEN}/common/inc/nvCpuUuid.h")),
  (f"{_OPEN}/common/inc/nv_uvm_user_types.h", f"{_OPEN}/nvidia-uvm/uvm_types.h"),
  *((f"{_OPEN}/nvidia-uvm/{name}.h",) for name in ("uvm_types", "uvm_ioctl", "uvm_linux_ioctl")),
)
# the declarations of nvtypes.h for 64-bit Linux
PRELUDE = "#define NV_LINUX 1\n#define BIT(b) (1U << (b))\n" + "".join(f"typedef {kind} {names};\n" for kind, names in (
  ("u8", "NvU8, NvBool"), ("u16", "NvU16"), ("u32", "NvU32, NvV32, NvHandle, NV_STATUS"), ("s32", "NvS32"),
  ("u64", "NvU64, NvP64, NvUPtr, NvLength"), ("s64", "NvS64")))
# Explicit alignments equal the natural ones of members on 64-bit Linux. Statuses are the arguments of a macro whose
# definition changes.
_REWRITTEN = ((re.compile(r"NV_DECLARE_ALIGNED\(([^,;]*),\s*\d+\)|NV_ALIGN_BYTES\(\d+\)"), r"\1"),
              (re.compile(r"^NV_STATUS_CODE\(\s*(\w+)\s*,\s*(\w+)\s*,.*$", re.M), r"#define \1 \2"))

# Our name, C's name of the structure, the macro of its number. For a control's structure and for UVM's, the macro
# follows from the structure's name.
NAMES = """
RmAllocMemory        nv_ioctl_nvos02_parameters_with_fd    NV_ESC_RM_ALLOC_MEMORY
RmFree               NVOS00_PARAMETERS                     NV_ESC_RM_FREE
RmControl            NVOS54_PARAMETERS                     NV_ESC_RM_CONTROL
RmAlloc              NVOS64_PARAMETERS                     NV_ESC_RM_ALLOC
RmDupObject          NVOS55_PARAMETERS                     NV_ESC_RM_DUP_OBJECT
RmMapMemory          nv_ioctl_nvos33_parameters_with_fd    NV_ESC_RM_MAP_MEMORY
RmUnmapMemory        NVOS34_PARAMETERS                     NV_ESC_RM_UNMAP_MEMORY
RmMapMemoryDma       NVOS46_PARAMETERS                     NV_ESC_RM_MAP_MEMORY_DMA
RmUnmapMemoryDma     NVOS47_PARAMETERS                     NV_ESC_RM_UNMAP_MEMORY_DMA
CardInfo             nv_ioctl_card_info_t                  NV_ESC_CARD_INFO
RegisterFd           nv_ioctl_register_fd_t                NV_ESC_REGISTER_FD
CheckVersion         nv_ioctl_rm_api_version_t             NV_ESC_CHECK_VERSION_STR
SysParams            nv_ioctl_sys_params_t                 NV_ESC_SYS_PARAMS
WaitOpenComplete     nv_ioctl_wait_open_complete_t         NV_ESC_WAIT_OPEN_COMPLETE
DeviceParams         NV0080_ALLOC_PARAMETERS               NV01_DEVICE_0
SubdeviceParams      NV2080_ALLOC_PARAMETERS               NV20_SUBDEVICE_0
UsermodeParams       NV_HOPPER_USERMODE_A_PARAMS           HOPPER_USERMODE_A
VaSpaceParams        NV_VASPACE_ALLOCATION_PARAMETERS      FERMI_VASPACE_A
ChannelGroupParams   NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS KEPLER_CHANNEL_GROUP_A
ContextShareParams   NV_CTXSHARE_ALLOCATION_PARAMETERS     FERMI_CONTEXT_SHARE_A
MemoryParams         NV_MEMORY_ALLOCATION_PARAMS           NV01_MEMORY_LOCAL_USER
MemoryVirtualParams  NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS   NV01_MEMORY_VIRTUAL
MemoryDesc           NV_MEMORY_DESC_PARAMS                 -
ChannelParams        NV_CHANNEL_ALLOC_PARAMS               HOPPER_CHANNEL_GPFIFO_A
CopyParams           NVB0B5_ALLOCATION_PARAMETERS          HOPPER_DMA_COPY_A
DebuggerParams       NV83DE_ALLOC_PARAMETERS               GT200_DEBUGGER
GetProbedIds         NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS
GetIdInfo            NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS
GetClassList         NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS
GetNameString        NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS
GetGidInfo           NV2080_CTRL_GPU_GET_GID_INFO_PARAMS
GetTimeCorrelation   NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS
GrInfo               NV2080_CTRL_GR_INFO                   -
GrRoute              NV2080_CTRL_GR_ROUTE_INFO             -
GrGetInfo            NV2080_CTRL_GR_GET_INFO_PARAMS
GrGetGpcMask         NV2080_CTRL_GR_GET_GPC_MASK_PARAMS
GrGetTpcMask         NV2080_CTRL_GR_GET_TPC_MASK_PARAMS
FbGetInfo            NV2080_CTRL_FB_GET_INFO_V2_PARAMS
GetArchInfo          NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS
SmErrorState         NV83DE_SM_ERROR_STATE_REGISTERS       -
ReadSmErrorStates    NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS
MmuFault             NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_ENTRY -
ReadMmuFaultInfo     NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS
GetMmuFaultInfo      NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS
GroupSchedule        NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS
GetWorkSubmitToken   NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS
UvmInitialize        UVM_INITIALIZE_PARAMS
UvmRegisterVaSpace   UVM_REGISTER_GPU_VASPACE_PARAMS
UvmUnregisterVaSpace UVM_UNREGISTER_GPU_VASPACE_PARAMS
UvmRegisterChannel   UVM_REGISTER_CHANNEL_PARAMS
UvmUnregisterChannel UVM_UNREGISTER_CHANNEL_PARAMS
UvmEnablePeerAccess  UVM_ENABLE_PEER_ACCESS_PARAMS
UvmDisablePeerAccess UVM_DISABLE_PEER_ACCESS_PARAMS
UvmMappingAttributes UvmGpuMappingAttributes               -
UvmMapExternal       UVM_MAP_EXTERNAL_ALLOCATION_PARAMS
UvmFree              UVM_FREE_PARAMS
UvmRegisterGpu       UVM_REGISTER_GPU_PARAMS
UvmUnregisterGpu     UVM_UNREGISTER_GPU_PARAMS
UvmUnmapExternal     UVM_UNMAP_EXTERNAL_PARAMS
UvmValidateVaRange   UVM_VALIDATE_VA_RANGE_PARAMS
UvmCreateExternal    UVM_CREATE_EXTERNAL_RANGE_PARAMS
UvmMmInitialize      UVM_MM_INITIALIZE_PARAMS
"""
CONSTANTS = {"ROOT": "NV01_ROOT_CLIENT", "DEVICE": "NV01_DEVICE_0", "SUBDEVICE": "NV20_SUBDEVICE_0",
             "VA_SPACE": "FERMI_VASPACE_A",
             "CHANNEL_GROUP": "KEPLER_CHANNEL_GROUP_A", "CONTEXT_SHARE": "FERMI_CONTEXT_SHARE_A",
             "DEBUGGER": "GT200_DEBUGGER",
             "MEMORY_SYSTEM": "NV01_MEMORY_SYSTEM", "MEMORY_LOCAL": "NV01_MEMORY_LOCAL_USER",
             "MEMORY_OF_PROGRAM": "NV01_MEMORY_SYSTEM_OS_DESCRIPTOR", "HOPPER_USERMODE": "HOPPER_USERMODE_A"}
Facts = dict[str, frozenset[str]]

def plain(text: str) -> str:
  """Convert a header's text for c_reader.py."""
  for pattern, instead in _REWRITTEN: text = pattern.sub(instead, text)
  return text

def rows() -> Iterator[tuple[str, str, str]]:
  """Yield our name, C's name of the structure, the macro of its number or ""."""
  for line in NAMES.strip().splitlines():
    name, struct, *macro = line.split()
    if macro: yield name, struct, macro[0].strip("-")
    elif struct.startswith("UVM_"): yield name, struct, struct.removesuffix("_PARAMS")
    else: yield name, struct, struct.removesuffix("_PARAMS").replace("_CTRL_", "_CTRL_CMD_", "_CTRL_CMD_" not in struct)

def version_of(header: Header) -> str:
  """Return the version of the kernel driver of the headers, "" if it is unknown."""
  found = header.macros.get("NV_VERSION_STRING")
  return found.tokens[0].strip('"') if found else ""

def compared(version: str) -> rm.Version:
  """Return the version of the table for a version of headers: the same, or the last earlier branch of the table."""
  found = rm.version_of(version) or (0,)
  return found if found[0] in rm.BRANCHES else (max((branch for branch in rm.BRANCHES if branch <= found[0]),
                                                    default=rm.BRANCHES[0]),)

def told(header: Header) -> Facts:
  """Return the facts of the headers."""
  found: Facts = {}
  for name, c_name, macro in rows():
    struct = header.structs.get(c_name) or header.types.get(c_name, (0, 0, None))[2]
    if struct is None: continue
    number = {f"number {header.value(macro):#x}"} if macro else set[str]()
    found[name] = frozenset({f"{struct.size} bytes", *number, *_places(struct)})
  for name, macro in _constants():
    with contextlib.suppress(HeaderError): found[name] = frozenset({f"{header.value(macro):#x}"})
  for name, _, start in _flags():
    with contextlib.suppress(HeaderError):
      found[name] = frozenset({f"{header.value(name) << _first_bit(header, start):#x}"})
  return found

def _flags() -> Iterator[tuple[str, int, str]]:
  """Yield name, value and prefix of all flags of the table."""
  for start, text in lines(rm.FLAGS):
    for item in text.split()[1:]: yield start + item.partition("=")[0], rm.flags(start, item.partition("=")[0]), start

def _first_bit(header: Header, start: str) -> int:
  """Return the first bit of a field that a macro defines as high:low; 0 if the values are flags themselves."""
  found = header.macros.get(start.rstrip("_"))
  words = [word for word in found.tokens if word not in "()"] if found else []
  return int(words[2]) if words[1:2] == [":"] else 0

def about(header: Header) -> str:
  """Return a line with the compared versions."""
  version = version_of(header)
  if not version: return "rm: the headers do not tell their version; the table's first is compared"
  own = rm.version_of(version) == compared(version)
  return f"rm: the headers are of version {version}" + ("" if own else f", which the table has not; its branch "
                                                        f"{compared(version)[0]} is compared")

def tree(header: Header, headers: Facts) -> Facts:
  """Return the table's facts for the headers' version.

  headers: their facts, since a structure that a version lacks is an empty one in the table.
  """
  structures, found = rm.structures(compared(version_of(header))), Facts()
  for name, _, macro in rows():
    kind = getattr(structures, name)
    if not ctypes.sizeof(kind) and name not in headers: continue
    unused = [(place, place + size) for field, place, size in _own(kind) if field.startswith("_")]
    number = {f"number {kind.NUMBER:#x}"} if macro else set[str]()
    own = {f"{field}@{place}:{size}" for field, place, size in _own(kind) if not field.startswith("_")}
    found[name] = frozenset({f"{ctypes.sizeof(kind)} bytes", *number, *own,
                             *_covered(headers.get(name, frozenset()), unused)})
  for name, _ in _constants():
    found[name] = frozenset({f"{int(rm.Status[name] if name in rm.Status.__members__ else getattr(rm, name)):#x}"})
  for name, value, _ in _flags(): found[name] = frozenset({f"{value:#x}"})
  return found

def _constants() -> Iterator[tuple[str, str]]:
  """Yield our name and the macro of classes and statuses."""
  yield from CONSTANTS.items()
  for status in rm.Status: yield status.name, f"NV_ERR_{status.name}" if status else "NV_OK"

def _places(struct: Struct) -> Iterator[str]:
  for member in struct.flat():
    *outer, name = member.name.split(".")
    # NvProcessorUuid is a structure of one field
    yield f"{outer[-1] if outer and name == 'uuid' else name}@{member.offset}:{member.size}"

def _own(kind: Any, start: int = 0) -> Iterator[tuple[str, int, int]]:
  """Yield name, offset and size of the fields of a ctypes structure."""
  for name, inner in kind._fields_:
    field = getattr(kind, name)
    if issubclass(inner, ctypes.Structure): yield from _own(inner, start + field.offset)
    else: yield name, start + field.offset, field.size

def _covered(facts: frozenset[str], unused: list[tuple[int, int]]) -> Iterator[str]:
  """Yield the facts of fields that overlap unused ones."""
  for fact in facts:
    match = re.fullmatch(r"\w+@(\d+):(\d+)", fact)
    if match is None: continue
    first, last = int(match[1]), int(match[1]) + int(match[2])
    if any(first < end and begin < last for begin, end in unused): yield fact
