"""SDMA: the packets that AMD's copy engines read. Notation: autogen/fields.py; @4 is SDMA 4.4.2 (gfx942), @6 is 6.0
(gfx11), @7 is 7.0 (gfx12).

Source: Linux, drivers/gpu/drm/amd/amdgpu/vega10_sdma_pkt_open.h (4) and sdma_v6_0_0_pkt_open.h (6 and 7), sdma_v7_0.c
for the meaning of cpv; written as rows by hand. test/autogen/amd/test_sdma.py compares them with
test/golden/amd_sdma.txt.
"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any

from tinyhw.autogen.fields import Layout, Table, lines, of_generation

ROWS = """
# name                    words. The counts of COPY_LINEAR, CONSTANT_FILL (bytes) and WRITE_UNTILED (words) are one less than what is meant
NOP                  op:0-7=0 sub_op:8-15=0 count:16-29 | data*
COPY_LINEAR          op:0-7=1 sub_op:8-15=0 encrypt:16 tmz:18 cpv:19@6,7 backwards:25@6,7 broadcast:27 | count:0-21@4 count:0-29@6,7
                   | dst_sw:16-17 dst_cache_policy:18-20@6,7 src_sw:24-25 src_cache_policy:26-28@6,7 | src_addr:0-63 | dst_addr:0-63 | compression*@7
WRITE_UNTILED        op:0-7=2 sub_op:8-15=0 encrypt:16 tmz:18 cpv:28@6,7 | dst_addr:0-63 | count:0-19 sw:24-25 cache_policy:26-28@6,7 | data*
INDIRECT             op:0-7=4 sub_op:8-15=0 vmid:16-19 priv:31@6,7 | ib_base:0-63 | ib_size:0-19 | csa_addr:0-63
FENCE                op:0-7=5 sub_op:8-15=0 mtype:16-18@6,7 gcc:19@6,7 sys:20@6,7 snp:22@6,7 gpa:23@6,7 l2_policy:24-25@6,7 llc_policy:26@6,7
                     cpv:28@6,7 | addr:0-63 | data
TRAP                 op:0-7=6 sub_op:8-15=0 | int_context:0-27
POLL_REGMEM          op:0-7=8 sub_op:8-15=0 cache_policy:20-22@6,7 cpv:24@6,7 hdp_flush:26 func:28-30 mem_poll:31
                   | addr:0-63 | value | mask | interval:0-15 retry_count:16-27
COND_EXE             op:0-7=9 sub_op:8-15=0 cache_policy:24-26@6,7 cpv:28@6,7 | addr:0-63 | reference | exec_count:0-13
ATOMIC               op:0-7=10 loop:16 tmz:18 cache_policy:20-22@6,7 cpv:24@6,7 atomic_op:25-31
                   | addr:0-63 | src_data:0-63 | cmp_data:0-63 | loop_interval:0-12
CONSTANT_FILL        op:0-7=11 sub_op:8-15=0 sw:16-17 cache_policy:24-26@6,7 cpv:28@6,7 fillsize:30-31
                   | dst_addr:0-63 | data | count:0-21@4 count:0-29@6,7
TIMESTAMP_SET        op:0-7=13 sub_op:8-15=0 | init_data:0-63
TIMESTAMP_GET        op:0-7=13 sub_op:8-15=1 l2_policy:24-25@6,7 llc_policy:26@6,7 cpv:28@6,7 | write_addr:0-63
TIMESTAMP_GET_GLOBAL op:0-7=13 sub_op:8-15=2 l2_policy:24-25@6,7 llc_policy:26@6,7 cpv:28@6,7 | write_addr:0-63
SRBM_WRITE           op:0-7=14 sub_op:8-15=0 byte_en:28-31 | addr:0-17 apertureid:20-31@6,7 | data
PRE_EXE              op:0-7=15 sub_op:8-15=0 dev_sel:16-23 | exec_count:0-13
GCR_REQ@6,7          op:0-7=17 sub_op:8-15=0 | base_va_31_7:7-31 | base_va_47_32:0-15 gcr_control_15_0:16-31
                   | gcr_control_18_16:0-2 limit_va_31_7:7-31 | limit_va_47_32:0-15 vmid:24-27
"""

class Packet(Layout):
  """A packet. Calling it returns its words: FENCE(addr=..., data=1)."""
  def __init__(self, name: str, text: str, generation: int):
    super().__init__(name, text, generation)
    self.opcode = self.fields["op"].fixed, self.fields["sub_op"].fixed if "sub_op" in self.fields else None

  def __call__(self, **values: Any) -> list[int]: return self.encode(values)

  def size(self, words: Sequence[int], place: int = 0) -> int:
    """Return the count of words of the packet at a position."""
    if self.name == "NOP": return 1 + (words[place] >> 16 & 0x3FFF)
    if self.name == "WRITE_UNTILED":
      return self.words + (words[place + 3] & 0xFFFFF) + 1 if len(words) > place + 3 else self.words
    return self.words + (1 if self.rest == "compression" and words[place] >> 19 & 1 else 0)

class Packets(Table):
  """The packets of a generation (4, 6 or 7), as attributes, and by (op, sub_op)."""
  def __init__(self, generation: int):
    kept = [(name, text) for tagged, text in lines(ROWS) if (name := of_generation(tagged, generation)) is not None]
    super().__init__(Packet(name, text, generation) for name, text in kept)
    self.opcodes: dict[tuple[int | None, int | None], Packet] = {packet.opcode: packet for packet in self.rows.values()}

  def read(self, words: Sequence[int], place: int = 0) -> tuple[Packet, dict[str, Any], int]:
    """Return the packet at a position: its row, its fields, and its count of words.

    Raises ValueError if there is none.
    """
    op, sub_op = words[place] & 0xFF, words[place] >> 8 & 0xFF
    packet = self.opcodes.get((op, sub_op)) or self.opcodes.get((op, None))
    if packet is None: raise ValueError(f"{words[place]:#010x}: no packet has the opcode {op}, {sub_op}")
    count = packet.size(words, place)
    if len(words) - place < count:
      raise ValueError(f"{packet.name} has {count} words, and {len(words) - place} are left")
    return packet, packet.decode(words[place:place + count]), count

V4, V6, V7 = Packets(4), Packets(6), Packets(7)

ALWAYS, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, GREATER_EQUAL, GREATER = range(7)  # POLL_REGMEM: func
MTYPE_UC = 3                      # FENCE: mtype, uncached
FILL_BYTE, FILL_WORD = 0, 2       # CONSTANT_FILL: fillsize
RETRY_FOREVER = 0xFFF             # POLL_REGMEM: retry_count
INDIRECT_ALIGNMENT = 8            # the end of an INDIRECT packet is aligned to this count of words in the ring
