"""Methods of NVIDIA's engines: the commands in a pushbuffer for the host engine (channels), the compute and the copy
engines, and their encoding.

Notation: autogen/fields.py, with a method's offset in bytes before its fields. NAME_{A,B} are consecutive methods.
Generations: 8 is Ampere and Ada (classes C56F, C6C0 to C9C0, C6B5 and C7B5), 9 Hopper (C86F, CBC0, C8B5), 10 Blackwell
(C96F, CDC0, C9B5).

Source: NVIDIA/open-gpu-doc, classes/{host,compute,dma-copy}/cl*.h; of C86F and C96F open-gpu-kernel-modules,
kernel-open/nvidia-uvm/clc86f.h and clc96f.h; merged into rows by hand, without methods that this repository does not
use. test/autogen/nvidia/test_methods.py compares them with test/golden/nvidia_methods.txt.
"""
from __future__ import annotations
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tinyhw.autogen.fields import Register, Table, Word, lines, members

GENERATIONS = (8, 9, 10)

HOST = """
SET_OBJECT              0x0    class_id:0-15 engine:16-20
MEM_OP_A                0x28   tlb_invalidate_sysmembar:11 tlb_invalidate_target_addr_lo:12-31
MEM_OP_B                0x2c   tlb_invalidate_target_addr_hi
MEM_OP_C                0x30   membar_type:0-2@8,9
MEM_OP_D                0x34   operation:27-31
SEM_ADDR_LO             0x5c   offset
SEM_ADDR_HI             0x60   offset:0-7@8 offset:0-24@9,10
SEM_PAYLOAD_{LO,HI}     0x64   payload
SEM_EXECUTE             0x6c   operation:0-2 acquire_switch_tsg:12 release_wfi:20 payload_size:24 release_timestamp:25
WFI                     0x78   scope:0
"""

COMPUTE = """
SET_OBJECT              0x0    class_id:0-15 engine_id:16-20
NO_OPERATION            0x100  v
WAIT_FOR_IDLE           0x110  v
LINE_LENGTH_IN          0x180  value
LINE_COUNT              0x184  value
OFFSET_OUT_UPPER        0x188  value:0-16@8 value:0-24@9,10
OFFSET_OUT              0x18c  value
LAUNCH_DMA              0x1b0  dst_memory_layout:0 reduction_enable:1 reduction_format:2-3 completion_type:4-5 sysmembar_disable:6
                               interrupt_type:8-9 semaphore_struct_size:12 reduction_op:13-15
LOAD_INLINE_DATA        0x1b4  v
INVALIDATE_SHADER_CACHES 0x21c instruction:0 locks:1 flush_data:2 data:4 constant:12
INVALIDATE_SKED_CACHES  0x298  v:0@8,9 force_ignore_veid:0@10
SET_SHADER_SHARED_MEMORY_WINDOW_A 0x2a0 base_address_upper:0-16
SET_SHADER_SHARED_MEMORY_WINDOW_B 0x2a4 base_address
SEND_PCAS_A             0x2b4  qmd_address_shifted8
SEND_SIGNALING_PCAS_B   0x2bc  invalidate:0 schedule:1
SEND_SIGNALING_PCAS2_B  0x2c0  pcas_action:0-3 select:8-13@9,10 offset_minus_one:14-23@9,10
SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A 0x2e4 size_upper:0-7
SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B 0x2e8 size_lower
SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C 0x2ec max_sm_count:0-8 max_plural_tpc_gpc_count:16-23@9,10 max_singleton_tpc_gpc_count:24-31@9,10
SET_SPA_VERSION         0x310  minor:0-7 major:8-15
SET_INLINE_QMD_ADDRESS_A 0x318 qmd_address_shifted8_upper@8 qmd_address_shifted8_upper:0-8@9,10 inline_size:30@9,10
SET_INLINE_QMD_ADDRESS_B 0x31c qmd_address_shifted8_lower
SET_SHADER_LOCAL_MEMORY_A 0x790 address_upper:0-16@8 address_upper:0-24@9,10
SET_SHADER_LOCAL_MEMORY_B 0x794 address_lower
SET_SHADER_LOCAL_MEMORY_WINDOW_A 0x7b0 base_address_upper:0-16
SET_SHADER_LOCAL_MEMORY_WINDOW_B 0x7b4 base_address
INVALIDATE_SHADER_CACHES_NO_WFI 0x1698 instruction:0 global_data:4 constant:12
"""

COPY = """
SET_SEMAPHORE_A         0x240  upper:0-16@8 upper:0-24@9,10
SET_SEMAPHORE_B         0x244  lower
SET_SEMAPHORE_PAYLOAD   0x248  payload
LAUNCH_DMA              0x300  data_transfer_type:0-1 flush_enable:2 semaphore_type:3-4 interrupt_type:5-6 src_memory_layout:7
                               dst_memory_layout:8 multi_line_enable:9 remap_enable:10 src_type:12 dst_type:13 flush_type:25 disable_plc:26
                               semaphore_payload_size:27@9,10
OFFSET_IN_UPPER         0x400  upper:0-16@8 upper:0-24@9,10
OFFSET_IN_LOWER         0x404  value
OFFSET_OUT_UPPER        0x408  upper:0-16@8 upper:0-24@9,10
OFFSET_OUT_LOWER        0x40c  value
PITCH_IN                0x410  value
PITCH_OUT               0x414  value
LINE_LENGTH_IN          0x418  value
LINE_COUNT              0x41c  value
SET_REMAP_CONST_{A,B}   0x700  v
SET_REMAP_COMPONENTS    0x708  dst_x:0-2 dst_y:4-6 dst_z:8-10 dst_w:12-14 component_size:16-17 num_src_components:20-21 num_dst_components:24-25
"""

# Values of fields
# SEM_EXECUTE operation; the last compares numbers that wrap
ACQUIRE, RELEASE, ACQUIRE_AT_LEAST = 0, 1, 3
MEMBAR, L2_FLUSH_DIRTY = 5, 16                                    # MEM_OP_D operation
SCHEDULE, INVALIDATE_COPY_SCHEDULE, PREFETCH_SCHEDULE = 2, 3, 9   # SEND_SIGNALING_PCAS2_B pcas_action
PITCH = 1                                                         # memory layouts
PIPELINED, NON_PIPELINED = 1, 2                                   # data_transfer_type
# semaphore_type: the payload; the payload and the time
ONE_WORD, FOUR_WORDS = 1, 2
CONST_A, NO_WRITE = 4, 6                                          # of SET_REMAP_COMPONENTS dst_*
COPY_SUBCHANNEL, COMPUTE_SUBCHANNEL = 4, 1

# Encodings of methods: a header, then data. INCREASE: of consecutive methods; IMMEDIATE: the data is in the header
HEADER = Word("HEADER", "method:0-11 subchannel:13-15 count:16-28 opcode:29-31")
INCREASE, SAME, IMMEDIATE, INCREASE_ONCE, END_SEGMENT = 1, 3, 4, 5, 7
MOST_DATA = 0x1FFF

# An entry of a GPFIFO: words of a pushbuffer
ENTRY = Word("ENTRY", "fetch:0 address:2-39 level:41 length:42-62 sync:63")
MOST_WORDS = (1 << 21) - 1

# USERD, a channel's page of pointers; and the usermode page, whose doorbell receives a channel's token
USERD_BYTES, USERD_GET, USERD_PUT = 512, 0x88, 0x8C
USERMODE_TIME, USERMODE_DOORBELL = 0x80, 0x90

class Methods(Table):
  """The methods of an engine, as attributes, and by offset."""
  def __init__(self, rows: str, generation: int):
    super().__init__(_methods(rows, generation))
    self.offsets: dict[int, Register] = {row.address: row for row in self.rows.values()}

def _methods(rows: str, generation: int) -> Iterator[Register]:
  for name, text in lines(rows):
    offset, _, fields = text.strip().partition(" ")
    for number, member in enumerate(members(name)):
      yield Register(member, int(offset, 16) + 4 * number, fields, generation)

class Engines(NamedTuple):
  """The methods of a generation."""
  host: Methods
  compute: Methods
  copy: Methods

@functools.cache
def engines(generation: int) -> Engines:
  """Return the methods of generation 8, 9 or 10."""
  if generation not in GENERATIONS:
    raise ValueError(f"there are no methods of generation {generation}; there are {GENERATIONS}")
  return Engines(*(Methods(rows, generation) for rows in (HOST, COMPUTE, COPY)))

class Call(NamedTuple):
  """A method with its data in a pushbuffer."""
  subchannel: int
  offset: int
  data: int

def decode(words: Sequence[int]) -> list[Call]:
  """Return the methods in a pushbuffer. Raises ValueError for words that are no encoding of methods, or are
  incomplete."""
  found: list[Call] = []
  at = 0
  while at < len(words):
    if words[at] == 0:  # an empty word
      at += 1
      continue
    header = HEADER.decode([words[at]])
    opcode, count, offset, subchannel = header["opcode"], header["count"], header["method"] * 4, header["subchannel"]
    at += 1
    if opcode == END_SEGMENT: break
    if opcode == IMMEDIATE:
      found.append(Call(subchannel, offset, count))
      continue
    if opcode not in (INCREASE, SAME, INCREASE_ONCE):
      raise ValueError(f"word {at - 1} is {words[at - 1]:#010x}, which is no header of methods")
    if at + count > len(words):
      raise ValueError(f"word {at - 1} is a header of {count} words, and {len(words) - at} follow")
    for i, data in enumerate(words[at:at + count]):
      step = {INCREASE: i, SAME: 0, INCREASE_ONCE: min(i, 1)}[opcode]
      found.append(Call(subchannel, offset + 4 * step, data))
    at += count
  return found
