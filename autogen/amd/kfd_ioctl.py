"""The ioctls of /dev/kfd: a ctypes structure for each, with its number as REQUEST, and the constants of their fields.

Source: Linux, include/uapi/linux/kfd_ioctl.h, interface version 1.17, written by hand; without the calls of debuggers,
CRIU and AMD's own kernel. test/autogen/amd/test_kfd_ioctl.py compares sizes, offsets and numbers with those of a C
compiler in test/golden/amd_kfd.txt.

The kernel identifies a call by the low byte of its number. It reads as many bytes as the caller's structure has, and
fills the rest with zeros.
"""
from __future__ import annotations
from ctypes import Structure, Union, c_uint32, c_uint64, sizeof
from typing import Any

VERSION = (1, 17)
_TYPES = {"u32": c_uint32, "u64": c_uint64}
# directions of an ioctl's number, from the kernel's view of the caller
_WRITE, _READ = 1, 2

def _fields(text: str) -> list[tuple[str, Any]]:
  words = text.split()
  return [(name, _TYPES[kind]) for kind, name in zip(words[::2], words[1::2])]

def _call(name: str, direction: int, number: int, text: str) -> type[Structure]:
  """Return the structure of a call. REQUEST: the number for its size, KEY: the byte that identifies it."""
  made = type(name, (Structure,), {"_fields_": _fields(text), "__doc__": f"AMDKFD_IOC number {number:#04x}."})
  made.REQUEST = direction << 30 | sizeof(made) << 16 | ord("K") << 8 | number  # type: ignore[attr-defined]
  made.KEY = number  # type: ignore[attr-defined]
  return made

GetVersion = _call("GetVersion", _READ, 0x01, "u32 major_version u32 minor_version")
CreateQueue = _call("CreateQueue", _READ | _WRITE, 0x02, """
  u64 ring_base_address u64 write_pointer_address u64 read_pointer_address u64 doorbell_offset u32 ring_size u32 gpu_id u32 queue_type
  u32 queue_percentage u32 queue_priority u32 queue_id u64 eop_buffer_address u64 eop_buffer_size u64 ctx_save_restore_address
  u32 ctx_save_restore_size u32 ctl_stack_size u32 sdma_engine_id u32 pad""")
DestroyQueue = _call("DestroyQueue", _READ | _WRITE, 0x03, "u32 queue_id u32 pad")
SetMemoryPolicy = _call("SetMemoryPolicy", _WRITE, 0x04, """
  u64 alternate_aperture_base u64 alternate_aperture_size u32 gpu_id u32 default_policy u32 alternate_policy u32 pad""")
GetClockCounters = _call("GetClockCounters", _READ | _WRITE, 0x05, """
  u64 gpu_clock_counter u64 cpu_clock_counter u64 system_clock_counter u64 system_clock_freq u32 gpu_id u32 pad""")
UpdateQueue = _call("UpdateQueue", _WRITE, 0x07, "u64 ring_base_address u32 queue_id u32 ring_size u32 "
                    "queue_percentage u32 queue_priority")
CreateEvent = _call("CreateEvent", _READ | _WRITE, 0x08, """
  u64 event_page_offset u32 event_trigger_data u32 event_type u32 auto_reset u32 node_id u32 event_id u32 event_slot_index""")
DestroyEvent = _call("DestroyEvent", _WRITE, 0x09, "u32 event_id u32 pad")
SetEvent = _call("SetEvent", _WRITE, 0x0A, "u32 event_id u32 pad")
ResetEvent = _call("ResetEvent", _WRITE, 0x0B, "u32 event_id u32 pad")
WaitEvents = _call("WaitEvents", _READ | _WRITE, 0x0C, "u64 events_ptr u32 num_events u32 wait_for_all u32 timeout "
                   "u32 wait_result")
SetScratchBackingVa = _call("SetScratchBackingVa", _READ | _WRITE, 0x11, "u64 va_addr u32 gpu_id u32 pad")
SetTrapHandler = _call("SetTrapHandler", _WRITE, 0x13, "u64 tba_addr u64 tma_addr u32 gpu_id u32 pad")
GetProcessAperturesNew = _call("GetProcessAperturesNew", _READ | _WRITE, 0x14,
                               "u64 kfd_process_device_apertures_ptr u32 num_of_nodes u32 pad")
AcquireVm = _call("AcquireVm", _WRITE, 0x15, "u32 drm_fd u32 gpu_id")
AllocMemoryOfGpu = _call("AllocMemoryOfGpu", _READ | _WRITE, 0x16, "u64 va_addr u64 size u64 handle u64 mmap_offset "
                         "u32 gpu_id u32 flags")
FreeMemoryOfGpu = _call("FreeMemoryOfGpu", _WRITE, 0x17, "u64 handle")
MapMemoryToGpu = _call("MapMemoryToGpu", _READ | _WRITE, 0x18, "u64 handle u64 device_ids_array_ptr u32 n_devices u32 "
                       "n_success")
UnmapMemoryFromGpu = _call("UnmapMemoryFromGpu", _READ | _WRITE, 0x19, "u64 handle u64 device_ids_array_ptr u32 "
                           "n_devices u32 n_success")
SetCuMask = _call("SetCuMask", _WRITE, 0x1A, "u32 queue_id u32 num_cu_mask u64 cu_mask_ptr")
GetQueueWaveState = _call("GetQueueWaveState", _READ | _WRITE, 0x1B, """
  u64 ctl_stack_address u32 ctl_stack_used_size u32 save_area_used_size u32 queue_id u32 pad""")
GetDmabufInfo = _call("GetDmabufInfo", _READ | _WRITE, 0x1C, "u64 size u64 metadata_ptr u32 metadata_size u32 gpu_id "
                      "u32 flags u32 dmabuf_fd")
ImportDmabuf = _call("ImportDmabuf", _READ | _WRITE, 0x1D, "u64 va_addr u64 handle u32 gpu_id u32 dmabuf_fd")
SmiEvents = _call("SmiEvents", _READ | _WRITE, 0x1F, "u32 gpuid u32 anon_fd")
SetXnackMode = _call("SetXnackMode", _READ | _WRITE, 0x21, "u32 xnack_enabled")
GetAvailableMemory = _call("GetAvailableMemory", _READ | _WRITE, 0x23, "u64 available u32 gpu_id u32 pad")
ExportDmabuf = _call("ExportDmabuf", _READ | _WRITE, 0x24, "u64 handle u32 flags u32 dmabuf_fd")
RuntimeEnable = _call("RuntimeEnable", _READ | _WRITE, 0x25, "u64 r_debug u32 mode_mask u32 capabilities_mask")

# by their number's low byte
CALLS = {made.KEY: made for made in list(globals().values()) if isinstance(made, type) and hasattr(made, "KEY")}

# **** structures that calls point to ****

class ProcessDeviceApertures(Structure):
  """kfd_process_device_apertures."""
  _fields_ = _fields("u64 lds_base u64 lds_limit u64 scratch_base u64 scratch_limit u64 gpuvm_base u64 gpuvm_limit "
                     "u32 gpu_id u32 pad")

class MemoryExceptionFailure(Structure):
  """kfd_memory_exception_failure."""
  _fields_ = _fields("u32 NotPresent u32 ReadOnly u32 NoExecute u32 imprecise")

class MemoryException(Structure):
  """kfd_hsa_memory_exception_data. va: of the page."""
  _fields_ = [("failure", MemoryExceptionFailure), *_fields("u64 va u32 gpu_id u32 ErrorType")]

class HwException(Structure):
  """kfd_hsa_hw_exception_data."""
  _fields_ = _fields("u32 reset_type u32 reset_cause u32 memory_lost u32 gpu_id")

class SignalEvent(Structure):
  """kfd_hsa_signal_event_data."""
  _fields_ = _fields("u64 last_event_age")

class _EventUnion(Union):
  _fields_ = [("memory_exception_data", MemoryException), ("hw_exception_data", HwException),
              ("signal_event_data", SignalEvent)]

class EventData(Structure):
  """kfd_event_data: an event of WaitEvents, and its result."""
  _anonymous_ = ("data",)
  _fields_ = [("data", _EventUnion), *_fields("u64 kfd_event_data_ext u32 event_id u32 pad")]

class ContextSaveAreaHeader(Structure):
  """kfd_context_save_area_header, with the fields of wave_state: the first bytes of the save area of each XCC of a
  compute queue."""
  _fields_ = _fields("""u32 control_stack_offset u32 control_stack_size u32 wave_state_offset u32 wave_state_size
    u32 debug_offset u32 debug_size u64 err_payload_addr u32 err_event_id u32 reserved1""")

# **** constants ****

KFD_IOC_QUEUE_TYPE_COMPUTE, KFD_IOC_QUEUE_TYPE_SDMA, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, KFD_IOC_QUEUE_TYPE_SDMA_XGMI = range(4)
KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID = 4
KFD_MAX_QUEUE_PERCENTAGE, KFD_MAX_QUEUE_PRIORITY = 100, 15

KFD_IOC_EVENT_SIGNAL, KFD_IOC_EVENT_NODECHANGE, KFD_IOC_EVENT_DEVICESTATECHANGE, KFD_IOC_EVENT_HW_EXCEPTION = range(4)
KFD_IOC_EVENT_SYSTEM_EVENT, KFD_IOC_EVENT_DEBUG_EVENT, KFD_IOC_EVENT_PROFILE_EVENT, KFD_IOC_EVENT_QUEUE_EVENT, KFD_IOC_EVENT_MEMORY = range(4, 9)
KFD_IOC_WAIT_RESULT_COMPLETE, KFD_IOC_WAIT_RESULT_TIMEOUT, KFD_IOC_WAIT_RESULT_FAIL = range(3)
KFD_SIGNAL_EVENT_LIMIT = 4096
KFD_HW_EXCEPTION_WHOLE_GPU_RESET, KFD_HW_EXCEPTION_PER_ENGINE_RESET = 0, 1
KFD_HW_EXCEPTION_GPU_HANG, KFD_HW_EXCEPTION_ECC = 0, 1

KFD_IOC_ALLOC_MEM_FLAGS_VRAM = 1 << 0
KFD_IOC_ALLOC_MEM_FLAGS_GTT = 1 << 1
KFD_IOC_ALLOC_MEM_FLAGS_USERPTR = 1 << 2
KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL = 1 << 3
KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP = 1 << 4
KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS = 1 << 23
KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT = 1 << 24
KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED = 1 << 25
KFD_IOC_ALLOC_MEM_FLAGS_COHERENT = 1 << 26
KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM = 1 << 27
KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE = 1 << 28
KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC = 1 << 29
KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE = 1 << 30
KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE = 1 << 31

KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK, KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK = 1, 2
