"""PM4: the packets that AMD's command processor reads, for compute. Notation: autogen/fields.py; @9 is GFX9, @10 are
GFX10 and later.

Source: Linux, drivers/gpu/drm/amd/amdgpu/nvd.h and soc15d.h, and the packets' field lists of ROCm's libhsakmt and
tinygrad's autogen; written as rows by hand. test/autogen/amd/test_pm4.py compares them with test/golden/amd_pm4.txt.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.autogen.fields import Layout, Table, lines, of_generation

TYPE3 = 3
# addresses that SET_SH_REG reaches; its reg_offset counts from the first
SET_SH_REG_START, SET_SH_REG_END = 0x2C00, 0x3000
SET_UCONFIG_REG_START, SET_UCONFIG_REG_END = 0xC000, 0x10000
MOST_WORDS = 0x3FFF                                         # after a header
NOP_WORD = 0xFFFF_1000                                      # a NOP whose count means that it has no body

ROWS = """
# name             opcode  body
NOP                0x10    data*
DISPATCH_DIRECT    0x15    dim_x | dim_y | dim_z | dispatch_initiator
DISPATCH_INDIRECT  0x16    addr:0-63 | dispatch_initiator
ATOMIC_MEM         0x1e    atomic:0-6 command:8-11 cache_policy:25-26 | addr:0-63 | src_data:0-63 | cmp_data:0-63 | loop_interval:0-12
PRED_EXEC@9        0x23    exec_count:0-13 virtual_xcc_id_select:24-31
WRITE_DATA         0x37    dst_sel:8-11 addr_incr:16 wr_confirm:20 cache_policy:25-26 | dst_addr:0-63 | data*
WAIT_REG_MEM       0x3c    function:0-2 mem_space:4-5 operation:6-7 cache_policy:25-26
                         | addr:0-63 | reference | mask | poll_interval:0-15 optimize_ace_offload_mode:31
WAIT_REG_MEM64@10  0x93    function:0-2 mem_space:4-5 operation:6-7 cache_policy:25-26
                         | addr:0-63 | reference:0-63 | mask:0-63 | poll_interval:0-15 optimize_ace_offload_mode:31
INDIRECT_BUFFER    0x3f    ib_base:0-63 | ib_size:0-19 chain:20 offload_polling:21 valid:23 vmid:24-27 cache_policy:28-29 priv:31
COPY_DATA          0x40    src_sel:0-3 dst_sel:8-11 src_cache_policy:13-14 count_sel:16 wr_confirm:20 dst_cache_policy:25-26 pq_exe_status:29
                         | src:0-63 | dst:0-63
EVENT_WRITE        0x46    event_type:0-5 event_index:8-11
RELEASE_MEM@9      0x49    event_type:0-5 event_index:8-11 tcl1_vol_action_en:12 tc_vol_action_en:13 tc_wb_action_en:15 tcl1_action_en:16
                           tc_action_en:17 tc_nc_action_en:19 tc_md_action_en:21 exec:28
                         | dst_sel:16-17 int_sel:24-26 data_sel:29-31 | addr:0-63 | data:0-63 | int_ctxid
RELEASE_MEM@10     0x49    event_type:0-5 event_index:8-11 glm_wb:12 glm_inv:13 glv_inv:14 gl1_inv:15 gl2_us:16 gl2_range:17-18 gl2_discard:19
                           gl2_inv:20 gl2_wb:21 seq:22 cache_policy:25-26 execute:28
                         | dst_sel:16-17 int_sel:24-26 data_sel:29-31 | addr:0-63 | data:0-63 | int_ctxid
ACQUIRE_MEM@9      0x58    tc_nc_action_ena:3 tc_wc_action_ena:4 tc_inv_metadata_action_ena:5 tcl1_vol_action_ena:15 tc_wb_action_ena:18
                           tcl1_action_ena:22 tc_action_ena:23 cb_action_ena:25 db_action_ena:26 sh_kcache_action_ena:27
                           sh_kcache_vol_action_ena:28 sh_icache_action_ena:29 sh_kcache_wb_action_ena:30
                         | coher_size:0-39 | coher_base:0-55 | poll_interval:0-15
ACQUIRE_MEM@10     0x58    coher_cntl | coher_size:0-39 | coher_base:0-55 | poll_interval:0-15
                         | gli_inv:0-1 gl1_range:2-3 glm_wb:4 glm_inv:5 glk_wb:6 glk_inv:7 glv_inv:8 gl1_inv:9 gl2_us:10 gl2_range:11-12
                           gl2_discard:13 gl2_inv:14 gl2_wb:15 seq:16-17 range_is_pa:18
SET_SH_REG         0x76    reg_offset:0-15 vmid_shift:23-27 index:28-31 | values*
SET_UCONFIG_REG    0x79    reg_offset:0-15 | values*
"""

class Packet(Layout):
  """A type-3 packet. Calling it returns its words, header first: PRED_EXEC(exec_count=4, ...)."""
  def __init__(self, name: str, opcode: int, text: str, generation: int):
    super().__init__(name, text, generation)
    self.opcode = opcode

  def __call__(self, **values: Any) -> list[int]:
    body = self.encode(values)
    return [header(self.opcode, len(body)), *body]

def header(opcode: int, body_words: int) -> int:
  """Return the first word of a packet. body_words: the count of words that follow; 0 only for NOP."""
  if body_words > MOST_WORDS:
    raise ValueError(f"a packet has at most {MOST_WORDS} words after its header, not {body_words}")
  return TYPE3 << 30 | (body_words - 1 & 0x3FFF) << 16 | opcode << 8

class Packets(Table):
  """The packets of a generation (9, or 10 for all later ones), as attributes, and by opcode."""
  def __init__(self, generation: int):
    kept = [(name, text) for tagged, text in lines(ROWS) if (name := of_generation(tagged, generation)) is not None]
    super().__init__(Packet(name, int(text.split()[0], 16), text.split(None, 1)[1], generation) for name, text in kept)
    self.opcodes: dict[int, Packet] = {packet.opcode: packet for packet in self.rows.values()}

  def read(self, words: Sequence[int], place: int = 0) -> tuple[Packet, dict[str, Any], int]:
    """Return the packet at a position: its row, its fields, and its count of words.

    Raises ValueError if there is none.
    """
    first = words[place]
    if first >> 30 != TYPE3: raise ValueError(f"{first:#010x} is no header of a type-3 packet")
    packet = self.opcodes.get(first >> 8 & 0xFF)
    if packet is None: raise ValueError(f"{first:#010x}: no packet has the opcode {first >> 8 & 0xFF:#x}")
    if first & 0xFF: raise ValueError(f"{first:#010x}: a predicate, or another bit that {packet.name} has not")
    count = ((first >> 16) + 1 & 0x3FFF) + 1
    if len(words) - place < count:
      raise ValueError(f"{packet.name} has {count} words, and {len(words) - place} are left")
    return packet, packet.decode(words[place + 1:place + count]), count

GFX9, GFX10 = Packets(9), Packets(10)

# **** values of fields ****

# EVENT_WRITE and RELEASE_MEM: event_type, event_index
CS_PARTIAL_FLUSH, CACHE_FLUSH_AND_INV_TS_EVENT = 0x07, 0x14
EVENT_INDEX_PARTIAL_FLUSH, EVENT_INDEX_END_OF_PIPE, EVENT_INDEX_SHADER_DONE = 4, 5, 6
# WAIT_REG_MEM: function, mem_space, operation
ALWAYS, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, GREATER_EQUAL, GREATER = range(7)
MEM_SPACE_REGISTER, MEM_SPACE_MEMORY = 0, 1
# WRITE_WAIT: writes register addr[31:0], waits for addr[63:32]
OPERATION_WAIT, OPERATION_WRITE_WAIT, OPERATION_WAIT_PREEMPTABLE = 0, 1, 3
# RELEASE_MEM: dst_sel, int_sel, data_sel
DST_MEMORY, DST_L2 = 0, 1
INT_NONE, INT_ONLY, INT_WRITE_CONFIRM = 0, 1, 2
DATA_NONE, DATA_32, DATA_64, DATA_GPU_CLOCK, DATA_SYSTEM_CLOCK = range(5)
# WRITE_DATA: dst_sel; COPY_DATA: src_sel and dst_sel
WRITE_REGISTER, WRITE_L2, WRITE_MEMORY = 0, 2, 5
COPY_REGISTER, COPY_MEMORY, COPY_L2, COPY_PERFCOUNTERS, COPY_IMMEDIATE, COPY_ATOMIC_RETURN, COPY_GPU_CLOCK = 0, 1, 2, 4, 5, 6, 9
COUNT_32, COUNT_64 = 0, 1
# ACQUIRE_MEM: all of memory, from coher_base 0; units of 256 bytes
COHER_SIZE_ALL = (1 << 40) - 1
