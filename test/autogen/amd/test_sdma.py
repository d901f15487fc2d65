"""SDMA packets against the kernel's headers (test/golden/amd_sdma.txt), and the words of a few."""
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tinyhw.autogen.amd import sdma

GOLDEN = [line.split() for line in (Path(__file__).parents[2] / "golden/amd_sdma.txt").read_text().splitlines()
          if not line.startswith("#")]
TABLES = {4: sdma.V4, 6: sdma.V6, 7: sdma.V7}

def places(packet: sdma.Packet) -> set[tuple[int, int, int]]:
  """Return (word, low, high) of the fields. Fields of two words give two entries."""
  found = set()
  for field in packet.fields.values():
    found.add((field.word, field.low, min(field.high, 31)))
    if field.high >= 32: found.add((field.word + 1, 0, field.high - 32))
  return found

@pytest.mark.parametrize("generation, source", [(4, 4), (6, 6), (7, 6)])
def test_fields_are_those_of_the_headers(generation: int, source: int) -> None:
  compared = 0
  for number, name, *fields in GOLDEN:
    if number != str(source): continue
    packet = getattr(TABLES[generation], name)
    wanted = {(int(word), int(low), int(high)) for text in fields
              for word, low, high in [re.fullmatch(r"(\d+)\.\w+:(\d+)-(\d+)",
                                                   text).groups()]}  # type: ignore[union-attr]
    # an address, in steps of 8
    wanted = {(word, 0 if (low, high) == (3, 31) and "TIMESTAMP" in name else low, high) for word, low, high in wanted}
    if packet.rest == "data": wanted.discard((packet.words, 0, 31))
    assert places(packet) == wanted, name
    compared += 1
  assert compared >= 15

def test_opcodes_are_those_of_the_headers() -> None:
  wanted = {(int(words[1]), words[2]): int(words[3]) for words in GOLDEN if words[0] == "opcode"}
  named = {"COPY_LINEAR": "COPY", "WRITE_UNTILED": "WRITE", "CONSTANT_FILL": "CONST_FILL"}
  for generation in (4, 6):
    for packet in TABLES[generation].rows.values():
      name = "TIMESTAMP" if packet.name.startswith("TIMESTAMP") else named.get(packet.name, packet.name)
      assert packet.opcode[0] == wanted[generation, f"SDMA_OP_{name}"], packet.name
      if f"{generation} SDMA_SUBOP_{packet.name}" in {f"{g} {n}" for g, n in wanted}:
        assert packet.opcode[1] == wanted[generation, f"SDMA_SUBOP_{packet.name}"]

WORDS: list[tuple[list[int], list[int]]] = [
  (sdma.V6.COPY_LINEAR(count=4095, src_addr=0x100002000, dst_addr=0x200003000), [1, 4095, 0, 0x2000, 1, 0x3000, 2]),
  (sdma.V6.FENCE(mtype=sdma.MTYPE_UC, addr=0x7F0000001000, data=5), [0x30005, 0x1000, 0x7F00, 5]),
  (sdma.V4.FENCE(addr=0x7F0000001000, data=5), [5, 0x1000, 0x7F00, 5]),
  (sdma.V4.POLL_REGMEM(func=sdma.GREATER_EQUAL, mem_poll=1, addr=0x1000, value=9, mask=0xFFFFFFFF, interval=4,
                       retry_count=sdma.RETRY_FOREVER),
   [0xD0000008, 0x1000, 0, 9, 0xFFFFFFFF, 0x0FFF0004]),
  (sdma.V6.TIMESTAMP_GET_GLOBAL(write_addr=0x100000008), [0x20D, 8, 1]),
  (sdma.V6.TRAP(int_context=3), [6, 3]),
  (sdma.V6.CONSTANT_FILL(fillsize=sdma.FILL_WORD, dst_addr=0x1000, data=7, count=60), [0x8000000B, 0x1000, 0, 7, 60]),
  (sdma.V6.WRITE_UNTILED(dst_addr=0x1000, count=1, data=[1, 2]), [2, 0x1000, 0, 1, 1, 2]),
  (sdma.V6.NOP(), [0]),
]

@pytest.mark.parametrize("made, words", WORDS)
def test_words_of_packets(made: list[int], words: list[int]) -> None:
  assert [f"{word:08x}" for word in made] == [f"{word:08x}" for word in words]

@pytest.mark.parametrize("generation", TABLES)
@given(data=st.data())
def test_read_inverts_the_making_of_a_packet(generation: int, data: st.DataObject) -> None:
  packet = data.draw(st.sampled_from(sorted(TABLES[generation].rows.values(), key=lambda packet: packet.name)))
  values: dict[str, Any] = {name: data.draw(st.integers(0, packet.fields[name].mask)) for name in packet.names()
                            if name != packet.rest}
  if packet.rest:
    number = {"NOP": values.get("count", 0), "WRITE_UNTILED": values.get("count", 0) + 1,
              "COPY_LINEAR": values.get("cpv")}[packet.name] or 0
    if number > 8: values["count"], number = (number := number % 8 + 1) - (packet.name == "WRITE_UNTILED"), number
    values[packet.rest] = [7] * number
  words = packet(**values)
  assert TABLES[generation].read([*words, 0xFFFFFFFF]) == (packet, values, len(words))

def test_with_cpv_a_copy_of_generation_7_is_a_word_longer() -> None:
  copy = {"count": 3, "src_addr": 4096, "dst_addr": 8192}
  assert (sdma.V7.read(sdma.V7.COPY_LINEAR(**copy))[2] == 7
          and sdma.V7.read(sdma.V7.COPY_LINEAR(**copy, cpv=1, compression=[0]))[2] == 8)
  assert sdma.V6.read(sdma.V6.COPY_LINEAR(**copy, cpv=1))[2] == 7

def test_counts_have_the_width_of_their_generation() -> None:
  assert sdma.V6.COPY_LINEAR(count=(1 << 30) - 1)
  with pytest.raises(ValueError, match="count=0x400000 does not fit"): sdma.V4.COPY_LINEAR(count=1 << 22)

@pytest.mark.parametrize("words, reason",
                         [([0xFF], "no packet has the opcode 255, 0"), ([0x301], "no packet has the opcode 1, 3"),
                          ([5, 0], "FENCE has 4 words, and 2 are left"),
                          ([0x10005, 0, 0, 0], "no field has its bits 0x10000")])
def test_what_is_no_packet_is_refused(words: list[int], reason: str) -> None:
  with pytest.raises(ValueError, match=reason): sdma.V4.read(words)
