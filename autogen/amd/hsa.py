"""The structures of AQL queues that AMD's command processor reads: packets, the queue's descriptor, signals, and the
descriptor of a kernel.

Source: ROCm, hsa.h and amd_hsa_{queue,signal,kernel_code}.h; LLVM, docs/AMDGPUUsage.rst ("Kernel Descriptor"); written
by hand. test/autogen/amd/test_hsa.py compares offsets with those of a C compiler in test/golden/amd_hsa.txt.
"""
from __future__ import annotations
from ctypes import Structure, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from typing import Any

from tinyhw.autogen.fields import Word

_TYPES = {"u8": c_uint8, "u16": c_uint16, "u32": c_uint32, "u64": c_uint64, "i64": c_int64}

def _fields(text: str) -> list[tuple[str, Any]]:
  """Return "u32 a u8[20] b" as ctypes fields."""
  words, found = text.split(), []
  for kind, name in zip(words[::2], words[1::2]):
    element, _, count = kind.partition("[")
    found.append((name, _TYPES[element] * int(count[:-1]) if count else _TYPES[element]))
  return found

# **** packets, 64 bytes each ****

PACKET_BYTES = 64
HEADER = Word("AQL header", "type:0-7 barrier:8 acquire_fence_scope:9-10 release_fence_scope:11-12")  # 16 bits
PACKET_TYPE_VENDOR_SPECIFIC, PACKET_TYPE_INVALID, PACKET_TYPE_KERNEL_DISPATCH, PACKET_TYPE_BARRIER_AND = range(4)
PACKET_TYPE_AGENT_DISPATCH, PACKET_TYPE_BARRIER_OR = 4, 5
FENCE_SCOPE_NONE, FENCE_SCOPE_AGENT, FENCE_SCOPE_SYSTEM = range(3)

class KernelDispatchPacket(Structure):
  """hsa_kernel_dispatch_packet_t. grid_size counts work-items; kernel_object: the address of a KernelDescriptor; setup:
  the count of dimensions."""
  _fields_ = _fields("""u16 header u16 setup u16 workgroup_size_x u16 workgroup_size_y u16 workgroup_size_z u16 reserved0
    u32 grid_size_x u32 grid_size_y u32 grid_size_z u32 private_segment_size u32 group_segment_size u64 kernel_object u64 kernarg_address
    u64 reserved2 u64 completion_signal""")

class BarrierAndPacket(Structure):
  """hsa_barrier_and_packet_t."""
  _fields_ = _fields("u16 header u16 reserved0 u32 reserved1 u64[5] dep_signal u64 reserved2 u64 completion_signal")

class Pm4IndirectPacket(Structure):
  """A vendor packet with an INDIRECT_BUFFER packet of PM4, which runs PM4 in an AQL queue. remaining: PM4_REMAINING."""
  _fields_ = _fields("u16 header u16 format u32[4] indirect_buffer u32 remaining u32[8] reserved u64 completion_signal")

FORMAT_PM4_IB, PM4_REMAINING = 1, 10

# **** the queue's descriptor and signals ****

class Queue(Structure):
  """amd_queue_t, with the fields of hsa_queue_t. The command processor derives its address from that of
  read_dispatch_id."""
  _fields_ = _fields("""u32 type u32 features u64 base_address u64 doorbell_signal u32 size u32 reserved0 u64 id
    u32 caps u32[3] reserved1 u64 write_dispatch_id u32 group_segment_aperture_base_hi u32 private_segment_aperture_base_hi
    u32 max_cu_id u32 max_wave_id u64 max_legacy_doorbell_dispatch_id_plus_1 u32 legacy_doorbell_lock u32[9] reserved2
    u64 read_dispatch_id u32 read_dispatch_id_field_base_byte_offset u32 compute_tmpring_size u32[4] scratch_resource_descriptor
    u64 scratch_backing_memory_location u64 reserved3 u32 scratch_wave64_lane_byte_size u32 queue_properties u64 reserved4
    u64 queue_inactive_signal u32[14] reserved5""")

QUEUE_PROPERTIES = Word("amd_queue_properties", "enable_trap_handler:0 is_ptr64:1 enable_trap_handler_debug_sgprs:2 "
                        "enable_profiling:3 "
                        "use_scratch_once:4")

class Signal(Structure):
  """amd_signal_t.

  The command processor writes start_ts and end_ts of a completion signal if the queue has enable_profiling.
  """
  _fields_ = _fields("i64 kind i64 value u64 event_mailbox_ptr u32 event_id u32 reserved1 u64 start_ts u64 end_ts u64 "
                     "queue_ptr u64 reserved3")

SIGNAL_KIND_INVALID, SIGNAL_KIND_USER = 0, 1

# **** the kernel's descriptor ****

class KernelDescriptor(Structure):
  """The descriptor of a kernel: 64 bytes, at a multiple of 64.

  kernel_code_entry_byte_offset: the distance from the descriptor to the code, which begins at a multiple of 256.
  """
  _fields_ = _fields("""u32 group_segment_fixed_size u32 private_segment_fixed_size u32 kernarg_size u32 reserved0
    i64 kernel_code_entry_byte_offset u8[20] reserved1 u32 compute_pgm_rsrc3 u32 compute_pgm_rsrc1 u32 compute_pgm_rsrc2
    u16 kernel_code_properties u16 kernarg_preload u32 reserved3""")

KERNEL_CODE_PROPERTIES = Word("kernel code properties", """enable_sgpr_private_segment_buffer:0 enable_sgpr_dispatch_ptr:1 enable_sgpr_queue_ptr:2
  enable_sgpr_kernarg_segment_ptr:3 enable_sgpr_dispatch_id:4 enable_sgpr_flat_scratch_init:5 enable_sgpr_private_segment_size:6
  enable_wavefront_size32:10 uses_dynamic_stack:11""")
KERNARG_PRELOAD = Word("kernarg preload", "length:0-6 offset:7-15")
