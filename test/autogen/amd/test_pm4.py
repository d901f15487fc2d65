"""PM4 packets against the kernel's headers (test/golden/amd_pm4.txt), and the words of a few."""
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tinyhw.autogen.amd import pm4

GOLDEN = [line.split() for line in (Path(__file__).parents[2] / "golden/amd_pm4.txt").read_text().splitlines()
          if not line.startswith("#")]
TABLES = {9: pm4.GFX9, 10: pm4.GFX10}
# The headers' names for halves of an address or of data, and for a second meaning of a word -> our field and its first
# bit.
HALVES = {"ADDR_LO": "addr", "SRC_DATA_LO": "src_data", "CMP_DATA_LO": "cmp_data", "IB_BASE_LO": "ib_base",
          "COHER_BASE_LO": "coher_base",
          "DST_MEM_ADDR_LO": "dst_addr", "MEM_POLL_ADDR_LO": "addr", "SRC_32B_ADDR_LO": "src", "DST_32B_ADDR_LO": "dst"}
# of other chips or other engines
LATER = {"TEMPORAL", "SRC_TEMPORAL", "DST_TEMPORAL", "MODE", "AID_ID", "MES_INTR_PIPE", "MES_ACTION",
         "SAMP_PLST_CNTR_MODE", "OFFLOAD_ENABLE", "GCR_CNTL"}

def test_opcodes_and_fields_are_those_of_the_headers() -> None:
  compared = 0
  for generation, name, opcode, *fields in GOLDEN:
    table = TABLES[int(generation)]
    if not hasattr(table, name): continue
    packet = getattr(table, name)
    assert packet.opcode == int(opcode, 16)
    for text in fields:
      field, _, place = text.partition(":")
      low, high = (int(bit) for bit in place.split("-"))
      ours = field.lower().removeprefix("cp_coher_cntl_").removeprefix("eop_")
      if field in HALVES:
        assert packet.fields[HALVES[field]].low == 0 and packet.fields[HALVES[field]].high > 32, (name, field)
      elif ours in packet.fields and packet.fields[ours].high < 32:
        assert (packet.fields[ours].low, packet.fields[ours].high) == (low, high), (name, field)
      else:
        assert (field in LATER or field.endswith("_HI") or "ADDR" in field or "REG_OFFSET" in field or "DATA" in field
                or field == "COHER_SIZE"), (name,
                                            field)
        continue
      compared += 1
  assert compared > 60

# Words of the sources that autogen/amd/pm4.py names, packet by packet.
WORDS: list[tuple[list[int], list[int]]] = [
  (pm4.GFX10.DISPATCH_DIRECT(dim_x=3, dim_y=2, dim_z=1, dispatch_initiator=0x8005), [0xC0031500, 3, 2, 1, 0x8005]),
  (pm4.GFX10.SET_SH_REG(reg_offset=0x20C, values=[0x11, 0x22]), [0xC0027600, 0x20C, 0x11, 0x22]),
  (pm4.GFX10.RELEASE_MEM(event_type=0x14, event_index=5, gl2_wb=1, data_sel=2, int_sel=2, addr=0x7F0012345678, data=9,
                         int_ctxid=3),
   [0xC0064900, 0x200514, 0x42000000, 0x12345678, 0x7F00, 9, 0, 3]),
  (pm4.GFX9.RELEASE_MEM(event_type=0x14, event_index=5, tc_wb_action_en=1, tc_action_en=1, data_sel=3, addr=0x1000),
   [0xC0064900, 0x28514, 0x60000000, 0x1000, 0, 0, 0, 0]),
  (pm4.GFX10.ACQUIRE_MEM(coher_size=pm4.COHER_SIZE_ALL, glk_inv=1, glv_inv=1, gl1_inv=1, gl2_inv=1, gli_inv=1),
   [0xC0065800, 0, 0xFFFFFFFF, 0xFF, 0, 0, 0, 0x4381]),
  (pm4.GFX9.ACQUIRE_MEM(coher_size=pm4.COHER_SIZE_ALL, tc_action_ena=1, sh_icache_action_ena=1, poll_interval=10),
   [0xC0055800, 0x20800000, 0xFFFFFFFF, 0xFF, 0, 0, 10]),
  (pm4.GFX10.WAIT_REG_MEM(function=pm4.GREATER_EQUAL, mem_space=1, addr=0x100002000, reference=7, mask=0xFFFFFFFF,
                          poll_interval=4),
   [0xC0053C00, 0x15, 0x2000, 1, 7, 0xFFFFFFFF, 4]),
  (pm4.GFX10.INDIRECT_BUFFER(ib_base=0x100002000, ib_size=64, valid=1), [0xC0023F00, 0x2000, 1, 0x800040]),
  (pm4.GFX10.EVENT_WRITE(event_type=pm4.CS_PARTIAL_FLUSH, event_index=4), [0xC0004600, 0x407]),
  (pm4.GFX9.PRED_EXEC(exec_count=6, virtual_xcc_id_select=1), [0xC0002300, 0x01000006]),
  (pm4.GFX10.NOP(), [pm4.NOP_WORD]),
  (pm4.GFX10.NOP(data=[1, 2]), [0xC0011000, 1, 2]),
]

@pytest.mark.parametrize("made, words", WORDS)
def test_words_of_packets(made: list[int], words: list[int]) -> None:
  assert [f"{word:08x}" for word in made] == [f"{word:08x}" for word in words]

@pytest.mark.parametrize("generation", TABLES)
@given(data=st.data())
def test_read_inverts_the_making_of_a_packet(generation: int, data: st.DataObject) -> None:
  packet = data.draw(st.sampled_from(sorted(TABLES[generation].rows.values(), key=lambda packet: packet.name)))
  values: dict[str, Any] = {field.name: data.draw(st.integers(0, field.mask)) for field in packet.fields.values()}
  if packet.rest: values[packet.rest] = data.draw(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4))
  words = packet(**values)
  assert TABLES[generation].read([*words, 0xFFFFFFFF]) == (packet, values, len(words))

@pytest.mark.parametrize("words, reason", [([0], "no header"), ([0xC000FF00, 0], "no packet has the opcode 0xff"),
                                           ([0xC0001001, 0], "a predicate"),
                                           ([0xC0031500, 1], "has 5 words, and 2 are left"),
                                           ([0xC0041500, 1, 1, 1, 0, 0], "has 4 words, not 5"),
                                           ([0xC0004600, 0x10000407], "no field has its bits 0x10000000")])
def test_what_is_no_packet_is_refused(words: list[int], reason: str) -> None:
  with pytest.raises(ValueError, match=reason): pm4.GFX10.read(words)

def test_a_packet_has_no_more_words_than_its_header_counts() -> None:
  assert pm4.GFX10.NOP(data=[0] * 0x3FFF)[0] == 0xFFFE1000
  with pytest.raises(ValueError, match="at most 16383 words"): pm4.GFX10.NOP(data=[0] * 0x4000)

def test_pred_exec_is_of_gfx9_and_64_bit_waits_of_later_ones() -> None:
  assert not hasattr(pm4.GFX10, "PRED_EXEC") and not hasattr(pm4.GFX9, "WAIT_REG_MEM64")
