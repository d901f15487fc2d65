"""Methods of NVIDIA's engines against the fields of the vendor's headers (test/golden/nvidia_methods.txt), and
pushbuffers."""
from pathlib import Path

import pytest

from tinyhw.autogen.nvidia import methods
from tinyhw.autogen.nvidia.methods import HEADER, Call, decode, engines

LINES = [line.split() for line in (Path(__file__).parents[2] / "golden/nvidia_methods.txt").read_text().splitlines()
         if not line.startswith("#")]
CLASSES = {"C56F": (8, 0), "C86F": (9, 0), "C96F": (10, 0), "C6C0": (8, 1), "CBC0": (9, 1), "CDC0": (10, 1),
           "C6B5": (8, 2), "C8B5": (9, 2), "C9B5": (10, 2)}
RENAMED = {"NVCLASS": "class_id", "OFFSET": "offset"}
# Headers with less than others of their family: the host classes of Blackwell and Hopper are incomplete
TOLD_IN_PART = {("C96F", "SEM_EXECUTE"), ("C86F", "SET_OBJECT"), ("C96F", "SET_OBJECT"), ("C86F", "SEM_PAYLOAD_LO"),
                ("C86F", "SEM_PAYLOAD_HI"),
                ("C96F", "SEM_PAYLOAD_LO"), ("C96F", "SEM_PAYLOAD_HI")}

def test_methods_have_the_offsets_and_fields_of_the_headers() -> None:
  compared, row, cls, told = 0, None, "", set[tuple[str, str]]()
  for words in LINES:
    if words[0] == "method":
      cls, name = words[1], words[2]
      generation, engine = CLASSES[cls]
      row = engines(generation)[engine].rows[name]
      assert row.address == int(words[3], 16), (cls, name)
      told.add((cls, name))
      continue
    assert row is not None
    name = RENAMED.get(words[0], words[0].lower())
    if name not in row.fields: continue   # not used here
    field = row.fields[name]
    low = int(words[1])
    if row.name == "SEM_ADDR_LO": low = 0  # addresses are whole words
    assert (field.low, field.high) == (low, int(words[2])), (cls, row.name, name)
    compared += 1
  assert compared > 190
  for cls, (generation, engine) in CLASSES.items():
    for name in engines(generation)[engine].rows: assert (cls, name) in told or cls in ("C86F", "C96F"), (cls, name)

def test_every_field_of_ours_is_one_of_the_header() -> None:
  fields: dict[tuple[str, str], set[str]] = {}
  key = ("", "")
  for words in LINES:
    if words[0] == "method": key = words[1], words[2]
    else: fields.setdefault(key, set()).add(RENAMED.get(words[0], words[0].lower()))
  for cls, (generation, engine) in CLASSES.items():
    for row in engines(generation)[engine].rows.values():
      if (cls, row.name) in fields and (cls, row.name) not in TOLD_IN_PART:
        assert set(row.fields) <= fields[cls, row.name], (cls, row.name)

def test_a_pushbuffer_is_decoded() -> None:
  words = [HEADER(method=0x5c >> 2, count=2, opcode=methods.INCREASE), 0x1000, 2, 0,
           HEADER(method=0x1b4 >> 2, subchannel=1, count=2,
               opcode=methods.SAME), 7, 8, HEADER(method=0x110 >> 2, subchannel=1, count=9, opcode=methods.IMMEDIATE),
           HEADER(method=0x300 >> 2, subchannel=4, count=3, opcode=methods.INCREASE_ONCE), 1, 2, 3]
  assert decode(words) == [Call(0, 0x5c, 0x1000), Call(0, 0x60, 2), Call(1, 0x1b4, 7), Call(1, 0x1b4, 8),
                           Call(1, 0x110, 9), Call(4, 0x300, 1),
                           Call(4, 0x304, 2), Call(4, 0x304, 3)]
  with pytest.raises(ValueError, match="header of 3 words, and 2 follow"): decode(words[:-1])
  with pytest.raises(ValueError, match="no header of methods"): decode([HEADER(method=1, count=1, opcode=2), 0])
  assert words[0] == 0x20000000 | 2 << 16 | 0x5c >> 2

def test_generations_that_are_not_there() -> None:
  with pytest.raises(ValueError, match="no methods of generation 7"): engines(7)
  assert ("select" in engines(9).compute.SEND_SIGNALING_PCAS2_B.fields
          and "select" not in engines(8).compute.SEND_SIGNALING_PCAS2_B.fields)
  assert engines(9).compute.offsets[0x2c0] is engines(9).compute.SEND_SIGNALING_PCAS2_B
